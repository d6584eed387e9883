"""The cases and scenarios of a rule set, ready to be tried on any number of edited rules."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from msgspec import Struct, field
from msgspec.structs import replace

from advisor.advice import Advisor
from advisor.advice.preparation import all_option_facts
from advisor.errors import RuleFileError, UserError
from advisor.knowledge.vocabulary import FactValue, show
from advisor.remedies.impossible import expected_options
from advisor.rules.language.model import Case, Rule
from advisor.workbench.bulk import Evaluation, evaluate_all, shown_mask, with_rule
from advisor.workbench.columns import rows_between
from advisor.workbench.cover import Firings, standing
from advisor.workbench.diff import edits_between, touched_by_rule
from advisor.workbench.expectations import (
    Changed,
    Seen,
    Spoken,
    case_problem,
    prepared,
    scenario_problems,
)
from advisor.workbench.fact_store import Given, Part, joined
from advisor.workbench.mutants import Mutant
from advisor.workbench.scenario_file import ScenarioCase


class Trial(Struct, frozen=True, dict=True):
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
    read: dict[int, dict[str, FactValue]] = field(default_factory=dict)
    """Facts of situations that were read before."""

    def failure(self, mutant: Mutant) -> str:
        """Name the test that fails with an edited rule; empty when all hold."""
        rule = mutant.rule
        try:
            edited = with_rule(self.base, rule)
        except RuleFileError:
            return "two rules contradict each other"
        sight = Sight(self, edited)
        for case, number in self.cases.get(rule.id, ()):
            if case_problem(rule.id, case, sight.of_case(rule, case, number)):
                return f"case '{case.name}'"
        return self._scenario_failure(sight, rule)

    def _scenario_failure(self, sight: Sight, rule: Rule) -> str:
        if not self.scenarios:
            return ""
        before = {rule.id: self.base.ruleset.by_id[rule.id]}
        touched = 0
        edits = edits_between(before, {rule.id: rule})
        for mask in touched_by_rule(self.base, sight.evaluation, edits).values():
            touched |= mask
        for scenario, number in self.scenarios:
            if touched >> (8 * number) & 1:
                seen = sight.of_report(number)
                if any(scenario_problems(scenario.expected, seen, self.advisor.vocabulary)):
                    return f"scenario '{scenario.name}'"
        return ""

    def facts(self, number: int) -> dict[str, FactValue]:
        """Give the facts of one situation, without those that rules conclude."""
        found = self.read.get(number)
        if found is None:
            found = self.read[number] = self.base.store.facts(number)
        return dict(found)

    @cached_property
    def firings(self) -> Firings:
        """What fires, with the rules as they are, where a test looks at the whole report."""
        ranked = [n for own in self.cases.values() for case, n in own if case.rank is not None]
        return Firings(self.base, sorted({*ranked, *(n for _, n in self.scenarios)}))

    def holding(self) -> Iterator[Case]:
        """Give the cases that hold with the rules as they are."""
        sight = Sight(self, self.base)
        for rule in self.base.ruleset.rules:
            for case, number in self.cases.get(rule.id, ()):
                if not case_problem(rule.id, case, sight.of_case(rule, case, number)):
                    yield case

    def failing(self) -> Sequence[str]:
        """Name the tests that fail with the rules as they are."""
        found = list(self.refused)
        sight = Sight(self, self.base)
        for rule in self.base.ruleset.rules:
            for case, number in self.cases.get(rule.id, ()):
                if problem := case_problem(rule.id, case, sight.of_case(rule, case, number)):
                    found.append(f"{case.source}: {rule.id}: {case.name}: {problem}")
        for scenario, number in self.scenarios:
            seen = sight.of_report(number)
            problems = scenario_problems(scenario.expected, seen, self.advisor.vocabulary)
            found += [f"{scenario.source}: {scenario.name}: {p}" for p in problems]
        return found


class Sight:
    """What tests look at, with one rule set on a trial's situations."""

    def __init__(self, trial: Trial, evaluation: Evaluation) -> None:
        self.trial, self.evaluation = trial, evaluation

    def of_case(self, rule: Rule, case: Case, number: int) -> Seen:
        """Read off what a case looks at: its own rule, and with a rank the whole report."""
        if case.rank is not None:
            return self.of_report(number)
        own = self._fired(rule.id, number)
        offered = self.trial.changes[number].values() if case.change is not None else ()
        return Seen("", (), (), {} if own is None else {rule.id: own}, {}, list(offered))

    def of_report(self, number: int) -> Seen:
        """Read off everything that a scenario looks at."""
        evaluation, changes = self.evaluation, self.trial.changes[number]
        report = standing(evaluation, self._firings, number)
        facts = self.trial.facts(number)
        for fact in evaluation.concluded:
            value = evaluation.conclusion(fact, number)
            if value is not None:
                facts[fact] = value
        said = [Spoken(s.rule, s.action, changes[s.option]) for s in report.recommended]
        return Seen(report.verdict, said, report.notes, self._fired_in(number), facts)

    def _fired_in(self, number: int) -> dict[str, Sequence[Changed]]:
        """Give the rules that fire in one situation, without vetoes on what cannot run."""
        store, changes = self.evaluation.store, self.trial.changes[number]
        fired: dict[str, Sequence[Changed]] = {}
        for rule, rows in self._firings.fired(number).items():
            run = [row for row in rows if store.value("option.runs", row) is not False]
            if run or not rows:
                fired[rule] = [changes[store.key(row)] for row in run]
        return fired

    @cached_property
    def _firings(self) -> Firings:
        return self.trial.firings.edited(self.evaluation)

    def _fired(self, rule_id: str, number: int) -> list[Changed] | None:
        found, store = self.evaluation.fired[rule_id], self.evaluation.store
        if not found.per_option:
            return [] if found.mask >> (8 * number) & 1 else None
        begin, end = store.starts[number], store.starts[number + 1]
        changes = self.trial.changes[number]
        mask = shown_mask(self.evaluation, found.rule, found.mask)
        return [changes[store.key(row)] for row in rows_between(mask, begin, end)] or None


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
            ready = prepared(given, self.advisor.knowledge)
        except UserError as error:
            self.refused.append(f"{where}: its input is refused: {error}")
            return None
        self.part.take(given, ready.facts, all_option_facts(ready))
        changes = {option.key: option.change for option in ready.options}
        changes |= {option.key: option.change for option in expected_options(ready.base)}
        self.changes.append(changes)
        return len(self.changes) - 1


_KEPT = ("gpu", "model")


def plainer(case: Case, mutant: Mutant, advisor: Advisor) -> tuple[Case, str]:
    """Shorten a case as long as it holds and kills, and name it.

    The name of the case is not read; the rules are as they are, without the mutant.

    Returns:
        The case, and what it expects as it is written: of a ladder, one of its values.
    """
    rule = advisor.ruleset.by_id[mutant.rule.id]
    trial = trial_of(advisor, [(rule, case)], [])
    tried = {str(case.given)}
    found = True
    while found:
        found = False
        for given in _shorter(case.given, rule):
            if str(given) in tried:
                continue
            tried.add(str(given))
            other = replace(case, given=given)
            own = trial_of(advisor, [(rule, other)], [])
            if not own.failing() and own.failure(mutant):
                case, trial, found = other, own, True
                break
    named = replace(case, name=f"{situation(case.given)}{_deciding(mutant, trial)}")
    return named, _written(rule, case, trial.base)


def _shorter(given: Given, rule: Rule) -> Iterator[Given]:
    """Without one input each, the last first; then with what the rule's cases ask about."""
    for key in reversed(list(given)):
        if key not in _KEPT:
            yield {name: value for name, value in given.items() if name != key}
    for key in _KEPT:
        known = list(dict.fromkeys(c.given[key] for c in rule.cases if key in c.given))
        if given[key] not in known:
            yield from ({**given, key: value} for value in known)


def situation(given: Given) -> str:
    """Name a request by what it asks for: ``Qwen3-8B in Q4_K_M on RTX 3060``."""
    precision = f" in {given['precision']}" if "precision" in given else ""
    rest = [
        f"{key.replace('_', ' ')} {value}"
        for key, value in given.items()
        if key not in {"gpu", "model", "precision"}
    ]
    more = f", {', '.join(rest)}" if rest else ""
    return f"{given['model']}{precision} on {given['gpu']}{more}"


def _deciding(mutant: Mutant, trial: Trial) -> str:
    """The value that decides, for the name of a case."""
    test = mutant.test
    if test is None or test.fact.startswith("option."):
        return ""
    value = trial.base.conclusion(test.fact, 0)
    if value is None:
        value = trial.base.store.value(test.fact, 0)
    fact = trial.advisor.vocabulary.fact(test.fact)
    shown = "unknown" if value is None else show(fact, value)
    return f", {test.fact} {shown}"


def _written(rule: Rule, case: Case, evaluation: Evaluation) -> str:
    """A ladder's case names the value that the ladder gives there."""
    if rule.ladder is None:
        return case.expect
    for fact in rule.conclude:
        for other in evaluation.ruleset.rules:
            if other.ladder == rule.ladder and evaluation.scenarios(other.id) & 1:
                return str(other.conclude[fact])
    return "silent"
