"""Reading the sizes of a text model from its keys."""

from __future__ import annotations

from msgspec.structs import replace

from advisor.models.architecture import Arch, Family
from advisor.models.config_keys import MAX_LAYERS, Keys

_HIDDEN = ("hidden_size", "d_model", "n_embd", "dim")
_LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "decoder_layers")
_T5_LAYERS = ("num_decoder_layers", "num_layers")
_HEADS = (
    "num_attention_heads",
    "n_head",
    "n_heads",
    "num_heads",
    "attention_heads",
    "decoder_attention_heads",
)
_MAX_HEADS = 100_000


def read_text(keys: Keys, model_type: str, family: Family, *, tied: bool) -> Arch:
    """Read and check the sizes of one text model.

    Args:
        keys: The text part of a config.
        model_type: Its family name, for messages and rules that need it.
        family: Its table entry; its switch defaults must already stand behind ``keys``.
        tied: Whether embedding and output share their matrix.

    Raises:
        SourceFileError: A size is missing, of a wrong type or impossible.
    """
    hidden = keys.whole(*_HIDDEN)
    heads = keys.whole(*_HEADS, most=_MAX_HEADS) if family.attends else 0
    kv_heads = family.read_kv_heads(keys, heads) if family.attends else 0
    _check_heads(keys, heads, kv_heads)
    bare = Arch(
        keys=keys,
        family=model_type,
        hidden=hidden,
        layers=keys.whole(*(_T5_LAYERS if model_type == "t5" else _LAYERS), most=MAX_LAYERS),
        vocab=keys.whole("vocab_size"),
        heads=heads,
        kv_heads=kv_heads,
        head_dim=_head_dim(keys, hidden, heads),
        intermediate=family.read_width(keys, hidden),
        tied=tied,
    )
    return _with_layers(bare, family)


def _with_layers(bare: Arch, family: Family) -> Arch:
    blocks = replace(bare, mla=family.mla(bare), moe=family.moe(bare))
    kinds = family.kinds(blocks)
    recurrent = family.recurrent(blocks) if set(kinds) & {"R", "H"} else None
    ffn = family.ffn_kinds(blocks)
    whole = replace(
        blocks, kinds=kinds, ffn_kinds=ffn, recurrent=recurrent, window=family.window(blocks)
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
    stated = keys.maybe("head_dim", "attention_head_dim", "d_kv", least=1)
    if stated is None and hidden < heads:
        raise keys.error(f"hidden_size {hidden} is smaller than its {heads} attention heads.")
    return stated or hidden // heads
