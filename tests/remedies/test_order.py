"""Advice follows from the request, not from what was asked before it."""

from __future__ import annotations

from collections.abc import Sequence

from advisor import memo
from advisor.advice import Advisor
from advisor.scenario.settings import Request
from tests.remedies.asking import advisor


def options(asking: Advisor, model: str) -> Sequence[object]:
    found = asking.advise(Request(gpu="RTX 4090", model=model, ram_gib=64.0))
    return [(option.action, dict(option.change)) for option in found.options]


def test_of_models_of_one_architecture_any_may_be_asked_first() -> None:
    asking = advisor()
    names = ("qwen1.5-0.5b-chat", "qwen2.5-7b", "qwen2.5-0.5b", "deepseek-r1-distill-qwen-14b")
    memo.forget()
    first = {name: options(asking, name) for name in names}
    memo.forget()
    assert {name: options(asking, name) for name in names[::-1]} == first
