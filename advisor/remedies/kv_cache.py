"""What the KV cache holds: fewer or more tokens and sequences, or elements of a smaller type."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from advisor.estimator import free_bytes
from advisor.estimator.limits import (
    largest_batch,
    largest_fitting_context,
    largest_gpu_layers,
    largest_that_fits,
    smallest_cpu_experts,
    spare_bytes,
)
from advisor.estimator.placement import cards_of
from advisor.knowledge.types import Knowledge
from advisor.remedies.assessment import singly
from advisor.remedies.format_lists import in_placing
from advisor.remedies.option import Base, Effort, Option, Remedy, make_option, may_help
from advisor.remedies.search import Bounds, Degree, cache_change, smaller_kinds
from advisor.runtimes import runtime_of
from advisor.runtimes.commands import can_tell
from advisor.scenario import Scenario, offloads, support
from advisor.scenario.figures import Limits, held_percent, margin_of
from advisor.scenario.images import least_context


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
    if not (_worth_a_look(base) and base.scenario.model.shape.moe):
        return
    start = where_experts_move(base) if base.scenario.framework.places_layers else None
    if start is None or not moves_experts(start):
        return
    stated = replace(start, cpu_experts=0)
    for whole in (replace(stated, gpu_layers=None), stated):
        experts = fewest_experts_out(whole, base.knowledge)
        other = replace(whole, cpu_experts=experts or 0)
        if experts is not None and other != base.scenario:
            change: dict[str, object] = {"cpu_experts": experts}
            moved = other.framework is not base.scenario.framework
            if moved:
                change["framework"] = other.framework.name
            effort: Effort = "rebuild" if moved else "setting"
            yield make_option(base, EXPERTS, change, other, effort=effort)
            return


def moved_to_ram(base: Base) -> Iterator[Option]:
    """What of a request that does not fit may lie in system RAM: idle experts, else layers."""
    yield from _experts(base)
    yield from _layers(base)


def where_experts_move(base: Base) -> Scenario | None:
    """The request in a program that can move experts: its own or llama.cpp; None: in neither.

    Ollama runs llama.cpp and has no setting for experts. A server that was asked for stays, if it
    has not left the card behind.
    """
    own = base.scenario.framework
    if own.expert_offload and own.places_layers:
        return base.scenario
    if own.places_layers:
        return in_placing(base, base.scenario.precision)
    stays = base.request.framework and not support.never_there(own, base.scenario.gpu)
    return None if stays else in_placing(base)


def where_a_part_moves(base: Base) -> Scenario | None:
    """The like for another model, with layers where experts cannot move alone.

    A stated server does not keep it from RAM that was stated: for one chat, not on a card for rent.
    """
    own, oldest = base.scenario, base.knowledge.policy["upgrade_oldest_year"]
    if own.framework.places_layers:
        return own
    rented = (
        own.gpu and own.gpu.segment == "datacenter" and (own.gpu.released or "") >= f"{oldest:.0f}"
    )
    leaves = own.batch == 1 and own.ram_bytes is not None and not rented
    return where_experts_move(base) or (in_placing(base) if leaves else None)


def part_out(scenario: Scenario, knowledge: Knowledge) -> dict[str, int]:
    """What of a mixture has to lie in RAM, so that the cards hold the rest: experts, else layers.

    Empty where nothing has to, or that is not enough.
    """
    if moves_experts(scenario):
        experts = fewest_experts_out(scenario, knowledge)
        return {"cpu_experts": experts} if experts else {}
    if not (scenario.model.shape.moe and _can_offload(scenario)):
        return {}
    layers = largest_gpu_layers(scenario, knowledge, roomy=True) or 0
    return {"gpu_layers": layers} if 0 < layers <= scenario.model.shape.layers else {}


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


def is_quick(base: Base, option: Option) -> bool:
    """Whether it leaves a chat nothing to wait for: whole on the cards, or quick beside RAM."""
    if base.scenario.use != "interactive" or not offloads(option.scenario):
        return True
    speed = option.speed
    return speed is not None and speed.decode_tok_s.estimate >= base.knowledge.policy["quick_tok_s"]


def is_clearly_faster(base: Base, found: Option, others: Sequence[Option]) -> bool:
    """Whether it is worth more than one change, where single ones run slowly beside RAM."""
    speeds = [option.speed.decode_tok_s.estimate for option in others if option.speed]
    least = base.knowledge.policy["clearly_faster_percent"] / 100 * max(speeds, default=0.0)
    return found.speed is None or found.speed.decode_tok_s.estimate >= least


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


def propose(base: Base, *_: object) -> Iterator[Option]:
    """Smaller types, one per number of bits, where there is a cache."""
    scenario = base.scenario
    if not (base.memory.kv_cache_bytes or base.memory.host_kv_cache_bytes):
        return
    for kind in smaller_kinds(base, scenario):
        other = replace(scenario, kv_cache_k=kind, kv_cache_v=kind)
        if may_help(base, other):
            yield make_option(base, REMEDY, cache_change(base, kind), other)


REMEDY = Remedy("quantize-kv", frozenset({"kv_cache"}), "setting", propose, told_by="kv_cache")


_STEP_TOKENS, _ALL = 256, 100


def _shortened(base: Base, *_: object) -> Iterator[Option]:
    """The longest context that fits, on one of unequal cards if more; with room, if it is tight."""
    if base.card_fits and not _wants_room(base):
        return
    own, tight = base.scenario, base.card_fits
    ways = [own, *(() if tight or own.split else singly(own))]
    found = [(_shorter(way, base.knowledge, tight=tight) or 0, way) for way in ways]
    context, way = max(found, key=lambda pair: pair[0])
    other = replace(way, context_tokens=context)
    if context and context >= least_context(way) and can_tell(other, "context"):
        yield make_option(base, SHORTER, {"context": context}, other)


def _wants_room(base: Base) -> bool:
    """Whether it fits so tightly that a shorter context is worth a look."""
    tight = margin_of(base.memory, base.knowledge.policy) in {"thin", "narrow"}
    return tight and base.memory.kv_cache_bytes > 0


def _shorter(scenario: Scenario, knowledge: Knowledge, *, tight: bool = False) -> int | None:
    """The longest that leaves a margin, else that fits, in steps of 256 tokens; None: no shorter.

    ``tight`` says that it fits tightly, and so much should stay free that it no longer does.
    """
    least = _loose_bytes(scenario, knowledge) if tight else spare_bytes(scenario, knowledge)

    def free(tokens: int) -> int:
        shorter = replace(scenario, context_tokens=tokens)
        return (free_bytes(shorter, knowledge, once=True) or 0) - least

    trained = scenario.model.trained_context_tokens
    most = min(scenario.context_tokens - 1, trained or scenario.context_tokens)
    largest = largest_that_fits(free, most) if most > 0 else None
    if largest is None or largest < knowledge.policy["least_context_tokens"]:
        largest = largest_fitting_context(scenario, knowledge)
    if largest is None or largest >= scenario.context_tokens:
        return None
    return largest // _STEP_TOKENS * _STEP_TOKENS or largest


def _loose_bytes(scenario: Scenario, knowledge: Knowledge) -> int:
    """What a card has to leave free so that it is not tight, bytes."""
    most_usable = max(card.usable or 0 for card in cards_of(scenario, knowledge))
    return round(knowledge.policy["tight_below_percent"] / 100 * most_usable)


def _longer(base: Base, limits: Limits, _: object) -> Iterator[Option]:
    """The longest context up to the usual one that leaves room, where none was stated.

    Halved from the usual one down. Where it takes more than the card has, the experts of a few
    layers make way.
    """
    scenario = base.scenario
    if base.request.context is not None or not base.fits:
        return
    if scenario.model.modality not in {"text", "vision"}:
        return
    tokens = int(base.knowledge.policy["usual_context_tokens"])
    tokens = min(tokens, scenario.model.trained_context_tokens or tokens)
    enough = base.knowledge.policy["narrow_context_tokens"]
    while tokens >= 2 * scenario.context_tokens:
        for longer in _with_context(base, tokens, limits.max_context_tokens or 0):
            change: dict[str, object] = {"context": tokens}
            if longer.cpu_experts != scenario.cpu_experts:
                change["cpu_experts"] = longer.cpu_experts
            option = make_option(base, LONGER, change, longer)
            room = option.margin == "ample" or (option.margin == "narrow" and tokens <= enough)
            room = room and held_percent(option.memory, scenario.batch) >= _ALL
            if option.fits and (room or "cpu_experts" in change):
                yield option
                return
        tokens //= 2


def _with_context(base: Base, tokens: int, most: int) -> Iterator[Scenario]:
    """Whole on the card where it holds that, then with some experts in system RAM, for room."""
    longer = replace(base.scenario, context_tokens=tokens)
    if not can_tell(longer, "context"):
        return
    if tokens <= most:
        yield longer
    if moves_experts(longer):
        whole = replace(longer, cpu_experts=0)
        out = smallest_cpu_experts(whole, base.knowledge, roomy=True)
        if out is not None:
            yield replace(whole, cpu_experts=out)


def _exact_context(scenario: Scenario, limits: Bounds, knowledge: Knowledge) -> int | None:
    context = _shorter(scenario, knowledge)
    return context if context is not None and context >= limits.context(scenario) else None


SHORTER = Remedy("shrink-context", frozenset({"context"}), "setting", _shortened)
LONGER = Remedy("grow-context", frozenset({"context"}), "setting", _longer)
CONTEXT = Degree(
    "context",
    applies=lambda scenario, limits: (
        limits.context(scenario) < scenario.context_tokens and can_tell(scenario, "context")
    ),
    extreme=lambda scenario, limits: limits.context(scenario),
    exact=_exact_context,
    put=lambda _, scenario, tokens: replace(scenario, context_tokens=tokens),
)


_BATCHES = (2, 4, 8, 16, 32, 64, 128, 256)


def _fewer(base: Base, limits: Limits, _: object) -> Iterator[Option]:
    """The largest batch that fits, where the request's does not."""
    most = limits.max_batch
    if most is not None and most < base.scenario.batch and not _waits(base.scenario):
        most = largest_batch(base.scenario, base.knowledge, most, roomy=True) or most
        yield make_option(base, SMALLER, {"batch": most}, _with(base, base.scenario, most))


def _more(base: Base, limits: Limits, _: object) -> Iterator[Option]:
    """Larger batches, where the request fits."""
    scenario, most = base.scenario, limits.max_batch
    if most is None or not base.fits or support.in_turn(scenario):
        return
    if scenario.model.modality not in {"text", "vision"}:
        return
    for batch in _BATCHES:
        if scenario.batch < batch <= most and can_tell(replace(scenario, batch=batch), "batch"):
            yield make_option(base, LARGER, {"batch": batch}, _with(base, scenario, batch))


def _waits(scenario: Scenario) -> bool:
    """Whether the batch is a ceiling, beyond which sequences wait."""
    return runtime_of(scenario.framework).claims_memory


def _with(base: Base, scenario: Scenario, batch: int) -> Scenario:
    rows = base.request.logits_rows or batch
    return replace(scenario, batch=batch, logits_rows=rows, slots=batch)


def _exact_batch(scenario: Scenario, limits: Bounds, knowledge: Knowledge) -> int | None:
    """The most that leaves room; where the bounds ask for none and none leaves it, that fits."""
    for roomy in (True,) if limits.roomy else (True, False):
        batch = largest_batch(scenario, knowledge, scenario.batch, roomy=roomy)
        if batch is not None and limits.batch(scenario) <= batch < scenario.batch:
            return batch
    return None


SMALLER = Remedy("shrink-batch", frozenset({"batch"}), "setting", _fewer)
LARGER = Remedy("grow-batch", frozenset({"batch"}), "setting", _more)
BATCH = Degree(
    "batch",
    applies=lambda scenario, limits: (
        limits.batch(scenario) < scenario.batch and not _waits(scenario)
    ),
    extreme=lambda scenario, limits: limits.batch(scenario),
    exact=_exact_batch,
    put=_with,
)
