"""Formats that lose little are found without sizing those that are known to lose much."""

from __future__ import annotations

import pytest

from advisor import memo
from advisor.errors import UserError
from advisor.estimator.weights import weight_profile
from advisor.knowledge import load_knowledge
from advisor.knowledge.types import Format
from advisor.models.stored_tensors import Model
from advisor.remedies import format_lists as formats
from advisor.remedies.format_lists import faithful_formats, sized_formats
from advisor.scenario.resolve import resolve
from advisor.scenario.settings import Request

KNOWLEDGE = load_knowledge()
CARDS = ("RTX 4090", "RTX 5090", "H100 SXM", "RX 7900 XTX", "Apple M4 Max (40-core GPU)")
MODELS = ("phi-3-medium", "gpt-oss-20b", "Qwen3-30B-A3B", "DeepSeek-V3", "gemma-3-12b-it")


@pytest.mark.parametrize("card", CARDS)
@pytest.mark.parametrize("model", MODELS)
def test_they_are_those_of_all_that_are_worth_having(card: str, model: str) -> None:
    for framework in ("llama.cpp", "vLLM", "MLX-LM", "transformers"):
        try:
            given = Request(gpu=card, model=model, framework=framework)
            scenario = resolve(given, KNOWLEDGE)
        except UserError:  # not every program runs every model on every card
            continue
        faithful = [precision.name for precision, _ in faithful_formats(scenario, KNOWLEDGE)]
        every = [
            precision.name
            for precision, _ in sized_formats(scenario, KNOWLEDGE)
            if precision.family != "unquantized"
            and formats._loses_little(precision, scenario, KNOWLEDGE)
            and formats.has_quick_kernels(scenario, precision)
        ]
        assert faithful == every


def test_what_loses_much_is_not_sized(monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = resolve(Request(gpu="RTX 4090", model="phi-3-medium"), KNOWLEDGE)
    sized: list[float] = []

    def counted(model: Model, precision: Format, *rest: object) -> object:
        sized.append(precision.quality_loss_percent or 0.0)
        return weight_profile(model, precision, *rest)  # type: ignore[arg-type]

    memo.forget()
    monkeypatch.setattr("advisor.remedies.format_lists.weight_profile", counted)
    assert faithful_formats(scenario, KNOWLEDGE)
    assert sized
    assert max(sized) <= KNOWLEDGE.policy["little_loss_percent"]
