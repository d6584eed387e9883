"""What is known of a scenario whatever was asked: its estimate, its loss and its facts, kept.

Requests about one card and model try the same changes again and again, in other formats and other
contexts, and all cards are held against the same larger ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import log
from operator import attrgetter
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from advisor.estimator import estimate_memory
from advisor.estimator.placement import host_fits
from advisor.estimator.speed import estimate_speed
from advisor.knowledge.catalogue import ModelRow
from advisor.knowledge.merit import FOR_IMAGES, merit_of, purposes
from advisor.knowledge.types import Gpu, Knowledge
from advisor.knowledge.vocabulary import FactValue
from advisor.memo import Kept
from advisor.models.stored_tensors import Model
from advisor.scenario import (
    Key,
    Scenario,
    is_pipeline,
    offloads,
    split_of,
    split_ways,
    stretches,
    support,
    tensor_ranks,
    whole_key,
)
from advisor.scenario.figures import (
    Figure,
    Margin,
    Memory,
    Speed,
    certainty_of,
    headroom_percent,
    held_percent,
    holds_surely,
    margin_of,
)
from advisor.units import percent

_FULL_BITS = 16
_NEAR_IN_SIZE = log(3.0)
_USUAL_SIZE: Final = "8B"  # Llama 3, of which quality_loss in formats.yaml is told
_APART: Final = "dp-attention"


class Outlook(Struct, frozen=True):
    """A scenario, estimated."""

    memory: Memory
    speed: Speed | None
    """None where it does not fit, too: nothing is said of such a speed."""
    fits: bool
    """On its cards and in system RAM."""
    margin: Margin | None
    quality_loss_percent: float | None
    facts: Mapping[str, FactValue]
    """The ``option.*`` facts that do not depend on the request."""


_kept: Kept[Key, tuple[Knowledge, Key, Outlook]] = Kept(3_072)
"""Without it a plan takes 1.07 times as long."""


def outlook_of(scenario: Scenario, knowledge: Knowledge) -> Outlook:
    """Estimate a scenario, or give what is kept of the same one.

    Raises:
        KnowledgeError: calibration.yaml is wrong.
        RequestError: A figure of the architecture or of the format is not known.
    """
    key, records = whole_key(scenario)
    found = _kept.get(key)
    if found is None or found[0] is not knowledge:
        found = (knowledge, records, _outlook(scenario, knowledge))
        _kept.put(key, found)
    return found[2]


def known_outlook(scenario: Scenario, knowledge: Knowledge) -> Outlook | None:
    """Give what is kept of a scenario, if it was estimated lately."""
    found = _kept.get(whole_key(scenario)[0])
    return found[2] if found and found[0] is knowledge else None


def _outlook(scenario: Scenario, knowledge: Knowledge) -> Outlook:
    memory = estimate_memory(scenario, knowledge)
    fits = memory.deficit_bytes == 0 and host_fits(scenario, memory)
    speed = estimate_speed(scenario, memory, knowledge) if fits else None
    margin = margin_of(memory, knowledge.policy) if fits else None
    facts: dict[str, FactValue] = {"option.fits": fits}
    put(facts, "option.exam_loss", exam_loss(scenario))
    put(facts, "option.weights_loss", weights_loss(scenario))
    _put_scenario(facts, scenario)
    if scenario.gpu:
        _put_card(facts, scenario, scenario.gpu)
    if margin:
        facts["option.margin"] = margin
        facts["option.may_exceed"] = certainty_of(memory) == "may_exceed"
        facts["option.holds_surely"] = holds_surely(memory, scenario.batch)
    facts["option.context"] = float(scenario.context_tokens)
    if trained := scenario.model.trained_context_tokens:
        facts["option.trained_length"] = scenario.context_tokens >= trained
    facts["option.unserved_context"] = unserved_context(scenario)
    _put_memory(facts, scenario, memory, knowledge.policy)
    _put_speed(facts, speed)
    return Outlook(memory, speed, fits, margin, quality_loss(scenario), facts)


def speed_when_full(
    scenario: Scenario, memory: Memory, empty: Speed | None, knowledge: Knowledge
) -> Speed | None:
    """Give the speed with the whole context in use; None where it is short or a depth is stated.

    A full cache makes nothing faster: no end of its range lies above that of an empty one.
    """
    last = scenario.context_tokens - 1
    short = scenario.context_tokens < knowledge.policy["both_ends_from_tokens"]
    if empty is None or scenario.depth_tokens or short:
        return None
    full = estimate_speed(replace(scenario, depth_tokens=last), memory, knowledge)
    if full is None:
        return None
    total, most = full.aggregate_tok_s, empty.aggregate_tok_s
    return replace(
        full,
        decode_tok_s=_at_most(full.decode_tok_s, empty.decode_tok_s),
        aggregate_tok_s=_at_most(total, most) if total and most else total,
    )


def _at_most(figure: Figure, most: Figure) -> Figure:
    low, high = min(figure.low, most.low), min(figure.high, most.high)
    return replace(figure, estimate=min(figure.estimate, most.estimate), low=low, high=high)


def unserved_context(scenario: Scenario) -> bool:
    """Whether memory is set aside for more than the trained length, past which nothing is served.

    llama-server caps each slot there, and Ollama what it passes on.
    """
    trained = scenario.model.trained_context_tokens
    beyond = trained is not None and scenario.context_tokens > trained
    return beyond and scenario.framework.places_layers and not stretches(scenario)


def put(facts: dict[str, FactValue], name: str, value: float | None) -> None:
    """Add a figure, where it is known, without the noise of its last digits."""
    if value is not None:
        facts[name] = round(value, 4) + 0.0


def _put_memory(
    facts: dict[str, FactValue], after: Scenario, memory: Memory, policy: Mapping[str, float]
) -> None:
    host = memory.host_weights_bytes + memory.host_kv_cache_bytes
    facts["option.required"] = float(memory.required_bytes)
    facts["option.host_ram"] = float(host)
    facts["option.offloads"] = offloads(after)
    put(facts, "option.headroom", memory.headroom_bytes)
    put(facts, "option.headroom_share", headroom_percent(memory))
    put(facts, "option.held_share", held_percent(memory, after.batch))
    put(facts, "option.bits_per_weight", memory.bits_per_weight)
    if after.ram_bytes is not None:
        left = after.ram_bytes - host
        facts["option.host_ram_ok"] = not host or left >= policy["system_ram_bytes"]
        facts["option.ram_scarce"] = offloads(after) and left < policy["roomy_ram_bytes"]


def _put_speed(facts: dict[str, FactValue], speed: Speed | None) -> None:
    facts["option.speed_known"] = speed is not None
    if speed:
        put(facts, "option.decode_speed", speed.decode_tok_s.estimate)
        facts["option.evidence"] = speed.decode_tok_s.evidence
        put(facts, "option.aggregate_speed", speed.total_tok_s)


def _put_scenario(facts: dict[str, FactValue], after: Scenario) -> None:
    facts["option.format"] = after.precision.name
    facts["option.format_family"] = after.precision.family
    put(facts, "option.format_bits", after.precision.bits_per_weight)
    facts["option.as_published"] = support.is_published(after.precision, after.model)
    facts["option.kv_cache"] = after.kv_cache_k.name
    facts["option.kv_bits"] = float(after.kv_cache_k.bits)
    facts["option.batch"] = float(after.batch)
    facts["option.gpus"] = float(after.gpus)
    if way := split_of(after):
        facts["option.split"] = way
    facts["option.unequal_cards"] = bool(after.cards)
    facts["option.framework"] = after.framework.name
    facts["option.serves_batches"] = after.framework.serves_batches is True
    facts["option.flash_attention"] = after.flash_attention
    facts["option.mtp"] = after.mtp > 0
    facts["option.parameters"] = float(after.model.parameters)
    if after.gpu_layers is not None:
        share = percent(after.gpu_layers, after.model.shape.layers + 1)
        put(facts, "option.layers_on_gpu", share)


def _put_card(facts: dict[str, FactValue], after: Scenario, gpu: Gpu) -> None:
    native = support.is_native(after.precision, gpu)
    if native is not None:
        facts["option.native"] = native
    facts["option.gpu"] = gpu.name
    facts["option.gpu_segment"] = gpu.segment
    facts["option.gpu_vendor"] = gpu.vendor
    put(facts, "option.bandwidth", gpu.bandwidth_bytes_s)


def in_stages(scenario: Scenario) -> Iterator[Scenario]:
    """Groups of a server's cards that share tensors, one behind the other, the fewest first."""
    counts = (n for n in range(2, scenario.gpus // 2 + 1) if scenario.gpus % n == 0)
    ways = (replace(scenario, stages=n) for n in counts)
    return (way for way in ways if split_of(way) == "tensor")


def singly(other: Scenario) -> Iterator[Scenario]:
    """Give each of unequal cards by itself, the quickest first."""
    for card in sorted(other.cards, key=lambda gpu: (-(gpu.bandwidth_bytes_s or 0.0), gpu.name)):
        yield on_some(other, 1, card)


def on_some(other: Scenario, count: int, card: Gpu | None = None) -> Scenario:
    """Give it on so many of its equal cards, or of those like one of unequal ones."""
    gpu = card or other.gpu
    assert gpu
    names = [one.name for one in other.cards or (gpu,) * other.gpus]
    for _ in range(count):
        names.remove(gpu.name)
    return replace(other, gpu=gpu, gpus=count, cards=(), idle_cards=tuple(names))


def copies_heads(scenario: Scenario) -> bool:
    """Whether more cards than key/value heads share a tensor, so that some keep copies."""
    shape, ranks = scenario.model.shape, tensor_ranks(scenario)
    shares = split_of(scenario) == "tensor"
    return shares and not shape.mla and 0 < (shape.kv_heads or 0) < ranks


def best_shared(own: Scenario, other: Scenario, knowledge: Knowledge) -> Scenario:
    """Give other weights, cards or programs in stages, where a server's cards would take turns.

    Where other cards would copy heads or a latent cache, the way that holds the most requests.
    """
    stated = own.split or own.stages or other.split or other.stages
    if stated or _weights_where(own) == _weights_where(other):
        return other

    def memory(way: Scenario) -> Memory:
        return outlook_of(way, knowledge).memory

    if is_pipeline(other):
        return next((way for way in in_stages(other) if not memory(way).deficit_bytes), other)
    if (other.gpus, other.gpu) == (own.gpus, own.gpu):
        return other
    ways = [other, *in_stages(other)] if copies_heads(other) else [other, *attending_apart(other)]
    return max(ways, key=lambda way: memory(way).held_sequences or 0)


def attending_apart(scenario: Scenario) -> Iterator[Scenario]:
    """Give it in attention data parallel, where a tensor split copies a latent cache or heads."""
    shares = split_of(scenario) == "tensor" and (scenario.stages or 1) == 1
    copied = shares and (scenario.model.shape.mla is not None or copies_heads(scenario))
    if copied and scenario.batch >= scenario.gpus and _APART in split_ways(scenario):
        yield replace(scenario, split=_APART)


_weights_where = attrgetter("model.name", "precision", "framework", "gpu", "gpus")


def quality_loss(scenario: Scenario) -> float | None:
    """Perplexity increase of weights and KV cache together, %; None when one is unknown."""
    weights = weights_loss(scenario)
    cache = scenario.kv_cache_k
    if weights is None or cache.bits >= _FULL_BITS:
        return weights
    return None if cache.quality_loss_percent is None else weights + cache.quality_loss_percent


def weights_loss(scenario: Scenario) -> float | None:
    """Perplexity increase of the weight format, %: of the nearest size measured, else at all."""
    if support.is_published(scenario.precision, scenario.model):
        return 0.0
    near = of_size(scenario.precision.quality_by_size, scenario.model.parameters)
    return scenario.precision.quality_loss_percent if near is None else near


def loss_measured_on(scenario: Scenario) -> str:
    """Name the size of the model that the loss of the weights was measured on; empty: none was."""
    form = scenario.precision
    near = _nearest(form.quality_by_size, scenario.model.parameters)
    return f"{near[0] / 1e9:g}B" if near else _USUAL_SIZE if form.quality_loss_percent else ""


def quality_known(scenario: Scenario, changed: Iterable[str]) -> str:
    """What is published of losses without a figure, in clauses: of the weights, a changed cache."""
    weights, cache = scenario.precision, scenario.kv_cache_k
    published = support.is_published(weights, scenario.model)
    of_cache = cache.quality_known if "kv_cache" in changed else ""
    said = ("" if published else weights.quality_known, of_cache)
    return "; ".join(filter(None, said))


def exam_loss(scenario: Scenario) -> float | None:
    """Points of MMLU that the weight format costs models of this size, %; None if unmeasured."""
    if support.is_published(scenario.precision, scenario.model):
        return 0.0
    return of_size(scenario.precision.exam_loss, scenario.model.parameters)


def of_size(measured: Sequence[tuple[float, float]], parameters: float) -> float | None:
    """The figure of the model nearest in size, if it is within a factor of three."""
    near = _nearest(measured, parameters)
    return near[1] if near else None


def _nearest(
    measured: Sequence[tuple[float, float]], parameters: float
) -> tuple[float, float] | None:
    if not measured or not parameters:
        return None
    near = min(measured, key=lambda pair: abs(log(pair[0] / parameters)))
    return near if abs(log(near[0] / parameters)) <= _NEAR_IN_SIZE else None


def merit_points(scenario: Scenario, model: Model | ModelRow, knowledge: Knowledge) -> float:
    """Give the points a model is ranked by for what the request's own is for; 0: nobody tells."""
    repository = model.hf_id if isinstance(model, Model) else None
    found = merit_of(knowledge, model.name, repository, _use(scenario.model))
    return found.counted if found else 0.0


def _use(model: Model) -> str:
    """Say what a model is for, as far as its name and kind tell.

    Most models of 2026 read images too; people chat with them.
    """
    if "code" in purposes(model.name):
        return "code"
    if model.modality == "vision" and FOR_IMAGES.search(model.name):
        return "vision"
    return "embedding" if model.modality == "embedding" else "chat"
