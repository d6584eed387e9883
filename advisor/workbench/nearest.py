"""How near a rule is to firing, and the smallest single change of an input that makes it fire."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

from msgspec import Struct
from msgspec.structs import replace

from advisor.advice import Advisor
from advisor.advice.facts import scenario_facts
from advisor.advice.preparation import all_option_facts, estimate, prepare
from advisor.errors import UserError
from advisor.estimator.limits import find_limits
from advisor.knowledge import catalogue
from advisor.knowledge.vocabulary import FactValue
from advisor.remedies.option import Base
from advisor.rules import KNOWING, Facts, Test, are_numbers, holds
from advisor.rules.language.model import Rule
from advisor.scenario.choices import choices_for
from advisor.scenario.resolve import apply_change
from advisor.scenario.settings import SETTINGS, STATED, Request
from advisor.workbench.dependencies import needs_options

_CONTEXTS = (
    256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072, 262144, 524288, 1048576,
)  # fmt: skip
_BATCHES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 128, 256)
_GPUS = (1, 2, 3, 4, 6, 8)
_RAM_GIB = (8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0)
_RAM_BANDWIDTHS = (40.0, 60.0, 80.0, 100.0, 200.0, 400.0)
_MOST_CARDS = 40
_MOST_MODELS = 20
_ROUND = 256
_FINE = 12
"""Contexts tried between two powers of two where no power of two will do."""
_UNSTATED = 2.0
"""How far a value that was not stated at all counts as being."""


class SingleChange(Struct, frozen=True):
    """One input, the value that makes the rule fire, and what it is now."""

    key: str
    value: object
    now: object
    distance: float

    @property
    def order(self) -> tuple[int, float]:
        """Least effort first, then the smallest step."""
        return (SETTINGS[self.key].effort or 0, self.distance)


def smallest_changes(advisor: Advisor, request: Request, rule: Rule) -> Sequence[SingleChange]:
    """For each input that can, give the nearest value that makes the rule fire, easiest first.

    Raises:
        UserError: The request itself is wrong.
    """
    base = advisor.estimate(request)
    fires = _judge(advisor, rule)
    found = []
    for key, values in _candidates(base):
        change = _nearest(request, key, values, fires)
        if key == "context" and not change:
            finer = _numbers(_fine_contexts(), base.scenario.context_tokens)
            change = _nearest(request, key, finer, fires)
        if change:
            found.append(change)
    return sorted(found, key=lambda change: change.order)


def _judge(advisor: Advisor, rule: Rule) -> Callable[[Request], bool]:
    """Whether the rule fires for a request; what-ifs are built only if they matter."""
    knowledge = advisor.knowledge
    options = needs_options(rule, advisor.ruleset)

    def fires(request: Request) -> bool:
        try:
            if options:
                ready = prepare(request, knowledge)
                outcome = advisor.engine.run(ready.facts, all_option_facts(ready))
            else:
                base = estimate(request, knowledge)
                limits = find_limits(base.scenario, knowledge, base.memory)
                outcome = advisor.engine.run(scenario_facts(base, limits, (), ()), ())
        except UserError:
            return False
        return any(firing.rule == rule.id for firing in outcome.firings)

    return fires


def _candidates(base: Base) -> Iterator[tuple[str, Sequence[tuple[object, float]]]]:
    """Values of every input with their distance from the present one, nearest first."""
    scenario, knowledge = base.scenario, base.knowledge
    yield "prefer", [(name, 1.0) for name in SETTINGS["prefer"].words if name != scenario.prefer]
    yield "context", _numbers(_CONTEXTS, scenario.context_tokens)
    yield "batch", _numbers(_BATCHES, scenario.batch)
    kinds = (k for k in scenario.framework.kv_types if k != scenario.kv_cache_k.name)
    yield "kv_cache", _named(kinds, lambda k: knowledge.kv_types[k].bits, scenario.kv_cache_k.bits)
    yield "flash_attention", [(not scenario.flash_attention, 1.0)]
    yield "gpu_layers", _shares(scenario.model.shape.layers)
    if scenario.model.shape.moe:
        yield "cpu_experts", _shares(scenario.model.shape.layers)
    ram = scenario.ram_bytes / 2**30 if scenario.ram_bytes else None
    yield "ram_gib", _numbers(_RAM_GIB, ram)
    pace = None if scenario.ram_assumed else scenario.ram_bandwidth_bytes_s
    yield "ram_bandwidth_gb_s", _numbers(_RAM_BANDWIDTHS, pace / 1e9 if pace else None)
    for one in STATED:
        if one.tried:
            yield one.name, _numbers(one.tried, getattr(scenario, one.name))
    yield "precision", _formats(base)
    others = [f.name for f in knowledge.frameworks.values() if f is not scenario.framework]
    yield "framework", [(name, 1.0) for name in others]
    yield "model", _models(base)
    yield "gpus", _numbers(_GPUS, scenario.gpus)
    yield "gpu", _cards(base)


def _numbers(values: Iterable[float], now: float | None) -> Sequence[tuple[object, float]]:
    found = [
        (value, _UNSTATED if now is None else abs(math.log2(value / now)))
        for value in values
        if value != now
    ]
    return sorted(found, key=lambda pair: pair[1])


def _fine_contexts() -> list[int]:
    """Contexts about 6 % apart: some rules hold only in a narrow band of them."""
    steps = range(_FINE * int(math.log2(_CONTEXTS[-1] / _CONTEXTS[0])))
    found = {round(_CONTEXTS[0] * 2 ** (step / _FINE) / _ROUND) * _ROUND for step in steps}
    return sorted(found)


def _named(
    names: Iterable[str], size: Callable[[str], float | None], now: float | None
) -> Sequence[tuple[object, float]]:
    found: list[tuple[object, float]] = []
    for name in names:
        own = size(name)
        distance = abs(math.log2(own / now)) if own and now else _UNSTATED
        found.append((name, distance))
    return sorted(found, key=lambda pair: (pair[1], str(pair[0])))


def _shares(layers: int) -> Sequence[tuple[object, float]]:
    places = sorted({round(layers * share / 8) for share in range(8)} - {0}, reverse=True)
    return [(place, 1.0 + index) for index, place in enumerate(places)]


def _formats(base: Base) -> Sequence[tuple[object, float]]:
    scenario, knowledge = base.scenario, base.knowledge
    choices = choices_for(knowledge, scenario.gpu, scenario.model)
    names = [
        f.name
        for f in knowledge.formats.values()
        if f.offered and f is not scenario.precision and choices.runners(f)
    ]
    bits = scenario.precision.bits_per_weight
    return _named(names, lambda name: knowledge.formats[name].bits_per_weight, bits)


def _models(base: Base) -> Sequence[tuple[object, float]]:
    model, knowledge = base.scenario.model, base.knowledge
    names = [
        name
        for name in catalogue.siblings(knowledge, model.family, model.modality)
        if name != model.name
    ]
    sized = _named(names, lambda n: knowledge.models[n].parameters, float(model.parameters))
    return sized[:_MOST_MODELS]


def _cards(base: Base) -> Sequence[tuple[object, float]]:
    """The cards nearest in memory and bandwidth, one of each kind of memory and pace."""
    gpu = base.scenario.gpu
    if gpu is None or not gpu.vram_bytes:
        return []
    found = []
    for row in catalogue.cards(base.knowledge):
        if row.name == gpu.name:
            continue
        distance = abs(math.log2(row.vram_bytes / gpu.vram_bytes))
        if row.bandwidth_bytes_s and gpu.bandwidth_bytes_s:
            distance += abs(math.log2(row.bandwidth_bytes_s / gpu.bandwidth_bytes_s)) / 2
        distance += (row.vendor != gpu.vendor) + (row.segment != gpu.segment) / 2
        found.append((row, distance))
    found.sort(key=lambda pair: (pair[1], pair[0].name))
    kinds: dict[tuple[object, ...], tuple[object, float]] = {}
    for row, distance in found:
        kind = (row.vendor, row.segment, row.vram_bytes, row.bandwidth_bytes_s)
        kinds.setdefault(kind, (row.name, distance))
    near = list(kinds.values())
    step = max(1, len(near) // _MOST_CARDS)
    return [*near[: _MOST_CARDS // 2], *islice(near, _MOST_CARDS // 2, None, step)]


def _nearest(
    request: Request,
    key: str,
    values: Sequence[tuple[object, float]],
    fires: Callable[[Request], bool],
) -> SingleChange | None:
    now = getattr(request, key)
    for value, distance in values:
        if fires(_with(request, key, value)):
            if key in {"context", "batch"} and isinstance(value, int):
                return _refined(request, key, value, values, fires)
            return SingleChange(key, value, now, distance)
    return None


def _with(request: Request, key: str, value: object) -> Request:
    changed = apply_change(request, {key: value})
    if key == "context" and request.depth and isinstance(value, int) and request.depth >= value:
        return replace(changed, depth=value - 1)
    return changed


def _refined(
    request: Request,
    key: str,
    works: int,
    values: Sequence[tuple[object, float]],
    fires: Callable[[Request], bool],
) -> SingleChange:
    """Halve the gap between the nearest value that works and its neighbour that does not."""
    now = getattr(request, key)
    distances = dict(values)
    nearer = [v for v, d in values if isinstance(v, int) and d < distances[works]]
    stated = int(now) if now else None
    usual, least = (4096, _ROUND) if key == "context" else (1, 1)
    rises = works > (stated or usual)
    between = (v for v in nearer if v != works and (v < works) == rises)
    good, bad = works, (max if rises else min)(between, default=stated)
    while bad is not None and abs(good - bad) > least:
        middle = (good + bad) // 2 // least * least
        if middle in {good, bad}:
            break
        if fires(_with(request, key, middle)):
            good = middle
        else:
            bad = middle
    return SingleChange(key, good, now, distances[works])


class TestTrace(Struct, frozen=True):
    """One test on the facts of one situation."""

    __test__ = False

    test: Test
    holds: bool
    actual: FactValue | None
    """The fact's value; None where it is unknown."""
    target: FactValue | tuple[str, ...] | None
    """What it was compared with: the literal, or the other fact's value (None: unknown)."""
    distance: float | None
    """How far a number is from holding, in base units: 0 when it holds, and when it lies on a
    limit that must be passed. None for anything but a comparison of known numbers."""


class RuleTrace(Struct, frozen=True):
    """A rule on the facts of one situation."""

    rule: str
    holds: bool
    branches: tuple[tuple[TestTrace, ...], ...]
    """Every branch in full; a rule holds when all tests of any one branch do."""
    nearest: tuple[TestTrace, ...]
    """The branch that holds or, when none does, the one that is nearest to holding."""


def evaluate(rule: Rule, facts: Facts, option: Facts | None = None) -> RuleTrace:
    """Try one rule outside any engine and keep every comparison.

    Facts are in base units, concluded ones included and unknown ones absent.
    """
    known = {**facts, **option} if option else facts
    traced = tuple(tuple(_trace(test, known) for test in tests) for tests in rule.branches)
    nearest = min(traced, key=_remoteness, default=())
    return RuleTrace(
        rule=rule.id,
        holds=any(all(test.holds for test in branch) for branch in traced),
        branches=traced,
        nearest=nearest,
    )


def _trace(test: Test, known: Facts) -> TestTrace:
    actual, held = known.get(test.fact), holds(test, known)
    if test.verb in KNOWING:
        return TestTrace(test, held, actual, None, None)
    target = known.get(test.other) if test.other is not None else test.value
    return TestTrace(test, held, actual, target, _distance(held, test, actual, target))


def _distance(held: bool, test: Test, actual: object, target: object) -> float | None:  # noqa: FBT001
    if not are_numbers(actual, target):
        return None
    assert isinstance(actual, int | float)
    assert isinstance(target, int | float)
    return 0.0 if held or test.verb == "is not" else abs(float(actual) - float(target))


def _remoteness(branch: tuple[TestTrace, ...]) -> tuple[int, float]:
    failed = [test for test in branch if not test.holds]
    return (len(failed), sum(map(_relative, failed)))


def _relative(test: TestTrace) -> float:
    """Give a failed test's distance as a share of the larger number, 1 where there is none."""
    if test.distance is None:
        return 1.0
    assert isinstance(test.actual, int | float)
    assert isinstance(test.target, int | float)
    return test.distance / (max(abs(test.actual), abs(test.target)) or 1.0)
