"""Reading prompts in the llama.cpp family, one card, everything on it.

time = 2 x tokens x (dense + experts / share) / (size x share of unit, architecture and card)
     + attention / (the same x share) + launches
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import ceil, exp, log

from msgspec import Struct

from advisor.calibration.fit import Case, Prior, Priors, Term, Values, fit, predict
from advisor.calibration.runs import Run
from advisor.estimator.speed_prefill import as_strong, card_size, generation_of, work_of
from advisor.knowledge.types import Gpu

_TFLOPS = 1e12
_MS_PER_LAYER = 1e-3 / 32
_UNKNOWN_SIZE_TFLOPS = 100.0
priors = Priors(
    {
        "share": Prior(0.45, 0.3),
        "share of unit": Prior(1, 0.3),
        "share of architecture": Prior(1, 0.25),
        "share of card": Prior(1, 0.25, heavy=True),
        "sixteen bit": Prior(1, 0.2),
        "experts": Prior(0.3, 0.5),
        "experts of backend": Prior(1, 0.4),
        "attention": Prior(0.3, 0.7),
        "attention of backend": Prior(1, 0.5),
        "launch": Prior(2, 0.7),
        "launch of backend": Prior(1, 0.4),
    }
)
_SIXTEEN_BITS = frozenset({"F16", "BF16", "FP16"})


def is_prompt(run: Run) -> bool:
    """Say whether a run belongs to this fit."""
    scenario = run.scenario
    one = scenario.gpus == scenario.batch == 1
    return run.metric == "prefill" and run.family and one and not run.split


class PrefillModel(Struct, frozen=True):
    """The fitted parameters."""

    values: Values
    falls: float
    known: frozenset[tuple[str, str]]
    """Cards and backends among the fitted runs."""

    def seconds(self, run: Run) -> float:
        """Predict the time of a whole prompt."""
        return predict(terms(run, self.falls), self.values, priors)


def fit_prefill(runs: Sequence[Run], falls: float, *, start: Values | None = None) -> PrefillModel:
    """Fit shares of the peak, by unit, architecture and card."""
    counts = Counter(run.card for run in runs)
    cases = [
        Case(terms(run, falls), run.prompt_tokens / run.tok_s, counts[run.card] ** -0.5)
        for run in runs
    ]
    values = fit(cases, priors, width=0.12, start=start, most_steps=8 if start else 40)
    return PrefillModel(values, falls, frozenset(counts))


def terms(run: Run, falls: float) -> tuple[Term, ...]:
    """Write the time of a prompt as a sum of products."""
    scenario, work = run.scenario, work_of(run.scenario.model)
    backend, tokens = scenario.backend, run.prompt_tokens
    assert scenario.gpu
    unit, size = sized(scenario.gpu, run.architecture, falls)
    reach = [
        ("share", -1.0),
        (f"share of unit:{backend} {unit}", -1.0),
        (f"share of architecture:{generation_of(run.architecture)}/{backend}", -1.0),
        (f"share of card:{scenario.gpu.name}/{backend}", -1.0),
    ]
    wide = [(f"sixteen bit:{backend}", -1.0)] if scenario.precision.name in _SIXTEEN_BITS else []
    per_s = 1 / (size * _TFLOPS)
    found = [Term(2 * tokens * work.dense * per_s, (*reach, *wide))]
    if work.experts:
        powers = [("experts", -1.0), (f"experts of backend:{backend}", -1.0)]
        found.append(Term(2 * tokens * work.experts * per_s, (*reach, *wide, *powers)))
    attention = work.attention(tokens, scenario.depth_tokens)
    powers = [("attention", -1.0), (f"attention of backend:{backend}", -1.0)]
    found.append(Term(attention * per_s, (*reach, *powers)))
    passes = ceil(tokens / scenario.ubatch) * work.layers
    launch = (("launch", 1.0), (f"launch of backend:{backend}", 1.0))
    found.append(Term(_MS_PER_LAYER * passes, launch))
    return tuple(found)


def sized(gpu: Gpu, architecture: str, falls: float) -> tuple[str, float]:
    """Give the unit and size that a card's share counts on; unknown sizes stand for themselves.

    The FP16 peak of Pascal cards is 1/64 of FP32 and not what computes there.
    """
    unit, size = card_size(gpu, falls)
    if size is None:
        return f"none {gpu.name}", _UNKNOWN_SIZE_TFLOPS
    return (
        (f"{unit} {architecture}", 64 * size) if architecture.startswith("Pascal") else (unit, size)
    )


def unit_of(run: Run, falls: float) -> tuple[str, str]:
    """Name the backend and the unit that a run's card counts in."""
    assert run.scenario.gpu
    return run.card[1], sized(run.scenario.gpu, run.architecture, falls)[0]


def card_tflops(model: PrefillModel, runs: Sequence[Run]) -> dict[tuple[str, str], float]:
    """Give the TFLOPS that every measured card reaches with quantised weights.

    Where a card that is behind in no figure came out slower, both take their mean: what told
    them apart is the age of the measurements, not the cards.
    """
    found: dict[tuple[str, str], float] = {}
    gpus: dict[str, Gpu] = {}
    for run in runs:
        gpu = run.scenario.gpu
        assert gpu
        gpus[gpu.name] = gpu
        found[run.card] = _share(model, gpu, run.architecture, run.card[1])
    return _pooled(found, gpus)


def _share(model: PrefillModel, gpu: Gpu, architecture: str, backend: str) -> float:
    """Give the TFLOPS that a measured card reaches."""
    unit, size = sized(gpu, architecture, model.falls)
    names = (
        "share",
        f"share of unit:{backend} {unit}",
        f"share of architecture:{generation_of(architecture)}/{backend}",
        f"share of card:{gpu.name}/{backend}",
    )
    return size * exp(sum(log(priors.factor(model.values, name)) for name in names))


def _pooled(
    found: dict[tuple[str, str], float], gpus: Mapping[str, Gpu]
) -> dict[tuple[str, str], float]:
    pooled = dict(sorted(found.items()))
    for _ in pooled:
        pairs = [
            (strong, weak)
            for strong in pooled
            for weak in pooled
            if strong[1] == weak[1]
            and gpus[strong[0]].architecture == gpus[weak[0]].architecture
            and strong != weak
            and as_strong(gpus[strong[0]], gpus[weak[0]])
            and pooled[strong] < pooled[weak] * (1 - 1e-9)
        ]
        if not pairs:
            break
        for strong, weak in pairs:
            pooled[strong] = pooled[weak] = (pooled[strong] * pooled[weak]) ** 0.5
    return pooled
