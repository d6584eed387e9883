"""Fitting sums of products: ``time = sum of value x product of parameters ** power``.

Every parameter is positive and has a prior in logarithms, so that what the data do not decide
stays at its parent's value. Residuals are logarithms of time; large ones lose weight (the loss
grows like the absolute value beyond ``width``). Gauss-Newton in plain Python: the tables are
small, and the same data give the same digits everywhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import cbrt, ceil, exp, log, sqrt

from msgspec import Struct

from advisor.calibration.runs import Run
from advisor.estimator.speed_prefill import (
    as_strong,
    card_size,
    generation_of,
    lanes_bytes_s,
    work_of,
)
from advisor.estimator.speed_rates import SIXTEEN_BITS
from advisor.knowledge.types import Gpu

GroupOf = Callable[[str], str | None]
"""Gives the group of formats that a format belongs to."""
Values = Mapping[str, float]
"""Logarithms of parameters."""
_MOST_STEP, _DONE = 0.5, 1e-4


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


def weight_of(runs: int) -> float:
    """Weigh a run of a card with so many: all of them count like the power 2/3 of their number."""
    return 2.0 / cbrt(runs)


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
    values = [(start or {}).get(name, mean) for name, mean in zip(names, middle, strict=True)]
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

    places: list[int]
    terms: list[tuple[float, list[tuple[int, float]]]]
    """Values, and powers by the order in ``places``."""
    target: float
    weight: float

    @classmethod
    def of(cls, case: Case, places: Mapping[str, int]) -> _Row:
        own = sorted({places[name] for term in case.terms for name, _ in term.powers})
        at = {place: count for count, place in enumerate(own)}
        terms = [(t.value, [(at[places[n]], p) for n, p in t.powers]) for t in case.terms]
        return cls(own, terms, log(case.seconds), case.weight)

    def add(
        self, values: Sequence[float], matrix: list[list[float]], right: list[float], width: float
    ) -> None:
        """Add the case to the normal equations at ``values``."""
        mine = [values[place] for place in self.places]
        parts = [
            value * exp(sum(mine[at] * power for at, power in powers))
            for value, powers in self.terms
        ]
        total = sum(parts)
        residual = self.target - log(total)
        slopes = [0.0] * len(mine)
        for part, (_, powers) in zip(parts, self.terms, strict=True):
            share = part / total
            for at, power in powers:
                slopes[at] += share * power
        weight = self.weight / (sqrt(1 + (residual / width) ** 2) * width**2)
        items = list(zip(self.places, slopes, strict=True))
        for count, (place, slope) in enumerate(items, start=1):
            scaled = weight * slope
            right[place] += scaled * residual
            line = matrix[place]
            for other, other_slope in items[:count]:  # the lower half is all that is solved
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
    """Solve a symmetric positive definite system by its lower half (Cholesky), in place."""
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
        "share of card": Prior(1, 0.1, heavy=True),
        "sixteen bit": Prior(1, 0.2),
        "packed": Prior(1, 0.15),
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
    group_of: GroupOf
    known: frozenset[tuple[str, str]]
    """Cards and backends among the fitted runs."""

    def seconds(self, run: Run, cards: float = 1.0) -> float:
        """Predict the time of a whole prompt, its arithmetic on so many cards' worth."""
        found = terms(run, self.falls, self.group_of)
        computed = [term for term in found if ("share", -1.0) in term.powers]
        rest = [term for term in found if term not in computed]
        on_cards = predict(computed, self.values, priors) / cards
        return on_cards + predict(rest, self.values, priors)

    def packed(self, run: Run) -> float:
        """Give what the run's format reaches over packed weights of all formats."""
        (name,) = [name for name, _ in _packed(run, self.group_of)] or [""]
        return priors.factor(self.values, name) if name else 1.0


def fit_prefill(
    runs: Sequence[Run], falls: float, group_of: GroupOf, *, start: Values | None = None
) -> PrefillModel:
    """Fit shares of the peak, by unit, architecture, format and card."""
    counts = Counter((run.card, run.split) for run in runs)
    cases = []
    for run in runs:
        weight = weight_of(counts[run.card, run.split])
        cases.append(Case(terms(run, falls, group_of), run.prompt_tokens / run.tok_s, weight))
    values = fit(cases, priors, width=0.12, start=start, most_steps=8 if start else 40)
    return PrefillModel(values, falls, group_of, frozenset(card for card, _ in counts))


def _packed(run: Run, group_of: GroupOf) -> list[tuple[str, float]]:
    """Name what the format of the weights changes: 16 bits by backend, packed ones by group."""
    name = run.scenario.precision.name
    if name in SIXTEEN_BITS:
        return [(f"sixteen bit:{run.scenario.backend}", -1.0)]
    group = group_of(name)
    return [(f"packed:{group}", -1.0)] if group else []


def terms(run: Run, falls: float, group_of: GroupOf) -> tuple[Term, ...]:
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
    packed = _packed(run, group_of)
    per_s = 1 / (size * _TFLOPS)
    found = [Term(2 * tokens * work.dense * per_s, (*reach, *packed))]
    if work.experts:
        rows = work.crowding(min(tokens, scenario.ubatch))
        powers = [("experts", -1.0), (f"experts of backend:{backend}", -1.0)]
        powers += [("experts rows", -log(rows))]
        if scenario.precision.name in SIXTEEN_BITS:
            powers.append((f"sixteen bit experts:{backend}", -1.0))
        found.append(Term(2 * tokens * work.experts * per_s, (*reach, *packed, *powers)))
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
    pascal = architecture.startswith("Pascal")
    return (f"{unit} {architecture}", 64 * size) if pascal else (unit, size)


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
    gpus = {run.card[0]: run.scenario.gpu for run in runs if run.scenario.gpu}
    for run in runs:
        gpu = gpus[run.card[0]]
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
