"""Which rows of a table: a whole number that holds one byte per row, 1 where the row is meant.

Joining two masks of 600,000 rows with ``&`` or ``|`` takes a tenth of a millisecond, which is what
makes it possible to try thousands of edited rules on the whole sample.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

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

    Args:
        mask: Over the owners.
        starts: Where each owner's rows begin, and at the end how many rows there are.
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
