"""Run the cases that stand beside the rules, on real inputs through the whole pipeline."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from advisor.advice import Advice
from advisor.errors import RuleFileError, UserError
from advisor.pipeline import Advisor
from advisor.requests import request_from
from advisor.rulefile.model import Case, Rule
from advisor.workbench.whynot import why_not_lines


@dataclass(frozen=True, slots=True)
class CaseResult:
    """One case: ``problem`` is empty when it holds."""

    rule: str
    case: Case
    problem: str
    details: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether the case holds."""
        return not self.problem


def run_cases(advisor: Advisor, rules: frozenset[str] | None = None) -> Iterator[CaseResult]:
    """Run every case of every rule, or of the rules named."""
    for rule in advisor.ruleset.rules:
        if rules is None or rule.id in rules or rule.ladder in rules:
            for case in rule.cases:
                yield run_case(advisor, rule, case)


def run_case(advisor: Advisor, rule: Rule, case: Case) -> CaseResult:
    """Run one case."""
    try:
        advice = advisor.advise(request_from(case.given, source=case.source))
    except RuleFileError:
        raise
    except UserError as error:
        return CaseResult(rule.id, case, f"its input is refused: {error}")
    if rule.veto:
        advice = advisor.with_expected(advice)
    fired = [key for rule_id, key in advice.fired if rule_id == rule.id]
    if case.expect == "silent":
        return CaseResult(rule.id, case, "it fires" if fired else "")
    if not fired:
        return CaseResult(rule.id, case, "it stays silent", why_not_lines(advisor, advice, rule))
    return CaseResult(rule.id, case, _mismatch(advice, case, rule.id, fired))


def _mismatch(advice: Advice, case: Case, rule_id: str, fired: list[str]) -> str:
    changes = {option.key: option.change for option in advice.options}
    changes |= {item.option.key: item.option.change for item in advice.not_recommended}
    if case.change is not None and not any(
        _contains(changes[key], case.change) for key in fired if key
    ):
        return f"it fires, but for no option that changes {dict(case.change)}"
    if case.rank is not None:
        ranks = [r.rank for r in advice.recommendations if r.rule == rule_id]
        if case.rank not in ranks:
            return f"it is ranked {ranks[0] if ranks else 'nowhere'}, not {case.rank}"
    if case.says is not None:
        from advisor.render import document  # noqa: PLC0415  most cases need no prose

        texts = [
            str(item["text"])
            for part in ("recommendations", "notes")
            for item in document(advice)[part]
            if item["rule"] == rule_id
        ]
        if not any(case.says in text for text in texts):
            return f"its text does not say '{case.says}'"
    return ""


def _contains(change: Mapping[str, object], wanted: Mapping[str, object]) -> bool:
    return all(str(change.get(key)) == str(value) for key, value in wanted.items())
