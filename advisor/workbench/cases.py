"""Run the cases beside the rules and the scenario files, on real inputs through the pipeline."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from xml.sax.saxutils import escape, quoteattr

from msgspec import Struct, field
from msgspec.structs import replace

from advisor.advice import Advisor
from advisor.advice.conclusions import Conclusions
from advisor.advice.preparation import Prepared
from advisor.errors import RuleFileError, Source, UserError
from advisor.knowledge.layers import Stack
from advisor.report.assembly import document
from advisor.rules.engine import make_engine
from advisor.rules.language.model import Case, Rule, RuleSet
from advisor.workbench.cover import VERDICT
from advisor.workbench.expectations import (
    Seen,
    case_problem,
    kept_of,
    prepared,
    refusal,
    scenario_problems,
    seen_in,
)
from advisor.workbench.explanation import fate, why_lines, why_not_lines
from advisor.workbench.scenario_file import ScenarioCase

_MOST_KEYS = 5
"""What-ifs that a failure names."""
_MOST_WORDS = 240
"""Characters of a text that a failure quotes."""
_BUILT_IN = (
    "the case is of a built-in rule, which rules of yours stand beside: if the change is meant, "
    "replace the rule by one with cases of your own"
)


class CaseResult(Struct, frozen=True):
    """One test: ``problem`` is empty when it holds."""

    rule: str
    """The rule it stands beside; empty for a scenario."""
    name: str
    source: Source | None
    problem: str
    details: tuple[str, ...] = ()
    unanswered: bool = False
    """Whether the rules gave no answer: they contradict each other, or none gives the verdict."""

    @property
    def ok(self) -> bool:
        """Whether the test holds."""
        return not self.problem

    @property
    def title(self) -> str:
        """The rule and the case, or the scenario."""
        return f"{self.rule}: {self.name}" if self.rule else f"scenario {self.name}"


class Runner(Struct):
    """Runs tests; what is kept of their requests outlives an edit of the rules."""

    advisor: Advisor
    templates: Stack = None
    """A user's templates in front of the built-in ones."""
    lesser: dict[frozenset[str], Runner] = field(default_factory=dict)
    """Runners without some rules, by the ids of these."""

    def cases(self, rules: Collection[str] | None = None) -> Iterator[CaseResult]:
        """Run every case of every rule, or of those with these ids."""
        for rule in self.advisor.ruleset.rules:
            if rules is None or rule.id in rules:
                yield from (self.case(rule, case) for case in rule.cases)

    def case(self, rule: Rule, case: Case) -> CaseResult:
        """Run one case."""
        try:
            advice = self._advice(case.given, case.source, complete=bool(rule.veto))
        except RuleFileError as error:
            return self._apart(rule, case, error)
        except UserError as error:
            return _refused(rule.id, case, error)
        problem = case_problem(rule.id, case, seen_in(advice)) or self._unsaid(advice, case, rule)
        details = self._why(advice, case, rule) if problem else ()
        if problem and rule.overlay is None and self.advisor.ruleset.user_rules:
            details = (*details, _BUILT_IN)
        return CaseResult(rule.id, case.name, case.source, problem, details)

    def scenarios(self, scenarios: Sequence[ScenarioCase]) -> Iterator[CaseResult]:
        """Run scenarios of scenario files."""
        return (self.scenario(scenario) for scenario in scenarios)

    def scenario(self, scenario: ScenarioCase) -> CaseResult:
        """Run one scenario; a failure lists the conditions of the rules that are missing."""
        try:
            advice = self._advice(scenario.given, scenario.source)
        except RuleFileError as error:
            return _unanswered("", scenario, error)
        except UserError as error:
            return _refused("", scenario, error)
        found = scenario_problems(scenario.expected, seen_in(advice), self.advisor.vocabulary)
        first, *rest = [*found] or [""]
        missing = _missing(self.advisor, advice, scenario) if first else ()
        details = (*rest, *missing)
        return CaseResult("", scenario.name, scenario.source, first, details)

    def seen(self, scenario: ScenarioCase) -> Seen | None:
        """Give what a scenario's report says now; None where there is no report."""
        try:
            return seen_in(self._advice(scenario.given, scenario.source))
        except UserError:
            return None

    def known_facts(self, given: Mapping[str, object]) -> Prepared | None:
        """Give what was worked out for a request; None: nothing yet, or it is refused."""
        return kept_of(given, self.advisor.knowledge)

    def _advice(
        self, given: Mapping[str, object], source: Source | None, *, complete: bool = False
    ) -> Conclusions:
        ready = prepared(given, self.advisor.knowledge, source)
        return self.advisor.advise_on(ready, complete=complete)

    def _apart(self, rule: Rule, case: Case, error: RuleFileError) -> CaseResult:
        """Say what is wrong with a case beside a contradiction that leaves it without an answer."""
        unanswered = _unanswered(rule.id, case, error)
        left_out = _contradicting(self.advisor.ruleset, error)
        if not left_out or rule.id in left_out:
            return unanswered
        if left_out not in self.lesser:
            self.lesser[left_out] = Runner(_without(self.advisor, left_out), self.templates)
        found = self.lesser[left_out].case(rule, case)
        if found.ok or found.unanswered:
            return unanswered
        return replace(found, details=(*found.details, f"besides, {unanswered.problem}"))

    def _why(self, advice: Conclusions, case: Case, rule: Rule) -> tuple[str, ...]:
        """Say why a rule stayed silent, or what let it fire where it should not."""
        if not any(rule_id == rule.id for rule_id, _ in advice.fired):
            return why_not_lines(self.advisor, advice, rule)
        if case.expect == "silent":
            return why_lines(self.advisor, advice, rule)
        if case.rank is not None:
            return tuple(fate(advice, rule))
        keys = sorted(key for rule_id, key in advice.fired if rule_id == rule.id and key)
        return _fired_for(keys) if case.change is not None else ()

    def _unsaid(self, advice: Conclusions, case: Case, rule: Rule) -> str:
        if case.says is None:
            return ""
        try:
            made = document(advice, templates=self.templates)
        except UserError as error:
            return f"its text cannot be written: {error}"
        texts = [
            *(item.text for item in made.recommendations if item.rule == rule.id),
            *(note.text for note in made.notes if note.rule == rule.id),
        ]
        if any(case.says in text for text in texts):
            return ""
        if not texts:
            return f"it is not said, so its text cannot say '{case.says}'"
        return f"its text does not say '{case.says}', but '{_shortened(texts[0])}'"


def _contradicting(ruleset: RuleSet, error: RuleFileError) -> frozenset[str]:
    """Name the rules that may contradict others here: the user's own of that fact, where any."""
    blamed = [rule for rule in ruleset.rules if rule.source == error.source and rule.conclude]
    if error.lint != "contradictory-conclude" or not blamed:
        return frozenset()
    facts = blamed[0].conclude.keys()
    users = frozenset(rule.id for rule in ruleset.user_rules if rule.conclude.keys() & facts)
    return users or frozenset({blamed[0].id})


def _without(advisor: Advisor, left_out: Collection[str]) -> Advisor:
    kept = tuple(rule for rule in advisor.ruleset.rules if rule.id not in left_out)
    ruleset = replace(advisor.ruleset, rules=kept)
    return replace(advisor, ruleset=ruleset, engine=make_engine(ruleset, prefer="reference"))


def _shortened(text: str) -> str:
    return text if len(text) <= _MOST_WORDS else f"{text[:_MOST_WORDS]}..."


def _fired_for(keys: Sequence[str]) -> tuple[str, ...]:
    more = f" and {len(keys) - _MOST_KEYS} more" if len(keys) > _MOST_KEYS else ""
    return (f"it fires for {', '.join(keys[:_MOST_KEYS])}{more}",)


def _refused(rule: str, test: Case | ScenarioCase, error: UserError) -> CaseResult:
    return CaseResult(rule, test.name, test.source, f"its input is refused: {refusal(error)}")


def _unanswered(rule: str, test: Case | ScenarioCase, error: RuleFileError) -> CaseResult:
    """The rules give no answer to this request; other requests may well have one."""
    said = f"{error.message.removesuffix('.')}. {error.hint}".rstrip()
    return CaseResult(rule, test.name, test.source, said, unanswered=True)


def _missing(advisor: Advisor, advice: Conclusions, scenario: ScenarioCase) -> Iterator[str]:
    """Why the rules stayed silent that would have given what was expected."""
    fired = {rule_id for rule_id, _ in advice.fired}
    for rule in _wanted(advisor, advice, scenario):
        if rule.id not in fired:
            lines = why_not_lines(advisor, advice, rule)
            yield from (f"{rule.id}: {line}" for line in lines)


def _wanted(advisor: Advisor, advice: Conclusions, scenario: ScenarioCase) -> Iterator[Rule]:
    expected = scenario.expected
    facts = {test.fact: test.value for test in expected.facts if test.verb == "is"}
    if expected.verdict is not None:
        facts[VERDICT] = expected.verdict
    wrong = {fact: value for fact, value in facts.items() if advice.facts.get(fact) != value}
    said = {recommendation.option.action for recommendation in advice.recommendations}
    actions = {expected.first, *(expected.actions or ()), *expected.changes} - said - {None}
    asked = {*(expected.notes or ()), *expected.fires}
    for rule in advisor.ruleset.rules:
        concludes = any(rule.conclude.get(fact) == value for fact, value in wrong.items())
        if concludes or rule.action in actions or rule.id in asked:
            yield rule


_ILLEGAL = dict.fromkeys([*range(9), 11, 12, *range(14, 32)])


def junit_xml(results: Sequence[CaseResult]) -> str:
    """Write results: one suite for each file, one test for each case, no times."""
    suites: dict[str, list[CaseResult]] = defaultdict(list)
    for result in results:
        suites[result.source.file if result.source else "rules"].append(result)
    failed = sum(not result.ok for result in results)
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<testsuites name="advisor rules" tests="{len(results)}" failures="{failed}">',
    ]
    for file, own in suites.items():
        failures = sum(not result.ok for result in own)
        lines.append(
            f'  <testsuite name={_attribute(file)} tests="{len(own)}" failures="{failures}">'
        )
        for result in own:
            lines += _test(result)
        lines.append("  </testsuite>")
    return "\n".join([*lines, "</testsuites>"]) + "\n"


def _test(result: CaseResult) -> list[str]:
    line = f' line="{result.source.line}"' if result.source else ""
    file = f" file={_attribute(result.source.file)}" if result.source else ""
    kind = _attribute(result.rule or "scenario")
    head = f"    <testcase classname={kind} name={_attribute(result.name)}{file}{line}"
    if result.ok:
        return [f"{head}/>"]
    text = escape("\n".join([result.problem, *result.details]).translate(_ILLEGAL))
    failure = f"      <failure message={_attribute(result.problem)}>{text}</failure>"
    return [f"{head}>", failure, "    </testcase>"]


def _attribute(text: str) -> str:
    return quoteattr(text.translate(_ILLEGAL), {"\n": "&#10;"})
