"""Decoding in the llama.cpp family, one card, one stream, everything on the card.

time = (overhead x backend x layers
       + expert and recurrent overheads x backend x layers that have them
         (experts x builds before today's kernels of theirs))
         x line x architecture x program
     + weights / (bandwidth x base x backend x line x architecture x pair x format x program)
     + cache / (bandwidth x base x backend x line x architecture x pair x program x cache x backend
       x no flash attention x latent vectors)
     + unpacking a cache of few bits: (16-bit bytes of it as the cache) x backend
       or values x heads that read them / shading units x backend x type
     + what a program that serves does for each token

all of it over the factors of the card and of the machine. Both are fitted with the rest, so that a
card far from its architecture, or a machine far from others with its card, says little of them; a
machine's is not told.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from math import exp

from msgspec import Struct

from advisor.estimator.calibration.fit import (
    Case,
    GroupOf,
    Prior,
    Priors,
    Term,
    Values,
    fit,
    predict,
    weight_of,
)
from advisor.estimator.calibration.runs import Run
from advisor.estimator.speed_rates import SIXTEEN_BITS, stored_bits
from advisor.estimator.speed_step import layers_of

_MS_PER_LAYER = 1e-3 / 32
priors = Priors(
    {
        "efficiency": Prior(0.75, 0.3),
        "overhead": Prior(1.5, 0.7),
        "expert": Prior(1.0, 0.7),
        "recurrent": Prior(0.5, 0.7),
        "serving": Prior(0.3e-3, 0.7),
        "cache": Prior(0.8, 0.5),
        "efficiency of backend": Prior(1, 0.15),
        "efficiency of architecture": Prior(1, 0.15, heavy=True),
        "efficiency of line": Prior(1, 0.15),
        "efficiency of pair": Prior(1, 0.15),
        "efficiency of format": Prior(1, 0.15),
        "efficiency of program": Prior(1, 0.1),
        "efficiency of sixteen bit experts": Prior(1, 0.5),
        "overhead of backend": Prior(1, 0.5),
        "overhead of architecture": Prior(1, 0.3),
        "overhead of line": Prior(1, 0.3),
        "overhead of program": Prior(1, 0.3),
        "expert of backend": Prior(1, 0.2),
        "expert of older": Prior(1, 0.5),
        "recurrent of backend": Prior(1, 0.4),
        "cache of backend": Prior(1, 0.4),
        "cache of program": Prior(1, 0.3),
        "cache of plain": Prior(1, 0.5),
        "unpacked": Prior(1, 0.5),
        "unpacked of backend": Prior(1, 0.4),
        "unpacked by head": Prior(10e-9, 0.7),
        "unpacked by head of backend": Prior(1, 0.15),
        "unpacked by head of architecture": Prior(1, 0.2, heavy=True),
        "cache type": Prior(1, 0.2),
        "latent cache": Prior(1, 0.5),
        "latent cache of backend": Prior(1, 0.3),
        "card": Prior(1, 0.04, heavy=True),
        "machine": Prior(1, 0.02, heavy=True),
    }
)
"""Base figures loosely around what any card does; factors around 1, their parent."""
_MOST_APART = 0.3
"""A card further than this from its architecture (logarithm) spilled or is mislabelled where fewer
runs than ``_LEAST_RUNS`` say so: nothing is told of it, and this at most where more do."""
_LEAST_RUNS = 4


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
    """The fitted parameters, the cards' own factors among them."""

    values: Values
    """As they are told."""
    fitted: Values
    """From which a refit starts."""
    group_of: GroupOf
    known: frozenset[tuple[str, str]]
    """Cards and backends among the fitted runs."""

    @property
    def own(self) -> Mapping[tuple[str, str], float]:
        """The factors of cards of which one is told."""
        found = {card: self.values[f"card:{card[0]}/{card[1]}"] for card in sorted(self.known)}
        return {card: exp(value) for card, value in found.items() if value}

    def seconds(self, run: Run) -> float:
        """Predict one step."""
        return predict(terms(run, self.group_of), self.values, priors)


def terms(run: Run, group_of: GroupOf) -> tuple[Term, ...]:
    """Write one step of a run as a sum of products: what its card reads and launches."""
    scenario, reads = run.scenario, run.reads
    backend, streams = scenario.backend, scenario.batch
    assert scenario.gpu
    assert scenario.gpu.bandwidth_bytes_s
    speed = 1 / (scenario.gpu.bandwidth_bytes_s * (scenario.gpus if run.tensor else 1))
    layers = layers_of(scenario.model)
    reach, wait = _shared(run)
    names = [run.outside, scenario.precision.name]
    dense, experts = [_packed(reach, group_of(name)) for name in names]
    wide = scenario.precision.name in SIXTEEN_BITS
    apart = [(f"efficiency of sixteen bit experts:{backend}", -1.0)] if wide else []
    cached = [*reach, ("cache", -1.0), (f"cache of backend:{backend}", -1.0)]
    cached += [(f"cache of program:{run.program}", -1.0)] if run.program else []
    cached += [(f"cache of plain:{backend}", -1.0)] if run.plain else []
    if scenario.model.shape.mla:
        cached += [("latent cache", -1.0), (f"latent cache of backend:{backend}", -1.0)]
    by_head = [*_launch("unpacked by head", backend)]
    by_head.append((f"unpacked by head of architecture:{run.architecture}", 1.0))
    by_head.append((f"cache type:{scenario.kv_cache_k.name}", 1.0))
    picked = _launch("expert", backend) + wait
    picked += [(f"expert of older:{backend}", 1.0)] if run.older else []
    found = [
        (_MS_PER_LAYER * layers.all, _launch("overhead", backend) + wait),
        (reads.gpu_bytes * speed, dense),
        (reads.touched(streams) * reads.gpu_expert_bytes * speed, [*experts, *apart]),
        (streams * reads.gpu_cache_bytes * speed, cached),
        (streams * reads.gpu_unpacked_bytes * speed, [*cached, *_launch("unpacked", backend)]),
        (streams * reads.gpu_by_head, by_head),
        (_MS_PER_LAYER * layers.experts, picked),
        (_MS_PER_LAYER * layers.recurrent, _launch("recurrent", backend) + wait),
        (float(run.served), [("serving", 1.0)]),
    ]
    card = f"{scenario.gpu.name}/{backend}"
    own = ((f"card:{card}", -1.0), (f"machine:{card}/{run.source}", -1.0))
    return tuple(Term(value, (*powers, *own)) for value, powers in found if value)


_Powers = list[tuple[str, float]]


def _shared(run: Run) -> tuple[_Powers, _Powers]:
    """Give what reading takes, and what every launch takes besides its kind and backend."""
    backend, architecture = run.scenario.backend, run.architecture
    reach = [("efficiency", -1.0), (f"efficiency of backend:{backend}", -1.0)]
    wait = [(f"overhead of program:{run.program}", 1.0)] if run.program else []
    if architecture:
        reach.append((f"efficiency of architecture:{architecture}", -1.0))
        reach.append((f"efficiency of pair:{architecture}/{backend}", -1.0))
        wait.append((f"overhead of architecture:{architecture}", 1.0))
    if run.line:
        reach.append((f"efficiency of line:{run.line}", -1.0))
        wait.append((f"overhead of line:{run.line}", 1.0))
    if run.program:
        reach.append((f"efficiency of program:{run.program}", -1.0))
    return reach, wait


def _packed(reach: _Powers, group: str | None) -> _Powers:
    return [*reach, (f"efficiency of format:{group}", -1.0)] if group else reach


def _launch(kind: str, backend: str | None) -> _Powers:
    return [(kind, 1.0), (f"{kind} of backend:{backend}", 1.0)]


def fit_decode(
    runs: Sequence[Run],
    group_of: GroupOf,
    *,
    start: Values | None = None,
) -> DecodeModel:
    """Fit the factors, every card's own among them.

    ``is_single`` holds of the runs; the fit begins with the values of ``start``.
    """
    counts = Counter(run.card for run in runs)
    cases = [Case(terms(run, group_of), 1 / run.tok_s, weight_of(counts[run.card])) for run in runs]
    values = fit(cases, priors, start=start, most_steps=6 if start else 40)
    own = {
        (name := f"card:{gpu}/{backend}"): _told(values[name], count)
        for (gpu, backend), count in counts.items()
    }
    told = {name: value for name, value in values.items() if not name.startswith("machine:")}
    return DecodeModel(told | own, values, group_of, frozenset(counts))


def _told(value: float, runs: int) -> float:
    """Give what is told of a card's own factor, a logarithm; 0 for nothing."""
    if abs(value) > _MOST_APART and runs < _LEAST_RUNS:
        return 0.0
    return max(-_MOST_APART, min(_MOST_APART, value))


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
        "limited": Prior(1, 0.3),
        "card": Prior(1, 0.12, heavy=True),
    }
)


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
    own = [(f"card:{engine} {scenario.gpu.name}", -1.0)]
    own += [("limited", -1.0)] if run.limited else []
    return tuple(Term(term.value, (*term.powers, *own)) for term in found)
