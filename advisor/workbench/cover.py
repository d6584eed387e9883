"""What the rules do over the catalogue: how often each fires, and which numbers ever decide."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from operator import and_

from msgspec import Struct

from advisor.rules.conditions import Test, same_test
from advisor.rules.language.model import Rule
from advisor.workbench.bulk import Evaluation, is_option_test, passing
from advisor.workbench.columns import Mask, all_rows, spread
from advisor.workbench.fact_store import FactStore, Given
from advisor.workbench.outcomes import VERDICT, standings

_EXAMPLES = 3
_SIZES = ((3e9, "under 3 B"), (9e9, "3 to 9 B"), (20e9, "9 to 20 B"), (80e9, "20 to 80 B"))
_LARGEST = "80 B and more"
_AXES = ("gpu.vendor", "gpu.segment", "model.modality")


class RuleCover(Struct, frozen=True):
    """One rule over the sample."""

    rule: Rule
    fires: int
    """Scenarios in which it holds."""
    said: int
    """Scenarios in which its recommendation or note is in the report; conclusions are not said."""
    first: int
    """Scenarios in which it is the first recommendation."""
    heat: Mapping[tuple[str, str], float]
    """Axis and group -> share of the group's scenarios in which it holds."""


class Threshold(Struct, frozen=True):
    """One numeric condition of a rule."""

    rule: Rule
    test: Test
    per_option: bool
    """Whether rows are options rather than scenarios."""
    passes: int
    fails: int
    unknown: int
    decides: int
    """Rows that pass every other condition of the rule and fail this one."""

    @property
    def crossed(self) -> bool:
        """Whether the sample lies on both sides."""
        return bool(self.passes and self.fails)


class Silence(Struct, frozen=True):
    """Scenarios of one verdict without any recommendation."""

    verdict: str
    count: int
    of: int
    examples: Sequence[Given]


class Coverage(Struct, frozen=True):
    """Everything ``advisor rules cover`` shows."""

    scenarios: int
    options: int
    rules: Sequence[RuleCover]
    together: Sequence[Sequence[str]]
    """Rules that hold in exactly the same scenarios."""
    silences: Sequence[Silence]
    thresholds: Sequence[Threshold]
    groups: Mapping[tuple[str, str], int]
    """Axis and group of the heat map -> scenarios in it."""

    @property
    def never(self) -> Sequence[str]:
        """Rules that hold nowhere."""
        return [r.rule.id for r in self.rules if not r.fires]

    @property
    def always(self) -> Sequence[str]:
        """Rules that hold everywhere."""
        return [r.rule.id for r in self.rules if r.fires == self.scenarios]


def cover(evaluation: Evaluation) -> Coverage:
    """Measure a rule set over the sample it was tried on."""
    store = evaluation.store
    reports = standings(evaluation, range(len(store)))
    said = Counter(s.rule for report in reports.values() for s in report.recommended)
    said.update(note for report in reports.values() for note in report.notes)
    said.update(rule for report in reports.values() for rule in {r for r, _ in report.barred})
    first = Counter(r.recommended[0].rule for r in reports.values() if r.recommended)
    groups = dict(_groups(evaluation))
    masks = {rule.id: evaluation.scenarios(rule.id) for rule in evaluation.ruleset.rules}
    rules = [
        RuleCover(
            rule,
            masks[rule.id].bit_count(),
            said[rule.id],
            first[rule.id],
            {
                name: (masks[rule.id] & own).bit_count() / own.bit_count()
                for name, own in groups.items()
            },
        )
        for rule in evaluation.ruleset.rules
    ]
    verdicts: dict[str, list[int]] = defaultdict(list)
    for number, report in reports.items():
        verdicts[report.verdict].append(number)
    silences = [
        _silence(store, verdict, [n for n in numbers if not reports[n].recommended], len(numbers))
        for verdict, numbers in sorted(verdicts.items())
    ]
    return Coverage(
        len(store),
        store.rows,
        rules,
        _together(masks),
        silences,
        [t for rule in evaluation.ruleset.rules for t in _thresholds(evaluation, rule)],
        {name: own.bit_count() for name, own in groups.items()},
    )


def _silence(store: FactStore, verdict: str, numbers: Sequence[int], of: int) -> Silence:
    plainest = sorted(numbers, key=lambda n: (len(store.requests[n]), n))[:_EXAMPLES]
    return Silence(verdict, len(numbers), of, [store.requests[n] for n in plainest])


def _together(masks: Mapping[str, Mask]) -> Sequence[Sequence[str]]:
    same: dict[Mask, list[str]] = defaultdict(list)
    for rule_id, mask in masks.items():
        if mask:
            same[mask].append(rule_id)
    return [ids for ids in same.values() if len(ids) > 1]


def _groups(evaluation: Evaluation) -> Iterator[tuple[tuple[str, str], Mask]]:
    store = evaluation.store
    for value in ("fits", "tight", "needs_offload", "too_big"):
        mask = evaluation.concluded.get(VERDICT, {}).get(value, 0)
        if mask:
            yield ("verdict", value), mask
    for fact in _AXES:
        column = store.columns.get(fact)
        for name in column.values if column else ():
            yield (fact, str(name)), passing(store, Test(fact, "is", name), {})
    yield from _sizes(store)


def _sizes(store: FactStore) -> Iterator[tuple[tuple[str, str], Mask]]:
    fact, below = "model.parameters", 0
    for most, name in _SIZES:
        mask = passing(store, Test(fact, "below", most), {})
        if mask ^ below:
            yield (fact, name), mask ^ below
        below = mask
    rest = passing(store, Test(fact, "is known"), {}) ^ below
    if rest:
        yield (fact, _LARGEST), rest


def _thresholds(evaluation: Evaluation, rule: Rule) -> Iterator[Threshold]:
    seen: dict[tuple[object, ...], list[tuple[Test, ...]]] = defaultdict(list)
    tests: dict[tuple[object, ...], Test] = {}
    for branch in rule.branches:
        for test in branch:
            if _is_threshold(test):
                seen[same_test(test)].append(branch)
                tests[same_test(test)] = test
    for key, test in tests.items():
        yield _threshold(evaluation, rule, test, seen[key])


def _is_threshold(test: Test) -> bool:
    number = isinstance(test.value, int | float) and not isinstance(test.value, bool)
    return number or (test.other is not None and test.verb not in {"is", "is not"})


def _threshold(
    evaluation: Evaluation, rule: Rule, test: Test, within: Sequence[Sequence[Test]]
) -> Threshold:
    store, option = evaluation.store, is_option_test(test)
    passes = passing(store, test, evaluation.concluded)
    known = all_rows(store.height(option=option))
    for fact in filter(None, (test.fact, test.other)):
        mask = passing(store, Test(fact, "is known"), {})
        known &= mask if not option or is_option_test(Test(fact, "is")) else _wide(store, mask)
    reached = 0
    for branch in within:
        reached |= _others(evaluation, branch, test, option=rule.per_option)
    failing = known ^ passes
    if rule.per_option and not option:
        failing = _wide(store, failing)
    return Threshold(
        rule,
        test,
        option,
        passes.bit_count(),
        (known ^ passes).bit_count(),
        store.height(option=option) - known.bit_count(),
        (reached & failing).bit_count(),
    )


def _others(
    evaluation: Evaluation, branch: Sequence[Test], left_out: Test, *, option: bool
) -> Mask:
    store = evaluation.store
    wanted = [t for t in branch if same_test(t) != same_test(left_out)]
    masks = (
        passing(store, t, evaluation.concluded)
        if is_option_test(t) is option
        else _wide(store, passing(store, t, evaluation.concluded))
        for t in wanted
    )
    return reduce(and_, masks, all_rows(store.height(option=option)))


def _wide(store: FactStore, mask: Mask) -> Mask:
    return spread(mask, store.starts)
