"""The simple CSV: one figure per line under the column names of the store."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import get_args

from advisor.calibration.user.benchmark import Fields, Read, Run, iso_date
from advisor.errors import UserError
from advisor.estimate.measurement import Measurement, Metric
from advisor.suggest import did_you_mean

COLUMNS = Measurement.__struct_fields__
METRICS: tuple[Metric, ...] = get_args(Metric)
_OTHER_NAMES = {
    "card": "gpu", "format": "precision", "quant": "precision", "quantization": "precision",
    "engine": "framework", "version": "framework_version", "depth": "depth_tokens",
    "streams": "batch", "tokens_per_second": "tok_s", "tok/s": "tok_s", "t/s": "tok_s",
}  # fmt: skip
_SHORT_METRICS: Mapping[str, Metric] = {
    "decode": "decode_tok_s", "tg": "decode_tok_s", "prefill": "prefill_tok_s",
    "pp": "prefill_tok_s", "throughput": "total_throughput_tok_s",
}  # fmt: skip


def columns_of(header: Sequence[str]) -> list[str]:
    """Give the columns that a header's cells name; unknown cells stay as they are."""
    cells = (cell.strip().casefold().replace(" ", "_") for cell in header)
    return [_OTHER_NAMES.get(cell, cell) for cell in cells]


def is_table(header: Sequence[str]) -> bool:
    """Whether this is a header of the simple CSV."""
    return "tok_s" in columns_of(header)


def header_problems(header: Sequence[str], file: str, line: int) -> Iterator[UserError]:
    """Name every column that is unknown or stands twice."""
    place = Fields({}, file, line)
    names = columns_of(header)
    for cell, name in zip(header, names, strict=True):
        if name not in COLUMNS:
            hint = did_you_mean(name, COLUMNS) or f"Known: {', '.join(COLUMNS)}."
            yield place.error(f"unknown column '{cell.strip()}'", hint)
    for name in dict.fromkeys(n for n in names if names.count(n) > 1):
        yield place.error(f"two columns are called {name}")


def read_line(row: Fields) -> Read:
    """Read one line; what it leaves out may be stated on the command line."""
    try:
        return _run(row)
    except UserError as error:
        return error


def _run(row: Fields) -> Run:
    metric = metric_of(row)
    prompt = row.count("prompt_tokens")
    if metric == "prefill_tok_s" and not prompt:
        raise row.error("prefill without prompt_tokens", "State the length of the prompt.")
    return Run(
        line=row.line,
        metric=metric,
        tok_s=row.speed("tok_s"),
        stdev=row.spread("stdev"),
        gpu=row.text("gpu"),
        gpus=row.count("gpus"),
        models=tuple(name for name in [row.text("model")] if name),
        precisions=tuple(name for name in [row.text("precision")] if name),
        framework=row.text("framework"),
        framework_version=row.text("framework_version"),
        backend=row.text("backend"),
        prompt_tokens=prompt,
        gen_tokens=row.count("gen_tokens"),
        depth_tokens=row.count("depth_tokens"),
        batch=row.count("batch"),
        date=day(row),
        source=row.text("source"),
        note=row.text("note"),
    )


def metric_of(row: Fields) -> Metric:
    """Read the metric; decode where none is stated.

    Raises:
        UserError: Unknown.
    """
    said = row.text("metric").casefold() or "decode"
    found = _SHORT_METRICS.get(said) or next((name for name in METRICS if name == said), None)
    if found is None:
        hint = did_you_mean(said, METRICS) or f"Known: {', '.join(METRICS)}."
        raise row.error(f"unknown metric '{said}'", hint)
    return found


def day(row: Fields) -> str:
    """Read the date; empty where none is stated.

    Raises:
        UserError: It is no date.
    """
    said = row.text("date")
    if said and not iso_date(said):
        raise row.error(f"date is '{said}'", "Write it as 2026-03-31.")
    return iso_date(said)
