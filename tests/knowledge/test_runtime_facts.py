"""What the shipped formats, cache types, runtimes and policy must hold."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from advisor.estimator.placement import Claim, usable_bytes
from advisor.knowledge import load_knowledge
from advisor.knowledge.index import plain_key
from advisor.knowledge.types import Framework, Knowledge
from advisor.reading.known import was_sold
from advisor.units import GIB

BLOCKS = {
    "F32": (1, 4), "F16": (1, 2), "BF16": (1, 2), "F64": (1, 8),
    "I8": (1, 1), "I16": (1, 2), "I32": (1, 4), "I64": (1, 8),
    "Q4_0": (32, 18), "Q4_1": (32, 20), "Q5_0": (32, 22), "Q5_1": (32, 24),
    "Q8_0": (32, 34), "Q8_1": (32, 40), "Q8_K": (256, 292),
    "Q2_K": (256, 84), "Q3_K": (256, 110), "Q4_K": (256, 144), "Q5_K": (256, 176),
    "Q6_K": (256, 210), "IQ1_S": (256, 50), "IQ1_M": (256, 56), "IQ2_XXS": (256, 66),
    "IQ2_XS": (256, 74), "IQ2_S": (256, 82), "IQ3_XXS": (256, 98), "IQ3_S": (256, 110),
    "IQ4_XS": (256, 136), "IQ4_NL": (32, 18), "TQ1_0": (256, 54), "TQ2_0": (256, 66),
    "MXFP4": (32, 17), "NVFP4": (64, 36), "Q1_0": (128, 18),
}  # fmt: skip

FILE_TYPES = {
    "Q8_0", "Q6_K", "Q5_K_M", "Q5_K_S", "Q5_0", "Q5_1", "Q4_K_M", "Q4_K_S", "Q4_0", "Q4_1",
    "IQ4_XS", "IQ4_NL", "Q3_K_L", "Q3_K_M", "Q3_K_S", "Q2_K", "Q2_K_S", "IQ3_M", "IQ3_S",
    "IQ3_XS", "IQ3_XXS", "IQ2_M", "IQ2_S", "IQ2_XS", "IQ2_XXS", "IQ1_M", "IQ1_S", "MXFP4_MOE",
}  # fmt: skip

ENGINES = (
    "llama.cpp", "vLLM", "transformers", "whisper.cpp", "ExLlamaV3", "ExLlamaV2", "MLX-LM",
    "SGLang", "TensorRT-LLM", "TGI", "Ollama", "LM Studio", "KTransformers", "LMDeploy", "MLC-LLM",
    "TabbyAPI server", "text-generation-webui", "DeepSpeed",
)  # fmt: skip


@pytest.fixture(scope="module")
def known() -> Knowledge:
    return load_knowledge()


def default_for(known: Knowledge, precision: str, model_type: str, vendor: str) -> Framework | None:
    return next(
        (
            framework
            for framework in known.frameworks.values()
            if framework.memory_model != "none"
            and precision in framework.formats
            and (model_type in framework.model_types or "*" in framework.model_types)
            and vendor in framework.vendors
            and vendor in (known.formats[precision].vendors or framework.vendors)
        ),
        None,
    )


def test_every_ggml_type_has_its_exact_block_size(known: Knowledge) -> None:
    found = {t.name: (t.block_elements, t.block_bytes) for t in known.ggml_types.values()}
    assert found == BLOCKS


def test_exactly_the_file_types_with_known_rules_are_sized_tensor_by_tensor(
    known: Knowledge,
) -> None:
    gguf = {f.name for f in known.formats.values() if f.kind == "gguf"}
    assert gguf == FILE_TYPES
    assert gguf <= set(known.frameworks["llama.cpp"].formats)


@pytest.mark.parametrize(
    ("precision", "bits"),
    [
        ("Q4_K_M", 4.5),
        ("IQ2_M", 2.5625),
        ("Q8_0", 8.5),
        ("MXFP4", 4.25),
        ("NVFP4", 4.5),
        ("FP16", 16),
        ("BF16", 16),
        ("FP8", 8),
        ("MLX 4-bit", 4.5),
        ("EXL2 4.65bpw", 4.65),
        ("AWQ 4-bit", 4.156),
        ("NF4", 4.5),
        ("HQQ 8-bit", 8.5),
        ("HQQ 4-bit", 4.5),
        ("HQQ 3-bit", 3.7),
        ("HQQ 2-bit", 2.5),
    ],
)
def test_formats_store_the_bits_of_their_layout(
    known: Knowledge, precision: str, bits: float | None
) -> None:
    assert known.formats[precision].bits_per_weight == bits


@pytest.mark.parametrize(
    ("precision", "nominal"),
    [
        ("FP16", 2),
        ("BF16", 2),
        ("INT8 (bitsandbytes)", 1),
        ("Q8_0", 1),
        ("FP8", 1),
        ("Q4_K_M", 0.5),
        ("AWQ 4-bit", 0.5),
        ("NF4", 0.5),
        ("MXFP4", 0.5),
        ("Q3_K_M", 0.4),
        ("Q5_K_M", None),
        ("Q6_K", None),
        ("Q2_K", None),
        ("F32", None),
    ],
)
def test_the_rule_of_thumb_is_known_only_where_readers_know_it(
    known: Knowledge, precision: str, nominal: float | None
) -> None:
    assert known.formats[precision].nominal_bytes_per_weight == nominal


def test_quality_losses_of_one_family_fall_with_the_bits(known: Knowledge) -> None:
    ladder = ["Q2_K", "Q3_K_S", "Q3_K_M", "Q3_K_L", "Q4_K_S", "Q4_K_M", "Q5_K_S", "Q5_K_M", "Q6_K"]
    losses = [known.formats[name].quality_loss_percent for name in [*ladder, "Q8_0", "FP16"]]
    assert losses == sorted(losses, key=lambda loss: -(loss or 0))
    assert losses[5] == pytest.approx(100 * 0.1755 / 6.2316, rel=0.01)
    assert losses[-1] == 0


def test_nobody_measured_these_so_their_loss_stays_unknown(known: Knowledge) -> None:
    for name in ("AWQ 4-bit", "NF4", "FP8", "INT8 W8A8", "MXFP4", "EXL3 4.0bpw", "MLX 4-bit"):
        assert known.formats[name].quality_loss_percent is None


def test_class_names_belong_to_no_format(known: Knowledge) -> None:
    taken = {plain_key(s) for f in known.formats.values() for s in (f.name, *f.aliases)}
    assert not taken & {"int8", "8bit", "int4", "4bit", "q4", "q8"}


@pytest.mark.parametrize("bits", [4, 8])
def test_every_engine_family_offers_a_format_of_the_class(known: Knowledge, bits: int) -> None:
    members = {f.family for f in known.formats.values() if f.class_bits == bits and f.offered}
    assert members >= {4: {"gguf-k", "bnb", "awq", "gptq", "mlx"}, 8: {"bnb", "fp8", "mlx"}}[bits]


def test_shared_names_are_settled_by_the_framework(known: Knowledge) -> None:
    for name in ("MXFP4", "NVFP4"):
        twins = {f.name for f in known.formats.values() if name in (f.name, *f.aliases)}
        own = {"MXFP4_MOE"} if name == "MXFP4" else {f"{name} (GGUF)", f"MLX {name}"}
        assert twins == {name, *own}
        for framework in known.frameworks.values():
            assert len(twins & set(framework.formats)) < 2


def test_frameworks_stand_in_the_order_that_defaults_follow(known: Knowledge) -> None:
    assert tuple(known.frameworks) == ENGINES


@pytest.mark.parametrize("framework", ENGINES)
def test_a_framework_names_only_known_formats_and_cache_types(
    known: Knowledge, framework: str
) -> None:
    record = known.frameworks[framework]
    assert set(record.formats) <= set(known.formats)
    assert set(record.kv_types) <= set(known.kv_types)
    assert record.formats
    assert record.model_types
    assert record.vendors
    assert record.sources[""]


@pytest.mark.parametrize(
    ("precision", "model_type", "vendor", "framework"),
    [
        ("Q4_K_M", "llama", "NVIDIA", "llama.cpp"),
        ("IQ3_M", "qwen3_moe", "AMD", "llama.cpp"),
        ("FP16", "phi3", "NVIDIA", "llama.cpp"),
        ("BF16", "gemma3", "Apple", "llama.cpp"),
        ("MXFP4_MOE", "gpt_oss", "NVIDIA", "llama.cpp"),
        ("INT8 (bitsandbytes)", "llama", "NVIDIA", "transformers"),
        ("INT8 (bitsandbytes)", "phi3small", "NVIDIA", "transformers"),
        ("FP16", "phi3small", "NVIDIA", "transformers"),
        ("NF4", "mistral", "AMD", "transformers"),
        ("AWQ 4-bit", "qwen2", "NVIDIA", "vLLM"),
        ("GPTQ 4-bit", "llama", "NVIDIA", "vLLM"),
        ("FP8", "deepseek_v3", "NVIDIA", "vLLM"),
        ("NVFP4", "llama", "NVIDIA", "vLLM"),
        ("MXFP4", "gpt_oss", "NVIDIA", "vLLM"),
        ("EXL2 4.0bpw", "llama", "NVIDIA", "ExLlamaV2"),
        ("EXL3 3.0bpw", "llama", "NVIDIA", "ExLlamaV3"),
        ("MLX 4-bit", "llama", "Apple", "MLX-LM"),
        ("Q4_K_M", "phi3small", "NVIDIA", None),
        ("EXL3 3.0bpw", "llama", "AMD", "ExLlamaV3"),
        ("EXL3 3.0bpw", "llama", "Intel", None),
        ("MLX 4-bit", "llama", "NVIDIA", None),
        ("AWQ 4-bit", "llama", "Apple", None),
    ],
)
def test_the_default_framework(
    known: Knowledge, precision: str, model_type: str, vendor: str, framework: str | None
) -> None:
    found = default_for(known, precision, model_type, vendor)
    assert (found.name if found else None) == framework


@pytest.mark.parametrize(
    "model_type",
    [
        "llama",
        "mistral",
        "phi3",
        "gemma2",
        "gemma3",
        "qwen2",
        "qwen3",
        "qwen2_moe",
        "qwen3_moe",
        "mixtral",
        "deepseek_v2",
        "gpt_oss",
        "glm4",
        "granite",
        "olmo2",
        "starcoder2",
        "cohere",
        "mamba2",
        "llava",
        "llava_next",
    ],
)
def test_llama_cpp_runs_the_architectures_its_formulas_were_checked_on(
    known: Knowledge, model_type: str
) -> None:
    assert model_type in known.frameworks["llama.cpp"].model_types


@pytest.mark.parametrize("model_type", ["phi3small", "mllama", "whisper", "paligemma", "opt"])
def test_llama_cpp_does_not_claim_what_it_cannot_convert(known: Knowledge, model_type: str) -> None:
    assert model_type not in known.frameworks["llama.cpp"].model_types


def test_cache_types_have_the_bits_of_their_blocks(known: Knowledge) -> None:
    for name in ("q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl", "f16", "f32", "bf16"):
        assert known.kv_types[name].bits == known.ggml_types[name.upper()].bits_per_weight
    quantised = {k.name for k in known.kv_types.values() if k.needs_flash_attention}
    quantised -= known.frameworks["llama.cpp"].beyond.keys()
    assert quantised == {"q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl"}


def test_every_modelled_framework_can_be_started(known: Knowledge) -> None:
    for framework in known.frameworks.values():
        assert bool(framework.commands) is (framework.memory_model != "none"), framework.name


def test_the_cuda_overhead_gives_the_published_figures(known: Knowledge) -> None:
    mib, policy = 2**20, known.policy
    per_sm = policy["cuda_context_bytes_per_multiprocessor"] / mib
    assert 451 <= 128 * per_sm + policy["cuda_libraries_bytes"] / mib <= 456
    for multiprocessors, published in ((34, 107), (82, 256), (188, 555)):
        assert multiprocessors * per_sm == pytest.approx(published, rel=0.06)


@pytest.mark.parametrize(
    "name",
    [
        "torch_overhead",
        "other_backend_overhead",
        "vllm_outside",
        "vllm_fabric",
        "nccl_communication",
        "rccl_communication",
    ],
)
def test_ranges_hold_their_estimate(known: Knowledge, name: str) -> None:
    low, high = (known.policy[f"{name}_{end}_bytes"] for end in ("low", "high"))
    assert low < known.policy[f"{name}_bytes"] < high


_NO_CLAIM = Claim(None)


def test_a_spark_keeps_what_its_cuda_does_not_show(known: Knowledge) -> None:
    """119.7 of 128 GiB are shown, 101 to 102 are free: the usable part lies between."""
    spark, framework = known.gpus["DGX Spark (GB10)"], known.frameworks["llama.cpp"]
    usable = usable_bytes(spark, spark.vram_bytes or 0, framework, known.policy, _NO_CLAIM)
    assert 101 * GIB < usable < 119.7 * GIB
    for name in ("Jetson Orin Nano 8 GB", "Jetson AGX Orin 64 GB"):
        board = known.gpus[name]
        free = usable_bytes(board, board.vram_bytes or 0, framework, known.policy, _NO_CLAIM)
        assert free == (board.vram_bytes or 0) * 3 // 4


def test_a_small_mac_keeps_more_than_a_large_one(known: Knowledge) -> None:
    assert known.policy["reserve_apple_small_share"] > known.policy["reserve_unified_share"] > 0


@pytest.mark.parametrize(
    "segment", ["consumer", "mobile", "workstation", "datacenter", "edge", "apple"]
)
def test_every_segment_has_a_reserve_below_two_gib(known: Knowledge, segment: str) -> None:
    assert 0 <= known.policy[f"reserve_{segment}_bytes"] < 2**31


def test_the_servers_for_many_users_are_named_with_a_source(known: Knowledge) -> None:
    serving = {name for name, f in known.frameworks.items() if f.serves_batches}
    assert serving == {"vLLM", "SGLang", "TGI", "TensorRT-LLM"}
    assert all(known.frameworks[name].sources.get("serves_batches") for name in serving)


def test_how_a_card_is_sold_is_said_of_what_is_not_proposed() -> None:
    """The field decides, whatever words the reason has."""
    told = [card for card in load_knowledge().gpus.values() if card.sale]
    assert {card.sale for card in told} == {"used", "special"}
    assert all(card.not_for_sale for card in told)
    assert was_sold(replace(told[0], sale="used", not_for_sale="any words"))
    assert not was_sold(replace(told[0], sale="", not_for_sale="sold used alone by now"))
