"""Shapes that follow from the number of parameters alone, where all widths hang on one."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from advisor.errors import UserError
from advisor.models.architecture import stated_width
from advisor.models.architectures import FAMILIES, family_of
from advisor.models.config import read_config
from advisor.models.shape import Shape
from advisor.reading.public_config import plain_config
from advisor.reading.public_list import PublicModel

_HEAD: Final = 64
"""Width of a head where their number is not stated; with as many key-value heads the cache is the
same whatever it is."""
_WIDEST: Final = 8192
_MOST_LAYERS: Final = 128
_WIDTHS_PER_LAYER: Final = 64
"""So many elements wide for each layer: what makes the most cache of all models known here."""
MOST_KNOWN: Final = "models of as many parameters"
_DIVISIBLE: Final = 64
"""Heads of such a model: as many as any number of cards divides."""
_BLOCK: Final = 12
"""Squares of the hidden width in a plain block: four in attention, eight behind it."""
_MASKED: Final = frozenset({"gpt2", "gpt_neox", "gptj"})


def solved(public: PublicModel) -> PublicModel | None:
    """Find the layers and the width that make exactly the stated parameters; None: not just one.

    Only for architectures whose feed-forward width follows from the hidden one (GPT-2, BLOOM).
    For every width the parameters grow by the same for each layer.
    """
    family = FAMILIES.get(family_of(public.architecture))
    if family is None or family.read_width is stated_width or not public.vocab_size:
        return None
    found = [
        _sized(public, layers, hidden)
        for hidden in range(_HEAD, _WIDEST + 1, _HEAD)
        for layers in _layers(public, hidden)
    ]
    return found[0] if len(found) == 1 else None


def stored_masks(shape: Shape) -> int:
    """Count the causal masks that checkpoints of some classes hold beside the parameters."""
    if shape.model_type not in _MASKED:
        return 0
    return shape.layers * (shape.trained_context or 0) ** 2


def _layers(public: PublicModel, hidden: int) -> set[int]:
    """Give the numbers of layers that fit, with stored masks or without."""
    counted = [_counted(_sized(public, layers, hidden)) for layers in (1, 2)]
    if None in counted:
        return set()
    (one, mask), (two, _) = (pair for pair in counted if pair)
    beside = (public.parameters_raw or 0) - (2 * one - two)
    fitting = (divmod(beside, two - one + more) for more in {0, mask})
    return {layers for layers, rest in fitting if rest == 0 and 1 <= layers <= _MOST_LAYERS}


def _counted(public: PublicModel) -> tuple[int, int] | None:
    try:
        shape = read_config(plain_config(public, tied=None), public.hf_id, whole=False)
    except UserError:
        return None
    return (shape.counts.total, stored_masks(shape)) if shape.counts else None


def _sized(public: PublicModel, layers: int, hidden: int) -> PublicModel:
    heads = public.num_attention_heads or hidden // _HEAD
    return replace(public, num_hidden_layers=layers, hidden_size=hidden, num_attention_heads=heads)


def attending(public: PublicModel) -> Shape:
    """Give the sizes that the list states, with full attention in every layer; at most that."""
    layers, heads = public.num_hidden_layers or 1, public.num_attention_heads or 1
    hidden = public.hidden_size or 1
    return Shape(
        model_type=public.architecture,
        layers=layers,
        hidden=hidden,
        vocab=public.vocab_size or 0,
        heads=heads,
        kv_heads=public.num_key_value_heads or heads,
        head_dim=public.head_dim or hidden // heads,
        intermediate=public.moe_intermediate_size or 0,
        tied=False,
        layer_kinds="F" * layers,
        ffn_kinds="D" * layers,
        described=False,
        cache_loose=1.0,
    )


def most_caching(public: PublicModel) -> Shape:
    """Give plain blocks of as many parameters as the list counts, as deep as models are.

    None of the models known here caches more for its size; a test holds it.
    """
    layers, stated = public.num_hidden_layers, public.parameters_raw or 0
    hidden = public.hidden_size or round(
        (stated / _BLOCK / layers) ** (1 / 2)
        if layers
        else (_WIDTHS_PER_LAYER * stated / _BLOCK) ** (1 / 3)
    )
    width = -(-hidden // _DIVISIBLE)
    return attending(
        replace(
            public,
            num_hidden_layers=layers or max(1, round(hidden / _WIDTHS_PER_LAYER)),
            hidden_size=width * _DIVISIBLE,
            num_attention_heads=_DIVISIBLE,
            num_key_value_heads=_DIVISIBLE,
            head_dim=width,
        )
    )
