"""The facts of what-ifs, beside those of the scenario: every ``option.*`` fact that rules read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from advisor.advice.facts import least_speed
from advisor.knowledge.fact_type import FactValue
from advisor.knowledge.vocabulary import ACTION_FACT
from advisor.remedies.assessment import put, weights_loss
from advisor.remedies.baseline import Base
from advisor.remedies.dominance import (
    BETWEEN_KEYS,
    DOMINATED_BY,
    dominators_in_kind,
    marks_of,
)
from advisor.remedies.model import relatives
from advisor.remedies.option import Option
from advisor.rules.engine.base import OptionFacts
from advisor.units import percent


def option_facts(base: Base, options: Sequence[Option]) -> list[OptionFacts]:
    """Give the facts of every option, best-in-class marks included."""
    marks, better = marks_of(options), dominators_in_kind(options)
    least = least_speed(base)
    return [
        OptionFacts(option.key, _option(base, option, marks, better.get(option.key, ()), least))
        for option in options
    ]


def _option(
    base: Base,
    option: Option,
    marks: Mapping[str, set[str]],
    better: Sequence[str],
    least: float,
) -> dict[str, FactValue]:
    facts: dict[str, FactValue] = {
        **option.alone,
        ACTION_FACT: option.action,
        "option.effort": option.effort,
        "option.steps": float(option.steps),
    }
    for mark, keys in marks.items():
        facts[mark] = option.key in keys
    if better:
        facts[DOMINATED_BY] = BETWEEN_KEYS.join(better)
    put(facts, "option.cost", option.cost_usd)
    put(facts, "option.quality_loss", option.quality_loss_percent)
    put(facts, "option.quality_cost", option.quality_cost_percent)
    _put_weights_cost(facts, base, option)
    facts["option.saved"] = float(base.memory.required_bytes - option.memory.required_bytes)
    _put_speed(facts, base, option, least)
    _put_change(facts, base, option)
    return facts


def _put_weights_cost(facts: dict[str, FactValue], base: Base, option: Option) -> None:
    before, after = weights_loss(base.scenario), option.alone.get("option.weights_loss")
    if before is not None and isinstance(after, float):
        put(facts, "option.weights_cost", after - before)


def _put_speed(facts: dict[str, FactValue], base: Base, option: Option, least: float) -> None:
    speed, before = option.speed, base.speed
    if speed is None:
        return
    now = speed.decode_tok_s.estimate
    facts["option.usable_speed"] = now >= least
    if before:
        then, total = before.decode_tok_s.estimate, before.total_tok_s
        _put_share(facts, "option.speed_gain", now - then, then)
        _put_share(facts, "option.aggregate_gain", speed.total_tok_s - total, total)


def _put_change(facts: dict[str, FactValue], base: Base, option: Option) -> None:
    before, after = base.scenario, option.scenario
    if after.model is not before.model:
        facts["option.related"] = any(
            model is after.model for model in relatives(base.knowledge, before.model)
        )
    facts["option.same_family"] = after.model.family == before.model.family
    _put_share(facts, "option.context_kept", after.context_tokens, before.context_tokens)
    _put_share(facts, "option.batch_kept", after.batch, before.batch)
    _put_share(facts, "option.parameters_kept", after.model.parameters, before.model.parameters)
    if after.gpu and before.gpu:
        facts["option.same_vendor"] = after.gpu.vendor == before.gpu.vendor


def _put_share(facts: dict[str, FactValue], name: str, part: float, whole: float) -> None:
    share = 100.0 if part == whole else percent(part, whole)
    if share is not None and whole:
        facts[name] = share
