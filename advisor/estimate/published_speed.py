"""Published speeds of whole configurations: looked up, never modelled.

The knowledge holds them as one text per card, a line per configuration, so that a run reads no
more than the lines of its own card.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from advisor.scenario.splits import is_usual_split

if TYPE_CHECKING:
    from advisor.scenario.scenario import Scenario

SEPARATOR = "\t"
_Key = tuple[str, str, str, str, int, int, str]
_NEAR_DEPTH = 1.3
"""Depths within this factor are the same depth."""


class Measured(Struct, frozen=True):
    """A published speed of one configuration."""

    depth_tokens: int
    """Cached tokens on average over the timed part."""
    tok_s: float
    """Over all streams."""
    source: str
    date: str


class MeasuredSpeeds:
    """The measured configurations of one knowledge base."""

    def __init__(self, stored: object) -> None:
        """Hold the stored texts by card; anything else counts as none."""
        self._texts = stored if isinstance(stored, Mapping) else {}
        self._read: dict[str, dict[_Key, list[Measured]]] = {}

    def find(self, scenario: Scenario, shallow_tokens: int) -> Measured | None:
        """Find the speed measured in this very situation, without drafts.

        Args:
            scenario: Its format, cache, split and depth must be those measured.
            shallow_tokens: Up to this depth all depths are one.
        """
        lines = self._of(scenario.gpu.name) if scenario.gpu else None
        found = lines.get(_key(scenario)) if lines else None
        if not found or not _is_plain(scenario):
            return None
        depth = scenario.depth_tokens
        same = [m for m in found if _same_depth(m.depth_tokens, depth, shallow_tokens)]
        return min(same, key=lambda m: abs(m.depth_tokens - depth), default=None)

    def _of(self, gpu: str) -> dict[_Key, list[Measured]]:
        lines = self._read.get(gpu)
        if lines is None:
            lines = self._read[gpu] = {}
            for line in str(self._texts.get(gpu, "")).splitlines():
                key, measured = _parsed(line)
                lines.setdefault(key, []).append(measured)
        return lines


def _key(scenario: Scenario) -> _Key:
    return (
        scenario.model.name,
        scenario.precision.name,
        scenario.framework.name,
        scenario.backend or "",
        scenario.gpus,
        scenario.batch,
        scenario.kv_cache_k.name,
    )


def _parsed(line: str) -> tuple[_Key, Measured]:
    """Read a line that the knowledge was checked to hold."""
    model, precision, framework, backend, gpus, batch, cache, depth, tok_s, source, date = (
        line.split(SEPARATOR)
    )
    key = (model, precision, framework, backend, int(gpus), int(batch), cache)
    return key, Measured(int(depth), float(tok_s), source, date)


def _is_plain(scenario: Scenario) -> bool:
    return (
        scenario.kv_cache_k.name == scenario.kv_cache_v.name
        and scenario.model.origin == "knowledge"
        and scenario.gpu_layers is None
        and not scenario.cpu_experts
        and is_usual_split(scenario)
    )


def _same_depth(measured: int, asked: int, shallow: int) -> bool:
    if measured <= shallow and asked <= shallow:
        return True
    low, high = sorted((measured, asked))
    return high <= low * _NEAR_DEPTH
