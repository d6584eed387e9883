"""Kimi Linear and K3: Kimi Delta Attention beside latent attention; in K3 with narrow experts.

Kimi Linear follows transformers 5.23.0. Of K3 transformers has no class: its parts are those that
readers of its config and file headers describe (``kimi-k3-layers`` in knowledge/sources.yaml).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from advisor.models.architecture import Arch, Family, Gguf
from advisor.models.layer_patterns import experts_after, must_state, stated_or
from advisor.models.parameter_terms import experts, latent_attention, latents, router, shared
from advisor.models.recurrent import kimi_delta, kimi_delta_terms


def _narrow(a: Arch) -> int:
    """The width at which routed experts of K3 run; 0 in Kimi Linear, whose experts have all."""
    return a.keys.maybe("routed_expert_hidden_size", least=1) or 0


def _ends(a: Arch) -> int:
    """To the narrow stream and back, and its norm."""
    return (2 * a.hidden + 1) * _narrow(a)


def _expert(a: Arch) -> int:
    return 3 * (_narrow(a) or a.hidden) * (a.moe.width if a.moe else 0)


def _attention_gate(a: Arch) -> int:
    """K3 weighs what attention gives by a full matrix before the output."""
    return a.hidden * a.heads * (a.mla.value_dim if a.mla else 0) if _narrow(a) else 0


def _delta_gate(a: Arch) -> int:
    """The gate of Kimi Delta Attention is one matrix in K3, and two thin ones before."""
    r = a.recurrent
    if r is None or not _narrow(a):
        return 0
    return a.hidden * r.inner - (a.hidden + r.inner) * r.head_dim


KIMI: Final[Mapping[str, Family]] = MappingProxyType(
    {
        "kimi_linear": Family(
            attention=(latent_attention, _attention_gate),
            mixers={"R": (kimi_delta_terms, _delta_gate)},
            experts=(router, shared, _ends),
            expert=_expert,
            moe=experts(shared="count"),
            mla=latents,
            recurrent=kimi_delta,
            kinds=stated_or(must_state),
            ffn_kinds=experts_after("first_k_dense_replace"),
            unsupported=("attention_bias", "tie_word_embeddings"),
            defaults={"first_k_dense_replace": 1},
            gguf=(Gguf("kimi-linear", described=False),),
        )
    }
)
