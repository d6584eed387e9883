"""Cards as the Linux kernel lists them in /sys/class/drm, named by the files of ids that lie here.

``amdgpu.ids`` (libdrm) names AMD's cards by device and revision, ``pci.ids`` (hwdata) all devices,
several cards in one line where they share a chip.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from advisor.knowledge.catalogue import BY_PCI
from advisor.reading.machine.probe import Card, Found, Probe, as_json

_CARDS = "sys/class/drm/card[0-9]*"
_AMD_IDS = ("usr/share/libdrm/amdgpu.ids", "opt/amdgpu/share/libdrm/amdgpu.ids")
_PCI_IDS = ("usr/share/hwdata/pci.ids", "usr/share/misc/pci.ids")
_SLOT = re.compile(r"^PCI_SLOT_NAME=(\S+)$", re.MULTILINE)


class Device(Struct, frozen=True):
    """A card of the kernel's list."""

    path: str
    """Its folder, from the root: ``sys/class/drm/card0/device``."""
    vendor: int
    device: int
    revision: int
    slot: str
    """Its place on the bus, 0000:03:00.0; empty where that is not shown."""

    @property
    def numbers(self) -> str:
        """Its numbers as tools print them: 1002:744c, revision c8."""
        return f"{self.vendor:04x}:{self.device:04x}, revision {self.revision:02x}"


def devices(probe: Probe, vendor: int) -> Sequence[Device]:
    """List the cards of a maker; outputs of a card (card0-DP-1) are no cards."""
    found = []
    for card in probe.paths(_CARDS):
        path = f"{card}/device"
        if "-" in card or probe.number(f"{path}/vendor") != vendor:
            continue
        slot = _SLOT.search(probe.text(f"{path}/uevent") or "")
        found.append(
            Device(
                path,
                vendor,
                probe.number(f"{path}/device") or 0,
                probe.number(f"{path}/revision") or 0,
                slot[1].lower() if slot else "",
            )
        )
    return found


def names_of(probe: Probe, device: Device) -> tuple[str, ...]:
    """Give the names that the files of ids have for a card; several where a chip is in several."""
    wanted = re.compile(
        rf"^{device.device:04x},\s+{device.revision:02x},\s+(.+)$", re.MULTILINE | re.IGNORECASE
    )
    for path in _AMD_IDS:
        if found := wanted.search(probe.text(path) or ""):
            return (found[1].strip(),)
    for path in _PCI_IDS:
        if name := _in_pci_ids(probe.text(path) or "", device):
            return boards_of(name)
    return ()


def _in_pci_ids(text: str, device: Device) -> str:
    start = text.find(f"\n{device.vendor:04x}  ")
    at = text.find(f"\n\t{device.device:04x}  ", start) if start >= 0 else -1
    following = re.compile(r"^[0-9a-f]{4}  ", re.MULTILINE).search(text, start + 7)
    if at < 0 or (following and following.start() < at):
        return ""
    return text[at + 8 :].split("\n", 1)[0].strip()


def boards_of(name: str) -> tuple[str, ...]:
    """Take ``Navi 31 [Radeon RX 7900 XT/7900 XTX]`` apart; later names leave words out."""
    inside = re.search(r"\[(.+)\]", name)
    parts = inside[1].split("/") if inside else name.split(" / ")
    first, *others = (part.strip() for part in parts)
    before = re.match(r"(.*? )?\S*\d", first)  # the words before the number of the model
    series = (before[1] or "") if before else ""
    whole = (one if re.match(r"[A-Z][a-z]", one) else f"{series}{one}" for one in others)
    return (first, *whole)


_NUMBER = 0x8086
INTEL = BY_PCI[_NUMBER]
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
        vendor=INTEL,
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


_AMD_NUMBER = 0x1002
AMD = BY_PCI[_AMD_NUMBER]
_AMD_SMI = ("amd-smi", "static", "--asic", "--bus", "--json")
_ROCM_SMI = ("rocm-smi", "--showproductname", "--showbus", "--showmeminfo", "vram", "--json")
_NO_NAME = re.compile(r"0x[0-9a-f]+|n/a|", re.IGNORECASE)
_MICRO = 1e6


def amd_cards(probe: Probe) -> Found:
    """Read the AMD cards of a machine."""
    listed = devices(probe, _AMD_NUMBER)
    if not listed:
        return Found(tuple(_of_tool_alone(probe)))
    named = _by_amd_smi(probe)
    if any(one.slot not in named for one in listed):
        named = _by_rocm_smi(probe) | named
    compute = probe.text("opt/rocm/.info/version")
    cards = [_amd_card(probe, one, named, f"ROCm {compute}" if compute else "") for one in listed]
    unread = [
        f"AMD card {card.name}: amdgpu, its driver, does not say its memory."
        for card in cards
        if card.memory_bytes is None
    ]
    return Found(tuple(cards), tuple(unread))


def _amd_card(probe: Probe, device: Device, named: Mapping[str, str], compute: str) -> Card:
    total = probe.number(f"{device.path}/mem_info_vram_total")
    used = probe.number(f"{device.path}/mem_info_vram_used")
    told = [named.get(device.slot, ""), probe.text(f"{device.path}/product_name") or ""]
    told = list(dict.fromkeys(filter(None, told)))
    listed = names_of(probe, device)
    return Card(
        vendor=AMD,
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
                vendor=AMD,
                name=name,
                one_of=boards_of(name),
                source="rocm-smi",
                memory_bytes=total,
                free_bytes=total - used if total and used is not None else None,
            )
