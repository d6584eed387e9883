"""Tensor lists of models with recurrent layers, against files that were published of them."""

from __future__ import annotations

import pytest

from advisor.estimator.gguf_tensors import gguf_layout
from advisor.estimator.weights import weights_of
from advisor.knowledge import load_knowledge
from advisor.models import model_from_record

GIB, GB = 2**30, 10**9
LISTED = ("qwen3_next", "qwen3_5", "qwen3_5_moe", "lfm2", "lfm2_moe", "granitemoehybrid", "llama4")


def test_listed_tensors_hold_every_parameter_of_the_text_model() -> None:
    knowledge = load_knowledge()
    seen = set()
    for record in knowledge.models.values():
        if record.config["model_type"] not in {*LISTED, "nemotron_h"}:
            continue
        model = model_from_record(record, knowledge)
        layout, counts = gguf_layout(model.shape), model.shape.counts
        if layout is None or counts is None:
            assert record.config.get("moe_latent_size"), record.name
            continue
        routers = sum(
            tensor.elements
            for kind in layout.kinds
            for tensor in layout.blocks[kind]
            if tensor.name == "exp_probs_b.bias"
        )
        assert layout.elements - counts.total + counts.vision in {0, routers}, record.name
        seen.add(record.config["model_type"])
    assert seen == {*LISTED, "nemotron_h"}


@pytest.mark.parametrize(
    ("name", "ftype", "held"),
    [
        ("Qwen3.5-2B", "Q8_0", 2.0 * GB),
        ("Qwen3.5-4B", "Q8_0", 4.5 * GB),
        ("Qwen3.5-9B", "Q8_0", 9.5 * GB),
        ("Qwen3.5-27B", "Q8_0", 28.6 * GB),
        ("Qwen3.5-35B-A3B", "Q8_0", 36.9 * GB),
        ("Qwen3.5-122B-A10B", "Q8_0", 129.9 * GB),
        ("Qwen3.5-397B-A17B", "Q8_0", 421.5 * GB),
        ("Qwen3-Next-80B-A3B-Instruct", "Q4_K_M", 45.10 * GIB),
    ],
)
def test_files_are_as_large_as_published(name: str, ftype: str, held: float) -> None:
    """Sizes of github.com/ggml-org/Llama-macOS/pull/63 and ggml-org/llama.cpp/pull/16095."""
    knowledge = load_knowledge()
    model = model_from_record(knowledge.models[name], knowledge)
    llama_cpp = knowledge.frameworks["llama.cpp"]
    found = weights_of(model, knowledge.formats[ftype], llama_cpp, knowledge.ggml_types)
    size = found.profile.total_bytes - found.profile.vision_bytes
    assert size == pytest.approx(held, rel=0.01)
    assert "sized by average" not in " ".join(found.approximate)


UD_Q4_K_XL = {
    "Qwen3.5-0.8B": 0.559, "Qwen3.5-2B": 1.34, "Qwen3.5-4B": 2.9, "Qwen3.5-9B": 6.0,
    "Qwen3.5-27B": 17.6, "Qwen3.5-35B-A3B": 22.2, "Qwen3.5-122B-A10B": 68.4,
    "Qwen3.5-397B-A17B": 219.2,
}  # fmt: skip
"""GB, of the same page: what Unsloth's mix holds of each model."""


def test_a_mix_is_at_most_a_tenth_off_the_type_that_it_is_sized_as() -> None:
    knowledge = load_knowledge()
    for name, held in UD_Q4_K_XL.items():
        model = model_from_record(knowledge.models[name], knowledge)
        found = weights_of(
            model,
            knowledge.formats["Q4_K_M"],
            knowledge.frameworks["llama.cpp"],
            knowledge.ggml_types,
        )
        size = found.profile.total_bytes - found.profile.vision_bytes
        assert held * GB / size == pytest.approx(1, abs=0.1), name
