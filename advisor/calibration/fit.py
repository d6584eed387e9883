"""Fitting sums of products: ``time = sum of value x product of parameters ** power``.

Every parameter is positive and has a prior in logarithms, so that what the data do not decide
stays at its parent's value. Residuals are logarithms of time; large ones lose weight (the loss
grows like the absolute value beyond ``width``). Gauss-Newton in plain Python: the tables are
small, and the same data give the same digits everywhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import ceil, exp, log, sqrt

from msgspec import Struct

from advisor.calibration.runs import Run
from advisor.estimator.speed_prefill import (
    as_strong,
    card_size,
    generation_of,
    lanes_bytes_s,
    work_of,
)
from advisor.knowledge.types import Gpu

Values = Mapping[str, float]
"""Logarithms of parameters."""
_MOST_STEP = 0.5
_DONE = 1e-4


class Term(Struct, frozen=True):
    """A part of the time: ``value`` seconds when every parameter is 1."""

    value: float
    powers: tuple[tuple[str, float], ...]


class Case(Struct, frozen=True):
    """One measured time and what it is made of."""

    terms: tuple[Term, ...]
    seconds: float
    weight: float = 1.0


class Prior(Struct, frozen=True):
    """Where a parameter stands without data, and how firmly."""

    value: float
    spread: float
    """Standard deviation of the logarithm."""
    heavy: bool = False
    """A few parameters of this kind may lie far out: cards that were mislabelled or spilled."""


class Priors(Struct, frozen=True):
    """The prior of every parameter, named ``kind`` or ``kind:member``, by kind."""

    of: Mapping[str, Prior]

    def __call__(self, name: str) -> Prior:
        """Give the prior of a parameter."""
        return self.of[name.partition(":")[0]]

    def factor(self, values: Values, name: str) -> float:
        """Give a parameter, its prior where it was not fitted."""
        known = values.get(name)
        return self(name).value if known is None else exp(known)


def predict(terms: Iterable[Term], values: Values, priors: Callable[[str], Prior]) -> float:
    """Add up the terms, seconds; a parameter that was not fitted stands at its prior."""
    total = 0.0
    for term in terms:
        exponent = 0.0
        for name, power in term.powers:
            known = values.get(name)
            exponent += power * (log(priors(name).value) if known is None else known)
        total += term.value * exp(exponent)
    return total


def fit(
    cases: Sequence[Case],
    priors: Callable[[str], Prior],
    *,
    width: float = 0.08,
    start: Values | None = None,
    most_steps: int = 40,
) -> dict[str, float]:
    """Find the parameters.

    Args:
        cases: Measured times; their weights are relative.
        priors: Gives the prior of a parameter by its name.
        width: Residual (logarithm) from which a case loses weight.
        start: Values to start from, for a refit on almost the same cases.
        most_steps: Gauss-Newton steps at most.

    Returns:
        Logarithms by name, for every parameter that occurs.
    """
    names = sorted({name for case in cases for term in case.terms for name, _ in term.powers})
    known = {name: priors(name) for name in names}
    middle = [log(known[name].value) for name in names]
    values = [
        start[name] if start and name in start else mean
        for name, mean in zip(names, middle, strict=True)
    ]
    places = {name: place for place, name in enumerate(names)}
    rows = [_Row.of(case, places) for case in cases]
    for _ in range(most_steps):
        matrix, right = _prior_part(values, middle, [known[name] for name in names])
        for row in rows:
            row.add(values, matrix, right, width)
        step = _solved(matrix, right)
        values = [
            v + max(-_MOST_STEP, min(_MOST_STEP, s)) for v, s in zip(values, step, strict=True)
        ]
        if max(map(abs, step), default=0.0) < _DONE:
            break
    return dict(zip(names, values, strict=True))


class _Row(Struct):
    """A case with parameter places instead of names."""

    terms: list[tuple[float, list[tuple[int, float]]]]
    target: float
    weight: float

    @classmethod
    def of(cls, case: Case, places: Mapping[str, int]) -> _Row:
        terms = [(t.value, [(places[n], p) for n, p in t.powers]) for t in case.terms]
        return cls(terms, log(case.seconds), case.weight)

    def add(
        self, values: Sequence[float], matrix: list[list[float]], right: list[float], width: float
    ) -> None:
        """Add the case to the normal equations at ``values``."""
        parts = [
            value * exp(sum(values[place] * power for place, power in powers))
            for value, powers in self.terms
        ]
        total = sum(parts)
        residual = self.target - log(total)
        slopes: dict[int, float] = {}
        for part, (_, powers) in zip(parts, self.terms, strict=True):
            share = part / total
            for place, power in powers:
                slopes[place] = slopes.get(place, 0.0) + share * power
        weight = self.weight / (sqrt(1 + (residual / width) ** 2) * width**2)
        items = sorted(slopes.items())
        for place, slope in items:
            scaled = weight * slope
            right[place] += scaled * residual
            line = matrix[place]
            for other, other_slope in items:
                line[other] += scaled * other_slope


def _prior_part(
    values: Sequence[float], middle: Sequence[float], priors: Sequence[Prior]
) -> tuple[list[list[float]], list[float]]:
    size = len(values)
    matrix = [[0.0] * size for _ in range(size)]
    right = [0.0] * size
    for place, (value, mean, prior) in enumerate(zip(values, middle, priors, strict=True)):
        firmness = 1 / prior.spread**2
        if prior.heavy:
            firmness /= 1 + ((value - mean) / (1.5 * prior.spread)) ** 2
        matrix[place][place] = firmness
        right[place] = -(value - mean) * firmness
    return matrix, right


def _solved(matrix: list[list[float]], right: list[float]) -> list[float]:
    """Solve a symmetric positive definite system (Cholesky), in place."""
    size = len(right)
    lower: list[list[float]] = []
    for i in range(size):
        line = matrix[i][: i + 1]
        for j in range(i):
            other = lower[j]
            line[j] = (line[j] - sum(map(float.__mul__, line[:j], other[:j]))) / other[j]
        line[i] = sqrt(line[i] - sum(map(float.__mul__, line[:i], line[:i])))
        lower.append(line)
    forward = [0.0] * size
    for i, line in enumerate(lower):
        forward[i] = (right[i] - sum(map(float.__mul__, line[:i], forward[:i]))) / line[i]
    answer = [0.0] * size
    for i in range(size - 1, -1, -1):
        below = sum(lower[k][i] * answer[k] for k in range(i + 1, size))
        answer[i] = (forward[i] - below) / lower[i][i]
    return answer


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
        "experts rows": Prior(exp(0.3), 0.3),
        "sixteen bit experts": Prior(1, 0.5),
        "attention": Prior(0.3, 0.7),
        "attention of backend": Prior(1, 0.5),
        "plain attention": Prior(1, 0.5),
        "plain attention of backend": Prior(1, 0.3),
        "launch": Prior(2, 0.7),
        "launch of backend": Prior(1, 0.4),
        "copied": Prior(0.8, 0.2),
        "copied experts": Prior(0.8, 0.4),
    }
)
_SIXTEEN_BITS = frozenset({"F16", "BF16", "FP16"})


def is_prompt(run: Run) -> bool:
    """Say whether a run belongs to this fit."""
    scenario = run.scenario
    one = scenario.gpus == scenario.batch == 1
    return run.metric == "prefill" and run.family and one and (not run.split or is_copied(run))


def is_copied(run: Run) -> bool:
    """Say whether weights lie in system RAM and it is known how they come to the card."""
    gpu = run.scenario.gpu
    return run.split and gpu is not None and lanes_bytes_s(gpu) is not None


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
    counts = Counter((run.card, run.split) for run in runs)
    cases = [
        Case(terms(run, falls), run.prompt_tokens / run.tok_s, counts[run.card, run.split] ** -0.5)
        for run in runs
    ]
    values = fit(cases, priors, width=0.12, start=start, most_steps=8 if start else 40)
    return PrefillModel(values, falls, frozenset(card for card, _ in counts))


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
        rows = work.crowding(min(tokens, scenario.ubatch))
        powers = [("experts", -1.0), (f"experts of backend:{backend}", -1.0)]
        powers += [("experts rows", -log(rows))]
        powers += [(f"sixteen bit experts:{backend}", -1.0)] if wide else []
        found.append(Term(2 * tokens * work.experts * per_s, (*reach, *wide, *powers)))
    attention = work.attention(tokens, scenario.depth_tokens) * work.absorbed
    kinds = ["attention"] if scenario.flash_attention else ["attention", "plain attention"]
    powers = [(name, -1.0) for kind in kinds for name in (kind, f"{kind} of backend:{backend}")]
    found.append(Term(attention * per_s, (*reach, *powers)))
    passes = ceil(tokens / scenario.ubatch) * work.layers
    launch = (("launch", 1.0), (f"launch of backend:{backend}", 1.0))
    found.append(Term(_MS_PER_LAYER * passes, launch))
    return (*found, *_copies(run))


def _copies(run: Run) -> Iterator[Term]:
    """Write what every micro-batch copies out of system RAM."""
    scenario = run.scenario
    assert scenario.gpu
    lanes = lanes_bytes_s(scenario.gpu)
    if run.split and lanes:
        times = ceil(run.prompt_tokens / scenario.ubatch) / lanes
        yield Term(times * run.reads.host_bytes, (("copied", -1.0),))
        yield Term(times * run.reads.host_expert_bytes, (("copied experts", -1.0),))


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
