"""Jetson boards: their name from the device tree, memory from the kernel, release from L4T.

nvidia-smi knows neither memory nor name of a board (``Orin (nvgpu)``, ``[N/A]``), and tegrastats
prints the memory that /proc/meminfo has too.
"""

from __future__ import annotations

import re

from advisor.reading.machine.nvidia import VENDOR
from advisor.reading.machine.probe import Probe
from advisor.reading.machine.records import Card, Ram

_MODEL = ("proc/device-tree/model", "sys/firmware/devicetree/base/model")
_RELEASE = re.compile(r"# R(\d+) \(release\), REVISION: ([\d.]+)")
_BESIDE = re.compile(
    r"\b(?:NVIDIA|Engineering Reference|Developer Kit|Developer|Kit|with|module)\b", re.IGNORECASE
)
_MODE = re.compile(r"NV Power Mode: *(\S+)")


def board_name(probe: Probe) -> str:
    """Name the board; empty where this is no Jetson."""
    named = next(filter(None, map(probe.text, _MODEL)), "")
    return named if "jetson" in named.casefold() else ""


def jetson_card(probe: Probe, board: str, ram: Ram | None) -> Card:
    """Give the GPU of a board, which shares its memory with the processor."""
    release = _RELEASE.search(probe.text("etc/nv_tegra_release") or "")
    mode = _MODE.search(probe.run(("nvpmodel", "-q")).text)
    said = (
        f"L4T {release[1]}.{release[2]}" if release else "",
        f"power mode {mode[1]}" if mode else "",
    )
    return Card(
        vendor=VENDOR,
        name=" ".join(_BESIDE.sub(" ", board).split()),
        source="the device tree",
        memory_bytes=ram.total_bytes if ram else None,
        free_bytes=ram.free_bytes if ram else None,
        driver=", ".join(filter(None, said)),
        shares_memory=True,
        integrated=True,
    )
