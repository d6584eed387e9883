"""The cases and scenarios of a rule set, ready to be tried on any number of edited rules."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from msgspec import Struct, field

from advisor.errors import RuleFileError, UserError
from advisor.options import expected_options
from advisor.pipeline import Advisor, all_option_facts, prepare
from advisor.requests import request_from
from advisor.rulefile.model import Case, Rule
from advisor.workbench.bulk import Evaluation, evaluate_all, with_rule
from advisor.workbench.diff import edits_between, touched_by_rule
from advisor.workbench.expectations import (
    Changed,
    Seen,
    Spoken,
    case_problem,
    scenario_problems,
)
from advisor.workbench.factstore import Part, joined
from advisor.workbench.mutants import Mutant
from advisor.workbench.sample import Given
from advisor.workbench.scenariofile import ScenarioCase
from advisor.workbench.standing import standings


class Trial(Struct, frozen=True):
    """Every situation that the tests speak of, as facts."""

    advisor: Advisor
    base: Evaluation
    cases: Mapping[str, Sequence[tuple[Case, int]]]
    """Rule -> its cases, each with the number of its situation."""
    scenarios: Sequence[tuple[ScenarioCase, int]]
    changes: Sequence[Mapping[str, Changed]]
    """Of each situation, what its options change."""
    refused: Sequence[str] = field(default_factory=list)
    """Situations that could not be asked, with the reason."""

    def failure(self, mutant: Mutant) -> str:
        """Name the test that fails with an edited rule; empty when all hold."""
        rule = mutant.rule
        try:
            edited = with_rule(self.base, rule)
        except RuleFileError:
            return "two rules contradict each other"
        for case, number in self.cases.get(rule.id, ()):
            ranked = case.rank is not None
            if case_problem(rule.id, case, self.seen(edited, number, rule, ranked=ranked)):
                return f"case '{case.name}'"
        return self._scenario_failure(edited, rule)

    def _scenario_failure(self, edited: Evaluation, rule: Rule) -> str:
        if not self.scenarios:
            return ""
        before = {rule.id: self.base.ruleset.by_id[rule.id]}
        touched = 0
        edits = edits_between(before, {rule.id: rule})
        for mask in touched_by_rule(self.base, edited, edits).values():
            touched |= mask
        for scenario, number in self.scenarios:
            if touched >> (8 * number) & 1:
                seen = self.seen(edited, number, None, ranked=True)
                if any(scenario_problems(scenario.expected, seen, self.advisor.vocabulary)):
                    return f"scenario '{scenario.name}'"
        return ""

    def seen(self, evaluation: Evaluation, number: int, only: Rule | None, *, ranked: bool) -> Seen:
        """Read off what tests look at.

        Args:
            evaluation: The rules, tried on this trial's situations.
            number: The situation.
            only: Look at the firings of this rule alone.
            ranked: Whether recommendations and notes are wanted.
        """
        fired: dict[str, Sequence[Changed]] = {}
        for rule_id in [only.id] if only else evaluation.fired:
            own = self._fired(evaluation, rule_id, number)
            if own is not None:
                fired[rule_id] = own
        if not ranked:
            return Seen("", (), (), fired, {})
        report = standings(evaluation, [number])[number]
        changes = self.changes[number]
        facts = evaluation.store.facts(number)
        for fact in evaluation.concluded:
            value = evaluation.conclusion(fact, number)
            if value is not None:
                facts[fact] = value
        said = [Spoken(s.rule, s.action, changes[s.option]) for s in report.recommended]
        return Seen(report.verdict, said, report.notes, fired, facts)

    def _fired(self, evaluation: Evaluation, rule_id: str, number: int) -> list[Changed] | None:
        found = evaluation.fired[rule_id]
        if not found.per_option:
            return [] if found.mask >> (8 * number) & 1 else None
        store, keys = evaluation.store, self.changes[number]
        rows = range(store.starts[number], store.starts[number + 1])
        own = [keys[store.key(row)] for row in rows if found.mask >> (8 * row) & 1]
        return own or None

    def failing(self) -> Sequence[str]:
        """Name the tests that fail with the rules as they are."""
        found = list(self.refused)
        for rule in self.base.ruleset.rules:
            for case, number in self.cases.get(rule.id, ()):
                seen = self.seen(self.base, number, rule, ranked=case.rank is not None)
                if problem := case_problem(rule.id, case, seen):
                    found.append(f"{case.source}: {rule.id}: {case.name}: {problem}")
        for scenario, number in self.scenarios:
            seen = self.seen(self.base, number, None, ranked=True)
            problems = scenario_problems(scenario.expected, seen, self.advisor.vocabulary)
            found += [f"{scenario.source}: {scenario.name}: {p}" for p in problems]
        return found


def trial_of(
    advisor: Advisor,
    cases: Sequence[tuple[Rule, Case]],
    scenarios: Sequence[ScenarioCase],
) -> Trial:
    """Work out the facts of every situation once.

    Raises:
        RuleFileError: The rules cannot be run on them.
    """
    places = _Situations(advisor)
    by_rule: dict[str, list[tuple[Case, int]]] = {}
    for rule, case in cases:
        number = places.number(case.given, f"{case.source}: {rule.id}: {case.name}")
        if number is not None:
            by_rule.setdefault(rule.id, []).append((case, number))
    whole = [
        (scenario, number)
        for scenario in scenarios
        if (number := places.number(scenario.given, f"{scenario.source}: {scenario.name}"))
        is not None
    ]
    base = evaluate_all(joined([places.part]), advisor.ruleset)
    return Trial(advisor, base, by_rule, whole, places.changes, places.refused)


class _Situations(Struct):
    advisor: Advisor
    part: Part = field(default_factory=Part)
    changes: list[Mapping[str, Changed]] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    known: dict[str, int | None] = field(default_factory=dict)

    def number(self, given: Given, where: str) -> int | None:
        key = json.dumps(dict(given), sort_keys=True)
        if key not in self.known:
            self.known[key] = self._added(given, where)
        return self.known[key]

    def _added(self, given: Given, where: str) -> int | None:
        try:
            ready = prepare(request_from(given), self.advisor.knowledge)
        except UserError as error:
            self.refused.append(f"{where}: its input is refused: {error}")
            return None
        self.part.take(given, ready.facts, all_option_facts(ready))
        changes = {option.key: option.change for option in ready.options}
        changes |= {option.key: option.change for option in expected_options(ready.base)}
        self.changes.append(changes)
        return len(self.changes) - 1
