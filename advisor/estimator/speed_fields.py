"""Typed access to the plain data of the calibration files; complaints name the place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import exp, hypot, log

from msgspec import Struct

from advisor.errors import KnowledgeError, Source

Range = tuple[float, float]


def joined_range(one: Range, other: Range) -> Range:
    """Join two ranges, taken as independent."""
    below, above = (hypot(log(one[end]), log(other[end])) for end in (0, 1))
    return exp(-below), exp(above)


class Curve(Struct, frozen=True):
    """A figure by count, from 1 on, flat beyond the last."""

    values: tuple[float, ...]

    def at(self, count: int) -> float:
        """Give the figure at ``count``, at least 1."""
        return self.values[min(count, len(self.values)) - 1]


class Fields:
    """A mapping of a calibration file."""

    def __init__(self, found: object, where: str, file: str) -> None:
        """Hold the mapping.

        Args:
            found: What stands there.
            where: Dotted path of keys, empty for the whole file.
            file: The file's name, for complaints.

        Raises:
            KnowledgeError: It is no mapping.
        """
        self.where, self.file = where, file
        if not isinstance(found, Mapping):
            raise self.wrong(where or "the file", "a mapping")
        self.found: Mapping[str, object] = found

    def group(self, key: str) -> Fields:
        """Give the mapping under a key."""
        return Fields(self.found.get(key), self._below(key), self.file)

    def groups(self, but: Sequence[str] = ("source",)) -> Mapping[str, Fields]:
        """Give every mapping below."""
        return {key: self.group(key) for key in self.found if key not in but}

    def lines(self, key: str) -> list[Fields]:
        """Give a list of mappings."""
        found = self.found.get(key)
        if not isinstance(found, Sequence) or isinstance(found, str):
            raise self.wrong(self._below(key), "a list")
        return [Fields(line, f"{self._below(key)}[{i}]", self.file) for i, line in enumerate(found)]

    def number(self, key: str) -> float:
        """Give a number that is not negative."""
        return self._number(key, self.found.get(key))

    def text(self, key: str, default: str | None = None) -> str:
        """Give a text."""
        found = self.found.get(key, default)
        if not isinstance(found, str):
            raise self.wrong(self._below(key), "a text")
        return found

    def texts(self, key: str) -> tuple[str, ...]:
        """Give a list of texts, empty where absent."""
        found = self.found.get(key, ())
        if isinstance(found, str) or not isinstance(found, Sequence):
            raise self.wrong(self._below(key), "a list of texts")
        return tuple(str(one) for one in found)

    def flag(self, key: str) -> bool:
        """Give yes or no, no where absent."""
        found = self.found.get(key, False)
        if not isinstance(found, bool):
            raise self.wrong(self._below(key), "yes or no (true or false)")
        return found

    def numbers(self, but: Sequence[str] = ("source",)) -> Mapping[str, float]:
        """Give every number below by its key."""
        return {key: self.number(key) for key in self.found if key not in but}

    def range_factors(self, key: str) -> tuple[float, float]:
        """Give a range as factors on a figure: ``[low, high]``, or ``k`` for ``[1 / k, k]``."""
        found = self.found.get(key)
        if isinstance(found, Sequence) and not isinstance(found, str) and len(found) == 2:  # noqa: PLR2004
            low, high = (self._number(key, end) for end in found)
        else:
            high = self.number(key)
            low = 1 / high if high else 0.0
        if not 0 < low <= 1 <= high:
            raise self.wrong(
                self._below(key), "a range around 1: [low, high], or one factor above 1"
            )
        return low, high

    def curve(self, key: str, scale: float = 1.0) -> Curve:
        """Give a curve over counts from 1 on, straight between the stated ones."""
        found = self.group(key)
        try:
            points = sorted((int(count), found.number(count) * scale) for count in found.found)
        except ValueError:
            raise self.wrong(found.where, "a mapping of counts to numbers") from None
        if not points or points[0][0] != 1:
            raise self.wrong(found.where, "a mapping of counts to numbers that starts at 1")
        return _curve(points)

    def wrong(self, where: str, wanted: str) -> KnowledgeError:
        """Say what should stand at a place."""
        return KnowledgeError(
            f"'{where}' must be {wanted}",
            source=Source(self.file),
            hint=f"Compare with the built-in {self.file}.",
        )

    def _below(self, key: str) -> str:
        return f"{self.where}.{key}" if self.where else key

    def _number(self, key: str, found: object) -> float:
        if isinstance(found, bool) or not isinstance(found, int | float) or found < 0:
            raise self.wrong(self._below(key), "a number that is not negative")
        return float(found)


def _curve(points: Sequence[tuple[int, float]]) -> Curve:
    values: list[float] = []
    for (left, low), (right, high) in pairwise(points):
        slope = (high - low) / (right - left)
        values += [low + (n - left) * slope for n in range(left, right)]
    return Curve((*values, points[-1][1]))


SITUATIONS = frozenset({
    "own", "measured", "near", "near_small", "modelled", "modelled_small", "alone",
    "unmeasured_card", "unmeasured_format", "moe_near", "moe_unseen", "experts_estimated",
    "deep", "laptop", "offload", "offload_experts", "batch", "batch_unmeasured",
    "batch_tensor_parallel", "layer_split", "tensor_parallel", "other_engine", "prefill_card",
    "prefill", "prefill_unmeasured", "prefill_engine", "prefill_experts", "prefill_offload",
    "prefill_cards", "prefill_tensor",
})  # fmt: skip
"""What ranges are looked up by: a file that leaves one out is refused before a report needs it."""
