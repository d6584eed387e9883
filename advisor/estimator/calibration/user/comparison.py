"""What new measurements change: their setups, their cards, and other models on those cards."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from advisor.errors import UserError
from advisor.estimator.calibration.user import Stored
from advisor.estimator.calibration.user.effect import card_engine, is_usual_prompt
from advisor.estimator.calibration.user.physics import figure_for
from advisor.estimator.calibration.user.plausibility import scenario_of
from advisor.estimator.speed import rate_of
from advisor.estimator.speed_rates import Rate, speeds_of
from advisor.knowledge.types import CardEngine, Knowledge
from advisor.scenario import Scenario
from advisor.scenario.figures import Evidence, Figure
from advisor.scenario.resolve import resolve
from advisor.scenario.settings import Request

_OTHER_SIZES = (0.4, 1.0, 2.0)
"""Examples of other models: parameters over those of the measured one."""
_TRIED = 8


class SetupChange(Struct, frozen=True):
    """A new figure beside what was and is said of its setup."""

    item: Stored
    before: Figure | None
    after: Figure | None


class CardChange(Struct, frozen=True):
    """A card with one engine: its speed over the model's, and the 80 % range factor."""

    card: CardEngine
    experts: bool
    """Whether this is about mixtures of experts."""
    factor: tuple[float, float]
    """Before and after."""
    evidence: tuple[Evidence, Evidence]
    spread: tuple[float, float]
    prefill_tflops: tuple[float | None, float | None]


class OtherChange(Struct, frozen=True):
    """A model that was not measured, on a card that was."""

    scenario: Scenario
    before: Figure
    after: Figure


class Comparison(Struct, frozen=True):
    """Everything that new figures change."""

    setups: tuple[SetupChange, ...]
    cards: tuple[CardChange, ...]
    others: tuple[OtherChange, ...]


def compare(before: Knowledge, after: Knowledge, fresh: Sequence[Stored]) -> Comparison:
    """Hold two states of the knowledge against each other."""
    setups = tuple(SetupChange(i, _figure(i, before), _figure(i, after)) for i in fresh)
    cards: list[CardChange] = []
    others: list[OtherChange] = []
    for one in _one_of_each(fresh, after):
        scenario = scenario_of(one.measurement, after)
        change = _card(scenario, card_engine(one.measurement, after), before, after)
        if change is not None:
            cards.append(change)
            others += [o for o in _others(scenario, before, after) if o.before != o.after]
    return Comparison(setups, tuple(cards), tuple(others))


def _figure(item: Stored, knowledge: Knowledge) -> Figure | None:
    """Estimate what was measured; None for what is not estimated, as prefill of odd lengths."""
    if item.measurement.metric == "prefill_tok_s" and not is_usual_prompt(
        item.measurement, knowledge
    ):
        return None
    try:
        scenario = scenario_of(item.measurement, knowledge)
        return figure_for(item.measurement.metric, scenario, knowledge)
    except UserError:
        return None


def _one_of_each(fresh: Sequence[Stored], knowledge: Knowledge) -> Iterator[Stored]:
    """Give one figure of every card, engine and kind of model, decode before prefill."""
    seen = set()
    for item in sorted(fresh, key=lambda i: i.measurement.metric):
        try:
            moe = bool(scenario_of(item.measurement, knowledge).model.shape.moe)
        except UserError:
            continue
        key = (card_engine(item.measurement, knowledge), moe)
        if key not in seen:
            seen.add(key)
            yield item


def _card(
    scenario: Scenario, card: CardEngine, before: Knowledge, after: Knowledge
) -> CardChange | None:
    old, new = (rate_of(scenario, speeds_of(k)) for k in (before, after))
    if old is None or new is None or old == new:
        return None
    return CardChange(
        card,
        bool(scenario.model.shape.moe),
        (old.scale, new.scale),
        (old.evidence, new.evidence),
        (_spread(old, before), _spread(new, after)),
        (old.prefill.tflops if old.prefill else None, new.prefill.tflops if new.prefill else None),
    )


def _spread(rate: Rate, knowledge: Knowledge) -> float:
    """Give how far the true figure may lie off, as the wider factor of all that applies."""
    speeds = speeds_of(knowledge)
    assert speeds
    ends = [speeds.tables.ranges[name] for name in rate.ranges]
    return max(max(1 / low, high) for low, high in ends)


def _others(scenario: Scenario, before: Knowledge, after: Knowledge) -> Iterator[OtherChange]:
    """Estimate a smaller, an equal and a larger model of the same kind on the same card."""
    taken = {scenario.model.name}
    for size in _OTHER_SIZES:
        wanted = scenario.model.parameters * size
        near = sorted(
            (r for r in after.models.values() if r.parameters and r.name not in taken),
            key=lambda r: (abs(math.log((r.parameters or 1) / wanted)), r.name),
        )
        found = (_other(record.name, scenario, before, after) for record in near[:_TRIED])
        change = next((one for one in found if one), None)
        if change is not None:
            taken.add(change.scenario.model.name)
            yield change


def _other(
    name: str, scenario: Scenario, before: Knowledge, after: Knowledge
) -> OtherChange | None:
    try:
        other = _same_with(name, scenario, after)
        old, new = (figure_for("decode_tok_s", other, k) for k in (before, after))
    except UserError:
        return None
    alike = bool(other.model.shape.moe) == bool(scenario.model.shape.moe)
    if not alike or old is None or new is None or new.evidence == "measured":
        return None
    return OtherChange(other, old, new)


def _same_with(name: str, scenario: Scenario, knowledge: Knowledge) -> Scenario:
    """Give the setup with another model, one stream, nothing cached."""
    assert scenario.gpu
    request = Request(
        gpu=scenario.gpu.name,
        model=name,
        precision=scenario.precision.name,
        framework=scenario.framework.name,
        backend=scenario.backend,
    )
    found = resolve(request, knowledge)
    return replace(found, gpu=scenario.gpu)
