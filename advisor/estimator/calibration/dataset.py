"""The measurements that the project carries, and what their free text says about the run."""

from __future__ import annotations

import csv
import gzip
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from advisor.errors import KnowledgeError, Source
from advisor.files import data_dir

Row = Mapping[str, str]
_NEEDED = ("gpu", "model", "quant", "framework", "metric", "value", "source", "note", "caution")


def measurements_dir() -> Path:
    """The folder of the carried measurements; its SOURCE.md says where they come from."""
    return data_dir("knowledge") / "measurements"


def speed_rows() -> Sequence[Row]:
    """Read every published speed, as collected.

    Raises:
        KnowledgeError: The file is missing or has other columns.
    """
    path = measurements_dir() / "speed.csv.gz"
    try:
        with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
    except OSError as bad:
        raise KnowledgeError(f"cannot be read: {bad}", source=Source(path.name)) from None
    missing = [name for name in _NEEDED if not rows or name not in rows[0]]
    if missing:
        raise KnowledgeError(f"has no column {', '.join(missing)}", source=Source(path.name))
    return rows


def name_rows() -> Sequence[Row]:
    """Read the spellings of the measurements that no general rule resolves."""
    return _table("names.csv")


def speculation_rows() -> Sequence[Row]:
    """Read the pairs of runs with and without drafts: row ids, or figures with a source."""
    return _table("speculation.csv")


def odd_rows() -> Mapping[str, str]:
    """Read why single rows are far off, by row id."""
    return {row["id"]: row["reason"] for row in _table("odd.csv")}


def _table(name: str) -> Sequence[Row]:
    with (measurements_dir() / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


_LAYERS_ON_CARD = re.compile(r"PARTIAL OFFLOAD ngl=(\d+)|\bngl=(\d+)")
_EXPERTS_IN_RAM = re.compile(r"MoE experts of (\d+) layers on CPU")
_MOVED = re.compile(r"EXPERTS ON CPU|-ot |--no-kv-offload|larger than VRAM|spilled")
_RAM = re.compile(r"\bram=(?:([\d.]+)GB/s|DDR\d-(\d+) x(\d+))")
"""Bandwidth as measured or stated, or MT/s and channels of 64 bits."""
_CACHE = re.compile(r"\b(?:kv|type_k|ctk)[= ]([\w.]+)|-ctk ([\w.]+)", re.IGNORECASE)
_POWER = re.compile(
    r"\bpl=(\d+)W|power limited (\d+) ?W|section: (\d+)W TDP|power-limited to (\d+) ?W"
)
_FLASH = re.compile(r"\bfa=(0|1|True|False|on|off)\b")
_UBATCH = re.compile(r"\b(?:ubatch|ub|n_ubatch)=(\d+)")
_SPECULATES = re.compile(
    r"spec=(?!no\b|none\b|None\b)\w+|\bmtp-[1-9]|-spec\b|speculative|draft|mtp=true|kv=e2b-spec"
    r"|kv=tq.*mtp", re.IGNORECASE,
)  # fmt: skip
_TENSOR = re.compile(r"\btp=([2-9]\d*)|tensor parallel|TP=([2-9])|sm tensor|-sm row|sm-tensor")
_INSTANCES = re.compile(r"\binst=([2-9]\d*)")
_PIPELINES = re.compile(r"\bpp=([2-9]\d*)")
_DEVICES = re.compile(r"device: \w+,\w+|pipeline-parallel-size [2-9]")
_SERVED = re.compile(r"llmfit bench|user=|\bserver\b")
"""A program that serves samples on the processor and sends each token; llama-bench does neither."""
_PROMPTS_BETWEEN = re.compile(r"kind=aggregate_output|mean TPOT")
_BENCH = re.compile(r"cmd='(?:[^']*llama-bench|<path>(?=[^']* -p \d)) (.*)$")
"""A quoted llama-bench, also with its name blotted out: no other program takes a number as -p."""
_BENCH_DEPTH = re.compile(r" -d (\d+)\b")
_BENCH_LENGTH = re.compile(r" -n (\d+)\b")
_CPU_ONLY = re.compile(
    r"gpu_used=False|CPU-only|gpuLayers=0\b|-ngl 0\b|GPU backends disabled|^CPU$", re.IGNORECASE
)
_HALF_NAMES = frozenset({"f16", "fp16", "default", "none", "auto", "", "bf16", "bfloat16"})
_CACHES = {
    "q8_0": "q8_0", "q8": "q8_0", "q4_0": "q4_0", "q4": "q4_0", "q4_1": "q4_1", "q5_0": "q5_0",
    "q5_1": "q5_1", "fp8": "fp8", "fp8_e4m3": "fp8", "fp8_e5m2": "fp8",
}  # fmt: skip


class Conditions(Struct, frozen=True):
    """How a run was set up, as far as its text says."""

    gpu_layers: int | None
    """Layers on the card where not all; None: all, or not stated."""
    cpu_experts: int
    """Layers, among those on the card, whose experts lie in system RAM."""
    ram_bytes_s: float | None
    """Bandwidth of the system RAM, as stated or by type and channels."""
    cache: str | None
    """Cache type of the knowledge base; None: one that it does not know."""
    flash: bool | None
    ubatch: int | None
    power_w: int | None
    """Power limit per card."""
    tensor: bool
    speculates: bool
    moved: bool
    """Weights or cache lie in system RAM in an unstated share."""
    instances: int
    pipelines: int
    processor: bool
    prompts_between: bool
    """Output was counted while the prompts of other streams were read."""
    several_devices: bool
    """More cards than the row counts."""
    rounded: bool
    """Its publisher says "around": shown as measured, not fitted to."""
    served: bool
    """Whether each token was sampled and sent, not only computed."""
    bench_depth: int | None
    """Depth that a quoted llama-bench command sets; -1 where the quotation is cut short."""


def conditions_of(row: Row) -> Conditions:
    """Read the note, the name and the source of a row."""
    note = row["note"]
    text = f"{row['model']}; {note}"
    partial = "PARTIAL OFFLOAD" in note
    experts = _number(_EXPERTS_IN_RAM, note)
    return Conditions(
        gpu_layers=_number(_LAYERS_ON_CARD, note) if partial or experts else None,
        cpu_experts=experts or 0,
        ram_bytes_s=_ram_bytes_s(note),
        cache=_cache(note),
        flash=_flash(note),
        ubatch=_number(_UBATCH, note),
        power_w=_number(_POWER, note),
        tensor=bool(_TENSOR.search(text)),
        speculates=bool(_SPECULATES.search(text)),
        moved=bool(_MOVED.search(note)) or ("cpu-moe" in note and experts is None),
        instances=_number(_INSTANCES, note) or 1,
        pipelines=_number(_PIPELINES, note) or 1,
        processor=bool(_CPU_ONLY.search(note)) or row["gpu"].startswith("CPU"),
        prompts_between=bool(_PROMPTS_BETWEEN.search(note)),
        several_devices=bool(_DEVICES.search(note)),
        rounded=note.startswith("around "),
        served=bool(_SERVED.search(note)) and not _BENCH.search(note),
        bench_depth=_bench_depth(note),
    )  # fmt: skip


def _number(pattern: re.Pattern[str], text: str) -> int | None:
    found = pattern.search(text)
    if found is None:
        return None
    return next((int(group) for group in found.groups() if group), None)


def _ram_bytes_s(note: str) -> float | None:
    found = _RAM.search(note)
    if found is None:
        return None
    stated, rate, channels = found.groups()
    return float(stated) * 1e9 if stated else int(rate) * 1e6 * 8 * int(channels)


def _cache(note: str) -> str | None:
    found = _CACHE.search(note)
    name = (found.group(1) or found.group(2) or "").casefold() if found else ""
    return "f16" if name in _HALF_NAMES or name.startswith("f16") else _CACHES.get(name)


def _flash(note: str) -> bool | None:
    found = _FLASH.search(note)
    return None if found is None else found.group(1) in {"1", "True", "on"}


def _bench_depth(note: str) -> int | None:
    """llama-bench times generation from its own depth, not from behind the prompt."""
    found = _BENCH.search(note)
    if found is None:
        return None
    depth = _number(_BENCH_DEPTH, found.group(1))
    if depth is not None:
        return depth
    return 0 if _BENCH_LENGTH.search(found.group(1)) else -1
