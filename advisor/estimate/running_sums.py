"""Running sums over layers, kept small: a catalogue holds thousands of them."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from itertools import accumulate


def prefix_sums(values: Iterable[int]) -> Sequence[int]:
    """Give the sums before each value and after the last: of a to b it is ``sums[b] - sums[a]``."""
    return array("q", accumulate(values, initial=0))
