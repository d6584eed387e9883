"""The values of one fact over many rows, and which rows of a table are meant.

Distinct values are sorted and a row holds the place of its value among them, in one to three
bytes, each in a plane of its own. A comparison then asks about places, which the byte operations
of Python answer without a loop. The answer is a mask: a whole number that holds one byte per row, 1
where the row is meant. Joining two masks of 600,000 rows with ``&`` or ``|`` takes a tenth of a
millisecond, which is what makes it possible to try thousands of edited rules on the whole sample.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Any

from msgspec import Struct

from advisor.knowledge.vocabulary import FactValue
from advisor.rules import ORDERING, Test, answer

Mask = int


def mask_of(rows: bytes) -> Mask:
    """Make a mask of one byte per row, each 0 or 1."""
    return int.from_bytes(rows, "little")


def all_rows(count: int) -> Mask:
    """Give the mask of every one of ``count`` rows."""
    return mask_of(b"\x01" * count)


def rows_of(mask: Mask, count: int) -> bytes:
    """Give the bytes of a mask, one per row."""
    return mask.to_bytes(count, "little")


def row_numbers(mask: Mask, count: int) -> Iterator[int]:
    """List the rows that are meant, in order."""
    rows = rows_of(mask, count)
    place = rows.find(1)
    while place >= 0:
        yield place
        place = rows.find(1, place + 1)


def rows_between(mask: Mask, begin: int, end: int) -> Iterator[int]:
    """List the rows that are meant from one row up to another."""
    part = mask >> (8 * begin) & ((1 << 8 * (end - begin)) - 1)
    return (begin + row for row in row_numbers(part, end - begin))


def spread(mask: Mask, starts: Sequence[int]) -> Mask:
    """Give each owner's mark to all rows it owns.

    ``starts`` says where each owner's rows begin, and at the end how many rows there are.
    """
    rows = bytearray(starts[-1])
    for owner in row_numbers(mask, len(starts) - 1):
        begin, end = starts[owner], starts[owner + 1]
        rows[begin:end] = b"\x01" * (end - begin)
    return mask_of(bytes(rows))


def gathered(mask: Mask, starts: Sequence[int]) -> Mask:
    """Mark each owner that owns a marked row; the opposite of ``spread``."""
    rows = rows_of(mask, starts[-1])
    owners = bytearray(len(starts) - 1)
    owner, place = 0, rows.find(1)
    while place >= 0:
        while starts[owner + 1] <= place:
            owner += 1
        owners[owner] = 1
        place = rows.find(1, starts[owner + 1])
    return mask_of(bytes(owners))


_BYTE = 256
_LITTLE = array("H", [1]).tobytes()[0] == 1
_UNKNOWN = 0
"""The place of an unknown value; known ones count from 1."""


class Column(Struct, frozen=True):
    """One fact. ``values`` are distinct and sorted; ``planes`` hold the low byte first."""

    values: Sequence[FactValue]
    planes: tuple[bytes, ...]

    def __len__(self) -> int:
        return len(self.planes[0])

    def value(self, row: int) -> FactValue | None:
        """Give the value in one row, None where it is unknown."""
        place = 0
        for plane in reversed(self.planes):
            place = place * _BYTE + plane[row]
        return self.values[place - 1] if place else None

    def codes(self, spans: Sequence[tuple[int, int]]) -> array[int]:
        """Give the places of the values of some rows, each from one row up to another."""
        planes = [b"".join(plane[a:b] for a, b in spans) for plane in self.planes]
        size = array("I").itemsize
        raw = bytearray(size * len(planes[0]))
        for number, plane in enumerate(planes):
            raw[number if _LITTLE else size - 1 - number :: size] = plane
        return array("I", bytes(raw))

    def known(self) -> Mask:
        """Give the rows in which the fact is known."""
        return self._from(1)

    def passing(self, test: Test) -> Mask:
        """Give the rows in which a test against a literal holds."""
        if test.verb == "is known":
            return self.known()
        if test.verb == "is unknown":
            return all_rows(len(self)) ^ self.known()
        if test.verb in ORDERING and self._is_numbers():
            return self._ordered(test)
        says = answer(test)
        return self._where([place for place, value in enumerate(self.values, 1) if says(value)])

    def _is_numbers(self) -> bool:
        return isinstance(self.values, array)

    def _ordered(self, test: Test) -> Mask:
        """Ask one value after the other until the answer turns, as values are sorted."""
        says = answer(test)
        rising = not says(-math.inf)
        first = 1 + bisect_left(self.values, x=True, key=lambda value: says(value) is rising)
        beyond = self._from(first)
        return beyond if rising else self.known() ^ beyond

    def _from(self, first: int) -> Mask:
        """Give the rows whose place is at least ``first``."""
        count = len(self)
        if first > len(self.values):
            return 0
        digits = [first // _BYTE**i % _BYTE for i in range(len(self.planes))]
        found = all_rows(count)
        for plane, digit in zip(self.planes, digits, strict=True):
            equal = _picked(plane, digit.__eq__)
            found = _picked(plane, digit.__lt__) | (equal & found)
        return found

    def _where(self, places: Sequence[int]) -> Mask:
        """Give the rows whose place is one of these."""
        if len(self.planes) == 1:
            wanted = set(places)
            return _picked(self.planes[0], wanted.__contains__)
        if len(places) > len(self.values) // 2:
            wanted = set(places)
            others = [p for p in range(1, len(self.values) + 1) if p not in wanted]
            return self.known() ^ self._where(others) if others else self.known()
        found = 0
        for place in places:
            found |= self._from(place) ^ self._from(place + 1)
        return found


def _picked(plane: bytes, wanted: Callable[[int], bool]) -> Mask:
    return mask_of(plane.translate(bytes(bool(wanted(byte)) for byte in range(_BYTE))))


def column_of(parts: Sequence[tuple[Sequence[FactValue], array[int]]]) -> Column:
    """Join the parts of a column.

    Args:
        parts: Each some distinct values in any order, and for every row the place of its value
            among them counted from 1, or 0.
    """
    mixed = len({kind for values, _ in parts for kind in map(type, values)}) > 1
    named: list[Sequence[Any]]
    named = [[*map(_identity, values)] if mixed else values for values, _ in parts]
    ordered = sorted({value for values in named for value in values})
    places = dict(zip(ordered, count(1), strict=False))
    joined = array("I")
    for values, (_, codes) in zip(named, parts, strict=True):
        moved = [_UNKNOWN, *map(places.__getitem__, values)]
        same = moved == list(range(len(moved)))
        joined.extend(codes if same else map(moved.__getitem__, codes))
    distinct = [value for _, value in ordered] if mixed else ordered
    return Column(_compact(distinct), _planes(joined, len(ordered)))


def _identity(value: FactValue) -> tuple[str, FactValue]:
    return (type(value).__name__, value)


def _compact(values: Sequence[FactValue]) -> Sequence[FactValue]:
    numbers = [value for value in values if isinstance(value, float)]
    if numbers and len(numbers) == len(values):
        return array("d", numbers)
    return tuple(values)


def _planes(codes: array[int], most: int) -> tuple[bytes, ...]:
    width = 1 if most < _BYTE else 2 if most < _BYTE**2 else 3
    raw = codes.tobytes()
    size = codes.itemsize
    order = range(size) if _LITTLE else range(size - 1, -1, -1)
    return tuple(raw[place::size] for place in list(order)[:width])
