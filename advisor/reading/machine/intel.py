"""Intel cards: sysfs of the i915 and xe drivers, with names and memory from xpu-smi."""

from __future__ import annotations

import re
from collections.abc import Mapping

from advisor.knowledge.catalogue import BY_PCI
from advisor.reading.machine.drm import Device, devices, names_of
from advisor.reading.machine.probe import Probe, as_json
from advisor.reading.machine.records import Card, Found

_NUMBER = 0x8086
VENDOR = BY_PCI[_NUMBER]
_XPU_SMI = ("xpu-smi", "discovery", "-j")
_NUMBERED = re.compile(r"Graphics \[0x[0-9a-f]+\]", re.IGNORECASE)
_OF_PROCESSOR = "0000:00:02.0"
"""Where Intel's processors have their graphics."""


def intel_cards(probe: Probe) -> Found:
    """Read the Intel cards of a machine."""
    listed = devices(probe, _NUMBER)
    tool = _told(probe) if listed else {}
    cards = tuple(_card(probe, device, tool.get(device.slot, {})) for device in listed)
    unread = tuple(
        f"Intel card {card.name}: neither its driver nor xpu-smi says its memory."
        for card in cards
        if card.memory_bytes is None and not card.integrated
    )
    return Found(cards, unread)


def _card(probe: Probe, device: Device, told: Mapping[str, str]) -> Card:
    name = told.get("device_name", "")
    own = () if not name or _NUMBERED.search(name) else (name,)
    listed = names_of(probe, device)
    total = _whole(told.get("memory_physical_size_byte")) or _memory(probe, device)
    return Card(
        vendor=VENDOR,
        name=(*own, " or ".join(listed) or device.numbers)[0],
        one_of=listed,
        source="xpu-smi" if own else "/sys/class/drm",
        memory_bytes=total,
        free_bytes=_whole(told.get("memory_free_size_byte")),
        driver=told.get("driver_version", ""),
        ecc={"enabled": True, "disabled": False}.get(told.get("memory_ecc_state", "")),
        integrated=device.slot == _OF_PROCESSOR,
    )


def _memory(probe: Probe, device: Device) -> int | None:
    """Add up the memory of the tiles (xe), or take that of the card (i915)."""
    tiles = [
        size
        for path in probe.paths(f"{device.path}/tile[0-9]*/physical_vram_size_bytes")
        if (size := probe.number(path))
    ]
    card = device.path.removesuffix("/device")
    return sum(tiles) or probe.number(f"{card}/lmem_total_bytes") or None


def _whole(text: str | None) -> int | None:
    return int(text) if text and text.isdigit() and int(text) else None


def _told(probe: Probe) -> Mapping[str, Mapping[str, str]]:
    """Give what xpu-smi says of each card by its place on the bus."""
    found: dict[str, Mapping[str, str]] = {}
    for row in _devices(probe.run(_XPU_SMI).text):
        more = as_json(probe.run((*_XPU_SMI, "-d", row.get("device_id", ""))).text)
        found[row.get("pci_bdf_address", "").lower()] = {**row, **_texts(more)}
    return found


def _devices(printed: str) -> list[Mapping[str, str]]:
    found = as_json(printed)
    rows = found.get("device_list") if isinstance(found, dict) else None
    return [_texts(row) for row in rows] if isinstance(rows, list) else []


def _texts(row: object) -> Mapping[str, str]:
    return {str(k): str(v) for k, v in row.items()} if isinstance(row, dict) else {}
