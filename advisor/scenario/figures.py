"""What the estimator answers with. Bytes, seconds and tokens/s, never strings."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

Evidence = Literal["measured", "near", "modelled", "extrapolated"]
BoundBy = Literal["bandwidth", "compute", "overhead", "exchange", "offload"]


class CardMemory(Struct, frozen=True):
    """One card's share, bytes; ``low`` and ``high`` are the ends of ``required``."""

    name: str
    """The card."""
    capacity_bytes: int
    """Its memory as sold."""
    usable_bytes: int
    """What programs get of it: without what driver, display and others take."""
    required_bytes: int
    """What is needed on it."""
    weights_bytes: int
    """Weights on it."""
    kv_cache_bytes: int
    """Key/value cache on it."""
    compute_buffer_bytes: int
    """Work buffers on it."""
    overhead_bytes: int
    """The runtime's own memory on it."""
    low_bytes: int
    """Lower end of ``required_bytes``."""
    high_bytes: int
    """Upper end of ``required_bytes``."""
    share_binds: bool = False
    """A runtime's share leaves more of it than the system keeps."""


class CacheRoom(Struct, frozen=True):
    """What is left for the cache at a server's default share of memory, over all cards."""

    room_bytes: int
    """Memory beside weights, buffers and the runtime, cards as full as the fullest one allows."""
    tokens: int | None
    """Tokens of all sequences together, at sequences of the context asked for; None where no
    layer keeps tokens."""
    sequences: int
    """Sequences of the context asked for that fit at once."""
    most_at_start: int | None = None
    """Sequences that it must be told as its most, or it refuses to start; None: it starts."""
    state_slots: int | None = None
    """Recurrent states that it is told to keep, of one copy; None: it is not told."""


class Occupied(Struct, frozen=True):
    """What a scenario occupies, bytes; with several cards the card figures are sums.

    ``deficit_bytes`` and ``headroom_bytes`` belong to the fullest card (one of them is 0).
    """

    capacity_bytes: int | None
    """Memory of the cards as sold; null without a card."""
    usable_bytes: int | None
    """What programs get of it: without what driver, display and others take."""
    required_bytes: int
    """What is needed on the cards."""
    deficit_bytes: int | None
    """What is missing on the fullest card; 0 where it fits."""
    headroom_bytes: int | None
    """What stays free on the fullest card; 0 where it does not fit."""
    weights_bytes: int
    """Weights on the cards."""
    kv_cache_bytes: int
    """Key/value cache on the cards."""
    compute_buffer_bytes: int
    """Work buffers on the cards."""
    overhead_bytes: int
    """The runtime's own memory on the cards."""
    host_weights_bytes: int
    """Weights in system RAM."""
    host_kv_cache_bytes: int
    """Key/value cache in system RAM."""
    host_compute_bytes: int
    """Work buffers in system RAM."""
    nominal_weights_gb: float | None
    """The rule of thumb: parameters of the label times bytes of a weight."""


class Memory(Occupied, frozen=True):
    """The same with what the estimator knows of it."""

    per_gpu: tuple[CardMemory, ...]
    low_bytes: int
    """Lower end of ``required_bytes`` where a part is only known as a range."""
    high_bytes: int
    approximate: tuple[str, ...]
    """Names of the parts that are estimates, one plain phrase each; empty: exact formulas."""
    bits_per_weight: float | None
    """Average over the whole model as stored."""
    cache_room: CacheRoom | None = None
    """What a server that claims memory in advance keeps for its cache; None: others."""
    layers_by_card: tuple[int, ...] = ()
    """Layers that a runtime must be told to put on each card, the output counted as one."""
    held_sequences: int | None = None
    """Sequences of the batch that such a server holds at once, one at least, while the rest wait;
    None: others, which set the whole batch aside."""


class Limits(Struct, frozen=True):
    """The longest context and the largest batch that still fit, None when nothing does."""

    max_context_tokens: int | None
    max_batch: int | None


class BreakEven(Struct, frozen=True):
    """Where a scenario tips over, all else as it is; None: unknown, or there is no such point."""

    max_context_tokens: int | None = None
    """The longest context that fits."""
    missing_bytes: int | None = None
    """On the fullest card; 0 when it fits."""
    too_large_batch: int | None = None
    """The smallest batch that does not fit. [sequences]"""
    largest_format: str | None = None
    """The largest weight format of the framework that fits; larger and worse ones left out."""
    largest_format_bits: float | None = None
    """Its bits per weight, everything included."""
    fewest_gpus: int | None = None
    """The fewest equal cards that hold it, up to 8. [cards]"""
    fewest_in_turns: int | None = None
    """Fewer than those that hold it where whole layers are dealt out, not tensors split. [cards]"""
    smallest_capacity_bytes: int | None = None
    """The smallest whole-GiB memory of one card, as sold, that holds it."""
    smaller_card: str | None = None
    """A card with less that holds it, too: what is kept beside the model goes by the card."""
    smaller_card_tokens: int | None = None
    """What the runtime computes at once there, where that is less than usual. [tokens]"""
    step_tokens: int | None = None
    """What it computes at once on a card of ``smallest_capacity_bytes``. [tokens]"""


class Figure(Struct, frozen=True):
    """A tokens/s figure with its 80 % range and where it comes from."""

    estimate: float
    """The figure itself. [tokens/s; s in first_token_s]"""
    low: float
    """Lower end of the range that holds 80 %. [tokens/s; s in first_token_s]"""
    high: float
    """Upper end of that range. [tokens/s; s in first_token_s]"""
    evidence: Evidence
    """What it rests on: measured, near, modelled or extrapolated."""
    source: str = ""
    """Where a measured figure was published."""
    modelled: float | None = None
    """The model's own figure beside a measured one. [tokens/s; s in first_token_s]"""


class Span(Struct, frozen=True):
    """Tokens per second that a draft model or an own head may lead to; it can lose."""

    low: float
    """Lower end. [tokens/s]"""
    high: float
    """Upper end. [tokens/s]"""


class Rates(Struct, frozen=True):
    """Tokens per second; ``aggregate`` is over all sequences of the batch."""

    depth_tokens: int
    """Tokens in the cache when this is told."""
    decode_tok_s: Figure
    """Tokens that one sequence is given, once its answer has begun."""
    prefill_tok_s: Figure | None
    """Tokens of a prompt that are read."""
    aggregate_tok_s: Figure | None
    """Tokens that all sequences are given together."""
    bound_by: BoundBy
    """What limits it: bandwidth, compute, overhead or the parts in system RAM (offload)."""
    first_token_s: Figure | None
    """Seconds from a prompt of ``prompt_tokens`` to its first answer token, nothing cached."""
    prompt_tokens: int
    """The prompt of ``first_token_s``."""
    cards: int
    """Measured cards behind the figures of this kind of card or engine. [cards]"""


class Speed(Rates, frozen=True):
    """The same with what drafts may lead to."""

    speculative_tok_s: Span | None = None
    """Span of one stream with the draft model or own draft head of the scenario; the other
    figures are without."""

    @property
    def total_tok_s(self) -> float:
        """Tokens per second of all sequences together."""
        return (self.aggregate_tok_s or self.decode_tok_s).estimate


class WeightProfile(Struct, frozen=True):
    """Where the bytes of a model in one weight format lie; made once per model and format."""

    embedding_bytes: int
    """Input embedding matrix."""
    output_bytes: int
    """Output matrix and final norm; when ``tied`` the size of the embedding used as output."""
    tied: bool
    layer_bytes: tuple[int, ...]
    """Every layer, experts included."""
    expert_bytes: tuple[int, ...]
    """Routed experts of every layer, 0 in dense layers."""
    experts: int
    experts_used: int
    vision_bytes: int
    other_bytes: int
    """Tensors outside layers, embedding and output (rope factors, extra norms)."""
    lookup_bytes: int
    """Tables beside the embedding of which a token reads its rows alone."""
    total_bytes: int
    """As stored in the file or files: a tied matrix once."""
    exact: bool
    """Whether every tensor follows a rule checked against real software."""

    @property
    def read_bytes(self) -> float:
        """Bytes read for one token of one stream.

        All but idle experts, the input embedding and other lookups, and the vision tower.
        """
        idle = (
            sum(self.expert_bytes) * (1 - self.experts_used / self.experts) if self.experts else 0.0
        )
        return sum(self.layer_bytes) - idle + self.output_bytes + self.other_bytes


Margin = Literal["thin", "narrow", "ample"]


def fullest_usable(memory: Memory) -> int | None:
    """Usable memory of the card that lacks most, or has the least free, bytes."""
    if not memory.per_gpu:
        return memory.usable_bytes
    return max(memory.per_gpu, key=lambda c: c.required_bytes - c.usable_bytes).usable_bytes


def headroom_percent(memory: Memory) -> float | None:
    """Headroom of the fullest card as a share of its usable memory; negative for a deficit."""
    usable = fullest_usable(memory)
    if memory.headroom_bytes is None or memory.deficit_bytes is None or not usable:
        return None
    return round(100.0 * (memory.headroom_bytes - memory.deficit_bytes) / usable, 4) + 0.0


def may_wait(held: int | None, card: CardMemory) -> int:
    """Cache of the sequences held that a server could let wait as well, all but one, bytes."""
    held = held or 1
    return card.kv_cache_bytes * (held - 1) // held


def spare_percent(memory: Memory) -> float | None:
    """What may be lost before it no longer runs, in % of the usable memory as ``headroom_percent``.

    For a server that is the cache of all sequences but one besides.
    """
    free = headroom_percent(memory)
    if free is None or (memory.held_sequences or 1) == 1:
        return free
    return free + min(
        100.0 * may_wait(memory.held_sequences, c) / c.usable_bytes for c in memory.per_gpu
    )


def held_percent(memory: Memory, batch: int) -> float:
    """The share of a batch that is held at once; all of it but on a server that fits fewer."""
    return round(100.0 * (memory.held_sequences or batch) / batch, 4)


def margin_of(memory: Memory, policy: Mapping[str, float]) -> Margin | None:
    """Say how far one may rely on what fits; None where it does not fit."""
    share = spare_percent(memory)
    if share is None or memory.deficit_bytes:
        return None
    tight, usable = tight_below_percent(memory, policy), fullest_usable(memory)
    thin = 100.0 * thin_below_bytes(usable, policy) / usable if usable else 0.0
    if share < min(round(thin, 4), tight):
        return "thin"
    return "narrow" if share < tight else "ample"


def thin_below_bytes(usable: int, policy: Mapping[str, float]) -> int:
    """What a card has to leave free so that its margin is not thin, bytes."""
    share = usable * policy["thin_below_percent"] / 100
    return math.ceil(min(share, policy["thin_below_bytes"]))


def tight_below_percent(memory: Memory, policy: Mapping[str, float]) -> float:
    """The share of the usable memory below which a fit is tight: less on a card with much of it."""
    share, usable = policy["tight_below_percent"], fullest_usable(memory)
    return min(share, 100.0 * policy["ample_from_bytes"] / usable) if usable else share


Certainty = Literal["sure", "unverified", "may_exceed", "may_fit", "beyond"]
_NEARLY_FULL = 0.9  # of 19 runs of public threads that should have left less, 7 did not start
UNCHECKED = "runtime: no memory that it printed was compared"
"""Said of runtimes whose memory model is read from their source alone."""


def certainty_of(memory: Memory) -> Certainty | None:
    """Hold the range of every card against its usable memory.

    Returns:
        ``sure`` when even the upper end fits on every card, ``unverified`` where that rests on a
        model that nobody checked or on less than a tenth of a card; ``may_exceed`` when the
        estimate fits and the upper end does not; ``may_fit`` when only the lower end fits;
        ``beyond`` when it does not either. None without a card.
    """
    cards = memory.per_gpu
    if not cards:
        return None
    if all(
        card.high_bytes - may_wait(memory.held_sequences, card) <= card.usable_bytes
        for card in cards
    ):
        near = any(_NEARLY_FULL * card.usable_bytes < card.required_bytes for card in cards)
        return "unverified" if near or UNCHECKED in memory.approximate else "sure"
    if all(card.required_bytes <= card.usable_bytes for card in cards):
        return "may_exceed"
    return "may_fit" if all(card.low_bytes <= card.usable_bytes for card in cards) else "beyond"


def holds_surely(memory: Memory, batch: int) -> bool:
    """Whether even the upper end of its range fits with the whole batch at once."""
    whole = memory.held_sequences in {None, batch}
    return whole and all(card.high_bytes <= card.usable_bytes for card in memory.per_gpu)


def partly_guessed(memory: Memory) -> bool:
    """Whether more than the runtime's own overhead, which is always a range, is an estimate."""
    return any(not part.startswith("overhead") for part in memory.approximate)


def sequences_at_once(memory: Memory, limits: Limits) -> int | None:
    """Count the sequences that a server can hold at once, their own buffers included."""
    if memory.cache_room is None:
        return None
    most = memory.cache_room.sequences
    return min(most, limits.max_batch) if limits.max_batch else 0
