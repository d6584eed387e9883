"""What a runtime does with memory unless its module says otherwise, and the parts it speaks of.

Activations: three wide tensors and four hidden states per token of the chunk, plus the logits in
float32. Both counts were read off published peaks of Qwen2.5 at four prompt lengths
(docs/memory-accuracy.md), then found in transformers' ``Qwen2MLP`` and ``Qwen2DecoderLayer``: the
activated gate, the up projection and their product; the embedded input, the layer's input, the
residual and the normed input. An ungated layer holds two wide tensors. Other runtimes were not
measured. The lower end leaves the tensors out, because peaks published for Qwen3 do not show them.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, ClassVar

from msgspec import Struct

from advisor.scenario.images import images_of, read_size, tokens_of_image, tower_bytes

if TYPE_CHECKING:
    from advisor.knowledge.types import Format, KvType, Split
    from advisor.models.shape import Mla, Recurrent, Shape
    from advisor.scenario import Scenario
    from advisor.scenario.figures import WeightProfile

FLOAT_BYTES = 4
_HALF_BYTES = 2
_HALF_BITS = 16
_HIDDEN_STATES = 4
_GATED_TENSORS = 3
_PLAIN_TENSORS = 2
_ACTIVATIONS = "activations: a rough formula, as no figure for them is held here"
_IMAGES = "activations: those of the image tower by a rough formula"
_IMAGES_UNKNOWN = "activations: without those of the image tower, whose sizes are not known"
_RULES = "KV cache: this runtime's rules were read, not measured"


class Range(Struct, frozen=True, gc=False):
    """A figure in bytes that is only known as a range."""

    central: int
    low: int
    high: int

    def __add__(self, other: Range) -> Range:
        return Range(self.central + other.central, self.low + other.low, self.high + other.high)


NO_BYTES = Range(0, 0, 0)


class CacheShape(Struct, frozen=True):
    """Cache bytes per layer as prefix sums: layers a to b hold ``sums[b] - sums[a]``."""

    full_sums: Sequence[int]
    """Bytes per cell of the layers that keep the whole context."""
    slide_sums: Sequence[int]
    """Bytes per cell of the layers that keep a window."""
    slide_counts: Sequence[int]
    state_sums: Sequence[int]
    """Fixed bytes per sequence."""
    window: int
    """Tokens a sliding layer keeps; 0 without sliding layers."""
    approximate: tuple[str, ...]
    loose: float = 0.0
    """Part of it that is the most an encoder's input can take; it may be nothing."""


class Cells(Struct, gc=False):
    """How many cells a scenario allocates, all sequences together."""

    full: int
    slide: int
    slide_extra: int
    """Bytes a sliding layer takes besides its cells."""
    sequences: int
    stream_full: int
    """Cells of one stream, what an attention mask spans."""
    stream_slide: int

    def bytes_of(self, shape: CacheShape, first: int, last: int) -> int:
        """Size the cache of layers ``first`` up to but without ``last``."""
        full, slide = shape.full_sums, shape.slide_sums
        counts, state = shape.slide_counts, shape.state_sums
        return (
            self.full * (full[last] - full[first])
            + self.slide * (slide[last] - slide[first])
            + self.slide_extra * (counts[last] - counts[first])
            + self.sequences * (state[last] - state[first])
        )


class Weights(Struct, frozen=True):
    """A weight profile made ready for placement; all bytes as placed in memory.

    The prefix sums have one entry more than there are layers: the bytes of layers a to b are
    ``layer_sums[b] - layer_sums[a]``.
    """

    profile: WeightProfile
    embedding: int
    output: int  # output matrix (when tied: the embedding used as output) and final norm
    lookup: int  # tables beside the embedding of which a token reads its rows alone
    norm: int  # the final norm alone
    rope: int
    layer_sums: Sequence[int]
    expert_sums: Sequence[int]
    approximate: tuple[str, ...]
    spread: float  # relative uncertainty of the sizes, 0 where exact
    lean: float = 0.0  # how much less a leaner file of the format may take, as a share
    widest: Sequence[tuple[int, int]] = ()  # of each layer of the file


class CardShare(Struct):
    """Layers ``first`` up to but without ``last`` on one card, and its weight bytes."""

    first: int
    last: int
    weights: int


class Placement(Struct):
    """Weights of the cards and of the host, bytes."""

    start: int
    """Layers before this one stay in system RAM."""
    placed: int
    """Layers on the cards, the output counted as one."""
    cards: tuple[CardShare, ...]
    host: int
    layers_by_card: tuple[int, ...] = ()
    """The output counted as one; empty where the runtime shares the layers out as it is used to."""
    copied: Sequence[int] = ()  # the ``widest`` of the layers in system RAM


class Compute(Struct, frozen=True, gc=False):
    """What is held while it computes, bytes: on each card and in system RAM."""

    device: Range
    host: int = 0
    approximate: tuple[str, ...] = ()
    sent: Range = NO_BYTES  # more on the first card, for what is sent there out of system RAM


class Runtime:
    """A family of frameworks that share one memory model; it has no state.

    A module of ``advisor.runtimes`` overrides what differs. Sizes are bytes, counts tokens.
    """

    memory_model: ClassVar[str] = ""  # what records of frameworks.yaml call it
    page_tokens: ClassVar[int] = 1  # the cache of a sequence grows by so many at once
    windowed: ClassVar[bool] = False  # sliding layers keep their window alone
    plain_bits: ClassVar[float | None] = None  # of windows and keys of position, in any cache
    reads_window: ClassVar[bool] = False  # sliding layers read theirs alone, whatever is kept
    expands_latents: ClassVar[frozenset[str]] = frozenset()  # architectures; not cached as such
    cache_checked: ClassVar[bool] = False  # against the program's own, not only its source
    claims_memory: ClassVar[bool] = False  # all that is left becomes cache when it starts
    shares_what_is_free: ClassVar[bool] = False  # beside the weights, not a part of the card
    by_layer: ClassVar[bool] = True  # cards take whole layers where no way to share is stated
    micro_batches: ClassVar[bool] = False  # cards read different parts of a prompt at once
    prompt_chunk: ClassVar[int] = 0  # tokens of such a part of a server; 0: its stages take turns
    gguf_alone: ClassVar[bool] = False  # every format is a GGUF file
    one_engine: ClassVar[bool] = False  # its frameworks are one program in different hands
    sizes_layers_in_ram: ClassVar[bool] = False  # in system RAM, each by itself
    overheads: ClassVar[tuple[str, ...]] = ("torch_overhead",)  # beside the driver: in policy.yaml
    captures_graphs: ClassVar[bool] = False  # before it sizes its cache; not at an eager start
    context_outside_share: ClassVar[bool] = False  # its share counts beside the driver's context
    reads_speculators: ClassVar[bool] = False  # draft heads as vLLM's speculators library has them
    chunk_tokens: ClassVar[int | None] = 2048  # of a prompt, computed at once; None: all of it
    sees_card: ClassVar[bool] = False  # for what it holds while it computes
    image_bytes: ClassVar[int] = _HALF_BYTES  # of a number in which the tower of images computes
    most_sequences: ClassVar[int] = 2**16
    """Where a search for the largest batch ends: more may fit, how many is not known."""

    def lays_sixteen(self, _scenario: Scenario) -> bool:
        """Whether weights that it packs itself lie on the card in 16 bits before it does."""
        return False

    # ---- cache

    def uses_window(self, _shape: Shape) -> bool:
        """Whether sliding layers of this architecture keep their window alone."""
        return self.windowed

    def told_windows(self, _scenario: Scenario) -> str:
        """Write the windows that it must be told to keep them alone, as its setting takes them."""
        return ""

    def cached_heads(self, shape: Shape, layer: int) -> int:
        """Count the key/value heads that one layer keeps."""
        return shape.kv_heads_by_layer[layer] if shape.kv_heads_by_layer else shape.kv_heads

    def latent_bytes(self, mla: Mla, key: KvType) -> int:
        """Size one token's latent and its key of position, in one layer."""
        position = mla.rope_dim * (self.plain_bits or key.bits)
        return int((mla.kv_lora_rank * key.bits + position) / 8)

    def index_bytes(self, mla: Mla, key: KvType) -> int:
        """Size the key by which an index finds one token, in a layer that has an index."""
        pooled = mla.index_pool > 1  # each time anew, so what weighs the keys is kept with them
        return int((mla.index_dim + pooled * (mla.index_dim + 1)) * key.bits / 8)

    def state_bytes(self, state: Recurrent, key: KvType) -> int:
        """Size one sequence's recurrent state in one layer."""
        width = key.bits / 8 if key.bits >= _HALF_BITS else _HALF_BYTES  # only KV is quantised
        return int(state.conv_elements * width) + FLOAT_BYTES * state.state_elements

    def cells(self, scenario: Scenario, window: int, _policy: Mapping[str, float]) -> Cells:
        """Count the cells of all its sequences; ``window`` 0: none slides."""
        full, sequences = up(scenario.context_tokens, self.page_tokens), scenario.batch
        kept = min(full, window)
        return Cells(sequences * full, sequences * kept, 0, sequences, full, kept)

    def state_slots(self, _scenario: Scenario) -> int | None:
        """Count the recurrent states that it is told to keep; None: it is not told."""
        return None

    def step_tokens(self, _scenario: Scenario) -> int:
        """Give the tokens of a sequence within which memory does not change."""
        return self.page_tokens

    # ---- computing

    def compute(
        self,
        scenario: Scenario,
        cache: CacheShape,
        cells: Cells,
        _placement: Placement,
        policy: Mapping[str, float],
    ) -> Compute:
        """Size what one card and the host hold while they compute.

        ``cells`` are those that it allocates.
        """
        why = (_ACTIVATIONS,) if self.cache_checked else (_ACTIVATIONS, _RULES)
        return Compute(self.activations(scenario, cache, cells, policy), approximate=why)

    def compute_beside(
        self,
        scenario: Scenario,
        cache: CacheShape,
        cells: Cells,
        placement: Placement,
        policy: Mapping[str, float],
    ) -> Compute:
        """Size what a second model adds that drafts for the first, see ``compute``."""
        return self.compute(scenario, cache, cells, placement, policy)

    def activations(
        self, scenario: Scenario, _cache: CacheShape, _cells: Cells, policy: Mapping[str, float]
    ) -> Range:
        """Approximate what one card holds while it computes."""
        shape = scenario.model.shape
        rows = 0 if scenario.model.modality == "embedding" else scenario.batch
        tokens = self.tokens_at_once(scenario, policy)
        if shape.encoder_positions:
            tokens = max(tokens, self.inputs_at_once(scenario) * shape.encoder_positions)
        flow = tokens * live_elements(shape) * element_bytes(scenario.precision)
        flow += _encoder_scores(scenario) if shape.encoder_positions == 0 else 0
        logits = rows * shape.vocab * FLOAT_BYTES
        return Range(flow + logits, logits, 2 * (flow + logits))

    def tokens_at_once(self, scenario: Scenario, _policy: Mapping[str, float]) -> int:
        """Count the prompt tokens computed at once."""
        held = scenario.context_tokens * scenario.batch
        told = scenario.max_num_batched_tokens if self.claims_memory else None
        chunk = self.chunk_tokens if told is None else told
        return held if chunk is None else min(held, chunk)

    def image_compute(self, scenario: Scenario, policy: Mapping[str, float]) -> Compute:
        """Size what the tower computes the images of prompts in; nothing where there are none."""
        model = scenario.model
        if not images_of(model, scenario) or scenario.framework.vision is False:
            return Compute(NO_BYTES)
        tokens = tokens_of_image(model, read_size(scenario.image_size)) or 0
        at_once = self.images_at_once(scenario, tokens, policy)
        held = tower_bytes(model, scenario, at_once, self.image_bytes)
        if held is None:
            return Compute(NO_BYTES, approximate=(_IMAGES_UNKNOWN,))
        return Compute(Range(held, 0, 2 * held), approximate=(_IMAGES,))

    def images_at_once(self, scenario: Scenario, _tokens: int, _policy: Mapping[str, float]) -> int:
        """Count the images that the tower computes at once: those of every prompt."""
        return images_of(scenario.model, scenario) * scenario.batch

    def lacks_graphs(self, scenario: Scenario) -> bool:
        """Whether it is told to start without the CUDA graphs that it captures else."""
        return self.captures_graphs and bool(scenario.eager)

    def communication(self, _of: Scenario, _policy: Mapping[str, float], found: Range) -> Range:
        """Size the buffers between cards, ``found`` for the library they trade through."""
        return found

    def most_at_start(
        self, _of: Scenario, _cache: CacheShape, _pool: Range, _policy: Mapping[str, float]
    ) -> int | None:
        """Count the sequences of which it must be told to start in this pool; None: it starts."""
        return None

    def inputs_at_once(self, scenario: Scenario) -> int:
        """Count the encoder inputs computed at once."""
        return scenario.batch

    def capacity_steps(self, _policy: Mapping[str, float]) -> tuple[int, ...]:
        """Give the card sizes from which ``compute`` follows another rule, ascending."""
        return ()

    # ---- a draft head

    def keeps_draft_states(self, _shape: Shape) -> bool:
        """Whether a recurrent state is kept for every drafted token."""
        return True

    def draft_compute(self, _head: Scenario, _cache: CacheShape, _cells: Cells) -> Range:
        """Size what a draft head holds of its own while it computes."""
        return NO_BYTES

    # ---- weights on cards

    def splits_by_layer(self, way: Split | None) -> bool:
        """Whether several cards take whole layers each, not a shard of every tensor."""
        return way not in {"tensor", "data", "dp-attention"} if way else self.by_layer

    def first_long_rank(self, _ranks: int, _rest: int) -> int:
        """Say which rank of a pipeline is the first of the ``rest`` that take one layer more."""
        return 0

    def shares(self, _weights: Weights, free: Sequence[int]) -> tuple[int, ...]:
        """Say in which proportion unequal cards take layers, from their free bytes.

        llama.cpp deals out by free memory; ExLlama fills one card after the other, which fits when
        proportions do.
        """
        return tuple(max(each, 1) for each in free)

    def place_rest(
        self,
        scenario: Scenario,
        cards: tuple[CardShare, ...],
        weights: Weights,
        _start: int,
        holder: int | None,
    ) -> int:
        """Place what is outside the layers; give the host's part.

        Layers before ``start`` stay in system RAM; the output lies on the card ``holder``, or the
        host.
        """
        vision, lookup = weights.profile.vision_bytes, weights.lookup
        if holder is None:
            return weights.embedding + lookup + weights.output + vision
        cards[holder].weights += weights.output
        cards[0].weights += vision
        if not scenario.framework.embedding_in_ram:
            cards[0].weights += weights.embedding + lookup
            return 0
        if weights.profile.tied:
            cards[0].weights += weights.embedding
            return lookup
        return weights.embedding + lookup


def prefix_sums(values: Iterable[int]) -> Sequence[int]:
    """Give the sums before each value and after the last: of a to b it is ``sums[b] - sums[a]``."""
    return array("q", accumulate(values, initial=0))


def up(number: int, multiple: int) -> int:
    """Round up to a multiple."""
    return -(-number // multiple) * multiple


def _encoder_scores(scenario: Scenario) -> int:
    """Attention scores of T5's encoder, for every pair of input tokens and head.

    Read in transformers (``modeling_t5.py``): scores and position bias in the model's type, and
    around the softmax two copies in float32.
    """
    pairs = scenario.batch * scenario.model.shape.heads * scenario.context_tokens**2
    return pairs * 2 * (element_bytes(scenario.precision) + FLOAT_BYTES)


def live_elements(shape: Shape, ranks: int = 1, *, experts: bool = True) -> int:
    """Count the elements per token at once in a layer; wide tensors are sharded over ``ranks``."""
    width = shape.intermediate if "D" in shape.ffn_kinds or not shape.moe else 0
    if shape.moe:
        routed = shape.moe.used * shape.moe.width if experts else 0
        width = max(width, routed + shape.moe.shared_width)
    tensors = _GATED_TENSORS if shape.gated else _PLAIN_TENSORS
    return tensors * -(-width // ranks) + _HIDDEN_STATES * shape.hidden


def element_bytes(precision: Format) -> int:
    """Activations are computed in float32 only where the weights are."""
    return FLOAT_BYTES if (precision.bits_per_weight or 0) > _HALF_BITS else _HALF_BYTES
