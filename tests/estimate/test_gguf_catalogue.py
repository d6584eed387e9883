"""Tensor lists of the catalogue: against llama.cpp's own dry run, counts and published files."""

from __future__ import annotations

import pytest

from advisor.errors import UserError
from advisor.estimator.gguf_tensors import Layout, gguf_layout
from advisor.estimator.gguf_weights import gguf_bytes
from advisor.estimator.weights import weights_of
from advisor.knowledge import load_knowledge
from advisor.models import known_shape, model_from_record
from tests.estimate.builders import rows

GIB, GB = 2**30, 10**9
NOT_IN_LLAMA_CPP = {
    "bart", "deepseek_v41", "gptj", "mllama", "molmo", "opt", "phi3small", "styletts2", "whisper",
}  # fmt: skip
CONTRADICTS_ITSELF = "Minitron-8B-Base"
"""Its record ties the output, which Nemotron has apart, and its total is that of neither."""
NOT_COUNTED = ("exp_probs_b", "tid2eid", "_res_score", "rope_f")
"""Buffers of the classes, and what a converter makes."""


def test_every_file_type_of_the_catalogue_is_as_llama_cpp_says() -> None:
    """``benchmarks/llamacpp_models.py``: llama.cpp loaded each list, and sized it in a dry run."""
    knowledge = load_knowledge()
    wrong, figures = [], 0
    for row in rows("llamacpp_catalogue"):
        shape = known_shape(knowledge.models[row.pop("model")], knowledge)
        layout = gguf_layout(shape)
        assert layout is not None
        for ftype, told in row.items():
            if told:
                found = gguf_bytes(shape, layout, ftype, knowledge.ggml_types).stored
                figures += 1
                wrong += [(layout.architecture, ftype, found, told)] * (found != int(told))
    assert wrong == []
    assert figures > 7000


def test_only_what_llama_cpp_has_not_is_sized_by_average() -> None:
    knowledge, without = load_knowledge(), set()
    listed = {row["model"] for row in rows("llamacpp_catalogue")}
    for record in knowledge.models.values():
        try:
            shape = known_shape(record, knowledge)
        except UserError:
            continue
        if gguf_layout(shape) is None:
            without.add(shape.model_type)
        else:
            assert record.name in {*listed, CONTRADICTS_ITSELF}
    assert without == NOT_IN_LLAMA_CPP


def _uncounted(layout: Layout) -> int:
    """Count the stored weights that are no parameters of the model."""
    held = [*layout.outside, *(tensor for kind in layout.kinds for tensor in layout.blocks[kind])]
    return sum(one.elements for one in held if any(part in one.name for part in NOT_COUNTED))


def test_listed_tensors_hold_every_parameter_of_the_text_model() -> None:
    """But rows of the embedding that no word has, and a pooler, which no GGUF file holds."""
    knowledge = load_knowledge()
    apart: dict[str, set[int]] = {}
    for row in rows("llamacpp_catalogue"):
        shape = known_shape(knowledge.models[row["model"]], knowledge)
        layout, counts = gguf_layout(shape), shape.counts
        assert layout is not None
        if counts is not None:
            more = layout.elements - _uncounted(layout) - counts.total + counts.vision
            apart.setdefault(layout.architecture, set()).add(more * 10**6 // counts.total)
    odd = {name: shares for name, shares in apart.items() if shares != {0}}
    assert {*odd} <= {"bert", "gemma3", "gemma3n", "gemma4", "ernie4_5-moe", "kimi-k3"}, odd
    assert min(map(min, odd.values())) > -7000


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
        ("gemma-4-E2B-it", "Q8_0", 4.97 * GB),
        ("gemma-4-E2B-it", "Q4_K_M", 3.43 * GB),
        ("gemma-4-E2B-it", "Q2_K", 2.99 * GB),
        ("Kimi-Linear-48B-A3B-Instruct", "Q5_K_M", 34.87 * GB),
        ("Kimi-Linear-48B-A3B-Instruct", "Q4_K_M", 29.70 * GB),
        ("GLM-4.7-Flash", "Q8_0", 31.84 * GB),
        ("falcon-7b-instruct", "Q4_0", 4.21 * GB),
    ],
)
def test_files_are_as_large_as_published(name: str, ftype: str, held: float) -> None:
    """Sizes of ggml-org/Llama-macOS#63, ggml-org/llama.cpp#16095 and of these files' pages.

    dahus/gemma-4-e2b-it-Q3_K_S-GGUF, ymcki/Kimi-Linear-48B-A3B-Instruct-GGUF (without a matrix),
    bartowski/zai-org_GLM-4.7-Flash-GGUF, TheBloke/falcon-7b-instruct-GGUF.
    """
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
