"""The whole estimate: worked examples, placement, several cards, overhead, ranges."""

from __future__ import annotations

import math

import pytest
from msgspec.structs import replace

from advisor.estimator import estimate_memory, free_bytes
from advisor.knowledge import load_knowledge
from advisor.models import model_from_record
from advisor.scenario import Scenario
from advisor.scenario.figures import Memory
from tests.estimate.builders import (
    FP16,
    GIB,
    KNOWLEDGE,
    KV_TYPES,
    MIB,
    framework,
    gguf,
    gpu,
    on_card,
    plain,
    rows,
    scenario,
    text_model,
)


def memory(found: Scenario) -> Memory:
    return estimate_memory(found, KNOWLEDGE)


def test_partial_offload_puts_the_last_layers_on_the_card() -> None:
    found = memory(scenario(gpu_layers=16))
    assert found.weights_bytes == 2_401_460_224
    assert found.host_weights_bytes == 2_511_437_824
    assert found.kv_cache_bytes == 503_316_480
    assert found.host_kv_cache_bytes == 570_425_344


def test_the_server_regime() -> None:
    found = memory(scenario())
    assert found.weights_bytes == 4_617_396_224
    assert found.compute_buffer_bytes == 121_645_056
    assert found.approximate == ()
    assert found.low_bytes == found.required_bytes
    assert found.high_bytes == found.required_bytes + 32


def test_full_logits() -> None:
    assert memory(scenario(logits_rows=512)).compute_buffer_bytes == 271_056_896


def test_without_flash_attention() -> None:
    found = memory(scenario(logits_rows=512, flash_attention=False))
    assert found.compute_buffer_bytes == 591_403_008
    assert found.host_compute_bytes == 37_758_976


@pytest.mark.parametrize(
    ("model", "changes", "compute"),
    [
        ("gemma-3-12b", {"context_tokens": 32768}, 153_634_816),
        ("deepseek-v2-lite", {"context_tokens": 32768}, 113_383_424),
    ],
)
def test_server_regime_of_other_architectures(
    model: str, changes: dict[str, object], compute: int
) -> None:
    assert memory(scenario(model, **changes)).compute_buffer_bytes == compute


def test_a_tied_matrix_lies_on_the_card_and_in_ram() -> None:
    found = memory(scenario("gemma-3-12b"))
    assert found.weights_bytes == 7_294_024_704
    assert found.host_weights_bytes == 825_753_600


def test_the_published_log_of_qwen3_30b() -> None:
    """Device total on an RTX 4090: 61,807 MiB (llama.cpp, tools/fit-params/README.md)."""
    found = memory(scenario("qwen3-30b-a3b", precision=FP16, context_tokens=40960, logits_rows=512))
    assert found.required_bytes / MIB == pytest.approx(61_807, abs=1)


def test_the_published_logs_of_llama_3_8b() -> None:
    """Rows M00004 to M00006 of memory.csv: GiB in a log of May 2024, flash attention off.

    That build kept no index of the transposed values, which is 8 MiB here.
    """
    wanted = {row["id"]: float(row["value_gib"]) for row in rows("memory")}
    found = memory(scenario(flash_attention=False, logits_rows=512))
    assert found.weights_bytes / GIB == pytest.approx(wanted["M00004"], abs=1e-4)
    assert found.kv_cache_bytes / GIB == wanted["M00005"]
    index = 4 * 512 * 2048
    assert (found.compute_buffer_bytes - index) / GIB == pytest.approx(wanted["M00006"], abs=2e-4)


def test_required_is_the_sum_of_its_parts() -> None:
    for changes in ({}, {"gpus": 3}, {"gpu_layers": 7}, {"framework": framework("vllm")}):
        found = memory(on_card(24, **changes))
        parts = found.weights_bytes + found.kv_cache_bytes + found.compute_buffer_bytes
        assert found.required_bytes == parts + found.overhead_bytes
        assert found.required_bytes == sum(card.required_bytes for card in found.per_gpu)
        assert found.low_bytes <= found.required_bytes <= found.high_bytes


def test_without_a_card_nothing_is_judged() -> None:
    found = memory(scenario())
    assert (found.capacity_bytes, found.usable_bytes) == (None, None)
    assert (found.deficit_bytes, found.headroom_bytes) == (None, None)
    assert (found.overhead_bytes, found.per_gpu) == (0, ())
    assert free_bytes(scenario(), KNOWLEDGE) is None


def test_usable_memory_is_capacity_less_the_reserve() -> None:
    found = memory(on_card(24))
    assert found.capacity_bytes == 24 * GIB
    assert found.usable_bytes == 24 * GIB - 768 * MIB
    assert found.headroom_bytes == found.usable_bytes - found.required_bytes
    assert found.deficit_bytes == 0
    assert free_bytes(on_card(24), KNOWLEDGE) == found.headroom_bytes


def test_a_deficit_is_what_is_missing() -> None:
    found = memory(on_card(4))
    assert found.headroom_bytes == 0
    assert found.deficit_bytes == found.required_bytes - (4 * GIB - 768 * MIB)


def test_unified_memory_keeps_a_share_for_the_system() -> None:
    shared = gpu(32, unified_memory=True)
    assert memory(scenario(gpu=shared, backend="Metal")).usable_bytes == 24 * GIB


@pytest.mark.parametrize(
    ("sold", "working_set_mib"),
    [
        (8, 5461.34),
        (16, 10922.67),
        (24, 16384),
        (32, 21845.34),
        (36, 27648),
        (64, 49152),
        (96, 73728),
    ],
)
def test_a_mac_offers_what_metal_recommends(sold: int, working_set_mib: float) -> None:
    mac = gpu(sold, segment="apple", unified_memory=True)
    usable = (memory(scenario(gpu=mac, backend="Metal")).usable_bytes or 0) / 2**20
    assert usable == pytest.approx(working_set_mib, rel=2e-4)
    assert usable <= working_set_mib


def test_data_centre_cards_with_gddr_keep_error_correction() -> None:
    card = gpu(16, segment="datacenter", vram_type="GDDR6")
    assert memory(scenario(gpu=card, backend="CUDA")).usable_bytes == 15 * GIB - 768 * MIB


@pytest.mark.parametrize("fraction", [0.92, 92])
def test_a_server_gets_its_share_at_most(fraction: float) -> None:
    found = memory(on_card(24, framework=framework("vllm", fraction=fraction), precision=FP16))
    assert found.usable_bytes == int(24 * GIB * (1 - 0.018) * 0.92), "of what the driver shows"


def test_overhead_grows_with_the_card_and_the_runtime() -> None:
    small = memory(scenario(gpu=gpu(24), backend="CUDA"))
    large = memory(scenario(gpu=replace(gpu(24), multiprocessors=188), backend="CUDA"))
    unknown = memory(scenario(gpu=replace(gpu(24), multiprocessors=None), backend="CUDA"))
    torch = memory(on_card(24, framework=framework("transformers"), precision=FP16))
    assert small.overhead_bytes == (3 * 128 + 72) * MIB
    assert large.overhead_bytes > small.overhead_bytes
    assert unknown.overhead_bytes == (250 + 72) * MIB
    assert torch.overhead_bytes == small.overhead_bytes + 320 * MIB


def test_other_back_ends_have_a_wide_range() -> None:
    found = memory(scenario(gpu=gpu(24), backend="Vulkan"))
    assert found.overhead_bytes == 300 * MIB
    assert found.high_bytes - found.required_bytes >= 483 * MIB
    assert memory(scenario(gpu=gpu(24), backend="CPU")).overhead_bytes == 0


def test_cuda_copies_a_quantised_cache_for_flash_attention() -> None:
    q8 = KV_TYPES["q8_0"]
    changes = {"context_tokens": 131_072, "kv_cache_k": q8, "kv_cache_v": q8}
    neutral = memory(scenario(**changes))
    card = memory(on_card(24, **changes))
    vulkan = memory(on_card(24, backend="Vulkan", **changes))
    assert card.compute_buffer_bytes - neutral.compute_buffer_bytes == 512 * MIB
    assert vulkan.compute_buffer_bytes == neutral.compute_buffer_bytes


def test_experts_move_to_ram_from_the_first_layer() -> None:
    whole = memory(scenario("gpt-oss-20b", precision=gguf("MXFP4_MOE")))
    part = memory(scenario("gpt-oss-20b", precision=gguf("MXFP4_MOE"), cpu_experts=6))
    moved = whole.weights_bytes - part.weights_bytes
    assert moved == part.host_weights_bytes - whole.host_weights_bytes
    assert moved / whole.weights_bytes == pytest.approx(6 / 24, abs=0.05)
    assert part.kv_cache_bytes == whole.kv_cache_bytes


def test_experts_of_layers_already_in_ram_move_nothing() -> None:
    base = {"precision": gguf("MXFP4_MOE"), "gpu_layers": 10}
    found = memory(scenario("gpt-oss-20b", cpu_experts=15, **base))
    assert found.weights_bytes == memory(scenario("gpt-oss-20b", **base)).weights_bytes


def test_layers_are_dealt_out_whole_and_the_output_comes_last() -> None:
    one, two = memory(on_card(24)), memory(on_card(24, gpus=2))
    assert two.weights_bytes == one.weights_bytes
    assert two.kv_cache_bytes == one.kv_cache_bytes
    first, last = two.per_gpu
    assert first.kv_cache_bytes == 17 * 33_554_432
    assert last.kv_cache_bytes == 15 * 33_554_432
    assert two.capacity_bytes == 48 * GIB


def test_the_fullest_card_decides() -> None:
    found = memory(on_card(3, gpus=2))
    fullest = max(card.required_bytes for card in found.per_gpu)
    assert found.deficit_bytes == fullest - found.per_gpu[0].usable_bytes


def test_shards_copy_key_value_heads_that_do_not_divide() -> None:
    base = {"framework": framework("vllm"), "precision": FP16}
    one, four, sixteen = (memory(on_card(24, gpus=cards, **base)) for cards in (1, 4, 16))
    assert four.kv_cache_bytes == one.kv_cache_bytes
    assert sixteen.kv_cache_bytes == 2 * one.kv_cache_bytes
    assert four.weights_bytes - one.weights_bytes < 4
    assert len(sixteen.per_gpu) == 16


def test_a_latent_cache_is_kept_whole_by_every_shard() -> None:
    base = {"framework": framework("vllm"), "precision": FP16}
    one, two = (memory(on_card(80, "deepseek-v2-lite", gpus=n, **base)) for n in (1, 2))
    assert two.kv_cache_bytes == 2 * one.kv_cache_bytes


def test_a_token_index_is_scored_once_for_all_its_heads() -> None:
    cards = {"gpus": 8, "context_tokens": 32_768, "batch": 64}
    known = load_knowledge()
    model = model_from_record(known.models["DeepSeek-V3.2"], known)
    runtime = replace(framework("llama.cpp"), sized_states=("index",))
    found = memory(on_card(32, model, framework=runtime, **cards))
    scores = 512 * 64 * 32_768 * 4
    assert found.high_bytes - found.required_bytes < 8 * 3 * scores


def test_a_draft_model_adds_its_weights_and_cache() -> None:
    alone = memory(on_card(24))
    draft = text_model("llama-3.2-1b")
    both = memory(on_card(24, draft_model=draft))
    small = memory(on_card(24, draft))
    assert both.weights_bytes == alone.weights_bytes + small.weights_bytes
    assert both.kv_cache_bytes == alone.kv_cache_bytes + small.kv_cache_bytes
    assert both.overhead_bytes == alone.overhead_bytes


def test_the_rule_of_thumb_is_label_times_bytes() -> None:
    label = replace(text_model("llama-3-8b"), label_parameters_b=27)
    q3 = replace(gguf("Q3_K_M"), nominal_bytes_per_weight=0.4)
    assert memory(scenario(label, precision=q3)).nominal_weights_gb == 10.8
    assert memory(scenario(precision=q3)).nominal_weights_gb is None
    assert memory(scenario(label)).nominal_weights_gb is None


def test_bits_per_weight_are_those_of_the_file() -> None:
    found = memory(scenario()).bits_per_weight
    assert found is not None
    assert math.isclose(found, 8 * 4_912_898_048 / 8_030_261_248)


@pytest.mark.parametrize(
    "kind", ["transformers", "vllm", "sglang", "tgi", "tensorrt-llm", "exllama", "mlx"]
)
def test_other_runtimes_say_that_activations_are_rough(kind: str) -> None:
    found = memory(on_card(80, framework=framework(kind), precision=FP16))
    assert any("activations" in phrase for phrase in found.approximate)
    assert found.low_bytes < found.required_bytes <= found.high_bytes
    assert found.weights_bytes == 2 * 8_030_261_248
    assert found.host_weights_bytes == 0


def test_quantised_servers_widen_the_range() -> None:
    awq = memory(on_card(24, framework=framework("vllm"), precision=plain("awq", 4.156)))
    assert any("nominal bits" in phrase for phrase in awq.approximate)


def test_vllm_profiles_more_tokens_on_large_cards() -> None:
    base = {"framework": framework("vllm"), "precision": FP16}
    sizes = [memory(on_card(gib, **base)).compute_buffer_bytes for gib in (24, 80, 192)]
    assert sizes == sorted(set(sizes))
    a100 = replace(gpu(80), name="NVIDIA A100 80 GB")
    assert memory(on_card(80, **base, gpu=a100)).compute_buffer_bytes == sizes[0]


@pytest.mark.parametrize(("backend", "each"), [("CUDA", 133 * MIB), ("ROCm", 1024 * MIB)])
def test_cards_that_shard_every_tensor_hold_buffers_between_them(backend: str, each: int) -> None:
    base = {"framework": framework("vllm"), "precision": FP16, "backend": backend}
    one, two = (memory(on_card(24, gpus=cards, **base)) for cards in (1, 2))
    assert two.overhead_bytes == 2 * (one.overhead_bytes + each)
    assert any("buffers between cards" in phrase for phrase in two.approximate)
    assert not any("between cards" in phrase for phrase in one.approximate)


def test_cards_of_one_fabric_hold_more_between_them() -> None:
    plain = gpu(80, segment="datacenter")
    linked = replace(plain, nvlink_bytes_s=600e9, compute_capability=8.0)
    newer = replace(linked, compute_capability=9.0)
    base = {"framework": framework("vllm"), "precision": FP16, "gpus": 2}
    sizes = [
        memory(on_card(80, gpu=card, **base)).overhead_bytes for card in (plain, linked, newer)
    ]
    outside = [(size // 2 - 256 * MIB) // MIB for size in sizes]
    assert outside == [133, 544, 1894]


def test_cards_that_take_whole_layers_trade_too_little_to_hold_buffers() -> None:
    for kind in ("llama.cpp", "transformers", "exllama"):
        base = {"framework": framework(kind), "precision": FP16}
        one, two = (memory(on_card(24, gpus=cards, **base)) for cards in (1, 2))
        assert two.overhead_bytes == 2 * one.overhead_bytes


def test_buffers_that_nobody_has_sized_are_named_and_left_out() -> None:
    base = {"framework": framework("vllm"), "precision": FP16, "backend": "SYCL"}
    one, two = (memory(on_card(24, gpus=cards, **base)) for cards in (1, 2))
    assert two.overhead_bytes == 2 * one.overhead_bytes
    assert any("without the buffers between cards" in phrase for phrase in two.approximate)
