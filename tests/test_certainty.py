"""Where the range of the memory figure crosses what a card offers, the report says so."""

from __future__ import annotations

import random
from functools import lru_cache
from pathlib import Path

import pytest
from msgspec.structs import replace

from advisor.advice import Advisor
from advisor.advice.document import Advice
from advisor.errors import UserError
from advisor.estimator import estimate_memory
from advisor.report.assembly import document
from advisor.report.sentence_check import contradictions
from advisor.scenario.figures import certainty_of
from advisor.scenario.settings import Request
from tests.estimate.builders import FP16, GIB, KNOWLEDGE, framework, on_card, scenario

PAGE = Path(__file__).parents[1] / "docs" / "memory-accuracy.md"
RISKY = Request(gpu="RTX 3060:12GB", model="mistral-7b", precision="awq", context=36_864)


@lru_cache(maxsize=1)
def advisor() -> Advisor:
    return Advisor.load()


def report(request: Request) -> Advice:
    return document(advisor().advise(request))


@pytest.mark.parametrize(
    ("gib", "certainty"), [(80, "sure"), (19.5, "may_exceed"), (18, "may_fit"), (12, "beyond")]
)
def test_the_range_is_held_against_the_card(gib: float, certainty: str) -> None:
    found = estimate_memory(on_card(gib, framework=framework("vllm"), precision=FP16), KNOWLEDGE)
    assert certainty_of(found) == certainty, (found.low_bytes / GIB, found.high_bytes / GIB)


def test_one_card_of_several_is_enough_to_be_unsure() -> None:
    found = estimate_memory(on_card(80, gpus=2), KNOWLEDGE)
    assert certainty_of(found) == "sure"
    first, last = found.per_gpu
    risky = replace(last, high_bytes=last.usable_bytes + 1)
    unsure = replace(found, per_gpu=(first, risky))
    assert certainty_of(unsure) == "may_exceed"


def test_without_a_card_nothing_is_said() -> None:
    found = estimate_memory(scenario(), KNOWLEDGE)
    assert certainty_of(found) is None


def test_the_verdict_and_a_note_say_that_it_may_not_fit() -> None:
    doc = report(RISKY)
    assert doc.verdict.state == "fits"
    assert doc.memory.certainty == "may_exceed"
    sentence = doc.verdict.sentence
    assert "should fit" in sentence
    assert "not for certain" in sentence
    assert f"up to {doc.memory.high_bytes / GIB:.1f} GiB" in sentence
    note = next(note.text for note in doc.notes if note.rule == "may-exceed-the-card")
    assert note.startswith("It may still not fit.")


def test_a_sure_fit_is_told_without_doubt() -> None:
    doc = report(replace(RISKY, gpu="RTX 3090"))
    assert doc.memory.certainty == "sure"
    assert "certain" not in doc.verdict.sentence
    assert "may-exceed-the-card" not in {note.rule for note in doc.notes}


@pytest.mark.parametrize(
    ("model", "precision", "width"),
    [
        ("Qwen3.5-27B", "UD-IQ4_XS", 0.2),
        ("Qwen3.5-27B-UD-IQ4_XS.gguf", None, 0.2),
        ("unsloth/Qwen3.5-27B-GGUF:UD-IQ4_XS", None, 0.2),
        ("Qwen3.5-27B-UD-IQ4_XS.gguf", "IQ4_XS", 0.0),
        ("Qwen3.5-27B", "IQ4_XS", 0.0),
    ],
)
def test_a_mix_of_types_is_as_unsure_as_the_note_says(
    model: str, precision: str | None, width: float
) -> None:
    request = Request(gpu="RTX 4080", model=model, precision=precision, context=16_384)
    memory = report(request).memory
    assert memory.low_bytes
    assert memory.high_bytes
    assert memory.weights_bytes
    apart = memory.high_bytes - memory.low_bytes - width * memory.weights_bytes
    assert 0 <= apart < 0.05 * memory.weights_bytes
    assert (memory.certainty == "may_fit") == (width > 0)


def test_a_verdict_that_hides_the_risk_is_found_out() -> None:
    doc = report(RISKY)
    doc.verdict.sentence = "It fits with room to spare."
    assert "verdict: leaves out that more may be needed than is usable" in contradictions(doc)


def test_the_verdict_is_unsure_exactly_where_the_range_is() -> None:
    rng = random.Random(3)
    cards = [card.name for card in advisor().knowledge.gpus.values() if card.vram_bytes]
    seen = {"sure": 0, "unverified": 0, "may_exceed": 0, "may_fit": 0, "beyond": 0}
    for _ in range(300):
        request = Request(
            gpu=rng.choice(cards),
            gpus=rng.choice((None, None, 2)),
            model=rng.choice(("llama-3-8b", "mistral-7b", "qwen2.5-14b", "phi-3-small")),
            precision=rng.choice(("FP16", "AWQ", "GPTQ", "Q4_K_M")),
            context=rng.choice((2048, 16_384, 32_768)),
        )
        try:
            doc = report(request)
        except UserError:
            continue
        certainty = doc.memory.certainty
        runs = doc.verdict.state in {"fits", "tight"}
        unsure = "not for certain" in doc.verdict.sentence
        assert unsure == (runs and certainty == "may_exceed"), request.stated()
        told = ("verdict", "have", "happens", "note may-exceed")
        wrong = [found for found in contradictions(doc) if found.startswith(told)]
        assert wrong == [], request.stated()
        seen[certainty or ""] += 1
    assert all(seen.values()), seen


@pytest.mark.parametrize("runtime", ["SGLang", "TGI", "TensorRT-LLM", "MLX-LM"])
def test_a_runtime_whose_memory_nobody_compared_is_never_sure(runtime: str) -> None:
    card = "Apple M4 Max (40-core GPU):128GB" if runtime == "MLX-LM" else "H100 SXM5 80GB"
    doc = report(Request(gpu=card, model="llama-3.1-8b", framework=runtime))
    assert doc.memory.certainty == "unverified"
    assert {item.confidence for item in doc.recommendations} <= {"medium", "low"}
    said = next(note.text for note in doc.notes if note.rule == "memory-partly-estimated")
    assert "no memory that it printed was compared" in said


def test_the_sources_of_what_was_compared_are_on_the_page() -> None:
    page = PAGE.read_text(encoding="utf-8").casefold()
    for name, known in advisor().knowledge.frameworks.items():
        shares = {"Ollama": "llama.cpp", "LM Studio": "llama.cpp", "ExLlamaV2": "ExLlama"}
        if known.memory_checked:
            assert f"| {shares.get(name, name).casefold()}" in page, name


def test_servers_are_tried_with_a_full_prompt_and_a_picture() -> None:
    """What a prompt is computed with lies outside SGLang's share, and is taken when one comes."""
    told = {"framework": "SGLang", "precision": "AWQ", "gpu_memory_utilization": 0.93}
    seeing = report(Request(gpu="RTX 4090", model="qwen3.6-27b", context=32_768, **told))  # type: ignore[arg-type]
    reading = report(Request(gpu="RTX 4090", model="qwen2.5-32b", **told))  # type: ignore[arg-type]
    for doc, pictures in ((seeing, True), (reading, False)):
        said = next(note.text for note in doc.notes if "may start all the same" in note.text)
        assert ("with pictures" in said) is pictures


def test_a_format_that_a_runtime_has_in_another_engine_is_never_sure() -> None:
    asked = Request(gpu="M1 Max 32GB", model="qwen3.6:35b-a3b-nvfp4", framework="Ollama")
    assert document(advisor().advise(asked)).memory.certainty == "unverified"


def test_a_card_that_is_nearly_full_is_not_sure_though_the_range_fits() -> None:
    asked = Request(gpu="RTX 5060 Ti 16GB", model="mistral-small-24b", precision="Q4_K_M")
    tight, roomy = (report(replace(asked, context=tokens)) for tokens in (8192, 1024))
    assert max(card.high_bytes / card.usable_bytes for card in tight.memory.per_gpu) < 1
    assert (tight.memory.certainty, roomy.memory.certainty) == ("unverified", "sure")
