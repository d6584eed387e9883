"""What remedies say of themselves, and that what they propose is what they say."""

from __future__ import annotations

import pkgutil
from importlib import import_module

import pytest

from advisor import remedies
from advisor.estimator.limits import find_limits
from advisor.knowledge.vocabulary import ACTION_FACT, load_vocabulary
from advisor.remedies import (
    REMEDIES,
    actions,
    build_options,
    cards,
    combine,
    formats,
    framework,
    is_uncertain,
    remedies_of,
    rule_vocabulary,
    settings_of,
    told_by,
)
from advisor.remedies.option import EFFORTS, Remedy
from advisor.scenario.settings import Request
from tests.remedies.asking import advised, advisor

ASKED = (
    Request(gpu="RTX 4090", model="llama-3.1-70b", precision="Q4_K_M"),
    Request(gpu="RTX 4070", model="qwen3-30b-a3b", precision="FP16", context=32768, batch=4),
    Request(gpu="RTX 3090", model="llama-3-8b", precision="AWQ", framework="vLLM"),
    Request(gpu="RTX 4090", model="llama-3-8b", precision="Q8_0", flash_attention=False),
    Request(gpu="RX 6600 XT", model="qwen2.5-7b", precision="FP16"),
    Request(gpu="GTX 1050 Ti", model="deepseek-v3", precision="Q4_K_M"),
)


def test_every_declared_remedy_is_registered_once() -> None:
    names = [module.name for module in pkgutil.iter_modules(remedies.__path__)]
    declared = {
        id(value): value
        for name in names
        for value in vars(import_module(f"{remedies.__name__}.{name}")).values()
        if isinstance(value, Remedy)
    }
    assert {*map(id, REMEDIES)} == set(declared)
    assert len(REMEDIES) == len(declared)


def test_facts_yaml_lists_exactly_the_actions() -> None:
    listed = load_vocabulary().fact(ACTION_FACT).values
    assert set(listed) == set(actions())
    assert rule_vocabulary() == load_vocabulary()


def test_an_action_that_only_a_remedy_brings_may_be_named_by_rules(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        "advisor.remedies.REMEDIES", [*REMEDIES, Remedy("rest", frozenset(), "setting")]
    )
    found = rule_vocabulary()
    assert found.fact(ACTION_FACT).values == (*load_vocabulary().fact(ACTION_FACT).values, "rest")
    assert found.sha256 != load_vocabulary().sha256


def test_the_settings_of_a_remedy_are_settings_of_a_request() -> None:
    for remedy in REMEDIES:
        assert remedy.settings <= set(Request.__struct_fields__)
        assert not remedy.told_by or remedy.told_by in remedy.settings
        assert remedy.effort in EFFORTS


def test_remedies_of_one_action_speak_together() -> None:
    assert [*remedies_of("speculative")] == [r for r in REMEDIES if r.action == "speculative"]
    assert settings_of("speculative") == {"draft_model", "mtp"}
    assert settings_of(framework.FRAMEWORK.action) >= {"framework", "precision"}
    assert told_by(framework.FLASH_ATTENTION.action) == "framework"
    assert is_uncertain("speculative")


def test_what_has_no_single_subject_or_is_unknown_says_nothing() -> None:
    for action in (combine.REMEDY.action, "no such action"):
        assert settings_of(action) == frozenset()
        assert told_by(action) == ""
        assert not is_uncertain(action)


@pytest.mark.parametrize("request_", ASKED, ids=lambda r: f"{r.model} on {r.gpu}")
def test_a_remedy_proposes_what_it_says(request_: Request) -> None:
    base = advisor().estimate(request_)
    limits = find_limits(base.scenario, base.knowledge, base.memory)
    for remedy in (one for one in REMEDIES if one.propose and not one.joins):
        assert remedy.propose
        for option in remedy.propose(base, limits, {}):
            of = [one for one in REMEDIES if one.action == option.action]
            assert remedy in of or (remedy, option.action) == (cards.LARGER, cards.RENTED.action)
            assert settings_of(option.action) & {*option.change, *alike(option.change)}


def alike(change: object) -> set[str]:
    """The side of the cache that a request asked for stands for both."""
    return {"kv_cache"} if isinstance(change, dict) and "kv_cache_k" in change else set()


@pytest.mark.parametrize("request_", ASKED, ids=lambda r: f"{r.model} on {r.gpu}")
def test_options_are_unique_and_what_joins_comes_last(request_: Request) -> None:
    base = advisor().estimate(request_)
    options = build_options(base, find_limits(base.scenario, base.knowledge, base.memory))
    assert len({option.key for option in options}) == len(options) > 0
    joined = [option.action == combine.REMEDY.action for option in options]
    assert joined == sorted(joined)


def test_without_a_card_nothing_is_proposed() -> None:
    base = advisor().estimate(Request(model="llama-3-8b"))
    assert build_options(base, find_limits(base.scenario, base.knowledge, base.memory)) == ()


def test_a_format_of_another_runtime_takes_more_than_a_download() -> None:
    advice = advised(gpu="RTX 4090", model="llama-3.1-70b", precision="Q4_K_M")
    own = advice.scenario.framework
    found = [option for option in advice.options if option.action == formats.REMEDY.action]
    efforts = {(option.scenario.framework is own, option.effort) for option in found}
    assert efforts == {(True, "download"), (False, "rebuild")}
