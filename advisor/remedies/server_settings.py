"""Settings that leave a server more of a card: no graphs, smaller steps, a larger share of it."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from advisor.remedies.option import Base, Option, Remedy, cards_hold, make_option, may_help
from advisor.runtimes import runtime_of
from advisor.runtimes.commands import can_tell
from advisor.scenario.figures import margin_of
from advisor.scenario.scenario import claimed_share

_SHARE = 0.95
"""The largest share that vLLM's own pages on memory propose."""
_STEPS = (4096, 2048)
"""Tokens of a prompt at once; SGLang keeps no less for smaller steps."""


def without_graphs(base: Base, *_: object) -> Iterator[Option]:
    """The same without CUDA graphs, where memory is short."""
    scenario = base.scenario
    if scenario.eager or not runtime_of(scenario.framework).captures_graphs or not _is_short(base):
        return
    other = replace(scenario, eager=True)
    if can_tell(other, "eager") and may_help(base, other):
        yield make_option(base, GRAPHS, {"eager": True}, other)


def smaller_steps(base: Base, *_: object) -> Iterator[Option]:
    """The same with prompts read in steps small enough, where memory is short."""
    runtime, told = runtime_of(base.scenario.framework), base.request.max_num_batched_tokens
    if told is not None or not runtime.captures_graphs or not _is_short(base):
        return
    own = runtime.tokens_at_once(base.scenario, base.knowledge.policy)
    others = [replace(base.scenario, max_num_batched_tokens=n) for n in _STEPS if n < own]
    roomy = (other for other in others if cards_hold(base, other, roomy=True))
    other = next(roomy, others[-1] if others else None)
    if other and may_help(base, other):
        yield make_option(
            base, STEPS, {"max_num_batched_tokens": other.max_num_batched_tokens}, other
        )


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


STEPS = Remedy("smaller-steps", frozenset({"max_num_batched_tokens"}), "setting", smaller_steps)
GRAPHS = Remedy("without-graphs", frozenset({"eager"}), "setting", without_graphs)
SHARE = Remedy("larger-share", frozenset({"gpu_memory_utilization"}), "setting", larger_share)
