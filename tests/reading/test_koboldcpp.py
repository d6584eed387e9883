"""Command lines of koboldcpp, read as the llama.cpp that it is built on."""

from __future__ import annotations

import pytest

from advisor.knowledge import load_knowledge
from advisor.reading.pasted_request import asked_by, read_pasted

MODEL = "Meta-Llama-3.1-8B-Instruct-Q4_K_M.gguf"


@pytest.mark.parametrize(
    ("command", "settings"),
    [
        (
            f"koboldcpp --model {MODEL} --contextsize 8192 --gpulayers 20",
            {"context": 8192, "gpu_layers": 20},
        ),
        (
            f".\\koboldcpp.exe --model .\\{MODEL} --usecublas normal 0 mmq --quantkv 1",
            {"kv_cache": "q8_0"},
        ),
        (f"python3 koboldcpp.py {MODEL} 5001 --blasbatchsize 2048", {"ubatch": 2048}),
        (
            f"koboldcpp-linux-x64 --model {MODEL} --usecuda --flashattention",
            {"flash_attention": True},
        ),
        ("koboldcpp Qwen3-30B-A3B-Q4_K_M.gguf --moecpu 20", {"cpu_experts": 20}),
        (f"docker run koboldai/koboldcpp --model {MODEL} --contextsize 4096", {"context": 4096}),
    ],
)
def test_flags_have_their_meaning(command: str, settings: dict[str, object]) -> None:
    pasted = read_pasted(command)
    asked = asked_by(pasted, load_knowledge())
    assert (asked.framework, pasted.unknown) == ("llama.cpp", ())
    assert settings.items() <= asked.settings.items()


def test_shares_count_the_cards() -> None:
    pasted = read_pasted(f"koboldcpp --model {MODEL} --tensor_split 1 1 --gpulayers 99")
    assert asked_by(pasted, load_knowledge()).cards == 2


@pytest.mark.parametrize(
    ("layers", "places"), [("", True), ("--gpulayers -1", True), ("--gpulayers 99", False)]
)
def test_without_a_number_it_places_layers_itself(layers: str, places: bool) -> None:  # noqa: FBT001
    pasted = read_pasted(f"koboldcpp --model {MODEL} {layers}")
    assert asked_by(pasted, load_knowledge()).places_itself is places


def test_a_misspelt_flag_is_named() -> None:
    (unknown,) = read_pasted(f"koboldcpp --model {MODEL} --gpulayer 30").unknown
    assert "--gpulayers" in unknown.nearest
