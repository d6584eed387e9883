"""Inputs of cases and scenarios that no request can have, found without estimating anything."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from advisor.errors import UserError
from advisor.knowledge.types import Knowledge
from advisor.rules.language.model import Case, Rule
from advisor.scenario.request_data import request_from
from advisor.scenario.resolve import resolve
from advisor.workbench.lint.problem import Problem, problem
from advisor.workbench.refusals import refusal
from advisor.workbench.scenario_file import ScenarioCase

_QUOTED = re.compile(r"'([^']+)'")


def refused_cases(
    rules: Sequence[Rule], knowledge: Knowledge, unread: str = ""
) -> Iterator[Problem]:
    """Find cases whose input is refused: an unknown model, a negative context.

    Args:
        rules: Whose cases.
        knowledge: What requests may name.
        unread: Knowledge that could not be read; what it names may be right.
    """
    told = set()
    for rule in rules:
        for case in rule.cases:
            said = _refusal(case, knowledge, unread)
            if said and case.source not in told:
                told.add(case.source)
                whose = rule.ladder or rule.id
                message = f"case '{case.name}' of rule '{whose}': its input is refused: {said}"
                yield problem("case-does-not-match", message, case.source, "Correct the case.")


def refused_scenarios(
    scenarios: Sequence[ScenarioCase], knowledge: Knowledge, unread: str = ""
) -> Iterator[Problem]:
    """Find scenarios whose input is refused; the arguments are those of ``refused_cases``."""
    for scenario in scenarios:
        if said := _refusal(scenario, knowledge, unread):
            message = f"scenario '{scenario.name}': its input is refused: {said}"
            hint = "Correct the scenario."
            yield problem("case-does-not-match", message, scenario.source, hint)


def _refusal(test: Case | ScenarioCase, knowledge: Knowledge, unread: str) -> str:
    try:
        resolve(request_from(test.given), knowledge)
    except UserError as error:
        named = {str(value) for value in test.given.values()} & set(_QUOTED.findall(str(error)))
        if any(name.casefold() in unread.casefold() for name in named):
            return ""
        return refusal(error)
    return "" if "gpu" in test.given else "no GPU is named."
