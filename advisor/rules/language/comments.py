"""Comments and empty lines of a rule file, each given to the entry that it belongs to."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

from advisor.rules.language.source_text import Item, Remark, Value, Written


def give_remarks(written: Written) -> frozenset[int]:
    """Give every comment to an entry.

    Returns:
        Where lists and mappings in brackets begin that have comments inside; they stay as typed.
    """
    return _Giving(written).give()


class _Giving:
    def __init__(self, written: Written) -> None:
        self.text = written.text
        self.remarks = written.remarks
        self.chains: list[tuple[Item, ...]] = []
        """Every entry in block style with those around it, in order."""
        self.flows: list[Value] = []
        self._collect(written.root, ())
        self.begins = [chain[-1].begin for chain in self.chains]

    def _collect(self, value: Value, around: tuple[Item, ...]) -> None:
        if value.flow:
            self.flows.append(value)
            return
        for item in value.items:
            chain = (*around, item)
            self.chains.append(chain)
            self._collect(item.value, chain)

    def give(self) -> frozenset[int]:
        kept: set[int] = set()
        for remark in self.remarks:
            around = [f.begin for f in self.flows if f.begin < remark.at < f.end]
            kept.update(around)
            if not around:
                self._give(remark)
        for chain in self.chains:
            if self._begins_line(chain) and self._after_empty_line(chain[-1].begin):
                chain[-1].above.append("")
        return frozenset(kept)

    def _give(self, remark: Remark) -> None:
        number = bisect_left(self.begins, remark.at)
        if not remark.alone and number and not self.chains[number - 1][-1].beside:
            self.chains[number - 1][-1].beside = remark.text
            return
        following = self.chains[number][-1] if number < len(self.chains) else None
        before = self.chains[number - 1] if number else ()
        home = _home(before, following, remark.column)
        if home is not None:
            home.below += self._spaced(remark)
        elif following is not None:
            following.above += self._spaced(remark)

    def _spaced(self, remark: Remark) -> Iterator[str]:
        if self._after_empty_line(remark.at):
            yield ""
        yield remark.text

    def _begins_line(self, chain: tuple[Item, ...]) -> bool:
        """Whether no other entry begins before it on its line."""
        line = self.text.rfind("\n", 0, chain[-1].begin) + 1
        return not any(item.begin >= line for item in chain[:-1])

    def _after_empty_line(self, place: int) -> bool:
        line = self.text.rfind("\n", 0, place) + 1
        above = self.text.rfind("\n", 0, max(line - 1, 0)) + 1
        return line > 0 and not self.text[above:line].strip()


def _home(before: tuple[Item, ...], following: Item | None, column: int) -> Item | None:
    """The entry that a comment ends; None when it belongs to what follows."""
    if following is not None and column <= following.column:
        return None
    inside = [item for item in before if item.column <= column] or list(before[:1])
    if not inside or (following is not None and inside[-1].column <= following.column):
        return None
    return inside[-1]
