"""What mutants are tried on is what ``advisor rules test`` sees, also where rules were edited."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from advisor.advice import Advisor
from advisor.knowledge.vocabulary import FactValue
from advisor.rules import When
from advisor.rules.language.model import Case
from advisor.scenario.settings import request_from
from advisor.workbench.bulk import Evaluation, with_rule
from advisor.workbench.cases import Runner
from advisor.workbench.cover import Firings, standing, standings
from advisor.workbench.expectations import Changed, case_problem, seen_in
from advisor.workbench.mutants import Mutant, mutants_of
from advisor.workbench.trial import Sight, Trial, trial_of
from tests.parsed_rules import parse_rules

MANY = "no-fp4-without-fp4-units"
GIVEN = (
    {"gpu": "GTX 1080 Ti", "model": "mixtral-8x22b", "framework": "TGI"},
    {"gpu": "RTX 4090", "model": "llama-3-8b", "precision": "Q4_K_M"},
    {"gpu": "Apple M2 Pro", "model": "llama-3-8b"},
    {"gpu": "RTX 3090", "gpus": 2, "model": "llama-3.1-70b", "precision": "Q4_K_M"},
)


def sight_of(advisor: Advisor, given: Changed) -> tuple[Trial, Sight]:
    rule = advisor.ruleset.rule(MANY)
    trial = trial_of(advisor, [(rule, Case("x", dict(given), "fires"))], ())
    return trial, Sight(trial, trial.base)


@pytest.mark.parametrize("given", GIVEN)
def test_a_trial_sees_of_each_rule_what_a_report_names(advisor: Advisor, given: Changed) -> None:
    advice = advisor.advise(request_from(given))
    plain, vetoes = seen_in(advice).fired, seen_in(advisor.with_expected(advice)).fired
    _, sight = sight_of(advisor, given)
    for rule in advisor.ruleset.rules:
        wanted = (vetoes if rule.veto else plain).get(rule.id)
        seen = sight.of_case(rule, Case("x", dict(given), "fires"), 0).fired.get(rule.id)
        assert by_text(seen) == by_text(wanted), rule.id


def by_text(changes: object) -> object:
    assert changes is None or isinstance(changes, list)
    return None if changes is None else sorted(str(sorted(dict(c).items())) for c in changes)


def test_only_vetoes_are_tried_on_what_cannot_run(advisor: Advisor) -> None:
    """A recommendation that lost every condition still says nothing about it."""
    trial, _ = sight_of(advisor, GIVEN[1])
    rule = advisor.ruleset.rule("quantize-to-fit")
    (family,) = [test for test in rule.when.tests if test.fact == "option.family"]
    edited = with_rule(trial.base, replace(rule, when=When((family,))))
    seen = Sight(trial, edited).of_case(rule, Case("x", dict(GIVEN[1]), "fires"), 0).fired
    advice = advisor.advise(request_from(GIVEN[1]))
    tried = [option.change for option in advice.options if option.action == "quantize"]
    assert by_text(seen[rule.id]) == by_text(tried)


def test_firings_taken_over_are_those_worked_out_afresh(
    advisor: Advisor, evaluation: Evaluation
) -> None:
    numbers = range(0, len(evaluation.store), 10)
    base = Firings(evaluation, numbers)
    for name in ("quantize-to-fit", "verdict-tight", "no-empty-card"):
        for mutant in list(mutants_of(advisor.ruleset.rule(name), advisor.vocabulary))[::6]:
            try:
                after = with_rule(evaluation, mutant.rule)
            except Exception as error:  # noqa: BLE001  a mutant may contradict another rule
                assert "concludes" in str(error)  # noqa: PT017
                continue
            taken = base.edited(after)
            fresh = standings(after, numbers)
            assert {n: standing(after, taken, n) for n in numbers} == fresh, mutant.what
            again = Firings(after, numbers)
            assert {n: taken.fired(n) for n in numbers} == {n: again.fired(n) for n in numbers}


RULE = """
- rule: small-cache
  why: A cache of eight bits.
  source: x
  when: {option.family: is quantize-kv, option.kv_bits: at least 8 bit}
  veto: Not here.
  cases:
    - {name: some, given: {gpu: RTX 4090, model: llama-3-8b, precision: Q8_0}, expect: fires}
    - name: four bits are left alone
      given: {gpu: RTX 4090, model: llama-3-8b, precision: Q8_0}
      expect: silent
      change: {kv_cache: CACHE}
"""


@pytest.mark.parametrize(
    ("cache", "problem"),
    [
        ("q4_0", ""),
        ("q8_0", "it fires for an option that changes {'kv_cache': 'q8_0'}"),
        ("q1_0", "nothing was tried that changes {'kv_cache': 'q1_0'}"),
    ],
)
def test_a_rule_may_be_silent_about_one_change(advisor: Advisor, cache: str, problem: str) -> None:
    (rule,) = parse_rules({"x.yaml": RULE.replace("CACHE", cache).encode()}, advisor.vocabulary)
    ruleset = replace(advisor.ruleset, rules=(*advisor.ruleset.rules, rule))
    own = replace(advisor, ruleset=ruleset)
    trial = trial_of(own, [(rule, case) for case in rule.cases], ())
    sight = Sight(trial, trial.base)
    found = [case_problem(rule.id, c, sight.of_case(rule, c, 0)) for c in rule.cases]
    assert found == ["", problem]


def test_a_run_of_the_tests_sees_the_same_silence(advisor: Advisor) -> None:
    rule = advisor.ruleset.rule("format-of-other-cards")
    given = dict(GIVEN[2])
    advice = advisor.with_expected(advisor.advise(request_from(given)))
    (barred, *_) = seen_in(advice).fired[rule.id]
    run = Runner(advisor)
    assert run.case(rule, Case("x", given, "silent", {"framework": "SGLang"})).ok
    said = run.case(rule, Case("x", given, "silent", barred)).problem
    assert said == f"it fires for an option that changes {dict(barred)}"
    none = run.case(rule, Case("x", given, "silent", {"precision": "Q9"})).problem
    assert none == "nothing was tried that changes {'precision': 'Q9'}"


def test_silence_about_a_change_notices_one_option_too_many(advisor: Advisor) -> None:
    rule = advisor.ruleset.rule("format-of-other-cards")
    given = {"gpu": "Apple M2 Pro", "model": "llama-3-8b", "precision": "FP16"}
    case = Case("x", given, "silent", {"framework": "SGLang"})
    trial = trial_of(advisor, [(rule, case)], ())
    assert not trial.failing()
    rest = tuple(test for test in rule.when.tests if test.fact != "option.family")
    mutant = Mutant(replace(rule, when=When(rest)), "without the family", "condition")
    assert trial.failure(mutant) == "case 'x'"
    facts: dict[str, FactValue] = trial.facts(0)
    assert facts["gpu.vendor"] == "Apple"
