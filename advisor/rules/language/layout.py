"""The one way to write a rule file: order of keys, indentation and spacing.

Values and comments stay as typed. What an author put in braces stays in braces as long as it
fits on a line; the order of conditions is theirs.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from advisor.errors import RuleFileError, Source
from advisor.rules.language.context import Item, Remark, Value, Written, read_written
from advisor.rules.language.entries import LADDER_KEYS, RULE_KEYS
from advisor.yamlfile import parse_yaml


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


WIDTH = 120
"""Longest line on which braces or brackets stay."""
_STEP = 2

_ON_ONE_LINE = {"given", "change"}
"""A request stays in braces however long it is, as the workbench writes it."""

_ORDERS: Mapping[str, Sequence[str]] = {
    "recommend": ("action", "score", "supersedes", "text"),
    "note": ("text", "score"),
    "score": ("base", "add", "when"),
    "add[]": ("per", "points", "cap"),
    "cases[]": ("name", "given", "expect", "change", "rank", "says"),
    "rows[]": ("from", "to"),
}
"""Where a mapping stands -> its keys that come first, in this order."""
_LAST: Mapping[str, Sequence[str]] = {
    "when": ("any", "not"),
    "when[]": ("points",),
    "any[]": ("any", "not"),
    "not": ("any", "not"),
    "rows[]": ("value",),
}
"""Where a mapping stands -> its keys that come last."""


def formatted(content: bytes, shown: str) -> str:
    """Write a rule file in the canonical form.

    Raises:
        RuleFileError: It is not YAML, or could not be written with the same meaning.
    """
    written = read_written(content, shown)
    root = written.root
    if root.kind != "list" or not root.items:
        hint = "Begin every entry with '- rule: NAME'."
        raise RuleFileError("the file holds no list of rules.", source=Source(shown), hint=hint)
    root.flow = False
    lines = list(_Writer(written, give_remarks(written)).lines())
    text = "\n".join(lines) + "\n"
    _same_meaning(content, text, written, shown)
    return text


def _same_meaning(content: bytes, text: str, written: Written, shown: str) -> None:
    try:
        after = read_written(text.encode(), shown)
        same = parse_yaml(text.encode(), shown, RuleFileError).plain() == (
            parse_yaml(content, shown, RuleFileError).plain()
        )
    except RuleFileError:
        same = False
    else:
        same &= _comments(after) == _comments(written)
    if not same:
        hint = "Write block texts and comments in a plainer way; the file was left as it is."
        raise RuleFileError("it cannot be formatted safely.", source=Source(shown), hint=hint)


def _comments(written: Written) -> Sequence[str]:
    return sorted(remark.text for remark in written.remarks)


class _Writer(Struct, frozen=True):
    written: Written
    kept: frozenset[int]

    def lines(self) -> Iterator[str]:
        """Give the lines of the file, one empty line between entries."""
        first = True
        for item in self.written.root.items:
            block = _single_spaced(self._item(item, 0, ""))
            if not first:
                yield ""
            yield from block
            first = False

    def _item(self, item: Item, indent: int, place: str) -> Iterator[str]:
        """Write an entry with its comments; an empty line comes as an empty text."""
        above, beside = item.above, item.beside
        if not item.key and item.value.kind == "map" and self._in_block(item, indent):
            children = self._ordered(item.value, place)
            above = [*above, *([beside] if beside else []), *children[0].above]
            children[0].above, beside = [], ""
            written = [line for c in children for line in self._item(c, indent + _STEP, place)]
            written[0] = f"{' ' * indent}- {written[0].lstrip()}"
        else:
            written = list(self._value(item.key, item.value, indent, beside, place))
        yield from (_indented(text, indent) for text in above)
        yield from written
        yield from (_indented(text, indent) for text in item.below)

    def _ordered(self, value: Value, place: str) -> list[Item]:
        names = {item.key for item in value.items}
        first = _ORDERS.get(place, ())
        if not place:
            first = LADDER_KEYS if "ladder" in names else RULE_KEYS
        last = _LAST.get(place, ())
        ranks = {key: number - len(first) for number, key in enumerate(first)}
        ranks |= {key: number + 1 for number, key in enumerate(last)}
        return sorted(value.items, key=lambda item: ranks.get(item.key, 0))

    def _in_block(self, item: Item, indent: int) -> bool:
        if not item.value.flow:
            return bool(item.value.items)
        return item.value.begin not in self.kept and not self._line(item, indent)

    def _line(self, item: Item, indent: int) -> str:
        """Write braces or brackets on one line; empty when they do not fit on it."""
        head = f"{item.key}: " if item.key else "- "
        beside = f"  {item.beside}" if item.beside else ""
        text = f"{' ' * indent}{head}{self._flow(item.value, '')}{beside}"
        free = item.key in _ON_ONE_LINE or not item.value.items
        return text if free or len(text) <= WIDTH else ""

    def _value(self, key: str, value: Value, indent: int, beside: str, place: str) -> Iterator[str]:
        head = " " * indent + (f"{key}:" if key else "-" if place or indent else "")
        remark = f"  {beside}" if beside else ""
        inner = key or f"{place}[]"
        if value.kind == "scalar" or value.begin in self.kept:
            yield from _typed(head, value, self.written.text, indent, remark)
            return
        item = Item(value.begin, 0, value, key, beside=beside)
        if value.flow and (line := self._line(item, indent)):
            yield line
            return
        yield f"{head}{remark}"
        children = self._ordered(value, inner) if value.kind == "map" else value.items
        where = inner if value.kind == "map" else f"{inner}[]"
        first = True
        for child in children:
            block = list(self._item(child, indent + _STEP, where))
            yield from _single_spaced(block) if first else block
            first = False

    def _flow(self, value: Value, place: str) -> str:
        if value.kind == "scalar":
            return " ".join(value.raw.split()) if "\n" in value.raw else value.raw
        if value.kind == "list":
            return f"[{', '.join(self._flow(i.value, f'{place}[]') for i in value.items)}]"
        pairs = (f"{i.key}: {self._flow(i.value, i.key)}".rstrip() for i in value.items)
        return f"{{{', '.join(pairs)}}}"


def _single_spaced(lines: Iterator[str] | Sequence[str]) -> Sequence[str]:
    """Drop empty lines at the begin."""
    found = list(lines)
    while found and not found[0]:
        del found[0]
    return found


def _indented(text: str, indent: int) -> str:
    return f"{' ' * indent}{text}" if text else ""


def _typed(head: str, value: Value, text: str, indent: int, remark: str) -> Iterator[str]:
    """Write a value as typed, its further lines one step in."""
    raw = value.raw if value.kind == "scalar" else text[value.begin : value.end]
    first, *rest = raw.rstrip("\n").split("\n") if raw[:1] in "|>" else raw.split("\n")
    space = " " if first and head else ""
    yield f"{head}{space}{first.rstrip()}{'' if rest else remark}".rstrip()
    margin = _margin(rest) if raw[:1] in "|>" else 0
    for number, line in enumerate(rest):
        written = line[margin:] if raw[:1] in "|>" else line.strip()
        end = remark if number == len(rest) - 1 else ""
        yield f"{_indented(written, indent + _STEP)}{end}".rstrip()


def _margin(lines: Sequence[str]) -> int:
    return min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
