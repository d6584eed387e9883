"""A part of the model in system RAM: layers, or experts."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from advisor.estimator.limits import largest_gpu_layers, smallest_cpu_experts
from advisor.knowledge.types import Knowledge
from advisor.remedies.option import Base, Option, Remedy, make_option
from advisor.remedies.search import Bounds, Degree
from advisor.scenario.scenario import Scenario, offloads


def _layers(base: Base, *_: object) -> Iterator[Option]:
    """As many layers on the card as fit; the rest in system RAM."""
    if not _worth_a_look(base) or (base.card_fits and base.scenario.gpu_layers is None):
        return
    whole = replace(base.scenario, gpu_layers=None)
    layers = largest_gpu_layers(whole, base.knowledge)
    everything = layers is not None and layers > whole.model.shape.layers
    if layers and not everything:
        layers = largest_gpu_layers(whole, base.knowledge, roomy=True) or layers
    if layers is None or layers == base.scenario.gpu_layers:
        return
    if everything and base.scenario.gpu_layers is None:
        return
    other = whole if everything else replace(whole, gpu_layers=layers)
    change = {"gpu_layers": "all" if everything else layers}
    yield make_option(base, LAYERS, change, other)


def _experts(base: Base, *_: object) -> Iterator[Option]:
    """Experts in RAM cost less speed than layers, so a stated number of layers goes first."""
    if not (_worth_a_look(base) and moves_experts(base.scenario)):
        return
    stated = replace(base.scenario, cpu_experts=0)
    for whole in (replace(stated, gpu_layers=None), stated):
        experts = fewest_experts_out(whole, base.knowledge)
        other = replace(whole, cpu_experts=experts or 0)
        if experts is not None and other != base.scenario:
            yield make_option(base, EXPERTS, {"cpu_experts": experts}, other)
            return


def fewest_experts_out(scenario: Scenario, knowledge: Knowledge) -> int | None:
    """The fewest layers whose experts have to lie in RAM, with room on the card where it can be."""
    least = smallest_cpu_experts(scenario, knowledge)
    roomy = smallest_cpu_experts(scenario, knowledge, roomy=True) if least else None
    return least if roomy is None else roomy


def _worth_a_look(base: Base) -> bool:
    """Whether it does not fit, or was split as it was stated; and there is RAM of another kind."""
    return (not base.card_fits or offloads(base.scenario)) and _can_offload(base.scenario)


def _can_offload(scenario: Scenario, *_: object) -> bool:
    gpu = scenario.gpu
    return scenario.framework.places_layers and gpu is not None and not gpu.unified_memory


def moves_experts(scenario: Scenario, *_: object) -> bool:
    """Whether experts of this model can lie in system RAM beside this card."""
    moves = bool(scenario.framework.expert_offload and scenario.model.shape.moe)
    return moves and _can_offload(scenario)


def _most_layers(scenario: Scenario, limits: Bounds, knowledge: Knowledge) -> int | None:
    whole = replace(scenario, gpu_layers=None)
    layers = largest_gpu_layers(whole, knowledge, roomy=limits.roomy)
    if layers is None or not limits.layers(scenario) <= layers <= scenario.model.shape.layers:
        return None
    return layers


def _fewest_experts(scenario: Scenario, limits: Bounds, knowledge: Knowledge) -> int | None:
    whole = replace(scenario, cpu_experts=0)
    return smallest_cpu_experts(whole, knowledge, roomy=limits.roomy) or None


LAYERS = Remedy("offload-layers", frozenset({"gpu_layers"}), "setting", _layers)
EXPERTS = Remedy("offload-experts", frozenset({"cpu_experts"}), "setting", _experts)
LAYERS_DEGREE = Degree(
    "gpu_layers",
    applies=_can_offload,
    extreme=lambda scenario, limits: min(limits.layers(scenario), scenario.model.shape.layers),
    exact=_most_layers,
    put=lambda _, scenario, layers: replace(scenario, gpu_layers=layers),
    offloads=True,
)
EXPERTS_DEGREE = Degree(
    "cpu_experts",
    applies=moves_experts,
    extreme=lambda scenario, _: scenario.model.shape.layers,
    exact=_fewest_experts,
    put=lambda _, scenario, layers: replace(scenario, cpu_experts=layers),
    offloads=True,
)
