"""AMD cards: sysfs of the amdgpu driver, with names from amd-smi, rocm-smi or the files of ids."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from advisor.knowledge.catalogue import BY_PCI
from advisor.reading.machine.drm import Device, boards_of, devices, names_of
from advisor.reading.machine.probe import Probe, as_json
from advisor.reading.machine.records import Card, Found

_NUMBER = 0x1002
VENDOR = BY_PCI[_NUMBER]
_AMD_SMI = ("amd-smi", "static", "--asic", "--bus", "--json")
_ROCM_SMI = ("rocm-smi", "--showproductname", "--showbus", "--showmeminfo", "vram", "--json")
_NO_NAME = re.compile(r"0x[0-9a-f]+|n/a|", re.IGNORECASE)
_MICRO = 1e6


def amd_cards(probe: Probe) -> Found:
    """Read the AMD cards of a machine."""
    listed = devices(probe, _NUMBER)
    if not listed:
        return Found(tuple(_of_tool_alone(probe)))
    named = _by_amd_smi(probe)
    if any(one.slot not in named for one in listed):
        named = _by_rocm_smi(probe) | named
    compute = probe.text("opt/rocm/.info/version")
    cards = [_card(probe, one, named, f"ROCm {compute}" if compute else "") for one in listed]
    unread = [
        f"AMD card {card.name}: amdgpu, its driver, does not say its memory."
        for card in cards
        if card.memory_bytes is None
    ]
    return Found(tuple(cards), tuple(unread))


def _card(probe: Probe, device: Device, named: Mapping[str, str], compute: str) -> Card:
    total = probe.number(f"{device.path}/mem_info_vram_total")
    used = probe.number(f"{device.path}/mem_info_vram_used")
    told = [named.get(device.slot, ""), probe.text(f"{device.path}/product_name") or ""]
    told = list(dict.fromkeys(filter(None, told)))
    listed = names_of(probe, device)
    return Card(
        vendor=VENDOR,
        name=(*told, " or ".join(listed) or device.numbers)[0],
        told_too=tuple(told[1:]),
        one_of=(*boards_of(told[0]), *listed) if told else listed,
        source="/sys/class/drm",
        memory_bytes=total or None,
        free_bytes=total - used if total and used is not None else None,
        driver=_driver(probe),
        compute=compute,
        power_limit_w=_watts(probe, device, "power1_cap"),
        power_default_w=_watts(probe, device, "power1_cap_default"),
        integrated=_is_integrated(probe, device),
    )


def _driver(probe: Probe) -> str:
    version = probe.text("sys/module/amdgpu/version")
    return f"amdgpu {version}" if version else "amdgpu of the kernel"


def _watts(probe: Probe, device: Device, name: str) -> float | None:
    paths = probe.paths(f"{device.path}/hwmon/hwmon*/{name}")
    micro = probe.number(paths[0]) if paths else None
    return micro / _MICRO if micro else None


def _is_integrated(probe: Probe, device: Device) -> bool:
    """Whether the kernel's list of compute nodes has it in one node with processor cores."""
    for path in probe.paths("sys/class/kfd/kfd/topology/nodes/*/properties"):
        said = dict(re.findall(r"^(\w+) (\d+)$", probe.text(path) or "", re.MULTILINE))
        if int(said.get("device_id", 0)) == device.device and int(said.get("simd_count", 0)):
            return int(said.get("cpu_cores_count", 0)) > 0
    return False


def _by_amd_smi(probe: Probe) -> dict[str, str]:
    """Give names by place on the bus; newer tools wrap their list in ``gpu_data``."""
    found = as_json(probe.run(_AMD_SMI).text)
    rows = found.get("gpu_data", []) if isinstance(found, dict) else found
    named: dict[str, str] = {}
    for row in rows if isinstance(rows, list) else []:
        parts = row if isinstance(row, dict) else {}
        asic, bus = parts.get("asic"), parts.get("bus")
        if isinstance(asic, dict) and isinstance(bus, dict):
            _name(named, str(bus.get("bdf", "")), str(asic.get("market_name", "")))
    return named


def _by_rocm_smi(probe: Probe) -> dict[str, str]:
    named: dict[str, str] = {}
    for row in _rocm_rows(probe):
        _name(named, row.get("PCI Bus", ""), _series(row))
    return named


def _name(named: dict[str, str], slot: str, name: str) -> None:
    if not _NO_NAME.fullmatch(name.strip()):
        named[slot.split(maxsplit=1)[0].lower() if slot.strip() else ""] = name.strip()


def _series(row: Mapping[str, str]) -> str:
    names = (row.get(key, "") for key in ("Card Series", "Card series", "Device Name"))
    return next((name for name in names if not _NO_NAME.fullmatch(name)), "")


def _rocm_rows(probe: Probe) -> Iterator[Mapping[str, str]]:
    found = as_json(probe.run(_ROCM_SMI).text)
    for key, row in found.items() if isinstance(found, dict) else ():
        if str(key).startswith("card") and isinstance(row, dict):
            yield {str(name): str(value) for name, value in row.items()}


def _of_tool_alone(probe: Probe) -> Iterator[Card]:
    """Read rocm-smi where the kernel's list is hidden, as in some containers."""
    for row in _rocm_rows(probe):
        total, used = (
            int(text) if (text := row.get(f"VRAM Total {word}(B)", "")).isdigit() else None
            for word in ("Memory ", "Used Memory ")
        )
        name = _series(row) or row.get("Card Model", "")
        if name:
            yield Card(
                vendor=VENDOR,
                name=name,
                one_of=boards_of(name),
                source="rocm-smi",
                memory_bytes=total,
                free_bytes=total - used if total and used is not None else None,
            )
