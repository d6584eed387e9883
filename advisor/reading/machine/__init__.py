"""This machine: what its tools and files say of cards, memory and processor."""

from __future__ import annotations

import platform
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from msgspec.structs import replace

from advisor.errors import visible
from advisor.reading.machine.drm import amd_cards, intel_cards
from advisor.reading.machine.mapped import Known
from advisor.reading.machine.probe import Card, Found, Machine, Probe, Ram, as_json
from advisor.reading.machine.tools import (
    NVIDIA,
    board_name,
    jetson_card,
    mac_cards,
    mac_product,
    mac_ram,
    nvidia_cards,
    sysctl,
    windows_cards,
)
from advisor.units import GIB, counted

_KIB = re.compile(r"^(MemTotal|MemAvailable|MemFree):\s+(\d+) kB$", re.MULTILINE)
_UDEV = "run/udev/data/+dmi:id"
_OF_STICK = re.compile(r"^(?:E: ?)?MEMORY_DEVICE_(\d+)_(\w+)=(.*)$", re.MULTILINE)
_NAMES = {
    "Size": "SIZE", "Type": "TYPE", "Speed": "SPEED_MTS",
    "Configured Memory Speed": "CONFIGURED_SPEED_MTS",
    "Configured Clock Speed": "CONFIGURED_SPEED_MTS",
}  # fmt: skip
"""What dmidecode calls what udev keeps; older ones say MHz and mean MT/s."""
_TYPES = {20: "DDR", 24: "DDR3", 26: "DDR4", 30: "LPDDR4", 34: "DDR5", 35: "LPDDR5"}
"""SMBIOS 3.7, 7.18.2: types of memory, as Windows gives them."""
_WINDOWS_RAM = (
    "powershell", "-NoProfile", "-Command",
    ("Get-CimInstance Win32_PhysicalMemory | Select-Object Capacity,ConfiguredClockSpeed,"
     "SMBIOSMemoryType | ConvertTo-Json"),
)  # fmt: skip
_Stick = Mapping[str, str]


def kind_of(probe: Probe) -> str:
    """Say what is unusual of the system itself: WSL, container; empty for a plain computer."""
    version = (probe.text("proc/version") or "").casefold()
    if "microsoft" in version:
        return "WSL 2" if "wsl2" in version or "microsoft-standard" in version else "WSL 1"
    marks = (".dockerenv", "run/.containerenv")
    return "container" if any(probe.text(mark) is not None for mark in marks) else ""


def product_of(probe: Probe) -> str:
    """Name the computer as its firmware does; empty where that is hidden or says nothing."""
    folder = "sys/class/dmi/id"
    names = (probe.text(f"{folder}/{name}") or "" for name in ("sys_vendor", "product_name"))
    told = [name for name in names if name and "filled" not in name and "System " not in name]
    return " ".join(dict.fromkeys(told)).replace("_", " ")


def processor(probe: Probe) -> tuple[str, int]:
    """Name the processor, and count the sockets."""
    if probe.system == "darwin":
        return sysctl(probe, "machdep.cpu.brand_string"), 1
    if probe.system == "win32":
        name = ("powershell", "-NoProfile", "-Command", "(Get-CimInstance Win32_Processor).Name")
        named = probe.run(name).text.splitlines()
        return (named[0].strip() if named else "", max(1, len(named)))
    text = probe.text("proc/cpuinfo") or ""
    found = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    sockets = set(re.findall(r"^physical id\s*:\s*(\d+)$", text, re.MULTILINE))
    return (found[1].strip() if found else "", max(1, len(sockets)))


def memory(probe: Probe) -> tuple[Ram | None, tuple[str, ...]]:
    """Read the memory and its type; and say what could not be read."""
    if probe.system == "darwin":
        return mac_ram(probe), ()
    if probe.system == "win32":
        return _of_windows(probe)
    said = {name: int(kib) * 1024 for name, kib in _KIB.findall(probe.text("proc/meminfo") or "")}
    if "MemTotal" not in said:
        return None, ("RAM: /proc/meminfo cannot be read.",)
    limit = _limit(probe)
    total = min(said["MemTotal"], limit or said["MemTotal"])
    free = said.get("MemAvailable", said.get("MemFree"))
    sticks, source, problem = _sticks(probe)
    ram = _ram(total, min(free, total) if free is not None else None, sticks, source)
    return ram, () if ram.rate else (f"Type and speed of the RAM: {problem}.",)


def _limit(probe: Probe) -> int | None:
    """Give what a container may take; None without a limit."""
    return probe.number("sys/fs/cgroup/memory.max") or probe.number(
        "sys/fs/cgroup/memory/memory.limit_in_bytes"
    )


def _sticks(probe: Probe) -> tuple[list[_Stick], str, str]:
    """Give what the firmware says of each stick: as udev keeps it for all, or to root alone."""
    if sticks := [*_of_udev(probe.text(_UDEV) or "")]:
        return sticks, "udev", "the firmware does not say them"
    answer = probe.run(("dmidecode", "-t", "17"))
    if sticks := [*_of_dmidecode(answer.text)]:
        return sticks, "dmidecode", "the firmware does not say them"
    why = answer.problem or "names no stick"
    needs = " and needs root" if "ermission" in why else ""
    return [], "", f"udev keeps none, and dmidecode {why}{needs}"


def _of_udev(text: str) -> Iterator[_Stick]:
    found: dict[str, dict[str, str]] = {}
    for number, key, value in _OF_STICK.findall(text):
        found.setdefault(number, {})[key] = value.strip()
    yield from (stick for stick in found.values() if stick.get("PRESENT") != "0")


def _of_dmidecode(text: str) -> Iterator[_Stick]:
    for part in text.split("Memory Device")[1:]:
        said = dict(re.findall(r"^\s+([\w ]+): (.+)$", part, re.MULTILINE))
        stick = {ours: said[theirs] for theirs, ours in _NAMES.items() if theirs in said}
        if stick.get("SIZE", "").startswith(tuple("123456789")):
            yield stick


def _ram(total: int, free: int | None, sticks: Sequence[_Stick], source: str) -> Ram:
    """Sum up the sticks: their type where they agree, the rate of the slowest."""
    types = {stick.get("TYPE", "") for stick in sticks} - {"", "Unknown", "Other"}
    rates = [
        int(found[0])
        for stick in sticks
        if (said := stick.get("CONFIGURED_SPEED_MTS") or stick.get("SPEED_MTS"))
        and (found := re.match(r"\d+", said))
    ]
    return Ram(
        total_bytes=total,
        free_bytes=free,
        type=types.pop() if len(types) == 1 else "",
        rate=min(rates, default=0) or None,
        sticks=len(sticks) or None,
        source=source,
    )


def _of_windows(probe: Probe) -> tuple[Ram | None, tuple[str, ...]]:
    answer = probe.run(_WINDOWS_RAM)
    found = as_json(answer.text)
    rows = [row for row in (found if isinstance(found, list) else [found]) if isinstance(row, dict)]
    sizes = [int(size) for row in rows if (size := str(row.get("Capacity", ""))).isdigit()]
    if not sizes:
        return None, (f"RAM: powershell {answer.problem or 'does not say it'}.",)
    told = [
        {
            "TYPE": _TYPES.get(row.get("SMBIOSMemoryType", 0), ""),
            "CONFIGURED_SPEED_MTS": str(row.get("ConfiguredClockSpeed") or ""),
        }
        for row in rows
    ]
    return _ram(sum(sizes), None, told, "Win32_PhysicalMemory"), ()


_MOST_BYTES = 2**43
"""8 TiB; what is above was misread."""
_HIDING = (
    "CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "ZE_AFFINITY_MASK",
    "GGML_VK_VISIBLE_DEVICES",
)  # fmt: skip


@cache
def this_machine() -> Machine:
    """Read this machine, once for a program: its tools take a second."""
    return read_machine(Probe())


def read_machine(probe: Probe, system: str = "") -> Machine:
    """Read a machine.

    Args:
        probe: How it is asked.
        system: Its name and version; empty: those of this one.
    """
    answers = cache(probe.run)
    probe = replace(probe, run=lambda command: answers(tuple(command)))  # each tool is asked once
    ram, no_ram = memory(probe)
    board = board_name(probe)
    found = _cards(probe, board, ram)
    cpu, sockets = processor(probe)
    mac = probe.system == "darwin"
    return Machine(
        system=system or f"{platform.system()} {platform.release()}",
        kind="Jetson" if board else kind_of(probe),
        product=visible(board or (mac_product(probe) if mac else product_of(probe))),
        cpu=visible(cpu),
        sockets=sockets,
        ram=ram,
        cards=tuple(_completed(card, ram) for card in found.cards),
        unread=tuple(map(visible, found.unread)),
        ram_unread=tuple(map(visible, no_ram)),
        seen_alone={
            name: value for name in _HIDING if (value := probe.environ.get(name)) is not None
        },
    )


def _cards(probe: Probe, board: str, ram: Ram | None) -> Found:
    if probe.system == "darwin":
        return mac_cards(probe)
    if board:
        return Found((jetson_card(probe, board, ram),))
    readers = (nvidia_cards, amd_cards, intel_cards, windows_cards)
    each = [read(probe) for read in readers]
    cards = tuple(card for found in each for card in found.cards)
    return Found(cards, tuple(line for found in each for line in found.unread))


def _completed(card: Card, ram: Ram | None) -> Card:
    """Give a card that shares the memory of its machine all of that; drop what no card can have."""
    total, free = (
        size if size is not None and 0 <= size <= _MOST_BYTES else None
        for size in (card.memory_bytes, card.free_bytes)
    )
    card = replace(card, name=visible(card.name), memory_bytes=total or None, free_bytes=free)
    if not card.shares_memory or card.memory_bytes or ram is None:
        return card
    return replace(card, memory_bytes=ram.total_bytes, free_bytes=ram.free_bytes)


_LEAST_CUT = 0.995
"""Limits are printed in hundredths of a watt."""


def unusual(machine: Machine, known: Sequence[Known], policy: Mapping[str, float]) -> Iterator[str]:
    """Say what is unusual, each in a sentence or two."""
    yield from _of_system(machine)
    yield from dict.fromkeys(line for one in known for line in _of_driver(one.card, policy))
    any_known = any(one.gpu for one in known)
    for number, one in enumerate(known):
        name = f"Card {number} ({one.card.name})"
        yield from (f"{name}: {line}" for line in _of_card(one.card, policy))
        yield from one.lines
        if one.gpu is None and not (one.card.integrated and any_known):
            yield (
                f"{name} is not in the catalogue: name one like it (--gpu NAME:SIZE), or add a "
                "record to gpus/ of your knowledge folder."
            )
    if len({one.card.vendor for one in known if one.gpu and not one.card.integrated}) > 1:
        yield "Cards of several makers: a report for 'local' takes those of one."


def _of_system(machine: Machine) -> Iterator[str]:
    if machine.kind.startswith("WSL"):
        yield (
            f"{machine.kind}: Linux has half of the computer's RAM unless .wslconfig says "
            "otherwise, and neither type nor speed of it can be read."
        )
    if machine.kind == "WSL 1":
        yield "WSL 1 has no access to cards; 'wsl --set-version' changes to WSL 2."
    if machine.kind == "container":
        yield "A container: cards and RAM are those that it was given."
    for name, value in machine.seen_alone.items():
        yield f"{name}={value or 'empty'} hides cards from programs; all are shown here."


def _of_card(card: Card, policy: Mapping[str, float]) -> Iterator[str]:
    limit, default = card.power_limit_w, card.power_default_w
    if limit and default and limit < default * _LEAST_CUT:
        yield (
            f"the power limit is {limit:.0f} W, its default {default:.0f} W. Prompts are read "
            "more slowly then; estimates assume the default."
        )
    if card.ecc:
        yield "ECC is on. Cards with GDDR memory lose about a sixteenth of it that way."
    held = (card.memory_bytes or 0) - (card.free_bytes or 0)
    by = f" by {', '.join(dict.fromkeys(card.used_by))}" if card.used_by else ""
    busy = card.free_bytes is not None and held > policy["reserve_consumer_bytes"]
    if (busy and not card.shares_memory) or by:
        amount = f"{held / GIB:.1f} GiB of it are" if busy and not card.shares_memory else "it is"
        yield f"{amount} in use{by}."
    if card.slices:
        yield f"it is cut into {counted(len(card.slices), 'MIG slice')}: {', '.join(card.slices)}."


def _of_driver(card: Card, policy: Mapping[str, float]) -> Iterator[str]:
    branch = re.match(r"(\d{3,4})\.\d", card.driver)
    if card.vendor != NVIDIA or card.integrated or not branch:
        return
    if int(branch[1]) < policy["nvidia_driver_least"]:
        yield (
            f"Driver {card.driver} is older than {policy['nvidia_driver_least']:.0f}: programs "
            "built with CUDA 12 do not start."
        )
    elif int(branch[1]) < policy["nvidia_driver_current"]:
        yield (
            f"Driver {card.driver} is older than {policy['nvidia_driver_current']:.0f}: programs "
            "built with CUDA 13 do not start."
        )
