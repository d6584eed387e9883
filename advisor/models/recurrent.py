"""Layers with a fixed state: their state sizes and their parameter counts.

State sizes are those that transformers 5.23.0 keeps per sequence and layer.
"""

from __future__ import annotations

from advisor.models.architecture import Arch
from advisor.models.shape import Recurrent


def mamba(a: Arch) -> Recurrent:
    """Mamba with a per-channel state (mamba, falcon_mamba, jamba)."""
    # The pure ones save the inner width, and go by what is saved.
    saved = a.keys.stated("intermediate_size") if not a.heads else None
    inner = a.keys.maybe("mamba_inner", least=1)
    inner = inner or (a.keys.whole("intermediate_size") if saved else _inner(a))
    state = a.keys.whole("state_size", "mamba_d_state")
    kernel = a.keys.whole("conv_kernel", "mamba_d_conv")
    rank = a.keys.stated("time_step_rank", "mamba_dt_rank")
    if rank is None or rank == "auto":
        return mamba_state(inner, state, kernel, -(-a.hidden // 16))
    return mamba_state(inner, state, kernel, a.keys.whole("time_step_rank", "mamba_dt_rank"))


def mamba_state(inner: int, state: int, kernel: int, rank: int) -> Recurrent:
    """Describe what a Mamba layer keeps."""
    return Recurrent(
        "mamba",
        conv_elements=inner * kernel,
        state_elements=inner * state,
        inner=inner,
        state=state,
        conv_kernel=kernel,
        dt_rank=rank,
    )


def _inner(a: Arch) -> int:
    stated = a.keys.maybe("mamba_d_ssm", least=1)
    return stated or a.keys.whole("expand", "mamba_expand", most=64) * a.hidden


def mamba_terms(a: Arch) -> int:
    """A Mamba mixer without inner norms."""
    r = _state(a)
    bias = r.inner if a.keys.flag(_conv_bias(a), default=True) else 0
    plain = a.keys.flag("use_bias") or a.keys.flag("mamba_proj_bias")
    ends = 2 * r.inner + a.hidden if plain else 0
    inside = r.inner * r.state + r.inner + r.inner * r.conv_kernel + bias
    step = r.inner * (r.dt_rank + 2 * r.state) + r.dt_rank * r.inner + r.inner
    return inside + step + 3 * a.hidden * r.inner + ends


def _conv_bias(a: Arch) -> str:
    return "mamba_conv_bias" if a.keys.stated("mamba_conv_bias") is not None else "use_conv_bias"


def mamba2(a: Arch) -> Recurrent:
    """Mamba-2: heads that share B and C in groups."""
    heads = a.keys.whole("mamba_num_heads", "mamba_n_heads", "num_heads")
    width = _head_width(a, heads)
    groups = a.keys.whole("n_groups", "mamba_n_groups", "mamba_ngroups")
    state = a.keys.whole("ssm_state_size", "mamba_d_state", "state_size")
    kernel = a.keys.whole("conv_kernel", "mamba_d_conv")
    return mamba2_state(heads * width, state, kernel, heads, groups)


def mamba2_state(inner: int, state: int, kernel: int, heads: int, groups: int) -> Recurrent:
    """Describe what a Mamba-2 layer keeps."""
    return Recurrent(
        "mamba2",
        conv_elements=(inner + 2 * groups * state) * kernel,
        state_elements=inner * state,
        inner=inner,
        groups=groups,
        state=state,
        conv_kernel=kernel,
        dt_rank=heads,
        heads=heads,
        head_dim=inner // heads,
    )


def _head_width(a: Arch, heads: int) -> int:
    name, value = a.keys.find("mamba_head_dim", "mamba_d_head")
    if value == "auto":
        return _inner(a) // heads
    if value is None and a.family == "mamba2":
        name = "head_dim"
    return a.keys.whole(name)


def mamba2_terms(a: Arch) -> int:
    """A Mamba-2 mixer with its gated norm."""
    return mamba2_bare(a) + _state(a).inner


def mamba2_bare(a: Arch) -> int:
    """A Mamba-2 mixer without norm."""
    r = _state(a)
    channels = r.inner + 2 * r.groups * r.state
    bias = channels if a.keys.flag(_conv_bias(a), default=True) else 0
    projected = r.inner + channels + r.heads
    plain = a.keys.flag("mamba_proj_bias") or a.keys.flag("use_bias")
    ends = projected + a.hidden if plain else 0
    inside = 3 * r.heads + channels * r.conv_kernel + bias
    return inside + a.hidden * projected + r.inner * a.hidden + ends


def deltanet(a: Arch) -> Recurrent:
    """Gated DeltaNet (Qwen3-Next, Qwen3.5, OLMo hybrid)."""
    key_heads, value_heads = _pair(a, "linear_num_key_heads", "linear_num_value_heads")
    key_width, value_width = _pair(a, "linear_key_head_dim", "linear_value_head_dim")
    kernel = a.keys.whole("linear_conv_kernel_dim")
    channels = 2 * key_heads * key_width + value_heads * value_width
    return Recurrent(
        "deltanet",
        conv_elements=channels * kernel,
        state_elements=value_heads * key_width * value_width,
        inner=value_heads * value_width,
        groups=key_heads,
        state=key_width,
        conv_kernel=kernel,
        heads=value_heads,
        head_dim=value_width,
    )


def _pair(a: Arch, first: str, second: str) -> tuple[int, int]:
    return a.keys.whole(first), a.keys.whole(second)


def deltanet_terms(a: Arch) -> int:
    """A Gated DeltaNet mixer; its gate has the width of the values."""
    r = _state(a)
    channels = r.conv_elements // r.conv_kernel
    gates = 2 * r.heads + r.conv_elements + r.head_dim
    projected = channels + r.inner + 2 * r.heads
    return gates + a.hidden * projected + r.inner * a.hidden


def short_conv(a: Arch) -> Recurrent:
    """A gated short convolution (LFM2)."""
    kernel = a.keys.whole("conv_L_cache")
    return Recurrent("conv", a.hidden * kernel, 0, inner=a.hidden, conv_kernel=kernel)


def short_conv_terms(a: Arch) -> int:
    """A gated short convolution."""
    bias = 5 * a.hidden if a.keys.flag("conv_bias") else 0
    return _state(a).conv_elements + 4 * a.hidden * a.hidden + bias


def lightning(a: Arch) -> Recurrent:
    """Lightning attention (MiniMax-Text-01): one square state per head."""
    state = a.heads * a.head_dim * a.head_dim
    return Recurrent("lightning", 0, state, heads=a.heads, head_dim=a.head_dim)


def _sala(a: Arch) -> tuple[int, int]:
    return a.keys.number("lightning_nh", a.heads), a.keys.number("lightning_head_dim", a.head_dim)


def sala(a: Arch) -> Recurrent:
    """Lightning attention of MiniCPM-SALA, with heads of its own."""
    heads, width = _sala(a)
    return Recurrent("lightning", 0, heads * width**2, heads=heads, head_dim=width)


def sala_terms(a: Arch) -> int:
    """The same with norms of queries, keys and output, and its gate."""
    heads, width = _sala(a)
    kv = 2 * a.keys.number("lightning_nkv", heads) * width
    inner, gated = heads * width, 2 + a.keys.flag("use_output_gate", default=True)
    norms = 2 * width * a.keys.flag("qk_norm", default=True)
    normed = inner * a.keys.flag("use_output_norm", default=True)
    return a.hidden * (gated * inner + kv) + norms + normed


def rglru(a: Arch) -> Recurrent:
    """The gated recurrence of Griffin (RecurrentGemma)."""
    width = a.keys.maybe("lru_width", least=1) or a.hidden
    kernel = a.keys.number("conv1d_width", 4, least=1)
    return Recurrent(
        "rglru", width * (kernel - 1), width, inner=width, conv_kernel=kernel, heads=a.heads
    )


def rglru_terms(a: Arch) -> int:
    """The recurrent block of Griffin with its block-diagonal gates."""
    r = _state(a)
    block = r.inner // a.heads
    gates = 2 * (a.heads * block * block + a.heads * block) + r.inner
    ends = 2 * (a.hidden * r.inner + r.inner) + r.inner * a.hidden + a.hidden
    return ends + r.inner * r.conv_kernel + r.inner + gates


def rwkv(a: Arch) -> Recurrent:
    """RWKV-4: the last input of both mixings in the model's type, three sums in float32.

    Read in transformers (``modeling_rwkv.py``), which keeps all five at the hidden width.
    """
    inner = a.keys.maybe("attention_hidden_size", least=1) or a.hidden
    return Recurrent("rwkv", 2 * a.hidden, 3 * a.hidden, inner=inner)


def mlstm(a: Arch) -> Recurrent:
    """The matrix memory of xLSTM, its normaliser and its largest exponent; all in float32."""
    heads = a.keys.whole("num_heads")
    keyed, valued = (
        int(a.hidden * a.keys.ratio(name, usual))
        for name, usual in (("qk_dim_factor", 0.5), ("v_dim_factor", 1.0))
    )
    state = keyed // heads * (valued + heads) + heads
    return Recurrent("mlstm", 0, state, inner=valued, state=keyed, heads=heads)


def mlstm_terms(a: Arch) -> int:
    """A block of xLSTM: matrix memory with its gates, then a gated feed-forward block."""
    r, bias = _state(a), a.keys.flag("use_bias")
    step = a.keys.number("ffn_round_up_to_multiple_of", 64, least=1)
    width = -(-int(a.hidden * a.keys.ratio("ffn_proj_factor", 2.667)) // step) * step
    mixer = a.hidden * (2 * r.state + 3 * r.inner) + 2 * r.heads * (a.hidden + 1) + r.inner
    biases = 2 * r.state + 3 * r.inner + 2 * width + 4 * a.hidden
    return mixer + 3 * a.hidden * width + bias * biases


def kimi_delta(a: Arch) -> Recurrent:
    """Kimi Delta Attention: a square state and three short convolutions per head."""
    nested = a.keys.section("linear_attn_config")
    names = ("num_heads", "head_dim", "short_conv_kernel_size")
    own = ("linear_num_heads", "linear_head_dim", "linear_conv_kernel_dim")
    keys, names = (a.keys, own) if nested is None else (nested, names)
    return kimi_delta_state(*(keys.whole(name) for name in names))


def kimi_delta_state(heads: int, width: int, kernel: int) -> Recurrent:
    """The same, by its sizes."""
    return Recurrent(
        "kimi-delta",
        conv_elements=3 * heads * width * kernel,
        state_elements=heads * width * width,
        inner=heads * width,
        conv_kernel=kernel,
        heads=heads,
        head_dim=width,
    )


def kimi_delta_terms(a: Arch) -> int:
    """A Kimi Delta Attention mixer with its two low-rank gates."""
    r = _state(a)
    gates = 2 * (a.hidden * r.head_dim + r.head_dim * r.inner)
    inside = r.inner + r.heads + r.conv_elements + r.head_dim
    return inside + gates + a.hidden * (4 * r.inner + r.heads)


def _state(a: Arch) -> Recurrent:
    if a.recurrent is None:
        raise a.keys.error("its recurrent layers are not described, so it cannot be sized.")
    return a.recurrent
