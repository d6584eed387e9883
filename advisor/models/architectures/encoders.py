"""Encoders for embeddings, and speech or text encoder-decoders."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from advisor.models.architecture import Arch, projections
from advisor.models.config_keys import Keys
from advisor.models.parameter_terms import all_bias, up_down

_SPEAKS: Final = re.compile("MaskedLM|LMHead|CausalLM")


def pooler(a: Arch) -> int:
    """The pooler, or instead of it the head of a masked language model."""
    masked = any(_SPEAKS.search(f"{name}") for name in a.keys.items("architectures") or ())
    bias = a.vocab if a.tied else 2 * a.vocab
    return a.hidden * (a.hidden + 1) + (2 * a.hidden + bias if masked else 0)


def whisper_width(keys: Keys, hidden: int) -> int:
    """The width of decoder blocks; four times the hidden one when absent."""
    return keys.maybe("decoder_ffn_dim", "intermediate_size", least=1) or 4 * hidden


def t5_width(keys: Keys, _: int) -> int:
    """The width of a block, which must be stated."""
    return keys.whole("d_ff")


def t5_ffn(a: Arch) -> int:
    """With a gate where the file says so."""
    gated_kind = (a.keys.word("feed_forward_proj") or "relu").startswith("gated")
    return (3 if gated_kind else 2) * a.hidden * a.intermediate


def decoder_alone(a: Arch) -> str:
    """Why a decoder without its encoder has no exact count."""
    named = [f"{name}" for name in a.keys.items("architectures") or ()]
    return "its decoder alone is not counted" if "ForCausalLM" in " ".join(named) else ""


def _narrow(a: Arch) -> int:
    """The width of the tables of words, places and kinds."""
    return a.keys.maybe("embedding_size", least=1) or a.hidden


def narrow_places(a: Arch) -> int:
    """Places, kinds and their norm, and what brings them to the width of the layers."""
    rows = a.keys.whole("max_position_embeddings") + a.keys.number("type_vocab_size", 2) + 2
    width = _narrow(a)
    return rows * width + (0 if width == a.hidden else a.hidden * (width + 1))


def narrow_speaks(a: Arch) -> int:
    """The head of a masked language model: a layer, a norm, and the bias of the words."""
    masked = any(_SPEAKS.search(f"{name}") for name in a.keys.items("architectures") or ())
    return (a.hidden + 3) * _narrow(a) + a.vocab if masked else 0


def convolved_attention(a: Arch) -> int:
    """Half of the heads' width, beside a convolution whose kernel follows from the input."""
    heads = max(a.heads // a.keys.number("head_ratio", 2, least=1), 1)
    kernel = a.keys.number("conv_kernel_size", 9, least=1)
    inner = heads * (a.hidden // heads // 2)
    each = (a.hidden + 1) * inner
    convolution = a.hidden * kernel + (inner + 1) * heads * kernel
    return 5 * each + convolution + a.hidden * (a.hidden + 1)


def shared_block(a: Arch) -> int:
    """ALBERT's block, which every layer of a group works through: stored once, as if in the first.

    What brings the narrow words to the width of the block is there even where both are one.
    """
    width = a.intermediate
    block = projections(a) + all_bias(a) + up_down(a) + width + a.hidden + 4 * a.hidden
    groups = a.keys.number("num_hidden_groups", 1, least=1)
    mapped = a.hidden * (_narrow(a) + 1) if _narrow(a) == a.hidden else 0
    return groups * a.keys.number("inner_group_num", 1, least=1) * block + mapped


def speaks_or_pools(a: Arch) -> int:
    """The head of a masked language model, or a pooler."""
    return narrow_speaks(a) or a.hidden * (a.hidden + 1)


def _convolved(a: Arch) -> Sequence[int]:
    dims = a.keys.wholes("conv_dim") or (512,) * 7
    return dims[: a.keys.number("num_feat_extract_layers", len(dims), least=1)]


def unnormed(a: Arch) -> int:
    """HuBERT's projection of sound may go without its norm."""
    return 0 if a.keys.flag("feat_proj_layer_norm", default=True) else -2 * _convolved(a)[-1]


def listener(a: Arch) -> int:
    """Convolutions over the wave, their projection, and the one that stands for positions."""
    dims = _convolved(a)
    kernels = a.keys.wholes("conv_kernel") or (10, 3, 3, 3, 3, 2, 2)
    biased = a.keys.flag("conv_bias")
    waves = sum(
        out * (into * kernel + biased)
        for into, out, kernel in zip((1, *dims), dims, kernels, strict=False)
    )
    normed = dims if a.keys.word("feat_extract_norm") == "layer" else dims[:1]
    projection = 2 * dims[-1] + a.hidden * (dims[-1] + 1)
    groups = a.keys.number("num_conv_pos_embedding_groups", 16, least=1)
    kernel = a.keys.number("num_conv_pos_embeddings", 128, least=1)
    places = a.hidden * (a.hidden // groups) * kernel + a.hidden + kernel
    return waves + 2 * sum(normed) + projection + places


def masked_sound(a: Arch) -> int:
    """The vector that stands for masked sound, kept unless training masks none."""
    times = a.keys.find("mask_time_prob")[1], a.keys.find("mask_feature_prob")[1]
    return a.hidden if times[0] is None or any(times) else 0


def adapted(a: Arch) -> str:
    """Why a head or an adapter leaves the model without an exact count."""
    plain = all(f"{name}".endswith("Model") for name in a.keys.items("architectures") or ())
    alone = plain and not a.keys.maybe("adapter_attn_dim")
    return "" if alone else "its head, or what adapts it, is not counted"


def conformer(a: Arch) -> int:
    """Two feed-forward blocks, attention by distance and a convolution, each behind its norm."""
    width, kernel = a.intermediate, a.keys.number("conv_depthwise_kernel_size", 31, least=1)
    halves = 2 * (up_down(a) + width + a.hidden)
    near = a.keys.word("position_embeddings_type") in {None, "relative_key"}
    reach = sum(a.keys.number(f"{side}_max_position_embeddings", n) for side, n in _REACH)
    places = near * (reach + 1) * a.head_dim
    convolved = 3 * a.hidden**2 + a.hidden * (kernel + 4)
    return halves + projections(a) + all_bias(a) + places + convolved + 8 * a.hidden


_REACH: Final = (("left", 64), ("right", 8))


def sounding(_: Arch) -> str:
    """What of a model that speaks is not modelled."""
    return "its vocoder is not modelled"
