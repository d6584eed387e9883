"""Fitting sums of products: ``time = sum of value x product of parameters ** power``.

Every parameter is positive and has a prior in logarithms, so that what the data do not decide
stays at its parent's value. Residuals are logarithms of time; large ones lose weight (the loss
grows like the absolute value beyond ``width``). Gauss-Newton in plain Python: the tables are
small, and the same data give the same digits everywhere.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import cbrt, ceil, exp, log, sqrt
from operator import mul

from msgspec import Struct

from advisor.estimator.calibration.runs import Run, sized
from advisor.estimator.speed_prefill import as_strong, generation_of, work_of
from advisor.estimator.speed_rates import SIXTEEN_BITS
from advisor.estimator.speed_step import copied_s, lanes_bytes_s
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
    names = _ordered(cases)
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


def _ordered(cases: Iterable[Case]) -> list[str]:
    """List the parameters, those that meet few others first: what is solved stays sparse."""
    met: dict[str, set[str]] = defaultdict(set)
    for together in {frozenset(n for t in case.terms for n, _ in t.powers) for case in cases}:
        for name in together:
            met[name] |= together
    return sorted(met, key=lambda name: (len(met[name]), name))


class _Row(Struct):
    """A case with parameter places instead of names."""

    places: list[int]
    terms: list[tuple[float, list[float]]]
    """Values, and the power of each of the ``places``."""
    columns: list[tuple[float, ...]]
    """The same powers by place."""
    target: float
    weight: float

    @classmethod
    def of(cls, case: Case, places: Mapping[str, int]) -> _Row:
        own = sorted({places[name] for term in case.terms for name, _ in term.powers})
        terms = []
        for term in case.terms:
            powers = dict.fromkeys(own, 0.0)
            for name, power in term.powers:
                powers[places[name]] += power
            terms.append((term.value, list(powers.values())))
        columns = list(zip(*(powers for _, powers in terms), strict=True))
        return cls(own, terms, columns, log(case.seconds), case.weight)

    def add(
        self, values: Sequence[float], matrix: list[list[float]], right: list[float], width: float
    ) -> None:
        """Add the case to the lower half of the normal equations at ``values``."""
        mine = [values[place] for place in self.places]
        parts = [value * exp(sum(map(mul, mine, powers))) for value, powers in self.terms]
        total = sum(parts)
        residual = self.target - log(total)
        weight = self.weight / (sqrt(1 + (residual / width) ** 2) * width**2)
        shares = [part / total for part in parts]
        items: list[tuple[int, float]] = []
        for place, column in zip(self.places, self.columns, strict=True):
            slope = sum(map(mul, shares, column))
            items.append((place, slope))
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
    """Solve a symmetric positive definite system by its lower half, in place.

    Each unknown in turn is taken out of the equations that it occurs in, which are few.
    """
    size = len(right)
    columns = []
    for k in range(size):
        column = [(i, matrix[i][k]) for i in range(k + 1, size) if matrix[i][k]]
        for count, (i, value) in enumerate(column, start=1):
            line, share = matrix[i], value / matrix[k][k]
            right[i] -= share * right[k]
            for j, other in column[:count]:
                line[j] -= share * other
        columns.append(column)
    answer = [0.0] * size
    for k in range(size - 1, -1, -1):
        later = sum(value * answer[i] for i, value in columns[k])
        answer[k] = (right[k] - later) / matrix[k][k]
    return answer


_TFLOPS = 1e12
_MS_PER_LAYER = 1e-3 / 32
priors = Priors(
    {
        "share": Prior(0.45, 0.3),
        "share of unit": Prior(1, 0.3),
        "share of architecture": Prior(1, 0.25),
        "share of card": Prior(1, 0.05, heavy=True),
        "sixteen bit": Prior(1, 0.2),
        "packed": Prior(1, 0.15),
        "older builds": Prior(1, 0.4),
        "experts": Prior(0.3, 0.5),
        "experts of backend": Prior(1, 0.2),
        "experts of program": Prior(1, 0.5),
        "experts rows": Prior(exp(0.3), 0.3),
        "sixteen bit experts": Prior(1, 0.5),
        "attention": Prior(0.3, 0.7),
        "attention of backend": Prior(1, 0.5),
        "plain attention": Prior(1, 0.5),
        "plain attention of backend": Prior(1, 0.3),
        "latent attention": Prior(1, 0.5),
        "latent attention of backend": Prior(1, 0.3),
        "recurrent": Prior(1e-6, 1.0),
        "recurrent of backend": Prior(1, 0.5),
        "launch": Prior(2, 0.7),
        "launch of backend": Prior(1, 0.4),
        "copied": Prior(0.8, 0.2),
        "copied experts": Prior(0.8, 0.4),
        "machine": Prior(1, 0.15),
    }
)


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
        computed = [term for term in found if term.powers[0][0] in {"share", "recurrent"}]
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
    counts = Counter((run.card, run.split and run.source) for run in runs)
    cases = []
    for run in runs:
        weight = weight_of(counts[run.card, run.split and run.source])
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
    unit, size = sized(scenario.gpu, falls)
    reach = _reach(scenario.gpu, unit, run.architecture, backend)
    packed = _packed(run, group_of)
    if run.older and scenario.precision.name not in SIXTEEN_BITS:
        packed.append((f"older builds:{run.architecture}/{backend}", -1.0))
    per_s = 1 / (size * _TFLOPS)
    found = [Term(2 * tokens * work.dense * per_s, (*reach, *packed))]
    if work.experts:
        rows = work.crowding(min(tokens, scenario.ubatch))
        powers = [("experts", -1.0), (f"experts of backend:{backend}", -1.0)]
        powers += [("experts rows", -log(rows))]
        if run.program:
            powers.append((f"experts of program:{run.program}", -1.0))
        if scenario.precision.name in SIXTEEN_BITS:
            powers.append((f"sixteen bit experts:{backend}", -1.0))
        found.append(Term(2 * tokens * work.experts * per_s, (*reach, *packed, *powers)))
    attention = work.attention(tokens, scenario.depth_tokens) * work.absorbed
    kinds = ["attention"] if scenario.flash_attention else ["attention", "plain attention"]
    kinds += [] if work.absorbed == 1 else ["latent attention"]
    powers = [(name, -1.0) for kind in kinds for name in (kind, f"{kind} of backend:{backend}")]
    found.append(Term(attention * per_s, (*reach, *powers)))
    if work.recurrent:
        steps = (("recurrent", 1.0), (f"recurrent of backend:{backend}", 1.0))
        found.append(Term(float(tokens * work.recurrent), steps))
    passes = ceil(tokens / scenario.ubatch) * work.layers
    launch = (("launch", 1.0), (f"launch of backend:{backend}", 1.0))
    found.append(Term(_MS_PER_LAYER * passes, launch))
    return (*found, *_copies(run))


def _copies(run: Run) -> Iterator[Term]:
    """Write what every micro-batch copies out of system RAM.

    How much faster or slower a machine does it is fitted and not told.
    """
    scenario = run.scenario
    assert scenario.gpu
    lanes = lanes_bytes_s(scenario.gpu)
    ram = scenario.ram_bandwidth_bytes_s
    if run.split and lanes and ram:
        times, own = ceil(run.prompt_tokens / scenario.ubatch), (f"machine:{run.source}", 1.0)
        dense, experts = times * run.reads.host_bytes, times * run.reads.host_expert_bytes
        byte_s = copied_s(lanes, ram)
        yield Term(dense * byte_s, (("copied", -1.0), own))
        yield Term(experts * byte_s, (("copied experts", -1.0), own))


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
    unit, size = sized(gpu, model.falls)
    reach = _reach(gpu, unit, architecture, backend)
    return size * exp(sum(log(priors.factor(model.values, name)) for name, _ in reach))


def _reach(gpu: Gpu, unit: str, architecture: str, backend: str | None) -> list[tuple[str, float]]:
    """Name what the arithmetic of a card takes."""
    generation = generation_of(architecture, gpu)
    return [
        ("share", -1.0),
        (f"share of unit:{backend} {unit}", -1.0),
        (f"share of architecture:{generation}/{backend}", -1.0),
        (f"share of card:{gpu.name}/{backend}", -1.0),
    ]


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
