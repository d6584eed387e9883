"""The card of this machine, asked of the vendor's tool, and only when the user says ``local``."""

from __future__ import annotations

import platform
import subprocess
from collections.abc import Callable, Sequence

from advisor.errors import RequestError

Run = Callable[[Sequence[str]], str]
_SECONDS = 10
_NVIDIA = ("nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader,nounits")
_AMD = ("rocm-smi", "--showproductname", "--showmeminfo", "vram", "--csv")
_APPLE_NAME = ("sysctl", "-n", "machdep.cpu.brand_string")
_APPLE_MEMORY = ("sysctl", "-n", "hw.memsize")


def run(command: Sequence[str]) -> str:
    """Run a tool and give what it prints; empty when it is missing, fails or hangs."""
    try:
        done = subprocess.run(  # noqa: S603  fixed commands, no shell
            command, capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""


def local_gpu(run: Run = run, system: str | None = None) -> str:
    """Name this machine's card as a request would: ``NVIDIA GeForce RTX 4090:24GB``.

    Several equal cards give the first; unequal ones too.

    Raises:
        RequestError: No card was found.
    """
    if (system or platform.system()) == "Darwin":
        found = _apple(run)
    else:
        found = _nvidia(run(_NVIDIA)) or _amd(run(_AMD))
    if not found:
        raise RequestError(
            "no GPU was found on this machine",
            hint="nvidia-smi, rocm-smi and sysctl were asked. Name the card: --gpu NAME.",
        )
    return found


def _nvidia(printed: str) -> str:
    for line in printed.splitlines():
        name, _, mebibytes = line.rpartition(",")
        if name.strip() and mebibytes.strip().isdigit():
            return f"{name.strip()}:{_as_sold(int(mebibytes))}GB"
    return ""


def _as_sold(mebibytes: int) -> int:
    """Round what a driver shows up to the size on the box: 24,564 MiB is sold as 24 GB."""
    return max(1, round(mebibytes / 1024 + 0.2))


def _amd(printed: str) -> str:
    rows = [line.split(",") for line in printed.splitlines() if line.strip()]
    header = next((row for row in rows if "Card Series" in row), None)
    if header is None:
        return ""
    place = header.index("Card Series")
    names = [row[place].strip() for row in rows if row is not header and len(row) > place]
    return next((name for name in names if name), "")


def _apple(run: Run) -> str:
    name, memory = run(_APPLE_NAME).strip(), run(_APPLE_MEMORY).strip()
    return f"{name}:{int(memory) // 2**30}GB" if name and memory.isdigit() else ""
