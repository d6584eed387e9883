"""What ``advisor doctor`` found: this machine, what is unusual, and the program itself."""

from __future__ import annotations

import platform
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from shutil import which

from msgspec import Struct

from advisor.advice.projection import read_as
from advisor.errors import visible
from advisor.files import __version__, user_cache_dir
from advisor.knowledge.types import Knowledge
from advisor.reading.machine import unusual
from advisor.reading.machine.mapped import Known, known_cards
from advisor.reading.machine.probe import Machine, Ram, ask_tool

_SECONDS = 2.0
_VERSION = re.compile(r"\bv?(\d+\.\d+[\w.+-]*|b?\d{3,})\b")
_COMMAND = re.compile(r"[a-z][a-z0-9_.-]*")
_BESIDE = ("llama-bench", "llama-cli", "koboldcpp", "tabbyapi")
"""Programs that start no server of a framework, or under another name."""


class CardDoc(Struct, frozen=True):
    """A card of this machine."""

    name: str
    """As its tool prints it."""
    vendor: str
    """Its maker."""
    read_as: str | None
    """The card of the catalogue that it is sized as; null: none."""
    sized_bytes: int | None
    """Memory that it is sized with [bytes]"""
    memory_bytes: int | None
    """Memory as its tool shows it; of one that shares memory, that of the machine."""
    free_bytes: int | None
    """Memory that is free now."""
    driver: str
    """Version of the driver."""
    compute: str
    """Interface and its version: CUDA 12.4."""
    power_limit_w: float | None
    """Power limit that is set."""
    power_default_w: float | None
    """Power limit that it came with."""
    ecc: bool | None
    """Whether ECC is on."""
    slices: tuple[str, ...]
    """Profiles of MIG slices."""
    used_by: tuple[str, ...]
    """Programs that compute on it now."""
    source: str
    """Tool or file that showed it."""


class RamDoc(Struct, frozen=True):
    """System RAM."""

    total_bytes: int
    """What programs can have."""
    free_bytes: int | None
    """What is free now."""
    type: str | None
    """Type of memory: DDR5."""
    rate_mt_s: int | None
    """Transfers that it runs at [MT/s]"""
    sticks: int | None
    """Modules [count]"""


class RuntimeDoc(Struct, frozen=True):
    """A program that runs models, on the path."""

    command: str
    """Its name."""
    path: str
    """Where it lies."""
    version: str | None
    """What it says of its version within 2 seconds; null: nothing."""


class ProgramDoc(Struct, frozen=True):
    """This program."""

    version: str
    """Version of advisor."""
    python: str
    """Version of Python."""
    engine: str
    """Rule engine that answers."""
    cache: str
    """Folder of what is kept."""
    cache_bytes: int
    """What lies there."""
    settings: tuple[str, ...]
    """Files and variables that change answers."""


class DoctorDoc(Struct, frozen=True):
    """What was found."""

    system: str
    """Operating system and version."""
    kind: str
    """WSL 2, Jetson, container; empty for a plain computer."""
    product: str
    """Name of the computer."""
    processor: str
    """Name of the processor."""
    sockets: int
    """Processors [count]"""
    ram: RamDoc | None
    """System RAM; null: it cannot be read."""
    cards: tuple[CardDoc, ...]
    """Every card."""
    unusual: tuple[str, ...]
    """What is unusual, in sentences."""
    not_read: tuple[str, ...]
    """What could not be read, and why."""
    program: ProgramDoc
    """This program."""
    runtimes: tuple[RuntimeDoc, ...]
    """Programs that run models, on the path."""


def examined(
    machine: Machine, knowledge: Knowledge, engine: str, settings: Sequence[str]
) -> DoctorDoc:
    """Put together what was found."""
    known = known_cards(machine, knowledge)
    folder = user_cache_dir()
    return DoctorDoc(
        machine.system,
        machine.kind,
        machine.product,
        machine.cpu,
        machine.sockets,
        _ram(machine.ram),
        tuple(map(_card, known)),
        tuple(unusual(machine, known, knowledge.policy)),
        (*machine.unread, *machine.ram_unread),
        ProgramDoc(
            __version__,
            platform.python_version(),
            engine,
            str(folder),
            _size_of(folder),
            tuple(settings),
        ),
        tuple(_runtimes(knowledge)),
    )


def _ram(ram: Ram | None) -> RamDoc | None:
    if ram is None:
        return None
    return RamDoc(ram.total_bytes, ram.free_bytes, ram.type or None, ram.rate, ram.sticks)


def _card(one: Known) -> CardDoc:
    found = one.gpu
    return read_as(
        CardDoc,
        one.card,
        read_as=found.name if found else None,
        sized_bytes=found.vram_bytes if found else None,
    )


def _size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _runtimes(knowledge: Knowledge) -> Iterator[RuntimeDoc]:
    """Find the programs on the path and ask all of them at once what version they are."""
    programs = (program.name for one in knowledge.frameworks.values() for program in one.commands)
    words = (name.split()[0] for name in programs)
    named = dict.fromkeys((*(word for word in words if _COMMAND.fullmatch(word)), *_BESIDE))
    found = [(name, path) for name in named if (path := which(name))]
    with ThreadPoolExecutor(max_workers=max(1, len(found))) as pool:
        versions = pool.map(_version, [path for _, path in found])
        for (name, path), version in zip(found, versions, strict=True):
            yield RuntimeDoc(name, path, version)


def _version(path: str) -> str | None:
    ask = partial(ask_tool, seconds=_SECONDS)
    printed = visible(ask((path, "--version")).text)
    lines = sorted(printed.splitlines(), key=lambda line: "version" not in line.casefold())
    return next((found[1] for line in lines if (found := _VERSION.search(line))), None)
