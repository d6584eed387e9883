"""DeepSeek V4: latent queries over one shared key and value, compressed behind a short window.

Every layer keeps the window as it is. What lies before it is merged: a few tokens to one entry,
with an index to pick from them (CSA), or many tokens to one (HCA). Source:
``modeling_deepseek_v4.py`` of transformers 5.23.0, checked on its meta device.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from advisor.models.architecture import Arch, Family, two_hidden
from advisor.models.layer_patterns import all_experts, always, stated_window
from advisor.models.parameter_terms import experts, gated_expert, router, shared

_CSA: Final = "compressed_sparse_attention"
_HCA: Final = "heavily_compressed_attention"
_RATES: Final = {_CSA: 4, _HCA: 128}
_BY_RATIO: Final = {0: "sliding_attention", 4: _CSA, 128: _HCA}


def _layers(a: Arch) -> tuple[str, ...]:
    """What each layer does with the tokens before its window."""
    stated = a.keys.items("layer_types")
    ratios = a.keys.wholes("compress_ratios") if stated is None else None
    if ratios is not None:
        stated = tuple(_BY_RATIO.get(ratio, f"compression by {ratio}") for ratio in ratios)
    if stated is None:
        turns = (_CSA if layer % 2 else _HCA for layer in range(a.layers - 2))
        stated = (_HCA, _HCA, *turns)
    found = tuple(f"{word}" for word in stated[: a.layers])
    strange = next((word for word in found if word not in {*_RATES, _BY_RATIO[0]}), None)
    if strange or len(found) != a.layers:
        said = f"names {strange!r}, which advisor cannot size yet" if strange else "is too short"
        raise a.keys.gap(f"layer_types {said}.")
    return found


def _rate(a: Arch, kind: str) -> int:
    rates = a.keys.section("compress_rates")
    own = "compress_rate_csa" if kind == _CSA else "compress_rate_hca"
    return (rates and rates.maybe(kind, least=1)) or a.keys.number(own, _RATES[kind], least=1)


def _attention(a: Arch) -> int:
    rank, groups = a.keys.whole("q_lora_rank"), a.keys.whole("o_groups")
    output = groups * a.keys.whole("o_lora_rank")
    query = rank * (a.hidden + 1 + a.query)
    return (
        query
        + a.hidden * a.head_dim
        + a.head_dim
        + a.heads
        + output * (a.query // groups + a.hidden)
    )


def _compressors(a: Arch) -> tuple[int, ...]:
    """What layers have besides to compress, and to pick from what is compressed."""
    by_kind = {kind: _compressor(a, kind) for kind in {*_layers(a)}}
    return tuple(by_kind[kind] for kind in _layers(a))


def _compressor(a: Arch, kind: str) -> int:
    if kind not in _RATES:
        return 0
    rate = _rate(a, kind)
    if kind == _HCA:
        return (2 * a.hidden + rate + 1) * a.head_dim
    heads, width = a.keys.whole("index_n_heads"), a.keys.whole("index_head_dim")
    both = (4 * a.hidden + 2 * rate + 1) * (a.head_dim + width)
    return both + heads * (a.keys.whole("q_lora_rank") * width + a.hidden)


def _streams(a: Arch) -> int:
    """The mixing of residual streams before and after both blocks of a layer."""
    n = a.keys.whole("hc_mult")
    return 2 * ((2 + n) * n * (n * a.hidden + 1) + 3)


def _stream_end(a: Arch) -> int:
    n = a.keys.whole("hc_mult")
    return n * (n * a.hidden + 1) + 1


def _cells(a: Arch) -> tuple[tuple[int, int], ...]:
    """Elements of every token, and of those in the window, by layer.

    The window holds the key that is the value too, and of HCA the tokens that wait to be merged.
    """
    index, width = a.keys.whole("index_head_dim"), a.head_dim
    by_kind = {
        _BY_RATIO[0]: (0, width),
        _CSA: (-(-(width + index) // _rate(a, _CSA)), width),
        _HCA: (-(-width // _rate(a, _HCA)), 3 * width),
    }
    return tuple(by_kind[kind] for kind in _layers(a))


COMPRESSED: Final[Mapping[str, Family]] = {
    "deepseek_v4": Family(
        attention=(_attention,),
        irregular=_compressors,
        experts=(router, shared),
        expert=gated_expert,
        moe=experts(shared="count"),
        norms=(two_hidden, _streams),
        extras=(_stream_end,),
        kinds=always("S"),
        cells=_cells,
        ffn_kinds=all_experts,
        window=stated_window,
        unsupported=("attention_bias", "mlp_bias"),
        defaults={
            "num_key_value_heads": 1,
            "head_dim": 512,
            "q_lora_rank": 1024,
            "o_groups": 8,
            "o_lora_rank": 1024,
            "index_n_heads": 64,
            "index_head_dim": 128,
            "n_shared_experts": 1,
            "hc_mult": 4,
            "sliding_window": 128,
        },
    )
}
