"""Parameter counts against exact ones of transformers 5.23.0."""

from __future__ import annotations

import json

import pytest

from advisor.knowledge import load_knowledge
from advisor.knowledge.types import ModelRecord
from advisor.models import model_from_record
from advisor.models.config import read_config
from advisor.models.shape import Counts, Shape
from tests.models.conftest import (
    is_one_sentence,
    read_or_refuse,
    reference_configs,
    reference_counts,
)

HAND = sorted(n for n, row in reference_counts().items() if row["config_source"] == "hand")
DEFAULTS = sorted(set(reference_counts()) - set(HAND))
# Their projector stands outside the vision columns of the reference.
PROJECTOR_ELSEWHERE = {"default-muse_spark", "default-kimi_k25", "default-minicpmv4_7"}
# Stated totals that include router biases, which are buffers: experts times MoE layers.
WITH_BUFFERS = {
    "dots.llm1.inst": 61 * 128,
    "GLM-4.5V": 45 * 128,
    "Kimi-Linear-48B-A3B-Instruct": 26 * 256,
    "Phi-3-small-8k-instruct": 2048,
}

# Key and value matrices of layers that reuse a cache: files hold them, the class leaves them out.
NOT_BUILT = {"default-gemma3n_text": 15 * (2 * 2048 * 2 * 256 + 256)}

# A norm behind the experts of a layer, which no single one of them holds.
NORMS_OF_EXPERTS = {"default-muse_spark": 62 * 4096}


def counts_of(name: str) -> Counts:
    counts = read_config(reference_configs()[name], name).counts
    assert counts is not None
    return counts


def number(name: str, column: str) -> int:
    return int(reference_counts()[name][column] or 0)


@pytest.mark.parametrize("name", HAND)
def test_released_models_are_counted_to_the_parameter(name: str) -> None:
    counts = counts_of(name)

    assert counts.total == number(name, "total_params")
    assert counts.embedding == number(name, "embed_in")
    assert counts.output == number(name, "lm_head")
    assert sum(counts.experts) == number(name, "experts_routed")
    assert counts.vision == number(name, "vision") + number(name, "projector")
    active = number(name, "active_params_derived") or counts.total
    assert counts.active == active


@pytest.mark.parametrize("name", [n for n in HAND if reference_counts()[n]["per_layer"]])
def test_every_layer_is_counted(name: str) -> None:
    runs = json.loads(reference_counts()[name]["per_layer"])
    expected = tuple(size for size, repeats in runs for _ in range(repeats))
    assert counts_of(name).layers == expected


@pytest.mark.parametrize("name", DEFAULTS)
def test_class_defaults_are_exact_or_refused(name: str) -> None:
    shape = read_or_refuse(reference_configs()[name], name)
    if isinstance(shape, str):
        assert is_one_sentence(shape)
        return
    counts = shape.counts
    if counts is None:
        return
    assert counts.total == number(name, "total_params") + NOT_BUILT.get(name, 0)
    shared = NORMS_OF_EXPERTS.get(name, 0)
    assert sum(counts.experts) == number(name, "experts_routed") - shared
    if name not in PROJECTOR_ELSEWHERE:
        assert counts.vision == number(name, "vision") + number(name, "projector")


def test_many_architectures_of_class_defaults_are_covered() -> None:
    shapes = [read_or_refuse(reference_configs()[name], name) for name in DEFAULTS]
    assert sum(isinstance(s, Shape) and s.counts is not None for s in shapes) >= 38


def known_counts() -> list[tuple[ModelRecord, Counts]]:
    """Records whose published total was reproduced, with their counts."""
    found = []
    for record in load_knowledge().models.values():
        shape = read_or_refuse(record.config, record.name, whole=False)
        if isinstance(shape, Shape) and shape.counts and not record.verified.startswith("no"):
            found.append((record, shape.counts))
    return found


def _beside(record: ModelRecord, counts: Counts) -> int:
    """Buffers, and towers that are stated in figures alone."""
    towers = 0 if counts.vision else record.vision_parameters or 0
    return WITH_BUFFERS.get(record.name, 0) + towers


def test_known_models_have_their_stated_total() -> None:
    known = known_counts()
    wrong = {
        record.name: (counts.total, record.parameters)
        for record, counts in known
        if record.parameters != round(counts.total + _beside(record, counts), -3)
    }
    assert not wrong
    assert len(known) >= 280


def test_active_parameters_of_known_mixtures_match() -> None:
    known = [(r, c) for r, c in known_counts() if r.active_parameters is not None]
    wrong = {
        record.name: (counts.active, record.active_parameters)
        for record, counts in known
        if round(counts.active, -6) != round(record.active_parameters or 0, -6)
    }
    # Its stated active figure was taken without the image tower that its total includes.
    assert set(wrong) <= {"Llama-4-Maverick-17B-128E-Instruct"}
    assert len(known) >= 30


@pytest.mark.parametrize(
    ("name", "published"),
    [
        # OpenAI's model card of gpt-oss, arXiv:2508.10925, table 1: unembedding counted alone
        ("gpt-oss-20b", 3.61e9),
        ("gpt-oss-120b", 5.13e9),
        # Google's model card of Gemma 4: 3.8 B active, its image encoder stated apart
        ("gemma-4-26B-A4B-it", 3.8e9),
        # Qwen's: "35B in total and 3B activated"
        ("Qwen3.6-35B-A3B", 2.95e9),
    ],
)
def test_a_token_reads_neither_the_input_embedding_nor_the_tower(
    name: str, published: float
) -> None:
    knowledge = load_knowledge()
    model = model_from_record(knowledge.models[name], knowledge)
    assert model.read_parameters == pytest.approx(published, rel=0.01)


def test_a_dense_model_is_told_whole() -> None:
    knowledge = load_knowledge()
    model = model_from_record(knowledge.models["gemma-4-31B-it"], knowledge)
    assert model.read_parameters == model.parameters
