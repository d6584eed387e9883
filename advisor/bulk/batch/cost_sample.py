"""What a plan will cost: a few short runs of neighbouring scenarios, measured."""

from __future__ import annotations

import time

from msgspec import Struct

from advisor.bulk.batch.plan import Plan, Shard, shard_count
from advisor.bulk.batch.shard import Making, make_shard

_RUNS, _LENGTH = 4, 32
_BLOCK = 4096
"""Bytes a file takes on the disk come in steps of this."""


class Cost(Struct, frozen=True):
    """What was measured."""

    scenarios: int
    cpu_s: float
    written_bytes: int
    disk_bytes: int
    """In whole blocks of the file system."""
    files: int

    def of(self, scenarios: int) -> tuple[float, float, float]:
        """Give processor seconds, bytes and bytes on the disk for so many scenarios."""
        share = scenarios / max(self.scenarios, 1)
        return self.cpu_s * share, self.written_bytes * share, self.disk_bytes * share


def measure(plan: Plan, making: Making) -> Cost:
    """Make a small part of a plan, spread over it, and keep nothing.

    Neighbours are made together, as a shard does; a whole shard shares more, so the time is an
    upper estimate.
    """
    shards = shard_count(plan)
    numbers = sorted({place * shards // _RUNS for place in range(_RUNS)})
    samples = [_part(shard) for shard in plan.shards(numbers)]
    for first in samples[:1]:
        list(make_shard(Shard(0, first.items[:1]), making))
    begin = time.process_time()
    sizes = [len(file.content) for one in samples for file in make_shard(one, making)]
    return Cost(
        scenarios=sum(len(one.items) for one in samples),
        cpu_s=time.process_time() - begin,
        written_bytes=sum(sizes),
        disk_bytes=sum(-(-size // _BLOCK) * _BLOCK for size in sizes),
        files=len(sizes),
    )


def _part(shard: Shard) -> Shard:
    start = (len(shard.items) - _LENGTH) // 2 if len(shard.items) > _LENGTH else 0
    return Shard(shard.number, shard.items[start : start + _LENGTH])
