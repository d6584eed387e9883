"""Exact parameter counts of a read architecture."""

from __future__ import annotations

from advisor.models.architecture import Arch, Family, Terms
from advisor.models.shape import Counts

MOST_PARAMETERS = 10**14


def count(a: Arch, family: Family, vision: int, *, output: bool = True) -> Counts:
    """Count every parameter once; tied matrices once.

    Args:
        a: The text model.
        family: Its table entry.
        vision: Parameters of towers and projectors.
        output: Whether it has an output matrix at all (an embedding model has none).

    Raises:
        SourceFileError: The sizes multiply to more than 10^14 parameters.
    """
    by_pair = {
        pair: _layer(a, family, *pair) for pair in set(zip(a.kinds, a.ffn_kinds, strict=True))
    }
    layers = [by_pair[pair] for pair in zip(a.kinds, a.ffn_kinds, strict=True)]
    layers[0] += _sum(a, family.first)
    routed = a.moe.experts * family.expert(a) if a.moe else 0
    experts = tuple(routed if kind == "E" else 0 for kind in a.ffn_kinds)
    embedding = family.embedding(a)
    head = family.output(a) if output and not a.tied else 0
    total = embedding + head + sum(layers) + _sum(a, family.final)
    total += _sum(a, family.extras) + vision
    if total > MOST_PARAMETERS:
        raise a.keys.error(f"its sizes multiply to {total} parameters, more than 10^14.")
    return Counts(
        total=total,
        active=_active(a, total, sum(experts)),
        vision=vision,
        embedding=embedding,
        output=head,
        layers=tuple(layers),
        experts=experts,
    )


def _layer(a: Arch, family: Family, kind: str, ffn: str) -> int:
    attention = family.mixers.get(kind, family.attention)
    blocks = {"D": family.dense, "E": family.experts}.get(ffn, ())
    routed = a.moe.experts * family.expert(a) if a.moe and ffn == "E" else 0
    return _sum(a, attention) + _sum(a, blocks) + _sum(a, family.norms) + routed


def _active(a: Arch, total: int, routed: int) -> int:
    return total - routed + routed * a.moe.used // a.moe.experts if a.moe else total


def _sum(a: Arch, terms: Terms) -> int:
    return sum(term(a) for term in terms)
