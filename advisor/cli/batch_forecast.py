"""What ``advisor batch --dry-run`` prints."""

from __future__ import annotations

from collections.abc import Iterator

from advisor.bulk.batch.cost_sample import Cost
from advisor.bulk.batch.plan import Plan, shard_count
from advisor.cli.counts import counted

_MINUTE, _HOUR = 60, 3600
_MOST_REASONS = 12


def foretold(plan: Plan, cost: Cost, workers: int) -> Iterator[str]:
    """Say how much a plan is and what it will take, line by line."""
    shards = shard_count(plan)
    yield f"{counted(plan.scenarios, 'scenario')} in {counted(shards, 'shard')}"
    skipped = sum(plan.skipped.values())
    if skipped:
        yield f"{counted(skipped, 'combination')} skipped:"
        reasons = list(plan.skipped.items())
        yield from (f"  {count:,}  {why}" for why, count in reasons[:_MOST_REASONS])
        rest = reasons[_MOST_REASONS:]
        if rest:
            yield f"  {sum(count for _, count in rest):,}  for {len(rest)} other reasons"
    cpu_s, written, disk = cost.of(plan.scenarios)
    each = 1000 * cost.cpu_s / cost.scenarios
    measured = counted(cost.scenarios, "scenario")
    yield f"measured on {measured}: {each:.1f} ms of processor time each"
    plural = "" if workers == 1 else "s"
    yield f"expected time: {_time(cpu_s / workers)} with {workers} worker{plural}"
    yield f"expected size: {_size(written)}, about {_size(disk)} on the disk"


def _time(seconds: float) -> str:
    if seconds < _MINUTE:
        return f"{seconds:.0f} s" if seconds >= 1 else "under a second"
    if seconds < _HOUR:
        return f"{seconds / _MINUTE:.0f} min"
    return f"{seconds / _HOUR:.1f} h"


def _size(count_bytes: float) -> str:
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if count_bytes >= size:
            return f"{count_bytes / size:.1f} {unit}"
    return f"{count_bytes / 1e3:.0f} kB"
