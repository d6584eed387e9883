"""The speed of unequal cards, put together from the speeds of equal ones.

A layer split computes one card after the other, so the times of their shares add up; a tensor
split waits for its slowest card at every layer. Nobody published measurements of such machines
that could be checked against, so the evidence is never better than extrapolated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from advisor.estimate.overhead import splits_by_layer
from advisor.scenario.figures import Figure, Memory, Speed
from advisor.scenario.scenario import Scenario


def speed_of_unequal(
    scenario: Scenario, memory: Memory, one_kind: Callable[[Scenario], Speed | None]
) -> Speed | None:
    """Estimate a scenario of unequal cards.

    Args:
        scenario: With ``cards``.
        memory: Its memory: the weights on each card are its share of the work.
        one_kind: Estimates a scenario of equal cards.

    Returns:
        None where the speed of one of the cards is unknown.
    """
    kinds = {gpu.name: gpu for gpu in scenario.cards}
    speeds = {name: one_kind(replace(scenario, gpu=gpu, cards=())) for name, gpu in kinds.items()}
    shares = _shares(memory) if splits_by_layer(scenario) else None
    found = [(speed, shares[name] if shares else 0.0) for name, speed in speeds.items() if speed]
    if len(found) < len(kinds):
        return None
    slowest = min((speed for speed, _ in found), key=lambda speed: speed.decode_tok_s.estimate)
    if shares is None:
        return replace(
            slowest,
            decode_tok_s=_rough(slowest.decode_tok_s),
            prefill_tok_s=_slowest([speed.prefill_tok_s for speed, _ in found]),
            aggregate_tok_s=_slowest([speed.aggregate_tok_s for speed, _ in found]),
            first_token_s=_longest([speed.first_token_s for speed, _ in found]),
        )
    return replace(
        slowest,
        decode_tok_s=_joined([(speed.decode_tok_s, share) for speed, share in found]),
        prefill_tok_s=_joined_or_none([(speed.prefill_tok_s, share) for speed, share in found]),
        aggregate_tok_s=_joined_or_none([(speed.aggregate_tok_s, share) for speed, share in found]),
        first_token_s=_summed([(speed.first_token_s, share) for speed, share in found]),
    )


def _shares(memory: Memory) -> dict[str, float]:
    """Give the part of the weights that lies on the cards of each name."""
    held = dict[str, int]()
    for card in memory.per_gpu:
        held[card.name] = held.get(card.name, 0) + card.weights_bytes
    whole = sum(held.values())
    return {name: size / whole if whole else 1 / len(held) for name, size in held.items()}


def _rough(figure: Figure) -> Figure:
    return Figure(figure.estimate, figure.low, figure.high, "extrapolated")


def _joined(parts: Sequence[tuple[Figure, float]]) -> Figure:
    """Add up the times of the shares: tokens/s go by their harmonic mean."""
    return Figure(
        1 / sum(share / figure.estimate for figure, share in parts),
        1 / sum(share / figure.low for figure, share in parts),
        1 / sum(share / figure.high for figure, share in parts),
        "extrapolated",
    )


def _joined_or_none(parts: Sequence[tuple[Figure | None, float]]) -> Figure | None:
    known = [(figure, share) for figure, share in parts if figure is not None]
    return _joined(known) if len(known) == len(parts) else None


def _summed(parts: Sequence[tuple[Figure | None, float]]) -> Figure | None:
    """Add up waiting times, which every card has its share of."""
    known = [(figure, share) for figure, share in parts if figure is not None]
    if len(known) < len(parts):
        return None
    return Figure(
        sum(share * figure.estimate for figure, share in known),
        sum(share * figure.low for figure, share in known),
        sum(share * figure.high for figure, share in known),
        "extrapolated",
    )


def _longest(figures: Sequence[Figure | None]) -> Figure | None:
    known = [figure for figure in figures if figure is not None]
    if len(known) < len(figures):
        return None
    return _rough(max(known, key=lambda figure: figure.estimate))


def _slowest(figures: Sequence[Figure | None]) -> Figure | None:
    known = [figure for figure in figures if figure is not None]
    if len(known) < len(figures):
        return None
    return _rough(min(known, key=lambda figure: figure.estimate))
