"""What a reader would get in each scenario: verdict, recommendations in order, notes, vetoes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from copy import copy
from typing import Self

from msgspec import Struct

from advisor.advice.ranking import READ, rank
from advisor.rules.conditions import of_option
from advisor.rules.engine.base import Firing, OptionFacts
from advisor.rules.language.model import RuleSet
from advisor.workbench.bulk import Evaluation, Fired
from advisor.workbench.columns import row_numbers
from advisor.workbench.fact_store import FactStore

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
        self.scenario_facts = sorted(scored - set(self.option_facts))

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
