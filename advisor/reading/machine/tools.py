"""NVIDIA cards: what nvidia-smi prints, what is left to read where it does not answer, Jetsons.

Fields as in ``nvidia-smi --help-query-gpu``; a field that a driver lacks fails the whole question,
so a short one follows. Values that a card lacks are ``[N/A]`` or ``[Not Supported]``.

Of a Jetson it knows neither memory nor name: these are in the kernel and the device tree.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from math import isfinite

from advisor.knowledge.catalogue import BY_PCI
from advisor.reading.machine.probe import NOT_THERE, Answer, Card, Found, Probe, Ram
from advisor.units import MIB

VENDOR = BY_PCI[0x10DE]
_PLACES = ("nvidia-smi", "/usr/lib/wsl/lib/nvidia-smi", "/usr/bin/nvidia-smi",
           r"C:\Windows\System32\nvidia-smi.exe",
           r"C:\Program Files\NVIDIA Corporation\NVSMI\nvidia-smi.exe")  # fmt: skip
_FIELDS = (
    "uuid", "memory.total", "memory.free", "driver_version", "power.limit", "power.default_limit",
    "ecc.mode.current", "name",
)  # fmt: skip
_FEW = ("uuid", "memory.total", "name")
_PLAIN = "--format=csv,noheader,nounits"
_CUDA = re.compile(r"CUDA (?:UMD )?Version\s*:\s*(\d+\.\d+)")
_GPU_LINE = re.compile(r"GPU \d+: .*\(UUID: (\S+)\)")
_SLICE_LINE = re.compile(r"\s+MIG (\S+)\s+Device")


def nvidia_cards(probe: Probe) -> Found:
    """Read the NVIDIA cards of a machine."""
    place, rows, problem = _asked(probe)
    if not rows:
        return _without_tool(probe, problem)
    compute = _CUDA.search(probe.run([place]).text)
    slices = _slices(probe.run([place, "-L"]).text)
    programs = _programs(probe, place)
    cards = tuple(
        _card(row, f"CUDA {compute[1]}" if compute else "", slices, programs) for row in rows
    )
    missing = () if "driver_version" in rows[0] else ("nvidia-smi is too old to say power or ECC.",)
    return Found(cards, missing)


def _asked(probe: Probe) -> tuple[str, Sequence[Mapping[str, str]], Answer]:
    """Ask where the tool is found, in full or in short."""
    for place in _PLACES:
        for fields in (_FIELDS, _FEW):
            answer = probe.run([place, f"--query-gpu={','.join(fields)}", _PLAIN])
            if answer.missing:
                break
            if rows := [*_rows(answer.text, fields)]:
                return place, rows, answer
        else:
            return place, (), answer
    return "", (), NOT_THERE


def _rows(printed: str, fields: Sequence[str]) -> Iterator[Mapping[str, str]]:
    """Cut lines into fields; the name comes last, as it may hold a comma."""
    for line in printed.splitlines():
        cells = [cell.strip() for cell in line.split(",", len(fields) - 1)]
        if len(cells) == len(fields):
            yield dict(zip(fields, cells, strict=True))


def _card(
    row: Mapping[str, str],
    compute: str,
    slices: Mapping[str, Sequence[str]],
    programs: Mapping[str, Sequence[str]],
) -> Card:
    total, free = _number(row.get("memory.total")), _number(row.get("memory.free"))
    ecc = {"enabled": True, "disabled": False}.get(row.get("ecc.mode.current", "").casefold())
    return Card(
        vendor=VENDOR,
        name=row["name"],
        source="nvidia-smi",
        memory_bytes=round(total * MIB) if total else None,
        free_bytes=round(free * MIB) if free is not None else None,
        driver=_said(row.get("driver_version")),
        compute=compute,
        power_limit_w=_number(row.get("power.limit")),
        power_default_w=_number(row.get("power.default_limit")),
        ecc=ecc,
        slices=tuple(slices.get(row["uuid"], ())),
        used_by=tuple(programs.get(row["uuid"], ())),
        shares_memory=total is None,
    )


def _said(cell: str | None) -> str:
    return "" if cell is None or cell.startswith("[") else cell


def _number(cell: str | None) -> float | None:
    try:
        number = float(_said(cell))
    except ValueError:
        return None
    return number if isfinite(number) else None


def _slices(printed: str) -> Mapping[str, Sequence[str]]:
    """Give the profiles of the MIG slices of each card by its id, out of ``nvidia-smi -L``."""
    found: dict[str, list[str]] = {}
    card = ""
    for line in printed.splitlines():
        if gpu := _GPU_LINE.match(line):
            card = gpu[1]
        elif part := _SLICE_LINE.match(line):
            found.setdefault(card, []).append(part[1])
    return found


def _programs(probe: Probe, place: str) -> Mapping[str, Sequence[str]]:
    """Give the programs that compute on each card by its id."""
    found: dict[str, list[str]] = {}
    printed = probe.run([place, "--query-compute-apps=gpu_uuid,process_name", _PLAIN]).text
    for line in printed.splitlines():
        card, comma, program = line.partition(",")
        name = re.split(r"[/\\]", program.strip())[-1]
        if comma and name and not name.startswith("["):
            found.setdefault(card.strip(), []).append(name)
    return found


def _without_tool(probe: Probe, answer: Answer) -> Found:
    """Give what the driver itself says of its cards, and why there is no more."""
    named = [
        found[1].strip()
        for path in probe.paths("proc/driver/nvidia/gpus/*/information")
        if (found := re.search(r"^Model:\s*(.+)$", probe.text(path) or "", re.MULTILINE))
    ]
    source = "/proc/driver/nvidia"
    cards = tuple(Card(vendor=VENDOR, name=name, source=source) for name in named)
    if not named and answer.missing:
        return Found()
    return Found(cards, (f"NVIDIA cards: nvidia-smi {answer.problem or 'named no card'}.",))


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
