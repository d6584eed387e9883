"""Lines of index.jsonl and errors.jsonl: what an audit or a site needs of every scenario."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from advisor.bulk.batch.plan import Item
from advisor.scenario.settings import Request

if TYPE_CHECKING:
    from advisor.advice.document import Advice
    from advisor.scenario.figures import Figure


def report_entry(
    name: str,
    item: Item,
    request: Request,
    doc: Advice,
    files: Mapping[str, Mapping[str, object]],
) -> Mapping[str, object]:
    """Describe a report: its request, the figures a list shows, and where its files are.

    Args:
        name: The report's name, the same in every format.
        item: What the plan said.
        request: The request as it was answered.
        doc: The result document.
        files: By format.
    """
    asked = doc.scenario
    gpu, model = asked.gpu, asked.model
    first = doc.recommendations[0] if doc.recommendations else None
    return {
        "id": name,
        **_stated(item),
        "request": dict(request.stated()),
        "gpu": gpu and gpu.name,
        "vendor": gpu and gpu.vendor,
        "gpus": asked.gpus,
        "model": model.name,
        "family": model.family,
        "precision": asked.precision,
        "context_tokens": asked.context_tokens,
        "batch": asked.batch,
        "kv_cache": asked.kv_cache,
        "framework": asked.framework,
        "state": doc.verdict.state,
        "required_bytes": doc.memory.required_bytes,
        "usable_bytes": doc.memory.usable_bytes,
        "headroom_bytes": doc.memory.headroom_bytes,
        "deficit_bytes": doc.memory.deficit_bytes,
        "decode_tok_s": _speed(doc.speed.decode_tok_s if doc.speed else None),
        "first": first and {"action": first.action, "title": first.title},
        "files": files,
    }


def failure_entry(number: int, item: Item, message: str, *, bug: bool) -> Mapping[str, object]:
    """Describe a scenario that has no report."""
    return {
        "shard": number,
        **_stated(item),
        "request": dict(item.request),
        "bug": bug,
        "error": message,
    }


def _stated(item: Item) -> Mapping[str, object]:
    """Where an explicit request stood in its file."""
    return {"row": {"line": item.line, "id": item.id}} if item.line else {}


def _speed(figure: Figure | None) -> Mapping[str, object] | None:
    if figure is None:
        return None
    return {key: getattr(figure, key) for key in ("estimate", "low", "high", "evidence")}
