"""Why a rule is silent, what would make it fire, and what surrounds a fact."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from advisor.advice import Advisor
from advisor.rules.language.model import Rule
from advisor.scenario.resolve import apply_change
from advisor.scenario.settings import Request
from advisor.workbench.dependencies import fact_use, needs_options
from advisor.workbench.explanation import explanation
from advisor.workbench.nearest import smallest_changes

FITS = Request(gpu="RTX 4090", model="llama-3-8b", precision="Q8_0")


def fires(advisor: Advisor, request: Request, rule: Rule) -> bool:
    return rule.id in {rule_id for rule_id, _ in advisor.advise(request).fired}


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("long-context-slows", "context"),
        ("workload-serving", "batch"),
        ("verdict-tight", "context"),
        ("format-costs-quality", "precision"),
        ("quantize-to-fit", "context"),
    ],
)
def test_every_change_named_makes_the_rule_fire(advisor: Advisor, name: str, key: str) -> None:
    rule = advisor.ruleset.rule(name)
    assert not fires(advisor, FITS, rule)
    changes = smallest_changes(advisor, FITS, rule)
    assert key in {change.key for change in changes}
    for change in changes:
        assert fires(advisor, apply_change(FITS, {change.key: change.value}), rule), change
    assert list(changes) == sorted(changes, key=lambda change: change.order)


def test_the_change_of_a_number_is_the_smallest(advisor: Advisor) -> None:
    serving = advisor.ruleset.rule("workload-serving")
    (batch,) = [c for c in smallest_changes(advisor, FITS, serving) if c.key == "batch"]
    assert batch.value == 4
    slow = advisor.ruleset.rule("long-context-slows")
    (context,) = [c for c in smallest_changes(advisor, FITS, slow) if c.key == "context"]
    assert context.value == 16384
    tight = advisor.ruleset.rule("verdict-tight")
    (context,) = [c for c in smallest_changes(advisor, FITS, tight) if c.key == "context"]
    assert isinstance(context.value, int)
    assert not fires(advisor, replace(FITS, context=context.value - 512), tight)


def test_a_rule_that_nothing_can_wake_has_no_change(advisor: Advisor) -> None:
    """An image model stays one whatever else changes."""
    assert not smallest_changes(advisor, FITS, advisor.ruleset.rule("workload-vision"))


def test_a_silent_rule_is_explained_with_distances(advisor: Advisor) -> None:
    rule = advisor.ruleset.rule("cache-is-large")
    advice = advisor.advise(FITS)
    text = explanation(advisor, advice, rule, smallest_changes(advisor, FITS, rule))
    assert "It stays silent." in text
    assert "fails  memory.kv_share is" in text
    assert "short by" in text
    assert "The smallest single change that makes it fire: --" in text


def test_a_rule_that_fires_says_what_became_of_it(advisor: Advisor) -> None:
    request = Request(gpu="RTX 4090", model="phi-3-medium", precision="FP16")
    advice = advisor.advise(request)
    said = advice.recommendations[0]
    text = explanation(advisor, advice, advisor.ruleset.rule(said.rule), ())
    assert f"Said as number 1: {said.option.key}, score {said.score:g}" in text
    beaten = explanation(advisor, advice, advisor.ruleset.rule("quantize-unmeasured-to-fit"), ())
    assert "Not said: quantize-to-fit has a better quantize" in beaten
    concluded = explanation(advisor, advice, advisor.ruleset.rule("weights-exceed-memory"), ())
    assert "It fires: fit.cause is weights." in concluded


def test_a_fact_names_its_makers_and_its_readers(advisor: Advisor) -> None:
    use = fact_use("memory.deficit_share", advisor.vocabulary, advisor.ruleset)
    assert not use.concluded_by
    readers = {rule.ladder or rule.id for rule, _ in use.read_by}
    raised = {f"raise-the-limit-{x}" for x in ("for-more-bits", "to-fit-on-a-shared-radeon")}
    assert readers == {"fit-gap", *raised}
    assert use.leads_to == ("fit.gap",)
    gap = fact_use("fit.gap", advisor.vocabulary, advisor.ruleset)
    assert {value for _, value in gap.concluded_by} == {"slight", "moderate", "large", "extreme"}
    assert "rent-a-card-to-fit" in {rule.id for rule, _ in gap.counted_by}


def test_facts_that_lead_to_others_over_several_rules(advisor: Advisor) -> None:
    assert (
        "workload.kind" in fact_use("request.batch", advisor.vocabulary, advisor.ruleset).leads_to
    )


def test_what_needs_options_is_known_from_the_rules(advisor: Advisor) -> None:
    rule = advisor.ruleset.rule
    assert needs_options(rule("quantize-to-fit"), advisor.ruleset)
    assert needs_options(rule("draft-from-the-prompt"), advisor.ruleset)
    assert not needs_options(rule("room-to-grow"), advisor.ruleset)
