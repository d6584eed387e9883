"""The carried measurements with known names: what is kept, and why the rest is not."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import cast, get_args

from msgspec import Struct

from advisor.calibration.dataset import Conditions, Row, conditions_of, speed_rows
from advisor.calibration.spelling import Spelling
from advisor.estimate.measurement import Measurement, Metric
from advisor.knowledge.types import Knowledge

_REPOSITORY = re.compile(r"(?:github:|https://github\.com/)([\w.-]+/[\w.-]+)")
_SHARED_RUN = re.compile(r"data/community/[\w.-]+/(\d+)")
_USER = re.compile(r"user=([\w.-]+)")
_RAW_OUTPUT = frozenset({
    "XiongjieDai/GPU-Benchmarks-on-LLM-Inference", "kyuz0/amd-strix-halo-toolboxes",
    "lhl/strix-halo-testing", "1337hero/rx7900xtx-llama-bench-vulcan", "PrismML-Eng/Bonsai-demo",
    "ghost91-/llama-bench", "LottoLottoLotto/4x3090-llm-benchmarks", "ggml-org/llama.cpp",
})  # fmt: skip
"""Sources that show what a tool printed; the others report figures or are filled in by hand."""
_SELF_REPORTED = (
    "localmaxxing", "AlexsJones/", "albedan/", "dambergn/", "gparemsky/", "AlexHiesch/",
)  # fmt: skip


class Observation(Struct, frozen=True):
    """One usable row."""

    row: str
    """The row's id in the carried file."""
    measured: Measurement
    conditions: Conditions
    stated_bytes: float | None
    """Size of the weights as the row gives it."""
    source: str
    """The machine or person behind it."""
    raw: bool
    """Raw output of a tool."""
    self_reported: bool
    exact: bool
    """The row names this very model and format, not a relative of the same shape."""


class Observations(Struct, frozen=True):
    """All usable rows, and how many were dropped for what reason."""

    kept: Sequence[Observation]
    dropped: Mapping[str, int]


def observations(knowledge: Knowledge, rows: Sequence[Row] | None = None) -> Observations:
    """Name and filter the carried rows.

    Args:
        knowledge: Gives the names.
        rows: Rows of the carried columns; the carried file if None.
    """
    spelling = Spelling(knowledge)
    kept: list[Observation] = []
    dropped: Counter[str] = Counter()
    for row in speed_rows() if rows is None else rows:
        conditions = conditions_of(row)
        found = _observation(row, conditions, spelling)
        if isinstance(found, str):
            dropped[found] += 1
        else:
            kept.append(found)
    return Observations(kept, dict(sorted(dropped.items(), key=lambda item: (-item[1], item[0]))))


def _observation(row: Row, conditions: Conditions, spelling: Spelling) -> Observation | str:
    reason = _unusable(row, conditions)
    if reason:
        return reason
    gpu, model, framework = spelling.gpu(row), spelling.model(row), spelling.framework(row)
    if gpu is None:
        return "the card is not in the knowledge base, or several unlike cards share the work"
    if framework is None:
        return "the program is not in the knowledge base, or is a fork of one"
    if model is None:
        return "the model is not in the knowledge base"
    precision = spelling.precision(row, framework)
    if precision is None:
        return "the weight format is not stated or not in the knowledge base"
    if precision in {"FP16", "BF16"} and model.startswith("gpt-oss"):
        precision = "MXFP4_MOE"  # its files keep the experts in MXFP4 whatever the label says
    backend = spelling.backend(row, gpu, framework)
    if backend is None:
        return "no single known backend"
    measured = _measurement(row, conditions, (gpu, model, precision, framework, backend))
    weights = row["weights_gib"]
    source = source_of(row)
    return Observation(
        row["id"],
        measured,
        conditions,
        float(weights) * 2**30 if weights else None,
        source,
        raw=any(source.startswith(name) for name in _RAW_OUTPUT),
        self_reported=source.startswith(_SELF_REPORTED),
        exact=spelling.is_exact(row),
    )


def _unusable(row: Row, conditions: Conditions) -> str:
    if row["caution"].startswith("client-side prefill"):
        return "prompt speed computed by the client from the time to the first token"
    if row["caution"].startswith("implied"):
        return "more than 103 % of the card's bandwidth: wrong label or undeclared speculation"
    if row["caution"]:
        return "a card on a single-board computer: its host sets the pace"
    if conditions.processor:
        return "computed on a processor"
    if conditions.speculates:
        return "speculative decoding"
    if conditions.cache is None:
        return "a cache type that is not in the knowledge base"
    if conditions.several_devices or conditions.instances > 1 or conditions.pipelines > 1:
        return "several instances or pipelines, or more cards than the row counts"
    if conditions.bench_depth == -1:
        return "the quoted benchmark command is cut short, so its depth is unknown"
    if not row["batch"] or float(row["value"] or 0) <= 0:
        return "no batch or no speed is stated"
    return ""


def source_of(row: Row) -> str:
    """Name the machine or person a row comes from, as finely as the row tells."""
    text = row["source"]
    if text.startswith("localmaxxing"):
        user = _USER.search(row["note"])
        return f"localmaxxing.com: {user.group(1) if user else 'anonymous'}"
    repository = _REPOSITORY.search(text)
    name = repository.group(1) if repository else text.partition(" ")[0]
    shared = _SHARED_RUN.search(text)
    return f"{name}: {shared.group(1)}" if shared else name


def _measurement(
    row: Row, conditions: Conditions, names: tuple[str, str, str, str, str]
) -> Measurement:
    gpu, model, precision, framework, backend = names
    depth = _whole(row["context_depth"])
    return Measurement(
        gpu=gpu,
        gpus=int(row["n_gpu"] or 1),
        model=model,
        precision=precision,
        framework=framework,
        framework_version=row["framework_version"],
        backend=backend,
        prompt_tokens=_whole(row["prompt_tokens"]),
        gen_tokens=_whole(row["gen_tokens"]),
        depth_tokens=depth if conditions.bench_depth is None else conditions.bench_depth,
        batch=int(row["batch"]),
        metric=_metric(row["metric"]),
        tok_s=float(row["value"]),
        stdev=float(row["stdev"]) if row["stdev"] else None,
        date=_date(row["date"]),
        source=row["source"],
        note=row["note"],
    )


def _metric(text: str) -> Metric:
    found = next((metric for metric in get_args(Metric) if metric == text), None)
    assert found, text
    return cast("Metric", found)


def _whole(text: str) -> int | None:
    return round(float(text)) if text else None


def _date(text: str) -> str:
    """Write every date as ISO, the end of a span where one is given."""
    digits = text.replace("-", "")
    if re.fullmatch(r"20\d\d-20\d\d", text):
        return text[5:]
    if re.fullmatch(r"20\d{6}", digits):
        return f"{digits[:4]}-{digits[4:6]}-{digits[6:]}"
    return text
