"""Scenario -> the parts of the result document that say what was asked, and of what it is made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.report.figures import plain
from advisor.scenario import support
from advisor.scenario.resolve import default_backend
from advisor.scenario.splits import split_of

if TYPE_CHECKING:
    from advisor.knowledge.types import Gpu
    from advisor.models.model import Model
    from advisor.report.contract import GpuDoc, ModelDoc, ScenarioDoc, SetupDoc
    from advisor.scenario.scenario import Scenario


def scenario_doc(scenario: Scenario) -> ScenarioDoc:
    """Put the resolved request as the result document has it."""
    form = scenario.precision
    return {
        "gpu": _gpu(scenario.gpu) if scenario.gpu else None,
        "gpus": scenario.gpus,
        "cards": [
            {
                "name": plain(gpu.name),
                "vram_bytes": gpu.vram_bytes,
                "bandwidth_bytes_s": gpu.bandwidth_bytes_s,
            }
            for gpu in scenario.cards
        ],
        "model": _model(scenario.model),
        "precision": form.name,
        "precision_quality_loss_percent": support.format_loss(form, scenario.model),
        "precision_class_bits": form.class_bits,
        "precision_nominal_bytes_per_weight": form.nominal_bytes_per_weight,
        "context_tokens": scenario.context_tokens,
        "batch": scenario.batch,
        "kv_cache": _kv_name(scenario),
        "kv_cache_k": scenario.kv_cache_k.name,
        "kv_cache_v": scenario.kv_cache_v.name,
        "framework": scenario.framework.name,
        "framework_offloads": scenario.framework.cpu_offload,
        "framework_memory_model": scenario.framework.memory_model,
        "framework_memory_fraction": scenario.framework.memory_fraction,
        "framework_split": split_of(scenario),
        "backend": scenario.backend,
        "backend_usual": _usual(scenario),
        "flash_attention": scenario.flash_attention,
        "ubatch": scenario.ubatch,
        "gpu_layers": scenario.gpu_layers,
        "cpu_experts": scenario.cpu_experts,
        "depth_tokens": scenario.depth_tokens,
        "ram_bytes": scenario.ram_bytes,
        "ram_bandwidth_bytes_s": scenario.ram_bandwidth_bytes_s,
        "cpu_cores": scenario.cpu_cores,
        "prefer": scenario.prefer,
        "use": scenario.use,
        "draft_model": plain(scenario.draft_model.name) if scenario.draft_model else None,
        "mtp": scenario.mtp,
    }


def setup_doc(scenario: Scenario) -> SetupDoc:
    """Put a configuration in its short form."""
    gpu = scenario.gpu
    return {
        "gpu": plain(gpu.name) if gpu else None,
        "gpu_vram_bytes": gpu.vram_bytes if gpu else None,
        "gpu_bandwidth_bytes_s": gpu.bandwidth_bytes_s if gpu else None,
        "gpus": scenario.gpus,
        "model": plain(scenario.model.name),
        "model_family": plain(scenario.model.family),
        "model_parameters": scenario.model.parameters,
        "precision": scenario.precision.name,
        "context_tokens": scenario.context_tokens,
        "batch": scenario.batch,
        "kv_cache": _kv_name(scenario),
        "framework": scenario.framework.name,
        "framework_split": split_of(scenario),
        "gpu_layers": scenario.gpu_layers,
        "layers": scenario.model.shape.layers,
        "cpu_experts": scenario.cpu_experts,
        "draft_model": plain(scenario.draft_model.name) if scenario.draft_model else None,
        "mtp": scenario.mtp,
        "ram_bytes": scenario.ram_bytes,
    }


def _usual(scenario: Scenario) -> bool | None:
    if scenario.gpu is None or scenario.backend is None:
        return None
    return scenario.backend == default_backend(scenario.gpu)


def _kv_name(scenario: Scenario) -> str:
    keys, values = scenario.kv_cache_k.name, scenario.kv_cache_v.name
    return keys if keys == values else f"{keys}/{values}"


def _gpu(gpu: Gpu) -> GpuDoc:
    return {
        "name": plain(gpu.name),
        "vendor": gpu.vendor,
        "segment": gpu.segment,
        "architecture": gpu.architecture,
        "compute_capability": gpu.compute_capability,
        "vram_bytes": gpu.vram_bytes,
        "vram_type": gpu.vram_type,
        "bandwidth_bytes_s": gpu.bandwidth_bytes_s,
        "cores": gpu.cores,
        "tensor_cores": gpu.tensor_cores,
        "fp16_tensor_tflops_fp32acc": gpu.fp16_tensor_tflops_fp32acc,
        "tdp_w": gpu.tdp_w,
        "unified_memory": gpu.unified_memory,
        "released": gpu.released,
        "launch_price_usd": gpu.launch_price_usd,
        "disputed": {field: list(values) for field, values in gpu.disputed.items()},
    }


def _model(model: Model) -> ModelDoc:
    moe = model.shape.moe
    return {
        "name": plain(model.name),
        "family": plain(model.family),
        "modality": model.modality,
        "hf_id": model.hf_id,
        "licence": model.licence,
        "origin": model.origin,
        "parameters": model.parameters,
        "active_parameters": model.active_parameters,
        "vision_parameters": model.vision_parameters,
        "label_parameters_b": model.label_parameters_b,
        "trained_context_tokens": model.trained_context_tokens,
        "image_tokens": model.image_tokens,
        "layers": model.shape.layers,
        "experts": moe.experts if moe else None,
        "experts_used": moe.used if moe else None,
    }
