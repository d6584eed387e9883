"""From the header of a GGUF file to a ``Shape``.

What the tensors show (layers, experts, widths, tied matrices) is taken from them, the rest
from the metadata.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from advisor.models.architecture import Family, Gguf
from advisor.models.architectures.tables import FAMILIES
from advisor.models.config_keys import MAX_LAYERS, Keys
from advisor.models.gguf.cursor import gguf_families, recurrent_of
from advisor.models.shape import Mla, Moe, Shape
from advisor.models.stored_tensors import ROPE_FREQUENCIES, StoredTensor, counts_of, place_of

_NAME: Final = re.compile(r"[\w.+-]{1,64}", re.ASCII)
_MAX_HEADS: Final = 100_000
_LONGEST_CONTEXT: Final = 10**10
_MIXED: Final = frozenset({"deci", "nemotron_h", "nemotron_h_moe"})
"""Architectures with layers of which no tensor is stored, or only one half."""
_NO_FAMILY = Family()


class _Block(Struct):
    """Tensors of one layer by their name behind ``blk.N.``."""

    tensors: dict[str, StoredTensor] = field(default_factory=dict)

    def dims(self, *names: str) -> tuple[int, ...] | None:
        return next((self.tensors[name].dims for name in names if name in self.tensors), None)

    def holds(self, *starts: str) -> bool:
        return any(name.startswith(starts) for name in self.tensors)

    @property
    def recurs(self) -> bool:
        return self.holds("ssm_", "shortconv.", "time_mix_")

    @property
    def attends(self) -> bool:
        names = ("attn_q.", "attn_k.", "attn_qkv.", "attn_kv_a_mqa.", "attn_q_a.", "attn_output.")
        return self.holds(*names)

    @property
    def routes(self) -> bool:
        return any("_exps." in name for name in self.tensors) or self.holds("ffn_gate_inp.")


class GgufModel(Struct, frozen=True):
    """The parts of a header that a shape is made from."""

    keys: Keys
    """Keys of the architecture, without its name before them."""
    family: Gguf
    blocks: tuple[_Block, ...]
    outside: Mapping[str, StoredTensor]


def shape_of(
    metadata: Mapping[str, object], tensors: Iterable[StoredTensor], shown: str
) -> tuple[Shape, tuple[str, ...]]:
    """Give the shape a GGUF header describes, and notes on it.

    Raises:
        SourceFileError: A figure is missing or impossible, or metadata and tensors disagree.
    """
    architecture = Keys(metadata, shown).word("general.architecture")
    if not architecture or not _NAME.fullmatch(architecture):
        text = "general.architecture is missing from its metadata, or is no name"
        raise Keys(metadata, shown).error(f"{text}.")
    listed = tuple(tensors)
    if architecture == "t5encoder":  # alone, and named as beside a decoder
        listed = tuple(replace(t, name=t.name.removeprefix("enc.")) for t in listed)
    start = f"{architecture}."
    named = {key.removeprefix(start): v for key, v in metadata.items() if key.startswith(start)}
    keys = Keys(named, shown, inside=architecture)
    family = gguf_families().get(architecture) or Gguf(architecture, architecture, described=False)
    layers, spare = _layers(keys, family, listed)
    blocks = _blocks(keys, family, listed, layers)
    outside = {t.name: t for t in listed if place_of(t.name, layers).part not in _INSIDE}
    model = GgufModel(keys, family, blocks, outside)
    notes: tuple[str, ...] = ()
    if spare:
        what = f"{spare} layer{'s' if spare > 1 else ''} for multi-token prediction"
        notes = (f"{what} in the file: loaded only to draft (--mtp).",)
    return replace(_shape(model, listed), mtp_layers=spare), notes


_INSIDE: Final = frozenset({"layer", "spare"})


def _layers(keys: Keys, family: Gguf, tensors: tuple[StoredTensor, ...]) -> tuple[int, int]:
    """Layers that run, and further ones for multi-token prediction."""
    if not family.described and keys.stated("block_count") is None:
        places = (place_of(tensor.name, MAX_LAYERS) for tensor in tensors)
        if last := max((one.layer + 1 for one in places if one.part == "layer"), default=0):
            return last, 0
    stated = keys.maybe("decoder_block_count", least=1, most=MAX_LAYERS)
    count = stated or keys.whole("block_count", most=MAX_LAYERS)
    spare = keys.number("nextn_predict_layers", 0, most=count - 1)
    return count - spare, spare


def _blocks(
    keys: Keys, family: Gguf, tensors: Iterable[StoredTensor], layers: int
) -> tuple[_Block, ...]:
    """Sort tensors by layer; those without any of an unknown architecture run another's again."""
    blocks = tuple(_Block() for _ in range(layers))
    for tensor in tensors:
        place = place_of(tensor.name, layers)
        if place.part == "layer":
            tail = tensor.name.split("blk.", 1)[-1].partition(".")[2]
            blocks[place.layer].tensors[tail] = tensor
    empty = [index for index, block in enumerate(blocks) if not block.tensors]
    if not family.described:
        full = [block for block in blocks if block.tensors]
        return tuple(block if block.tensors else full[0] for block in blocks) if full else blocks
    if empty and family.architecture not in _MIXED:
        text = f"it has {layers} layers, but no tensor of layer {empty[0]}"
        raise keys.error(f"{text}: the file is incomplete, or one of several.")
    return blocks


def _shape(model: GgufModel, tensors: tuple[StoredTensor, ...]) -> Shape:
    keys, family = model.keys, model.family
    hidden, vocab = _embedding(model)
    heads, by_layer, uniform = _heads(model)
    mla = _mla(model)
    moe = _moe(model)
    kinds, window = _kinds(model)
    usual = hidden // (heads or 1)
    width = _head_width(model, usual, heads, mla)
    latent = mla.kv_lora_rank + mla.rope_dim if mla else 0
    recurs = bool(set(kinds) & {"R", "H"})
    recurrent = recurrent_of(keys, family, hidden, width) if recurs else None
    tied = "output.weight" not in model.outside and family.role != "encoder"
    named = _model_type(model, moe)
    known = FAMILIES.get(named, _NO_FAMILY)
    told, layers = (_NOT_DESCRIBED.format(family.architecture), _AGAIN), len(model.blocks)
    return Shape(
        model_type=named,
        layers=layers,
        hidden=hidden,
        vocab=vocab,
        heads=heads,
        kv_heads=heads if mla else uniform,
        head_dim=width,
        intermediate=_intermediate(model),
        tied=tied,
        layer_kinds=kinds,
        ffn_kinds="".join(map(_ffn_kind, model.blocks)),
        window=window,
        trained_context=keys.maybe("context_length", least=1, most=_LONGEST_CONTEXT),
        mla=mla,
        moe=moe,
        recurrent=recurrent,
        kv_heads_by_layer=None if mla else _wider(model, by_layer, kinds, width, usual),
        cells=_cells(model, kinds, width, tuple(latent or 2 * width * n for n in by_layer)),
        config=_switches(model),
        counts=counts_of(tensors, layers, moe),
        lookup=sum(t.elements for t in tensors if place_of(t.name, 0).part == "lookup"),
        role=family.role,
        encoder_positions=0 if family.role == "encoder-decoder" else None,
        gated=known.gated,
        blocks=known.stored().blocks,
        windows=known.stored().windows,
        described=family.described,
        doubts=() if family.described else told[: 1 + (len({*map(id, model.blocks)}) < layers)],
        cache_loose=0.0 if family.described else 1.0,
    )


_NOT_DESCRIBED: Final = (
    "Architecture '{}' not described: weights are those of the file, the cache is estimated from "
    "its attention."
)
_AGAIN: Final = "Layers without tensors of their own are taken to run those of another again."
_HEAD: Final = 64
"""Width of a head where their number is not stated: with a key for each the cache is the most."""


def _cells(
    model: GgufModel, kinds: str, usual: int, by_layer: tuple[int, ...]
) -> tuple[tuple[int, int], ...] | None:
    """Elements kept of a token by layer, where an index keeps more than its key."""
    keys, beside = model.family.indexed
    if not keys:
        return None
    index = keys * model.keys.whole("attention.indexer.key_length") + beside * usual
    return tuple(
        ((kept + index * block.holds("indexer.")) * (kind == "F"), 0)
        for block, kind, kept in zip(model.blocks, kinds, by_layer, strict=True)
    )


def _embedding(model: GgufModel) -> tuple[int, int]:
    hidden = model.keys.whole("embedding_length")
    table = model.outside.get("token_embd.weight")
    if table is None or len(table.dims) < 2:  # noqa: PLR2004
        raise model.keys.error("it holds no token embedding, so it is not a whole model.")
    if table.dims[0] != hidden:
        text = f"embedding_length is {hidden}, but its embedding has width {table.dims[0]}"
        raise model.keys.error(f"{text}: the header is damaged.")
    return hidden, table.dims[1]


def _heads(model: GgufModel) -> tuple[int, tuple[int, ...], int]:
    """Query heads, key-value heads of every layer, and the most of them."""
    layers = len(model.blocks)
    queries = _per_layer(model.keys, "attention.head_count", layers)
    pairs = _per_layer(model.keys, "attention.head_count_kv", layers)
    heads = max(queries, default=0)
    if not heads and any(block.attends for block in model.blocks):
        if model.family.described:
            raise model.keys.error("attention.head_count is missing, so its cache cannot be sized.")
        heads = max(1, model.keys.whole("embedding_length") // _HEAD)
        queries = (heads,) * layers
    by_layer = pairs or queries or (0,) * layers
    most = max(by_layer)
    if heads and (most > heads or (most and heads % most)):
        text = f"attention.head_count_kv is {most}, which does not divide the {heads}"
        raise model.keys.error(f"{text} attention heads.")
    return heads, by_layer, most


def _per_layer(keys: Keys, name: str, layers: int) -> tuple[int, ...]:
    """A figure stated once or for every layer; empty when absent."""
    if isinstance(keys.stated(name), tuple):
        listed = keys.wholes(name) or ()
        if len(listed) < layers or max(listed, default=0) > _MAX_HEADS:
            raise keys.error(f"{name} lists {len(listed)} impossible figures for {layers} layers.")
        return listed[:layers]
    once = keys.maybe(name, most=_MAX_HEADS)
    return () if once is None else (once,) * layers


def _wider(
    model: GgufModel, by_layer: tuple[int, ...], kinds: str, width: int, usual: int
) -> tuple[int, ...] | None:
    """Key-value heads per layer where attention layers differ, in heads of ``width``."""
    sliding = model.keys.maybe("attention.key_length_swa", least=1)
    full = model.keys.maybe("attention.key_length", least=1) or usual
    if sliding and full != sliding and all(count * full % width == 0 for count in by_layer):
        by_layer = tuple(
            count * full // width if kind == "F" else count
            for count, kind in zip(by_layer, kinds, strict=True)
        )
    if model.keys.stated("adapters.count"):  # what picks them attends with a head of its own
        by_layer = (*by_layer[:-1], by_layer[-1] + 1)
    cached = {count for count, kind in zip(by_layer, kinds, strict=True) if kind in "FSCH"}
    return by_layer if len(cached) > 1 else None


def _head_width(model: GgufModel, usual: int, heads: int, mla: Mla | None) -> int:
    """Mean width of a head's keys and values."""
    if not heads or mla:
        return usual if heads else 0
    both = ("attention.key_length_swa", "attention.key_length")
    key = model.keys.maybe(*both, least=1) or usual
    value = model.keys.maybe(*(name.replace("key", "value") for name in both), least=1) or usual
    if not key:
        raise model.keys.error(f"its values are too few for {heads} attention heads.")
    # Together they are as wide as two of the mean, to the byte where both have one cache type.
    return (key + value + 1) // 2


def _mla(model: GgufModel) -> Mla | None:
    """Latent attention; None for files that keep keys and values whole."""
    keys = model.keys
    rank = keys.maybe("attention.kv_lora_rank")
    key = keys.maybe("attention.key_length_mla", least=1)
    if not rank or not key:
        return None
    rope = keys.number("rope.dimension_count", 0, most=key)
    return Mla(
        kv_lora_rank=rank,
        rope_dim=rope,
        nope_dim=key - rope,
        value_dim=keys.whole("attention.value_length_mla"),
        q_lora_rank=keys.maybe("attention.q_lora_rank") or None,
        index_dim=keys.maybe("attention.indexer.key_length") or 0,
        index_heads=keys.maybe("attention.indexer.head_count") or 0,
        index_layers=_index_layers(model),
    )


def _index_layers(model: GgufModel) -> str:
    has = [block.holds("indexer.") for block in model.blocks]
    return "".join("F" if own else "S" for own in has) if any(has) else ""


def _moe(model: GgufModel) -> Moe | None:
    keys = model.keys
    routed = next((block for block in model.blocks if block.routes), None)
    if routed is None:
        return None
    count = keys.whole("expert_count")
    dims = routed.dims("ffn_up_exps.weight", "ffn_gate_up_exps.weight", "ffn_up.0.weight")
    if dims and len(dims) > 2 and dims[2] != count:  # noqa: PLR2004
        raise keys.error(f"expert_count is {count}, but its tensors hold {dims[2]} experts.")
    stated = keys.maybe("expert_feed_forward_length", least=1)
    width = stated or (dims[1] if dims and len(dims) > 1 else 0)
    if not width:
        raise keys.error("expert_feed_forward_length is missing, so experts cannot be sized.")
    shared = routed.dims("ffn_up_shexp.weight")
    return Moe(
        experts=count,
        used=keys.whole("expert_used_count", most=count),
        width=width,
        shared_width=shared[1] if shared and len(shared) > 1 else 0,
    )


def _ffn_kind(block: _Block) -> str:
    if block.routes:
        return "E"
    return "D" if block.holds("ffn_up.", "ffn_down.", "channel_mix_") else "-"


def _intermediate(model: GgufModel) -> int:
    stated = model.keys.stated("feed_forward_length")
    if isinstance(stated, tuple):
        return max(model.keys.wholes("feed_forward_length") or (0,))
    found = model.keys.maybe("feed_forward_length")
    if found:
        return found
    dims = next((d for block in model.blocks if (d := block.dims("ffn_down.weight"))), None)
    return dims[0] if dims else 0


def _kinds(model: GgufModel) -> tuple[str, int | None]:
    """One letter per layer, and the window of those that slide."""
    family = model.family
    slides, window = _slides(model)
    layers = len(model.blocks)
    usual = max(layers - (layers if family.caching is None else family.caching), 0)
    shared = model.keys.number("attention.shared_kv_layers", usual, most=layers)
    letters = []
    for index, block in enumerate(model.blocks):
        if block.recurs or (family.recurrent == "lightning" and block.holds("attn_gate.")):
            letters.append("H" if family.both and block.attends else "R")
        elif family.role == "encoder" or not block.attends:
            letters.append("N")
        elif index >= layers - shared:
            letters.append("X")
        else:
            letters.append(("C" if family.chunked else "S") if slides[index] else "F")
    kinds = "".join(letters)
    return kinds, window if set(kinds) & {"S", "C"} else None


def _slides(model: GgufModel) -> tuple[tuple[bool, ...], int | None]:
    keys, family, layers = model.keys, model.family, len(model.blocks)
    stated = keys.maybe("attention.sliding_window", most=_LONGEST_CONTEXT)
    window = family.window if stated is None or (stated and family.fixed_window) else stated
    if family.slides_with not in {None, layers}:
        window = None
    none = (False,) * layers
    if not window or (family.period is None and family.described):
        return none, None
    pattern = keys.stated("attention.sliding_window_pattern")
    if isinstance(pattern, tuple):
        return tuple(map(bool, pattern[:layers])) + none[len(pattern) :], window
    stated_period = keys.maybe("attention.sliding_window_pattern", most=MAX_LAYERS)
    period = family.period if stated_period is None else stated_period
    if period is None and not family.described:
        return none, None
    full = 0 if family.full_first else (period or 1) - 1
    return tuple(not period or i % period != full for i in range(layers)), window


def _model_type(model: GgufModel, moe: Moe | None) -> str:
    kind = model.family.model_type
    if moe and model.family.moe_type:
        return model.family.moe_type
    if kind == "deepseek_v2" and any(block.holds("exp_probs_b") for block in model.blocks):
        return "deepseek_v3"
    if kind == "granitemoe" and moe and moe.shared_width:
        return "granitemoeshared"
    return "olmo3" if kind == "olmo2" and model.keys.stated("attention.sliding_window") else kind


def _switches(model: GgufModel) -> dict[str, object]:
    """What a config.json would say of biases, norms and rope factors."""
    first = next((block for block in model.blocks if block.attends), _Block())
    found: dict[str, object] = {"attention_bias": first.holds("attn_q.bias", "attn_qkv.bias")}
    if first.holds("attn_q_norm."):
        found["use_qk_norm"] = True
    if ROPE_FREQUENCIES in model.outside:
        found["rope_scaling"] = {"rope_type": "llama3"}
    return found
