"""Any config.json: sized by the tables where they have its architecture, else estimated."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal

from msgspec.structs import replace

from advisor.errors import NotDescribedError, Source, SourceFileError, did_you_mean
from advisor.models.architecture import (
    Arch,
    Family,
    Gguf,
    Term,
    gated,
    kv_heads_or_all,
    projections,
)
from advisor.models.architectures import (
    HIDDEN,
    TEXT_PARTS,
    built_factor,
    class_defaults,
    doubts_of,
    family_of,
    is_known,
    keeps_nothing,
    part_defaults,
    parts_estimated,
    type_of_class,
)
from advisor.models.architectures.tables import FAMILIES, WRAPPERS
from advisor.models.config import LAYERS, count, describe, read_config, read_text
from advisor.models.config_keys import Keys, read_json_object
from advisor.models.layer_patterns import experts_after, sparse_steps, stated_window
from advisor.models.parameter_terms import (
    EXPERT_WIDTH,
    EXPERTS,
    EXPERTS_USED,
    SHARED,
    all_bias,
    experts,
    gated_expert,
    latent_attention,
    latents,
    router,
    shared,
    up_down,
)
from advisor.models.recurrent import (
    deltanet,
    deltanet_terms,
    kimi_delta,
    kimi_delta_terms,
    mamba,
    mamba2,
    mamba2_terms,
    mamba_terms,
    short_conv,
    short_conv_terms,
)
from advisor.models.shape import UNKNOWN, Mla, Moe, Recurrent, Shape

Role = Literal["decoder", "encoder", "encoder-decoder"]
SPREAD: Final = 0.35
_LITTLE: Final = 0.01
"""Share of a model up to which what is only estimated leaves its size nearly sure."""
_LITTLE_SPREAD: Final = 0.1
_HEADS: Final = ("num_attention_heads", "attention_heads", "n_head", "n_heads", "num_heads")
_LATENT: Final = ("kv_lora_rank", "qk_rope_head_dim", "qk_nope_head_dim", "v_head_dim")
_BIASES: Final = ("attention_bias", "qkv_bias", "use_bias", "bias")
_LISTS: Final = ("layer_types", "layers_block_type", "block_types")
_STATES: Final = {
    "linear_num_key_heads": deltanet,
    "linear_attn_config": kimi_delta,
    "mamba_num_heads": mamba2,
    "mamba_n_heads": mamba2,
    "mamba_d_state": mamba,
    "conv_L_cache": short_conv,
    "n_groups": mamba2,
    "state_size": mamba,
}
_COUNTS: Final[Mapping[str, Term]] = {
    "deltanet": deltanet_terms,
    "kimi-delta": kimi_delta_terms,
    "mamba2": mamba2_terms,
    "mamba": mamba_terms,
    "conv": short_conv_terms,
}
_USUAL_MATRICES: Final = 6
_UNDESCRIBED: Final = Recurrent("conv", 0, 0)
_KINDS: Final = (
    ("S", re.compile("sliding|local|swa|window")),
    ("C", re.compile("chunk")),
    ("R", re.compile("linear|mamba|conv|recur|ssm|delta|rwkv|gla|kda|lstm|lightning|hyena")),
    ("N", re.compile("mlp|moe|ffn|dense")),
)
_UNGATED: Final = re.compile(r"^(gelu|relu|gelu_new|gelu_fast|relu2)$")
_LAYER_NORM: Final = ("layer_norm_eps", "layer_norm_epsilon", "norm_epsilon")
_ENCODES: Final = re.compile("MaskedLM|SequenceClassification|TokenClassification")
_SPEAKS: Final = re.compile("CausalLM|ConditionalGeneration|LMHead")


def described(keys: Keys, model_type: str) -> Family:
    """Make a family of what the keys of a text model say."""
    named = " ".join(f"{name}" for name in keys.items("architectures") or ())
    both = keys.flag("is_encoder_decoder") or keys.stated("decoder_layers") is not None
    bert = "bert" in model_type and not _SPEAKS.search(named)
    encodes = bool(_ENCODES.search(named)) or bert or keeps_nothing(model_type)
    role: Role = "encoder-decoder" if both else "encoder" if encodes else "decoder"
    plain = _is_plain(keys) or (encodes and keys.stated("hidden_act") is None)
    return Family(
        attention=(_mixing,),
        mixers={"N": (_mixing,)} if role == "encoder" else {"N": (), "R": (_recurring,)},
        dense=(up_down if plain else gated,),
        experts=(router, shared),
        expert=gated_expert,
        moe=_moe,
        mla=_latents,
        recurrent=_state,
        extras=(_encoder,) if both else (),
        kinds=_kinds,
        ffn_kinds=_blocks,
        window=stated_window,
        attends=keys.stated(*_HEADS) is not None,
        read_kv_heads=_kv_heads,
        read_width=_width,
        tied=role == "encoder",
        defaults={"vocab_size": 1} if role == "encoder" else {},  # what hears has no vocabulary
        role=role,
        encoder_positions=_as_long if both else None,
        gated=not plain,
        gguf=(Gguf(""),),
    )


def _is_plain(keys: Keys) -> bool:
    """Whether feed-forward blocks have no gate: as with LayerNorms and a GELU or ReLU."""
    act = keys.stated("hidden_act", "activation_function", "hidden_activation")
    if keys.stated(*_LAYER_NORM) is not None and keys.stated("rms_norm_eps") is None:
        return act not in {"silu", "swiglu", "swish"}
    return act is not None and _UNGATED.match(f"{act}") is not None


def cache_loose(a: Arch) -> float:
    """Give the share of the cache that may not be there: all where keys leave it open."""
    open_window = a.window is not None and not set(a.kinds) & {"S", "C"}
    return 1.0 if open_window or a.recurrent is _UNDESCRIBED else 0.0


def _mixing(a: Arch) -> int:
    biased = all_bias(a) if any(a.keys.stated(name) is True for name in _BIASES) else 0
    return (latent_attention(a) if a.mla else projections(a)) + biased


def _recurring(a: Arch) -> int:
    """A layer with a state; one that nothing describes is taken for Mamba's usual widths."""
    count = _COUNTS.get(a.recurrent.kind) if a.recurrent and a.recurrent.inner else None
    return count(a) if count else _USUAL_MATRICES * a.hidden * a.hidden


def _latents(a: Arch) -> Mla | None:
    return latents(a) if all(a.keys.maybe(name) for name in _LATENT) else None


def _moe(a: Arch) -> Moe | None:
    """Routed experts, shared ones by their number or their width."""
    if a.keys.stated("is_moe") is False:
        return None
    try:
        found = experts(shared="width")(a)
        return found if found is None or found.shared_width else experts(shared="count")(a)
    except SourceFileError:
        count, used = a.keys.uniform(*EXPERTS), a.keys.uniform(*EXPERTS_USED)
        if count and (kinds := _kinds_of_experts(a)):
            beside = kinds[0] * (a.keys.maybe(*SHARED) or 0)
            return Moe(count, used or count, sum(kinds), beside)
        width = a.keys.uniform(*EXPERT_WIDTH)
        return Moe(count, count, width) if count and width and used is None else None


def _kinds_of_experts(a: Arch) -> Sequence[int]:
    """Give the widths of experts for words and for pictures (ERNIE), which no list by layer is."""
    _, stated = a.keys.find(*EXPERT_WIDTH)
    listed = stated if isinstance(stated, list | tuple) and len(stated) != a.layers else ()
    return [one for one in listed if type(one) is int]


def used_unknown(keys: Keys, moe: Moe | None) -> bool:
    """Whether a config tells how many experts there are, and not how many a token uses."""
    return moe is not None and moe.experts > 1 and keys.uniform(*EXPERTS_USED) is None


def _state(a: Arch) -> Recurrent:
    for key, reader in _STATES.items():
        if a.keys.stated(key) is not None:
            try:
                return reader(a)
            except SourceFileError:
                break
    return _UNDESCRIBED


def _kinds(a: Arch) -> str:
    listed = a.keys.stated(*_LISTS)
    if not a.heads:
        return "R" * a.layers
    if not isinstance(listed, list | tuple) or len(listed) != a.layers:
        return "F" * a.layers
    letters = "".join(_letter(f"{word}") for word in listed)
    return letters if stated_window(a) else letters.replace("S", "F").replace("C", "F")


def _letter(word: str) -> str:
    return next((letter for letter, pattern in _KINDS if pattern.search(word)), "F")


def _blocks(a: Arch) -> str:
    if a.moe is None:
        return ("D" if a.intermediate else "-") * a.layers
    steps = a.keys.stated("decoder_sparse_step", "mlp_only_layers") is not None
    found = (sparse_steps if steps else experts_after("first_k_dense_replace"))(a)
    return found if a.intermediate else found.replace("D", "E")


def _kv_heads(keys: Keys, heads: int) -> int:
    """As stated where that can be, else all heads: the most there may be."""
    _, stated = keys.find("num_key_value_heads", "num_kv_heads", "n_head_kv")
    if isinstance(stated, list | tuple):
        stated = max((n for n in stated if type(n) is int), default=0)
    whole = type(stated) is int and 0 < stated <= heads and heads % stated == 0
    return kv_heads_or_all(Keys({"n_head_kv": stated if whole else None}, ""), heads)


def _width(keys: Keys, hidden: int) -> int:
    _, stated = keys.find(
        "intermediate_size", "ffn_dim", "ffn_hidden_size", "n_inner", "d_ff", "decoder_ffn_dim"
    )
    if isinstance(stated, list | tuple):
        whole = [n for n in stated if type(n) is int]
        return sum(whole) // len(whole) if whole else 4 * hidden
    return stated if type(stated) is int and stated > 0 else 4 * hidden


def _encoder(a: Arch) -> int:
    """The encoder, and what the decoder needs to read it; a decoder alone keeps the latter."""
    layers = a.keys.maybe("encoder_layers", "num_encoder_layers", "num_layers") or a.layers
    width = a.keys.maybe("encoder_ffn_dim", "speech_encoder_intermediate_size") or a.intermediate
    named = a.keys.items("architectures") or ()
    alone = bool(named) and all(f"{name}".endswith("ForCausalLM") for name in named)
    beside = 0 if alone else layers * (_mixing(a) + 2 * a.hidden * width)
    return beside + a.layers * _mixing(a)


def _as_long(_: Arch) -> int:
    return 0


def sections(config: Mapping[str, object]) -> Iterator[str]:
    """Give the names of the parts that may hold the text model, that with most words first."""
    words = {}
    for name, part in config.items():
        inner = [part.get(one) for one in TEXT_PARTS] if isinstance(part, Mapping) else []
        text = next((one for one in inner if isinstance(one, Mapping)), part)
        if isinstance(text, Mapping) and text.get("hidden_size"):
            words[name] = text.get("vocab_size")
    counted = ((n, name) for name, n in words.items() if type(n) is int and n)
    yield from (name for _, name in sorted(counted, key=lambda pair: -pair[0]))


def load_config(path: Path) -> Shape:
    """Read a config.json, or the one in a folder.

    Raises:
        SourceFileError: It is missing, unreadable, not JSON, or lacks a size.
    """
    file = path / "config.json" if path.is_dir() else path
    if path.is_dir() and not file.exists():
        raise SourceFileError(
            "no model lies in this folder",
            source=Source(str(path)),
            hint="Give a folder with a config.json, a .gguf or a .safetensors file.",
        )
    return read_any(read_json_object(file), str(file))


def read_any(config: Mapping[str, object], shown: str) -> Shape:
    """Read a config of any architecture; what is estimated stands in the doubts of the shape.

    Raises:
        SourceFileError: A size is missing, wrong or impossible.
    """
    named = config.get("model_type")
    if not (named and is_known(f"{named}")) and (known := type_of_class(config)):
        shape = read_any({**config, "model_type": known}, shown)
        said = f"Its model_type {named!r} is not known: read as '{known}', by the class it names."
        return replace(shape, doubts=(*shape.doubts, said))
    if not named and config.get("architectures"):
        return _estimated(config, shown)
    try:
        shape = read_config(config, shown)
    except NotDescribedError:
        return _estimated(config, shown)
    if shape.counts is not None:
        return shape
    named = shape.outer_type or shape.model_type
    why = (
        f"Approximate: no formula counts all of architecture '{named}'; its parameters are "
        "estimated from its config."
    )
    guess = _estimated(config, shown)
    doubts = (*guess.doubts[1:], why)
    return replace(shape, counts=guess.counts, spread=guess.spread, doubts=doubts)


def _estimated(config: Mapping[str, object], shown: str) -> Shape:
    outer = Keys(config, shown)
    model_type = outer.word("model_type") or UNKNOWN
    text, text_type = _text(outer, model_type)
    nested = family_of(text_type) in FAMILIES and text is not outer
    known = _known_text(text, text_type, shown) if nested else None
    shape = known or _described(text, text_type)
    factor = built_factor(model_type)
    beside = round(factor * parts_estimated(outer, text, model_type))
    counts = shape.counts and shape.counts.scaled(1 if known else factor).plus(beside)
    little = known and counts and 0 < beside < _LITTLE * counts.total
    return replace(
        shape,
        outer_type=model_type if text is not outer else "",
        counts=counts,
        spread=_LITTLE_SPREAD if little else SPREAD,
        described=known is not None,
        outer_described=False,
        doubts=(_said(model_type, text_type if known else ""), *shape.doubts),
        quantization=shape.quantization or _section(config, "quantization_config"),
        dtype=shape.dtype or _word(config, "dtype") or _word(config, "torch_dtype"),
    )


def _text(outer: Keys, model_type: str) -> tuple[Keys, str]:
    """Give the part that holds the text model, and its architecture."""
    found = outer.section(*TEXT_PARTS)
    made = part_defaults(model_type, TEXT_PARTS[0])
    whole = outer.stated(*LAYERS) is not None
    if found is None and made and not whole:
        found = outer.part(TEXT_PARTS[0], made)
    elif found is None and not (whole and outer.stated(*HIDDEN) is not None):
        inside = outer.section(next(sections(outer.data), ""))
        found = (inside and inside.section(*TEXT_PARTS)) or inside
    text = found or outer
    usual = made.get("model_type") if found else None
    named = text.word("model_type") or usual or model_type
    return text.with_class({**class_defaults(f"{named}"), **text.of_class}), f"{named}"


def _known_text(text: Keys, text_type: str, shown: str) -> Shape | None:
    try:
        shape = read_config({**(text.data or text.of_class), "model_type": text_type}, shown)
    except NotDescribedError:
        return None
    return shape if shape.counts else None


def _described(text: Keys, text_type: str) -> Shape:
    family = described(text, text_type)
    tied = text.flag("tie_word_embeddings", default=family.tied)
    arch = read_text(text.with_defaults(family.defaults), text_type, family, tied=tied)
    shape = describe(text, arch, family, text_type, None)
    unread = doubts_of([(text, text_type)])
    loose = 1.0 if unread else cache_loose(arch)
    counts = count(arch, family, 0)
    unknown = used_unknown(text, shape.moe)
    return replace(shape, counts=counts, cache_loose=loose, doubts=unread, reads_unknown=unknown)


def _said(model_type: str, text_type: str) -> str:
    if text_type:
        return (
            f"Approximate: architecture '{model_type}' not described; its text model is sized as "
            f"'{text_type}', its other parts are estimated."
        )
    near = did_you_mean(model_type, sorted({*FAMILIES, *WRAPPERS} - {model_type}))
    return (
        f"Approximate: architecture '{model_type}' not described: weights and cache estimated from "
        f"its config. {near}".strip()
    )


def _section(config: Mapping[str, object], name: str) -> Mapping[str, object] | None:
    found = config.get(name)
    return found if isinstance(found, Mapping) else None


def _word(config: Mapping[str, object], name: str) -> str | None:
    found = config.get(name)
    return found if isinstance(found, str) else None
