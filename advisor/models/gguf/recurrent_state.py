"""The fixed state of recurrent layers, from the metadata of a GGUF file."""

from __future__ import annotations

from msgspec.structs import replace

from advisor.models.architecture import Gguf
from advisor.models.config_keys import Keys
from advisor.models.shape import Recurrent


def recurrent_of(keys: Keys, family: Gguf, hidden: int) -> Recurrent | None:
    """Describe the state of a recurrent layer; None where nobody has described it.

    Sizes follow what transformers 5.23.0 keeps, as for a config.json.

    Raises:
        SourceFileError: A figure is missing or impossible.
    """
    if family.recurrent == "conv":
        kernel = keys.whole("shortconv.l_cache")
        return Recurrent("conv", hidden * kernel, 0, inner=hidden, conv_kernel=kernel)
    if family.recurrent == "mamba":
        return _mamba(keys)
    if family.recurrent == "mamba2":
        return _mamba2(keys)
    return _deltanet(keys) if family.recurrent == "deltanet" else None


def _mamba(keys: Keys) -> Recurrent:
    inner, state, kernel = _sizes(keys)
    rank = keys.whole("ssm.time_step_rank")
    return Recurrent(
        "mamba",
        conv_elements=inner * kernel,
        state_elements=inner * state,
        inner=inner,
        state=state,
        conv_kernel=kernel,
        dt_rank=rank,
    )


def _mamba2(keys: Keys) -> Recurrent:
    inner, state, kernel = _sizes(keys)
    heads, groups = keys.whole("ssm.time_step_rank", most=inner), keys.whole("ssm.group_count")
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


def _deltanet(keys: Keys) -> Recurrent:
    return replace(_mamba2(keys), kind="deltanet", dt_rank=0)


def _sizes(keys: Keys) -> tuple[int, int, int]:
    return keys.whole("ssm.inner_size"), keys.whole("ssm.state_size"), keys.whole("ssm.conv_kernel")
