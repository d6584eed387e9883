"""What a change of model or framework does to a draft model or a head that drafts."""

from __future__ import annotations

import pytest

from advisor.errors import RequestError
from tests.remedies.asking import advised, run_again
from tests.remedies.asking import advisor as loaded
from tests.remedies.promises import broken

NEXT = "qwen3-next-80b-a3b"
SAMPLE = (
    {"gpu": "RTX 4090", "model": NEXT, "mtp": 2, "ram_gib": 64.0},
    {"gpu": "RTX 4090", "model": NEXT, "mtp": 2, "precision": "Q4_K_M"},
    {"gpu": "2x H100 SXM5 80GB", "model": NEXT, "mtp": 1, "framework": "vLLM"},
    {"gpu": "RTX 3060 12GB", "model": "GLM-4.5-Air", "mtp": 3},
    {"gpu": "RTX 3090", "model": "Qwen2.5-32B", "draft_model": "Qwen2.5-0.5B"},
    {"gpu": "RTX 3060 12GB", "model": "llama-3.1-70b", "draft_model": "llama-3.2-1b"},
    {"gpu": "RX 7900 XTX", "model": "llama-3.1-70b", "draft_model": "llama-3.1-8b"},
)


@pytest.mark.parametrize("given", SAMPLE, ids=lambda given: f"{given['gpu']}, {given['model']}")
def test_every_change_runs_again_and_gives_what_it_promised(given: dict[str, object]) -> None:
    assert broken(loaded(), advised(**given)) == []


def test_a_model_without_a_head_drops_it() -> None:
    advice = advised(gpu="RTX 4090", model=NEXT, mtp=2, ram_gib=64.0)
    others = [o for o in advice.options if o.action == "smaller-model"]
    assert others
    for option in others:
        if not option.scenario.model.shape.mtp_layers:
            assert option.change["mtp"] == 0
            assert run_again(advice, option).scenario.mtp == 0


def test_the_model_itself_keeps_its_head() -> None:
    advice = advised(gpu="RTX 4090", model=NEXT, mtp=2, ram_gib=64.0)
    kept = [o for o in advice.options if o.action == "quantize"]
    assert any("mtp" not in o.change and o.scenario.mtp == 2 for o in kept)


def test_a_draft_no_smaller_than_the_new_model_is_dropped() -> None:
    advice = advised(gpu="RX 7900 XTX", model="llama-3.1-70b", draft_model="llama-3.1-8b")
    small = [
        o
        for o in advice.options
        if o.action == "smaller-model" and o.scenario.model.parameters < 9e9
    ]
    assert all(o.scenario.draft_model is None for o in small)
    assert all(o.change["draft_model"] is None for o in small)


def refusal(**given: object) -> RequestError:
    with pytest.raises(RequestError) as caught:
        advised(**given)
    return caught.value


def test_a_draft_with_another_vocabulary_is_refused() -> None:
    wrong = refusal(gpu="RTX 4090", model="llama-3-8b", draft_model="qwen3-0.6b")
    assert "its vocabulary has 151,936 tokens, not 128,256" in wrong.message


def test_the_refusal_names_drafts_that_can() -> None:
    wrong = refusal(gpu="RTX 4090", model="qwen3-14b", draft_model="llama-3.2-1b")
    assert "Qwen3-0.6B" in wrong.hint
    advised(gpu="RTX 4090", model="qwen3-14b", draft_model="Qwen3-0.6B", precision="Q4_K_M")


def test_llama_cpp_allows_128_tokens_of_padding_and_vllm_none() -> None:
    asked = {"gpu": "H100 SXM5 80 GB", "model": "qwen2.5-7b", "draft_model": "qwen2.5-0.5b"}
    draft = advised(**asked, framework="llama.cpp").scenario.draft_model
    assert draft is not None
    assert "not 152,064" in refusal(**asked, framework="vLLM").message


def test_with_its_own_head_on_no_other_draft_is_advised() -> None:
    advice = advised(gpu="H100 NVL 94GB", model=NEXT, mtp=2, precision="Q4_K_M")
    assert "draft-from-the-prompt" not in {note.rule for note in advice.notes}


def test_a_part_made_for_one_supercomputer_is_never_proposed() -> None:
    known = loaded().knowledge.gpus["H100 SXM5 64 GB"]
    assert known.not_for_sale
    advice = advised(gpu="RTX 4090", model="qwen2.5-32b", precision="Q8_0")
    assert known not in [o.scenario.gpu for o in advice.options]
