"""Reading mappings of a YAML file key by key, collecting every problem on the way."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct, field

from advisor.errors import Edit, Problems, Source, UserError, correction, guess
from advisor.yamlfile import Node, read_yaml

COMMA = "Between { } a comma ends the value: put a value with commas in quotes."
_LONGEST = 600


def _shortened(message: str) -> str:
    """Leave out the middle of a message that quotes a whole file."""
    if len(message) <= _LONGEST:
        return message
    half = _LONGEST // 2
    return f"{message[:half]} ... {message[-half:]}"


class Collector(Struct):
    """What is wrong so far; all of it becomes errors of one type."""

    error: type[UserError]
    errors: list[UserError] = field(default_factory=list)

    def add(
        self,
        message: str,
        source: Source | None,
        hint: str = "",
        *,
        lint: str = "",
        edit: Edit | None = None,
    ) -> None:
        """Note a problem; ``message`` ends with a full stop, and what it quotes is kept short."""
        message = _shortened(message)
        self.errors.append(self.error(message, source=source, hint=hint, lint=lint, edit=edit))

    def take(self, error: UserError) -> None:
        """Note what another reader raised."""
        self.errors.extend(
            [e for e in error.errors if isinstance(e, UserError)]
            if isinstance(error, Problems)
            else [error]
        )

    def parse(self, content: bytes, shown: str) -> Node | None:
        """Parse a file as far as it goes, its problems noted; None when nothing can be read."""
        return read_yaml(content, shown, self.error, self.errors)

    def entries(self, content: bytes, shown: str, begin: str) -> Sequence[Node]:
        """Read a file that is a list of mappings; of a broken one what can be read.

        ``begin`` is how an entry begins, for the hint (``- rule: NAME``).
        """
        root = self.parse(content, shown)
        if root is None:
            return []
        if not isinstance(root.value, list):
            hint = f"Begin every entry with '{begin}'."
            self.add("the file must be a list.", root.source, hint, lint="not-a-list")
            return []
        if not root.value:
            hint = f"Begin every entry with '{begin}'."
            self.add("the list is empty.", root.source, hint, lint="empty-file")
        return root.value

    def mapping(self, node: Node, what: str) -> Fields | None:
        """Take a mapping, called ``what`` in messages; anything else is a problem."""
        return Fields.of(node, what, self)


def listed(names: Collection[str]) -> str:
    """Write names as ``a, b or c``."""
    words = list(names)
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " or " + words[-1]


_LARGEST = 1e300
"""Above every figure there is, and below what a float cannot hold once multiplied."""


class Fields(Struct, frozen=True):
    """One mapping, read by key."""

    values: Mapping[str, Node]
    source: Source
    keys: Mapping[str, Source]
    problems: Collector

    @classmethod
    def of(cls, node: Node, what: str, problems: Collector) -> Fields | None:
        """Take a mapping; anything else is a problem."""
        if isinstance(node.value, Mapping):
            return cls(node.value, node.source, node.key_sources or {}, problems)
        problems.add(
            f"{what} must be a mapping of keys to values.", node.source, lint="wrong-shape"
        )
        return None

    def __contains__(self, key: str) -> bool:
        return key in self.values

    def at(self, key: str) -> Source:
        """Where the key stands, or where the mapping begins."""
        return self.keys.get(key, self.source)

    def node(self, key: str) -> Node | None:
        """Give the value of a key, None when it is absent."""
        return self.values.get(key)

    def only(self, known: Collection[str]) -> None:
        """Refuse keys that are not in ``known``."""
        for key, node in self.values.items():
            if key not in known:
                hint = guess(key, known) or f"Known keys: {', '.join(known)}."
                hint = COMMA if node.value is None else hint
                edit = correction(key, hint)
                edit = None if edit and edit.new in self.values else edit
                self.problems.add(
                    f"unknown key '{key}'.", self.at(key), hint, lint="unknown-key", edit=edit
                )

    def require(self, key: str, hint: str = "") -> Node | None:
        """Give the value of a key that must be there."""
        if key not in self.values:
            self.problems.add(f"the key '{key}' is missing.", self.source, hint, lint="missing-key")
        return self.values.get(key)

    def text(self, key: str) -> str | None:
        """Give a text as written; a list, a mapping or nothing is a problem."""
        node = self.node(key)
        return None if node is None else self.scalar(key, node)

    def scalar(self, key: str, node: Node) -> str | None:
        """Give the text of ``node``, which stands under ``key``."""
        if isinstance(node.value, list | Mapping):
            self.problems.add(f"'{key}' must be a text.", node.source, lint="wrong-shape")
            return None
        if not node.text.strip() or node.value is None:
            self.problems.add(f"'{key}' is empty.", self.at(key), lint="empty-value")
            return None
        return node.text.strip()

    def words(self, key: str) -> tuple[str, ...]:
        """Give a list of texts; one text alone is a list of one."""
        node = self.node(key)
        if node is None:
            return ()
        items = node.value if isinstance(node.value, list) else [node]
        found = (self.scalar(key, item) for item in items)
        return tuple(word for word in found if word is not None)

    def number(self, key: str) -> float | None:
        """Give a plain number without a unit."""
        node = self.node(key)
        if node is None:
            return None
        if isinstance(node.value, bool) or not isinstance(node.value, int | float):
            message = f"'{key}' must be a number, not '{node.text}'."
            self.problems.add(message, node.source, lint="wrong-value")
            return None
        return self._finite(key, node, node.value)

    def _finite(self, key: str, node: Node, number: float) -> float | None:
        if abs(number) <= _LARGEST:
            return float(number)
        message = f"'{key}' is too large a number, or none."
        self.problems.add(message, node.source, lint="wrong-value")
        return None

    def flag(self, key: str) -> bool:
        """Give yes or no; an absent key is no."""
        node = self.node(key)
        if node is None or isinstance(node.value, bool):
            return node is not None and bool(node.value)
        message = f"'{key}' must be yes or no, not '{node.text}'."
        self.problems.add(message, node.source, lint="wrong-value")
        return False

    def choice(self, key: str, allowed: Collection[str]) -> str | None:
        """Give a text that must be one of ``allowed``."""
        text = self.text(key)
        node = self.node(key)
        if text is None or node is None or text in allowed:
            return text
        hint = guess(text, allowed) or f"It is one of {listed(allowed)}."
        self.problems.add(
            f"unknown {key} '{text}'.",
            node.source,
            hint,
            lint="unknown-word",
            edit=correction(text, hint),
        )
        return None
