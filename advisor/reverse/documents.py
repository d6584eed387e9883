"""Answers -> JSON and CSV."""

from __future__ import annotations

import csv
import io
import json
from math import isinf
from typing import TYPE_CHECKING

from advisor.advice.provenance import user_records
from advisor.estimate.margin import headroom_percent
from advisor.files import __version__
from advisor.report.assembly import memory_doc, speed_doc
from advisor.report.figures import plain
from advisor.report.provenance import yours_doc
from advisor.report.request_view import scenario_doc
from advisor.reverse.cards import form_of, power_w, price_usd, value_of
from advisor.reverse.remarks import ranking_words
from advisor.runtimes.commands import command_for

if TYPE_CHECKING:
    from advisor.knowledge.types import Knowledge
    from advisor.report.contract_provenance import YoursDoc
    from advisor.reverse.answers import Found, Row
    from advisor.reverse.contract import AskedDoc, BestDoc, ReverseDoc, RowDoc
    from advisor.reverse.criteria import Wish
    from advisor.scenario.settings import Request

SCHEMA_VERSION = 1
COLUMNS = (
    "rank", "model", "parameters", "active_parameters", "model_released", "gpu", "gpus", "form",
    "precision", "quality_loss_percent", "framework", "kv_cache", "context_tokens", "batch",
    "gpu_layers", "cpu_experts", "required_bytes", "usable_bytes", "headroom_bytes",
    "headroom_percent", "margin", "max_context_tokens", "max_batch", "decode_tok_s",
    "decode_low_tok_s", "decode_high_tok_s", "decode_evidence", "price_usd", "power_w",
)  # fmt: skip
"""Of the CSV; an empty cell is a figure that is not known."""


def reverse_doc(question: str, subject: str, found: Found, knowledge: Knowledge) -> ReverseDoc:
    """Put an answer as JSON has it.

    Args:
        question: models-for or gpus-for.
        subject: Name of the card or the model.
        found: The answer.
        knowledge: What it was found in.
    """
    return {
        "schema_version": SCHEMA_VERSION,
        "question": question,
        "subject": subject,
        "asked": _asked(found.wish, found.sort),
        "ranking": ranking_words(found),
        "tried": found.tried,
        "fitting": found.fitting,
        "rows": [_row(rank, row) for rank, row in enumerate(found.rows, start=1)],
        "best": {name: _best(name, row) for name, row in found.best.items()},
        "left_out": {str(cause): count for cause, count in found.left_out.items()},
        "yours": yours_docs(found, knowledge),
        "warnings": [plain(text) for text in found.warnings],
        "knowledge_sha256": knowledge.sha256,
        "advisor": __version__,
    }


def yours_docs(found: Found, knowledge: Knowledge) -> list[YoursDoc]:
    """List what of the user's own knowledge the rows rest on."""
    entries = user_records(knowledge, [row.answer.scenario for row in found.rows])
    return [doc for entry in entries if (doc := yours_doc(entry))]


def written_json(doc: ReverseDoc) -> str:
    """Write an answer as JSON, with a final newline."""
    return json.dumps(doc, ensure_ascii=False, allow_nan=False, indent=2) + "\n"


def written_csv(doc: ReverseDoc) -> str:
    """Write the rows of an answer as CSV, one line each below a header."""
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(_flat(row) for row in doc["rows"])
    return out.getvalue()


def _asked(wish: Wish, sort: str | None) -> AskedDoc:
    loss = wish.max_loss_percent
    return {
        "context_tokens": wish.request.context,
        "batch": wish.request.batch or 1,
        "gpus": wish.gpus,
        "kv_cache": wish.kv_type.name,
        "framework": wish.framework.name if wish.framework else None,
        "min_speed_tok_s": wish.min_speed_tok_s,
        "max_loss_percent": None if isinf(loss) else loss,
        "unmeasured": wish.unmeasured,
        "prefer": wish.prefer,
        "sort": sort,
    }


def _best(name: str, row: Row) -> BestDoc:
    scenario = row.answer.scenario
    value = value_of(name, row.answer)
    assert scenario.gpu
    assert value is not None
    return {
        "gpu": scenario.gpu.name,
        "gpus": scenario.gpus,
        "precision": scenario.precision.name,
        "value": value,
    }


def _row(rank: int, row: Row) -> RowDoc:
    answer = row.answer
    scenario, gpu = answer.scenario, answer.gpu
    return {
        "rank": rank,
        "request": _request(row.request),
        "scenario": scenario_doc(scenario),
        "memory": memory_doc(answer.memory, row.limits),
        "headroom_percent": headroom_percent(answer.memory),
        "margin": row.margin,
        "speed": speed_doc(answer.speed),
        "quality_loss_percent": answer.loss_percent,
        "model_released": scenario.model.released,
        "form": form_of(gpu),
        "price_usd": price_usd(gpu, scenario.gpus),
        "power_w": power_w(gpu, scenario.gpus),
        "command": command_for(scenario, answer.memory),
    }


def _request(request: Request) -> dict[str, object]:
    return dict(request.stated())


def _flat(row: RowDoc) -> dict[str, object]:
    scenario, memory, speed = row["scenario"], row["memory"], row["speed"]
    model, gpu = scenario["model"], scenario["gpu"]
    decode = speed["decode_tok_s"] if speed else None
    given: dict[str, object] = {
        **row,
        **scenario,
        **memory,
        "model": model["name"],
        "parameters": model["parameters"],
        "active_parameters": model["active_parameters"],
        "gpu": gpu["name"] if gpu else None,
        "decode_tok_s": decode["estimate"] if decode else None,
        "decode_low_tok_s": decode["low"] if decode else None,
        "decode_high_tok_s": decode["high"] if decode else None,
        "decode_evidence": decode["evidence"] if decode else None,
    }
    return {name: given[name] for name in COLUMNS}
