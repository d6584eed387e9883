"""Buffers measured for this project (knowledge/measurements/buffers.csv) against ours."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from advisor.estimator import estimate_memory
from advisor.scenario.figures import Memory
from advisor.scenario.resolve import resolve
from advisor.scenario.settings import Request
from tests.estimate.published import KNOWLEDGE

DATA = Path(__file__).parents[2] / "knowledge" / "measurements" / "buffers.csv"
MIB = 2**20
PARTS = ("weights", "kv_cache", "compute_buffer", "host_kv_cache", "host_compute")


@dataclass(frozen=True, slots=True)
class Run:
    """One context that was started and computed with, and ours."""

    row: Mapping[str, str]
    ours: Memory

    def error(self, part: str) -> float | None:
        """Ours over what was measured, less one; None where there is none."""
        measured = float(self.row[f"{part}_mib"]) * MIB
        return getattr(self.ours, f"{part}_bytes") / measured - 1 if measured else None

    @property
    def total(self) -> float:
        """The same of the whole card, with what the driver and its libraries keep."""
        return self.ours.required_bytes / self._card - 1

    @property
    def inside(self) -> bool:
        """Whether our range holds what the whole card showed."""
        return self.ours.low_bytes <= self._card <= self.ours.high_bytes

    @property
    def regime(self) -> str:
        """What decides how well a compute buffer is known."""
        if self.row["gpu_layers"]:
            return "layers in RAM"
        if self.row["cpu_experts"]:
            return "experts in RAM"
        if self.row["flash_attention"] == "off":
            return "flash attention off"
        if self.row["kv_cache"] != "f16":
            return "quantised cache"
        return "recurrent layers" if "3.6" in self.row["model"] else "as a server starts"

    @property
    def _card(self) -> float:
        return float(self.row["card_mib"]) * MIB


@cache
def runs() -> tuple[Run, ...]:
    """Every run of the file."""
    with DATA.open(encoding="utf-8", newline="") as file:
        return tuple(Run(row, _sized(row)) for row in csv.DictReader(file))


def _sized(row: Mapping[str, str]) -> Memory:
    request = Request(
        gpu=row["gpu"],
        model=row["model"],
        precision=row["precision"],
        framework="llama.cpp",
        context=int(row["context"]),
        batch=int(row["batch"]),
        ubatch=int(row["ubatch"]),
        flash_attention=row["flash_attention"] == "on",
        kv_cache=row["kv_cache"],
        kv_unified=row["kv_unified"] == "on",
        swa_full=row["swa_full"] == "on",
        gpu_layers=int(row["gpu_layers"]) if row["gpu_layers"] else None,
        cpu_experts=int(row["cpu_experts"]) if row["cpu_experts"] else None,
        text_only=True,
    )
    return estimate_memory(resolve(request, KNOWLEDGE), KNOWLEDGE)


SPEECH = Path(__file__).parents[1] / "data" / "whispercpp_memory.csv"
NODES = 1.59
"""MB of each buffer that is a list of nodes in RAM."""
_MB = 1e6


def speech_reports() -> list[dict[str, str]]:
    """Give what whisper.cpp reported, a row for each model and format."""
    lines = SPEECH.read_text(encoding="utf-8").splitlines()
    return list(csv.DictReader(line for line in lines if not line.startswith("#")))


def reported(row: Mapping[str, str]) -> dict[str, float]:
    """Sum up a report as ours is divided, bytes; with the cache of a second try."""
    buffers = sum(float(row[part]) - NODES for part in ("conv", "encode", "cross", "decode"))
    sums = {
        "weights": float(row["weights"]),
        "kv_cache": float(row["kv_self"]) + float(row["kv_cross"]),
        "compute_buffer": buffers + float(row["kv_pad"]) + 3 * float(row["kv_self"]),
    }
    return {part: _MB * size for part, size in sums.items()}


def speech_errors(part: str) -> list[float]:
    """Ours over what whisper.cpp reported, less one, of every row."""
    found = []
    for row in speech_reports():
        request = Request(model=row["model"], precision=row["format"], framework="whisper.cpp")
        ours = estimate_memory(resolve(request, KNOWLEDGE), KNOWLEDGE)
        found.append(getattr(ours, f"{part}_bytes") / reported(row)[part] - 1)
    return found
