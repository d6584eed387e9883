"""One row of a benchmark's file: its fields, names as it writes them, and the simple CSV."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import Literal, get_args

from msgspec import Struct, field

from advisor.errors import RequestError, Source, UserError, did_you_mean
from advisor.estimator.measured_speed import Measurement, Metric
from advisor.knowledge.catalogue import BACKEND_OF_WORD

_LONGEST_TEXT = 300
_MOST_TOKENS = 2**27


class Run(Struct, frozen=True, kw_only=True):
    """One figure with what its file says of the setup; an empty text or None: it does not say."""

    line: int
    metric: Metric
    tok_s: float
    per: Literal["tokens", "prompts too", "batch"] = "tokens"
    """What ``tok_s`` counts: generated tokens, prompt tokens with them, or whole batches."""
    stdev: float | None = None
    gpu: str = ""
    gpus: int | None = None
    gpu_layers: int | None = None
    """Layers on the card; None: all."""
    models: tuple[str, ...] = ()
    """Spellings of the model's name, the most telling first."""
    precisions: tuple[str, ...] = ()
    """Spellings of the weight format, the most telling first."""
    framework: str = ""
    usual_framework: str = ""
    """Taken where neither file nor user names one."""
    framework_version: str = ""
    backend: str = ""
    prompt_tokens: int | None = None
    gen_tokens: int | None = None
    depth_tokens: int | None = None
    batch: int | None = None
    date: str = ""
    source: str = ""
    note: str = ""
    architecture: str = ""
    """Of the model, as llama.cpp names it."""
    parameters: float | None = None
    """Of the model that really ran."""
    file_bytes: float | None = None
    """Of its weights."""


class Skipped(Struct, frozen=True):
    """A row that is right and of no use here."""

    line: int
    reason: str


Read = Run | Skipped | UserError


class Fields(Struct, frozen=True):
    """One row or object of a file; complaints name the file, the line and the field."""

    values: Mapping[str, object]
    file: str
    line: int
    shown: Mapping[str, str] = field(default_factory=dict)
    """What the file calls a field, where that is not its key."""

    def error(self, message: str, hint: str = "") -> RequestError:
        """Make an error of this place."""
        return RequestError(message, source=Source(self.file, self.line), hint=hint)

    def said(self, key: str) -> bool:
        """Whether the file states the field at all."""
        found = self.values.get(key)
        return found is not None and found != ""

    def text(self, key: str) -> str:
        """Read a text on one line; numbers count as text, other kinds do not."""
        found = self.values.get(key)
        if found is None:
            return ""
        if isinstance(found, bool) or not isinstance(found, str | int | float):
            raise self.error(f"{self._name(key)} is not a text")
        return one_line(str(found))

    def number(self, key: str) -> float | None:
        """Read a number, finite or not; None where it is not stated."""
        if not self.said(key):
            return None
        found = self.values[key]
        if isinstance(found, str | int | float) and not isinstance(found, bool):
            try:
                return float(found)
            except (ValueError, OverflowError):
                pass
        raise self.error(f"{self._name(key)} is {one_line(repr(found))}, not a number")

    def speed(self, key: str) -> float:
        """Read a positive finite number that must be there."""
        found = self.number(key)
        if found is None:
            raise self.error(f"{self._name(key)} is missing")
        if not math.isfinite(found) or found <= 0:
            raise self.error(f"{self._name(key)} is {found:g}", "A measured speed is above 0.")
        return found

    def spread(self, key: str) -> float | None:
        """Read a standard deviation; None where it is missing or no number."""
        found = self.number(key)
        return found if found is not None and math.isfinite(found) and found >= 0 else None

    def count(self, key: str) -> int | None:
        """Read a whole number of tokens, cards or streams from 0 up."""
        found = self.number(key)
        if found is None:
            return None
        if not (0 <= found <= _MOST_TOKENS) or not float(found).is_integer():
            raise self.error(f"{self._name(key)} is {found:g}", "Give a whole number from 0 up.")
        return int(found)

    def layers(self, key: str) -> int | None:
        """Read a number of layers where a negative one means all."""
        found = self.number(key)
        return int(min(found, _MOST_TOKENS)) if found is not None and found >= 0 else None

    def flag(self, key: str) -> bool:
        """Read a switch: true, 1 or on."""
        return str(self.values.get(key, "")).strip().casefold() in {"true", "1", "on", "yes"}

    def _name(self, key: str) -> str:
        return self.shown.get(key, key)


def one_line(text: str) -> str:
    """Bring a text onto one line without control characters, cut where it is endless."""
    plain = "".join(c if c.isprintable() else " " for c in text)
    return " ".join(plain.split())[:_LONGEST_TEXT]


def iso_date(text: str) -> str:
    """Give the ISO date at the start of a text, or nothing.

    Known: 2025-04-24T11:57:09Z and 20250424-115709.
    """
    found = re.match(r"(\d{4})-?(\d{2})-?(\d{2})(?!\d)", text)
    if not found:
        return ""
    try:
        return date(*map(int, found.groups())).isoformat()
    except ValueError:
        return ""


_PART = re.compile(r"-\d{5}-of-\d{5}$")
_GGUF_END = re.compile(
    r"[-_.](?:UD-)?((?:I?Q\d|TQ\d)(?:_[0-9A-Z]+)*|BF16|F16|FP16|F32|FP32|MXFP4(?:_MOE)?|NVFP4)$",
    re.IGNORECASE,
)
_TYPE_END = re.compile(
    r"(?:all |mostly )?\b((?:I?Q\d|TQ\d)\w*|BF16|F16|F32|MXFP4(?: MoE)?|NVFP4)"
    r"(?: - (Small|Medium|Large|[\d.]+ bpw.*))?$",
    re.IGNORECASE,
)
_SIZES = {"small": "_S", "medium": "_M", "large": "_L"}
_HUB_ENDS = (
    (r"awq(?:-int4|-4bit)?", "AWQ"),
    (r"gptq-int8|gptq-8bit", "GPTQ 8-bit"),
    (r"gptq(?:-int4|-4bit)?", "GPTQ 4-bit"),
    (r"fp8(?:-dynamic|-block|-kv)?", "FP8"),
    (r"(?:unsloth-)?bnb-4bit", "NF4"),
    (r"quantized\.w8a8|w8a8|int8-w8a8", "INT8 W8A8"),
    (r"nvfp4", "NVFP4"),
    (r"mxfp4", "MXFP4"),
)


def of_gguf(filename: str) -> tuple[tuple[str, ...], str]:
    """Split a GGUF file's name: spellings of its model, and its format or nothing.

    ``models/google_gemma-3-27b-it-Q4_K_M.gguf`` gives that stem without the format, then
    without the uploader's name before the underscore.
    """
    stem = re.split(r"[/\\]", filename)[-1].removesuffix(".gguf")
    stem = _PART.sub("", stem)
    found = _GGUF_END.search(stem)
    precision = found.group(1).upper() if found else ""
    if precision == "MXFP4":
        precision = "MXFP4_MOE"  # what llama.cpp calls every such file
    return model_spellings(stem[: found.start()] if found else stem), precision


def of_model_type(text: str) -> str:
    """Give the format that llama.cpp names at the end of a model's type, or nothing.

    ``qwen2 7B Q4_K - Medium`` is Q4_K_M.
    """
    found = _TYPE_END.search(text)
    if not found:
        return ""
    size = _SIZES.get((found.group(2) or "").casefold(), "")
    name = found.group(1).replace(" ", "_").upper()
    return f"{name}{size}"


def of_hub(name: str) -> tuple[tuple[str, ...], str]:
    """Split a Hugging Face id: spellings of its model, and its format or nothing."""
    base = name.strip().rstrip("/")
    for ending, precision in _HUB_ENDS:
        found = re.search(rf"[-_.](?:{ending})$", base, re.IGNORECASE)
        if found:
            return model_spellings(base[: found.start()]), precision
    return model_spellings(base), ""


def model_spellings(name: str) -> tuple[str, ...]:
    """List ways to write a model's name: as it is, without publisher, without uploader."""
    last = name.rpartition("/")[2]
    short = re.sub(r"^[A-Za-z][A-Za-z-]*_", "", last)
    plain = re.sub(r"-(?:GGUF|HF)$", "", short, flags=re.IGNORECASE)
    bare = re.sub(r"^Meta-", "", plain, flags=re.IGNORECASE)
    return tuple(dict.fromkeys(part for part in (name, last, short, plain, bare) if part))


def card_spellings(name: str) -> tuple[str, ...]:
    """List ways to write a card's name: as a driver does, without brackets, without edition."""
    plain = re.sub(r"\s*\((?!R\)|TM\))[^)]*\)\s*$", "", name).strip()
    bare = re.sub(r" (?:Workstation|Server)? ?Edition$", "", plain)
    return tuple(dict.fromkeys(part for part in (name, plain, bare) if part))


def backend_of(text: str) -> tuple[str, bool]:
    """Give the backend that a list of backends stands for, and whether RPC took part.

    Empty when none of them drives a card.
    """
    words = [word.strip().casefold() for word in re.split(r"[,/+ ]", text)]
    found = next((BACKEND_OF_WORD[word] for word in words if word in BACKEND_OF_WORD), "")
    return found, "rpc" in words


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
        return _table_run(row)
    except UserError as error:
        return error


def _table_run(row: Fields) -> Run:
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
