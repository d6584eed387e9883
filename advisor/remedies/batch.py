"""Fewer sequences at a time, or more of them."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from advisor.estimator.limits import largest_batch
from advisor.knowledge.types import Knowledge
from advisor.remedies.option import Base, Option, Remedy, make_option
from advisor.remedies.search import Bounds, Degree
from advisor.runtimes import runtime_of
from advisor.runtimes.commands import can_tell
from advisor.scenario.figures import Limits
from advisor.scenario.scenario import Scenario

_BATCHES = (2, 4, 8, 16, 32, 64, 128, 256)


def _fewer(base: Base, limits: Limits, _: object) -> Iterator[Option]:
    """The largest batch that fits, where the request's does not."""
    most = limits.max_batch
    if most is not None and most < base.scenario.batch and not _waits(base.scenario):
        most = largest_batch(base.scenario, base.knowledge, most, roomy=True) or most
        yield make_option(base, SMALLER, {"batch": most}, _with(base, base.scenario, most))


def _more(base: Base, limits: Limits, _: object) -> Iterator[Option]:
    """Larger batches, where the request fits."""
    scenario, most = base.scenario, limits.max_batch
    if most is None or not base.fits or scenario.model.modality not in {"text", "vision"}:
        return
    for batch in _BATCHES:
        if scenario.batch < batch <= most and can_tell(replace(scenario, batch=batch), "batch"):
            yield make_option(base, LARGER, {"batch": batch}, _with(base, scenario, batch))


def _waits(scenario: Scenario) -> bool:
    """Whether the batch is a ceiling, beyond which sequences wait."""
    return runtime_of(scenario.framework).claims_memory


def _with(base: Base, scenario: Scenario, batch: int) -> Scenario:
    rows = base.request.logits_rows or batch
    return replace(scenario, batch=batch, logits_rows=rows, slots=batch)


def _exact(scenario: Scenario, limits: Bounds, knowledge: Knowledge) -> int | None:
    batch = largest_batch(scenario, knowledge, scenario.batch, roomy=limits.roomy)
    fewer = batch is not None and limits.batch(scenario) <= batch < scenario.batch
    return batch if fewer else None


SMALLER = Remedy("shrink-batch", frozenset({"batch"}), "setting", _fewer)
LARGER = Remedy("grow-batch", frozenset({"batch"}), "setting", _more)
DEGREE = Degree(
    "batch",
    applies=lambda scenario, limits: (
        limits.batch(scenario) < scenario.batch and not _waits(scenario)
    ),
    extreme=lambda scenario, limits: limits.batch(scenario),
    exact=_exact,
    put=_with,
)
