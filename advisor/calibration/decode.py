"""Decoding in the llama.cpp family, one card, one stream, everything on the card.

time = overhead x backend x architecture x layers
     + expert and recurrent overheads x backend x layers that have them
     + weights / (bandwidth x base x backend x architecture x pair x format)
     + cache / (bandwidth x base x backend x architecture x pair x cache x backend)
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from math import exp, log, sqrt
from operator import attrgetter
from statistics import median

from msgspec import Struct

from advisor.calibration.fit import Case, Prior, Priors, Term, Values, fit, predict
from advisor.calibration.runs import Run
from advisor.estimator.speed_rates import stored_bits
from advisor.estimator.speed_step import layers_of

_Z_80 = 1.2816
"""Normal quantile of an 80 % interval."""

_FAR = 3.0
"""A source this many standard deviations off counts half: weights in system RAM, a wrong label."""


class Spreads(Struct, frozen=True):
    """Standard deviations of natural logarithms."""

    cards: float
    """Between cards of one architecture."""
    sources: float
    """Between sources on one card."""
    configurations: float
    """Between models and formats on one machine."""


class Residual(Struct, frozen=True):
    """One configuration's measured speed over the model's without card factor, logarithm."""

    source: str
    log_ratio: float


class Offset(Struct, frozen=True):
    """A factor on the model's speed, with the 80 % interval of the factor itself."""

    factor: float
    low: float
    high: float
    configurations: int
    sources: int


def card_offset(configurations: Iterable[Residual], spreads: Spreads) -> Offset:
    """Estimate the factor of one card from its configurations.

    Args:
        configurations: One residual per configuration and source.
        spreads: What the calibration found to vary.

    Returns:
        The shrunk factor; 1 without configurations.
    """
    rows = sorted(configurations, key=attrgetter("source"))
    groups = [list(group) for _, group in groupby(rows, key=attrgetter("source"))]
    precision, pulled = 1 / spreads.cards**2, 0.0
    usual = sqrt(spreads.cards**2 + spreads.sources**2 + spreads.configurations**2)
    for group in groups:
        middle = median(row.log_ratio for row in group)
        weight = 1 / (spreads.sources**2 + spreads.configurations**2 / len(group))
        weight /= 1 + (middle / (_FAR * usual)) ** 2
        precision += weight
        pulled += weight * middle
    log_factor, spread = pulled / precision, _Z_80 * sqrt(1 / precision)
    return Offset(
        factor=exp(log_factor),
        low=exp(log_factor - spread),
        high=exp(log_factor + spread),
        configurations=len(rows),
        sources=len(groups),
    )


_MS_PER_LAYER = 1e-3 / 32
priors = Priors(
    {
        "efficiency": Prior(0.75, 0.3),
        "overhead": Prior(1.5, 0.7),
        "expert": Prior(1.0, 0.7),
        "recurrent": Prior(0.5, 0.7),
        "cache": Prior(0.8, 0.5),
        "efficiency of backend": Prior(1, 0.15),
        "efficiency of architecture": Prior(1, 0.2),
        "efficiency of pair": Prior(1, 0.15),
        "efficiency of format": Prior(1, 0.15),
        "overhead of backend": Prior(1, 0.5),
        "overhead of architecture": Prior(1, 0.3),
        "expert of backend": Prior(1, 0.5),
        "recurrent of backend": Prior(1, 0.4),
        "cache of backend": Prior(1, 0.4),
    }
)
"""Base figures loosely around what any card does; factors around 1, their parent."""
_LEAST_SPREAD, _MOST_SPREAD = 0.03, 0.2
_HALF, _HALF_WITHIN = 0.5, 0.6745
_MOST, _MOST_WITHIN = 0.8, 1.2816
"""Half of a normal distribution lies within 0.67 standard deviations, four fifths within 1.28."""
_MANY = 3

GroupOf = Callable[[str], str | None]


def is_single(run: Run) -> bool:
    """Say whether a run belongs to this fit."""
    scenario = run.scenario
    return (
        run.metric == "decode"
        and run.family
        and scenario.gpus == scenario.batch == 1
        and not run.split
        and bool(run.architecture or scenario.gpu)
    )


class DecodeModel(Struct, frozen=True):
    """The fitted parameters with the cards' own factors."""

    values: Values
    offsets: Mapping[tuple[str, str], Offset]
    group_of: GroupOf

    def seconds(self, run: Run) -> float:
        """Predict one step."""
        plain = predict(terms(run, self.group_of), self.values, priors)
        offset = self.offsets.get(run.card)
        return plain / offset.factor if offset else plain


def terms(run: Run, group_of: GroupOf) -> tuple[Term, ...]:
    """Write one step of a run as a sum of products: what its card reads and launches."""
    scenario, reads = run.scenario, run.reads
    backend, architecture = scenario.backend, run.architecture
    assert scenario.gpu
    assert scenario.gpu.bandwidth_bytes_s
    streams = scenario.batch
    at_once = scenario.gpus if run.tensor else 1
    speed = 1 / (scenario.gpu.bandwidth_bytes_s * at_once)
    layers = layers_of(scenario.model)
    reach = [("efficiency", -1.0), (f"efficiency of backend:{backend}", -1.0)]
    wait = [("overhead", 1.0), (f"overhead of backend:{backend}", 1.0)]
    if architecture:
        reach.append((f"efficiency of architecture:{architecture}", -1.0))
        reach.append((f"efficiency of pair:{architecture}/{backend}", -1.0))
        wait.append((f"overhead of architecture:{architecture}", 1.0))
    group = group_of(scenario.precision.name)
    packed = [*reach, (f"efficiency of format:{group}", -1.0)] if group else reach
    cached = [*reach, ("cache", -1.0), (f"cache of backend:{backend}", -1.0)]
    weights = reads.gpu_bytes + reads.touched(streams) * reads.gpu_expert_bytes
    found = [
        Term(_MS_PER_LAYER * layers.all, tuple(wait)),
        Term(weights * speed, tuple(packed)),
        Term(streams * reads.gpu_cache_bytes * speed, tuple(cached)),
    ]
    for kind, count in (("expert", layers.experts), ("recurrent", layers.recurrent)):
        if count:
            powers = ((kind, 1.0), (f"{kind} of backend:{backend}", 1.0))
            found.append(Term(_MS_PER_LAYER * count, powers))
    return tuple(found)


def cases_of(runs: Sequence[Run], group_of: GroupOf) -> list[Case]:
    """Weigh every card and backend by the root of its runs."""
    counts = Counter(run.card for run in runs)
    return [Case(terms(run, group_of), 1 / run.tok_s, counts[run.card] ** -0.5) for run in runs]


def fit_decode(
    runs: Sequence[Run],
    group_of: GroupOf,
    *,
    start: Values | None = None,
) -> DecodeModel:
    """Fit the factors, then every card's own.

    Args:
        runs: Runs for which ``is_single`` holds.
        group_of: Group of formats that a format belongs to.
        start: Values to start from.
    """
    values = fit(cases_of(runs, group_of), priors, start=start, most_steps=8 if start else 40)
    found = residuals_of(runs, values, group_of)
    spreads = spreads_of(found)
    offsets = {card: card_offset(rows, spreads) for card, rows in found.items()}
    return DecodeModel(values, offsets, group_of)


def residuals_of(
    runs: Iterable[Run], values: Values, group_of: GroupOf
) -> dict[tuple[str, str], list[Residual]]:
    """Give measured over modelled speed by card and backend, without card factors."""
    found: dict[tuple[str, str], list[Residual]] = defaultdict(list)
    for run in runs:
        ratio = log(run.tok_s * predict(terms(run, group_of), values, priors))
        found[run.card].append(Residual(run.source, ratio))
    return dict(sorted(found.items()))


def spreads_of(residuals: Mapping[tuple[str, str], Sequence[Residual]]) -> Spreads:
    """Estimate what varies between configurations, sources and cards, robustly."""
    within, between, middles = [], [], []
    for rows in residuals.values():
        sources: dict[str, list[float]] = defaultdict(list)
        for row in rows:
            sources[row.source].append(row.log_ratio)
        for found in sources.values():
            if len(found) >= _MANY:
                within += [abs(ratio - median(found)) for ratio in found]
        centres = [median(found) for found in sources.values()]
        middles.append(median(centres))
        if len(centres) > 1:
            between += [abs(centre - median(centres)) for centre in centres]
    return Spreads(
        _deviation(list(map(abs, middles)), _MOST, _MOST_WITHIN),
        _deviation(between, _HALF, _HALF_WITHIN),
        _deviation(within, _HALF, _HALF_WITHIN),
    )


def _deviation(distances: Sequence[float], share: float, within: float) -> float:
    """Estimate a standard deviation from the distance that a share of them keep.

    Half for what single mislabelled rows spoil; more for cards, whose tails are real.
    """
    found = sorted(distances)
    if not found:
        return _LEAST_SPREAD
    spread = found[min(int(share * len(found)), len(found) - 1)] / within
    return min(max(spread, _LEAST_SPREAD), _MOST_SPREAD)


_ENGINE_MS_PER_LAYER = 1e-3 / 32
_EAGER_MS = 25.0
engine_priors = Priors(
    {
        "efficiency": Prior(0.7, 0.25),
        "bits": Prior(1, 0.2),
        "overhead": Prior(3.5, 0.7),
        "eager overhead": Prior(_EAGER_MS, 0.5),
        "family": Prior(1, 0.5),
        "expert": Prior(2.0, 0.7),
        "cache": Prior(0.6, 0.7),
        "card": Prior(1, 0.12),
    }
)
_LEAST_RUNS = 4


def is_engine_run(run: Run) -> bool:
    """Say whether a run belongs to this fit."""
    scenario = run.scenario
    one = scenario.gpus == scenario.batch == 1
    return run.metric == "decode" and not run.family and one and not run.split


class EngineModel(Struct, frozen=True):
    """The fitted parameters of all engines."""

    values: Values
    cards: Mapping[str, int]
    """Measured cards by engine."""

    def seconds(self, run: Run, cache_share: float = 1.0) -> float:
        """Predict one step; further streams read their caches at that share of the bandwidth."""
        *first, cache = engine_terms(run)
        own = predict([cache], self.values, engine_priors)
        further = cache.value / cache_share
        rest = (run.scenario.batch - 1) * min(own, further)
        return predict(first, self.values, engine_priors) + own + rest


def fit_engines(runs: Sequence[Run], *, start: Values | None = None) -> EngineModel:
    """Fit all engines that have enough runs."""
    counts = Counter((run.scenario.framework.name, run.card) for run in runs)
    cases = [
        Case(
            engine_terms(run), 1 / run.tok_s, counts[run.scenario.framework.name, run.card] ** -0.5
        )
        for run in runs
    ]
    values = fit(cases, engine_priors, width=0.12, start=start, most_steps=8 if start else 40)
    cards: dict[str, set[str]] = defaultdict(set)
    for run in runs:
        cards[run.scenario.framework.name].add(run.card[0])
    many = Counter(run.scenario.framework.name for run in runs)
    return EngineModel(
        values,
        {name: len(seen) for name, seen in sorted(cards.items()) if many[name] >= _LEAST_RUNS},
    )


def engine_terms(run: Run) -> tuple[Term, ...]:
    """Write one step of a run as a sum of products, the cache of its first stream last."""
    scenario, reads = run.scenario, run.reads
    engine, bits = scenario.framework.name, stored_bits(scenario.precision)
    assert scenario.gpu
    assert scenario.gpu.bandwidth_bytes_s
    at_once = scenario.gpus if run.tensor else 1
    speed = 1 / (scenario.gpu.bandwidth_bytes_s * at_once)
    layers = layers_of(scenario.model)
    reach = ((f"efficiency:{engine}", -1.0), (f"bits:{engine} {bits}", -1.0))
    eager = run.overlapped
    wait: tuple[tuple[str, float], ...] = ((f"{'eager ' if eager else ''}overhead:{engine}", 1.0),)
    if eager:
        wait = (*wait, (f"family:{engine} {scenario.precision.family}_{bits}", 1.0))
    weights = reads.gpu_bytes + reads.touched(scenario.batch) * reads.gpu_expert_bytes
    found = [Term(_ENGINE_MS_PER_LAYER * layers.all, wait)]
    if not eager or weights * speed > _EAGER_MS * _ENGINE_MS_PER_LAYER * layers.all:
        stream = Term(weights * speed, reach)
        found = [stream] if eager else [*found, stream]
    if layers.experts:
        found.append(Term(_ENGINE_MS_PER_LAYER * layers.experts, ((f"expert:{engine}", 1.0),)))
    found.append(Term(reads.gpu_cache_bytes * speed, (*reach, (f"cache:{engine}", -1.0))))
    own = (f"card:{engine} {scenario.gpu.name}", -1.0)
    return tuple(Term(term.value, (*term.powers, own)) for term in found)
