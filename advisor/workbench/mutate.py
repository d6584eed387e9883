"""Would the tests notice a mistake? Every mutant is tried; survivors get a case that kills them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct, field

from advisor.advice import Advisor
from advisor.advice.preparation import prepare
from advisor.remedies.impossible import expected_options
from advisor.rules import Test, are_numbers, of_option
from advisor.rules.language.model import Case, Rule
from advisor.scenario.settings import request_from
from advisor.workbench.bulk import Evaluation, rule_mask, shown_mask, with_rule
from advisor.workbench.columns import Mask, gathered, row_numbers, rows_between
from advisor.workbench.cover import Firings, Standing, standing
from advisor.workbench.diff import compare
from advisor.workbench.expectations import Changed, contains, prepared
from advisor.workbench.fact_store import Given
from advisor.workbench.mutants import Mutant, told_apart
from advisor.workbench.scenario_file import Expected, ScenarioCase
from advisor.workbench.trial import Trial, plainer, situation, trial_of

_LOOKED_AT = 300
"""Scenarios among which the plainest is chosen."""
_TRIED = 20
"""Scenarios in which a change is looked for that tells two rules apart."""
_MARGIN = 0.2
"""How deep between two thresholds a value should lie, as a share of the gap."""


class Suggestion(Struct, frozen=True):
    """A test that kills mutants: a case of a rule, or a scenario."""

    case: Case | None
    scenario: ScenarioCase | None
    rule: Rule
    expect: str = ""
    """What the case expects as it is written: of a ladder, one of its values."""

    def trial(self, advisor: Advisor) -> Trial:
        """Make it ready to be tried."""
        cases = [(self.rule, self.case)] if self.case else []
        return trial_of(advisor, cases, [self.scenario] if self.scenario else [])


class Survivors(Struct, frozen=True):
    """Mutants that one suggested test would kill."""

    suggestion: Suggestion
    mutants: Sequence[Mutant]


class Mutation(Struct, frozen=True):
    """What became of the mutants of a rule set."""

    tried: int
    killed: Mapping[str, int]
    """Mutants that a test notices, by rule."""
    survivors: Sequence[Survivors]
    equivalent: Sequence[Mutant]
    """Mutants that no scenario of the sample tells from the original."""
    unresolved: Sequence[Mutant]
    """Survivors beyond ``--limit``, or whose test does not hold with the knowledge as it is."""
    sample: int
    totals: Mapping[str, int] = field(default_factory=dict)
    """Mutants that can be told apart, by rule."""
    known: Sequence[Mutant] = ()
    """Survivors that an earlier run found to be the same as the original."""

    @property
    def same(self) -> int:
        """Mutants that are the same as the original, by this run or an earlier one."""
        return len(self.equivalent) + len(self.known)

    @property
    def killed_count(self) -> int:
        """Mutants that a test notices."""
        return sum(self.killed.values())

    @property
    def meaningful(self) -> int:
        """Mutants that some scenario tells from the original."""
        return self.tried - self.same

    @property
    def share(self) -> float:
        """Killed among the meaningful, from 0 to 1."""
        return self.killed_count / self.meaningful if self.meaningful else 1.0

    @property
    def share_of_all(self) -> float:
        """Killed among all that were tried, from 0 to 1."""
        return self.killed_count / self.tried if self.tried else 1.0


def mutate(
    trial: Trial,
    sample: Evaluation | None,
    mutants: Sequence[Mutant],
    *,
    known: Mapping[str, int] | None = None,
    limit: int | None = None,
) -> Mutation:
    """Try mutants on the tests, and look for tests that kill those that survive.

    Without ``sample``, the rules tried on the fact store, and with ``known`` equivalents of an
    earlier run no tests are looked for; else for at most ``limit`` survivors.
    """
    killed: dict[str, int] = {}
    alive: list[Mutant] = []
    for mutant in mutants:
        if trial.failure(mutant):
            killed[mutant.rule.id] = killed.get(mutant.rule.id, 0) + 1
        else:
            alive.append(mutant)
    open_, old = told_apart(alive, known or {})
    search = _Search(open_)
    if sample is not None:
        search.run(trial, Finder(trial, sample), limit)
    same = {id(mutant) for mutant in (*search.equivalent, *old)}
    return Mutation(
        len(mutants),
        killed,
        search.found,
        search.equivalent,
        [*search.open, *search.unproved],
        0 if sample is None else len(sample.store),
        Counter(mutant.rule.id for mutant in mutants if id(mutant) not in same),
        old,
    )


class _Search(Struct):
    """Survivors, and the tests that were found for them."""

    open: list[Mutant]
    found: list[Survivors] = field(default_factory=list)
    equivalent: list[Mutant] = field(default_factory=list)
    unproved: list[Mutant] = field(default_factory=list)
    """Told apart by facts that were kept from before a change, but not by those of now."""

    def run(self, trial: Trial, finder: Finder, limit: int | None) -> None:
        """Look for a test for one survivor after the other, and what else it kills."""
        looked = 0
        while self.open and (limit is None or looked < limit):
            looked += 1
            mutant, *rest = self.open
            suggestion = finder.suggestion(mutant)
            also: list[Mutant] = []
            own = suggestion.trial(trial.advisor) if suggestion else None
            if suggestion is None or own is None:
                self.equivalent.append(mutant)
            elif own.failing() or not own.failure(mutant):
                self.unproved.append(mutant)
            else:
                also = [m for m in rest if _related(m, mutant, own) and own.failure(m)]
                self.found.append(Survivors(suggestion, [mutant, *also]))
            self.open = [m for m in rest if m not in also]


def _related(other: Mutant, first: Mutant, trial: Trial) -> bool:
    """Whether a test for one mutant may kill another: of its rule, or one that speaks there."""
    if other.rule.id == first.rule.id:
        return True
    whole = other.kind != "condition" and bool(trial.scenarios)
    return whole and bool(trial.base.fired[other.rule.id].mask)


class Finder:
    """Looks through the fact store for situations that tell a mutant from the original."""

    def __init__(self, trial: Trial, sample: Evaluation) -> None:
        self._trial = trial
        self._sample = sample
        self._firings: Firings | None = None
        self._reports: dict[int, Standing] = {}

    def suggestion(self, mutant: Mutant) -> Suggestion | None:
        """Give a test that kills a mutant; None when nothing in the sample tells it apart."""
        if mutant.kind == "condition":
            return self._by_firing(mutant)
        if mutant.kind == "conclusion":
            return self._by_fact(mutant)
        return self._by_order(mutant)

    def _by_firing(self, mutant: Mutant) -> Suggestion | None:
        sample, rule = self._sample, mutant.rule
        store = sample.store
        before = shown_mask(sample, rule, sample.fired[rule.id].mask)
        after = shown_mask(sample, rule, rule_mask(store, rule, sample.concluded))
        if before == after:
            return None
        old, new = (gathered(m, store.starts) if rule.per_option else m for m in (before, after))
        if old ^ new:
            number = self._plainest(old ^ new, mutant)
            fires = bool(old >> (8 * number) & 1)
            return self._case(mutant, number, None, fires=fires)
        return self._by_option(mutant, before, after) or self._by_report(mutant)

    def _by_option(self, mutant: Mutant, before: Mask, after: Mask) -> Suggestion | None:
        """A case about a change that only the original fires for, or only the mutant."""
        store = self._sample.store
        for fires, one, other in ((True, before, after), (False, after, before)):
            differ = gathered(one & ~other, store.starts)
            for number in _plain_first(store.requests, row_numbers(differ, len(store)))[:_TRIED]:
                found = self._changes(mutant.rule, number, one, other)
                if found is not None:
                    return self._case(mutant, number, found, fires=fires)
        return None

    def _changes(self, rule: Rule, number: int, one: Mask, other: Mask) -> Changed | None:
        """A change of an option in the first mask that none in the second one shares."""
        store, advisor = self._sample.store, self._trial.advisor
        ready = prepare(request_from(store.requests[number]), advisor.knowledge)
        changes = {option.key: option.change for option in ready.options}
        if rule.veto:
            changes |= {option.key: option.change for option in expected_options(ready.base)}
        begin, end = store.starts[number], store.starts[number + 1]
        keys = [[store.key(row) for row in rows_between(m, begin, end)] for m in (one, other)]
        own, others = ([changes[key] for key in found if key in changes] for found in keys)
        return next((c for c in own if not any(contains(found, c) for found in others)), None)

    def _by_report(self, mutant: Mutant) -> Suggestion | None:
        changes = compare(self._sample, with_rule(self._sample, mutant.rule)).changes
        wanted = [c for c in changes if {"first", "set", "order"} & set(c.kinds)]
        if not wanted:
            return None
        best = min(wanted, key=lambda change: _plainness(change.request))
        return self._scenario(mutant, best.request, best.before, best.after)

    def _by_fact(self, mutant: Mutant) -> Suggestion | None:
        store = self._sample.store
        mask = self._sample.scenarios(mutant.rule.id)
        if not mask:
            return None
        number = self._plainest(mask, mutant)
        original = self._trial.advisor.ruleset.by_id[mutant.rule.id]
        tests = tuple(
            Test(fact, "is", value, text=f"is {value}") for fact, value in original.conclude.items()
        )
        expected = Expected(facts=tests)
        return self._named(mutant, store.requests[number], expected)

    def _by_order(self, mutant: Mutant) -> Suggestion | None:
        store, sample = self._sample.store, self._sample
        if self._firings is None:
            self._firings = Firings(sample, range(len(store)))
        rules = with_rule(sample, mutant.rule)
        mask = sample.scenarios(mutant.rule.id)
        firings = self._firings
        for number in _plain_first(store.requests, row_numbers(mask, len(store))):
            if number not in self._reports:
                self._reports[number] = standing(sample, firings, number)
            before, after = self._reports[number], standing(rules, firings, number)
            if before.options != after.options:
                return self._scenario(mutant, store.requests[number], before, after)
        return None

    def _scenario(
        self, mutant: Mutant, given: Given, before: Standing, after: Standing
    ) -> Suggestion:
        """Expect what differs: the first action, the order, or what an action changes."""
        actions = tuple(said.action for said in before.recommended)
        if actions != tuple(said.action for said in after.recommended):
            first = actions[0] if actions else "none"
            return self._named(mutant, given, Expected(first=first, actions=actions))
        ready = prepared(given, self._trial.advisor.knowledge)
        by_key = {option.key: option.change for option in ready.options}
        changes = {
            old.action: by_key[old.option]
            for old, new in zip(before.recommended, after.recommended, strict=True)
            if old.option != new.option
        }
        return self._named(mutant, given, Expected(changes=changes))

    def _named(self, mutant: Mutant, given: Given, expected: Expected) -> Suggestion:
        name = f"{situation(given)} ({mutant.rule.id})"
        return Suggestion(None, ScenarioCase(name, given, expected), mutant.rule)

    def _case(
        self, mutant: Mutant, number: int, change: Changed | None, *, fires: bool
    ) -> Suggestion:
        given = self._sample.store.requests[number]
        case = Case(situation(given), given, "fires" if fires else "silent", change)
        advisor = self._trial.advisor
        case, expect = plainer(case, mutant, advisor)
        return Suggestion(case, None, advisor.ruleset.by_id[mutant.rule.id], expect)

    def _plainest(self, mask: Mask, mutant: Mutant) -> int:
        """The plainest request, and one that does not lie close to a threshold."""
        store = self._sample.store
        numbers = _plain_first(store.requests, row_numbers(mask, len(store)))[:_LOOKED_AT]
        test, changed = mutant.test, mutant.changed
        if test is None or changed is None or not are_numbers(test.value, changed.value):
            return numbers[0]
        low, high = sorted((float(test.value), float(changed.value)))  # type: ignore[arg-type]  # numbers, just checked
        gap = (high - low) * _MARGIN
        for number in numbers:
            value = store.value(test.fact, number) if not of_option(test.fact) else None
            if isinstance(value, float) and low + gap <= value <= high - gap:
                return number
        return numbers[0]


def _plain_first(requests: Sequence[Given], numbers: Iterable[int]) -> list[int]:
    return sorted(numbers, key=lambda number: (_plainness(requests[number]), number))


def _plainness(given: Given) -> tuple[int, int]:
    return (len(given), len(str(given["gpu"])) + len(str(given["model"])))
