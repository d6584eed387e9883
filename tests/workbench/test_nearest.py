"""Which values of an input are tried, in which order, and how close to the edge one gets.

Each probe is a rule set of one rule, so that only its own conditions speak.
"""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from advisor.advice import Advisor
from advisor.errors import UserError
from advisor.rules import Test, Verb, When
from advisor.rules.engine import make_engine
from advisor.rules.language.model import Rule, RuleSet
from advisor.scenario.settings import SETTINGS, Request
from advisor.workbench.nearest import SingleChange, smallest_changes

ASKED = Request(gpu="RTX 4090", model="llama-3-8b", precision="Q8_0", context=8192, batch=1)


def woken_by(advisor: Advisor, request: Request, *tests: Test) -> dict[str, SingleChange]:
    """The changes that wake a rule with these conditions, by input, in order."""
    rule = Rule("probe", "why", When(tests), note="so")
    rules = RuleSet((rule,), "")
    alone = replace(advisor, ruleset=rules, engine=make_engine(rules, prefer="reference"))
    return {change.key: change for change in smallest_changes(alone, request, rule)}


def waking(
    advisor: Advisor, request: Request, fact: str, verb: Verb, value: float
) -> dict[str, SingleChange]:
    return woken_by(advisor, request, Test(fact, verb, value))


@pytest.mark.parametrize(
    ("verb", "edge", "found"),
    [
        ("at least", 20_000.0, 20_224),
        ("above", 8192.0, 8448),
        ("at most", 3_000.0, 2_816),
        ("below", 8192.0, 7_936),
    ],
)
def test_a_context_is_found_to_within_256_tokens_from_either_side(
    advisor: Advisor, verb: Verb, edge: float, found: int
) -> None:
    change = waking(advisor, ASKED, "request.context", verb, edge)["context"]
    assert (change.value, change.now) == (found, 8192)


def test_a_batch_is_found_exactly(advisor: Advisor) -> None:
    assert waking(advisor, ASKED, "request.batch", "at least", 5.0)["batch"].value == 5
    many = replace(ASKED, batch=40)
    down = waking(advisor, many, "request.batch", "at most", 20.0)["batch"]
    assert (down.value, down.now) == (20, 40)


def test_a_context_between_two_powers_of_two_is_found_where_no_power_will_do(
    advisor: Advisor,
) -> None:
    band = (Test("request.context", "above", 5000.0), Test("request.context", "below", 6000.0))
    change = woken_by(advisor, ASKED, *band)["context"]
    assert isinstance(change.value, int)
    assert 5000 < change.value < 6000


def test_the_depth_follows_a_context_that_becomes_shorter(advisor: Advisor) -> None:
    """A depth of the whole context would be refused with every shorter one."""
    deep = replace(ASKED, depth=8000)
    assert waking(advisor, deep, "request.context", "at most", 4096.0)["context"].value == 4096


def test_easier_inputs_come_before_harder_ones_and_near_values_before_far(
    advisor: Advisor,
) -> None:
    found = list(waking(advisor, ASKED, "memory.required", "above", 20.0 * 2**30).values())
    efforts = [SETTINGS[change.key].effort for change in found]
    assert efforts == sorted(efforts, key=lambda effort: effort or 0)
    for effort in set(efforts):
        same = [c.distance for c, e in zip(found, efforts, strict=True) if e == effort]
        assert same == sorted(same)
    assert found[0].key in {"context", "batch"}


def test_a_format_is_the_nearest_in_bits(advisor: Advisor) -> None:
    fewer = waking(advisor, ASKED, "weights.bits_per_weight", "below", 8.0)["precision"]
    bits = {name: form.bits_per_weight or 0.0 for name, form in advisor.knowledge.formats.items()}
    assert 6.0 < bits[str(fewer.value)] < 8.0


def test_models_are_of_the_same_family_and_nearest_in_size(advisor: Advisor) -> None:
    larger = waking(advisor, ASKED, "model.parameters", "above", 9e9)["model"]
    known = advisor.knowledge.models
    assert known[str(larger.value)].family == known["Meta-Llama-3-8B"].family
    assert (known[str(larger.value)].parameters or 0) > 9e9


def test_cards_are_tried_until_one_has_what_is_asked(advisor: Advisor) -> None:
    change = waking(advisor, ASKED, "gpu.vram", "at least", 40.0 * 2**30)["gpu"]
    card = advisor.knowledge.gpus[str(change.value)]
    assert (card.vram_bytes or 0) >= 40 * 2**30
    assert card.vendor == "NVIDIA", "the maker of the present card comes first"
    assert change.now == "RTX 4090"


def test_what_was_not_stated_may_be_the_change(advisor: Advisor) -> None:
    change = waking(advisor, ASKED, "host.ram", "at least", 60.0 * 2**30)["ram_gib"]
    assert (change.value, change.now) == (64.0, None)


def test_experts_are_offered_to_mixtures_alone(advisor: Advisor) -> None:
    moe = replace(ASKED, model="gpt-oss-20b", precision="MXFP4_MOE")
    assert "cpu_experts" in waking(advisor, moe, "host.ram_needed", "above", 0.0)
    assert "cpu_experts" not in waking(advisor, ASKED, "host.ram_needed", "above", 0.0)


def test_a_request_that_is_wrong_is_refused_as_advise_would(advisor: Advisor) -> None:
    with pytest.raises(UserError, match="unknown GPU"):
        waking(advisor, replace(ASKED, gpu="RTX 4091"), "request.batch", "above", 1.0)
