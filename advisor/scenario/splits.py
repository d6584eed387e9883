"""How several cards share a model: which ways a framework has, and which one a scenario takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from advisor.errors import RequestError
from advisor.knowledge.catalogue import BACKENDS

if TYPE_CHECKING:
    from advisor.knowledge.types import Format, Framework, Split
    from advisor.models.shape import Shape
    from advisor.models.stored_tensors import Model
    from advisor.scenario.scenario import Scenario

_ROW_BACKENDS = [backend.name for backend in BACKENDS.values() if backend.holds_rows]


def split_of(scenario: Scenario) -> Split | None:
    """Say how the cards share the model; None with one card, and where the framework has no way.

    The stated way where it can be, else the first of the framework's ways that can: servers that
    split every tensor fall back to whole layers where the cards do not divide the heads.
    """
    if scenario.gpus == 1:
        return None
    ways = split_ways(scenario)
    if scenario.split in ways:
        return scenario.split
    usual = scenario.framework.multi_gpu
    return ways[0] if ways else usual[0] if usual else None


def split_ways(scenario: Scenario) -> Sequence[Split]:
    """List the ways in which the cards of a scenario can share its model, preferred first."""
    framework, model, cards = scenario.framework, scenario.model, scenario.gpus
    backend = scenario.backend
    return [
        way
        for way in ways_for(framework, scenario.precision)
        if divides(way, framework, model, cards)
        and (way != "row" or backend is None or backend in _ROW_BACKENDS)
    ]


def ways_for(framework: Framework, precision: Format) -> Sequence[Split]:
    """List the ways in which a framework shares a model in this format, preferred first."""
    limit = framework.format_limits.get(precision.family)
    return () if limit and limit.one_card else framework.multi_gpu


def can_split(scenario: Scenario) -> bool:
    """Whether the cards of a scenario can share its model in some way, where that is known."""
    several = scenario.gpus > 1 and bool(scenario.framework.multi_gpu)
    return not several or bool(split_ways(scenario))


def impossible_split(scenario: Scenario) -> Iterator[RequestError]:
    """Say why the cards cannot share the model as stated, or in no way at all, and what can be."""
    framework, stated = scenario.framework, scenario.split
    if scenario.gpus == 1 or not (stated or framework.multi_gpu):
        return
    ways = split_ways(scenario)
    if ways and (stated is None or stated in ways):
        return
    hints = [f"It can by {' or '.join(ways)}: --split {ways[0]}."] if ways else []
    way = stated or framework.multi_gpu[0]
    if way != "row" and way in ways_for(framework, scenario.precision):
        hints += _counts_for(way, scenario)
    elif framework.multi_gpu and not ways_for(framework, scenario.precision):
        hints.append("Ask for one card, or for another format or framework.")
    yield RequestError(f"{framework.name} {_why_not_split(scenario)}", hint=" ".join(hints))


def _why_not_split(scenario: Scenario) -> str:
    framework, cards = scenario.framework, scenario.gpus
    stated = scenario.split or framework.multi_gpu[0]
    if framework.multi_gpu and not ways_for(framework, scenario.precision):
        return f"runs {scenario.precision.name} on one card alone"
    if reason := framework.not_sized.get(stated):
        return f"cannot be sized with a split by {stated}: {reason}"
    if stated not in framework.multi_gpu:
        return f"does not split a model by {stated}"
    if stated == "row":
        return f"splits rows with {', '.join(sorted(_ROW_BACKENDS))}, not with {scenario.backend}"
    shape = scenario.model.shape
    if stated == "tensor":
        kind = f"{shape.kv_heads} KV" if shape.heads % cards == 0 else f"{shape.heads} attention"
        return f"cannot divide the {kind} heads of {scenario.model.name} by {cards} cards"
    return f"cannot give {cards} cards a layer each of {scenario.model.name}: it has {shape.layers}"


def _counts_for(way: Split, scenario: Scenario) -> list[str]:
    """Offer the nearest numbers of cards that can share the model in this way."""
    framework, model, cards = scenario.framework, scenario.model, scenario.gpus
    fewer = [n for n in range(cards - 1, 1, -1) if divides(way, framework, model, n)][:1]
    more = [n for n in range(cards + 1, 2 * cards + 1) if divides(way, framework, model, n)][:1]
    numbers = " or ".join(str(n) for n in fewer + more)
    return [f"{numbers} cards can."] if numbers else []


def is_pipeline(scenario: Scenario) -> bool:
    """Whether the cards are the ranks of a server's pipeline, each with whole layers."""
    return scenario.gpus > 1 and scenario.framework.pipeline and split_of(scenario) == "layer"


def is_usual_split(scenario: Scenario) -> bool:
    """Whether the cards share the model as the framework prefers, which measurements mean."""
    return scenario.gpus == 1 or split_of(scenario) in {None, *scenario.framework.multi_gpu[:1]}


def divides(way: Split, framework: Framework, model: Model, cards: int) -> bool:
    """Whether a framework can divide a model among this many cards in this way.

    A split of every tensor needs a number that divides the attention heads and the KV heads; where
    there are more cards than KV heads, a multiple of those, each of which is then copied. A
    pipeline needs a layer for each of its ranks.
    """
    shape = model.shape
    if way == "tensor" and framework.tensor_heads != "uneven":
        copies = framework.tensor_heads == "copied"
        return shape.heads % cards == 0 and _divides_kv_heads(shape, cards, copies=copies)
    return way != "layer" or not framework.pipeline or cards <= shape.layers


def _divides_kv_heads(shape: Shape, cards: int, *, copies: bool) -> bool:
    """Whether every card gets as many KV heads; a single one, like a latent, lies on all cards."""
    if shape.mla:
        return True
    counts = set(shape.kv_heads_by_layer or (shape.kv_heads,)) - {0, 1}
    return all(n % cards == 0 or (copies and cards % n == 0) for n in counts)
