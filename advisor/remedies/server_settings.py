"""Settings that leave a server more of a small card: no CUDA graphs, a larger share of it."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from advisor.remedies.option import Base, Option, Remedy, make_option, may_help
from advisor.runtimes import runtime_of
from advisor.runtimes.commands import can_tell
from advisor.scenario.figures import margin_of
from advisor.scenario.scenario import claimed_share

_SHARE = 0.95
"""The largest share that vLLM's own pages on memory propose."""


def without_graphs(base: Base, *_: object) -> Iterator[Option]:
    """The same without CUDA graphs, where memory is short."""
    scenario = base.scenario
    if scenario.eager or not runtime_of(scenario.framework).captures_graphs or not _is_short(base):
        return
    other = replace(scenario, eager=True)
    if can_tell(other, "eager") and may_help(base, other):
        yield make_option(base, GRAPHS, {"eager": True}, other)


def larger_share(base: Base, *_: object) -> Iterator[Option]:
    """The same with more of the card, where its profiling run is inside the share.

    SGLang keeps what it computes with outside, and nobody has measured how little that may be.
    """
    scenario = base.scenario
    runtime, share = runtime_of(scenario.framework), claimed_share(scenario)
    own = base.request.gpu_memory_utilization is None and not (
        scenario.gpu and scenario.gpu.unified_memory
    )
    if not own or share is None or not runtime.context_outside_share or not _is_short(base):
        return
    other = replace(scenario, gpu_memory_utilization=_SHARE)
    if share < _SHARE and may_help(base, other):
        yield make_option(base, SHARE, {"gpu_memory_utilization": _SHARE}, other)


def _is_short(base: Base) -> bool:
    return not base.fits or margin_of(base.memory, base.knowledge.policy) == "thin"


GRAPHS = Remedy("without-graphs", frozenset({"eager"}), "setting", without_graphs)
SHARE = Remedy("larger-share", frozenset({"gpu_memory_utilization"}), "setting", larger_share)
