"""What a change of model or framework does to a draft model or a head that drafts."""

from __future__ import annotations

import pytest

from advisor.errors import RequestError
from advisor.runtimes.commands import commands_for
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


def proposed(**given: object) -> dict[str, object]:
    return {
        str(o.change["draft_model"]): o
        for o in advised(**given).options
        if o.change.get("draft_model")
    }


@pytest.mark.parametrize(
    ("given", "draft"),
    [
        ({"gpu": "2x RTX 5090", "model": "gemma-3-27b-it", "precision": "Q4_K_M"}, "gemma-3-1b-it"),
        (
            {"gpu": "H100 SXM5 80 GB", "model": "llama-3.3-70b-instruct", "precision": "Q4_K_M"},
            "Llama-3.2-1B-Instruct",
        ),
        (
            {"gpu": "2x H100 PCIe", "model": "command-a-03-2025", "precision": "Q4_K_M"},
            "c4ai-command-r7b-12-2024",
        ),
        (
            {"gpu": "8x L40S", "model": "mistral-large-instruct-2411", "precision": "Q4_K_M"},
            "Mistral-7B-Instruct-v0.3",
        ),
        ({"gpu": "RTX 5090", "model": "qwen3-32b", "precision": "Q4_K_M"}, "Qwen3-0.6B"),
    ],
)
def test_a_draft_is_small_tuned_alike_and_of_its_line(given: dict[str, object], draft: str) -> None:
    assert list(proposed(**given)) == [draft]


@pytest.mark.parametrize("model", ["qwq-32b", "devstral-small-2507"])
def test_no_draft_whose_tokens_mean_something_else(model: str) -> None:
    assert not proposed(gpu="RTX 5090", model=model, precision="Q4_K_M")


def test_no_draft_that_was_trained_for_less_than_the_context() -> None:
    asked = {"gpu": "H200", "model": "qwen3-32b", "precision": "Q4_K_M"}
    assert list(proposed(**asked, context=32768)) == ["Qwen3-0.6B"]
    assert list(proposed(**asked, context=65536)) == ["Qwen3-4B-Instruct-2507"]


def test_no_model_is_proposed_where_a_head_was_trained_for_it() -> None:
    asked = {"gpu": "2x H100 SXM5 80 GB", "model": "qwen3-32b"}
    assert not proposed(**asked, framework="vLLM")  # EAGLE-3
    assert proposed(**asked, framework="llama.cpp")


def test_vllm_drafts_with_nothing_in_a_pipeline() -> None:
    asked = {"gpu": "2x H100 SXM5 80 GB", "model": "qwen3-32b", "framework": "vLLM"}
    heads = [
        advised(**asked, **more).facts.get("model.draft_head") for more in ({}, {"split": "layer"})
    ]
    assert heads[0]
    assert heads[1] is None


def test_sglang_is_given_no_head_in_the_layout_of_vllm() -> None:
    asked = {"gpu": "2x H100 SXM5 80 GB", "model": "qwen3-32b", "framework": "SGLang"}
    assert advised(**asked).facts.get("model.draft_head") is None


def test_a_draft_adds_its_own_memory_and_no_second_reserve() -> None:
    """SGLang keeps a part of every card out of its static share once, not once for each model."""
    asked = {"gpu": "8x B200", "model": "qwen2.5-72b-instruct", "framework": "SGLang"}
    plain = advised(**asked).memory
    drafted = advised(**asked, draft_model="Qwen2.5-7B-Instruct").memory
    own = advised(**asked | {"model": "Qwen2.5-7B-Instruct"}).memory
    added = drafted.required_bytes - plain.required_bytes
    least = own.weights_bytes + own.kv_cache_bytes
    assert least <= added <= least + 0.25 * (own.required_bytes - least)


@pytest.mark.parametrize(
    ("model", "repository"),
    [
        # unsloth.ai/docs/models/qwen3.6: its plain GGUF files are converted without the head
        ("Qwen3.6-27B", "unsloth/Qwen3.6-27B-MTP-GGUF"),
        ("Qwen3.6-35B-A3B", "unsloth/Qwen3.6-35B-A3B-MTP-GGUF"),
        # joryirving/home-ops#9074: the header of the plain file has nextn_predict_layers 1
        ("Qwen3.8-27B", "unsloth/Qwen3.8-27B-GGUF"),
    ],
)
def test_a_head_drafts_from_a_file_that_holds_it(model: str, repository: str) -> None:
    advice = advised(gpu="M2 Ultra:192GB", model=model, precision="Q4_K_M")
    found = [o for o in advice.options if o.scenario.mtp]
    assert found
    told = commands_for(found[0].scenario)[0].text
    assert f"-hf {repository}:Q4_K_M" in told
    assert "--spec-type draft-mtp" in told


@pytest.mark.parametrize("model", ["GLM-4.5-Air", "qwen3-next-80b-a3b"])
def test_no_head_drafts_where_no_file_is_known_to_hold_it(model: str) -> None:
    advice = advised(gpu="M2 Ultra:192GB", model=model, precision="Q4_K_M")
    assert not [o for o in advice.options if o.scenario.mtp]


def test_a_head_of_the_publishers_goes_before_a_small_relative() -> None:
    advice = advised(gpu="DGX Spark", model="gemma-4-31B-it", precision="Q4_K_M")
    assert not [o for o in advice.options if o.scenario.draft_model]
    assert "trained-head-published" in {one.rule for one in advice.notes}


def test_a_second_model_that_a_server_runs_without_graphs_is_not_advised() -> None:
    """vLLM records no CUDA graphs of it; what is stated is sized, and told of."""
    given = {"gpu": "4x RTX 3090", "model": "command-a-03-2025", "precision": "AWQ"}
    found = advised(**given, framework="vLLM")
    assert not any(option.action == "speculative" for option in found.options)
    (first,) = found.recommendations[:1]
    assert first.option.change == {"context": 32768}
    stated = advised(**given, framework="vLLM", draft_model="command-r7b-12-2024")
    assert any("without CUDA graphs" in line for line in stated.warnings)
