"""The user's measurements laid over a knowledge base: own figures, and the card's own factors."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Literal

from msgspec.structs import replace

from advisor.errors import RequestError, Source, UserError, raise_problems
from advisor.estimator.calibration.user import Stored, load
from advisor.estimator.calibration.user.physics import FAR, figure_for
from advisor.estimator.calibration.user.plausibility import scenario_of
from advisor.estimator.measured_speed import Measurement
from advisor.estimator.speed import rate_of
from advisor.estimator.speed_rates import engine_of, speeds_of
from advisor.knowledge.types import (
    CardEngine,
    CardFactors,
    Knowledge,
    Setup,
    UserFigure,
    UserSpeeds,
)
from advisor.reading import find_gpu
from advisor.scenario import Scenario
from advisor.scenario.figures import Figure

_Kind = Literal["dense", "experts", "prefill"]
_DEEPEST = 2048
"""Tokens; as for the published card factors, so that the cache says little."""
_SHORTEST_PROMPT, _LONGEST_PROMPT = 256, 2048


def file_laid_over(knowledge: Knowledge, path: Path) -> Knowledge:
    """Lay the figures that a file holds over the knowledge; of one without any, give it back.

    Raises:
        UserError: The file is damaged, or names what the knowledge does not have.
    """
    data, stored = load(path)
    return laid_over(knowledge, stored, data, str(path)) if stored else knowledge


def laid_over(knowledge: Knowledge, stored: Sequence[Stored], data: bytes, shown: str) -> Knowledge:
    """Lay stored figures over the knowledge.

    ``data`` is the file's content, for its hash.

    Raises:
        UserError: A line names what the knowledge does not have.
    """
    base = replace(knowledge, user_speeds=None)
    raise_problems(list(_unknown(stored, base, shown)))
    figures = _newest([item.measurement for item in stored], base)
    speeds = UserSpeeds(
        sha256=hashlib.sha256(data).hexdigest(),
        models=frozenset((_card(m, base) or m.gpu, m.model) for m in figures),
        decode=_by_setup(base, (m for m in figures if m.metric == "decode_tok_s")),
        prefill=_by_setup(base, (m for m in figures if is_usual_prompt(m, base))),
        factors=_Factors(base, figures),
    )
    return replace(knowledge, user_speeds=speeds)


def _newest(figures: Iterable[Measurement], knowledge: Knowledge) -> list[Measurement]:
    """Keep what was measured last where the same thing was measured on several days."""
    by_thing: dict[object, list[Measurement]] = {}
    for m in figures:
        key = (setup_of(m, knowledge), m.metric, m.depth_tokens, m.prompt_tokens)
        by_thing.setdefault(key, []).append(m)
    return [m for same in by_thing.values() for m in same if m.date == max(o.date for o in same)]


def _unknown(stored: Iterable[Stored], knowledge: Knowledge, shown: str) -> Iterator[UserError]:
    hint = "Correct or remove the line, or leave measurements out with --no-measurements."
    for item in stored:
        m = item.measurement
        wrong = [
            f"{what} '{name}'"
            for what, name, table in (
                ("model", m.model, knowledge.models),
                ("weight format", m.precision, knowledge.formats),
                ("framework", m.framework, knowledge.frameworks),
            )
            if name not in table
        ]
        if _card(m, knowledge) is None:
            wrong.insert(0, f"GPU '{m.gpu}'")
        if wrong:
            message = f"unknown {', '.join(wrong)}"
            yield RequestError(message, source=Source(shown, item.line), hint=hint)


def _card(measurement: Measurement, knowledge: Knowledge) -> str | None:
    """Give the card's name without the memory that may be written behind it."""
    if measurement.gpu in knowledge.gpus:
        return measurement.gpu
    try:
        return find_gpu(knowledge, measurement.gpu).name
    except UserError:
        return None


def _by_setup(
    knowledge: Knowledge, figures: Iterable[Measurement]
) -> Mapping[Setup, tuple[UserFigure, ...]]:
    found: dict[Setup, tuple[UserFigure, ...]] = {}
    for m in figures:
        setup = setup_of(m, knowledge)
        figure = UserFigure(m.depth_tokens or 0, m.tok_s, source_of(m))
        found[setup] = (*found.get(setup, ()), figure)
    return found


def setup_of(measurement: Measurement, knowledge: Knowledge) -> Setup:
    """Name the setup that a figure is of."""
    m = measurement
    card = _card(m, knowledge) or m.gpu
    return Setup(card, m.gpus, m.model, m.precision, m.framework, m.backend, m.batch)


def source_of(measurement: Measurement) -> str:
    """Say where a figure comes from: ``your measurement, 2026-03-31, bench.json``."""
    parts = ("your measurement", measurement.date or "undated", measurement.source)
    return ", ".join(part for part in parts if part)


def is_usual_prompt(measurement: Measurement, knowledge: Knowledge) -> bool:
    """Whether it is a prefill figure of the prompt length that estimates are for."""
    speeds = speeds_of(knowledge)
    return (
        measurement.metric == "prefill_tok_s"
        and speeds is not None
        and measurement.prompt_tokens == speeds.tables.prefill.prompt_tokens
        and measurement.depth_tokens == 0
    )


class _Factors(Mapping[CardEngine, CardFactors]):
    """The factor of every measured card, worked out when it is first asked for."""

    def __init__(self, knowledge: Knowledge, figures: Iterable[Measurement]) -> None:
        self._knowledge = knowledge
        self._of: dict[CardEngine, list[Measurement]] = {}
        for m in figures:
            self._of.setdefault(card_engine(m, knowledge), []).append(m)
        self._made: dict[CardEngine, CardFactors] = {}

    def __getitem__(self, key: CardEngine) -> CardFactors:
        found = self._made.get(key)
        if found is None:
            found = self._made[key] = _card_factors(self._of[key], self._knowledge)
        return found

    def __iter__(self) -> Iterator[CardEngine]:
        return iter(self._of)

    def __len__(self) -> int:
        return len(self._of)


def card_engine(measurement: Measurement, knowledge: Knowledge) -> CardEngine:
    """Name the card, backend and engine that a figure says something of."""
    speeds = speeds_of(knowledge)
    framework = knowledge.frameworks[measurement.framework]
    engine = engine_of(speeds.tables, framework) if speeds else framework.name
    card = _card(measurement, knowledge) or measurement.gpu
    return CardEngine(card, measurement.backend, engine)


def _card_factors(figures: Sequence[Measurement], knowledge: Knowledge) -> CardFactors:
    """Compare figures with what the model says without them.

    The median log residual of the setups, shrunk by n / (n + 1): decoding toward the model without
    a card factor, because a published one carries another machine's conditions; mixtures of
    experts toward the card's own dense factor; prefill toward what is published or modelled.
    Source: docs/decisions/0012-measurements.md.
    """
    by_kind = _residuals(figures, knowledge)
    dense = _shrunk(by_kind["dense"], 0.0)
    experts = _shrunk(by_kind["experts"], dense or 0.0)
    prefill = _shrunk(by_kind["prefill"], 0.0)
    return CardFactors(_exp(dense), _exp(experts), _exp(prefill))


def _shrunk(residuals: Sequence[float], parent: float) -> float | None:
    if not residuals:
        return None
    n = len(residuals)
    return parent + (median(residuals) - parent) * n / (n + 1)


def _exp(log: float | None) -> float | None:
    return None if log is None else math.exp(log)


def _residuals(
    figures: Sequence[Measurement], knowledge: Knowledge
) -> Mapping[_Kind, Sequence[float]]:
    """Give the log residual of every setup and depth, the median where a day has two."""
    found: dict[_Kind, dict[object, list[float]]] = {"dense": {}, "experts": {}, "prefill": {}}
    for m in figures:
        if not _is_plain(m):
            continue
        kind, residual = _residual(m, knowledge)
        if residual is not None and abs(residual) <= math.log(FAR):
            key = (setup_of(m, knowledge), m.depth_tokens, m.prompt_tokens)
            found[kind].setdefault(key, []).append(residual)
    return {kind: [median(each) for each in of.values()] for kind, of in found.items()}


def _is_plain(measurement: Measurement) -> bool:
    """Whether the figure says something of the card: one stream, one card, little cached."""
    m = measurement
    depth = m.depth_tokens or 0
    if m.metric == "prefill_tok_s":
        usual = _SHORTEST_PROMPT <= (m.prompt_tokens or 0) <= _LONGEST_PROMPT
        return m.gpus == m.batch == 1 and depth == 0 and usual
    return m.metric == "decode_tok_s" and m.gpus == m.batch == 1 and depth <= _DEEPEST


def _residual(measurement: Measurement, knowledge: Knowledge) -> tuple[_Kind, float | None]:
    """Give what the figure is about, and its log over the model without a card factor.

    Prefill is held against what is published, and says nothing where a mixture of experts ran.
    """
    try:
        scenario = scenario_of(measurement, knowledge)
        figure = figure_for(measurement.metric, scenario, knowledge)
    except UserError:
        return "dense", None
    if figure is None:
        return "dense", None
    moe = bool(scenario.model.shape.moe)
    if measurement.metric == "prefill_tok_s":
        return "prefill", None if moe else math.log(measurement.tok_s / modelled(figure))
    known = scale_of(scenario, knowledge)
    return "experts" if moe else "dense", math.log(measurement.tok_s * known / modelled(figure))


def scale_of(scenario: Scenario, knowledge: Knowledge) -> float:
    """Give the card factor that an estimate of one stream holds."""
    rate = rate_of(scenario, speeds_of(knowledge))
    return rate.scale if rate else 1.0


def modelled(figure: Figure) -> float:
    """Give the model's own tokens/s, measured or not."""
    return figure.estimate if figure.modelled is None else figure.modelled
