"""The facts of what-ifs, beside those of the scenario: every ``option.*`` fact that rules read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from advisor import support
from advisor.advice import FactValue, Option
from advisor.engine.base import OptionFacts
from advisor.estimate.margin import headroom_percent
from advisor.facts import aggregate_speed, least_speed, percent
from advisor.knowledge.types import Gpu
from advisor.options.base import Base, exam_loss
from advisor.options.dominance import BETWEEN_KEYS, DOMINATED_BY, dominators_in_kind
from advisor.options.marks import marks_of
from advisor.options.siblings import relatives
from advisor.scenario import Scenario
from advisor.splits import split_of


def option_facts(base: Base, options: Sequence[Option]) -> list[OptionFacts]:
    """Give the facts of every option, best-in-class marks included."""
    marks, better = marks_of(options), dominators_in_kind(options)
    return [
        OptionFacts(option.key, _option(base, option, marks, better.get(option.key, ())))
        for option in options
    ]


def _option(
    base: Base, option: Option, marks: Mapping[str, set[str]], better: Sequence[str]
) -> dict[str, FactValue]:
    facts: dict[str, FactValue] = {
        "option.family": option.action,
        "option.fits": option.fits,
        "option.effort": option.effort,
        "option.steps": float(option.steps),
    }
    for mark, keys in marks.items():
        facts[mark] = option.key in keys
    if better:
        facts[DOMINATED_BY] = BETWEEN_KEYS.join(better)
    _put(facts, "option.cost", option.cost_usd)
    _put(facts, "option.quality_loss", option.quality_loss_percent)
    _put(facts, "option.quality_cost", option.quality_cost_percent)
    _put(facts, "option.exam_loss", exam_loss(option.scenario))
    _put_memory(facts, base, option)
    _put_speed(facts, base, option)
    _put_scenario(facts, base, option)
    return facts


def _put(facts: dict[str, FactValue], name: str, value: float | None) -> None:
    if value is not None:
        facts[name] = round(value, 4) + 0.0


def _put_memory(facts: dict[str, FactValue], base: Base, option: Option) -> None:
    memory = option.memory
    host = memory.host_weights_bytes + memory.host_kv_cache_bytes
    facts["option.required"] = float(memory.required_bytes)
    facts["option.saved"] = float(base.memory.required_bytes - memory.required_bytes)
    facts["option.host_ram"] = float(host)
    after = option.scenario
    facts["option.offloads"] = after.gpu_layers is not None or after.cpu_experts > 0
    _put(facts, "option.headroom", memory.headroom_bytes)
    _put(facts, "option.headroom_share", headroom_percent(memory))
    if option.margin:
        facts["option.margin"] = option.margin
    _put(facts, "option.bits_per_weight", memory.bits_per_weight)
    if option.scenario.ram_bytes is not None:
        facts["option.host_ram_ok"] = host <= option.scenario.ram_bytes


def _put_speed(facts: dict[str, FactValue], base: Base, option: Option) -> None:
    speed = option.speed
    facts["option.speed_known"] = speed is not None
    if speed is None:
        return
    now, total = speed.decode_tok_s.estimate, aggregate_speed(speed) or 0.0
    _put(facts, "option.decode_speed", now)
    facts["option.usable_speed"] = now >= least_speed(base)
    _put(facts, "option.aggregate_speed", total)
    if base.speed:
        before, total_before = base.speed.decode_tok_s.estimate, aggregate_speed(base.speed)
        _put(facts, "option.speed_gain", percent(now - before, before))
        _put(facts, "option.aggregate_gain", percent(total - (total_before or 0.0), total_before))


def _put_scenario(facts: dict[str, FactValue], base: Base, option: Option) -> None:
    before, after = base.scenario, option.scenario
    facts["option.format"] = after.precision.name
    facts["option.format_family"] = after.precision.family
    facts["option.as_published"] = support.is_published(after.precision, after.model)
    facts["option.kv_cache"] = after.kv_cache_k.name
    facts["option.kv_bits"] = float(after.kv_cache_k.bits)
    facts["option.context"] = float(after.context_tokens)
    facts["option.batch"] = float(after.batch)
    facts["option.gpus"] = float(after.gpus)
    if way := split_of(after):
        facts["option.split"] = way
    facts["option.unequal_cards"] = bool(after.cards)
    facts["option.framework"] = after.framework.name
    facts["option.flash_attention"] = after.flash_attention
    facts["option.mtp"] = after.mtp > 0
    facts["option.parameters"] = float(after.model.parameters)
    if option.action == "smaller-model":
        facts["option.related"] = any(
            model is after.model for model in relatives(base.knowledge, before.model)
        )
    facts["option.same_family"] = after.model.family == before.model.family
    _put(facts, "option.context_kept", percent(after.context_tokens, before.context_tokens))
    _put(facts, "option.batch_kept", percent(after.batch, before.batch))
    kept = percent(after.model.parameters, before.model.parameters)
    _put(facts, "option.parameters_kept", kept)
    if after.gpu_layers is not None:
        share = percent(after.gpu_layers, after.model.shape.layers + 1)
        _put(facts, "option.layers_on_gpu", share)
    if after.gpu and before.gpu:
        _put_card(facts, before.gpu, after.gpu, after)


def _put_card(facts: dict[str, FactValue], before: Gpu, after: Gpu, scenario: Scenario) -> None:
    native = support.is_native(scenario.precision, after)
    if native is not None:
        facts["option.native"] = native
    facts["option.gpu"] = after.name
    facts["option.gpu_segment"] = after.segment
    facts["option.gpu_vendor"] = after.vendor
    facts["option.same_vendor"] = after.vendor == before.vendor
    _put(facts, "option.bandwidth", after.bandwidth_bytes_s)
