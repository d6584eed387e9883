"""A shard as Parquet: one row for each report, figures and text side by side.

Written by pyarrow (extra ``parquet``). The same rows give the same bytes for one version of
pyarrow, which therefore stands in the manifest.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from io import BytesIO
from typing import TYPE_CHECKING

from advisor.advice.configuration import MemoryDoc
from advisor.advice.document import Advice

if TYPE_CHECKING:
    from advisor.scenario.figures import Figure

_WORDS, _WHOLE, _FIGURE = "string", "int64", "float64"
_COLUMNS: Mapping[str, str] = {
    "id": _WORDS,
    "request": _WORDS,
    "gpu": _WORDS,
    "vendor": _WORDS,
    "gpus": _WHOLE,
    "model": _WORDS,
    "family": _WORDS,
    "parameters": _WHOLE,
    "precision": _WORDS,
    "context_tokens": _WHOLE,
    "batch": _WHOLE,
    "kv_cache": _WORDS,
    "framework": _WORDS,
    "prefer": _WORDS,
    "state": _WORDS,
    "verdict": _WORDS,
    "capacity_bytes": _WHOLE,
    "usable_bytes": _WHOLE,
    "required_bytes": _WHOLE,
    "deficit_bytes": _WHOLE,
    "headroom_bytes": _WHOLE,
    "weights_bytes": _WHOLE,
    "kv_cache_bytes": _WHOLE,
    "compute_buffer_bytes": _WHOLE,
    "overhead_bytes": _WHOLE,
    "host_weights_bytes": _WHOLE,
    "host_kv_cache_bytes": _WHOLE,
    "max_context_tokens": _WHOLE,
    "max_batch": _WHOLE,
    "decode_tok_s": _FIGURE,
    "decode_low_tok_s": _FIGURE,
    "decode_high_tok_s": _FIGURE,
    "decode_evidence": _WORDS,
    "prefill_tok_s": _FIGURE,
    "aggregate_tok_s": _FIGURE,
    "bound_by": _WORDS,
    "recommendations": _WHOLE,
    "first_action": _WORDS,
    "first_title": _WORDS,
    "first_change": _WORDS,
    "first_command": _WORDS,
    "report_markdown": _WORDS,
}
_ASKED = (
    "gpus", "precision", "context_tokens", "batch", "kv_cache", "framework", "prefer",
)  # fmt: skip


def row(name: str, doc: Advice, markdown: str) -> Mapping[str, object]:
    """Lay a report out flat; unknown figures are None.

    Args:
        name: The report's name.
        doc: The result document.
        markdown: The written report.
    """
    asked, memory = doc.scenario, doc.memory
    gpu, model = asked.gpu, asked.model
    return {
        "id": name,
        "request": _text(doc.request),
        "gpu": gpu and gpu.name,
        "vendor": gpu and gpu.vendor,
        "model": model.name,
        "family": model.family,
        "parameters": model.parameters,
        "state": doc.verdict.state,
        "verdict": doc.verdict.sentence,
        "report_markdown": markdown,
        **{key: getattr(asked, key) for key in _ASKED},
        **{key: getattr(memory, key) for key in MemoryDoc.__struct_fields__ if key in _COLUMNS},
        **_speed(doc),
        **_first(doc),
    }


def _speed(doc: Advice) -> Mapping[str, object]:
    speed = doc.speed
    if speed is None:
        return {}
    decode = speed.decode_tok_s
    return {
        "decode_tok_s": decode.estimate,
        "decode_low_tok_s": decode.low,
        "decode_high_tok_s": decode.high,
        "decode_evidence": decode.evidence,
        "prefill_tok_s": _estimate(speed.prefill_tok_s),
        "aggregate_tok_s": _estimate(speed.aggregate_tok_s),
        "bound_by": speed.bound_by,
    }


def _estimate(figure: Figure | None) -> float | None:
    return figure.estimate if figure else None


def _first(doc: Advice) -> Mapping[str, object]:
    items = doc.recommendations
    if not items:
        return {"recommendations": 0}
    return {
        "recommendations": len(items),
        "first_action": items[0].action,
        "first_title": items[0].title,
        "first_change": _text(items[0].change),
        "first_command": items[0].command,
    }


def _text(value: Mapping[str, object]) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def table_bytes(rows: Sequence[Mapping[str, object]], apart: Collection[str] = ()) -> bytes:
    """Write rows as one Parquet file, without the columns that its path holds."""
    import pyarrow as pa  # noqa: PLC0415  an extra
    import pyarrow.parquet as pq  # noqa: PLC0415

    kept = {n: pa.type_for_alias(kind) for n, kind in _COLUMNS.items() if n not in apart}
    columns = {n: pa.array([one.get(n) for one in rows], type=kind) for n, kind in kept.items()}
    out = BytesIO()
    pq.write_table(pa.table(columns, schema=pa.schema(kept)), out, compression="zstd")
    return out.getvalue()
