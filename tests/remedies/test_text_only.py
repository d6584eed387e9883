"""The remedy that leaves the image reader out, alone and in combinations."""

from __future__ import annotations

import pytest

from advisor.runtimes.commands import command_for
from tests.remedies.asking import advised, run_again


def actions(**given: object) -> list[str]:
    return [option.action for option in advised(**given).options]


def test_it_gives_back_the_tower_and_says_so_in_the_command() -> None:
    advice = advised(gpu="RTX 3090", model="qwen3.6-27b", precision="Q6_K", context=32768)
    option = advice.recommendations[0].option
    assert option.action == "text-only"
    tower = advice.memory.weights_bytes - option.memory.weights_bytes
    assert tower == pytest.approx(0.86 * 2**30, rel=0.05)
    assert run_again(advice, option).memory == option.memory


@pytest.mark.parametrize(
    "given",
    [
        {"images": 1},
        {"image_size": "1024x768"},
        {"text_only": True},
        {"framework": "Ollama"},
        {"model": "qwen2.5-vl-32b"},
        {"model": "qwen3-32b"},
    ],
)
def test_none_where_images_are_wanted_or_nothing_can_be_left_out(given: dict[str, object]) -> None:
    asked = {"gpu": "RTX 3090", "model": "qwen3.6-27b", "precision": "Q6_K", "context": 65536}
    assert "text-only" not in actions(**(asked | given))


def test_none_where_there_is_room() -> None:
    assert "text-only" not in actions(gpu="RTX 5090", model="qwen3.6-27b", precision="Q4_K_M")


SGLANG = {"framework": "SGLang", "context": 32768}


@pytest.mark.parametrize(
    ("model", "taken"),
    [("llama-4-scout-17b-16e-instruct", True), ("Qwen3.8-27B", False), ("gemma-3-27b-it", False)],
)
def test_sglang_leaves_images_out_of_the_models_it_says(model: str, *, taken: bool) -> None:
    """It takes the flag for few classes, and a few more have images on request alone."""
    asked = {"gpu": "8x H100 SXM5 80 GB", "model": model, **SGLANG}
    whole, text = advised(**asked), advised(**asked, text_only=True)
    command = command_for(text.scenario)
    assert "--language-model-only" not in command
    assert not (taken and "--enable-multimodal" in command)
    left_out = text.scenario.model.parameters < whole.scenario.model.parameters
    told = "cannot be left out" in " ".join(text.scenario.read_as)
    assert (left_out, told) == (taken, not taken)


def test_none_of_another_model_where_the_server_refuses_it() -> None:
    """SGLang refuses to start Qwen3.8 with the flag, so no option may name it."""
    advice = advised(
        gpu="2x RTX 5060 Ti 16GB", model="qwq-32b", context=32768, ram_gib=256, framework="SGLang"
    )
    of_sglang = [o for o in advice.options if o.scenario.framework.name == "SGLang"]
    assert of_sglang
    assert not any(o.scenario.text_only for o in of_sglang)


def test_a_combination_may_start_with_it() -> None:
    advice = advised(
        gpu="RTX 4060 Ti 16GB", model="gemma-4-31b-it", precision="Q6_K", context=32768
    )
    sets = [o.change for o in advice.options if o.action == "combine"]
    assert any(change.get("text_only") for change in sets)
    assert any(not change.get("text_only") for change in sets)
    said = next(r for r in advice.recommendations if r.option.action == "combine")
    texts = [o for o in (said.option, *said.alternatives) if "text_only" in o.change]
    assert all(option.steps == len(option.change) for option in texts)
    assert texts
