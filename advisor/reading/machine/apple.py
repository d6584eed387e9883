"""Macs: chip, cores and memory from sysctl and system_profiler."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from advisor.knowledge.catalogue import BY_PCI, MAKERS
from advisor.reading.machine.drm import VENDOR as AMD
from advisor.reading.machine.drm import VENDOR as INTEL
from advisor.reading.machine.probe import Card, Found, Probe, Ram, as_json
from advisor.units import GIB, MIB

VENDOR = BY_PCI[0x106B]
_PROFILE = ("system_profiler", "SPDisplaysDataType", "SPHardwareDataType", "-json")
_SIZE = re.compile(r"(\d+) (GB|MB)")
_PAGE = re.compile(r"page size of (\d+) bytes")
_IDLE = re.compile(r"^Pages (?:free|inactive|speculative):\s+(\d+)\.$", re.MULTILINE)


def mac_cards(probe: Probe) -> Found:
    """Read the GPU of an Apple chip, or the cards of a Mac with an Intel processor."""
    chip = sysctl(probe, "machdep.cpu.brand_string")
    shown = [*_displays(probe)]
    if not chip.startswith(VENDOR):
        cards = tuple(card for row in shown if (card := _of_intel_mac(row)))
        return Found(cards, () if cards else ("Cards: system_profiler named none.",))
    cores = next((row["sppci_cores"] for row in shown if row.get("sppci_cores")), "")
    ram = mac_ram(probe)
    limit = sysctl(probe, "iogpu.wired_limit_mb")
    card = Card(
        vendor=VENDOR,
        name=chip,
        told_too=(f"{chip} ({cores}-core GPU)",) if cores else (),
        source="sysctl",
        memory_bytes=ram.total_bytes if ram else None,
        free_bytes=ram.free_bytes if ram else None,
        driver=f"GPU memory set to {limit} MiB" if limit not in {"", "0"} else "",
        compute=MAKERS[VENDOR].backends[0],
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
    rows = _rows(probe, "SPHardwareDataType")
    names = [(row.get("machine_name", ""), row.get("machine_model", "")) for row in rows]
    name, model = names[0] if names else ("", sysctl(probe, "hw.model"))
    return f"{name} ({model})" if name and model else name or model


def sysctl(probe: Probe, name: str) -> str:
    """Give a value of the system; empty where it has none of this name."""
    return probe.run(("sysctl", "-n", name)).text.strip()


def _displays(probe: Probe) -> Sequence[Mapping[str, str]]:
    return _rows(probe, "SPDisplaysDataType")


def _rows(probe: Probe, kind: str) -> Sequence[Mapping[str, str]]:
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
    return Found(tuple(card for row in rows if isinstance(row, dict) and (card := _card(row))))


def _card(row: dict[object, object]) -> Card | None:
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
