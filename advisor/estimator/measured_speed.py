"""Measured speeds, published or of the user: looked up by configuration, never modelled.

The knowledge holds the published ones as one text per card, a line per configuration, so that a
run reads no more than the lines of its own card.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from msgspec import Struct
from msgspec.structs import replace

from advisor.knowledge.types import Setup
from advisor.scenario import Scenario, is_split, is_usual_split
from advisor.scenario.figures import Figure, Speed
from advisor.units import plain

if TYPE_CHECKING:
    from advisor.knowledge.types import UserFigure, UserSpeeds

SEPARATOR = "\t"
_Key = tuple[str, str, str, str, int, int, str]
_Range = tuple[float, float]
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

        Format, cache, split and depth must be those measured; up to ``shallow_tokens`` all depths
        are one.
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


def with_measured(
    scenario: Scenario, measured: UserSpeeds, speed: Speed, *, spread: _Range, most_apart: int
) -> Speed:
    """Put the user's figures in the place of estimates, which stay beside them.

    A figure counts when everything that is told apart is equal and the depths differ by no more
    than ``most_apart`` tokens. It goes before a published one; ``spread`` is its range, as factors.
    """
    gpu = scenario.gpu
    if gpu is None or (gpu.name, scenario.model.name) not in measured.models:
        return speed
    setup = _setup(scenario)
    if setup is None:
        return speed
    decode = _nearest(measured.decode, setup, scenario.depth_tokens, most_apart)
    if decode:
        figure = _figure(decode, spread, speed.decode_tok_s)
        speed = replace(speed, decode_tok_s=figure, aggregate_tok_s=times(figure, scenario.batch))
    prefill = _nearest(measured.prefill, setup, 0, 0)
    if prefill and speed.prefill_tok_s:
        speed = replace(speed, prefill_tok_s=_figure(prefill, spread, speed.prefill_tok_s))
    return speed


def _setup(scenario: Scenario) -> Setup | None:
    """Name the setup; None for one that measurements are not stored of."""
    gpu, backend = scenario.gpu, scenario.backend
    plain = (
        scenario.kv_cache_k.name == scenario.kv_cache_v.name == "f16"
        and scenario.model.origin == "knowledge"
        and not is_split(scenario)
        and is_usual_split(scenario)
    )
    if gpu is None or backend is None or not plain:
        return None
    return Setup(
        gpu.name,
        scenario.gpus,
        scenario.model.name,
        scenario.precision.name,
        scenario.framework.name,
        backend,
        scenario.batch,
    )


def _nearest(
    found: Mapping[Setup, tuple[UserFigure, ...]], setup: Setup, depth: int, most_apart: int
) -> Sequence[UserFigure]:
    """Give the figures of the nearest depth, none when that is too far off."""
    figures = found.get(setup, ())
    apart = min((abs(f.depth_tokens - depth) for f in figures), default=most_apart + 1)
    if apart > most_apart:
        return ()
    return [f for f in figures if abs(f.depth_tokens - depth) == apart]


def _figure(figures: Sequence[UserFigure], spread: _Range, estimate: Figure) -> Figure:
    """Take the median; the source is that of the newest line."""
    from statistics import median  # noqa: PLC0415 - 5 ms for those who measured nothing

    speed = median(f.tok_s for f in figures)
    modelled = estimate.estimate if estimate.modelled is None else estimate.modelled
    several = f" and {len(figures) - 1} more" if len(figures) > 1 else ""
    source = f"{figures[-1].source}{several}"
    return Figure(speed, speed * spread[0], speed * spread[1], "measured", plain(source), modelled)


def times(figure: Figure, batch: int) -> Figure:
    """Give the sum over the batch of what one stream gets."""
    if batch == 1:
        return figure
    return replace(
        figure,
        estimate=figure.estimate * batch,
        low=figure.low * batch,
        high=figure.high * batch,
        modelled=None if figure.modelled is None else figure.modelled * batch,
    )


Metric = Literal["decode_tok_s", "prefill_tok_s", "total_throughput_tok_s"]


class Measurement(Struct, frozen=True):
    """A speed somebody measured; text fields are empty and numbers None where not stated."""

    gpu: str
    """Name of the card in the knowledge base."""
    gpus: int
    model: str
    """Name of the model in the knowledge base."""
    precision: str
    """Name of the weight format in the knowledge base."""
    framework: str
    """Name of the runtime in the knowledge base."""
    framework_version: str
    backend: str
    """CUDA, ROCm, Vulkan, Metal or SYCL."""
    prompt_tokens: int | None
    gen_tokens: int | None
    depth_tokens: int | None
    """Tokens in the cache before the timed part."""
    batch: int
    """Streams at once."""
    metric: Metric
    """Decode: of one stream; total throughput: generated tokens of all streams, prompts and
    waiting included."""
    tok_s: float
    stdev: float | None
    date: str
    """ISO, as exact as stated: ``2026-08`` or ``2026-08-13``."""
    source: str
    note: str
