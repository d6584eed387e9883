"""Estimates and options -> the facts that rules read, in base units; unknown ones left out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from advisor.estimator.kv_cache import kv_bytes_per_token
from advisor.estimator.placement import host_bytes_needed
from advisor.knowledge.catalogue import MAKERS
from advisor.knowledge.names import line_of
from advisor.knowledge.types import Framework, Gpu
from advisor.knowledge.vocabulary import ACTION_FACT, FactValue
from advisor.models.stored_tensors import Model
from advisor.remedies import combine, formats, least_speed, levers, marked, sharing, speed_at_hand
from advisor.remedies.assessment import exam_loss, merit_points, put, quality_loss, weights_loss
from advisor.remedies.framework import speeds_elsewhere
from advisor.remedies.impossible import Proof, proof_of
from advisor.remedies.option import Base, Option, relatives
from advisor.remedies.search import BETWEEN_KEYS, DOMINATED_BY, dominators_in_kind, marks_of
from advisor.rules.engine.base import OptionFacts
from advisor.runtimes import runtime_of
from advisor.scenario import Scenario, offloads, split_of, stretches, support
from advisor.scenario.capability import download_facts, is_likely_had, slow_weights
from advisor.scenario.choices import how_had
from advisor.scenario.figures import (
    BreakEven,
    Limits,
    Memory,
    Speed,
    certainty_of,
    fullest_usable,
    headroom_percent,
    held_percent,
    partly_guessed,
    sequences_at_once,
    spare_percent,
    tight_below_percent,
)
from advisor.scenario.images import most_image_tokens
from advisor.scenario.settings import STATED, Request
from advisor.units import percent, steady

_AS_IT_IS = frozenset({bool, str})
Pairs = Iterable[tuple[str, FactValue | None]]


def scenario_facts(
    base: Base, limits: Limits, options: Sequence[Option], tried: Sequence[OptionFacts]
) -> dict[str, FactValue]:
    """Give every known scenario fact by name; ``tried`` are the facts of the options."""
    scenario = base.scenario
    groups: Iterable[Pairs] = (
        _request(base.request, scenario),
        (("policy.tight_below", tight_below_percent(base.memory, base.knowledge.policy)),),
        _gpu(scenario.gpu) if scenario.gpu else (),
        _model(scenario.model, scenario),
        _weights(base),
        _memory(base.memory, limits, scenario.batch),
        _speed(base.speed, least_speed(base)),
        _framework(scenario.framework, scenario.gpu),
        _host(base),
        _options_summary(options, tried),
        _timed(base, options),
        proof_facts(proof_of(base, options)),
    )
    return cleaned(chain.from_iterable(groups))


def cleaned(pairs: Pairs) -> dict[str, FactValue]:
    """Give facts by name, unknown ones left out."""
    return {
        name: value if value.__class__ in _AS_IT_IS else float(value) + 0.0
        for name, value in pairs
        if value is not None
    }


def _request(request: Request, scenario: Scenario) -> Pairs:
    trained = scenario.model.trained_context_tokens or float("inf")
    yield "request.gpus", scenario.gpus
    yield "request.context", scenario.context_tokens
    yield "request.context_stated", request.context is not None
    yield "request.batch", scenario.batch
    yield "request.prefer", scenario.prefer
    yield "request.use", scenario.use
    yield "request.kv_cache", scenario.kv_cache_k.name
    yield "request.kv_cache_bits", scenario.kv_cache_k.bits
    yield "request.slow_cache", bool(support.slow_cache(scenario))
    yield "request.flash_attention", scenario.flash_attention
    yield "request.offload_stated", offloads(scenario)
    yield "request.framework_stated", request.framework is not None
    yield "request.precision_stated", request.precision is not None
    yield "request.context_beyond_training", scenario.context_tokens > trained
    yield "request.context_stretched", stretches(scenario)
    yield "request.split", split_of(scenario)
    yield "request.split_stated", scenario.split is not None
    yield "request.draft_model", scenario.draft_model is not None
    yield "request.mtp", scenario.mtp > 0


def _gpu(gpu: Gpu) -> Pairs:
    by_capability = MAKERS[gpu.vendor].by_capability
    yield "gpu.name", gpu.name
    yield "gpu.vendor", gpu.vendor
    yield "gpu.segment", gpu.segment
    yield "gpu.architecture", gpu.architecture
    yield "gpu.compute_capability", gpu.compute_capability
    yield "gpu.vram", gpu.vram_bytes
    yield "gpu.vram_type", gpu.vram_type
    yield "gpu.bandwidth", gpu.bandwidth_bytes_s
    yield "gpu.cores", gpu.cores
    yield "gpu.tensor_cores", gpu.tensor_cores
    yield "gpu.fp16_compute", gpu.fp16_tensor_tflops_fp32acc
    yield "gpu.tdp", gpu.tdp_w
    yield "gpu.launch_price", gpu.launch_price_usd
    yield "gpu.release_year", int(gpu.released[:4]) if gpu.released else None
    yield "gpu.unified_memory", gpu.unified_memory
    yield "gpu.laptop", gpu.segment == "mobile"
    yield "gpu.bf16", gpu.bf16
    yield "gpu.fp8", _has(gpu, 8.9) if by_capability else (gpu.fp8_tflops and True)
    yield "gpu.fp4", _has(gpu, 10.0) if by_capability else (gpu.fp4_tflops and True)
    yield "gpu.nvlink", gpu.nvlink_bytes_s
    yield "gpu.pcie_gen", gpu.pcie_gen
    yield "gpu.disputed", bool(gpu.disputed)


def _has(gpu: Gpu, capability: float) -> bool | None:
    return None if gpu.compute_capability is None else gpu.compute_capability >= capability


def attention_kind(model: Model) -> str:
    """Name how keys and values are kept: mha, gqa, mqa, mla, hybrid or none."""
    shape = model.shape
    if "F" not in shape.layer_kinds and not set(shape.layer_kinds) & set("SCH"):
        return "none"
    if set(shape.layer_kinds) & set("RHN"):
        return "hybrid"
    if shape.mla:
        return "mla"
    return "mha" if shape.kv_heads == shape.heads else "mqa" if shape.kv_heads == 1 else "gqa"


def _model(model: Model, scenario: Scenario) -> Pairs:
    yield "model.name", model.name
    yield "model.family", model.family
    yield "model.modality", model.modality
    yield "model.architecture", model.shape.outer_type or model.shape.model_type
    yield "model.parameters", model.parameters
    if not model.shape.reads_unknown:
        yield "model.active_parameters", model.read_parameters
    yield "model.label_parameters", (model.label_parameters_b or 0) * 1e9 or None
    yield "model.encoder", model.shape.role == "encoder"
    yield "model.layers", model.shape.layers
    yield "model.moe", model.shape.moe is not None
    yield "model.experts", model.shape.moe.experts if model.shape.moe else None
    yield "model.attention", attention_kind(model)
    yield "model.sliding_window", bool(set(model.shape.layer_kinds) & set("SC"))
    yield "model.told_windows", runtime_of(scenario.framework).told_windows(scenario) or None
    yield "model.trained_context", model.trained_context_tokens
    yield "model.kv_bytes_per_token", steady(kv_bytes_per_token(scenario))
    yield "model.vision_parameters", model.vision_parameters or None
    yield "model.image_tokens", most_image_tokens(model) if model.vision_parameters else None
    yield "model.origin", model.origin
    yield "model.mtp", model.shape.mtp_layers > 0
    yield "model.draft_head", levers.trained_head(scenario)
    yield "model.four_bit_files", model.companions.get("qat")


def _weights(base: Base) -> Pairs:
    scenario, memory = base.scenario, base.memory
    nominal = memory.nominal_weights_gb
    yield "weights.format", scenario.precision.name
    yield "weights.family", scenario.precision.family
    yield "weights.bits_per_weight", _rounded(memory.bits_per_weight)
    yield "weights.quality_loss", quality_loss(scenario)
    yield "weights.exam_loss", exam_loss(scenario)
    published = () if scenario.model.native_inherited else scenario.model.native_formats
    yield "weights.published", published[0] if published else None
    by, of, on, model = scenario.framework, scenario.precision, scenario.gpu, scenario.model
    yield from download_facts(by, of, model, head=scenario.mtp > 0)
    yield "weights.as_published", support.is_published(of, model)
    yield "weights.native", support.is_native(of, on) if on else None
    yield "weights.slow_kernels", bool(slow_weights(by, of, on, model, scenario.backend or ""))
    yield "weights.nominal", nominal * 1e9 if nominal else None
    everything = memory.required_bytes + memory.host_weights_bytes + memory.host_kv_cache_bytes
    gap = everything - nominal * 1e9 if nominal else None
    yield "weights.nominal_gap", percent(gap, nominal * 1e9 if nominal else None)


def _rounded(value: float | None) -> float | None:
    return None if value is None else steady(value)


def _memory(memory: Memory, limits: Limits, batch: int) -> Pairs:
    yield "memory.capacity", memory.capacity_bytes
    yield "memory.usable", memory.usable_bytes
    yield "memory.required", memory.required_bytes
    yield "memory.deficit", memory.deficit_bytes
    yield "memory.headroom", memory.headroom_bytes
    yield "memory.headroom_share", headroom_percent(memory)
    yield "memory.spare_share", spare_percent(memory)
    yield "memory.held_share", held_percent(memory, batch)
    yield "memory.deficit_share", percent(memory.deficit_bytes, fullest_usable(memory))
    yield "memory.weights", memory.weights_bytes
    yield "memory.all_weights", memory.weights_bytes + memory.host_weights_bytes
    yield "memory.kv_cache", memory.kv_cache_bytes
    yield "memory.kv_share", percent(memory.kv_cache_bytes, memory.required_bytes)
    yield "memory.compute_buffer", memory.compute_buffer_bytes
    yield "memory.overhead", memory.overhead_bytes
    yield "memory.approximate", partly_guessed(memory)
    yield "memory.certainty", certainty_of(memory)
    yield "memory.max_context", limits.max_context_tokens
    yield "memory.max_batch", limits.max_batch
    room = memory.cache_room
    if room is not None:
        yield "memory.cache_room", room.room_bytes
        yield "memory.cache_tokens", room.tokens
        yield "memory.cache_sequences", sequences_at_once(memory, limits)


def break_even_facts(edges: BreakEven) -> Pairs:
    """Give the points where the request tips over, as facts."""
    yield "break_even.batch", edges.too_large_batch
    yield "break_even.format", edges.largest_format
    yield "break_even.format_bits", _rounded(edges.largest_format_bits)
    yield "break_even.gpus", edges.fewest_gpus
    yield "break_even.gpus_in_turns", edges.fewest_in_turns
    yield "break_even.card_memory", edges.smallest_capacity_bytes


def _speed(speed: Speed | None, least: float) -> Pairs:
    yield "speed.least", least
    yield "speed.known", speed is not None
    if speed is None:
        return
    yield "speed.decode", _rounded(speed.decode_tok_s.estimate)
    yield "speed.usable", speed.decode_tok_s.estimate >= least
    yield "speed.decode_low", _rounded(speed.decode_tok_s.low)
    yield "speed.decode_high", _rounded(speed.decode_tok_s.high)
    yield "speed.prefill", _rounded(speed.prefill_tok_s.estimate) if speed.prefill_tok_s else None
    yield "speed.aggregate", _rounded(speed.total_tok_s)
    yield "speed.bound_by", speed.bound_by
    yield "speed.evidence", speed.decode_tok_s.evidence


def _framework(framework: Framework, gpu: Gpu | None) -> Pairs:
    yield "framework.name", framework.name
    yield "framework.offloads_layers", framework.cpu_offload
    yield "framework.offloads_experts", framework.expert_offload
    yield "framework.paged_kv", framework.paged_kv
    yield "framework.speculative", framework.speculative
    yield "framework.multi_gpu", framework.multi_gpu[0] if framework.multi_gpu else "none"
    yield "framework.upkeep", support.upkeep(framework)
    yield "framework.left_card", bool(support.never_there(framework, gpu))
    yield "framework.serves_batches", framework.serves_batches is True


def _host(base: Base) -> Pairs:
    scenario, needed = base.scenario, host_bytes_needed(base.scenario, base.memory)
    yield from marked(base)
    yield "host.ram", scenario.ram_bytes
    low, high = scenario.ram_bandwidth_ends or (None, None)
    yield "host.ram_bandwidth", scenario.ram_bandwidth_bytes_s
    yield "host.ram_bandwidth_low", low
    yield "host.ram_bandwidth_high", high
    yield "host.ram_assumed", scenario.ram_assumed
    yield "host.ram_needed", needed
    yield "host.holds_rest", None if scenario.ram_bytes is None else needed <= scenario.ram_bytes
    yield from ((one.fact, getattr(scenario, one.name)) for one in STATED if one.fact)


def _options_summary(options: Sequence[Option], tried: Sequence[OptionFacts]) -> Pairs:
    fitting = [option for option in options if option.fits]
    yield "options.any_fits", bool(fitting)
    yield "options.quantize_fits", any(o.action == formats.REMEDY.action for o in fitting)
    at_hand = [option for option in fitting if option.effort != "purchase"]
    yield "options.single_step_fits", any(option.steps == 1 for option in at_hand)
    yield "options.combination_fits", any(o.action == combine.REMEDY.action for o in at_hand)
    yield "options.draft_exists", any(o.action == levers.DRAFT.action for o in options)
    yield "options.tried", len(options)
    yield "options.fitting", len(fitting)
    free = (option.memory.headroom_bytes or 0 for option in fitting)
    yield "options.most_headroom", max(free, default=None)
    yield "options.dominated", sum(DOMINATED_BY in of.values for of in tried)


def _timed(base: Base, options: Sequence[Option]) -> Pairs:
    yield "options.own_speed", speed_at_hand(base, options) or None
    yield from (*speeds_elsewhere(base, options), *sharing.copies_facts(base))


def proof_facts(proof: Proof | None) -> Pairs:
    """Say whether anything helps, and what the least would need."""
    yield "options.none_exists", proof is not None
    if proof:
        yield "options.least_needed", proof.least_needed_bytes
        yield "options.most_memory", proof.most_memory_bytes
        yield "options.smallest_format", proof.format
        yield "options.largest_machine", f"{proof.cards} x {proof.card}"


def option_facts(base: Base, options: Sequence[Option]) -> list[OptionFacts]:
    """Give the facts of every option, best-in-class marks included."""
    better = dominators_in_kind(options)
    marks = {"option.dominated": set(better), **marks_of(base, options)}
    before = _Before(
        base,
        least_speed(base),
        weights_loss(base.scenario),
        [model.name for model in relatives(base.knowledge, base.scenario.model)],
        speed_at_hand(base, options),
    )
    return [
        OptionFacts(option.key, _option(before, option, marks, better.get(option.key, ())))
        for option in options
    ]


class _Before(NamedTuple):
    """The request, and what every what-if is held against."""

    base: Base
    least_speed: float
    weights_loss: float | None
    relatives: Sequence[str]
    speed_at_hand: float
    """Of all sequences on the cards at hand, at best, tokens per second; 0 where it runs nohow."""


def _option(
    before: _Before, option: Option, marks: Mapping[str, set[str]], better: Sequence[str]
) -> dict[str, FactValue]:
    base = before.base
    facts: dict[str, FactValue] = {
        **option.alone,
        ACTION_FACT: option.action,
        "option.effort": option.effort,
        "option.steps": float(option.steps),
    }
    facts |= {mark: option.key in keys for mark, keys in marks.items()}
    if better:
        facts[DOMINATED_BY] = BETWEEN_KEYS.join(better)
    put(facts, "option.cost", option.cost_usd)
    put(facts, "option.quality_loss", option.quality_loss_percent)
    put(facts, "option.quality_cost", option.quality_cost_percent)
    weights_loss = option.alone.get("option.weights_loss")
    if before.weights_loss is not None and isinstance(weights_loss, float):
        put(facts, "option.weights_cost", weights_loss - before.weights_loss)
    facts["option.saved"] = float(base.memory.required_bytes - option.memory.required_bytes)
    _put_speed(facts, before, option)
    _put_change(facts, before, option)
    return facts


def _put_speed(facts: dict[str, FactValue], before: _Before, option: Option) -> None:
    speed, earlier = option.speed, before.base.speed
    if speed is None:
        return
    now = speed.decode_tok_s.estimate
    facts["option.usable_speed"] = now >= before.least_speed
    if option.effort == "purchase":
        _put_share(facts, "option.owned_share", speed.total_tok_s, before.speed_at_hand)
    if earlier:
        then, total = earlier.decode_tok_s.estimate, earlier.total_tok_s
        _put_share(facts, "option.speed_gain", now - then, then)
        _put_share(facts, "option.aggregate_gain", speed.total_tok_s - total, total)


def _put_change(facts: dict[str, FactValue], before: _Before, option: Option) -> None:
    own, after = before.base.scenario, option.scenario
    if after.model.name != own.model.name:
        facts["option.related"] = after.model.name in before.relatives
        known = before.base.knowledge
        merit, earlier = (merit_points(own, one, known) for one in (after.model, own.model))
        facts["option.rated_higher"] = merit > earlier > 0
        if merit:
            facts["option.merit"] = merit
            _put_share(facts, "option.merit_kept", merit, earlier)
    facts["option.obtainable"] = is_likely_had(after.framework, after.precision, after.model)
    facts["option.well_known"] = how_had(after.precision, after.framework, after.model) > 1
    facts["option.same_family"] = after.model.family == own.model.family
    facts["option.near_family"] = line_of(after.model.family) == line_of(own.model.family)
    _put_share(facts, "option.context_kept", after.context_tokens, own.context_tokens)
    _put_share(facts, "option.batch_kept", after.batch, own.batch)
    _put_share(facts, "option.parameters_kept", after.model.parameters, own.model.parameters)
    if after.gpu and own.gpu:
        facts["option.same_vendor"] = after.gpu.vendor == own.gpu.vendor


def _put_share(facts: dict[str, FactValue], name: str, part: float, whole: float) -> None:
    put(facts, name, None if not whole else 100.0 if part == whole else percent(part, whole))
