"""Models with multi-head latent attention; Kimi puts Kimi Delta Attention beside it.

Kimi Linear follows transformers 5.23.0. Of K3 transformers has no class: its parts are those that
readers of its config and file headers describe (``kimi-k3-layers`` in knowledge/sources.yaml).
"""

from __future__ import annotations

from typing import Final

from advisor.models.architecture import Arch
from advisor.models.parameter_terms import output_gate
from advisor.models.recurrent import kimi_delta_state
from advisor.models.shape import Recurrent


def _narrow(a: Arch) -> int:
    """The width at which routed experts of K3 run; 0 in Kimi Linear, whose experts have all."""
    return a.keys.maybe("routed_expert_hidden_size", least=1) or 0


def narrow_expert(a: Arch) -> int:
    """One routed expert, in the narrow stream where there is one."""
    return 3 * (_narrow(a) or a.hidden) * (a.moe.width if a.moe else 0)


def attention_gate(a: Arch) -> int:
    """K3 weighs what attention gives by a full matrix before the output."""
    return output_gate(a) if _narrow(a) else 0


def delta_gate(a: Arch) -> int:
    """The gate of Kimi Delta Attention is one matrix in K3, and two thin ones before."""
    r = a.recurrent
    if r is None or not _narrow(a):
        return 0
    return a.hidden * r.inner - (a.hidden + r.inner) * r.head_dim


def ling_delta(a: Arch) -> Recurrent:
    """Ling 3.0: Kimi Delta Attention with as many heads as the others, and whole gates."""
    heads = a.keys.whole("linear_num_heads", "num_attention_heads")
    kernel = a.keys.whole("linear_conv_kernel_dim", "short_conv_kernel_size")
    width = a.keys.whole("linear_head_dim", "head_dim")
    return kimi_delta_state(heads, width, kernel)


def whole_gates(a: Arch) -> int:
    """Gates of Kimi Delta Attention as whole matrices, not thin ones."""
    r = a.recurrent
    return 2 * (a.hidden * r.inner - (a.hidden + r.inner) * r.head_dim) if r else 0


def other_state(a: Arch) -> str:
    """Ling 2.5 has the same name, and states of another kind."""
    other = any(a.keys.stated(key) is not None for key in ("group_norm_size", "linear_silu"))
    return "its linear attention is not modelled" if other else ""


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


def grouped_attention(a: Arch) -> int:
    """DeepSeek V4: one key for all heads, the output in groups of low rank."""
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


def compressors(a: Arch) -> tuple[int, ...]:
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


def shared_expert_bias(a: Arch) -> int:
    """Biases of the shared experts, where there are any."""
    a.keys.stated("attention_bias")  # its class has none
    width = a.moe.shared_width if a.moe else 0
    return (a.hidden + 2 * width) * a.keys.flag("mlp_bias")


def compressed_cells(a: Arch) -> tuple[tuple[int, int], ...]:
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


def _listed(a: Arch, name: str) -> frozenset[int]:
    return frozenset(a.keys.wholes(name) or ())


def _shared_rates(a: Arch) -> tuple[int, ...]:
    """By layer: how many tokens it merges into the cache that later layers read too; 0: none."""
    rates, sources = a.keys.wholes("compress_ratios") or (), _listed(a, "kv_source_layer_ids")
    if len(rates) < a.layers or not sources:
        missing = "compress_ratios" if sources else "kv_source_layer_ids"
        raise a.keys.gap(f"{missing} is missing or too short.")
    return tuple(rates[layer] if layer in sources else 0 for layer in range(a.layers))


def shared_compressors(a: Arch) -> tuple[int, ...]:
    """What layers merge with, what they pick by, and what mixes looked up n-grams in."""
    heads, width = a.keys.whole("index_n_heads"), a.keys.whole("index_head_dim")
    picking = heads * (a.keys.whole("q_lora_rank") * width + a.hidden)
    picks, looks = _listed(a, "index_source_layer_ids"), _listed(a, "engram_layer_ids")
    columns = a.keys.number("engram_n_heads", 8) * (a.keys.number("engram_max_ngram_size", 4) - 1)
    streams = a.keys.whole("hc_mult")
    wide = columns * a.keys.number("engram_head_dim", 256) * (streams + 1) + 2 * streams
    return tuple(
        (rate and (min(rate, 2) * a.hidden + 1 + width) * a.head_dim + width)
        + (layer in picks and picking)
        + (layer in looks and wide * a.hidden)
        for layer, rate in enumerate(_shared_rates(a))
    )


def shared_cells(a: Arch) -> tuple[tuple[int, int], ...]:
    """As vLLM 0.33.0 keeps it: a window in each layer, merged tokens and index in few."""
    held = a.head_dim + a.keys.whole("index_head_dim")
    return tuple((rate and -(-held // rate), a.head_dim) for rate in _shared_rates(a))


def ngram_tables(a: Arch) -> int:
    """Rows of all tables of n-grams."""
    rows = sum(a.keys.wholes("engram_num_embeddings") or ())
    return rows * a.keys.number("engram_head_dim", 256)
