"""Configs of quantised releases as they are published: the format, and the size it makes."""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from advisor.estimator.weights import weights_of
from advisor.knowledge import load_knowledge
from advisor.models import model_from_path, model_from_record
from advisor.reading.public_list import exact
from advisor.reading.public_sizing import model_of
from advisor.reading.published import packed_config
from advisor.scenario.asked_model import find_model_named
from advisor.scenario.resolve import resolve
from advisor.scenario.settings import Request
from tests.models.test_lone_config import weights_gib

_FILE = Path(__file__).parents[1] / "data" / "quantised_configs.json.gz"


@cache
def releases() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = json.loads(gzip.decompress(_FILE.read_bytes()))
    return found


def written(folder: Path, name: str) -> Path:
    release = releases()[name]
    for part in ("config", "hf_quant_config"):
        if release[part]:
            (folder / f"{part}.json").write_text(json.dumps(release[part]), encoding="utf-8")
    return folder


@pytest.mark.parametrize("name", sorted(releases()))
def test_the_format_is_the_one_it_is_published_in(tmp_path: Path, name: str) -> None:
    model = model_from_path(written(tmp_path, name))
    assert model.held_format == releases()[name]["format"]


@pytest.mark.parametrize("name", sorted(n for n, one in releases().items() if "gib" in one))
def test_the_size_is_that_of_its_tensors(tmp_path: Path, name: str) -> None:
    assert weights_gib(written(tmp_path, name)) == pytest.approx(releases()[name]["gib"], rel=0.01)


NVFP4 = 16 / (4 + 8 / 16)
"""Times that 16 bits are as large as four with a scale of eight for every sixteen weights."""


@pytest.mark.parametrize(
    ("name", "elements"),
    [
        ("nvidia/Gemma-4-26B-A4B-NVFP4", 14.39e9),
        ("nvidia/Gemma-4-31B-IT-NVFP4", 20.87e9),
        ("nvidia/MiniMax-M2.5-NVFP4", 116.35e9),
    ],
)
def test_what_is_left_in_16_bits_is_what_the_files_hold(
    tmp_path: Path, name: str, elements: float
) -> None:
    """The public list counts two packed weights as one element, and no scales of these."""
    path = written(tmp_path, name)
    total = model_from_path(path).parameters
    packed = 2 * (total - elements)
    expected = (2 * (total - packed) + 2 * packed / NVFP4) / 2**30
    assert weights_gib(path) == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize(
    ("model", "repository"),
    [
        ("gemma-4-31B-it", "nvidia/Gemma-4-31B-IT-NVFP4"),
        ("DeepSeek-V3.1", "nvidia/DeepSeek-V3.1-NVFP4"),
        ("MiniMax-M2.5", "nvidia/MiniMax-M2.5-NVFP4"),
        ("Qwen3.5-122B-A10B", "nvidia/Qwen3.5-122B-A10B-NVFP4"),
        ("Qwen3.6-35B-A3B", "nvidia/Qwen3.6-35B-A3B-NVFP4"),
    ],
)
def test_a_model_asked_for_in_the_format_is_as_large_as_its_known_repository(
    tmp_path: Path, model: str, repository: str
) -> None:
    knowledge = load_knowledge()
    asked = model_from_record(knowledge.models[model], knowledge)
    nvfp4, server = knowledge.formats["NVFP4"], knowledge.frameworks["vLLM"]
    found = weights_of(asked, nvfp4, server, knowledge.ggml_types).profile.total_bytes / 2**30
    assert found == pytest.approx(weights_gib(written(tmp_path, repository)), rel=0.01)


@pytest.mark.parametrize(
    ("repository", "weights_gb"),
    [
        ("meta-llama/Llama-3.1-405B-Instruct-FP8", 2 * 405.85 - 324.54),
        ("meta-llama/Llama-4-Maverick-17B-128E-Instruct-FP8", 2 * 401.58 - 386.55),
        ("nvidia/GLM-4.7-NVFP4", 2 * 352.80 - 338.63 * (2 - 4.5 / 8)),
        ("cyankiwi/Qwen3-Next-80B-A3B-Instruct-AWQ-4bit", 2 * 79.67 - 77.31 * (2 - 4.5 / 8)),
    ],
)
def test_a_repository_named_by_itself_keeps_in_16_bits_what_its_row_says(
    repository: str, weights_gb: float
) -> None:
    """Of so many billion parameters so many are packed, by the public list's count of elements."""
    knowledge, listed = load_knowledge(), exact(repository)
    assert listed
    model = model_of(listed, knowledge)
    held, server = knowledge.formats[model.held_format or ""], knowledge.frameworks["vLLM"]
    found = weights_of(model, held, server, knowledge.ggml_types).profile.total_bytes
    assert found / 1e9 == pytest.approx(weights_gb, rel=0.01)


@pytest.mark.parametrize(
    ("model", "weights_gb"),
    [
        ("gemma-4-26B-A4B-it", 2 * 25.81 - 23.95 * (2 - 8.5 / 8)),
        ("gemma-4-31B-it", 2 * 31.27 - 29.29 * (2 - 8.5 / 8)),
    ],
)
def test_eight_bits_with_a_scale_for_32_weights_are_sized_so(model: str, weights_gb: float) -> None:
    """What is offered in GPTQ 8-bit lies in a repository named AWQ-8bit; so many are packed."""
    knowledge = load_knowledge()
    known, held = find_model_named(model, knowledge), knowledge.formats["GPTQ 8-bit"]
    server = knowledge.frameworks["vLLM"]
    found = weights_of(known, held, server, knowledge.ggml_types).profile.total_bytes
    assert found / 1e9 == pytest.approx(weights_gb, rel=0.02)


def test_a_repository_that_was_renamed_is_known_by_its_first_name() -> None:
    first, now = (f"meta-llama/{one}Llama-3.1-405B-Instruct-FP8" for one in ("Meta-", ""))
    assert packed_config(first) == packed_config(now) != {}


@pytest.mark.parametrize(
    ("model", "format_name"),
    [
        ("poolside/Laguna-S-2.1-INT4", "GPTQ 4-bit"),
        ("inclusionAI/Ling-3.0-flash-int4", "AWQ 4-bit"),
    ],
)
def test_a_name_that_says_bits_alone_is_not_sized_in_16(model: str, format_name: str) -> None:
    asked = Request(gpu="8x H200", model=model, framework="vLLM")
    assert resolve(asked, load_knowledge()).precision.name == format_name


def test_a_mix_is_sized_by_what_each_module_is_in(tmp_path: Path) -> None:
    model = model_from_path(written(tmp_path, "nvidia/MiniMax-M3-NVFP4"))
    experts, others = 57 * 128 * 3 * 6144 * 3072, 12e9
    mean = (4.5 * experts + 8.25 * others) / (experts + others)
    assert model.held_bits == pytest.approx(mean, rel=0.01)
    assert sum(model.held_wide) < 0.001 * model.parameters


@pytest.mark.parametrize(
    "written_as",
    [
        "model.language_model.layers.0.mlp.shared_expert",
        "model.language_model.layers.0.mlp.shared_expert.*",
        r"re:.*layers\.0\.mlp\.shared_expert\..*",
    ],
)
def test_a_shared_expert_is_left_in_16_bits_however_it_is_named(
    tmp_path: Path, written_as: str
) -> None:
    path = written(tmp_path, "nvidia/Qwen3.5-122B-A10B-NVFP4")
    (path / "hf_quant_config.json").unlink(missing_ok=True)
    config = json.loads((path / "config.json").read_text(encoding="utf-8"))
    config["quantization_config"] = {
        "quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": [written_as]
    }  # fmt: skip
    (path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    text = config["text_config"]
    whole = 3 * text["hidden_size"] * text["shared_expert_intermediate_size"]
    assert model_from_path(path).held_wide[:2] == (whole, 0)


def test_a_packed_output_matrix_is_counted_packed(tmp_path: Path) -> None:
    path = written(tmp_path, "nvidia/Qwen3.6-27B-NVFP4")
    config = json.loads((path / "config.json").read_text(encoding="utf-8"))
    quantised = config["quantization_config"]
    with_head = weights_gib(path)
    quantised["quantized_layers"].pop("lm_head")
    (path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    head = 248320 * 5120 * (16 - model_from_path(path).held_bits) / 8 / 2**30  # type: ignore[operator]
    assert weights_gib(path) - with_head == pytest.approx(head, rel=0.1)
