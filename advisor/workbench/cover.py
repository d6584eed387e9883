"""What the rules do over the catalogue: how often each fires, and which numbers ever decide."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from functools import reduce
from operator import and_
from typing import Self

from msgspec import Struct

from advisor.advice.ranking import READ, READ_OF_REQUEST, rank
from advisor.rules import Test, of_option, same_test
from advisor.rules.engine.base import Firing, OptionFacts
from advisor.rules.language.model import Rule, RuleSet
from advisor.workbench.bulk import Evaluation, Fired, is_option_test, passing
from advisor.workbench.columns import Mask, all_rows, row_numbers, spread
from advisor.workbench.fact_store import FactStore, Given

VERDICT = "fit.state"


class Said(Struct, frozen=True):
    """One recommendation: its rule, action, option and score."""

    rule: str
    action: str
    option: str
    score: float


class Standing(Struct, frozen=True):
    """What one report says, apart from its words."""

    verdict: str
    """Empty where no rule concludes one: such a request is answered with an error."""
    recommended: tuple[Said, ...]
    notes: tuple[str, ...]
    barred: tuple[tuple[str, str], ...]
    """Rule and option of every veto."""
    superseded: tuple[str, ...] = ()
    """Rules that fired and need not be said."""

    @property
    def options(self) -> list[tuple[str, str]]:
        """Action and option of every recommendation, in order."""
        return [(said.action, said.option) for said in self.recommended]


_FEW = 500
"""Scenarios whose options are kept once they were read."""


def standings(evaluation: Evaluation, scenarios: Sequence[int]) -> dict[int, Standing]:
    """Give what the report says in each of these scenarios, ranked as the pipeline ranks."""
    found = Firings(evaluation, scenarios)
    return {scenario: standing(evaluation, found, scenario) for scenario in scenarios}


class Firings:
    """The firings by scenario, and the facts that scores count.

    They hold for every rule set that fires the same, whatever its scores.
    """

    def __init__(self, evaluation: Evaluation, scenarios: Iterable[int]) -> None:
        store = evaluation.store
        self.scenario: dict[int, list[str]] = {number: [] for number in scenarios}
        self.option: dict[int, list[tuple[str, int]]] = {number: [] for number in self.scenario}
        self._evaluation, self._owner = evaluation, _owners(store, self.scenario)
        self._read: dict[int, OptionFacts] = {}
        for rule_id, fired in evaluation.fired.items():
            self._add(rule_id, fired)
        scored = _scored_facts(evaluation.ruleset)
        self.option_facts = sorted({*filter(of_option, scored), *READ})
        self.scenario_facts = sorted({*scored, *READ_OF_REQUEST} - set(self.option_facts))

    def edited(self, evaluation: Evaluation) -> Firings:
        """Give the firings of other rules on the same store; what did not change is taken over."""
        old = self._evaluation.fired
        changed = {
            rule_id: fired
            for rule_id, fired in evaluation.fired.items()
            if fired is not old[rule_id] and fired.mask != old[rule_id].mask
        }
        return self._without(changed).joined(evaluation, changed) if changed else self

    def _without(self, rules: Collection[str]) -> Self:
        found = copy(self)
        found.scenario = {
            number: [rule for rule in fired if rule not in rules]
            for number, fired in self.scenario.items()
        }
        found.option = {
            number: [pair for pair in fired if pair[0] not in rules]
            for number, fired in self.option.items()
        }
        return found

    def joined(self, evaluation: Evaluation, rules: Mapping[str, Fired]) -> Self:
        """Add rules to firings that hold none of them."""
        self._evaluation = evaluation
        for rule_id, fired in rules.items():
            self._add(rule_id, fired)
        return self

    def fired(self, scenario: int) -> dict[str, list[int]]:
        """Give the rules that fire in one scenario, each with the option rows it fires for."""
        found: dict[str, list[int]] = {rule: [] for rule in self.scenario[scenario]}
        for rule, row in self.option[scenario]:
            found.setdefault(rule, []).append(row)
        return found

    def read(self, row: int) -> OptionFacts:
        """Give what ranking reads of an option, read once where the scenarios are few."""
        found = self._read.get(row)
        if found is None:
            store = self._evaluation.store
            found = OptionFacts(store.key(row), store.option(row, self.option_facts))
            if len(self.scenario) <= _FEW:
                self._read[row] = found
        return found

    def _add(self, rule_id: str, fired: Fired) -> None:
        store = self._evaluation.store
        if fired.per_option:
            for row in row_numbers(fired.mask, store.rows):
                number = self._owner[row]
                if number >= 0:
                    self.option[number].append((rule_id, row))
            return
        for number in row_numbers(fired.mask, len(store)):
            if number in self.scenario:
                self.scenario[number].append(rule_id)


def _owners(store: FactStore, wanted: Mapping[int, object]) -> Sequence[int]:
    owners: list[int] = []
    for number in range(len(store)):
        count = store.starts[number + 1] - store.starts[number]
        owners.extend([number if number in wanted else -1] * count)
    return owners


def _scored_facts(ruleset: RuleSet) -> set[str]:
    scores = [rule.score for rule in ruleset.rules if rule.score]
    per = {term.fact for score in scores for term in score.add}
    tests = [test for score in scores for term in score.when for test in term.tests]
    return per | {n for test in tests for n in (test.fact, test.other) if n}


def standing(evaluation: Evaluation, found: Firings, scenario: int) -> Standing:
    """Give what one report says."""
    store = evaluation.store
    rows = sorted({row for _, row in found.option[scenario]})
    read = {row: found.read(row) for row in rows}
    facts = store.facts(scenario, found.scenario_facts)
    for fact in found.scenario_facts:
        if fact in evaluation.concluded:
            value = evaluation.conclusion(fact, scenario)
            if value is not None:
                facts[fact] = value
    firings = [Firing(rule, read[row].key) for rule, row in found.option[scenario]]
    ranking = rank(
        evaluation.ruleset,
        sorted(firings),
        facts,
        list(read.values()),
    )
    said = tuple(Said(i.rule.id, i.action, i.option, i.score) for i in ranking.recommended)
    return Standing(
        str(evaluation.conclusion(VERDICT, scenario) or ""),
        said,
        tuple(_notes(evaluation.ruleset, found, scenario)),
        tuple((rule.id, key) for rule, key in ranking.vetoed),
        tuple(rule for rule, _, _ in ranking.superseded),
    )


def _notes(ruleset: RuleSet, found: Firings, scenario: int) -> list[str]:
    fired = {*found.scenario[scenario], *(rule for rule, _ in found.option[scenario])}
    notes = [rule for rule in ruleset.notes if rule.id in fired]
    return [rule.id for rule in sorted(notes, key=lambda r: -(r.score.base if r.score else 0.0))]


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
