"""Cache bytes: transformers' own objects, llama.cpp's rules, paged servers, refusals."""

from __future__ import annotations

import ast
from collections.abc import Mapping

import pytest
from msgspec.structs import replace

from advisor.errors import RequestError
from advisor.estimator.kv_cache import kv_bytes_per_token, kv_read_bytes
from advisor.knowledge import load_knowledge
from advisor.models import model_from_record
from advisor.models.stored_tensors import Model
from advisor.scenario import Scenario
from tests.estimate.builders import (
    FP16,
    KV_TYPES,
    framework,
    kv_cache_bytes,
    model_of,
    rows,
    scenario,
    text_model,
)


def tiny(row: Mapping[str, str]) -> Model:
    config = {"vocab_size": 1000, "model_type": row["model_type"], "max_position_embeddings": 4096}
    return model_of({**config, **ast.literal_eval(row["config"])}, row["name"])


def held_by_transformers(row: Mapping[str, str], tokens: str) -> Scenario:
    kind = KV_TYPES["f32" if row["dtype"] == "float32" else "bf16"]
    return scenario(
        tiny(row),
        framework=framework("transformers"),
        precision=FP16,
        kv_cache_k=kind,
        kv_cache_v=kind,
        batch=int(row["batch"]),
        context_tokens=int(row[tokens]),
    )


def test_every_dynamic_cache_of_transformers_is_exact() -> None:
    found = [row for row in rows("hf_kv_cache") if row["cache"] == "DynamicCache"]
    wrong = [
        (row["name"], row["mode"], row["tokens"])
        for row in found
        if kv_cache_bytes(held_by_transformers(row, "tokens")) != int(row["cache_bytes"])
    ]
    assert (len(found), wrong) == (360, [])


def test_every_static_cache_of_transformers_is_exact() -> None:
    found = [row for row in rows("hf_kv_cache") if row["cache"] == "StaticCache"]
    wrong = [
        (row["name"], row["max_cache_len"])
        for row in found
        if kv_cache_bytes(held_by_transformers(row, "max_cache_len"), static=True)
        != int(row["cache_bytes"])
    ]
    assert (len(found), wrong) == (48, [])


def test_worked_examples_of_transformers() -> None:
    wanted = {"mistral-swa64": 32_288, "deepseek_v2-mla": 172_800, "falcon-gqa": 614_400}
    found = {
        row["name"]: kv_cache_bytes(held_by_transformers(row, "tokens"))
        for row in rows("hf_kv_cache")
        if row["name"] in wanted
        and (row["cache"], row["dtype"], row["batch"], row["tokens"], row["mode"])
        == ("DynamicCache", "bfloat16", "1", "300", "prefill")
    }
    assert found == wanted


@pytest.mark.parametrize(
    ("model", "changes", "expected"),
    [
        ("llama-3-8b", {}, 1_073_741_824),
        ("gemma-3-12b", {"context_tokens": 32768, "kv_unified": False}, 2_650_800_128),
        ("gemma-3-12b", {"context_tokens": 8192, "batch": 4}, 3_657_433_088),
        ("llama-2-7b", {"context_tokens": 64, "batch": 8, "kv_unified": False}, 1_073_741_824),
        ("deepseek-v2-lite", {"context_tokens": 32768}, 1_019_215_872),
        ("mamba-codestral-7b", {"context_tokens": 32768}, 276_299_776),
        ("mamba-codestral-7b", {"context_tokens": 512}, 276_299_776),
    ],
)
def test_worked_examples_of_llamacpp(model: str, changes: dict[str, object], expected: int) -> None:
    assert kv_cache_bytes(scenario(model, **changes)) == expected


def test_a_quantised_latent_cache() -> None:
    q8 = KV_TYPES["q8_0"]
    held = scenario("deepseek-v2-lite", context_tokens=32768, kv_cache_k=q8, kv_cache_v=q8)
    assert kv_cache_bytes(held) == 541_458_432


@pytest.mark.parametrize(
    ("name", "each"),
    [("DeepSeek-V2-Lite", 27 * 16 * (192 + 128) * 2), ("DeepSeek-V3", 61 * (512 + 64) * 2)],
)
def test_mlx_caches_every_head_of_deepseek_v2_and_the_latent_of_v3(name: str, each: int) -> None:
    """Source: ``deepseek_v2.py`` and ``deepseek_v3.py`` of mlx_lm/models."""
    known = load_knowledge()
    model = model_from_record(known.models[name], known)
    asked = scenario(model, framework=framework("mlx"), precision=FP16)
    assert kv_bytes_per_token(asked) == each


def test_llamacpp_ignores_the_window_of_phi3_and_transformers_does_not() -> None:
    phi = scenario("phi-3-mini-4k", context_tokens=4096)
    python = replace(phi, framework=framework("transformers"))
    assert kv_cache_bytes(phi) == 4096 * 32 * 2 * 3072 * 2
    assert kv_cache_bytes(python) == 32 * (2046 * 2 * 3072 * 2 + 8)


def test_swa_full_keeps_every_token() -> None:
    gemma = scenario("gemma-3-12b", context_tokens=32768, swa_full=True)
    assert kv_cache_bytes(gemma) == 48 * 32768 * 8192


def test_vllm_allocates_whole_blocks() -> None:
    held = scenario(framework=framework("vllm"), context_tokens=100, batch=3)
    assert kv_cache_bytes(held) == 3 * 112 * 131_072


@pytest.mark.parametrize(
    ("card", "changes", "kept"),
    [
        ("GeForce RTX 4090", {}, 4095 + 2 * 2048),
        ("A100 SXM4 80 GB", {}, 4095 + 2 * 2048),
        ("DGX Spark (GB10)", {}, 4095 + 2 * 2048),
        ("RTX PRO 6000 Blackwell", {}, 4095 + 2 * 8192),
        ("B200 SXM", {}, 4095 + 2 * 16_384),
        ("H100 SXM5 80 GB", {"max_num_batched_tokens": 2048}, 4095 + 2 * 2048),
        ("H100 SXM5 80 GB", {"gpus": 2, "split": "tensor", "stages": 2}, 4095 + 3 * 8192),
        ("H100 SXM5 80 GB", {"context_tokens": 16_384}, 16_384),
    ],
)
def test_vllm_keeps_a_window_and_the_steps_in_flight(
    card: str, changes: dict[str, object], kept: int
) -> None:
    """Source: ``max_admission_blocks_per_request`` and ``get_batch_defaults`` of 0.33.0."""
    settings = {"context_tokens": 65_536, "gpu": load_knowledge().gpus[card], **changes}
    held = scenario("gemma-2-9b", framework=framework("vllm"), **settings)
    per_cell, tokens = 2 * 8 * 256 * 2, held.context_tokens
    pages = min(-(-kept // 16) + 1, tokens // 16)
    assert kv_cache_bytes(held) == 21 * per_cell * (tokens + 16 * pages)


def test_reading_stops_growing_at_the_window() -> None:
    gemma = scenario("gemma-3-12b")
    assert kv_read_bytes(gemma, 512) == 512 * kv_bytes_per_token(gemma)
    growth = kv_read_bytes(gemma, 20_000) - kv_read_bytes(gemma, 10_000)
    assert growth == 10_000 * 8 * 8192


def test_a_server_that_keeps_whole_sliding_layers_reads_their_window_alone() -> None:
    """SGLang gives its attention kernels the window of the layer."""
    gemma = scenario("gemma-3-12b", framework=framework("sglang"))
    growth = kv_read_bytes(gemma, 20_000) - kv_read_bytes(gemma, 10_000)
    assert growth == 10_000 * 8 * 8192
    assert kv_bytes_per_token(gemma) == 48 * 8192


def test_recurrent_state_is_read_at_any_depth() -> None:
    mamba = scenario("mamba-codestral-7b")
    assert kv_read_bytes(mamba, 0) == kv_read_bytes(mamba, 8000) == 276_299_776
    assert kv_bytes_per_token(mamba) == 0


def test_encoders_keep_no_cache_and_embedding_models_built_on_a_decoder_do() -> None:
    model = text_model("llama-3-8b")
    encoder = replace(model, shape=replace(model.shape, role="encoder"))
    assert kv_cache_bytes(scenario(encoder)) == 0
    embedding = replace(model, modality="embedding")
    assert kv_cache_bytes(scenario(embedding)) == kv_cache_bytes(scenario(model)) > 0


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"kv_heads": 0}, "number of key/value heads"),
        ({"layer_kinds": "S" * 32, "window": None}, "sliding window"),
        ({"layer_kinds": "R" * 32}, "recurrent state"),
        ({"layer_kinds": ""}, "which of its layers"),
    ],
)
def test_a_missing_figure_is_named(changes: dict[str, object], words: str) -> None:
    model = text_model("llama-3-8b")
    broken = replace(model, shape=replace(model.shape, **changes))
    with pytest.raises(RequestError, match=words):
        kv_cache_bytes(scenario(broken))


@pytest.mark.parametrize(
    ("runtime", "each"), [("llama.cpp", 128 * 2), ("vllm", 132), ("sglang", 132), ("mlx", 2 * 256)]
)
def test_a_token_index_is_kept_in_the_layers_that_have_one(runtime: str, each: int) -> None:
    """Sizes of keys: llama-kv-cache-dsa.cpp, DeepseekV32Indexer, DSATokenToKVPool, mlx_lm."""
    known = load_knowledge()
    latent = (512 + 64) * 2 * 78
    for name, indexes in (("GLM-5", 78), ("GLM-5.2", 21)):
        asked = scenario(
            model_from_record(known.models[name], known),
            framework=replace(framework(runtime), sized_states=("index",)),
            precision=FP16,
        )
        assert kv_bytes_per_token(asked) == latent + indexes * each


@pytest.mark.parametrize(
    ("runtime", "latent"), [("vllm", 656), ("sglang", 656), ("tensorrt-llm", 576)]
)
def test_fp8_latents_that_an_index_picks_have_scales(runtime: str, latent: int) -> None:
    """512 bytes, 4 scales of 4, 64 positions in 16 bits: ``fp8_ds_mla`` of flashmla_sparse.py."""
    known = load_knowledge()
    asked = scenario(
        model_from_record(known.models["DeepSeek-V3.2"], known),
        framework=replace(framework(runtime), sized_states=("index",)),
        precision=FP16,
        kv_cache_k=KV_TYPES["fp8"],
        kv_cache_v=KV_TYPES["fp8"],
    )
    assert kv_bytes_per_token(asked) == 61 * (latent + 132)


def test_a_token_index_that_nobody_described_is_not_sized() -> None:
    known = load_knowledge()
    model = model_from_record(known.models["GLM-5"], known)
    with pytest.raises(RequestError, match="keeps its token index is not established"):
        kv_bytes_per_token(scenario(model, framework=framework("transformers"), precision=FP16))
