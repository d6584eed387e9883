"""Memory in huge pages, where Linux gathers it on demand.

A report touches tens of megabytes of small objects, strewn over tens of thousands of pages of
4 KiB: more than a processor keeps addresses of. Gathered in pages of 2 MiB, reports take 5 to 10 %
less time (docs/decisions/0028-huge-pages.md). Nothing depends on it: where it cannot be done,
nothing happens.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path

_SYSTEM = Path("/sys/kernel/mm/transparent_hugepage")
_MAPS = Path("/proc/self/maps")
_MADV_COLLAPSE = 25
"""Of Linux 6.1 and later (include/uapi/asm-generic/mman-common.h)."""
_FIRST, _THEN_TIMES = 1, 4


_shards = count(1)


def after_shard() -> None:
    """Count a shard of this process, and gather its memory when that is due."""
    if is_time(next(_shards)):
        gather()


def is_time(shards: int) -> bool:
    """Whether to gather after so many shards: after 1, 4, 16, 64 and so on, as memory grows."""
    due = _FIRST
    while due < shards:
        due *= _THEN_TIMES
    return due == shards


def gather(system: Path = _SYSTEM, maps: Path = _MAPS) -> int:
    """Gather this process's own memory in huge pages.

    Args:
        system: Where the kernel says whether it has them, and of what size.
        maps: The regions of this process.

    Returns:
        Bytes now in huge pages; 0 where the kernel has none, its owner forbids them, or it cannot
        gather on demand.
    """
    size = _page_size(system)
    if not size:
        return 0
    import ctypes  # noqa: PLC0415  workers of a batch alone

    advise = ctypes.CDLL(None).madvise
    advise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    regions = list(_regions(maps, size))
    return sum(length for start, length in regions if not advise(start, length, _MADV_COLLAPSE))


def _page_size(system: Path) -> int:
    """Bytes of a huge page; 0 where there are none or they are switched off."""
    if sys.platform != "linux":
        return 0
    try:
        allowed = "[never]" not in (system / "enabled").read_text()
        return int((system / "hpage_pmd_size").read_text()) if allowed else 0
    except (OSError, ValueError):
        return 0


def _regions(maps: Path, size: int) -> Iterator[tuple[int, int]]:
    """Address and length of what holds objects, in whole huge pages."""
    try:
        lines = maps.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        where, rights, _, _, _, *name = line.split(maxsplit=5)
        if rights == "rw-p" and name in ([], ["[heap]"]):
            first, last = (int(address, 16) for address in where.split("-"))
            start = -(-first // size) * size
            length = last // size * size - start
            if length > 0:
                yield start, length
