"""Reading of mixtures of experts and of latent attention."""

from __future__ import annotations

from collections.abc import Callable

from advisor.models.architecture import Arch
from advisor.models.shape import Mla, Moe

_EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts")
_USED = (
    "num_experts_per_tok",
    "num_experts_per_token",
    "moe_top_k",
    "moe_topk",
    "moe_k",
    "top_k_experts",
)
_WIDTH = ("moe_intermediate_size", "expert_ffn_hidden_size")
_SHARED = ("n_shared_experts", "num_shared_experts", "num_shared_expert", "moe_num_shared_experts")
_SHARED_WIDTH = (
    "shared_expert_intermediate_size",
    "moe_shared_expert_intermediate_size",
    "shared_intermediate_size",
)


def experts(*, shared: str = "") -> Callable[[Arch], Moe | None]:
    """Make a reader of the routed experts.

    Args:
        shared: How shared experts are stated: ``count`` (of the routed width), ``width``
            (their own width), empty for none.
    """

    def read(a: Arch) -> Moe | None:
        count = a.keys.uniform(*_EXPERTS)
        if not count:
            return None
        used = a.keys.uniform(*_USED)
        if used is None:
            raise a.keys.error(f"{_USED[0]} is missing, so active parameters are unknown.")
        if not 1 <= used <= count:
            text = f"num_experts_per_tok is {used}, but there are {count} experts"
            raise a.keys.error(f"{text}; a token cannot use more or fewer than 1.")
        width = a.keys.uniform(*_WIDTH) or a.intermediate
        if not width:
            raise a.keys.error("moe_intermediate_size is missing, so the model cannot be sized.")
        return Moe(count, used, width, _shared_width(a, shared, width))

    return read


def _shared_width(a: Arch, stated_as: str, width: int) -> int:
    if stated_as == "width":
        return a.keys.maybe(*_SHARED_WIDTH) or 0
    if stated_as == "count":
        own = a.keys.maybe("moe_shared_expert_intermediate_size", least=1)
        return (a.keys.uniform(*_SHARED) or 0) * (own or width)
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
        rope_dim=a.keys.whole("qk_rope_head_dim"),
        nope_dim=a.keys.whole("qk_nope_head_dim"),
        value_dim=a.keys.whole("v_head_dim"),
        q_lora_rank=_query_rank(a),
    )


def _query_rank(a: Arch) -> int | None:
    # An explicit null means no compression; only an absent key means the class default.
    if "q_lora_rank" in a.keys.data and a.keys.data["q_lora_rank"] is None:
        return None
    return a.keys.maybe("q_lora_rank") or None
