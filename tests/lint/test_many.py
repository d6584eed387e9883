"""What thousands of rules rest on: no case is run alone that holds, no rule is told of twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.rules.language.model import Case, Rule
from advisor.workbench.cases import CaseResult, Runner
from advisor.workbench.lint import Asked, Means, check_all

RULE = """
- rule: alike-{0}
  why: It is one of several.
  source: made up
  when: {{gpu.tdp: above {1} W, gpu.laptop: is no}}
  note: Plan for airflow.
  cases:
    - {{name: hot, given: {{gpu: RTX 4090, model: phi-3-mini}}, expect: fires}}
    - {{name: cool, given: {{gpu: RTX 4060, model: phi-3-mini}}, expect: {2}}}
"""


def checked(folder: Path, *rules: str) -> list[tuple[str, str]]:
    (folder / "own.yaml").write_text("".join(rules).lstrip(), encoding="utf-8")
    found = check_all([Asked(folder)], Means()).problems
    return [(one.lint.id, one.message) for one in found]


def test_cases_that_hold_are_tried_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[str] = []
    case = Runner.case

    def counted(runner: Runner, rule: Rule, one: Case) -> CaseResult:
        ran.append(one.name)
        return case(runner, rule, one)

    monkeypatch.setattr(Runner, "case", counted)
    assert checked(tmp_path, RULE.format(1, 300, "silent")) == []
    assert ran == []
    said = dict(checked(tmp_path, RULE.format(1, 500, "silent")))["case-does-not-match"]
    assert said.startswith("case 'hot' of rule 'alike-1': ")
    assert ran == ["hot"]


def test_each_needless_rule_is_told_once(tmp_path: Path) -> None:
    found = checked(tmp_path, *(RULE.format(number, 300, "silent") for number in range(5)))
    assert {kind for kind, _ in found} == {"same-as"}
    first = [said.partition(" fires")[0] for _, said in found]
    assert first == [f"rule 'alike-{number}'" for number in range(1, 5)]
