"""Marks within each action: the best, the fastest, the smallest step, and what is pointless."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from advisor.remedies.dominance import dominators_in_kind
from advisor.remedies.option import Option


def marks_of(options: Sequence[Option]) -> Mapping[str, set[str]]:
    """Give, by the fact that says so, the keys of the options it holds for."""
    marks: dict[str, set[str]] = {
        "option.dominated": set(dominators_in_kind(options)),
        "option.best_quality": set(),
        "option.fastest": set(),
        "option.smallest_step": set(),
    }
    by_action: dict[str, list[Option]] = {}
    for option in options:
        if option.fits:
            by_action.setdefault(option.action, []).append(option)
    for group in by_action.values():
        _mark_best(group, marks)
    return marks


def _mark_best(group: Sequence[Option], marks: Mapping[str, set[str]]) -> None:
    losses = [o.quality_loss_percent for o in group if o.quality_loss_percent is not None]
    speeds = [o.speed.decode_tok_s.estimate for o in group if o.speed]
    closest = max(o.memory.required_bytes for o in group)
    least, fastest = min(losses, default=None), max(speeds, default=None)
    for option in group:
        if least is not None and option.quality_loss_percent == least:
            marks["option.best_quality"].add(option.key)
        if option.speed and option.speed.decode_tok_s.estimate == fastest:
            marks["option.fastest"].add(option.key)
        if option.memory.required_bytes == closest:
            marks["option.smallest_step"].add(option.key)
