"""Mixtures of experts that no table describes: what a token reads of them, as far as is stated.

The list states number and width of the experts, not which layers have them, nor what stands beside
them. ``benchmarks/public_list.py --experts`` says how near this comes, of models known exactly.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from advisor.models.shape import Counts, Moe, Shape
from advisor.reading.public_list import PublicModel
from advisor.reading.published import active_said, is_draft

_MATRICES: Final = 3
"""Of an expert: gate, up and down."""
_MOST_BESIDE: Final = 0.15
"""Of what the widths make a token read: so much of the other parameters is taken to be read too
(dense layers, shared experts, gates). The rest is taken for towers, tables and heads that draft."""
_LEAST_TABLES: Final = 0.2
"""Of the parameters: so much that is neither read nor has room in experts is looked up."""
_DENSE_WITHIN: Final = 1.4
_NEVER_DENSE: Final = 3.0
"""Times what a dense model of its widths has: more is not feed-forward width or towers alone."""
_LEAST_NAMED: Final = 10e9
"""Smaller figures in a name are rounded too far: A1B has been said of 1.7 billion."""
_STATED: Final = " A token reads {:.3g} billion of them, as {}."
_BY_WIDTHS: Final = (
    " What a token reads of them is estimated from number and width of its experts, so the range "
    "of its speed is wider."
)
_UNKNOWN: Final = " Which share of its experts a token uses is not described: its speed is unknown."


def is_mixture(public: PublicModel) -> bool:
    """Whether the list states several experts, not all of which a token uses."""
    return (public.num_experts or 1) > max(public.active_experts or 1, 1) and not is_draft(public)


def with_experts(public: PublicModel, shape: Shape, stated: int) -> tuple[Shape, str]:
    """Give a shape that nothing describes its experts, and what to say of them.

    Args:
        public: The repository.
        shape: As the list states it, all layers dense.
        stated: Its parameters.
    """
    if not is_mixture(public):
        hidden = _hides_experts(public, stated)
        return replace(shape, reads_unknown=hidden), _UNKNOWN if hidden else ""
    experts, used = public.num_experts or 1, public.active_experts
    read, told = _read(public, stated)
    if not used or not read:
        return replace(shape, reads_unknown=True), _UNKNOWN
    matrix = min(shape.vocab * shape.hidden, stated // 4)
    idle = 1 - used / experts
    unread = max(stated - matrix - read, 0)
    room = _room(public) or stated
    tables = round(max(unread - room * idle, 0))
    tables = tables if tables > _LEAST_TABLES * stated else 0
    layers = stated - 2 * matrix - tables
    routed = round(min((unread - tables) / idle, layers))
    counts = Counts(
        total=stated,
        active=stated - tables - round(routed * idle),
        vision=0,
        embedding=matrix,
        output=matrix,
        layers=(layers // shape.layers,) * shape.layers,
        experts=(routed // shape.layers,) * shape.layers,
    )
    width = public.moe_intermediate_size or shape.intermediate
    shared = public.shared_expert_intermediate_size or 0
    moe = Moe(experts, used, width, shared)
    kinds = "E" * shape.layers
    return replace(shape, moe=moe, ffn_kinds=kinds, counts=counts, lookup=tables), told


def _room(public: PublicModel) -> int:
    """Count the experts of all layers; 0 where the widths are not stated."""
    width = _MATRICES * (public.hidden_size or 0) * (public.moe_intermediate_size or 0)
    return (public.num_experts or 0) * (public.num_hidden_layers or 0) * width


def _read(public: PublicModel, stated: int) -> tuple[float, str]:
    """Give the parameters that a token reads, and who says so; 0 where nobody does."""
    named = active_said(public.name) or 0
    for active, source in (
        (public.active_parameters or 0, "the public list states"),
        (named if named >= _LEAST_NAMED else 0, "its name says"),
    ):
        if 0 < active < stated:
            return active, _STATED.format(active / 1e9, source)
    return read_by_widths(public, stated), _BY_WIDTHS


def read_by_widths(public: PublicModel, stated: int) -> float:
    """Estimate the parameters that a token reads by the widths; 0 where they do not tell.

    As many layers have experts as the parameters have room for.
    """
    layers, hidden = public.num_hidden_layers or 0, public.hidden_size or 0
    experts = public.num_experts or 0
    each = _room(public) // max(layers, 1)
    if not layers or not public.num_attention_heads or not 0 < each < stated:
        return 0.0
    matrix = (public.vocab_size or 0) * hidden
    shared = _MATRICES * hidden * (public.shared_expert_intermediate_size or 0)
    beside = matrix + layers * (_attention(public) + shared)
    sparse = min(layers, max(1, int((stated - min(beside + matrix, stated / 2)) // each)))
    least = beside + sparse * each * (public.active_experts or 0) / experts
    left = max(stated - matrix - beside - sparse * each, 0)
    return least + min(left, _MOST_BESIDE * least)


def _attention(public: PublicModel) -> int:
    """Count the four matrices of one layer."""
    hidden, heads = public.hidden_size or 0, public.num_attention_heads or 1
    head = public.head_dim or hidden // heads
    return 2 * hidden * head * (heads + (public.num_key_value_heads or heads))


def _hides_experts(public: PublicModel, stated: int) -> bool:
    """Whether it seems to be a mixture, although the list states no experts."""
    layers, hidden = public.num_hidden_layers or 0, public.hidden_size or 0
    width = public.moe_intermediate_size or 0
    named = "moe" in public.architecture or active_said(public.name) is not None
    if is_draft(public) or not (layers and hidden and width):
        return named and not is_draft(public)
    matrices = 2 * (public.vocab_size or 0) * hidden
    dense = matrices + layers * (_attention(public) + _MATRICES * hidden * width)
    return stated > (_DENSE_WITHIN if named else _NEVER_DENSE) * dense
