"""Scenarios for the estimator's tests, built without the knowledge base's records."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import pairwise
from pathlib import Path

from msgspec.structs import replace

from advisor.estimator.kv_cache import cache_shape_of
from advisor.knowledge.types import Format, Framework, GgmlType, Gpu, Knowledge, KvType
from advisor.models.config import read_config
from advisor.models.stored_tensors import Model
from advisor.runtimes import runtime_of
from advisor.scenario import Scenario

DATA = Path(__file__).parent.parent / "data"
GIB = 2**30
MIB = 2**20
BATCH_LIMIT = 2048

_BLOCKS = """
F32 1 4|F16 1 2|BF16 1 2|Q4_0 32 18|Q4_1 32 20|Q5_0 32 22|Q5_1 32 24|Q8_0 32 34|Q2_K 256 84
Q3_K 256 110|Q4_K 256 144|Q5_K 256 176|Q6_K 256 210|IQ1_S 256 50|IQ1_M 256 56|IQ2_XXS 256 66
IQ2_XS 256 74|IQ2_S 256 82|IQ3_XXS 256 98|IQ3_S 256 110|IQ4_XS 256 136|IQ4_NL 32 18
MXFP4 32 17|NVFP4 64 36|TQ1_0 256 54|TQ2_0 256 66|Q1_0 128 18
"""
GGML_TYPES: Mapping[str, GgmlType] = {
    name: GgmlType(name, int(elements), int(size))
    for name, elements, size in (
        entry.split() for line in _BLOCKS.split("\n") for entry in line.split("|") if entry
    )
}
KV_TYPES: Mapping[str, KvType] = {
    name: KvType(name, bits, needs_flash_attention=bits < 16)
    for name, bits in {
        "f32": 32.0,
        "f16": 16.0,
        "bf16": 16.0,
        "q8_0": 8.5,
        "q5_1": 6.0,
        "q4_1": 5.0,
        "q4_0": 4.5,
        "fp8": 8.0,
    }.items()
}
POLICY: Mapping[str, float] = {
    "reserve_consumer_bytes": 768 * MIB,
    "reserve_datacenter_bytes": 768 * MIB,
    "reserve_ecc_gddr_share": 6.25,
    "reserve_unified_share": 25,
    "reserve_apple_small_share": 33.34,
    "reserve_apple_small_bytes": 32 * GIB,
    "cuda_context_bytes_per_multiprocessor": 3 * MIB,
    "cuda_context_unknown_bytes": 250 * MIB,
    "cuda_libraries_bytes": 72 * MIB,
    "cuda_overhead_low_share": 85,
    "cuda_overhead_high_share": 135,
    "torch_overhead_bytes": 320 * MIB,
    "torch_overhead_low_bytes": 40 * MIB,
    "torch_overhead_high_bytes": 1024 * MIB,
    "other_backend_overhead_bytes": 300 * MIB,
    "other_backend_overhead_low_bytes": 50 * MIB,
    "other_backend_overhead_high_bytes": 783 * MIB,
    "nccl_communication_bytes": 544 * MIB,
    "nccl_communication_low_bytes": 102 * MIB,
    "nccl_communication_high_bytes": 1833 * MIB,
    "rccl_communication_bytes": 1024 * MIB,
    "rccl_communication_low_bytes": 666 * MIB,
    "rccl_communication_high_bytes": 1690 * MIB,
    "nccl_plain_bytes": 133 * MIB,
    "driver_consumer_share": 1.8,
    "driver_share": 1.1,
    "vllm_sampler_bytes_per_logit": 12,
    "vllm_sequences_small": 256,
    "vllm_sequences_large": 1024,
    "vllm_step_bytes": 51 * MIB,
    "vllm_step_low_share": 80,
    "vllm_step_high_share": 130,
    "vllm_graph_bytes_per_layer_and_size": 0.44 * MIB,
    "vllm_graph_low_bytes_per_layer_and_size": 0.1 * MIB,
    "vllm_graph_high_bytes_per_layer_and_size": 1.28 * MIB,
    "vllm_outside_bytes": 256 * MIB,
    "vllm_outside_low_bytes": 72 * MIB,
    "vllm_outside_high_bytes": 471 * MIB,
    "vllm_fabric_bytes": 1894 * MIB,
    "vllm_fabric_low_bytes": 430 * MIB,
    "vllm_fabric_high_bytes": 2253 * MIB,
    "vllm_profile_tokens_small": 2048,
    "vllm_steps_ahead": 1,
    "vllm_profile_tokens_large": 8192,
    "vllm_profile_tokens_largest": 16384,
    "sglang_reserve_base_bytes": 512 * MIB,
    "sglang_reserve_per_prefill_token_bytes": 1.5 * MIB,
    "sglang_prefill_min_tokens": 2048,
    "sglang_reserve_per_rank_bytes": 128 * MIB,
    "sglang_reserve_per_decode_sequence_bytes": 2 * MIB,
    "sglang_decode_sequences": 512,
    "sglang_prompt_graph_bytes": 8 * MIB,
    "sglang_latent_graph_bytes": 1536 * MIB,
    "sglang_vision_share": 5,
    "sglang_prefill_tokens_small": 2048,
    "sglang_prefill_tokens_medium": 4096,
    "sglang_prefill_tokens_large": 8192,
    "sglang_prefill_tokens_largest": 16384,
    "sglang_small_card_bytes": 20 * GIB,
    "sglang_medium_card_bytes": 60 * GIB,
    "sglang_large_prefill_card_bytes": 160 * GIB,
    "sglang_large_card_bytes": 60 * GIB,
    "sglang_large_card_reserve_bytes": 10 * GIB,
}
KNOWLEDGE = Knowledge({}, {}, GGML_TYPES, {}, {}, {}, POLICY, {}, "")


_SIZED_STATES = {"transformers": ("encoder", "rwkv"), "vllm": ("encoder",)}


@cache
def framework(kind: str, *, fraction: float | None = None) -> Framework:
    """Build a runtime with the memory model ``kind``."""
    tensor = kind in {"vllm", "sglang", "tgi", "tensorrt-llm"}
    return Framework(
        name=kind,
        aliases=(),
        version="",
        vendors=("NVIDIA",),
        formats=(),
        model_types=("*",),
        kv_types=("f16",),
        memory_model=kind,
        memory_checked=kind not in {"sglang", "tgi", "tensorrt-llm", "mlx"},
        multi_gpu=("tensor",) if tensor else ("layer",),
        pipeline=kind in {"vllm", "sglang", "tensorrt-llm"},
        tensor_heads={"exllama": "uneven", "tgi": "whole"}.get(kind, "copied"),  # type: ignore[arg-type]
        sized_states=_SIZED_STATES.get(kind, ()),
        card_free=kind == "llama.cpp",
        places_layers=kind == "llama.cpp",
        memory_fraction=fraction,
    )


@cache
def gguf(name: str) -> Format:
    """Build a GGUF file type."""
    return Format(name, (), "gguf-k", "gguf", None, None, None, None)


@cache
def plain(family: str, bits: float, nominal: float | None = None) -> Format:
    """Build a format of one width, named after its family."""
    name = "FP16" if family == "unquantized" else family
    return Format(name, (), family, "plain", bits, None, nominal, None)


FP16 = plain("unquantized", 16, 2)


def gpu(gib: float, **changes: object) -> Gpu:
    """Build an NVIDIA desktop card of a size."""
    card = Gpu("a card", (), "NVIDIA", "consumer", "Ada", vram_bytes=round(gib * GIB))
    return replace(card, multiprocessors=128, **changes)


@cache
def _configs() -> Mapping[str, Mapping[str, object]]:
    text = (DATA / "llamacpp_configs.json").read_text(encoding="utf-8")
    found: Mapping[str, Mapping[str, object]] = json.loads(text)
    return found


@cache
def text_model(name: str) -> Model:
    """Build the text part of a measured model, as llama.cpp's files hold it."""
    return model_of(_configs()[name], name, vision=False)


def model_of(config: Mapping[str, object], name: str = "a model", *, vision: bool = True) -> Model:
    """Build a model from Hugging Face keys."""
    shape = read_config(config, name)
    counts = shape.counts
    return Model(
        name=name,
        family=shape.model_type,
        modality="text",
        shape=shape,
        parameters=counts.total if counts else 0,
        active_parameters=counts.active if counts else 0,
        vision_parameters=counts.vision if counts and vision else 0,
        label_parameters_b=None,
        trained_context_tokens=shape.trained_context,
    )


def scenario(model: str | Model = "llama-3-8b", /, **changes: object) -> Scenario:
    """Build a scenario: Q4_K_M on llama.cpp, 8192 tokens, no card, unless changed."""
    plain_scenario = Scenario(
        gpu=None,
        gpus=1,
        model=text_model(model) if isinstance(model, str) else model,
        precision=gguf("Q4_K_M"),
        context_tokens=8192,
        batch=1,
        kv_cache_k=KV_TYPES["f16"],
        kv_cache_v=KV_TYPES["f16"],
        framework=framework("llama.cpp"),
        backend=None,
        flash_attention=True,
        ubatch=512,
        kv_unified=True,
        swa_full=False,
        gpu_layers=None,
        cpu_experts=0,
        logits_rows=1,
        depth_tokens=0,
        ram_bytes=None,
        ram_bandwidth_bytes_s=None,
        cpu_cores=None,
        prefer="balanced",
    )
    return replace(plain_scenario, **changes)


def on_card(gib: float, model: str | Model = "llama-3-8b", /, **changes: object) -> Scenario:
    """Build a scenario on one NVIDIA card."""
    return scenario(model, **{"gpu": gpu(gib), "backend": "CUDA", **changes})


def measured(row: Mapping[str, str]) -> Scenario:
    """Build the scenario of a row of llamacpp_memory.csv."""
    sequences = int(row["n_seq"])
    return scenario(
        row["name"],
        precision=gguf(row["quant"]),
        context_tokens=int(row["n_ctx_req"]) // sequences,
        batch=sequences,
        kv_cache_k=KV_TYPES[row["type_k"]],
        kv_cache_v=KV_TYPES[row["type_v"]],
        flash_attention=row["flash_attn"] == "1",
        ubatch=int(row["n_ubatch"]),
        kv_unified=row["kv_unified"] == "1",
        swa_full=row["swa_full"] == "1",
        gpu_layers=None if row["ngl"] == "all" else int(row["ngl"]),
        logits_rows=int(row["n_outputs_max"]) or BATCH_LIMIT,
    )


def rows(file: str) -> Iterator[dict[str, str]]:
    """Read a measurement file of tests/data, without rows that record a refusal."""
    with gzip.open(DATA / f"{file}.csv.gz", "rt", encoding="utf-8", newline="") as text:
        yield from (row for row in csv.DictReader(text) if not row.get("error"))


def kv_cache_bytes(held: Scenario, *, static: bool = False) -> int:
    """Size the whole cache as the runtime allocates it, wherever it lies.

    ``static``: transformers' cache of a fixed size for compiled models, which keeps a whole window
    and a counter for each layer.
    """
    shape = cache_shape_of(held)
    cells = runtime_of(held.framework).cells(held, shape.window, POLICY)
    counters = 0
    if static:
        cells.slide = cells.sequences * min(held.context_tokens, shape.window)
        counters = 8 * sum(b > a for a, b in pairwise(shape.full_sums))
    return cells.bytes_of(shape, 0, len(shape.full_sums) - 1) + counters
