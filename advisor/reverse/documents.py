"""The JSON and CSV of ``models-for`` and ``gpus-for``; keys may be added, never renamed.

``scenario``, ``memory`` and ``speed`` are the objects of ``advise --format json``.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from math import isinf
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import asdict

from advisor.advice.conclusions import user_records
from advisor.advice.document import MemoryDoc, ScenarioDoc, SpeedDoc
from advisor.advice.projection import memory_doc, read_as, scenario_doc, speed_doc
from advisor.errors import visible
from advisor.files import __version__
from advisor.knowledge.merit import figures_for, merits
from advisor.knowledge.provenance import UserEntry
from advisor.reverse.cards import form_of, power_w, price_usd, value_of
from advisor.runtimes.commands import command_for
from advisor.scenario.figures import headroom_percent
from advisor.units import format_quantity, plain

if TYPE_CHECKING:
    from advisor.knowledge.types import Knowledge
    from advisor.reverse.answers import Cause, Found, Row, Wish


_BY_MERIT = (
    "Ranked by merit for {use}, in points of the {board} (boards up to {as_of}), less what the "
    "format loses"
)
_BY_DATE = "No leaderboard is known for this kind: the newest come first, then the largest."
_BY_SPEED = "Ranked by decode speed, the fastest first; models of unknown speed come last."
_SLOWER = "; too slow for it, or over {years:g} years old: after the others"
_UNSURE = " ~: a relative's or an estimated figure, at its low end; -: none, the newest first."
_CARDS = {
    "price": "Sorted by launch price of all cards together, the cheapest first; cards whose price "
    "no source states come last. Street prices differ.",
    "memory": "Sorted by memory of all cards together, the smallest first.",
    "speed": "Sorted by decode speed, the fastest first; cards of unknown speed come last.",
    "power": "Sorted by board power of all cards together, the least first; cards of unknown "
    "power come last.",
}
_FORMATS = {
    "quality": "The format of each is the one with the least measured loss that fits.",
    "use": "Formats: the smallest that loses at most {barely:g} %, else the least loss that fits "
    "and is fast enough.",
    "balanced": "The format of each is the smallest that loses little, or else the one with the "
    "least measured loss that fits.",
}
_THIN = (
    "Where it says thin, no format leaves more, and less stays free than an estimate can promise."
)
_CAUSES: dict[Cause, str] = {
    "does_not_fit": "no format fits",
    "too_slow": "slower than {speed}",
    "speed_unknown": "speed not known, so --min-speed cannot be judged",
    "cannot_run": "no framework known here runs it with these settings",
    "short_training": "trained on less context than {context} tokens",
    "not_sizable": "size or architecture not known well enough",
    "memory_unknown": "sold with several memory sizes; ask as NAME:SIZE with models-for",
    "price_unknown": "price not known, so --max-price cannot be judged",
    "power_unknown": "power not known, so --max-power cannot be judged",
    "release_unknown": "release date not known",
    "licence_unknown": "licence not known, so --licence cannot be judged",
    "not_for_sale": "not on sale: virtual profiles, closed markets, cards of one cloud, used cards",
    "filtered": "not asked for",
}


def ranking_words(found: Found, knowledge: Knowledge) -> str:
    """Say how the rows are ordered, and which format each has."""
    order = _CARDS[found.sort] if found.sort else _models_words(found, knowledge)
    chosen = "quality" if found.wish.prefer == "quality" else "balanced"
    if chosen == "quality" and found.wish.use:
        chosen = "use"
    barely = knowledge.policy["barely_lossy_percent"]
    thin = f" {_THIN}" if any(row.margin == "thin" for row in found.rows) else ""
    return f"{order} {_FORMATS[chosen].format(barely=barely)}{thin}"


def _models_words(found: Found, knowledge: Knowledge) -> str:
    use, kept = found.wish.use, merits(knowledge)
    if found.wish.prefer == "speed":
        return _BY_SPEED
    if use is None or use not in kept.scales:
        return _BY_DATE
    board = kept.boards[kept.scales[use]].metric.partition(",")[0].partition(" as run")[0]
    words = _BY_MERIT.format(use=use, board=board, as_of=kept.as_of)
    if use != "embedding":
        words += _SLOWER.format(years=knowledge.policy["merit_oldest_years"])
    unsure = any(row.merit is None or row.merit.merit.unsure for row in found.rows)
    return f"{words}.{_UNSURE if unsure else ''}"


def left_out_words(found: Found) -> Iterator[tuple[int, str]]:
    """Say for every cause how many were left out because of it."""
    for cause, count in found.left_out.items():
        yield count, _cause(cause, found.wish, found.context)


def _cause(cause: Cause, wish: Wish, context: int | None) -> str:
    if cause == "larger_loss_only":
        return _loss_words(wish)
    if cause == "cannot_run" and wish.framework:
        return f"{wish.framework.name} does not run it with these settings"
    return _CAUSES[cause].format(
        speed=format_quantity(wish.min_speed_tok_s or 0.0, "tok/s"),
        context=f"{context or 0:,}",
    )


def _loss_words(wish: Wish) -> str:
    parts = []
    if not isinf(wish.max_loss_percent):
        parts.append(f"lose more than {wish.max_loss_percent:g} % (--max-loss)")
    if not wish.unmeasured:
        parts.append("have no measured loss (--unmeasured)")
    return f"only formats fit that {' or '.join(parts)}"


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
    metric: str
    value: float
    low: float | None
    """With ``high`` its interval, where the board gives one."""
    high: float | None
    seen: str
    thinks: bool
    """Whether the model thought before it answered."""


class MeritDoc(Struct, frozen=True):
    """How good a model is for the use, in points of one leaderboard (docs/merit.md)."""

    points: float
    """Unquantised."""
    band: float
    """How far boards differ about such a model, in points."""
    in_format: float
    """What the format leaves, of a relative's figure the low end; models are ranked by it."""
    relative: str | None
    """The model whose figure this is; null: its own."""
    estimated: bool
    """Whether its boards estimated it from a part of their tests."""
    figures: Sequence[FigureDoc]
    """Of the boards that count for the use, as they state them."""


class RowDoc(Struct, frozen=True):
    """One model, or one card, that runs."""

    rank: int
    request: Mapping[str, Any]
    """Keys of ``advisor estimate``; run by itself it gives these very figures."""
    scenario: ScenarioDoc
    memory: MemoryDoc
    headroom_percent: float | None
    """Of the fullest card's usable memory."""
    margin: str | None
    """thin, narrow or ample."""
    speed: SpeedDoc | None
    quality_loss_percent: float | None
    """Perplexity increase of the weight format over FP16; null: not measured."""
    model_released: str | None
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
    gpus: int
    precision: str
    value: float


class AskedDoc(Struct, frozen=True):
    """What was asked, defaults filled in."""

    context_tokens: int | None
    """Null: the smaller of 4096 and the trained length of each model."""
    batch: int
    gpus: int
    """With ``gpus-for`` the most equal cards."""
    kv_cache: str
    framework: str | None
    """Null: for each format the first that runs it."""
    min_speed_tok_s: float | None
    max_loss_percent: float | None
    """Null: any."""
    unmeasured: bool
    prefer: str
    sort: str | None
    use: str | None = None
    """What the model is for; null: not said."""


class ReverseDoc(Struct, frozen=True):
    """One answer."""

    schema_version: int
    question: str
    """models-for or gpus-for."""
    subject: str
    """The card or the model that was asked for."""
    asked: AskedDoc
    ranking: str
    """How the rows are ordered, in words."""
    tried: int
    """Models or cards of the knowledge base: ``fitting`` and all of ``left_out`` together."""
    fitting: int
    """Models or cards that run, shown or not."""
    rows: Sequence[RowDoc]
    best: Mapping[str, BestDoc]
    """For ``gpus-for``: price, memory, speed and power; those without any known figure lack."""
    left_out: Mapping[str, int]
    yours: Sequence[UserEntry]
    """What of the user's own knowledge the rows rest on."""
    warnings: Sequence[str]
    """Plain sentences about what was asked."""
    knowledge_sha256: str
    advisor: str


def reverse_doc(question: str, subject: str, found: Found, knowledge: Knowledge) -> ReverseDoc:
    """Put an answer as JSON has it.

    Args:
        question: models-for or gpus-for.
        subject: Name of the card or the model.
        found: The answer.
        knowledge: What it was found in.
    """
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


def user_entries_of(found: Found, knowledge: Knowledge) -> Sequence[UserEntry]:
    """List what of the user's own knowledge the rows rest on."""
    return user_records(knowledge, [row.answer.scenario for row in found.rows])


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
