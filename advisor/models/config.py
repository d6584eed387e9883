"""From a Hugging Face config.json to a ``Shape``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from operator import add

from msgspec.structs import replace

from advisor.errors import did_you_mean
from advisor.models.architecture import NAMES, Arch, Family, Terms
from advisor.models.architectures import (
    HIDDEN,
    assumed_of,
    doubts_of,
    family_of,
    text_part,
    vision_part,
    with_class_defaults,
)
from advisor.models.architectures.tables import FAMILIES, WRAPPERS, count_vision
from advisor.models.config_keys import MAX_LAYERS, Keys
from advisor.models.shape import Counts, Shape
from advisor.models.stated_format import EXPERTS
from advisor.models.vision_towers import Wrapper

MOST_PARAMETERS = 10**14


def count(a: Arch, family: Family, vision: int, *, output: bool = True) -> Counts:
    """Count every parameter once; tied matrices once.

    ``vision`` are the parameters of towers and projectors; an embedding model has no output matrix.

    Raises:
        SourceFileError: The sizes multiply to more than 10^14 parameters.
    """
    by_pair = {
        pair: _layer(a, family, *pair) for pair in set(zip(a.kinds, a.ffn_kinds, strict=True))
    }
    layers = [by_pair[pair] for pair in zip(a.kinds, a.ffn_kinds, strict=True)]
    if family.irregular:
        layers = [sum(pair) for pair in zip(layers, family.irregular(a), strict=True)]
    layers[0] += _sum(a, family.first)
    if family.by_layer:
        layers = [*map(add, layers, family.by_layer(a))]
    routed = a.moe.experts * family.expert(a) if a.moe else 0
    experts = tuple(routed if kind == "E" else 0 for kind in a.ffn_kinds)
    embedding = family.embedding(a)
    head = family.output(a) if output and not a.tied else 0
    total = embedding + head + sum(layers) + _sum(a, family.final)
    lookups = _sum(a, family.lookups)
    total += _sum(a, family.extras) + lookups + vision
    if total > MOST_PARAMETERS:
        raise a.keys.error(f"its sizes multiply to {total} parameters, more than 10^14.")
    return Counts(
        total=total,
        active=_active(a, total, sum(experts), lookups),
        vision=vision,
        embedding=embedding,
        output=head,
        layers=tuple(layers),
        experts=experts,
    )


def _layer(a: Arch, family: Family, kind: str, ffn: str) -> int:
    attention = family.mixers.get(kind, family.attention)
    blocks = {"D": family.dense, "E": family.experts}.get(ffn, ())
    routed = a.moe.experts * family.expert(a) if a.moe and ffn == "E" else 0
    return _sum(a, attention) + _sum(a, blocks) + _sum(a, family.norms) + routed


def _active(a: Arch, total: int, routed: int, lookups: int) -> int:
    """What a token passes through: of a mixture neither idle experts nor tables looked up."""
    used = total - routed - lookups
    return used + routed * a.moe.used // a.moe.experts if a.moe else total


def _sum(a: Arch, terms: Terms) -> int:
    return sum(term(a) for term in terms)


LAYERS = NAMES["layers"]
_DECODER_LAYERS = NAMES["decoder layers"]
_DECODER_HEADS = NAMES["decoder heads"]
"""Of a model with an encoder the other names mean the encoder's."""
_HEADS = NAMES["heads"]
_MAX_HEADS = 100_000


def read_text(keys: Keys, model_type: str, family: Family, *, tied: bool) -> Arch:
    """Read and check the sizes of one text model.

    The switch defaults of the family must already stand behind ``keys``.

    Raises:
        SourceFileError: A size is missing, of a wrong type or impossible.
    """
    hidden = keys.whole(*HIDDEN)
    both = family.role == "encoder-decoder"
    named = (*_DECODER_HEADS, *_HEADS) if both else _HEADS
    heads = keys.most_of("num_query_heads", *named, most=_MAX_HEADS) if family.attends else 0
    kv_heads = family.read_kv_heads(keys, heads) if family.attends else 0
    _check_heads(keys, heads, kv_heads)
    layers: tuple[str, ...] = (*_DECODER_LAYERS, *LAYERS) if both else LAYERS
    if not family.attends and keys.stated("num_blocks"):
        layers = ("num_blocks", *LAYERS)  # xLSTM builds as many as it states blocks
    bare = Arch(
        keys=keys,
        family=model_type,
        hidden=hidden,
        layers=_layers(keys, layers),
        vocab=keys.whole("vocab_size"),
        heads=heads,
        kv_heads=kv_heads,
        head_dim=_head_dim(keys, hidden, heads),
        intermediate=family.read_width(keys, hidden),
        tied=tied,
    )
    return _with_layers(bare, family)


def _layers(keys: Keys, names: tuple[str, ...]) -> int:
    """As stated, else as many as are listed."""
    listed = keys.stated("layers_block_type", "layer_types")
    if isinstance(listed, list | tuple) and not any(name in keys.data for name in names):
        return len(listed) or keys.whole(*names, most=MAX_LAYERS)
    return keys.whole(*names, most=MAX_LAYERS)


def _with_layers(bare: Arch, family: Family) -> Arch:
    blocks = replace(bare, mla=family.mla(bare), moe=family.moe(bare))
    kinds = family.kinds(blocks)
    recurrent = family.recurrent(blocks) if set(kinds) & {"R", "H"} else None
    ffn = family.ffn_kinds(blocks)
    whole = replace(
        blocks,
        kinds=kinds,
        ffn_kinds=ffn,
        recurrent=recurrent,
        window=family.window(blocks),
        moe=blocks.moe if "E" in ffn else None,
    )
    _check_blocks(whole, family)
    return whole


def _check_blocks(a: Arch, family: Family) -> None:
    if "E" in a.ffn_kinds and a.moe is None:
        raise a.keys.error("num_experts is missing, so the model cannot be sized.")
    if "D" in a.ffn_kinds and not a.intermediate and family.dense:
        raise a.keys.error("intermediate_size is missing, so the model cannot be sized.")
    if set(a.kinds) & {"S", "C"} and not a.window:
        raise a.keys.error("sliding_window is missing, so the cache of its layers is unknown.")


def _check_heads(keys: Keys, heads: int, kv_heads: int) -> None:
    if heads and (kv_heads > heads or heads % kv_heads):
        text = f"num_key_value_heads is {kv_heads}, which does not divide the {heads}"
        raise keys.error(f"{text} attention heads.")


def _head_dim(keys: Keys, hidden: int, heads: int) -> int:
    if not heads:
        return 0
    stated = keys.maybe("head_dim", "attention_head_dim", "d_kv")
    if stated is None and hidden < heads:
        raise keys.error(f"hidden_size {hidden} is smaller than its {heads} attention heads.")
    return stated or hidden // heads


_CONTEXT = NAMES["context"]
_LONGEST_CONTEXT = 10**10
_MTP_KEYS = NAMES["drafting layers"]
_MOST_MTP_LAYERS = 16
_SPEAKS = re.compile("LM(?!Roberta)|ConditionalGeneration|ChatModel|MiniCPMV|BlockDiffusion")
_TIES = "tie_word_embeddings"
_BOTH_WAYS = "use_bidirectional_attention"
"""A decoder that reads a text in one piece (EmbeddingGemma), as an encoder does."""


def read_config(config: Mapping[str, object], shown: str, *, whole: bool = True) -> Shape:
    """Read the content of a config.json, or the ``config`` of a knowledge record.

    With ``whole`` the file is as its class saved it, so that an absent key has the default of that
    class in transformers; without, it is a choice of its keys.

    Raises:
        SourceFileError: A key is missing, wrong or impossible, or the architecture is not
            one that advisor can size.
    """
    outer = Keys(config, shown)
    model_type = _model_type(outer)
    wrapper = WRAPPERS.get(f"{model_type} {outer.stated('version')}") or WRAPPERS.get(model_type)
    nested = text_part(outer, model_type, wrapper, whole=whole)
    text = nested or outer
    speaks = nested is None and outer.stated("thinker_config")
    if speaks or (nested is not None and wrapper is None):
        raise _unknown(outer, model_type, text.word("model_type") or model_type)
    text_type = _text_type(text, outer, model_type, wrapper)
    family = FAMILIES.get(family_of(text_type))
    if family is None:
        raise _unknown(outer, model_type, text_type)
    if whole:
        outer, text = with_class_defaults(outer, text, model_type, text_type)
    arch = _read(outer, text, family_of(text_type), family, wrapper)
    shape = describe(outer, arch, family, model_type, wrapper)
    return replace(shape, doubts=_doubts(outer, text, text_type, shape)) if whole else shape


def _doubts(outer: Keys, text: Keys, text_type: str, shape: Shape) -> tuple[str, ...]:
    """What was not read, or not stated, of a file that should say all."""
    other = _head(outer) is None and shape.counts is not None
    said = ("Approximate: what its class has in place of an output matrix is not counted.",) * other
    wrapped = [] if text is outer else [(outer, shape.outer_type)]
    return (*said, *doubts_of([*wrapped, (text, text_type)]), *assumed_of(text, shape))


def _model_type(outer: Keys) -> str:
    named = outer.word("model_type")
    if not named:
        raise outer.error(
            "model_type is missing, so the architecture is unknown; is this a model's config.json?"
        )
    return named


def _text_type(text: Keys, outer: Keys, model_type: str, wrapper: Wrapper | None) -> str:
    named = text.word("model_type") or (wrapper.text if wrapper else model_type)
    if wrapper and text is outer:
        named = wrapper.text
    return named


def _unknown(outer: Keys, model_type: str, text_type: str) -> Exception:
    known = sorted({*FAMILIES, *WRAPPERS})
    whole = f"'{model_type}'" if text_type == model_type else f"'{model_type}' ('{text_type}')"
    message = f"it is of architecture {whole}, which advisor cannot size yet."
    return outer.gap(message, did_you_mean(text_type, known))


def _read(outer: Keys, text: Keys, text_type: str, family: Family, wrapper: Wrapper | None) -> Arch:
    keys = text.with_defaults(family.defaults)
    if text is not outer:
        keys = keys.with_defaults(family.sizes)
    asked = _tied(outer, text, family, wrapper)
    tied = asked if family.ties_always is False else bool(family.ties_always)
    return read_text(keys, text_type, family, tied=tied)


def _tied(outer: Keys, text: Keys, family: Family, wrapper: Wrapper | None) -> bool:
    inner = _switch(text)
    stated = _switch(outer)
    of_class = outer.of_class.get(_TIES)
    if stated is None and isinstance(of_class, bool) and _TIES not in outer.data:
        return of_class
    if stated is None or (inner and wrapper and wrapper.text_may_tie):
        stated = inner
    if stated is None:
        return family.tied or bool(wrapper and wrapper.tied)
    return stated


def _switch(keys: Keys) -> bool | None:
    stated = keys.stated(_TIES)
    return None if stated is None else keys.flag(_TIES)


def describe(
    outer: Keys, a: Arch, family: Family, model_type: str, wrapper: Wrapper | None
) -> Shape:
    """Put what was read of a model together."""
    vision = vision_part(outer, model_type)
    by_layer = family.kv_heads_by_layer(a) if family.kv_heads_by_layer else None
    return Shape(
        model_type=a.family,
        layers=a.layers,
        hidden=a.hidden,
        vocab=a.vocab,
        heads=a.heads,
        kv_heads=a.kv_heads,
        head_dim=a.head_dim,
        intermediate=a.intermediate,
        tied=a.tied,
        layer_kinds=a.kinds,
        ffn_kinds=a.ffn_kinds,
        window=a.window if set(a.kinds) & {"S", "C"} else None,
        trained_context=_trained_context(a.keys, outer),
        mla=a.mla,
        moe=a.moe,
        recurrent=a.recurrent,
        kv_heads_by_layer=by_layer,
        head_groups=family.head_groups(a) if family.head_groups else None,
        cells=family.cells(a) if family.cells else None,
        outer_type=model_type if wrapper else "",
        dtype=_dtype(outer, a.keys),
        quantization=_quantization(outer, a.keys),
        config=a.keys.data,
        vision_config=vision.data if vision else None,
        counts=_counts(outer, a, family, wrapper, vision),
        lookup=_sum(a, family.lookups),
        role="encoder" if a.keys.data.get(_BOTH_WAYS) is True else family.role,
        encoder_positions=family.encoder_positions(a) if family.encoder_positions else None,
        mtp_layers=_mtp_layers(a.keys),
        gated=family.gated,
        blocks=family.stored().blocks,
        windows=family.stored().windows,
    )


def _mtp_layers(text: Keys) -> int:
    """Layers that draft, by the key of DeepSeek and its followers or by that of Qwen3.5."""
    found = (text.data.get(name) for name in _MTP_KEYS)
    return next((n for n in found if isinstance(n, int) and 0 < n <= _MOST_MTP_LAYERS), 0)


def _trained_context(text: Keys, outer: Keys) -> int | None:
    """Only what the file states; a class default says nothing about this model."""
    for keys in (text, outer):
        if keys.stated(*_CONTEXT) is not None:
            return keys.maybe(*_CONTEXT, least=1, most=_LONGEST_CONTEXT)
    return None


def _counts(
    outer: Keys, a: Arch, family: Family, wrapper: Wrapper | None, vision: Keys | None
) -> Counts | None:
    if _uncounted(a, family):
        return None
    head = _head(outer)
    tower: int | None = 0
    if vision is not None:
        tower = count_vision(outer, vision, wrapper, a) if wrapper else None
    unheard = outer.stated("audio_config", "speech_config") and not (wrapper and wrapper.hears)
    if tower is None or unheard:
        return None
    return count(a, family, tower, output=bool(head))


def _uncounted(a: Arch, family: Family) -> bool:
    if any(a.keys.flag(name) for name in family.unsupported):
        return True
    return family.uncounted is not None and bool(family.uncounted(a))


def _head(outer: Keys) -> bool | None:
    """Whether the class named by the file has an output matrix; None for other heads."""
    names = [f"{name}" for name in outer.items("architectures") or ()]
    if not names or any(_SPEAKS.search(name) for name in names):
        return True
    return False if names[0].endswith("Model") else None


def _dtype(outer: Keys, text: Keys) -> str | None:
    for keys in (outer, text):
        for name in ("dtype", "torch_dtype"):
            named = keys.stated(name)
            if isinstance(named, str):
                return named
    return None


def _quantization(outer: Keys, text: Keys) -> Mapping[str, object] | None:
    names = ("quantization_config", "compression_config", "quantization")
    section = outer.section(*names) or text.section(*names)
    experts = outer.word(EXPERTS) or text.word(EXPERTS)
    return {**section.data, **({EXPERTS: experts} if experts else {})} if section else None
