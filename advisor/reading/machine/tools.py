"""What tools tell of cards: nvidia-smi, the profiler of a Mac, the registry of Windows; Jetsons.

Fields of nvidia-smi are as in ``--help-query-gpu``; a field that a driver lacks fails the whole
question, so a short one follows. Values that a card lacks are ``[N/A]`` or ``[Not Supported]``. Of
a Jetson it knows neither memory nor name: these are in the kernel and the device tree.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from math import isfinite

from advisor.knowledge.catalogue import BY_PCI, MAKERS
from advisor.reading.machine.drm import AMD, INTEL
from advisor.reading.machine.probe import NOT_THERE, Answer, Card, Found, Probe, Ram, as_json
from advisor.units import GIB, MIB

NVIDIA = BY_PCI[0x10DE]
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
        vendor=NVIDIA,
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
    cards = tuple(Card(vendor=NVIDIA, name=name, source=source) for name in named)
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
        vendor=NVIDIA,
        name=" ".join(_BESIDE.sub(" ", board).split()),
        source="the device tree",
        memory_bytes=ram.total_bytes if ram else None,
        free_bytes=ram.free_bytes if ram else None,
        driver=", ".join(filter(None, said)),
        shares_memory=True,
        integrated=True,
    )


APPLE = BY_PCI[0x106B]
_PROFILE = ("system_profiler", "SPDisplaysDataType", "SPHardwareDataType", "-json")
_SIZE = re.compile(r"(\d+) (GB|MB)")
_PAGE = re.compile(r"page size of (\d+) bytes")
_IDLE = re.compile(r"^Pages (?:free|inactive|speculative):\s+(\d+)\.$", re.MULTILINE)


def mac_cards(probe: Probe) -> Found:
    """Read the GPU of an Apple chip, or the cards of a Mac with an Intel processor."""
    chip = sysctl(probe, "machdep.cpu.brand_string")
    shown = [*_displays(probe)]
    if not chip.startswith(APPLE):
        cards = tuple(card for row in shown if (card := _of_intel_mac(row)))
        return Found(cards, () if cards else ("Cards: system_profiler named none.",))
    cores = next((row["sppci_cores"] for row in shown if row.get("sppci_cores")), "")
    ram = mac_ram(probe)
    limit = sysctl(probe, "iogpu.wired_limit_mb")
    card = Card(
        vendor=APPLE,
        name=chip,
        told_too=(f"{chip} ({cores}-core GPU)",) if cores else (),
        source="sysctl",
        memory_bytes=ram.total_bytes if ram else None,
        free_bytes=ram.free_bytes if ram else None,
        driver=f"GPU memory set to {limit} MiB" if limit not in {"", "0"} else "",
        compute=MAKERS[APPLE].backends[0],
        shares_memory=True,
        integrated=True,
    )
    unread = () if cores else ("GPU cores: system_profiler does not say them.",)
    return Found((card,), unread)


def _of_intel_mac(row: Mapping[str, str]) -> Card | None:
    name = row.get("sppci_model", "")
    found = _SIZE.match(row.get("spdisplays_vram", ""))
    maker = next((maker for maker in MAKERS if maker in f"{row}"), "")
    if not name or not maker:
        return None
    size = int(found[1]) * (GIB if found[2] == "GB" else MIB) if found else None
    return Card(
        vendor=maker,
        name=name,
        source="system_profiler",
        memory_bytes=size,
        integrated=row.get("sppci_bus") == "spdisplays_builtin",
    )


def mac_ram(probe: Probe) -> Ram | None:
    """Read the memory of a Mac, and what of it is free or can be given up at once."""
    total = sysctl(probe, "hw.memsize")
    if not total.isdigit():
        return None
    printed = probe.run(("vm_stat",)).text
    page = _PAGE.search(printed)
    idle = sum(map(int, _IDLE.findall(printed)))
    return Ram(total_bytes=int(total), free_bytes=idle * int(page[1]) if page else None)


def mac_product(probe: Probe) -> str:
    """Name the Mac: MacBook Pro (Mac16,5)."""
    rows = _profile(probe, "SPHardwareDataType")
    names = [(row.get("machine_name", ""), row.get("machine_model", "")) for row in rows]
    name, model = names[0] if names else ("", sysctl(probe, "hw.model"))
    return f"{name} ({model})" if name and model else name or model


def sysctl(probe: Probe, name: str) -> str:
    """Give a value of the system; empty where it has none of this name."""
    return probe.run(("sysctl", "-n", name)).text.strip()


def _displays(probe: Probe) -> Sequence[Mapping[str, str]]:
    return _profile(probe, "SPDisplaysDataType")


def _profile(probe: Probe, kind: str) -> Sequence[Mapping[str, str]]:
    found = as_json(probe.run(_PROFILE).text)
    rows = found.get(kind) if isinstance(found, dict) else None
    rows = rows if isinstance(rows, list) else []
    return [{str(k): str(v) for k, v in row.items()} for row in rows if isinstance(row, dict)]


_CLASS = r"HKLM:\SYSTEM\ControlSet001\Control\Class\{4d36e968-e325-11ce-bfc1-08002be10318}\0*"
_ASK = (
    "powershell", "-NoProfile", "-Command",
    (f"Get-ItemProperty '{_CLASS}' -ErrorAction SilentlyContinue | Select-Object DriverDesc,"
    "DriverVersion,ProviderName,@{n='Bytes';e={$_.'HardwareInformation.qwMemorySize'}} | "
    "ConvertTo-Json"),
)  # fmt: skip
_PROVIDERS = {"Advanced Micro": AMD, AMD: AMD, INTEL: INTEL}
"""How a driver's provider begins -> the maker; nvidia-smi tells of the others."""


def windows_cards(probe: Probe) -> Found:
    """Read them; Win32_VideoController would cut memory at 4 GB."""
    if probe.system != "win32":
        return Found()
    found = as_json(probe.run(_ASK).text)
    rows = found if isinstance(found, list) else [found]
    return Found(
        tuple(card for row in rows if isinstance(row, dict) and (card := _driven_card(row)))
    )


def _driven_card(row: dict[object, object]) -> Card | None:
    provider, name = str(row.get("ProviderName")), str(row.get("DriverDesc") or "")
    maker = next((maker for word, maker in _PROVIDERS.items() if provider.startswith(word)), "")
    size = row.get("Bytes")
    if not maker or not name:
        return None
    return Card(
        vendor=maker,
        name=name,
        source="the Windows registry",
        memory_bytes=size if isinstance(size, int) else None,
        driver=str(row.get("DriverVersion") or ""),
    )
