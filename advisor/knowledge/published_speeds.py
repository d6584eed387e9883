"""Measured speeds as the knowledge stores them: one text per card, a line per configuration."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from statistics import median

from advisor.errors import KnowledgeError, Source, UserError

_COLUMNS = (
    "gpu", "model", "precision", "framework", "backend", "gpus", "batch", "cache", "depth_tokens",
    "tok_s", "source", "date",
)  # fmt: skip
_NEEDED = tuple(name for name in _COLUMNS if name != "cache")
_SEPARATOR = "\t"


def measured_by_card(content: bytes, name: str, problems: list[UserError]) -> dict[str, str]:
    """Turn a table of measured speeds into one text per card.

    Repeated configurations become their median, in the order of their first line.

    Args:
        content: CSV with a header line, UTF-8.
        name: The file, for complaints.
        problems: Collects what is wrong.
    """
    groups: dict[tuple[str, ...], list[float]] = {}
    for key, tok_s in _lines(content, name, problems):
        groups.setdefault(key, []).append(tok_s)
    texts: dict[str, list[str]] = {}
    for (gpu, *before, source, date), found in groups.items():
        line = _SEPARATOR.join((*before, f"{median(found):.6g}", source, date))
        texts.setdefault(gpu, []).append(line)
    return {gpu: "\n".join(lines) for gpu, lines in texts.items()}


def _lines(
    content: bytes, name: str, problems: list[UserError]
) -> Iterator[tuple[tuple[str, ...], float]]:
    try:
        reader = csv.DictReader(io.StringIO(content.decode("utf-8"), newline=""))
        missing = [column for column in _NEEDED if column not in (reader.fieldnames or ())]
    except UnicodeDecodeError:
        problems.append(KnowledgeError("the file is not UTF-8", source=Source(name)))
        return
    if missing:
        message = f"the table has no column {', '.join(missing)}"
        problems.append(KnowledgeError(message, source=Source(name, 1)))
        return
    for row in reader:
        try:
            found = _line(row)
        except ValueError as bad:
            place = Source(name, reader.line_num)
            problems.append(KnowledgeError(str(bad), source=place, hint="Correct the line."))
            continue
        yield found


def _line(row: Mapping[str, str]) -> tuple[tuple[str, ...], float]:
    batch = _whole(row, "batch", 1)
    tok_s = _number(row, "tok_s")
    if tok_s <= 0:
        raise ValueError(f"tok_s is {tok_s:g}, not above 0")
    depth = _whole(row, "depth_tokens", 0)
    key = (
        row["gpu"], row["model"], row["precision"], row["framework"], row["backend"],
        str(_whole(row, "gpus", 1)), str(batch), row.get("cache") or "f16", str(depth),
        _plain(row["source"]), _plain(row["date"]),
    )  # fmt: skip
    return key, tok_s


def _plain(text: str) -> str:
    return " ".join((text or "").split())


def _whole(row: Mapping[str, str], column: str, default: int) -> int:
    text = row.get(column) or ""
    if not text:
        return default
    try:
        return round(float(text))
    except (ValueError, OverflowError):
        raise ValueError(f"{column} is '{text}', not a whole number") from None


def _number(row: Mapping[str, str], column: str) -> float:
    try:
        return float(row[column])
    except (ValueError, TypeError):
        raise ValueError(f"{column} is '{row[column]}', not a number") from None
