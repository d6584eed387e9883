"""AMD and Intel cards on Windows: names and memory as the display driver wrote them down."""

from __future__ import annotations

from advisor.reading.machine.amd import VENDOR as AMD
from advisor.reading.machine.intel import VENDOR as INTEL
from advisor.reading.machine.probe import Probe, as_json
from advisor.reading.machine.records import Card, Found

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
