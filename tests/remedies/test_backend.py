"""Another back end of the same runtime: where there is one, and where it is refused."""

from __future__ import annotations

import pytest

from advisor.errors import UserError
from tests.remedies.asking import advised, run_again

CHAT = {"model": "llama-3.1-8b", "precision": "Q4_K_M"}


def back_ends(**given: object) -> list[str]:
    return [
        str(option.change["backend"])
        for option in advised(**given).options
        if option.action == "change-backend"
    ]


def test_a_runtime_with_two_back_ends_hears_of_the_other() -> None:
    assert back_ends(**CHAT, gpu="RX 7900 XTX") == ["Vulkan"]
    assert back_ends(**CHAT, gpu="RX 7900 XTX", backend="Vulkan") == ["ROCm"]
    assert back_ends(**CHAT, gpu="Arc B580") == ["Vulkan"]
    assert back_ends(model="llama-3.1-8b", gpu="RX 7900 XTX", framework="vLLM") == []


def test_it_is_recommended_where_both_were_measured_and_comes_out_so() -> None:
    advice = advised(**CHAT, gpu="RX 7900 XTX")
    first = next(r.option for r in advice.recommendations if r.option.action == "change-backend")
    again = run_again(advice, first)
    assert again.speed
    assert advice.speed
    assert first.speed
    assert again.speed.decode_tok_s == first.speed.decode_tok_s
    assert again.speed.decode_tok_s.estimate > 1.1 * advice.speed.decode_tok_s.estimate


@pytest.mark.parametrize("framework", ["vLLM", "transformers", "SGLang", "ExLlamaV3"])
def test_a_back_end_that_a_runtime_lacks_is_refused(framework: str) -> None:
    with pytest.raises(UserError, match=f"{framework} does not compute with Vulkan"):
        advised(model="llama-3.1-8b", gpu="RTX 4090", framework=framework, backend="Vulkan")


def test_ollama_has_no_vulkan_on_apple_chips() -> None:
    """Its documentation: Vulkan on Windows and Linux; a build for macOS brings Metal alone."""
    with pytest.raises(UserError, match="does not compute with Vulkan on Apple cards"):
        advised(model="llama-3.1-8b", gpu="M3 Ultra", framework="Ollama", backend="Vulkan")
    here = advised(model="llama-3.1-8b", gpu="M3 Ultra", framework="llama.cpp", backend="Vulkan")
    assert here.scenario.backend == "Vulkan"
