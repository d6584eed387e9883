"""What is not recommended, named and folded: one line per reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from advisor.render.figures import listed

if TYPE_CHECKING:
    from advisor.render.contract import Document

_WHERE = " in "
_WORDS = {
    "offload-layers": "layers in system RAM",
    "offload-experts": "experts in system RAM",
}


def title(action: str, change: Mapping[str, object], facts: Mapping[str, object]) -> str:
    """Name what is barred in a few words.

    Args:
        action: The action it stands for.
        change: Its change, in ``estimate`` keys.
        facts: Its facts where nothing was estimated, else empty.
    """
    framework = f"{_WHERE}{change['framework']}" if "framework" in change else ""
    keys = set(change)
    if facts.get("option.split") == "tensor":
        return f"tensors split over {change['gpus']} cards"
    if action == "quantize" and "precision" in keys <= {"precision", "framework"}:
        return f"{change['precision']}{framework}"
    if action == "change-framework" and keys == {"framework"}:
        return str(change["framework"])
    if action == "quantize-kv" and keys == {"kv_cache"}:
        return f"KV cache {change['kv_cache']}"
    if not change:
        return _WORDS.get(action, action)
    values = ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in change.items())
    return f"{action} ({values})"


def barred(doc: Document) -> list[str]:
    """Say what was not recommended and why, one line per reason; a format only once."""
    by_reason: dict[str, list[str]] = {}
    told: dict[str, str] = {}
    for item in doc["not_recommended"]:
        reason, named = item["reason"], item["title"]
        subject = named.rpartition(_WHERE)[0] or named
        if told.setdefault(subject, reason) == reason:
            by_reason.setdefault(reason, []).append(named)
    return [f"{_folded(list(dict.fromkeys(names)))}: {why}" for why, names in by_reason.items()]


def _folded(names: Sequence[str]) -> str:
    """``AWQ in vLLM, FP8 in vLLM`` -> ``AWQ and FP8 in vLLM``."""
    parts = [name.rpartition(_WHERE) for name in names]
    places = {place for _, _, place in parts}
    if len(names) > 1 and len(places) == 1 and all(head for head, _, _ in parts):
        return f"{listed([head for head, _, _ in parts])}{_WHERE}{places.pop()}"
    return listed(list(names))
