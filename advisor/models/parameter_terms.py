"""Summands of parameter counts: attention, feed-forward and norm variants.

Formulas follow the module classes of transformers 5.23.0; ``tests/sources`` holds them
against exact counts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

from advisor.models.architecture import NAMES, Arch, Term
from advisor.models.shape import Mla, Moe


def when(flag: str, term: Term, *, default: bool = False) -> Term:
    """Count ``term`` only where the config's switch ``flag`` is true."""

    def switched(a: Arch) -> int:
        return term(a) if a.keys.flag(flag, default=default) else 0

    return switched


def unless(flag: str, term: Term, *, default: bool = False) -> Term:
    """Count ``term`` only where the config's switch ``flag`` is false."""

    def switched(a: Arch) -> int:
        return 0 if a.keys.flag(flag, default=default) else term(a)

    return switched


def qkv_bias(a: Arch) -> int:
    """Biases of query, key and value."""
    return a.query + 2 * a.kv


def all_bias(a: Arch) -> int:
    """Biases of all four attention matrices."""
    return qkv_bias(a) + a.hidden


def head_norms(a: Arch) -> int:
    """Query and key norms of one head, shared by all heads."""
    return 2 * a.head_dim


def wide_norms(a: Arch) -> int:
    """Query and key norms over the whole projections."""
    return a.query + a.kv


def up_down(a: Arch) -> int:
    """A feed-forward block without gate."""
    return 2 * a.hidden * a.intermediate


def positions(key: str, extra: int = 0) -> Term:
    """Learned positions: as many as ``key`` states, plus ``extra``."""

    def table(a: Arch) -> int:
        return (a.keys.whole(key) + extra) * a.hidden

    return table


def latent_attention(a: Arch) -> int:
    """Multi-head latent attention with its two inner norms."""
    m = _mla(a)
    heads_in = a.heads * (m[2] + m[1])
    query = a.hidden * heads_in if not m[4] else m[4] * (a.hidden + 1 + heads_in)
    down = a.hidden * (m[0] + m[1]) + m[0]
    up = m[0] * a.heads * (m[2] + m[3])
    return query + down + up + a.heads * m[3] * a.hidden


def output_gate(a: Arch) -> int:
    """A matrix that weighs what attention gives before the output."""
    return a.hidden * a.heads * _mla(a)[3]


def token_index(a: Arch) -> int:
    """The indexer of sparse latent attention (DeepSeek-V3.2)."""
    heads = a.keys.whole("index_n_heads")
    width = a.keys.whole("index_head_dim")
    return _mla(a)[4] * heads * width + a.hidden * width + 2 * width + a.hidden * heads


def token_indexes(a: Arch) -> tuple[int, ...]:
    """The same, in the layers that have one of their own (GLM-5.2)."""
    layers = a.mla.index_layers if a.mla else ""
    return tuple(token_index(a) if kind == "F" else 0 for kind in layers)


def _mla(a: Arch) -> tuple[int, int, int, int, int]:
    if a.mla is None:
        raise a.keys.error("kv_lora_rank is missing, so the model cannot be sized.")
    m = a.mla
    return m.kv_lora_rank, m.rope_dim, m.nope_dim, m.value_dim, m.q_lora_rank or 0


def own_heads(a: Arch) -> tuple[int, ...]:
    """Laguna: what layers count besides that have query heads of their own number."""
    each = a.keys.wholes("num_attention_heads_per_layer") or (a.heads,) * a.layers
    if len(each) != a.layers:
        text = f"num_attention_heads_per_layer lists {len(each)} layers"
        raise a.keys.error(f"{text}, but num_hidden_layers is {a.layers}.")
    return tuple((heads - a.heads) * a.hidden * (2 * a.head_dim + 1) for heads in each)


def router(a: Arch) -> int:
    """One score per expert."""
    return a.hidden * _experts(a)


def shared(a: Arch) -> int:
    """Shared experts, gated like the routed ones."""
    return 3 * a.hidden * (a.moe.shared_width if a.moe else 0)


def gated_expert(a: Arch) -> int:
    """One routed expert: gate, up, down."""
    return 3 * a.hidden * (a.moe.width if a.moe else 0)


def _experts(a: Arch) -> int:
    return a.moe.experts if a.moe else 0


EXPERTS = NAMES["experts"]
EXPERTS_USED = NAMES["experts used"]
EXPERT_WIDTH = NAMES["expert width"]
SHARED = NAMES["shared experts"]
_SHARED_WIDTH = NAMES["shared width"]


def experts(*, shared: str = "") -> Callable[[Arch], Moe | None]:
    """Make a reader of the routed experts.

    Args:
        shared: How shared experts are stated: ``count`` (of the routed width), ``width``
            (their own width), empty for none.
    """

    def read(a: Arch) -> Moe | None:
        count = a.keys.uniform(*EXPERTS)
        if not count:
            return None
        used = a.keys.uniform(*EXPERTS_USED)
        if used is None:
            raise a.keys.error(f"{EXPERTS_USED[0]} is missing, so active parameters are unknown.")
        if not 1 <= used <= count:
            text = f"num_experts_per_tok is {used}, but there are {count} experts"
            raise a.keys.error(f"{text}; a token cannot use more or fewer than 1.")
        width = a.keys.uniform(*EXPERT_WIDTH) or a.intermediate
        if not width:
            raise a.keys.error("moe_intermediate_size is missing, so the model cannot be sized.")
        return Moe(count, used, width, _shared_width(a, shared, width))

    return read


def _shared_width(a: Arch, stated_as: str, width: int) -> int:
    if stated_as == "width":
        return a.keys.maybe(*_SHARED_WIDTH) or 0
    if stated_as == "count":
        shared = a.keys.maybe("moe_shared_expert_intermediate_size", least=1)
        return (a.keys.uniform(*SHARED) or 0) * (shared or width)
    return 0


def llama4_moe(a: Arch) -> Moe | None:
    """Routed experts with one shared expert of the same width."""
    moe = experts()(a)
    return moe and Moe(moe.experts, moe.used, a.intermediate, a.intermediate)


def dbrx_moe(a: Arch) -> Moe | None:
    """Keys under ``ffn_config``."""
    inner = a.keys.section("ffn_config") or a.keys
    count = inner.whole("moe_num_experts", "num_experts", "num_local_experts")
    used = inner.whole("moe_top_k", "num_experts_per_tok", most=count)
    width = inner.whole("ffn_hidden_size", "moe_intermediate_size", "intermediate_size")
    return Moe(count, used, width)


def latents(a: Arch) -> Mla | None:
    """Multi-head latent attention (DeepSeek)."""
    if a.keys.maybe("kv_lora_rank") is None:
        return None
    return Mla(
        kv_lora_rank=a.keys.whole("kv_lora_rank"),
        rope_dim=a.keys.whole("qk_rope_head_dim", least=0),
        nope_dim=a.keys.whole("qk_nope_head_dim"),
        value_dim=a.keys.whole("v_head_dim"),
        q_lora_rank=_query_rank(a),
    )


def indexed_latents(a: Arch) -> Mla | None:
    """Latent attention that picks tokens by an index (DeepSeek-V3.2, GLM-5)."""
    found = latents(a)
    return found and replace(
        found,
        index_dim=a.keys.whole("index_head_dim"),
        index_heads=a.keys.whole("index_n_heads"),
        index_layers=_index_layers(a),
    )


def pooled_latents(kinds: Callable[[Arch], str]) -> Callable[[Arch], Mla | None]:
    """Make a reader of latent attention that picks pools of tokens, in layers that attend."""

    def read(a: Arch) -> Mla | None:
        found = indexed_latents(a)
        if found is None:
            return None
        pairs = zip(kinds(a), found.index_layers, strict=True)
        picks = "".join(index if kind == "F" else "S" for kind, index in pairs)
        return replace(found, index_layers=picks, index_pool=a.keys.whole("index_kpool"))

    return read


def pooled_indexes(a: Arch) -> tuple[int, ...]:
    """An index with what merges its keys, in the layers that have one."""
    pooling = (a.hidden + a.keys.whole("index_kpool")) * (a.mla.index_dim if a.mla else 0)
    return tuple(found and found + pooling for found in token_indexes(a))


_FULL: Final = frozenset({"full", "F"})


def _index_layers(a: Arch) -> str:
    """Say which layers have an index: stated by layer, else every so-many-th from an offset."""
    stated = a.keys.items("indexer_types", "index_topk_pattern")
    every, offset = a.keys.number("index_topk_freq", 1), a.keys.number("index_skip_topk_offset", 2)
    if stated is not None:
        if len(stated) != a.layers:
            raise a.keys.error(f"indexer_types has {len(stated)} entries for {a.layers} layers.")
        return "".join("F" if kind in _FULL else "S" for kind in stated)
    past = (max(layer - offset + 1, 0) for layer in range(a.layers))
    return "".join("S" if number % max(every, 1) else "F" for number in past)


def _query_rank(a: Arch) -> int | None:
    # An explicit null means no compression; only an absent key means the class default.
    if "q_lora_rank" in a.keys.data and a.keys.data["q_lora_rank"] is None:
        return None
    return a.keys.maybe("q_lora_rank") or None
