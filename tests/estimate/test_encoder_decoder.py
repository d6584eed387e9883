"""Whisper, T5 and RWKV: what their decoders keep, and who can be sized with them."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.advice import Advisor
from advisor.errors import RequestError, UserError
from advisor.estimator import estimate_memory
from advisor.estimator.placement import host_fits
from advisor.knowledge import load_knowledge
from advisor.knowledge.types import Knowledge
from advisor.models.stored_tensors import Model
from advisor.scenario import Scenario
from advisor.scenario.figures import Memory
from advisor.scenario.resolve import resolve
from advisor.scenario.settings import Request
from tests.estimate.builders import (
    DATA,
    FP16,
    KNOWLEDGE,
    framework,
    kv_cache_bytes,
    model_of,
    scenario,
)


@cache
def _configs() -> Mapping[str, Mapping[str, object]]:
    with gzip.open(DATA / "configs.json.gz", "rt", encoding="utf-8") as text:
        found: Mapping[str, Mapping[str, object]] = json.load(text)
    return found


@cache
def known() -> Knowledge:
    return load_knowledge()


def named(name: str) -> Model:
    return model_of(_configs()[name], name)


def held(name: str, kind: str = "transformers", **changes: object) -> Scenario:
    base = {"framework": framework(kind), "precision": FP16}
    return scenario(named(name), **{**base, **changes})


def sized(found: Scenario) -> Memory:
    return estimate_memory(found, KNOWLEDGE)


def test_whisper_caches_its_tokens_and_half_a_minute_of_sound() -> None:
    """whisper-base: 6 decoder layers, width 512; two bytes for each key and value."""
    found = held("whisper-base", context_tokens=448, batch=3)
    assert kv_cache_bytes(found) == 3 * 6 * (448 + 1500) * 2 * 512 * 2


def test_vllm_keeps_the_sound_in_whole_blocks() -> None:
    found = held("whisper-base", "vllm", context_tokens=100)
    assert kv_cache_bytes(found) == 6 * (112 + 1504) * 2 * 512 * 2


def test_t5_caches_its_input_as_well() -> None:
    """flan-t5-xxl: 24 decoder layers, 64 heads of 64."""
    found = held("flan-t5-xxl", context_tokens=512)
    assert kv_cache_bytes(found) == 24 * 2 * 512 * 2 * 4096 * 2


def test_the_input_of_t5_may_be_short_and_the_range_says_so() -> None:
    found = sized(held("flan-t5-xxl", context_tokens=512))
    assert any("encoder's input" in phrase for phrase in found.approximate)
    assert found.required_bytes - found.low_bytes >= found.kv_cache_bytes // 2
    assert sized(held("whisper-base", context_tokens=448)).approximate != found.approximate


def test_the_scores_of_t5_grow_with_the_square_of_its_input() -> None:
    buffers = [sized(held("flan-t5-xxl", context_tokens=n)).compute_buffer_bytes
               for n in (1024, 2048, 4096)]  # fmt: skip
    scores = 64 * 12
    growth = [buffers[1] - buffers[0], buffers[2] - buffers[1]]
    assert growth[1] - 2 * growth[0] == scores * (4096**2 - 3 * 2048**2 + 2 * 1024**2)


def test_rwkv_keeps_five_vectors_whatever_the_context() -> None:
    """rwkv-4-7b: 32 layers, width 4096; two vectors of two bytes and three of four."""
    for context in (1, 4096):
        found = held("rwkv-4-7b", context_tokens=context, batch=2)
        assert kv_cache_bytes(found) == 2 * 32 * 4096 * (2 * 2 + 3 * 4)


@pytest.mark.parametrize("name", ["whisper-base", "flan-t5-xxl", "rwkv-4-7b"])
@pytest.mark.parametrize("kind", ["llama.cpp", "exllama", "mlx", "sglang", "tensorrt-llm", "tgi"])
def test_other_runtimes_say_that_it_is_not_established(name: str, kind: str) -> None:
    with pytest.raises(RequestError, match="is not established"):
        sized(held(name, kind))


def test_weights_are_those_of_encoder_and_decoder() -> None:
    for name in ("whisper-base", "flan-t5-xxl", "rwkv-4-7b"):
        model = named(name)
        found = sized(held(name))
        assert found.weights_bytes == 2 * model.parameters


WHISPERS = [f"whisper-{size}" for size in
            ("tiny", "base", "small", "medium", "large-v3", "large-v3-turbo")]  # fmt: skip


@pytest.mark.parametrize("name", WHISPERS)
def test_every_whisper_of_the_knowledge_base_is_sized_with_a_card_and_without(name: str) -> None:
    for gpu in (None, "RTX 3060 12GB"):
        found = resolve(Request(model=name, gpu=gpu), known())
        memory = estimate_memory(found, known())
        assert memory.weights_bytes == 2 * found.model.parameters
        assert memory.kv_cache_bytes > 0
        assert found.framework.memory_model in {"vllm", "transformers"}


def test_a_report_on_whisper_gives_no_speed_and_every_remedy_can_run() -> None:
    loaded = Advisor.load()
    advice = loaded.advise(Request(gpu="GTX 1650", model="whisper-large-v3", batch=4))
    assert advice.speed is None
    for option in advice.options:
        kind = option.scenario.framework.memory_model
        assert kind in {"vllm", "transformers", "whisper.cpp"}, option.key
        assert host_fits(option.scenario, option.memory)


def test_stating_a_runtime_that_cannot_be_sized_names_one_that_can(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps(_configs()["flan-t5-xxl"]), encoding="utf-8")
    asked = Request(gpu="RTX 4090", config=str(config), framework="llama.cpp")
    with pytest.raises(UserError, match=r"not established.*transformers runs"):
        resolve(asked, known())


def test_an_encoder_leaves_the_speed_unknown_and_says_why(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps(_configs()["flan-t5-xxl"]), encoding="utf-8")
    advice = Advisor.load().advise(Request(gpu="A100 SXM4 80GB", config=str(config)))
    assert advice.memory.deficit_bytes == 0
    assert advice.speed is None
    assert "calibration of models with an encoder" in advice.missing


@given(
    st.sampled_from(("whisper-base", "whisper-medium", "flan-t5-xxl", "rwkv-4-7b")),
    st.integers(1, 3000),
    st.integers(1, 32),
    st.integers(1, 3),
)
@settings(deadline=None)
def test_more_tokens_or_sequences_never_need_less(
    name: str, context: int, batch: int, more: int
) -> None:
    base = sized(held(name, context_tokens=context, batch=batch, logits_rows=batch))
    longer = sized(held(name, context_tokens=context + more, batch=batch, logits_rows=batch))
    wider = sized(held(name, context_tokens=context, batch=batch + more, logits_rows=batch + more))
    assert longer.required_bytes >= base.required_bytes
    assert wider.required_bytes > base.required_bytes
    assert base.low_bytes <= base.required_bytes <= base.high_bytes
