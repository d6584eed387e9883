"""What comes on top of one stream on one card: more streams, weights in system RAM.

Each is fitted with the parameters of the single stream held fixed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import exp
from statistics import median

from msgspec import Struct

from advisor.calibration.dataset import Row, speculation_rows, speed_rows
from advisor.calibration.fit import Case, Prior, Term, Values, fit, predict
from advisor.calibration.runs import Run
from advisor.errors import KnowledgeError, Source
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


SITUATIONS = ("draft_model", "mtp", "mtp_small")


class Pairs(Struct, frozen=True):
    """The pairs of one situation."""

    factors: Sequence[float]
    """Speed with drafts over the plain speed, every pair."""
    cards: int
    """Cards behind the carried rows among them."""
    elsewhere: int
    """Pairs that are quoted with a source of their own."""

    @property
    def low(self) -> float:
        """The slowest."""
        return min(self.factors)

    @property
    def middle(self) -> float:
        """The median."""
        return median(self.factors)

    @property
    def high(self) -> float:
        """The fastest."""
        return max(self.factors)


def pairs_of_situations() -> Mapping[str, Pairs]:
    """Read the pairs of every situation.

    Raises:
        KnowledgeError: A line names a row that is not carried, or nothing with a source.
    """
    rows = {row["id"]: row for row in speed_rows()}
    found: dict[str, list[tuple[float, str]]] = {name: [] for name in SITUATIONS}
    for number, line in enumerate(speculation_rows(), start=2):
        at = Source("speculation.csv", number)
        if line["situation"] not in found:
            raise KnowledgeError(f"there is no situation '{line['situation']}'", source=at)
        plain, card = _speed(line, "plain", rows, at)
        drafting, _ = _speed(line, "drafting", rows, at)
        found[line["situation"]].append((drafting / plain, card))
    return {name: _pairs(listed) for name, listed in found.items() if listed}


def _pairs(listed: Sequence[tuple[float, str]]) -> Pairs:
    cards = {card for _, card in listed if card}
    elsewhere = sum(not card for _, card in listed)
    return Pairs([factor for factor, _ in listed], len(cards), elsewhere)


def _speed(line: Row, key: str, rows: Mapping[str, Row], at: Source) -> tuple[float, str]:
    """Give the tokens/s and the card: of a carried row, or as quoted with a source."""
    stated = line[key]
    row = rows.get(stated)
    if row is not None:
        return float(row["value"]), row["gpu"]
    try:
        speed = float(stated)
    except ValueError:
        raise KnowledgeError(f"there is no row '{stated}' in speed.csv.gz", source=at) from None
    if speed <= 0 or not line["source"]:
        raise KnowledgeError(f"'{key}' needs a speed above 0 and a source", source=at)
    return speed, ""
