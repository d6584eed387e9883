"""What-ifs that trade context, batch or speed for room."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from advisor.commands import can_tell
from advisor.estimate.limits import largest_gpu_layers, smallest_cpu_experts
from advisor.estimate.margin import headroom_percent
from advisor.estimate.result import Limits
from advisor.remedies.baseline import Base, make_option
from advisor.remedies.degrees import shorter_context
from advisor.remedies.option import Action, Option
from advisor.scenario.scenario import offloads

_BATCHES = (2, 4, 8, 16, 32, 64, 128, 256)


def context_options(base: Base) -> Iterator[Option]:
    """The longest context that fits, where the request's does not; with room, where it is tight."""
    if base.card_fits and not _wants_room(base):
        return
    margin = "tight_below_percent" if base.card_fits else "thin_below_percent"
    context = shorter_context(base.scenario, base.knowledge, margin)
    if context is None or context <= base.scenario.depth_tokens:
        return
    other = replace(base.scenario, context_tokens=context)
    if can_tell(other, "context"):
        yield make_option(base, "shrink-context", {"context": context}, other, "setting")


def _wants_room(base: Base) -> bool:
    """Whether it fits so tightly that a shorter context is worth a look."""
    share, least = headroom_percent(base.memory), base.knowledge.policy["tight_below_percent"]
    return share is not None and share < least and base.memory.kv_cache_bytes > 0


def flash_attention_options(base: Base) -> Iterator[Option]:
    """Flash attention on, where it was turned off and needs less memory on."""
    scenario = base.scenario
    if scenario.flash_attention or scenario.framework.flash_attention is False:
        return
    other = replace(scenario, flash_attention=True)
    change = {"flash_attention": True}
    option = make_option(base, "change-framework", change, other, "setting")
    if option.memory.required_bytes < base.memory.required_bytes:
        yield option


def batch_options(base: Base, limits: Limits) -> Iterator[Option]:
    """A smaller batch where the request does not fit, larger ones where it does."""
    scenario = base.scenario
    most = limits.max_batch
    if most is None:
        return
    if most < scenario.batch:
        yield _batch_option(base, "shrink-batch", most)
    if base.card_fits and scenario.model.modality in {"text", "vision"}:
        for batch in _BATCHES:
            if scenario.batch < batch <= most and can_tell(replace(scenario, batch=batch), "batch"):
                yield _batch_option(base, "grow-batch", batch)


def _batch_option(base: Base, action: Action, batch: int) -> Option:
    rows = base.request.logits_rows or batch
    other = replace(base.scenario, batch=batch, logits_rows=rows)
    return make_option(base, action, {"batch": batch}, other, "setting")


def offload_options(base: Base) -> Iterator[Option]:
    """As many layers, or as many experts, on the card as fit; the rest in system RAM."""
    scenario = base.scenario
    stated = offloads(scenario)
    if (base.card_fits and not stated) or scenario.gpu is None or scenario.gpu.unified_memory:
        return
    if not scenario.framework.places_layers:
        return
    if not base.card_fits or scenario.gpu_layers is not None:
        yield from _layer_options(base)
    if scenario.framework.expert_offload and scenario.model.shape.moe:
        yield from _expert_options(base)


def _layer_options(base: Base) -> Iterator[Option]:
    whole = replace(base.scenario, gpu_layers=None)
    layers = largest_gpu_layers(whole, base.knowledge)
    if layers is None or layers == base.scenario.gpu_layers:
        return
    everything = layers > whole.model.shape.layers
    if everything and base.scenario.gpu_layers is None:
        return
    other = whole if everything else replace(whole, gpu_layers=layers)
    change = {"gpu_layers": "all" if everything else layers}
    yield make_option(base, "offload-layers", change, other, "setting")


def _expert_options(base: Base) -> Iterator[Option]:
    """Experts in RAM cost less speed than layers, so a stated number of layers goes first."""
    stated = replace(base.scenario, cpu_experts=0)
    for whole in (replace(stated, gpu_layers=None), stated):
        experts = smallest_cpu_experts(whole, base.knowledge)
        other = replace(whole, cpu_experts=experts or 0)
        if experts is not None and other != base.scenario:
            yield make_option(base, "offload-experts", {"cpu_experts": experts}, other, "setting")
            return
