"""The kinds of fields that knowledge files have: how each is read, and what can be wrong with it.

A record (``types``) names the kind of each of its fields once, ``bandwidth: BytesPerSecond``.
From there pydantic takes how files are read and msgspec what is stored; neither is imported here,
as a warm start reads no file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeVar

from msgspec import Struct

from advisor.errors import Source, did_you_mean
from advisor.units import (
    DIMENSIONS,
    Quantity,
    UnitError,
    as_sold,
    parse_quantity,
    parse_size_as_sold,
)

if TYPE_CHECKING:
    from advisor.yamlfile import Node

_TOKENS = "Write {0 GiB: 4096}, or trained or lowered for the tokens."
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_LEAVE_OUT = "Leave the key out where it is unknown."
_T = TypeVar("_T")


class Flaw(NamedTuple):
    """One thing that is wrong with a value; ``{key}`` in the message stands for its key."""

    message: str
    at: Source
    hint: str = ""


class FlawedError(ValueError):
    """A value that cannot be read; pydantic hands it on with the others of the entry."""

    def __init__(self, *flaws: Flaw) -> None:
        super().__init__(*flaws)
        self.flaws = flaws


class Bounds(NamedTuple):
    """The least and the most that a number may be, in base units."""

    least: float
    most: float
    dimension: str
    shown: str
    """``0 % to 90 %``."""
    unit: str

    def read(self, node: Node, *, sold: bool = False) -> float:
        """Read a number within the bounds; ``sold``: a size as on the box.

        Raises:
            FlawedError: It has another unit or none, or lies outside.
        """
        hint = f"Write {self.shown}."
        found = _parsed(node, hint, sold=sold)
        if found.dimension != self.dimension:
            kind = f"in {self.unit}" if self.unit else "a plain number"
            message = f"'{{key}}' must be {kind}, not '{node.text.strip()}'"
        elif not self.least <= found.value <= self.most:
            message = f"'{{key}}' is '{node.text.strip()}', outside its bounds"
        elif self.dimension in _WHOLE and found.value != int(found.value):
            message = "'{key}' must be a whole number"
        else:
            return found.value
        raise FlawedError(Flaw(message, node.source, hint))


_WHOLE = ("count", "tokens")


class Kind(Struct, frozen=True):
    """How a field is read; raises ``FlawedError`` for a value that is wrong."""

    read: Callable[[Node], object]

    def stated(self, node: Node) -> object:
        """Read a value that must not be empty."""
        if node.value is None:
            raise FlawedError(Flaw("'{key}' is empty", node.source, _LEAVE_OUT))
        return self.read(node)

    def __get_pydantic_core_schema__(self, source: object, handler: object) -> Any:
        """Tell pydantic how a field of this kind is read."""
        from pydantic_core.core_schema import no_info_plain_validator_function  # noqa: PLC0415 - see above

        return no_info_plain_validator_function(self.stated)


def is_text(node: Node) -> bool:
    """Whether a value is a text, a number or a date that is not empty."""
    return bool(node.text.strip()) and not isinstance(node.value, Mapping | list)


def items_of(node: Node) -> Sequence[Node]:
    """Give the values of a list; one value alone is a list of one."""
    return node.value if isinstance(node.value, list) else [node]


def text(node: Node) -> str:
    """Read a text; numbers and dates give what is written."""
    if not is_text(node):
        raise FlawedError(Flaw("'{key}' must be a text", node.source))
    return node.text.strip()


def as_it_is(node: Node) -> Node:
    """Give a value with its place."""
    return node


def written(node: Node) -> str:
    """Give a value as it is written; it may be empty."""
    return node.text


def texts(node: Node) -> tuple[str, ...]:
    """Read a list of texts (or one text)."""
    if not all(map(is_text, items_of(node))):
        raise FlawedError(Flaw("'{key}' must be a list of texts", node.source))
    return tuple(item.text.strip() for item in items_of(node))


def choice(values: Sequence[str]) -> Callable[[Node], str]:
    """Read one of a closed list."""

    def read(node: Node) -> str:
        found = text(node)
        if found not in values:
            raise FlawedError(
                Flaw(f"'{found}' is not a valid '{{key}}'.", node.source, _one_of(found, values))
            )
        return found

    return read


def choices(values: Sequence[str]) -> Callable[[Node], tuple[str, ...]]:
    """Read a list whose items all come from a closed list."""

    def read(node: Node) -> tuple[str, ...]:
        found = texts(node)
        flaws = [
            Flaw(f"'{word}' is not valid in '{{key}}'.", node.source, _one_of(word, values))
            for word in found
            if word not in values
        ]
        if flaws:
            raise FlawedError(*flaws)
        return found

    return read


def _one_of(found: str, values: Sequence[str]) -> str:
    return did_you_mean(found, values) or f"It must be one of: {', '.join(values)}."


def flag(node: Node) -> bool:
    """Read ``yes`` or ``no``."""
    if not isinstance(node.value, bool):
        raise FlawedError(Flaw("'{key}' must be yes or no", node.source))
    return node.value


def quantity(
    dimension: str, *, zero: bool = False, per: float = 1, sold: bool = False
) -> Callable[[Node], float]:
    """Read a number with a unit of a dimension, in its base unit.

    Args:
        dimension: A key of ``units.DIMENSIONS``; ``count`` for plain numbers.
        zero: Allow 0; negative numbers are never allowed.
        per: Base units in one unit of the result.
        sold: A size as on the box, where GB means GiB.
    """

    def read(node: Node) -> float:
        found = _parsed(node, _example(dimension), sold=sold)
        if found.dimension != dimension:
            got = found.dimension if found.unit else "a number without a unit"
            raise FlawedError(Flaw(f"'{{key}}' is {got}", node.source, _example(dimension)))
        if found.value < 0 or (found.value == 0 and not zero):
            raise FlawedError(Flaw("'{key}' must be above zero", node.source, _LEAVE_OUT))
        return found.value / per

    return read


def bounds(node: Node) -> Bounds:
    """Read ``0 % and 90 %``: the least and the most that a number may be."""
    least, word, most = node.text.partition(" and ")
    try:
        low, high = parse_quantity(least), parse_quantity(most)
    except UnitError as bad:
        raise FlawedError(Flaw(f"'{{key}}': {bad}", node.source, _BOUNDS)) from None
    if not word or low.dimension != high.dimension or low.value >= high.value:
        message = "'{key}' must be two numbers of one kind, the smaller first"
        raise FlawedError(Flaw(message, node.source, _BOUNDS))
    shown = f"{least.strip()} to {most.strip()}"
    return Bounds(low.value, high.value, low.dimension, shown, low.unit)


_BOUNDS = "Write it like '0 % and 90 %'."


def _parsed(node: Node, hint: str, *, sold: bool = False) -> Quantity:
    try:
        return parse_quantity(as_sold(node.text) if sold else node.text)
    except UnitError as bad:
        raise FlawedError(Flaw(f"'{{key}}': {bad}", node.source, hint)) from None


def _example(dimension: str) -> str:
    unit = next(
        (u for u in ("GiB", "GB/s", "TFLOPS", "ms") if u in DIMENSIONS[dimension]),
        next(iter(DIMENSIONS[dimension])),
    )
    return f"Write it like '12 {unit}'." if unit else "Write a plain number."


def whole(dimension: str, *, sold: bool = False) -> Callable[[Node], int]:
    """Read a quantity as a whole number of base units (bytes, parameters, tokens)."""
    read = quantity(dimension, sold=sold)
    return lambda node: round(read(node))


def count(node: Node) -> int:
    """Read a plain positive whole number."""
    found = quantity("count")(node)
    if found != int(found):
        raise FlawedError(Flaw("'{key}' must be a whole number", node.source))
    return int(found)


def sizes(node: Node) -> tuple[int, ...]:
    """Read sizes of memory as they are sold, in bytes, the smallest first."""
    try:
        return tuple(sorted(map(parse_size_as_sold, texts(node))))
    except UnitError as bad:
        raise FlawedError(Flaw(f"'{{key}}': {bad}", node.source)) from None


def day(node: Node) -> str:
    """Read a date, ``2024-05-07``."""
    found = text(node)
    if not (_DAY.fullmatch(found) and is_date(found)):
        message = f"'{{key}}': '{found}' is not a date"
        raise FlawedError(Flaw(message, node.source, "Write 2024-05-07."))
    return found


def is_date(found: str) -> bool:
    """Tell ``2024``, ``2024-05`` and ``2024-05-07``, if the calendar has them."""
    if not re.fullmatch(r"[0-9]{4}(-[0-9]{2}(-[0-9]{2})?)?", found):
        return False
    try:
        date.fromisoformat(found + "-01-01"[len(found) - 4 :])
    except ValueError:
        return False
    return True


def nodes(node: Node) -> Mapping[str, Node]:
    """Read a mapping as it stands."""
    if not isinstance(node.value, Mapping):
        raise FlawedError(Flaw("'{key}' must be a mapping of keys to values", node.source))
    return node.value


def mapping(
    read: Callable[[Node], _T], names: Collection[str] = (), what: str = ""
) -> Callable[[Node], Mapping[str, _T]]:
    """Read a mapping, each value by ``read``; ``names`` are the keys it may have."""

    def read_all(node: Node) -> Mapping[str, _T]:
        found = nodes(node)
        if names and (flaws := unknown_keys(node, what, names)):
            raise FlawedError(*flaws)
        return {name: read(value) for name, value in found.items()}

    return read_all


def unknown_keys(node: Node, what: str, names: Collection[str]) -> list[Flaw]:
    """Name the keys of a mapping that are none of ``names``; ``what`` is what they should be."""
    return [
        Flaw(
            f"there is no {what} '{name}'.",
            (node.key_sources or {}).get(name, node.source),
            did_you_mean(name, names) or f"Known: {', '.join(names)}.",
        )
        for name in nodes(node)
        if name not in names
    ]


def losses(node: Node) -> tuple[tuple[float, float], ...]:
    """Read losses by the size of the model they were measured on, the smallest model first."""
    found, flaws = [], []
    for size, value in nodes(node).items():
        try:
            parameters, loss = parse_quantity(size), parse_quantity(value.text)
        except UnitError as bad:
            flaws.append(Flaw(f"'{{key}}': {bad}", value.source, "Write {8 B: 0.5 %}."))
            continue
        found.append((parameters.value, loss.value))
        if (parameters.dimension, loss.dimension) != ("parameters", "share"):
            message = "'{key}' holds a share in % for each size"
            flaws.append(Flaw(message, value.source, "Write {8 B: 0.5 %}."))
    if flaws:
        raise FlawedError(*flaws)
    return tuple(sorted(found))


def contexts(node: Node) -> tuple[tuple[float, str], ...]:
    """Read tokens by memory of the cards: a number, ``trained`` or ``lowered``."""
    found = []
    for size, value in nodes(node).items():
        read = re.fullmatch(r"(\d{1,6}) GiB (\d{1,9}|trained|lowered)", f"{size} {value.value}")
        if not read:
            raise FlawedError(Flaw("'{key}' holds tokens for each memory", value.source, _TOKENS))
        found.append((int(read[1]) * 2.0**30, read[2]))
    return tuple(sorted(found))


def disputes(dimensions: Mapping[str, str]) -> Callable[[Node], Mapping[str, tuple[str, ...]]]:
    """Read the figures that sources disagree on, by key; each key has a dimension."""

    def read(node: Node) -> Mapping[str, tuple[str, ...]]:
        flaws = [flaw for key, value in nodes(node).items() for flaw in _undisputed(key, value)]
        if flaws:
            raise FlawedError(*flaws)
        return {key: texts(value) for key, value in nodes(node).items()}

    def _undisputed(key: str, value: Node) -> Sequence[Flaw]:
        figures = value.value if isinstance(value.value, list) else []
        if len(figures) < len("ab"):
            return [Flaw(f"'{{key}}': '{key}' needs at least two values", value.source)]
        if key not in dimensions:
            return [Flaw(f"'{{key}}' names the unknown field '{key}'", value.source)]
        return [
            Flaw(f"'{{key}}': '{figure.text}' is no {key}", value.source)
            for figure in figures
            if not _is_of(figure.text, dimensions[key])
        ]

    return read


def _is_of(written: str, dimension: str) -> bool:
    try:
        return parse_quantity(written).dimension == dimension
    except UnitError:
        return False


def plain(node: Node) -> Mapping[str, object]:
    """Read a mapping as plain data, unchecked."""
    return {name: value.plain() for name, value in nodes(node).items()}


Text = Annotated[str, Kind(text)]
Texts = Annotated[tuple[str, ...], Kind(texts)]
Flag = Annotated[bool, Kind(flag)]
Day = Annotated[str, Kind(day)]
"""ISO date."""
Count = Annotated[int, Kind(count)]
Number = Annotated[float, Kind(quantity("count"))]
Bytes = Annotated[int, Kind(whole("memory"))]
SoldBytes = Annotated[int, Kind(whole("memory", sold=True))]
"""A size as on the box: 24 GB are 24 GiB."""
BytesPerSecond = Annotated[float, Kind(quantity("bandwidth"))]
Bits = Annotated[float, Kind(quantity("bits"))]
Tflops = Annotated[float, Kind(quantity("compute"))]
Watts = Annotated[float, Kind(quantity("power"))]
Dollars = Annotated[float, Kind(quantity("money"))]
Parameters = Annotated[int, Kind(whole("parameters"))]
Tokens = Annotated[int, Kind(whole("tokens"))]
Loss = Annotated[float, Kind(quantity("share", zero=True))]
"""In %."""
Losses = Annotated[tuple[tuple[float, float], ...], Kind(losses)]
"""In %, by the parameters of the model they were measured on."""
Contexts = Annotated[tuple[tuple[float, str], ...], Kind(contexts)]
Words = Annotated[Mapping[str, str], Kind(mapping(written))]
"""Name -> text."""
