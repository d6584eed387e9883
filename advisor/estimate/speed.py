"""Tokens per second: how long one decode step takes, from what it has to read.

One step of ``batch`` sequences takes

    overhead x layers + (weights + batch x cache) / (bandwidth x efficiency)
                      + what lies in system RAM / (RAM bandwidth x its efficiency)

with the parameters of knowledge/calibration.yaml; docs/decisions/0005-speed-model.md says where
they come from and how far they were checked.
"""

from __future__ import annotations

from advisor.estimate.kv_cache import kv_read_bytes
from advisor.estimate.result import Evidence, Figure, Memory, Speed
from advisor.estimate.speed_cards import speed_of_unequal
from advisor.estimate.speed_own import with_own
from advisor.estimate.speed_rates import Rate, Speeds, speeds_of
from advisor.estimate.speed_step import (
    Reads,
    Step,
    is_split,
    prefill_gain,
    reads_of,
    step_time,
)
from advisor.estimate.speed_tables import Measured, Tables
from advisor.estimate.weights import Weights, weights_of
from advisor.knowledge.types import Knowledge
from advisor.scenario import Scenario, changed
from advisor.units import GIB

_SPECULATION = (0.63, 1.93)
"""Slowest and fastest of six draft-model runs against the same run without one, RTX 3090, one
stream (LottoLottoLotto/4x3090-llm-benchmarks); the median is 1.18."""
_GENERATES = frozenset({"text", "vision"})


def estimate_speed(scenario: Scenario, memory: Memory, knowledge: Knowledge) -> Speed | None:
    """Estimate decode, prefill and aggregate speed at the scenario's depth.

    Decode is tokens/s of one stream among ``batch``: the aggregate over the batch divided by it.

    Args:
        scenario: What is run, and on what.
        memory: The same scenario's memory; nothing is said of one that does not fit.
        knowledge: Its ``calibration`` holds the parameters.

    Returns:
        None without a card, when the scenario does not fit, for models that do not generate
        text, and where a figure is unknown (``missing_inputs`` names it).

    Raises:
        KnowledgeError: calibration.yaml is wrong.
        RequestError: A figure of the architecture is missing.
    """
    if memory.deficit_bytes or not _can_decode(scenario):
        return None
    if scenario.cards:
        return speed_of_unequal(
            scenario, memory, lambda one: estimate_speed(one, memory, knowledge)
        )
    speeds = speeds_of(knowledge)
    rate = rate_of(scenario, speeds)
    if speeds is None or rate is None:
        return None
    weights = weights_of(
        scenario.model, scenario.precision, scenario.framework, knowledge.ggml_types
    )
    return _speed(scenario, memory, speeds, rate, weights)


def missing_inputs(scenario: Scenario, knowledge: Knowledge | None = None) -> tuple[str, ...]:
    """Name the unknown figures that keep the scenario from having a speed.

    Args:
        scenario: What is run, and on what.
        knowledge: With it, engines, backends and formats without calibration are named too.

    Returns:
        Fact names, or ``calibration of ...`` for an engine without figures; empty when nothing
        is missing or when speed does not apply (no card, no text generation).
    """
    if scenario.gpu is None or scenario.model.modality not in _GENERATES:
        return ()
    missing = []
    if scenario.model.shape.role != "decoder":
        missing.append("calibration of models with an encoder")
    if scenario.gpu.bandwidth_bytes_s is None:
        missing.append("gpu.bandwidth")
    if is_split(scenario) and scenario.ram_bandwidth_bytes_s is None:
        missing.append("host.ram_bandwidth")
    if scenario.gpus > 1 and not scenario.framework.multi_gpu:
        missing.append("framework.multi_gpu")
    kinds = [changed(scenario, gpu=gpu, cards=()) for gpu in scenario.cards] or [scenario]
    if knowledge and any(rate_of(one, speeds_of(knowledge)) is None for one in kinds):
        missing.append(f"calibration of {scenario.framework.name} on {scenario.backend}")
    return tuple(missing)


def speculative_range(scenario: Scenario, speed: Speed) -> tuple[float, float] | None:
    """Give the span of tokens/s of one stream that a draft model may lead to.

    Speculation can lose, so the span contains the plain figure, which never includes it.

    Returns:
        Lowest and highest tokens/s, or None without a draft model.
    """
    if scenario.draft_model is None:
        return None
    plain = speed.decode_tok_s.estimate
    return plain * _SPECULATION[0], plain * _SPECULATION[1]


def _can_decode(scenario: Scenario) -> bool:
    gpu = scenario.gpu
    return (
        gpu is not None
        and gpu.bandwidth_bytes_s is not None
        and scenario.model.modality in _GENERATES
        and scenario.model.shape.role == "decoder"
        and (scenario.gpus == 1 or bool(scenario.framework.multi_gpu))
        and (scenario.ram_bandwidth_bytes_s is not None or not is_split(scenario))
    )


def rate_of(scenario: Scenario, speeds: Speeds | None) -> Rate | None:
    """Give the rate of a scenario's card and engine; None where figures are missing."""
    if speeds is None or scenario.gpu is None or scenario.backend is None:
        return None
    rate = speeds.rate(
        scenario.gpu,
        scenario.backend,
        scenario.framework,
        scenario.precision,
        moe=bool(scenario.model.shape.moe),
    )
    if rate and scenario.model.shape.moe and rate.moe_overhead_s is None:
        return None
    return rate


def _speed(
    scenario: Scenario, memory: Memory, speeds: Speeds, rate: Rate, weights: Weights
) -> Speed:
    batch = scenario.batch
    cache = kv_read_bytes(scenario, scenario.depth_tokens)
    reads = reads_of(scenario, memory, weights, cache)
    one = step_time(scenario, speeds.tables, rate, reads, 1)
    step = one if batch == 1 else _batched(scenario, speeds, rate, reads, one)
    evidence, spread = _trust(scenario, speeds, rate, reads)
    decode = _figure(1 / step.seconds, spread, evidence)
    aggregate = decode if batch == 1 else _figure(batch / step.seconds, spread, evidence)
    prefill = _prefill(scenario, speeds, rate)
    measured = _measured(scenario, speeds.tables)
    if measured is not None:
        decode = _published(measured, speeds.tables.ranges["measured"], decode)
        aggregate = decode
    return with_own(
        scenario,
        speeds,
        Speed(
            depth_tokens=scenario.depth_tokens,
            decode_tok_s=decode,
            prefill_tok_s=prefill,
            aggregate_tok_s=aggregate,
            bound_by=step.bound_by,
        ),
    )


def _measured(scenario: Scenario, tables: Tables) -> Measured | None:
    """Find the published speed of this very configuration."""
    gpu, backend = scenario.gpu, scenario.backend
    if gpu is None or backend is None:
        return None
    key = (gpu.name, scenario.model.name, scenario.precision.name, backend)
    found = tables.measured.get(key)
    return found if found and _as_published(scenario, tables.measured_depth_tokens) else None


def _as_published(scenario: Scenario, most_depth: int) -> bool:
    return (
        scenario.framework.name == "llama.cpp"
        and scenario.gpus == scenario.batch == 1
        and scenario.depth_tokens <= most_depth
        and scenario.kv_cache_k.name == scenario.kv_cache_v.name == "f16"
        and scenario.model.origin == "knowledge"
        and scenario.draft_model is None
        and not is_split(scenario)
    )


def _published(measured: Measured, spread: float, modelled: Figure) -> Figure:
    speed = measured.tok_s
    return Figure(
        speed, speed / spread, speed * spread, "measured", measured.source, modelled.estimate
    )


def _batched(scenario: Scenario, speeds: Speeds, rate: Rate, reads: Reads, one: Step) -> Step:
    """Time one step of the whole batch.

    Reading says how fast it could be; the gain measured on real cards and the compute peak say
    how fast it gets. A step never takes longer than its sequences one after another.
    """
    batch = scenario.batch
    step = step_time(scenario, speeds.tables, rate, reads, batch)
    arithmetic = batch * (_compute_s(scenario, speeds, rate) or 0.0)
    slowest = max(one.seconds * batch / rate.batch.at(batch), arithmetic)
    if slowest <= step.seconds:
        return step
    return Step(min(slowest, one.seconds * batch), "compute")


def _compute_s(scenario: Scenario, speeds: Speeds, rate: Rate) -> float | None:
    """Time the arithmetic of one token: two operations per active parameter, seconds."""
    if rate.prefill is None:
        return None
    model = scenario.model
    used = max(model.active_parameters - model.vision_parameters, 0)
    return 2 * used / (rate.prefill.tflops * 1e12 * prefill_gain(scenario, speeds.tables))


def _prefill(scenario: Scenario, speeds: Speeds, rate: Rate) -> Figure | None:
    """Estimate prompt tokens/s; unknown with weights in system RAM, where it collapses."""
    seconds = None if is_split(scenario) else _compute_s(scenario, speeds, rate)
    if not seconds or rate.prefill is None:
        return None
    tables = speeds.tables
    spread = rate.prefill.spread
    if scenario.model.shape.moe:
        seconds /= tables.prefill.experts
        spread = max(spread, tables.ranges["prefill_experts"])
    if scenario.gpus > 1:
        spread = max(spread, tables.ranges["prefill_cards"])
    layers = scenario.model.shape.layers
    launch = _host_s(scenario, rate) * layers / tables.prefill.prompt_tokens
    return _figure(1 / (seconds + launch), spread, "extrapolated")


def _host_s(scenario: Scenario, rate: Rate) -> float:
    return rate.overhead_s + ((rate.moe_overhead_s or 0.0) if scenario.model.shape.moe else 0.0)


def _trust(scenario: Scenario, speeds: Speeds, rate: Rate, reads: Reads) -> tuple[Evidence, float]:
    """Give the tier and the 80 % range factor: the widest of all that applies."""
    ranges = speeds.tables.ranges
    small = reads.step_bytes(1) < ranges["small_gib"] * GIB
    spread = rate.small_spread if small else rate.spread
    evidence = rate.evidence
    if scenario.model.shape.moe:
        near = evidence == "near"
        spread = max(spread, ranges["moe_near" if near else "moe_unseen"])
        evidence = "near" if near else "extrapolated"
    rough = [ranges[name] for name in _rough_parts(scenario, ranges["deep_tokens"])]
    return ("extrapolated", max(spread, *rough)) if rough else (evidence, spread)


def _rough_parts(scenario: Scenario, deep_tokens: float) -> list[str]:
    found = []
    if scenario.depth_tokens > deep_tokens:
        found.append("deep")
    if scenario.batch > 1:
        found.append("batch")
    if scenario.gpus > 1:
        tensor = scenario.framework.multi_gpu[0] == "tensor"
        found.append("tensor_parallel" if tensor else "layer_split")
    if is_split(scenario):
        found.append("offload")
    if scenario.draft_model is not None:
        found.append("draft_model")
    return found


def _figure(estimate: float, spread: float, evidence: Evidence) -> Figure:
    return Figure(estimate, estimate / spread, estimate * spread, evidence)
