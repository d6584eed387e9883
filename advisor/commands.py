"""The command that runs a scenario, built from the sourced flags in knowledge/frameworks."""

from __future__ import annotations

from collections.abc import Iterator

from advisor.scenario import Scenario


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
    model = scenario.model
    name = model.name.rsplit("/", 1)[-1]
    return {
        "model": model.hf_id or model.name,
        "hf_id": model.hf_id or model.name,
        "name": name,
        "model_file": f"{name}-{scenario.precision.name.replace(' ', '-')}.gguf",
        "precision": scenario.precision.name,
    }


def _settings(scenario: Scenario) -> Iterator[tuple[str, str]]:
    """Settings worth a flag: always the context, the rest only where not the default."""
    slots = scenario.batch if scenario.framework.memory_model == "llama.cpp" else 1
    yield "context", str(scenario.context_tokens * slots)
    if scenario.gpu_layers is not None:
        yield "gpu_layers", str(scenario.gpu_layers)
    if scenario.cpu_experts:
        yield "cpu_experts", str(scenario.cpu_experts)
    key, value = scenario.kv_cache_k.name, scenario.kv_cache_v.name
    if key == value and "kv_cache" in scenario.framework.flags:
        if key != "f16":
            yield "kv_cache", key
    elif (key, value) != ("f16", "f16"):
        yield "kv_cache_k", key
        yield "kv_cache_v", value
    if scenario.batch > 1:
        yield "batch", str(scenario.batch)
    if scenario.gpus > 1:
        yield "gpus", str(scenario.gpus)
    if scenario.draft_model:
        yield "draft_model", scenario.draft_model.hf_id or scenario.draft_model.name
