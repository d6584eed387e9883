"""What templates say of memory and its limits beyond plain figures; empty where unknown."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from math import floor
from typing import TYPE_CHECKING

from advisor.estimator.limits import LONGEST_TOKENS
from advisor.remedies.formats import REMEDY as QUANTIZE
from advisor.report import figures as f
from advisor.report import views
from advisor.report.figures import flag, say
from advisor.runtimes import runtime_named
from advisor.scenario.figures import may_wait
from advisor.units import MIB

if TYPE_CHECKING:
    from advisor.advice.configuration import MemoryDoc, ScenarioDoc, SetupDoc
    from advisor.advice.document import Advice, After, Alternative, Recommendation
    from advisor.runtimes.base import Runtime
    from advisor.scenario.figures import CardMemory

_PARTS = {
    "weights_bytes": "part.weights",
    "kv_cache_bytes": "part.kv",
    "compute_buffer_bytes": "part.compute",
    "overhead_bytes": "part.overhead",
}
_LEAST_SAID, _WORTH_SAYING = 1024**3, 4 * 1024**3
"""Bytes in system RAM from which on a report names them: where they are a quarter of the weights,
and in any case."""
_MOST = 2 / 3
"""Weights that take this share of what is needed decide."""
_USEFUL = 1024
"""Tokens of context below which a question and its answer have no room."""
_FULL_BITS = 15.5
"""Average bits per weight from here on are those of an unquantised model."""


Writer = Callable[["Advice"], str]
"""Writes a text from the document."""


def runs(doc: Advice) -> bool:
    """Whether the request fits, tightly or well."""
    return doc.verdict.state in {"fits", "tight"}


def _fact(doc: Advice, name: str) -> str:
    return str(doc.facts.get(name, ""))


def _range(doc: Advice) -> str:
    low, high = f.amount(doc.memory.low_bytes), f.amount(doc.memory.high_bytes)
    return say("speed.range", low=low.removesuffix(" GiB"), high=high) if low != high else ""


def _at_risk(doc: Advice) -> CardMemory | None:
    """The card that may need more than it has, where all fits by the estimate."""
    if doc.memory.certainty != "may_exceed":
        return None
    return max(doc.memory.per_gpu, key=lambda c: _at_most(doc, c) - c.usable_bytes)


def _at_most(doc: Advice, card: CardMemory) -> int:
    """What a card may need with one sequence, where a server lets the others wait, bytes."""
    return card.high_bytes - may_wait(doc.memory.held_sequences, card)


def _at_once(doc: Advice) -> int:
    """How many sequences a server's cache holds, where it runs at all."""
    return (doc.memory.cache_sequences or 0) if runs(doc) else 0


def sequences_in(memory: MemoryDoc | After, setup: ScenarioDoc | SetupDoc) -> int:
    """Count the sequences that figures of memory and speed are of."""
    return memory.held_sequences or setup.batch


def _requests(doc: Advice) -> str:
    """Say for how many of several requests what is needed is needed."""
    batch, count = doc.scenario.batch, sequences_in(doc.memory, doc.scenario)
    kind = "memory.for" if count == batch else "memory.for.one" if count == 1 else "memory.for.some"
    return say(kind, n=f.count(count), all=f.count(batch)) if batch > 1 else ""


def fewer_held(memory: MemoryDoc | After, setup: ScenarioDoc | SetupDoc) -> int | None:
    """The sequences that a server holds at once, where they are fewer than the batch."""
    held = memory.held_sequences
    return held if held is not None and held < setup.batch else None


def _none_holds_all(doc: Advice) -> str:
    """Yes where neither the request nor what is told of holds all sequences of a batch at once."""
    if runs(doc) and fewer_held(doc.memory, doc.scenario) is None:
        return ""
    asked, told = doc.scenario.batch, doc.recommendations
    held = [item.after.held_sequences or item.setup.batch for item in told]
    held += [o.after.held_sequences or o.setup.batch for item in told for o in item.alternatives]
    return f.flag(max(held, default=asked) < asked)


def _cache_not_all(doc: Advice) -> bool:
    return bool(_at_once(doc)) and counted_sequences(doc) > _at_once(doc)


def _is_windowed(doc: Advice) -> bool:
    """Whether more tokens have room than it counts, as if a prompt were read in each sequence."""
    memory, length = doc.memory, doc.scenario.context_tokens
    most = max(memory.max_context_tokens or 0, (memory.cache_sequences or 0) * length)
    return most > (memory.cache_tokens or most)


def counted_sequences(doc: Advice) -> int:
    """Give the sequences for which a server's own count has tokens."""
    return (doc.memory.cache_tokens or 0) // doc.scenario.context_tokens


def _counted(doc: Advice) -> str:
    """Say for how many sequences its own count has tokens, where memory holds more of them."""
    count = counted_sequences(doc)
    return f.counted("grow.sequences", count) if 0 < count < _at_once(doc) else ""


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
    return all(c.share_binds for c in cards)


def _reserve(doc: Advice) -> str:
    capacity, usable = doc.memory.capacity_bytes, doc.memory.usable_bytes
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
    return say(_PARTS[max(_PARTS, key=lambda key: getattr(doc.memory, key))])


def _host_bytes(memory: MemoryDoc) -> int:
    return memory.host_weights_bytes + memory.host_kv_cache_bytes + memory.host_compute_bytes


def _looked_up(doc: Advice) -> str:
    """What lies in system RAM though nothing was asked to, where that is worth a sentence."""
    held, gpu = doc.memory.host_weights_bytes, doc.scenario.gpu
    aside = bool(split_of(doc)) or bool(gpu and gpu.unified_memory)
    least = max(_LEAST_SAID, min(_WORTH_SAYING, doc.memory.weights_bytes / 4))
    return "" if aside or held < least else f.amount(held)


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


def _context(doc: Advice) -> int | None:
    """The longest context, where memory is what limits it and the search found its end."""
    context, asked = doc.memory.max_context_tokens, doc.scenario
    if _beyond_training(doc) and runs(doc):
        return None
    endless = context == LONGEST_TOKENS and asked.model.trained_context_tokens is None
    return None if endless else context


def _batch(doc: Advice) -> str:
    batch = doc.memory.max_batch
    searched_all = batch is not None and batch >= _runtime(doc).most_sequences
    return say("at-least", n=f.count(batch)) if searched_all else f.count(batch)


def released(doc: Advice) -> str:
    """Name the format of less than 16 bits that the model was released in."""
    return str(doc.facts.get("weights.published", "")).partition("_")[0]


def _shorter(doc: Advice) -> str:
    """The longest context that fits, where it is of use, less than asked for and than there is."""
    context, asked = doc.break_even.max_context_tokens, doc.scenario
    trained = asked.model.trained_context_tokens
    if context is None or not _USEFUL <= context < asked.context_tokens or context == trained:
        return ""
    return f.count(context)


def _fewer(doc: Advice) -> int:
    batch = doc.break_even.too_large_batch
    return batch - 1 if batch and batch <= doc.scenario.batch else 0


def _first_too_large(doc: Advice) -> str:
    batch = doc.break_even.too_large_batch
    return f.count(batch) if batch and batch > doc.scenario.batch else ""


def _other_count(doc: Advice) -> str:
    gpus = doc.break_even.fewest_gpus
    return f.count(gpus) if gpus != doc.scenario.gpus else ""


def _beyond_training(doc: Advice) -> bool:
    """Whether more is asked for than was trained, so that memory is not what limits it."""
    trained = doc.scenario.model.trained_context_tokens
    return trained is not None and doc.scenario.context_tokens > trained


def _is_smallest_card(doc: Advice) -> bool:
    """Whether no smaller card would hold the request."""
    gpu, smallest = doc.scenario.gpu, doc.break_even.smallest_capacity_bytes
    size = gpu.vram_bytes if gpu else None
    return smallest is not None and size is not None and smallest >= size


def _keeps_less(doc: Advice) -> bool:
    """Whether smaller or fewer cards that would hold it have less in all than is needed on these.

    What a server keeps for computing goes by its cards.
    """
    gpu, cards = doc.scenario.gpu, doc.scenario.gpus
    smaller = (doc.break_even.smallest_capacity_bytes or math.inf) * cards
    fewer = (doc.break_even.fewest_gpus or cards) * ((gpu and gpu.vram_bytes) or math.inf)
    return min(smaller, fewer) < doc.memory.required_bytes


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


WRITERS: Mapping[str, Writer] = {
    "fit.gap": lambda d: "" if runs(d) else _fact(d, "fit.gap"),
    "headroom.class": lambda d: _fact(d, "headroom.class") if runs(d) else "",
    "memory.reserve": _reserve,
    "memory.share_left": lambda d: _reserve(d) if share_binds(d) else "",
    "memory.high_mib": lambda d: f"{-(-d.memory.high_bytes // MIB)}",
    "memory.range": _range,
    "memory.deficit": lambda d: "" if runs(d) else deficit(d),
    "memory.headroom": lambda d: headroom(d) if runs(d) else "",
    "memory.headroom_share": lambda d: _headroom_share(d) if runs(d) else "",
    "memory.kv_cache": lambda d: f.amount(d.memory.kv_cache_bytes) if _keeps_cache(d) else "",
    "memory.looked_up": _looked_up,
    "memory.host": lambda d: f.amount(_host_bytes(d.memory)) if split_of(d) else "",
    "memory.largest": _largest,
    "memory.weights_most": lambda d: flag(
        d.memory.weights_bytes >= _MOST * d.memory.required_bytes > 0
    ),
    "memory.at_most": lambda d: f.amount(_at_most(d, card)) if (card := _at_risk(d)) else "",
    "memory.at_most_usable": lambda d: f.amount(card.usable_bytes) if (card := _at_risk(d)) else "",
    "memory.cache_room": lambda d: f.amount(d.memory.cache_room_bytes) if _at_once(d) else "",
    "memory.cache_tokens": lambda d: f.count(d.memory.cache_tokens) if _at_once(d) else "",
    "memory.cache_sequences": lambda d: f.count(_at_once(d) or None),
    "memory.cache_serves_several": lambda d: flag(_at_once(d) > 1),
    "memory.cache_windowed": lambda d: flag(_is_windowed(d)),
    "memory.cache_counted": _counted,
    "memory.cache_not_all": lambda d: flag(_cache_not_all(d)),
    "memory.state_slots": lambda d: f.count(d.memory.state_slots),
    "memory.requests": _requests,
    "options.none_holds_all": _none_holds_all,
    "memory.held_sequences": lambda d: f.count(fewer_held(d.memory, d.scenario)),
    "memory.approximate_parts": lambda d: views.estimated_parts(d.memory.approximate),
    "memory.max_context": lambda d: f.count(_context(d)),
    "memory.max_batch": _batch,
    "memory.context_can_grow": lambda d: flag((_context(d) or 0) > d.scenario.context_tokens),
    "memory.batch_can_grow": lambda d: flag((d.memory.max_batch or 0) > d.scenario.batch),
    "options.smaller_format": lambda d: flag(_smaller_format(d)),
    "break_even.missing": lambda d: f.amount(d.break_even.missing_bytes or None),
    "break_even.context": _shorter,
    "break_even.fewer": lambda d: f.count(_fewer(d) or None),
    "break_even.batch": _first_too_large,
    "break_even.format_asked": lambda d: flag(d.break_even.largest_format == d.scenario.precision),
    "break_even.format_full": lambda d: flag((d.break_even.largest_format_bits or 0) >= _FULL_BITS),
    "break_even.gpus": _other_count,
    "break_even.keeps_less": lambda d: flag(_keeps_less(d)),
    "break_even.other_card": lambda d: d.break_even.smaller_card or "",
    "break_even.other_steps": lambda d: f.count(d.break_even.smaller_card_tokens),
    "break_even.own_steps": lambda d: f.count(d.break_even.step_tokens),
    "break_even.card_asked": lambda d: flag(_is_smallest_card(d)),
}
"""What is no plain figure of memory and its limits -> its text, from the document."""


def copies(doc: Advice, setup: SetupDoc) -> str:
    """Count the setups that the cards at hand could run side by side, where several ask."""
    count = 1 if doc.scenario.cards or setup.batch == 1 else all_cards(doc) // setup.gpus
    return str(count) if count > 1 else ""


def all_cards(doc: Advice) -> int:
    """Count the cards there are, with those that are left out."""
    return doc.scenario.gpus + len(doc.scenario.idle_cards)


def cards_word(doc: Advice, count: int) -> str:
    """Name the words for fewer of the cards that are used, more of those there are, or others."""
    if count < doc.scenario.gpus:
        return "change.one_of" if count == 1 else "change.some_of"
    return "change.more_of" if count <= all_cards(doc) else "change.gpus"


def some_of(doc: Advice, name: str) -> str:
    """Name those of the cards that are used; empty where all are."""
    used, idle = doc.scenario.gpus, doc.scenario.idle_cards
    if {*idle} == {name}:
        return say("card.of" if used > 1 else "card.one_of", n=used, all=all_cards(doc), card=name)
    return say("card.alone", card=name) if used == 1 and idle else ""


def ram_rest(doc: Advice, after: After) -> str:
    """Print what a change leaves of the stated RAM, where that is little for a system."""
    stated, roomy = doc.scenario.ram_bytes, doc.facts.get("policy.roomy_ram")
    if not stated or not after.host_bytes or not isinstance(roomy, float):
        return ""
    return f.rest(stated, after.host_bytes) if stated - after.host_bytes < roomy else ""


def in_ram(doc: Advice, after: After, setup: SetupDoc, size: str) -> str:
    """Print what a change has in system RAM, of how much, and what is left where that is little."""
    known, rest = bool(setup.ram_bytes), ram_rest(doc, after)
    kind = "line.ram" + ".of" * known + ".scarce" * bool(known and rest)
    return size and say(kind, size=size, all=f.amount(setup.ram_bytes), rest=rest)
