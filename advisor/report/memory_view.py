"""Memory and its limits as placeholders: every number already text, empty where unknown."""

from __future__ import annotations

from math import floor
from typing import TYPE_CHECKING

from advisor.estimate.limits import LONGEST_TOKENS
from advisor.remedies.quantize import REMEDY as QUANTIZE
from advisor.report import clauses
from advisor.report import figures as f
from advisor.report.figures import Strings, flag
from advisor.report.words import say
from advisor.runtimes import runtime_named
from advisor.units import MIB

if TYPE_CHECKING:
    from advisor.advice.document import Advice, Alternative, MemoryDoc, Recommendation
    from advisor.runtimes.base import Runtime
    from advisor.scenario.figures import CardMemory

_PARTS = {
    "weights_bytes": "part.weights",
    "kv_cache_bytes": "part.kv",
    "compute_buffer_bytes": "part.compute",
    "overhead_bytes": "part.overhead",
}
_MOST = 2 / 3
"""Weights that take this share of what is needed decide."""
_FULL_BITS = 15.5
"""Average bits per weight from here on are those of an unquantised model."""


def memory_view(doc: Advice) -> Strings:
    """Write out what is needed, what is there, how far it reaches and where it tips over."""
    return {**_memory(doc), **_limits(doc), **_edges(doc)}


def _memory(doc: Advice) -> Strings:
    memory = doc.memory
    low, high = f.amount(memory.low_bytes), f.amount(memory.high_bytes)
    runs = doc.verdict.state in {"fits", "tight"}
    return {
        "memory.capacity": f.size(memory.capacity_bytes),
        "memory.usable": f.amount(memory.usable_bytes),
        "memory.reserve": _reserve(memory.capacity_bytes, memory.usable_bytes),
        "memory.share_left": _reserve(memory.capacity_bytes, memory.usable_bytes)
        if share_binds(doc)
        else "",
        "memory.required": f.amount(memory.required_bytes),
        "memory.required_gb": f.decimal_gb(memory.required_bytes),
        "memory.high": high,
        "memory.high_mib": f"{-(-memory.high_bytes // MIB)}",
        "memory.range": say("speed.range", low=low.removesuffix(" GiB"), high=high)
        if low != high
        else "",
        "memory.deficit": "" if runs else deficit(doc),
        "fit.gap": "" if runs else str(doc.facts.get("fit.gap", "")),
        "headroom.class": str(doc.facts.get("headroom.class", "")) if runs else "",
        "memory.headroom": headroom(doc) if runs else "",
        "memory.headroom_share": _headroom_share(doc) if runs else "",
        "memory.weights": f.amount(memory.weights_bytes),
        "memory.kv_cache": f.amount(memory.kv_cache_bytes) if _keeps_cache(doc) else "",
        "memory.compute_buffer": f.amount(memory.compute_buffer_bytes),
        "memory.overhead": f.amount(memory.overhead_bytes),
        "memory.host": f.amount(_host_bytes(memory)) if split_of(doc) else "",
        "memory.largest": _largest(doc),
        "memory.weights_most": flag(memory.weights_bytes >= _MOST * memory.required_bytes > 0),
        "options.smaller_format": flag(_smaller_format(doc)),
        **_worst_case(doc),
        **_cache_room(doc),
        "memory.approximate_parts": clauses.estimated_parts(memory.approximate),
    }


def _worst_case(doc: Advice) -> Strings:
    """What the card most at risk may need, where it fits by the estimate and not for certain."""
    memory = doc.memory
    if memory.certainty != "may_exceed":
        return {"memory.at_most": "", "memory.at_most_usable": ""}
    card = max(memory.per_gpu, key=lambda c: c.high_bytes - c.usable_bytes)
    return {
        "memory.at_most": f.amount(card.high_bytes),
        "memory.at_most_usable": f.amount(card.usable_bytes),
    }


def _cache_room(doc: Advice) -> Strings:
    """What a server keeps for its cache, where it runs at all."""
    memory, runs = doc.memory, doc.verdict.state in {"fits", "tight"}
    at_once = memory.cache_sequences if runs else None
    return {
        "memory.cache_room": f.amount(memory.cache_room_bytes) if at_once else "",
        "memory.cache_tokens": f.count(memory.cache_tokens) if at_once else "",
        "memory.cache_sequences": f.count(at_once or None),
        "memory.server_starts": f.count(memory.cache_sequences or None) if not runs else "",
        "memory.cache_serves_several": flag((at_once or 0) > 1),
        "memory.cache_not_all": flag(
            at_once and (memory.cache_tokens or 0) // doc.scenario.context_tokens > at_once
        ),
    }


def _keeps_cache(doc: Advice) -> bool:
    return bool(doc.memory.kv_cache_bytes or doc.memory.host_kv_cache_bytes)


def deficit(doc: Advice) -> str:
    """Say what is missing: on one card the rest of what is needed, else on the fullest."""
    memory = doc.memory
    if not memory.deficit_bytes or doc.scenario.gpus > 1:
        return f.amount(memory.deficit_bytes or None)
    return f.rest(memory.required_bytes, memory.usable_bytes)


def headroom(doc: Advice) -> str:
    """Say what stays free: on one card the rest of what is usable, else on the fullest."""
    memory = doc.memory
    if not memory.headroom_bytes or doc.scenario.gpus > 1:
        return f.amount(memory.headroom_bytes)
    return f.rest(memory.usable_bytes, memory.required_bytes)


def share_binds(doc: Advice) -> bool:
    """Whether the share that a runtime takes of its cards leaves more than the system's reserve.

    It is a share of each card, or (TensorRT-LLM) of what is free beside all but the cache.
    """
    fraction, cards = doc.scenario.framework_memory_fraction, doc.memory.per_gpu
    if fraction is None or not cards:
        return False
    if _runtime(doc).shares_what_is_free:
        return any(c.required_bytes - c.kv_cache_bytes < c.usable_bytes for c in cards)
    return all(c.usable_bytes == int(c.capacity_bytes * fraction) for c in cards)


def _reserve(capacity: int | None, usable: int | None) -> str:
    if capacity is None or usable is None or usable >= capacity:
        return ""
    return f.amount(capacity - usable)


def fullest_card(doc: Advice) -> CardMemory | None:
    """The card with the least room, None when no card is known."""
    cards = doc.memory.per_gpu
    return max(cards, key=lambda c: c.required_bytes - c.usable_bytes, default=None)


def _headroom_share(doc: Advice) -> str:
    card, free = fullest_card(doc), doc.memory.headroom_bytes
    usable = card.usable_bytes if card else doc.memory.usable_bytes
    if not usable or free is None:
        return ""
    return f.percent(floor(1000 * free / usable) / 10)


def _largest(doc: Advice) -> str:
    memory = doc.memory
    sizes = {
        "weights_bytes": memory.weights_bytes,
        "kv_cache_bytes": memory.kv_cache_bytes,
        "compute_buffer_bytes": memory.compute_buffer_bytes,
        "overhead_bytes": memory.overhead_bytes,
    }
    return say(_PARTS[max(sizes, key=lambda key: sizes[key])])


def _host_bytes(memory: MemoryDoc) -> int:
    return memory.host_weights_bytes + memory.host_kv_cache_bytes + memory.host_compute_bytes


def _smaller_format(doc: Advice) -> bool:
    """Whether a recommended change of format alone stores the model in less, in this runtime."""
    memory, runtime = doc.memory, doc.scenario.framework
    now = memory.required_bytes + _host_bytes(memory)
    found = [item for item in doc.recommendations if item.action == QUANTIZE.action]
    ways: list[Recommendation | Alternative] = [*found]
    ways += [other for item in found for other in item.alternatives]
    return any(
        way.setup.framework == runtime and way.after.required_bytes + way.after.host_bytes < now
        for way in ways
    )


def _limits(doc: Advice) -> Strings:
    memory, asked = doc.memory, doc.scenario
    context, batch = memory.max_context_tokens, memory.max_batch
    if _beyond_training(doc) and doc.verdict.state in {"fits", "tight"}:
        context = None
    if context == LONGEST_TOKENS and asked.model.trained_context_tokens is None:
        context = None
    searched_all = batch is not None and batch >= _runtime(doc).most_sequences
    return {
        "memory.max_context": f.count(context),
        "memory.max_batch": say("at-least", n=f.count(batch)) if searched_all else f.count(batch),
        "memory.context_can_grow": flag(context and context > asked.context_tokens),
        "memory.batch_can_grow": flag(batch and batch > asked.batch),
    }


def _edges(doc: Advice) -> Strings:
    """Write the break-even points out, where they say something beyond the request itself."""
    edges, asked = doc.break_even, doc.scenario
    context, gpus, batch = (
        edges.max_context_tokens,
        edges.fewest_gpus,
        edges.too_large_batch,
    )
    trained = asked.model.trained_context_tokens
    shorter = context is not None and context < asked.context_tokens and context != trained
    fewer = gpus is not None and gpus != asked.gpus
    held = batch - 1 if batch and batch <= asked.batch else 0
    return {
        "break_even.missing": f.amount(edges.missing_bytes or None),
        "break_even.context": f.count(context) if shorter else "",
        "break_even.fewer": f.count(held or None),
        "break_even.batch": f.count(batch) if batch and batch > asked.batch else "",
        "break_even.format": edges.largest_format or "",
        "break_even.format_asked": flag(edges.largest_format == asked.precision),
        "break_even.format_full": flag((edges.largest_format_bits or 0) >= _FULL_BITS),
        "break_even.gpus": f.count(gpus) if fewer else "",
        "break_even.card_memory": f.size(edges.smallest_capacity_bytes),
        "break_even.card_asked": flag(_is_own_card(doc)),
    }


def _beyond_training(doc: Advice) -> bool:
    """Whether more is asked for than was trained, so that memory is not what limits it."""
    trained = doc.scenario.model.trained_context_tokens
    return trained is not None and doc.scenario.context_tokens > trained


def _is_own_card(doc: Advice) -> bool:
    """Whether no smaller card would hold the request."""
    gpu, smallest = doc.scenario.gpu, doc.break_even.smallest_capacity_bytes
    own = gpu.vram_bytes if gpu else None
    return smallest is not None and own is not None and smallest >= own


def split_of(doc: Advice) -> str:
    """Say in a clause how the request itself divides the model, empty where it does not."""
    asked = doc.scenario
    parts = []
    if asked.gpu_layers is not None:
        layers = layers_of(asked.gpu_layers, asked.model.layers)
        where = "change.layers.some" if asked.gpus > 1 else "change.layers"
        parts.append(say(where, layers=layers))
    if asked.cpu_experts:
        parts.append(say("change.experts", n=asked.cpu_experts))
    return f.listed(parts)


def layers_of(on_card: int, layers: int) -> str:
    """Write ``30 of 41``: the output matrix counts as one layer."""
    return say("layers.of", n=on_card, all=layers + 1)


def places_layers(doc: Advice) -> bool:
    """Whether the estimate divides the model between card and system RAM for this runtime."""
    return bool(doc.scenario.framework_offloads) and _runtime(doc).sizes_layers_in_ram


def _runtime(doc: Advice) -> Runtime:
    return runtime_named(doc.scenario.framework_memory_model)
