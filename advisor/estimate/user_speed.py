"""Figures that the user measured, where they are of the very setup that is asked about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from advisor.estimate.speed_rates import Speeds
from advisor.estimate.speed_step import is_split
from advisor.estimate.speed_tables import Range
from advisor.scenario.figures import Figure, Speed
from advisor.scenario.scenario import Scenario
from advisor.scenario.splits import is_usual_split
from advisor.units import plain

if TYPE_CHECKING:
    from advisor.knowledge.user_measurements import Setup, UserFigure


def with_own(scenario: Scenario, speeds: Speeds, speed: Speed) -> Speed:
    """Put the user's figures in the place of estimates, which stay beside them.

    A figure counts when everything that is told apart is equal and the depths differ by no more
    than ``most_depth_tokens`` of the calibration. It goes before a published one.
    """
    own = speeds.own
    gpu = scenario.gpu
    if own is None or gpu is None or (gpu.name, scenario.model.name) not in own.models:
        return speed
    setup = _setup(scenario)
    if setup is None:
        return speed
    spread = speeds.tables.ranges["measured"]
    decode = _own(own.decode, setup, scenario.depth_tokens, speeds.tables.measured_depth_tokens)
    if decode:
        figure = _figure(decode, spread, speed.decode_tok_s)
        speed = replace(speed, decode_tok_s=figure, aggregate_tok_s=_times(figure, scenario.batch))
    prefill = _own(own.prefill, setup, 0, 0)
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
    from advisor.knowledge.user_measurements import Setup  # noqa: PLC0415 - few have measured

    return Setup(
        gpu.name,
        scenario.gpus,
        scenario.model.name,
        scenario.precision.name,
        scenario.framework.name,
        backend,
        scenario.batch,
    )


def _own(
    found: Mapping[Setup, tuple[UserFigure, ...]], setup: Setup, depth: int, most_apart: int
) -> Sequence[UserFigure]:
    """Give the figures of the nearest depth, none when that is too far off."""
    figures = found.get(setup, ())
    apart = min((abs(f.depth_tokens - depth) for f in figures), default=most_apart + 1)
    if apart > most_apart:
        return ()
    return [f for f in figures if abs(f.depth_tokens - depth) == apart]


def _figure(figures: Sequence[UserFigure], spread: Range, estimate: Figure) -> Figure:
    """Take the median; the source is that of the newest line."""
    from statistics import median  # noqa: PLC0415 - 5 ms for those who measured nothing

    speed = median(f.tok_s for f in figures)
    modelled = estimate.estimate if estimate.modelled is None else estimate.modelled
    several = f" and {len(figures) - 1} more" if len(figures) > 1 else ""
    source = f"{figures[-1].source}{several}"
    return Figure(speed, speed * spread[0], speed * spread[1], "measured", plain(source), modelled)


def _times(figure: Figure, batch: int) -> Figure:
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
