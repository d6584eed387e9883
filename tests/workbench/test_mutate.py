"""Mistakes put into rules: the tests that exist notice some, and a pasted case the others."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from advisor.advice import Advisor
from advisor.errors import RequestError
from advisor.rules import Test, When
from advisor.rules.language.model import Case, PerTerm, Rule, Score, WhenTerm, as_stored
from advisor.scenario.settings import request_from
from advisor.workbench.bulk import Evaluation, evaluate_all, rule_mask, with_rule
from advisor.workbench.cover import standings
from advisor.workbench.mutants import Mutant, mutants_of
from advisor.workbench.mutate import Mutation, mutate
from advisor.workbench.mutation_run import (
    Search,
    mutated_rules,
    mutation_json,
    mutation_text,
    pasted,
)
from advisor.workbench.sides import Folders
from advisor.workbench.trial import trial_of
from tests.parsed_rules import parse_rules

KINDS = {"condition", "conclusion", "score"}


def texts(rule: Rule, advisor: Advisor) -> set[str]:
    return {mutant.what for mutant in mutants_of(rule, advisor.vocabulary)}


def test_numbers_are_moved_flipped_and_dropped(advisor: Advisor) -> None:
    test = Test("gpu.tdp", "at least", 350.0, text="at least 350 W")
    rule = Rule(
        "r", "", When((test, Test("gpu.laptop", "is", value=False, text="is no"))), note="x"
    )
    assert texts(rule, advisor) == {
        "without 'gpu.tdp at least 350 W'",
        "'gpu.tdp at least 350 W' becomes 'above 350 W'",
        "'gpu.tdp at least 350 W' becomes 'below 350 W'",
        "'gpu.tdp at least 350 W' becomes 'at least 438 W'",
        "'gpu.tdp at least 350 W' becomes 'at least 280 W'",
        "without 'gpu.laptop is no'",
        "'gpu.laptop is no' becomes 'is yes'",
    } or "'gpu.tdp at least 350 W' becomes 'at least 437.5 W'" in texts(rule, advisor)


def test_lists_alternatives_and_negations_are_changed(advisor: Advisor) -> None:
    one_of = Test("fit.state", "one of", ("fits", "tight"), text="one of fits, tight")
    blocks = tuple(When((Test("request.gpus", "is", n, text=f"is {n:g}"),)) for n in (1.0, 2.0))
    none = When((Test("gpu.laptop", "is", value=True, text="is yes"),))
    found = texts(Rule("r", "", When((one_of,), (blocks,), (none,)), note="x"), advisor)
    assert "'fit.state one of fits, tight' becomes 'one of tight'" in found
    assert "'fit.state one of fits, tight' becomes 'one of fits, tight, needs_offload'" in found
    assert "without alternative 1 of 'any'" in found
    assert "'request.gpus is 2' becomes 'is 3'" in found
    assert "without 'not'" in found
    assert "inside 'not': 'gpu.laptop is yes' becomes 'is no'" in found


def test_conclusions_scores_and_superseding_are_changed(advisor: Advisor) -> None:
    when = When((Test("option.family", "is", "quantize", text="is quantize"),))
    concluding = Rule("c", "", when, conclude={"fit.state": "fits"})
    assert "concludes fit.state tight" in texts(concluding, advisor)
    score = Score(
        50.0,
        (PerTerm("option.cost", -2.0, 1000.0, "-2 per 1000 USD"),),
        (WhenTerm((Test("gpu.laptop", "is", value=True),), 5.0, "gpu.laptop is yes"),),
    )
    rule = Rule("r", "", when, action="quantize", score=score, supersedes=("other",))
    found = texts(rule, advisor)
    assert {"base 50 becomes 65", "base 50 becomes 35", "no longer supersedes other"} <= found
    assert "without '-2 per 1000 USD of option.cost'" in found
    assert "'+5 if gpu.laptop is yes' with the other sign" in found


def test_a_mutant_differs_from_its_rule_in_one_place(advisor: Advisor) -> None:
    for rule in advisor.ruleset.rules[::7]:
        for mutant in mutants_of(rule, advisor.vocabulary):
            assert mutant.kind in KINDS
            assert mutant.rule != rule
            assert mutant.rule.id == rule.id
            assert mutant.rule.per_option == rule.per_option


def tried(advisor: Advisor, evaluation: Evaluation, *names: str) -> Mutation:
    rules = [advisor.ruleset.rule(name) for name in names]
    trial = trial_of(advisor, [(rule, case) for rule in rules for case in rule.cases], [])
    assert not trial.failing()
    mutants = [m for rule in rules for m in mutants_of(rule, advisor.vocabulary)]
    return mutate(trial, evaluation, mutants)


@pytest.fixture(scope="module")
def bare(advisor: Advisor) -> Advisor:
    """The built-in rules without a single case."""
    rules = tuple(replace(rule, stored_cases=as_stored([])) for rule in advisor.ruleset.rules)
    return replace(advisor, ruleset=replace(advisor.ruleset, rules=rules))


NAMES = ("quantize-to-fit", "verdict-fits", "cache-is-large", "fit-gap-large")


@pytest.fixture(scope="module")
def uncovered(bare: Advisor, evaluation: Evaluation) -> Mutation:
    return tried(bare, evaluation, *NAMES)


def test_without_cases_nothing_is_killed(uncovered: Mutation) -> None:
    assert uncovered.killed_count == 0
    assert uncovered.survivors


def test_every_suggested_case_kills_the_mutants_it_is_said_to_kill(
    bare: Advisor, uncovered: Mutation
) -> None:
    """The text is pasted, read as a rule file is, and run."""
    for group in uncovered.survivors:
        suggestion = group.suggestion
        own = trial_of(
            bare,
            [(suggestion.rule, suggestion.case)] if suggestion.case else [],
            [suggestion.scenario] if suggestion.scenario else [],
        )
        assert not own.failing(), pasted(suggestion)
        assert all(own.failure(mutant) for mutant in group.mutants), pasted(suggestion)


def test_pasted_cases_can_be_read(bare: Advisor, uncovered: Mutation) -> None:
    for group in uncovered.survivors:
        suggestion = group.suggestion
        if suggestion.case is None or suggestion.rule.ladder:
            continue
        lines = "\n".join(f"    {line}" for line in pasted(suggestion))
        other = "silent" if suggestion.case.expect == "fires" else "fires"
        text = (
            "- rule: pasted\n  why: It is read.\n  when: {option.family: is cloud}\n  veto: So.\n"
            f"  cases:\n{lines}\n    - {{name: other, given: {{gpu: x}}, expect: {other}}}\n"
        )
        (rule,) = parse_rules({"x.yaml": text.encode()}, bare.vocabulary)
        assert dict(rule.cases[0].given) == dict(suggestion.case.given)


def test_a_pasted_case_of_a_ladder_expects_the_value_it_gives(
    bare: Advisor, uncovered: Mutation
) -> None:
    found = 0
    for group in uncovered.survivors:
        suggestion = group.suggestion
        if suggestion.case and suggestion.rule.ladder:
            advice = bare.advise(request_from(suggestion.case.given))
            (fact,) = suggestion.rule.conclude
            assert suggestion.expect == advice.facts.get(fact, "silent")
            found += 1
    assert found


def test_a_suggested_case_states_nothing_that_could_be_left_out(
    bare: Advisor, uncovered: Mutation
) -> None:
    cases = [g for g in uncovered.survivors if g.suggestion.case]
    for group in cases[::4]:
        case, rule = group.suggestion.case, group.suggestion.rule
        assert case is not None
        for key in case.given.keys() - {"gpu", "model"}:
            given = {name: value for name, value in case.given.items() if name != key}
            own = trial_of(bare, [(rule, replace(case, given=given))], [])
            assert own.failing() or not own.failure(group.mutants[0]), (case.name, key)


def test_what_is_called_the_same_is_the_same_on_the_whole_sample(
    evaluation: Evaluation, uncovered: Mutation
) -> None:
    assert uncovered.equivalent
    everything = range(len(evaluation.store))
    before = standings(evaluation, everything)
    for mutant in uncovered.equivalent[:6]:
        after = with_rule(evaluation, mutant.rule)
        for number, report in standings(after, everything).items():
            old = before[number]
            assert [(s.action, s.option) for s in report.recommended] == [
                (s.action, s.option) for s in old.recommended
            ], mutant.what
            assert report.verdict == old.verdict


def test_existing_cases_kill(advisor: Advisor, evaluation: Evaluation) -> None:
    result = tried(advisor, evaluation, "cache-is-large")
    flipped = "'memory.kv_share at least 33 %' becomes 'below 33 %'"
    assert flipped not in {m.what for group in result.survivors for m in group.mutants}
    assert result.killed["cache-is-large"] >= 2
    assert result.tried == result.killed_count + len(result.equivalent) + sum(
        len(group.mutants) for group in result.survivors
    )


def test_a_case_about_a_change_notices_a_lost_option(
    advisor: Advisor, evaluation: Evaluation
) -> None:
    rule = advisor.ruleset.rule("quantize-to-fit")
    given = {"gpu": "RTX 4090", "model": "phi-3-medium", "precision": "FP16"}
    case = Case("the gentlest", given, "fires", {"precision": "Q6_K"})
    tests = tuple(
        replace(t, value=0.001) if t.fact == "option.quality_loss" else t for t in rule.when.tests
    )
    mutant = Mutant(replace(rule, when=replace(rule.when, tests=tests)), "x", "condition")
    assert trial_of(advisor, [(rule, case)], []).failure(mutant) == "case 'the gentlest'"
    assert rule_mask(evaluation.store, mutant.rule, evaluation.concluded) != (
        evaluation.fired[rule.id].mask
    )


def test_views_add_up(uncovered: Mutation) -> None:
    text = mutation_text(uncovered)
    assert f"{uncovered.tried} mutants: 0 killed" in text
    assert "SURVIVED" in text
    assert "- name:" in text
    assert '"killed": 0' in mutation_json(uncovered)


def test_a_limit_leaves_the_rest_unlooked_at(bare: Advisor, evaluation: Evaluation) -> None:
    rule = bare.ruleset.rule("cache-is-large")
    mutants = list(mutants_of(rule, bare.vocabulary))
    result = mutate(
        trial_of(bare, [(rule, c) for c in rule.cases], []), evaluation, mutants, limit=1
    )
    assert len(result.unresolved) < len(mutants)
    assert len(result.survivors) + len(result.equivalent) == 1


def test_failing_tests_are_refused_first(rules_copy: Path, tmp_path: Path) -> None:
    path = rules_copy / "notes.yaml"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("at least 33 %", "at least 99 %"), encoding="utf-8")
    with pytest.raises(
        RequestError, match=r"tests fail with the rules as they are: .*cache-is-large"
    ):
        mutated_rules(Folders(rules_copy), tmp_path / "none", ["cache-is-large"], Search(5))


def test_an_unknown_rule_is_named(advisor: Advisor) -> None:
    with pytest.raises(RequestError, match="unknown rule 'cache-is-larg'"):
        mutated_rules(Folders(), None, ["cache-is-larg"], Search(5))


def test_the_evaluation_is_left_as_it_was(advisor: Advisor, evaluation: Evaluation) -> None:
    again = evaluate_all(evaluation.store, advisor.ruleset)
    assert {k: f.mask for k, f in again.fired.items()} == {
        k: f.mask for k, f in evaluation.fired.items()
    }
