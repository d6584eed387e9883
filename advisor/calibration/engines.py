"""Decoding in engines outside the llama.cpp family, one card, one stream.

    time = overhead x layers + weights / (bandwidth x efficiency) + cache / (bandwidth x ...)

Eager engines prepare a layer while the card reads: only the longer of the first two counts.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from msgspec import Struct

from advisor.calibration.fit import Case, Prior, Priors, Term, Values, fit, predict
from advisor.calibration.runs import Run
from advisor.estimator.speed_rates import stored_bits
from advisor.estimator.speed_step import layers_of

_MS_PER_LAYER = 1e-3 / 32
_EAGER_MS = 25.0
priors = Priors(
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
        *first, cache = terms(run)
        own = predict([cache], self.values, priors)
        further = cache.value / cache_share
        rest = (run.scenario.batch - 1) * min(own, further)
        return predict(first, self.values, priors) + own + rest


def fit_engines(runs: Sequence[Run], *, start: Values | None = None) -> EngineModel:
    """Fit all engines that have enough runs."""
    counts = Counter((run.scenario.framework.name, run.card) for run in runs)
    cases = [
        Case(terms(run), 1 / run.tok_s, counts[run.scenario.framework.name, run.card] ** -0.5)
        for run in runs
    ]
    values = fit(cases, priors, width=0.12, start=start, most_steps=8 if start else 40)
    cards: dict[str, set[str]] = defaultdict(set)
    for run in runs:
        cards[run.scenario.framework.name].add(run.card[0])
    many = Counter(run.scenario.framework.name for run in runs)
    return EngineModel(
        values,
        {name: len(seen) for name, seen in sorted(cards.items()) if many[name] >= _LEAST_RUNS},
    )


def terms(run: Run) -> tuple[Term, ...]:
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
    found = [Term(_MS_PER_LAYER * layers.all, wait)]
    if not eager or weights * speed > _EAGER_MS * _MS_PER_LAYER * layers.all:
        stream = Term(weights * speed, reach)
        found = [stream] if eager else [*found, stream]
    if layers.experts:
        found.append(Term(_MS_PER_LAYER * layers.experts, ((f"expert:{engine}", 1.0),)))
    found.append(Term(reads.gpu_cache_bytes * speed, (*reach, (f"cache:{engine}", -1.0))))
    own = (f"card:{engine} {scenario.gpu.name}", -1.0)
    return tuple(Term(term.value, (*term.powers, own)) for term in found)
