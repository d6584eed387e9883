"""The computer around the cards: processor, memory and its type, and what kind of system it is."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from advisor.reading.machine.apple import mac_ram, sysctl
from advisor.reading.machine.probe import Probe, as_json
from advisor.reading.machine.records import Ram

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
