"""The JSON and CSV of ``models-for`` and ``gpus-for``; keys may be added, never renamed.

``scenario``, ``memory`` and ``speed`` are the objects of ``advise --format json``.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from math import isinf
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import asdict

from advisor.advice.configuration import MemoryDoc, ScenarioDoc, SpeedDoc
from advisor.advice.projection import memory_doc, read_as, scenario_doc, speed_doc
from advisor.bulk.reverse.cards import form_of, power_w, price_usd, value_of
from advisor.bulk.reverse.view import ranking_words, user_entries_of
from advisor.errors import visible
from advisor.files import __version__
from advisor.knowledge.layers import UserEntry
from advisor.knowledge.merit import figures_for
from advisor.runtimes.commands import command_for
from advisor.scenario.figures import headroom_percent
from advisor.units import plain

if TYPE_CHECKING:
    from advisor.bulk.reverse.answers import Found, Row, Wish
    from advisor.knowledge.types import Knowledge


SCHEMA_VERSION = 1
COLUMNS = (
    "rank", "model", "parameters", "active_parameters", "model_released", "gpu", "gpus", "form",
    "precision", "quality_loss_percent", "framework", "kv_cache", "context_tokens", "batch",
    "gpu_layers", "cpu_experts", "required_bytes", "usable_bytes", "headroom_bytes",
    "headroom_percent", "margin", "max_context_tokens", "max_batch", "decode_tok_s",
    "decode_low_tok_s", "decode_high_tok_s", "decode_evidence", "price_usd", "power_w",
    "merit", "merit_band", "merit_in_format", "merit_of",
)  # fmt: skip
"""Of the CSV; an empty cell is a figure that is not known."""


class FigureDoc(Struct, frozen=True):
    """What a leaderboard says of a model."""

    board: str
    """The leaderboard."""
    metric: str
    """What it tells, with its unit."""
    value: float
    """Its figure. [as metric says]"""
    low: float | None
    """With ``high`` its interval, where the board gives one. [as metric says]"""
    high: float | None
    """Upper end of that interval. [as metric says]"""
    seen: str
    """Day it was read there."""
    thinks: bool
    """Whether the model thought before it answered."""


class MeritDoc(Struct, frozen=True):
    """How good a model is for the use, in points of one leaderboard (docs/merit.md)."""

    points: float
    """Unquantised. [points]"""
    band: float
    """How far boards differ about such a model. [points]"""
    in_format: float
    """What the format leaves, of a relative's figure the low end; it ranks models. [points]"""
    relative: str | None
    """The model whose figure this is; null: its own."""
    estimated: bool
    """Whether its boards estimated it from a part of their tests."""
    figures: Sequence[FigureDoc]
    """Of the boards that count for the use, as they state them."""


class RowDoc(Struct, frozen=True):
    """One model, or one card, that runs."""

    rank: int
    """Its place, the best first. [place from 1]"""
    request: Mapping[str, Any]
    """Keys of ``advisor estimate``; run by itself it gives these very figures."""
    scenario: ScenarioDoc
    """What ``request`` means: names resolved, defaults filled in."""
    memory: MemoryDoc
    """What it occupies."""
    headroom_percent: float | None
    """Of the fullest card's usable memory."""
    margin: str | None
    """thin, narrow or ample."""
    speed: SpeedDoc | None
    """How fast it runs; null where that is not known."""
    quality_loss_percent: float | None
    """Perplexity increase of the weight format over FP16; null: not measured."""
    model_released: str | None
    """Day the model came out; null: not known."""
    form: str
    """desktop, workstation, laptop, datacenter, edge or unified."""
    price_usd: float | None
    """Launch price of all cards together; null: no source states it."""
    power_w: float | None
    """Board power of all cards together; null: no source states it."""
    command: str
    """How to run it; empty where no sourced command is known."""
    merit: MeritDoc | None = None
    """Null: no board names the model or a relative; always so with ``gpus-for``."""


class BestDoc(Struct, frozen=True):
    """The first of all cards by one figure."""

    gpu: str
    """The card."""
    gpus: int
    """How many of them. [cards]"""
    precision: str
    """Weight format that they run the model in."""
    value: float
    """The figure. [US dollars of price, bytes of memory, tokens/s of speed, W of power]"""


class AskedDoc(Struct, frozen=True):
    """What was asked, defaults filled in."""

    context_tokens: int | None
    """Null: the smaller of 4096 and the trained length of each model."""
    batch: int
    """Sequences held at once. [sequences]"""
    gpus: int
    """With ``gpus-for`` the most equal cards. [cards]"""
    kv_cache: str
    """Type of the key/value cache."""
    framework: str | None
    """Null: for each format the first that runs it."""
    min_speed_tok_s: float | None
    """The least speed of one sequence; null: any."""
    max_loss_percent: float | None
    """Null: any."""
    unmeasured: bool
    """Whether formats without a measured loss are taken."""
    prefer: str
    """What decides between formats: balanced, quality, speed or cost."""
    sort: str | None
    """What cards are ordered by; null for models."""
    use: str | None = None
    """What the model is for; null: not said."""


class ReverseDoc(Struct, frozen=True):
    """One answer."""

    schema_version: int
    """1; raised only where a key changes its meaning. [version]"""
    question: str
    """models-for or gpus-for."""
    subject: str
    """The card or the model that was asked for."""
    asked: AskedDoc
    """What was asked, defaults filled in."""
    ranking: str
    """How the rows are ordered, in words."""
    tried: int
    """All that are known: ``fitting`` and all of ``left_out`` together. [models or cards]"""
    fitting: int
    """Models or cards that run, shown or not. [models or cards]"""
    rows: Sequence[RowDoc]
    """What runs, the best first."""
    best: Mapping[str, BestDoc]
    """For ``gpus-for``: price, memory, speed and power; those without any known figure lack."""
    left_out: Mapping[str, int]
    """Cause -> how many models or cards do not run because of it. [models or cards]"""
    yours: Sequence[UserEntry]
    """What of the user's own knowledge the rows rest on."""
    warnings: Sequence[str]
    """Plain sentences about what was asked."""
    knowledge_sha256: str
    """Digest of the knowledge."""
    advisor: str
    """Version of the program."""


def reverse_doc(question: str, subject: str, found: Found, knowledge: Knowledge) -> ReverseDoc:
    """Put an answer as JSON has it."""
    return read_as(
        ReverseDoc,
        found,
        schema_version=SCHEMA_VERSION,
        question=question,
        subject=subject,
        asked=_asked(found.wish, found.sort),
        ranking=ranking_words(found, knowledge),
        rows=[_row(rank, row, found, knowledge) for rank, row in enumerate(found.rows, start=1)],
        best={name: _best(name, row) for name, row in found.best.items()},
        left_out={str(cause): count for cause, count in found.left_out.items()},
        yours=user_entries_of(found, knowledge),
        warnings=[plain(text) for text in found.warnings],
        knowledge_sha256=knowledge.sha256,
        advisor=__version__,
    )


_FORMULAS = ("=", "+", "-", "@", "\t", "\r")


def written_csv(doc: ReverseDoc) -> str:
    """Write the rows of an answer as CSV, one line each below a header."""
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(flat_row(row) for row in doc.rows)
    return out.getvalue()


def _asked(wish: Wish, sort: str | None) -> AskedDoc:
    loss = wish.max_loss_percent
    return read_as(
        AskedDoc,
        wish,
        context_tokens=wish.request.context,
        batch=wish.request.batch or 1,
        kv_cache=wish.kv_type.name,
        framework=wish.framework.name if wish.framework else None,
        max_loss_percent=None if isinf(loss) else loss,
        sort=sort,
    )


def _best(name: str, row: Row) -> BestDoc:
    scenario = row.answer.scenario
    value = value_of(name, row.answer)
    assert scenario.gpu
    assert value is not None
    return BestDoc(scenario.gpu.name, scenario.gpus, scenario.precision.name, value)


def _row(rank: int, row: Row, found: Found, knowledge: Knowledge) -> RowDoc:
    answer = row.answer
    scenario, gpu = answer.scenario, answer.gpu
    return RowDoc(
        rank=rank,
        request=dict(row.request.stated()),
        scenario=scenario_doc(scenario),
        memory=memory_doc(answer.memory, row.limits),
        headroom_percent=headroom_percent(answer.memory),
        margin=row.margin,
        speed=speed_doc(answer.speed),
        quality_loss_percent=answer.loss_percent,
        model_released=scenario.model.released,
        form=form_of(gpu),
        price_usd=price_usd(gpu, scenario.gpus),
        power_w=power_w(gpu, scenario.gpus),
        command=command_for(scenario, answer.memory),
        merit=_merit(row, found.wish.use, knowledge),
    )


def _merit(row: Row, use: str | None, knowledge: Knowledge) -> MeritDoc | None:
    if row.merit is None or use is None:
        return None
    merit, model = row.merit.merit, row.answer.scenario.model
    return MeritDoc(
        points=merit.points,
        band=merit.band,
        in_format=round(row.merit.points, 2),
        relative=merit.relative,
        estimated=merit.estimated,
        figures=[
            read_as(FigureDoc, figure, metric=board.metric)
            for figure, board in figures_for(
                knowledge, (merit.relative or model.name, model.hf_id or ""), use
            )
        ],
    )


def flat_row(row: RowDoc) -> dict[str, object]:
    """Put a row as one line of a table: the keys of ``COLUMNS`` and more."""
    scenario, speed = row.scenario, row.speed
    model, gpu = scenario.model, scenario.gpu
    decode = speed.decode_tok_s if speed else None
    given: dict[str, object] = {
        **asdict(row),
        **asdict(scenario),
        **asdict(row.memory),
        "model": model.name,
        "parameters": model.parameters,
        "active_parameters": model.active_parameters,
        "gpu": gpu.name if gpu else None,
        "decode_tok_s": decode.estimate if decode else None,
        "decode_low_tok_s": decode.low if decode else None,
        "decode_high_tok_s": decode.high if decode else None,
        "decode_evidence": decode.evidence if decode else None,
        "merit": row.merit.points if row.merit else None,
        "merit_band": row.merit.band if row.merit else None,
        "merit_in_format": row.merit.in_format if row.merit else None,
        "merit_of": row.merit.relative if row.merit else None,
    }
    return {name: _cell(given[name]) for name in COLUMNS}


def _cell(value: object) -> object:
    """Keep a spreadsheet from taking a name for a formula."""
    if not isinstance(value, str):
        return value
    return f"'{visible(value)}" if value.startswith(_FORMULAS) else visible(value)
