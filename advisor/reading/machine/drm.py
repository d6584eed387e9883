"""Cards as the Linux kernel lists them in /sys/class/drm, named by the files of ids that lie here.

``amdgpu.ids`` (libdrm) names AMD's cards by device and revision, ``pci.ids`` (hwdata) all devices,
several cards in one line where they share a chip.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

from advisor.reading.machine.probe import Probe

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
