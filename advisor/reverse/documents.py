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
from advisor.knowledge.provenance import UserEntry
from advisor.reverse.questions import form_of, power_w, price_usd, value_of
from advisor.runtimes.commands import command_for
from advisor.scenario.figures import headroom_percent
from advisor.units import format_quantity, plain

if TYPE_CHECKING:
    from advisor.knowledge.types import Knowledge
    from advisor.reverse.answers import Cause, Found, Row, Wish


_BY_PARAMETERS = (
    "most parameters first, then the least measured loss of the weight format, then the newest, "
    "with models for embeddings and speech at the end"
)
_MODELS = {
    "quality": f"Ranked by quality as far as it is known here: {_BY_PARAMETERS}. "
    "No benchmark scores are used.",
    "balanced": f"Ranked by quality as far as it is known here: {_BY_PARAMETERS}; "
    "models slower than reading speed come last. No benchmark scores are used.",
    "speed": "Ranked by decode speed, the fastest first; models of unknown speed come last, then "
    "those for embeddings and speech.",
}
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
    "short_training": "trained on less than {context} tokens of context",
    "not_sizable": "size or architecture not known well enough",
    "memory_unknown": "sold with several memory sizes; ask as NAME:SIZE with models-for",
    "price_unknown": "price not known, so --max-price cannot be judged",
    "power_unknown": "power not known, so --max-power cannot be judged",
    "release_unknown": "release date not known",
    "not_for_sale": "not on sale: virtual profiles, closed markets, cards of one cloud, used cards",
    "filtered": "not asked for",
}


def ranking_words(found: Found) -> str:
    """Say how the rows are ordered, and which format each has."""
    order = _CARDS[found.sort] if found.sort else _MODELS[found.wish.prefer]
    chosen = "quality" if found.wish.prefer == "quality" else "balanced"
    thin = f" {_THIN}" if any(row.margin == "thin" for row in found.rows) else ""
    return f"{order} {_FORMATS[chosen]}{thin}"


def left_out_words(found: Found) -> Iterator[tuple[int, str]]:
    """Say for every cause how many were left out because of it."""
    for cause, count in found.left_out.items():
        yield count, _cause(cause, found.wish)


def _cause(cause: Cause, wish: Wish) -> str:
    if cause == "larger_loss_only":
        return _loss_words(wish)
    if cause == "cannot_run" and wish.framework:
        return f"{wish.framework.name} does not run it with these settings"
    return _CAUSES[cause].format(
        speed=format_quantity(wish.min_speed_tok_s or 0.0, "tok/s"),
        context=f"{wish.request.context or 0:,}",
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
)  # fmt: skip
"""Of the CSV; an empty cell is a figure that is not known."""


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
        ranking=ranking_words(found),
        rows=[_row(rank, row) for rank, row in enumerate(found.rows, start=1)],
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
    writer.writerows(_flat(row) for row in doc.rows)
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


def _row(rank: int, row: Row) -> RowDoc:
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
    )


def _flat(row: RowDoc) -> dict[str, object]:
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
    }
    return {name: _cell(given[name]) for name in COLUMNS}


def _cell(value: object) -> object:
    """Keep a spreadsheet from taking a name for a formula."""
    if not isinstance(value, str):
        return value
    return f"'{visible(value)}" if value.startswith(_FORMULAS) else visible(value)
