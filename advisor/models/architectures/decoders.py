"""Decoders, old ones with LayerNorm first: dense ones, mixtures of experts, and hybrids."""

from __future__ import annotations

from math import isqrt
from typing import Final

from msgspec.structs import replace

from advisor.models.architecture import Arch, Term, all_full
from advisor.models.config_keys import Keys
from advisor.models.layer_patterns import experts_after
from advisor.models.parameter_terms import experts, head_norms, wide_norms
from advisor.models.shape import Moe

# ---- with LayerNorm: GPT-2, OPT, Falcon and their relatives; Qwen 4 with its tables


def multi_query(keys: Keys, heads: int) -> int:
    """The class goes by the switch alone, whatever number of heads the file states."""
    return 1 if keys.flag("multi_query", default=True) else heads


def falcon_kv(keys: Keys, heads: int) -> int:
    """Falcon: as stated in new decoders, one or all in old ones."""
    stated = keys.maybe("num_kv_heads", "n_head_kv", "num_key_value_heads", least=1)
    if _new_falcon(keys, stated, heads):
        return stated or heads
    return 1 if keys.flag("multi_query", default=True) else heads


def _new_falcon(keys: Keys, kv_heads: int | None, heads: int) -> bool:
    grouped = kv_heads is not None and 1 < kv_heads < heads
    return keys.flag("new_decoder_architecture", default=grouped)


def falcon_norms(a: Arch) -> int:
    """Falcon: one or two, by how attention and feed-forward stand."""
    if _new_falcon(a.keys, a.kv_heads, a.heads):
        return 2 * a.hidden * a.keys.number("num_ln_in_parallel_attn", 2, least=1, most=2)
    return (2 if a.keys.flag("parallel_attn", default=True) else 4) * a.hidden


def opt_projection(a: Arch) -> int:
    """OPT: between the width of its words and that of its layers."""
    return 0 if _opt_width(a) == a.hidden else 2 * a.hidden * _opt_width(a)


def opt_norms(a: Arch) -> int:
    """OPT: two norms, or none that is learned."""
    return 4 * a.hidden if a.keys.flag("layer_norm_elementwise_affine", default=True) else 0


def opt_final(a: Arch) -> int:
    """OPT: the last norm, where it was not taken away."""
    last = a.keys.flag("do_layer_norm_before") and not a.keys.flag("_remove_final_layer_norm")
    return opt_norms(a) // 2 if last else 0


def _opt_width(a: Arch) -> int:
    return a.keys.maybe("word_embed_proj_dim", least=1) or a.hidden


def all_kept(a: Arch) -> str:
    """All full: a local layer of GPT-Neo masks what lies outside its window, and keeps it."""
    for name in ("attention_types", "attention_layers"):
        a.keys.items(name)
    return all_full(a)


_LEAST_PRIMES: Final = 10**9
"""More than the largest table that a config may state; it bounds the search."""


def full_index(a: Arch) -> int:
    """Keys and queries by which full attention picks tokens; 0 where the config has none."""
    width = a.keys.maybe("indexer_head_dim", least=1)
    if width is None:
        return 0
    heads = a.keys.whole("indexer_n_heads") + a.keys.whole("indexer_kv_heads")
    return a.hidden * heads * width + 2 * width


def hash_lookups(a: Arch) -> tuple[int, ...]:
    """What layers that look up n-grams have besides their tables."""
    wide, held = a.keys.whole("hc_count") * a.hidden, _table_width(a)
    each = held * (wide + a.hidden) + wide * (3 + a.keys.whole("ple_conv_kernel_size"))
    numbers = a.keys.wholes("ple_layer_ids") or ()
    return tuple(each if layer + 1 in numbers else 0 for layer in range(a.layers))


def hash_tables(a: Arch) -> int:
    """Rows of all tables: for every hash a prime of its own, padded."""
    orders = a.keys.whole("ngram_size") - 1
    hashes = orders * a.keys.whole("heads_per_ngram")
    start, step = (
        a.keys.whole(k) for k in ("ngram_vocab_size_base", "make_ngram_vocab_size_divisible_by")
    )
    layers = len(set(a.keys.wholes("ple_layer_ids") or ()))
    if layers * hashes > a.layers * a.hidden or start > _LEAST_PRIMES:
        raise a.keys.gap("its n-gram tables are too large to be counted.")
    sizes = _primes(start, layers * hashes)
    rows = (sum(sizes[n * hashes : (n + 1) * hashes]) for n in range(layers))
    return sum(-(-count // step) * step for count in rows) * (_table_width(a) // hashes)


def _table_width(a: Arch) -> int:
    return a.keys.maybe("ple_embed_dim", least=1) or a.hidden


def _primes(start: int, count: int) -> tuple[int, ...]:
    """The first primes from a number on."""
    found: list[int] = []
    number = max(start, 2)
    while len(found) < count:
        if all(number % divisor for divisor in range(2, isqrt(number) + 1)):
            found.append(number)
        number += 1
    return tuple(found)


def full_index_cells(a: Arch) -> tuple[tuple[int, int], ...] | None:
    """Keys and values of full attention, and the key of its index, for every token."""
    index = a.keys.maybe("indexer_head_dim", least=1)
    if index is None:
        return None
    full = 2 * a.kv_heads * a.head_dim + index
    return tuple((full if kind == "F" else 0, 0) for kind in a.kinds)


# ---- with RMSNorm and gated blocks


def elm_kv(a: Arch) -> tuple[int, ...]:
    """Key-value heads of each layer of OpenELM."""
    return _heads_of(a, "num_kv_heads")


def elm_layers(a: Arch) -> tuple[int, ...]:
    """OpenELM: heads and width grow from layer to layer."""
    if len(times := a.keys.items("ffn_multipliers") or ()) != a.layers:
        raise a.keys.gap("ffn_multipliers does not list every layer, so their widths are unknown.")
    queries = _heads_of(a, "num_query_heads")
    normed = 2 * a.head_dim * a.keys.flag("normalize_qk_projections")
    return tuple(
        2 * a.hidden * a.head_dim * (q + kv) + normed + 3 * a.hidden * _elm_width(a, more)
        for q, kv, more in zip(queries, elm_kv(a), times, strict=True)
    )


def _elm_width(a: Arch, times: object) -> int:
    """The multiple of the divisor that is nearest, never a tenth below what is meant."""
    if not isinstance(times, int | float) or not 0 < times < a.vocab:
        raise a.keys.error("ffn_multipliers must hold a number for each layer.")
    step, meant = a.keys.number("ffn_dim_divisor", 256, least=1), a.hidden * times
    found = max(step, int(meant + step / 2) // step * step)
    return found + step * (found < 0.9 * meant)


def _heads_of(a: Arch, name: str) -> tuple[int, ...]:
    listed = a.keys.wholes(name) or ()
    if len(listed) != a.layers:
        raise a.keys.gap(f"{name} does not list the heads of every layer, so they are unknown.")
    return listed


def molmo_norms(a: Arch) -> int:
    """Molmo 2: over the whole projections, or over one head."""
    return wide_norms(a) if a.keys.word("qk_norm_type") == "olmo" else head_norms(a)


def vision_unknown(_: Arch) -> str:
    """Why the towers of some releases are not counted."""
    return "its image or audio tower has no formula here"


def most_kv_heads(keys: Keys, _: int) -> int:
    """The largest number of key-value heads that a layer has."""
    return keys.most_of("num_kv_heads", "num_key_value_heads")


def dbrx_kv(keys: Keys, heads: int) -> int:
    """Key-value heads under ``attn_config``."""
    inner = keys.section("attn_config") or keys
    return inner.maybe("kv_n_heads", "num_key_value_heads", least=1) or heads


def _inkling(a: Arch, kind: str) -> tuple[int, int, int]:
    """Heads, elements of a token's keys, and width of a head; their own where it slides."""
    own = "swa_" if kind == "S" else ""
    width = a.keys.number(f"{own}head_dim", a.head_dim)
    heads = a.keys.number(f"{own}num_attention_heads", a.heads)
    return heads, a.keys.number(f"{own}num_key_value_heads", a.kv_heads) * width, width


def inkling_attention(kind: str) -> Term:
    """Keys and values pass a short convolution, queries make relative positions."""

    def count(a: Arch) -> int:
        heads, kv, width = _inkling(a, kind)
        reach = a.window if kind == "S" else a.keys.number("rel_extent", 1024)
        places = (a.hidden * heads + (reach or 0)) * a.keys.number("d_rel", 16)
        convolved = 2 * _kernel(a) * (kv + a.hidden)
        return 2 * a.hidden * (heads * width + kv) + places + convolved + 2 * width

    return count


def _kernel(a: Arch) -> int:
    return a.keys.maybe("conv_kernel_size", "sconv_kernel_size", least=1) or 4


def inkling_layers(a: Arch) -> str:
    """As listed, else full attention in every sixth layer."""
    words, listed = a.keys.items("layer_types"), a.keys.wholes("local_layer_ids")
    if words is not None and len(words) == a.layers:
        return "".join("S" if f"{word}".endswith("sliding") else "F" for word in words)
    slides = (i in listed if listed is not None else (i + 1) % 6 for i in range(a.layers))
    return "".join("S" if one else "F" for one in slides)


def inkling_blocks(a: Arch) -> str:
    """The release begins with two dense blocks, of which its class knows nothing."""
    keys = a.keys if a.keys.of_class else a.keys.with_defaults({"dense_mlp_idx": 2})
    return experts_after("dense_mlp_idx")(replace(a, keys=keys))


def inkling_moe(a: Arch) -> Moe | None:
    """Files that state the width of dense blocks apart mean the experts' by the other key."""
    found = experts(shared="count")(a)
    if found is None or a.keys.stated("dense_intermediate_size") is None:
        return found
    width = a.keys.whole("intermediate_size")
    return replace(found, width=width, shared_width=found.shared_width // found.width * width)


def inkling_cells(a: Arch) -> tuple[tuple[int, int], ...]:
    """Keys and values; the ends of four convolutions, some kB a layer, are left out."""
    full, sliding = (2 * _inkling(a, kind)[1] for kind in "FS")
    return tuple((0, sliding) if kind == "S" else (full, 0) for kind in a.kinds)


def inkling_width(keys: Keys, _: int) -> int:
    """The width of dense blocks, by the key that newer files have for it."""
    return keys.whole("dense_intermediate_size", "intermediate_size")


def lfm_width(keys: Keys, _: int) -> int:
    """LFM2 shrinks its stated width by a third and rounds it up."""
    stated = keys.uniform("intermediate_size", "block_ff_dim") or 0
    if not stated or not keys.flag("block_auto_adjust_ff_dim", default=True):
        return stated
    width = 2 * stated // 3
    factor = keys.stated("block_ffn_dim_multiplier")
    if isinstance(factor, int | float) and not isinstance(factor, bool):
        width = int(factor * width)
    step = keys.number("block_multiple_of", 256, least=1)
    return -(-width // step) * step


def one_kv_head(keys: Keys, heads: int) -> int:
    """As stated; the class takes all heads where a whole file is silent, a record means one."""
    return keys.maybe("num_key_value_heads", least=1) or (heads if keys.of_class else 1)


def projector_bias(a: Arch) -> int:
    """Falcon-H1 has a switch of its own for the output of the mixer."""
    own = a.keys.flag("projectors_bias") - a.keys.flag("mamba_proj_bias")
    return own * a.hidden


def _latent(a: Arch) -> int:
    """Width that routed experts work in; 0 where it is the hidden width."""
    return a.keys.maybe("moe_latent_size") or 0


def ungated_shared_bias(a: Arch) -> int:
    """Biases around and in the shared experts."""
    ends = _latent(a) and _latent(a) + a.hidden
    return ends + a.hidden + (a.moe.shared_width if a.moe else 0)


def nemotron_expert(a: Arch) -> int:
    """One routed expert without gate, in its own width."""
    return 2 * (_latent(a) or a.hidden) * (a.moe.width if a.moe else 0)
