"""What is not recommended, named and folded: one line per reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from advisor.remedies.registry import settings_of
from advisor.report.figures import listed
from advisor.report.words import Words, counted, known, say, words

if TYPE_CHECKING:
    from advisor.advice.document import Advice

"""Titles kept; what cannot run with a framework is the same for every card."""


def title(action: str, change: Mapping[str, object], facts: Mapping[str, object]) -> str:
    """Name what is barred in a few words.

    Args:
        action: The action it stands for.
        change: Its change, in ``estimate`` keys.
        facts: Its facts where nothing was estimated, else empty.
    """
    tensor = facts.get("option.split") == "tensor"
    kinds = tuple(map(type, change.values()))  # True and 1 are equal and read differently
    return _title(words(), action, tuple(change.items()), kinds, tensor)


def _title(
    _words: Words,
    action: str,
    changed: tuple[tuple[str, object], ...],
    _kinds: tuple[type, ...],
    tensor: bool,  # noqa: FBT001 - one part of a key
) -> str:
    change = {key: value for key, value in changed if (key, value) != ("gpu_layers", "all")}
    keys = set(change)
    if tensor:
        return say("barred.tensor", n=change["gpus"])
    if keys in ({"precision"}, {"framework"}):
        return str(change[keys.pop()])
    if keys == {"precision", "framework"} and settings_of(action) == {"precision"}:
        return say("barred.format", format=change["precision"], framework=change["framework"])
    if keys == {"kv_cache"}:
        return say("barred.kv_cache", type=change["kv_cache"])
    if not change:
        return known("barred", action) or action
    return listed([_changed(key, value) for key, value in change.items()])


def _changed(key: str, value: object) -> str:
    """Say one setting of a change in words."""
    if key in {"batch", "gpu_layers"} and isinstance(value, int):
        return counted(f"barred.setting.{key}", value)
    shown = f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
    text = known("barred.setting", key)
    return text.format(n=shown) if text else f"{key.replace('_', ' ')} {shown}"


def barred(doc: Advice) -> list[str]:
    """Say what was not recommended and why, one line per reason; a format only once."""
    by_reason: dict[str, list[str]] = {}
    told: dict[str, str] = {}
    for item in doc.not_recommended:
        reason, named = item.reason, item.title
        subject = _parted(named)[0] or named
        if told.setdefault(subject, reason) == reason:
            by_reason.setdefault(reason, []).append(named)
    return [
        say("barred.line", names=_folded(list(dict.fromkeys(names))), reason=why)
        for why, names in by_reason.items()
    ]


def _parted(title: str) -> tuple[str, str]:
    """Part ``FP8 in vLLM`` into format and framework, where words stand between the two."""
    between = say("barred.format", format="", framework="")
    if not between.strip():
        return "", title
    head, _, place = title.rpartition(between)
    return head, place


def _folded(names: Sequence[str]) -> str:
    """``AWQ in vLLM, FP8 in vLLM`` -> ``AWQ and FP8 in vLLM``."""
    parts = [_parted(name) for name in names]
    places = {place for _, place in parts}
    if len(names) > 1 and len(places) == 1 and all(head for head, _ in parts):
        heads = listed([head for head, _ in parts])
        return say("barred.format", format=heads, framework=places.pop())
    return listed(list(names))
