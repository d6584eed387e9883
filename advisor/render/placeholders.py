"""What templates may name: the closed list of placeholders, each with a sentence of help.

Every placeholder is text, and empty when the figure is unknown or does not apply, so that
``{% if gpu_tdp %}`` asks "is it known?". Names follow the vocabulary (``memory.required`` is
``memory_required``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

Kind = Literal["actions", "notes", "report"]
KINDS: tuple[Kind, ...] = ("actions", "notes", "report")

SITUATION: Mapping[str, str] = {
    "state": "fits, tight, needs_offload or too_big",
    "runs": "yes when the request fits, tightly or well",
    "tight": "yes when it fits with less than the usual margin",
    "offloadable": "yes when it does not fit but the framework can put the rest in system RAM",
    "several_cards": "yes with two or more cards",
    "cards": "the GeForce RTX 4090, or 2 GeForce RTX 4090 cards",
    "card_word": "card, cards with several of them, machine with unified memory",
    "gpu_name": "name of the card",
    "gpu_vendor": "NVIDIA, AMD, Intel or Apple",
    "gpu_architecture": "hardware generation",
    "gpu_vram": "memory of one card as sold, in GiB",
    "gpu_memory": "memory with its type: 24 GiB of GDDR6X",
    "gpu_bandwidth": "memory bandwidth of one card in GB/s",
    "gpu_bandwidth_class": "low, medium, high or very high, as the rules conclude it",
    "gpu_cores": "number and kind of cores: 16,384 CUDA cores",
    "gpu_tensor_cores": "number of tensor cores",
    "gpu_compute": "dense FP16 matrix throughput with FP32 accumulation",
    "gpu_tdp": "rated board power in W",
    "gpu_tdp_all": "board power of all cards together, empty with one card",
    "gpu_launch_price": "launch price in US dollars, never a street price",
    "gpu_release_year": "year the card came out",
    "gpu_unified_memory": "yes when CPU and GPU share the memory",
    "gpu_laptop": "yes for a laptop part",
    "gpu_disputed": "figures of the card on which sources differ, with the values",
    "request_gpus": "number of cards",
    "model_name": "name of the model",
    "model_family": "family of the model",
    "model_parameters": "exact size: 13.96 billion",
    "model_label": "the size in the name: 14 billion",
    "model_active_parameters": "parameters one token uses, empty for dense models",
    "model_moe": "yes for a mixture of experts",
    "model_experts": "routed experts per layer",
    "model_experts_used": "experts one token uses per layer",
    "model_layers": "number of layers",
    "model_vision": "yes when the model reads images",
    "model_vision_parameters": "size of the image tower",
    "model_image_tokens": "tokens one image takes",
    "model_trained_context": "longest context it was trained on, in tokens",
    "model_licence": "licence of the weights",
    "weights_format": "weight format asked for",
    "weights_bits": "average bits per weight as stored",
    "weights_nominal": "rule-of-thumb size in GB: label parameters times bytes per weight",
    "weights_nominal_why": "why that is off beyond leaving things out, as a clause; often empty",
    "weights_quality_loss": "perplexity increase of this format over FP16",
    "request_context": "context per sequence in tokens",
    "request_context_beyond": "yes when that is longer than the model was trained on",
    "request_batch": "sequences held at once",
    "request_several": "yes with two or more sequences",
    "request_kv_cache": "element type of the KV cache",
    "request_flash_attention": "yes when flash attention is on",
    "request_prefer": "balanced, quality, speed or cost",
    "request_split": "how the request itself splits the model, empty without a split",
    "framework_name": "inference runtime",
    "framework_offloads": "yes when it can keep layers in system RAM",
    "backend": "CUDA, ROCm, Vulkan, Metal ...",
    "memory_capacity": "memory of all cards as sold",
    "memory_usable": "capacity less the reserve for display and driver",
    "memory_reserve": "that reserve",
    "memory_required": "everything the request needs on the card or cards",
    "memory_required_gb": "the same in decimal GB",
    "memory_range": "its range where a part is only known roughly",
    "memory_deficit": "what is missing on the fullest card, empty when it fits",
    "memory_headroom": "what stays free on the fullest card, empty when it does not fit",
    "memory_headroom_share": "the same as a share of that card's usable memory",
    "memory_weights": "weights on the card",
    "memory_kv_cache": "KV cache on the card",
    "memory_compute_buffer": "work buffers of the runtime",
    "memory_overhead": "driver context and libraries",
    "memory_host": "what lies in system RAM, empty without offload",
    "memory_largest": "the part that takes most: weights, KV cache, work buffers or overhead",
    "memory_approximate": "which parts are estimates rather than exact counts",
    "memory_max_context": "longest context per sequence that fits",
    "memory_max_batch": "most sequences that fit at this context",
    "context_can_grow": "yes when a longer context than asked for fits",
    "batch_can_grow": "yes when more sequences than asked for fit",
    "speed_known": "yes when a speed is given",
    "speed_decode": "generation speed of one stream with its range",
    "speed_point": "the same without range",
    "speed_evidence": "how well it is backed, in words",
    "speed_measured": "yes when this very setup was measured",
    "speed_modelled": "the model's own figure beside a measured one",
    "speed_prefill": "speed of reading the prompt",
    "speed_aggregate": "speed over all sequences, empty with one",
    "speed_depth": "tokens already in the cache when the speed holds, empty for none",
    "speed_feel": "how the speed feels to a reader, as the rules conclude it",
    "bound_by": "what limits generation: memory bandwidth, computation, overhead or system RAM",
    "host_ram": "system RAM the user stated",
    "host_ram_needed": "system RAM that offloading would need",
    "host_ram_bandwidth": "system RAM bandwidth the user stated",
    "host_cpu_cores": "CPU cores the user stated",
    "missing_figures": "figures that are unknown and would have mattered, in words",
}

OPTION: Mapping[str, str] = {
    "option_action": "the action",
    "option_changes": "all changes in words: Q4_K_M weights and a context of 8,192 tokens",
    "option_fits": "yes when the changed setup fits",
    "option_format": "weight format after the change",
    "option_quality_loss": "perplexity increase over FP16 after the change",
    "option_quality_cost": "the part of it that the change itself adds, empty when none",
    "option_quality_gain": "how far perplexity falls when the change improves quality",
    "option_quality_small": "yes when the change adds at most 1 % to perplexity",
    "option_quality_same": "yes when the change costs no quality",
    "option_quality_unknown": "yes when nobody measured it",
    "option_kv_cache": "KV-cache type after the change",
    "option_context": "context per sequence after the change, in tokens",
    "option_batch": "sequences after the change",
    "option_gpus": "number of cards after the change",
    "option_gpu": "card after the change",
    "option_gpu_vram": "memory of that card",
    "option_bandwidth": "memory bandwidth of that card",
    "option_model": "model after the change",
    "option_parameters": "its size",
    "option_framework": "framework after the change",
    "option_layers": "layers on the card of all: 30 of 41, empty when all are",
    "option_cpu_experts": "layers whose experts stay in system RAM, empty for none",
    "option_draft_model": "draft model for speculative decoding",
    "option_required": "memory needed on the card or cards after the change",
    "option_headroom": "what then stays free on the fullest card",
    "option_deficit": "what is then still missing, empty when it fits",
    "option_saved": "memory saved against the request, empty when none",
    "option_added": "memory added against the request, empty when none",
    "option_weights": "weights on the card after the change",
    "option_kv_cache_size": "KV cache on the card after the change",
    "option_host_ram": "what then lies in system RAM, empty without offload",
    "option_speed": "generation speed after the change with its range",
    "option_speed_point": "the same without range",
    "option_speed_evidence": "how well it is backed, in words",
    "option_speed_change": "faster, slower or about as fast; empty when either is unknown",
    "option_aggregate": "speed over all sequences after the change",
    "option_cost": "launch prices to pay for the change",
    "option_effort": "what the change asks for, in words",
    "option_effort_kind": "setting, download, rebuild or purchase",
    "option_confidence": "high, medium or low",
    "before_required": "memory needed before the change",
    "before_speed": "generation speed before the change, empty when it did not run",
}

_BY_KIND: Mapping[Kind, frozenset[str]] = {
    "actions": frozenset(SITUATION) | frozenset(OPTION),
    "notes": frozenset(SITUATION),
    "report": frozenset(SITUATION)
    | frozenset(OPTION)
    | {"action_text", "advice_count", "option_first", "option_last"}
    | {"length", "title", "verdict", "tiles", "parts", "bar", "dial", "moves", "table"}
    | {"rows", "notes", "warnings", "barred", "provenance", "lead", "options_heading"}
    | {"have", "happens", "first", "rest", "steps", "watch", "commands"},
}


def placeholders(kind: Kind) -> frozenset[str]:
    """Give the names that templates of one folder may use."""
    return _BY_KIND[kind]
