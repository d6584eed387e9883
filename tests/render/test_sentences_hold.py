"""Sentences that a report may only say where they are true, and figures told in one way."""

from __future__ import annotations

from functools import lru_cache

import pytest

from advisor.errors import RequestError
from advisor.pipeline import Advisor
from advisor.render import document
from advisor.render.audit import contradictions
from advisor.render.charts import memory_bar
from advisor.render.contract import Document
from advisor.render.figures import billions
from advisor.render.prose import Report, report
from advisor.render.text import render_text
from advisor.scenario import Request


@lru_cache(maxsize=64)
def _document(asked: tuple[tuple[str, object], ...]) -> Document:
    doc = document(_advisor().advise(Request(**dict(asked))))  # type: ignore[arg-type]  # the caller's keys
    assert contradictions(doc) == []
    return doc


@lru_cache(maxsize=1)
def _advisor() -> Advisor:
    return Advisor.load()


def made(**asked: object) -> Document:
    return _document(tuple(asked.items()))


def note(doc: Document, rule: str) -> str:
    return next((item["text"] for item in doc["notes"] if item["rule"] == rule), "")


def full(doc: Document) -> Report:
    return report(doc, "full")


def plain(doc: Document) -> str:
    return " ".join(render_text(doc, length="full").split())


@pytest.mark.parametrize(
    ("gpu", "framework", "backend"),
    [("RX 7900 XTX", "vLLM", None), ("MI300X", "TGI", None), ("RX 7900 XTX", "llama.cpp", "Vulkan")],
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


@pytest.mark.parametrize("asked", [{"gpu": "RTX 3060"}, {"model": "gpt-oss"}])
def test_a_word_that_many_answer_to_names_them(asked: dict[str, str]) -> None:
    with pytest.raises(RequestError, match="names several"):
        made(**{"gpu": "RTX 4090", "model": "llama-3.1-8b", **asked})


@pytest.mark.parametrize(
    ("gpu", "framework", "binds"),
    [("B200", "vLLM", True), ("RTX 5090", "vLLM", True), ("RTX 5090", "llama.cpp", False),
     ("RTX 5090", "TensorRT-LLM", False)],
)  # fmt: skip
@pytest.mark.parametrize("context", [1024, 2048, 4096, 8192])
def test_what_a_servers_share_leaves_is_not_laid_to_display_and_driver(
    gpu: str, framework: str, binds: bool, context: int
) -> None:
    doc = made(gpu=gpu, model="llama-3.1-8b", framework=framework, precision=_AT_HOME[framework],
               context=context)  # fmt: skip
    labels = {segment.label for segment in memory_bar(doc).segments}
    assert ("outside vLLM's share" in labels) is binds
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
