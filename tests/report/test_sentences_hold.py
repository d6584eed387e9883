"""Sentences that a report may only say where they are true, and figures told in one way."""

from __future__ import annotations

import re
from functools import lru_cache

import pytest

from advisor.advice import Advisor
from advisor.advice.document import Advice
from advisor.report import render_text
from advisor.report.assembly import document
from advisor.report.charts import memory_bar
from advisor.report.figures import billions
from advisor.report.prose import Report, report
from advisor.report.sentence_check import contradictions
from advisor.scenario.settings import Request


@lru_cache(maxsize=64)
def _document(asked: tuple[tuple[str, object], ...]) -> Advice:
    doc = document(_advisor().advise(Request(**dict(asked))))  # type: ignore[arg-type]  # the caller's keys
    assert contradictions(doc) == []
    return doc


@lru_cache(maxsize=1)
def _advisor() -> Advisor:
    return Advisor.load()


def made(**asked: object) -> Advice:
    return _document(tuple(asked.items()))


def note(doc: Advice, rule: str) -> str:
    return next((item.text for item in doc.notes if item.rule == rule), "")


def full(doc: Advice) -> Report:
    return report(doc, "full")


def plain(doc: Advice) -> str:
    return " ".join(render_text(doc, length="full").split())


@pytest.mark.parametrize(
    ("gpu", "framework", "backend"),
    [
        ("RX 7900 XTX", "vLLM", None),
        ("MI300X", "TGI", None),
        ("RX 7900 XTX", "llama.cpp", "Vulkan"),
    ],
)
def test_vulkan_is_advised_only_to_runtimes_that_have_it(
    gpu: str, framework: str, backend: str | None
) -> None:
    doc = made(gpu=gpu, model="llama-3.1-8b", framework=framework, backend=backend)
    assert note(doc, "keep-drivers-current")
    assert "Vulkan" not in note(doc, "keep-drivers-current")


def test_rocm_in_llama_cpp_has_vulkan_beside_it() -> None:
    doc = made(gpu="RX 7900 XTX", model="llama-3.1-8b", backend="ROCm")
    assert "Vulkan" in note(doc, "keep-drivers-current")


@pytest.mark.parametrize("gpu", ["RTX 4090", "RTX 4080", "RX 7900 XTX", "RTX 3090", "A40"])
def test_a_note_on_drivers_speaks_of_no_pair(gpu: str) -> None:
    doc = made(gpu=gpu, model="llama-3.1-8b")
    assert " pair" not in note(doc, "keep-drivers-current")


@pytest.mark.parametrize("context", [1024, 2048, 4096, 8192])
def test_no_tool_is_named_that_shows_no_memory_of_a_shared_chip(context: int) -> None:
    doc = made(gpu="DGX Spark", model="llama-3.3-70b", precision="Q8_0", context=context)
    assert note(doc, "watch-memory")
    assert "nvidia-smi" not in note(doc, "watch-memory")


@pytest.mark.parametrize("context", [1024, 2048, 4096, 8192])
def test_no_format_is_praised_that_does_not_run_on_apple(context: int) -> None:
    doc = made(gpu="Apple M1", model="llama-3.1-8b", precision="FP16", context=context)
    assert "QLoRA" in note(doc, "tune-a-smaller-model")
    assert "NF4" not in note(doc, "tune-a-smaller-model")


@pytest.mark.parametrize(
    ("gpu", "model"), [("Arc B580", "gemma-3-12b"), ("RTX 3060:8GB", "Qwen2.5-VL-3B")]
)
@pytest.mark.parametrize("context", [1024, 4096, 8192])
def test_a_quality_loss_is_that_of_the_format_not_of_a_mixed_average(
    gpu: str, model: str, context: int
) -> None:
    doc = made(gpu=gpu, model=model, precision="Q4_K_M", context=context)
    said = note(doc, "quality-worth-checking")
    assert "Q4_K_M" in said
    assert "bits per weight" not in said


def test_a_format_whose_loss_is_not_measured_is_named() -> None:
    doc = made(gpu="RTX 4090", model="llama-3.1-70b", precision="EXL2 2.5bpw")
    assert "nobody" not in plain(doc).casefold()


@pytest.mark.parametrize("framework", ["vLLM", "SGLang"])
def test_what_is_not_held_here_is_not_said_to_be_unpublished(framework: str) -> None:
    doc = made(gpu="RTX 4090", model="llama-3-8b", precision="AWQ", framework=framework)
    assert "no figure for them is held here" in plain(doc)
    assert "nobody" not in plain(doc).casefold()


def test_thousands_of_billions_are_separated_as_other_figures_are() -> None:
    assert billions(1.0264e12) == "1,026.4 billion"
    assert "1,026.4 billion" in plain(made(gpu="RTX 4090", model="Kimi-K2"))


@pytest.mark.parametrize(
    ("gpu", "framework", "binds"),
    [("B200", "vLLM", True), ("RTX 5090", "vLLM", True), ("RTX 5090", "llama.cpp", False),
     ("RTX 5090", "TensorRT-LLM", True)],
)  # fmt: skip
@pytest.mark.parametrize("context", [1024, 2048, 4096, 8192])
def test_what_a_servers_share_leaves_is_not_laid_to_display_and_driver(
    gpu: str, framework: str, *, binds: bool, context: int
) -> None:
    doc = made(gpu=gpu, model="llama-3.1-8b", framework=framework, precision=_AT_HOME[framework],
               context=context)  # fmt: skip
    labels = {segment.label for segment in memory_bar(doc).segments}
    assert (f"outside {framework}'s share" in labels) is binds
    assert ("kept by the system" in labels) is not binds
    assert not binds or "display and driver" not in full(doc).have


_AT_HOME = {"vLLM": "FP8", "TensorRT-LLM": "FP8", "llama.cpp": "Q8_0"}


def test_the_share_is_named_in_one_of_the_wordings() -> None:
    texts = [
        full(made(gpu=gpu, model="llama-3.1-8b", framework="vLLM", context=context)).have
        for gpu in ("B200", "RTX 5090", "L40S")
        for context in (1024, 2048, 4096, 8192)
    ]
    assert any("vLLM leaves " in text and " outside its share" in text for text in texts)


def test_the_bar_keeps_for_the_system_what_the_text_keeps() -> None:
    doc = made(gpu="M4 Pro:48GB", model="llama-3.3-70b", precision="Q4_K_M")
    sizes = {segment.kind: segment.size for segment in memory_bar(doc).segments}
    assert sizes["reserve"] == "12.0 GiB"
    assert "12.0 GiB" in full(doc).have
    assert sum(segment.share for segment in memory_bar(doc).segments) == pytest.approx(1)


@pytest.mark.parametrize(
    "asked",
    [
        {"gpu": "Arc B580", "model": "gemma-3-12b", "precision": "Q4_K_M"},
        {"gpu": "Tesla P40", "model": "qwen2.5-32b", "precision": "Q4_K_M"},
        {"gpu": "RTX 5090", "model": "qwen2.5-32b", "precision": "Q6_K"},
        {"gpu": "RTX 4090", "model": "llama-3-70b", "precision": "Q4_K_M"},
        {"gpu": "RTX 4090", "gpus": 2, "model": "llama-3.1-70b", "precision": "Q4_K_M"},
    ],
    ids=lambda asked: asked["gpu"],
)
@pytest.mark.parametrize("context", [2048, 3000, 4096, 5000, 6000])
def test_bar_and_figures_round_what_is_free_or_missing_in_one_way(
    asked: dict[str, object], context: int
) -> None:
    doc = made(**asked, context=context)
    figures = dict(full(doc).figures)
    bar = memory_bar(doc)
    free = {segment.kind: segment.size for segment in bar.segments}.get("free")
    assert figures.get("Free", "").partition(" (")[0] == (free or "")
    assert figures.get("Missing", "").partition(" on ")[0] == bar.over


@pytest.mark.parametrize("batch", [1, 64])
def test_the_room_of_a_server_is_memory_and_no_promise(batch: int) -> None:
    for context in (2048, 4096):
        doc = made(gpu="RTX PRO 6000 Blackwell", model="gpt-oss-120b", framework="vLLM",
                   batch=batch, context=context)  # fmt: skip
        said = note(doc, "cache-room-of-a-server")
        assert "memory for " in said
        assert "memory for " in dict(full(doc).figures)["Cache room"]
        assert "serves" not in said
        assert ("you asked for 64 sequences" in said) is (batch == 64)
        assert ("gives their speed and command" in said) is (batch == 1)


@pytest.mark.parametrize(
    ("model", "falls"), [("falcon-mamba-7b", False), ("llama-3-8b", True), ("Falcon-H1-7B", True)]
)
def test_only_a_cache_of_attention_makes_long_conversations_slower(
    model: str, *, falls: bool
) -> None:
    doc = made(gpu="RTX 3050 8 GB", model=model, precision="FP16", context=32768)
    assert any(item.after.decode_tok_s for item in doc.recommendations)
    assert ("Speeds below" in dict(full(doc).figures)) is falls


@pytest.mark.parametrize(
    ("model", "framework", "falls"),
    [("Mamba-Codestral-7B-v0.1", "vLLM", False), ("llama-3.2-3b", "vLLM", True)],
)
def test_the_note_on_long_contexts_is_for_attention(
    model: str, framework: str, *, falls: bool
) -> None:
    doc = made(gpu="RTX 4090", model=model, framework=framework, context=65536)
    assert bool(note(doc, "long-context-slows")) is falls


def test_an_average_that_holds_an_image_tower_says_so() -> None:
    vision = made(gpu="Arc B580", model="gemma-3-12b", precision="Q4_K_M")
    assert "with its image tower Q4_K_M takes" in note(vision, "rule-of-thumb-falls-short")
    text = made(gpu="Arc B580", model="llama-3.1-8b", precision="Q4_K_M")
    assert "Q4_K_M stores" in note(text, "rule-of-thumb-falls-short")


def test_what_a_smaller_model_cuts_does_not_read_as_a_gain() -> None:
    doc = made(gpu="RTX 4090", model="Qwen2.5-14B", context=1_000_000)
    smaller = [item for item in doc.recommendations if item.action == "smaller-model"]
    assert smaller
    assert all("a context of only " in item.text for item in smaller)


@pytest.mark.parametrize("batch", [1, 2, 8])
def test_weights_read_once_for_every_token_are_those_of_one_sequence(batch: int) -> None:
    doc = made(gpu="RTX 4090", model="llama-3-8b", precision="Q8_0", batch=batch)
    assert doc.speed
    assert doc.speed.bound_by == "bandwidth"
    assert bool(note(doc, "bandwidth-sets-the-pace")) is (batch == 1)


@pytest.mark.parametrize(
    ("framework", "watched"), [("TensorRT-LLM", False), ("vLLM", False), ("llama.cpp", True)]
)
def test_memory_does_not_level_off_where_a_server_takes_its_share(
    framework: str, *, watched: bool
) -> None:
    doc = made(gpu="RTX 4090", model="llama-3.1-8b", precision="BF16", framework=framework)
    assert bool(note(doc, "watch-memory")) is watched


def test_a_model_that_is_quick_once_it_fits_is_not_said_to_stay_slow() -> None:
    doc = made(gpu="RTX 3060 Laptop", model="llama-3.1-8b", precision="Q4_K_M", context=32768)
    assert note(doc, "low-bandwidth-stays-slow") == ""


SMALLER = ("smaller format", "fewer bits")


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"gpu": "RTX 3060 Laptop", "model": "llama-3.1-8b", "precision": "Q4_K_M",
          "context": 32768}, False),
        ({"gpu": "RTX 4090", "model": "llama-3.1-70b", "precision": "EXL2 2.5bpw"}, False),
        ({"gpu": "RTX 4090", "model": "gpt-oss-120b"}, False),
        ({"gpu": "RTX 4090", "model": "phi-3-medium", "precision": "FP16"}, True),
    ],
    ids=["cache as large", "none smaller here", "native", "halved"],
)  # fmt: skip
def test_a_smaller_format_is_praised_where_there_is_one_and_weights_decide(
    asked: dict[str, object], *, said: bool
) -> None:
    happens = full(made(**asked)).happens
    assert any(words in happens for words in SMALLER) is said


@pytest.mark.parametrize("context", [1024, 2048, 4096])
def test_a_download_does_not_come_first_for_its_effort_before_a_setting(context: int) -> None:
    doc = made(gpu="RTX 4090", model="phi-3-medium", precision="FP16", context=context)
    first, *others = [item.tradeoff.effort for item in doc.recommendations]
    assert first == "download"
    assert "setting" in others
    assert "comes first" not in full(doc).first


@pytest.mark.parametrize("context", [1024, 2048, 4096, 8192])
def test_nothing_is_called_dearer_than_what_has_no_price(context: int) -> None:
    asked = {"gpu": "M4 Max:128GB", "model": "llama-3.1-405b", "precision": "Q8_0"}
    doc = made(**asked, context=context, prefer="quality")
    assert doc.recommendations[0].tradeoff.effort == "purchase"
    assert doc.recommendations[0].tradeoff.cost_usd is None
    assert "cheaper" not in full(doc).first


def test_what_is_free_on_one_of_several_cards_is_said_of_the_fullest() -> None:
    doc = made(gpu="RTX 3090", gpus=2, model="llama-3.3-70b", precision="Q6_K")
    some = [i for i in doc.recommendations if i.setup.gpus > 1 and i.after.fits]
    summaries = {item.number: item.figures["summary"] for item in full(doc).remedies}
    assert some
    for item in some:
        assert re.search(" free on the fullest (card|of [2-9] cards)", summaries[str(item.rank)])
        told = [text for text in item.text.split(". ") if " GiB free" in text]
        assert all("fullest card" in text for text in told)
    one = made(gpu="RTX 4090", model="phi-3-medium", precision="FP16")
    single = [i for i in one.recommendations if i.setup.gpus == 1]
    summaries = {item.number: item.figures["summary"] for item in full(one).remedies}
    assert not any("fullest" in summaries[str(item.rank)] for item in single)
