"""The RAM of a machine in the words of a request: its type, and its processor where it is known."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

from advisor.errors import RequestError
from advisor.reading.cpus import find_cpu
from advisor.reading.machine.records import Machine
from advisor.reading.ram import RamKind, ram_types, read_ram


def ram_read(machine: Machine) -> Mapping[str, str]:
    """Give ``ram_type`` and ``cpu`` as far as they are known and go together.

    Firmware has no word for LPDDR5X and LPDDR4X: a rate that the plain type has not is one of X.
    """
    told: dict[str, str] = {}
    ram = machine.ram
    if ram and ram.type in ram_types():
        soldered = ram.type.startswith("LP")  # its packages are narrower than a channel
        sticks = None if soldered else ram.sticks
        kinds = (RamKind(type_, ram.rate, None, sticks) for type_ in (ram.type, f"{ram.type}X"))
        texts = (text for kind in kinds if _is_understood(text := str(kind)))
        told.update(("ram_type", text) for text in islice(texts, 1))
    try:
        cpu, _ = find_cpu(machine.cpu)
    except RequestError:
        return told
    if "ram_type" not in told or (ram and cpu.rate(ram.type)):
        told["cpu"] = f"2x {cpu.name}" if machine.sockets > 1 else cpu.name
    return told


def _is_understood(text: str) -> bool:
    try:
        return read_ram(text)[1] is not None
    except RequestError:
        return False
