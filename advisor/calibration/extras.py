"""What comes on top of one stream on one card: more streams, weights in system RAM.

Each is fitted with the parameters of the single stream held fixed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import exp

from msgspec import Struct

from advisor.calibration.fit import Case, Prior, Term, Values, fit, predict
from advisor.calibration.runs import Run
from advisor.estimate.speed_prefill import Reached, token_seconds, work_of

_PRIORS = {
    "arithmetic": Prior(0.5, 0.7),
    "exchange": Prior(20e-6, 1.0),
    "dense": Prior(0.65, 0.2),
    "dense beside experts": Prior(0.5, 0.3),
    "experts": Prior(0.55, 0.3),
    "hand over": Prior(100e-6, 0.7),
}
_EXCHANGE_WIDTH = 5120

Seconds = Callable[[Run], float]
"""The step that a run would take without what is fitted here."""
ReachedOf = Callable[[Run], Reached | None]


def priors(name: str) -> Prior:
    """Give the prior of a parameter named ``kind`` or ``kind:member``."""
    return _PRIORS[name.partition(":")[0]]


def factor(values: Values, name: str) -> float:
    """Give a parameter, its prior where it was not fitted."""
    known = values.get(name)
    return priors(name).value if known is None else exp(known)


class Extra(Struct, frozen=True):
    """Fitted parameters over fixed ones."""

    values: Values
    terms: Callable[[Run], tuple[Term, ...] | None]

    def seconds(self, run: Run) -> float | None:
        """Predict one step of the whole batch; None where a figure is missing."""
        found = self.terms(run)
        return None if found is None else predict(found, self.values, priors)


def fit_extra(
    runs: Sequence[Run],
    terms: Callable[[Run], tuple[Term, ...] | None],
    *,
    start: Values | None = None,
) -> Extra:
    """Fit the parameters of the terms."""
    cases = []
    for run in runs:
        found = terms(run)
        if found is not None:
            cases.append(Case(found, run.scenario.batch / run.tok_s))
    return Extra(fit(cases, priors, width=0.12, start=start), terms)


def batch_terms(alone: Seconds, reached_of: ReachedOf) -> Callable[[Run], tuple[Term, ...] | None]:
    """Write a step of several streams: reads, and the arithmetic and exchange of each further one.

    Args:
        alone: Overheads and reads of the whole batch.
        reached_of: Arithmetic of one card.
    """

    def terms(run: Run) -> tuple[Term, ...] | None:
        scenario, reached = run.scenario, reached_of(run)
        if reached is None:
            return None
        engine = "family" if run.family else "other"
        more, cards = scenario.batch - 1, scenario.gpus if run.tensor else 1
        one = token_seconds(work_of(scenario.model), reached) / cards
        found = [Term(alone(run), ()), Term(more * one, ((f"arithmetic:{engine}", -1.0),))]
        if cards > 1:
            shape = scenario.model.shape
            layers = more * shape.layers * shape.hidden / _EXCHANGE_WIDTH
            found.append(Term(layers, ((f"exchange:{cards}", 1.0),)))
        return tuple(found)

    return terms


def offload_terms(alone: Seconds) -> Callable[[Run], tuple[Term, ...] | None]:
    """Write a step with weights in system RAM: the card's part, then what lies in RAM."""

    def terms(run: Run) -> tuple[Term, ...] | None:
        bandwidth = run.scenario.ram_bandwidth_bytes_s
        if bandwidth is None:
            return None
        reads = run.reads
        dense = (reads.host_bytes + reads.host_cache_bytes) / bandwidth
        experts = reads.touched(1) * reads.host_expert_bytes / bandwidth
        name = "dense beside experts" if run.moe else "dense"
        return (
            Term(alone(run), ()),
            Term(dense, ((name, -1.0),)),
            Term(experts, (("experts", -1.0),)),
            Term(float(reads.host_expert_layers), (("hand over", 1.0),)),
        )

    return terms
