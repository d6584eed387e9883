"""The command that runs a scenario, built from the sourced flags in knowledge/frameworks."""

from __future__ import annotations

from collections.abc import Iterator

from advisor.knowledge.types import Format
from advisor.resolve import DEFAULT_UBATCH
from advisor.scenario import Model, Scenario

_QUANTIZE = {"awq": "awq", "gptq": "gptq", "fp8": "fp8", "exl2": "exl2"}
"""Format family -> the value of a ``quantize`` flag, where a framework has one (TGI)."""


def command_for(scenario: Scenario) -> str:
    """Give a complete invocation, or an empty string where none is sourced."""
    framework = scenario.framework
    if not framework.command:
        return ""
    base = framework.command
    for name, value in _placeholders(scenario).items():
        base = base.replace("{" + name + "}", value)
    flags = (
        framework.flags[name].replace("{value}", value)
        for name, value in _settings(scenario)
        if name in framework.flags
    )
    return " ".join([base, *flags])


def _placeholders(scenario: Scenario) -> dict[str, str]:
    model, precision = scenario.model, scenario.precision
    hub = model.hf_id or model.name
    return {
        "model": hub if precision.family == "unquantized" else _folder(model, precision),
        "hf_id": hub if precision.family == "unquantized" else _folder(model, precision),
        "name": model.name,
        "model_file": _gguf_file(model, precision),
        "precision": precision.name,
    }


def _gguf_file(model: Model, precision: Format) -> str:
    stored = model.stored
    if stored and stored.kind == "gguf" and stored.format_name == precision.name:
        return stored.files[0].name
    kind = {"FP16": "F16", "FP32": "F32"}.get(precision.name, precision.name)
    return f"{model.name}-{kind.split(' ')[0]}.gguf"


def _folder(model: Model, precision: Format) -> str:
    """Name a checkpoint that is already in the format: those are downloads of their own."""
    words = "".join(c if c.isalnum() or c == "." else "-" for c in precision.name)
    return f"./{model.name}-{'-'.join(word for word in words.split('-') if word)}"


def _settings(scenario: Scenario) -> Iterator[tuple[str, str]]:
    """Settings worth a flag: always the context, the rest only where not the default."""
    gguf = scenario.framework.memory_model == "llama.cpp"
    slots = scenario.batch if gguf else 1
    yield "context", str(scenario.context_tokens * slots)
    if scenario.gpu_layers is not None:
        yield "gpu_layers", str(scenario.gpu_layers)
    if scenario.cpu_experts:
        yield "cpu_experts", str(scenario.cpu_experts)
    yield from _cache_settings(scenario)
    if scenario.batch > 1:
        yield "batch", str(scenario.batch)
    if scenario.gpus > 1:
        yield "gpus", str(scenario.gpus)
    if scenario.draft_model:
        draft = scenario.draft_model
        hub = draft.hf_id or draft.name
        yield "draft_model", _gguf_file(draft, scenario.precision) if gguf else hub
    if gguf:
        yield from _llamacpp_settings(scenario)
    elif scenario.precision.family in _QUANTIZE:
        yield "quantize", _QUANTIZE[scenario.precision.family]


def _cache_settings(scenario: Scenario) -> Iterator[tuple[str, str]]:
    key, value = scenario.kv_cache_k.name, scenario.kv_cache_v.name
    if (key, value) == ("f16", "f16"):
        return
    if key == value and "kv_cache" in scenario.framework.flags:
        yield "kv_cache", key
    else:
        yield "kv_cache_k", key
        yield "kv_cache_v", value


def _llamacpp_settings(scenario: Scenario) -> Iterator[tuple[str, str]]:
    if scenario.ubatch != DEFAULT_UBATCH:
        yield "ubatch", str(scenario.ubatch)
    if not scenario.flash_attention:
        yield "flash_attention", "off"
    if not scenario.kv_unified:
        yield "no_kv_unified", ""
    if scenario.swa_full:
        yield "swa_full", ""
    if scenario.model.vision_parameters:
        yield "vision_file", f"mmproj-{scenario.model.name}.gguf"
