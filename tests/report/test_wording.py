"""What reports of the built-in knowledge say, and do not say, in situations that misled."""

from __future__ import annotations

import copy
from functools import lru_cache

import pytest

from advisor.advice import Advisor
from advisor.advice.document import Advice
from advisor.report.assembly import document
from advisor.report.prose import Report, report
from advisor.report.sentence_check import contradictions
from advisor.scenario.settings import Request


@lru_cache(maxsize=1)
def advisor() -> Advisor:
    return Advisor.load()


def made(**request: object) -> tuple[Advice, Report]:
    doc = document(advisor().advise(Request(**request)))  # type: ignore[arg-type]  # the caller's keys
    assert contradictions(doc) == []
    return doc, report(doc, "standard")


def note(doc: Advice, rule: str) -> str:
    return next((item.text for item in doc.notes if item.rule == rule), "")


def test_one_figure_for_the_ram_that_offloading_takes() -> None:
    doc, _ = made(gpu="RTX 4090", model="phi-3-medium", precision="fp16")
    offload = next(i for i in doc.recommendations if i.action == "offload-layers")
    size = f"{offload.after.host_bytes / 2**30:.1f} GiB"
    assert size in offload.text
    assert size in note(doc, "offload-needs-ram-figures")


def test_the_end_of_the_search_is_not_printed_as_a_limit() -> None:
    _, mamba = made(gpu="RTX 4090", model="falcon-mamba-7b")
    assert "16,777,216" not in str(mamba)
    _, encoder = made(gpu="RTX 4090", model="bge-m3")
    assert "at most 256" not in str(encoder)
    assert "at least 256 sequences" in dict(encoder.figures)["Limits"]


def test_a_model_without_cache_has_no_cache_in_its_figures() -> None:
    _, encoder = made(gpu="RTX 4090", model="bge-m3")
    assert "KV cache" not in str([encoder.figures, encoder.have])


def test_ram_that_cannot_hold_the_rest_is_named_as_the_reason() -> None:
    doc, short = made(gpu="RTX 4090", model="llama-3.1-70b", precision="Q4_K_M", ram_gib=16.0)
    assert "the 16 GiB of system RAM you stated is too little" in doc.verdict.sentence
    assert "System RAM" in dict(short.figures)


def test_no_split_is_promised_where_none_is_worked_out() -> None:
    doc, paged = made(gpu="RTX 4090", model="llama-3.1-70b", precision="AWQ")
    assert doc.scenario.framework == "vLLM"
    assert "system RAM" not in doc.verdict.sentence
    assert "GiB of system RAM" not in str(paged.watch)


@pytest.mark.parametrize(
    ("framework", "split", "said"),
    [("vLLM", "tensor", "at the same time"), ("llama.cpp", "layer", "take turns")],
)
def test_the_note_on_several_cards_follows_the_split(framework: str, split: str, said: str) -> None:
    doc, _ = made(gpu="RTX 4090", model="llama-3-8b", gpus=2, framework=framework, split=split)
    assert said in note(doc, "cards-take-turns")


def test_no_browser_on_a_data_centre_card() -> None:
    doc, _ = made(gpu="L40S", model="qwen2.5-32b", precision="Q8_0", context=32768)
    if doc.verdict.state == "tight":
        assert "browser" not in note(doc, "fit-is-tight")


def test_a_speed_says_for_which_part_of_a_conversation_it_holds() -> None:
    _, short = made(gpu="RTX 4090", model="llama-3-8b", precision="Q8_0")
    assert "at the start of a conversation" in dict(short.figures)["Speed"]
    _, deep = made(gpu="RTX 4090", model="llama-3-8b", precision="Q8_0", context=8192, depth=4000)
    assert "with 4,000 tokens already in the cache" in dict(deep.figures)["Speed"]
    _, missing = made(gpu="RTX 4090", model="gemma-3-27b", precision="Q4_0", context=131072)
    assert "empty cache" in dict(missing.figures)["Speeds below"]


def test_a_change_of_runtime_stands_in_the_title() -> None:
    doc, _ = made(gpu="MI300X", model="llama-3.1-405b", precision="FP8")
    items = [i for i in doc.recommendations if i.action == "quantize"]
    moved = [i for i in items if i.setup.framework != doc.scenario.framework]
    assert all(f" in {item.setup.framework}" in item.title for item in moved)


def test_draft_model_and_backend_stand_in_the_setup() -> None:
    doc, drafted = made(
        gpu="RTX 4090", model="qwen2.5-7b", precision="Q8_0", draft_model="qwen2.5-0.5b",
        backend="Vulkan",
    )  # fmt: skip
    figures = dict(drafted.figures)
    assert "Qwen2.5-0.5B" in figures["Setup"]
    assert "Vulkan" in figures["Setup"]
    assert " to " in figures["With draft"]
    assert note(doc, "draft-from-the-prompt") == ""


def test_a_draft_is_summed_up_by_its_range() -> None:
    _, drafted = made(gpu="RTX 4090", model="qwen3-32b", precision="q4_k_m", context=4096)
    found = [item for item in drafted.remedies if " draft the tokens" in item.title]
    assert found
    assert all(" to " in item.figures["summary"] for item in found)


def test_the_remarks_that_matter_stand_in_a_standard_report() -> None:
    _, small = made(gpu="RTX 4090", model="phi-3-small", precision="INT8")
    assert "peculative decoding" in str(small.watch)
    _, hot = made(gpu="RTX 4090", model="llama-3-8b", precision="FP8", framework="vLLM")
    assert "450 W" in str(hot.watch)
    for gpu in ("RTX 4090", "RTX 4000 Ada"):
        _, vision = made(gpu=gpu, model="llava-1.6-13b", precision="FP16")
        assert "1,176 to 2,928 tokens" in str(vision.watch)


def test_renting_names_a_card() -> None:
    doc, _ = made(gpu="RTX 4090", model="phi-3-medium", precision="fp16")
    rented = [item for item in doc.recommendations if item.action == "cloud"]
    assert all(str(item.setup.gpu) in item.title for item in rented)


def test_a_model_that_hears_is_not_said_to_write_nothing() -> None:
    _, text = made(gpu="RTX 4090", model="whisper-large-v3")
    assert "writes no text" not in str(text)
    assert "write no text" not in str(text)


@pytest.mark.parametrize(
    ("model", "tokens"),
    [("bge-m3", 8192), ("multilingual-e5-large", 512), ("snowflake-arctic-embed-l-v2.0", 8192)],
)
def test_positions_kept_for_padding_are_no_context(model: str, tokens: int) -> None:
    doc, _ = made(gpu="RTX 4090", model=model)
    assert doc.scenario.model.trained_context_tokens == tokens


def test_tokens_drafted_by_a_models_own_head_are_a_figure_of_the_report() -> None:
    doc, _ = made(
        gpu="H100 NVL", model="Qwen3-Next-80B-A3B-Instruct", precision="AWQ 4-bit", framework="vLLM"
    )
    drafting = next(i for i in doc.recommendations if i.setup.mtp)
    assert "2 tokens are drafted at once" in drafting.text
    drafting.text = drafting.text.replace("2 tokens", "9 tokens")
    wrong = f"recommendation {drafting.rank}: 9 tokens is no figure of this report"
    assert wrong in contradictions(copy.deepcopy(doc))
