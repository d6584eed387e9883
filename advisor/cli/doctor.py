"""``advisor doctor`` and ``settings``: this machine, this program, and what stands for flags."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from json import dumps
from pathlib import Path
from typing import Annotated

import typer
from msgspec import json

from advisor.cli.options import Format, KnowledgeFolder
from advisor.cli.user_settings import (
    ASKED,
    BUILT_IN_LANGUAGE,
    FILE,
    KEYS,
    OTHER_VARIABLES,
    VARIABLE,
    Settings,
    files,
    mistyped,
    user_file,
    user_settings,
)
from advisor.estimator.calibration import file_of
from advisor.knowledge import load_knowledge
from advisor.reading.machine import this_machine
from advisor.report.doctor import CardDoc, DoctorDoc, examined
from advisor.report.figures import aligned, wrapped
from advisor.rules.engine import engine_here
from advisor.scenario.settings import SETTINGS, WITH_UNITS
from advisor.units import GIB, MIB, counted, plain

_WIDTH = 100
_NOTHING = "-"


def doctor(
    format_: Annotated[
        Format, typer.Option("--format", metavar="<word>", help="text or json.")
    ] = "text",
    knowledge: KnowledgeFolder = None,
) -> None:
    """Show what this machine has, what is unusual, and what advisor runs on.

    Cards, their memory now, driver, power limit and ECC; processor and RAM; Python, rule engine,
    cache, settings; programs that run models. Nothing is changed and nothing is sent anywhere.

    Example: advisor doctor
    """
    found = examined(this_machine(), load_knowledge(knowledge), engine_here(), [*_settings()])
    if format_ == "json":
        typer.echo(json.format(json.encode(found), indent=2).decode())
        return
    for line in shown(found):
        typer.echo(line)


def _settings() -> Iterator[str]:
    """Name the files and variables that change answers here ('advisor settings' shows each)."""
    counting = [file.resolve() for file, _ in files(told=False)]
    yield from map(str, counting)
    here = Path(FILE).resolve()
    if here.is_file() and here not in counting:
        yield f"{here} (left out: not trusted)"
    measured = file_of(None)
    if measured.is_file():
        yield str(measured)
    for name in sorted(os.environ):
        if name.startswith("ADVISOR_"):
            yield plain(f"{name}={os.environ[name]}")


def shown(found: DoctorDoc) -> Iterator[str]:
    """Write what was found as lines."""
    yield "This machine"
    yield from aligned([*_machine(found)], indent="  ")
    yield ""
    yield "Cards"
    yield from _cards(found)
    for title, lines in (("Unusual", found.unusual), ("Not read", found.not_read)):
        if lines:
            yield ""
            yield title
            yield from (f"  {part}" for line in lines for part in _item(line))
    yield ""
    yield "This program"
    yield from aligned([*_program(found)], indent="  ")
    yield ""
    yield "Programs that run models, on the path"
    rows = [(one.command, one.version or "does not say its version", one.path)
            for one in found.runtimes]  # fmt: skip
    yield from aligned(rows, indent="  ") if rows else ("  none",)


def _item(line: str) -> Iterator[str]:
    first, *more = wrapped(line, _WIDTH - 4)
    yield f"- {first}"
    yield from (f"  {part}" for part in more)


def _machine(found: DoctorDoc) -> Iterator[tuple[str, str]]:
    yield "system", f"{found.system}{f' ({found.kind})' if found.kind else ''}"
    if found.product:
        yield "product", found.product
    many = f"{found.sockets}x " if found.sockets > 1 else ""
    yield "processor", f"{many}{found.processor}" if found.processor else "not read"
    ram = found.ram
    if ram is None:
        yield "memory", "not read"
        return
    rate = f" at {ram.rate_mt_s:,} MT/s" if ram.rate_mt_s else ""
    sticks = f" in {counted(ram.sticks, 'stick')}" if ram.sticks else ""
    kind = f", {ram.type or 'type not read'}{rate}{sticks}" if ram.type or rate else ""
    yield "memory", f"{_gib(ram.total_bytes)}, {_gib(ram.free_bytes)} free{kind}"


def _cards(found: DoctorDoc) -> Iterator[str]:
    if not found.cards:
        yield "  none was found"
        return
    head = ("", "card", "sized as", "memory", "free", "driver", "computes with", "power", "ECC")
    rows = [(str(number), *_row(card)) for number, card in enumerate(found.cards)]
    yield from aligned([head, *rows], indent="  ", right={3, 4})


def _row(card: CardDoc) -> tuple[str, ...]:
    power = _NOTHING
    if card.power_limit_w:
        usual = f" of {card.power_default_w:.0f}" if card.power_default_w else ""
        power = f"{card.power_limit_w:.0f}{usual} W"
    return (
        card.name,
        card.read_as or "not known",
        _gib(card.memory_bytes),
        _gib(card.free_bytes),
        card.driver or _NOTHING,
        card.compute or _NOTHING,
        power,
        _NOTHING if card.ecc is None else "on" if card.ecc else "off",
    )


def _program(found: DoctorDoc) -> Iterator[tuple[str, str]]:
    program = found.program
    yield "advisor", program.version
    yield "Python", program.python
    yield "rule engine", program.engine
    yield "cache", f"{program.cache}, {program.cache_bytes / MIB:.1f} MiB"
    settings = program.settings or ("none",)
    for number, one in enumerate(settings):
        yield "" if number else "settings", one


def _gib(size: int | None) -> str:
    return _NOTHING if size is None else f"{size / GIB:.1f} GiB"


_NOT_STATED = "not stated"
_UNLAID = {"prices": "launch prices alone", "language": BUILT_IN_LANGUAGE}


def settings(
    format_: Annotated[
        Format, typer.Option("--format", metavar="<word>", help="text or json.")
    ] = "text",
) -> None:
    """Show every setting, its value and where it is stated.

    A flag goes before the environment (ADVISOR_GPU ...), that before the advisor.toml of a trusted
    folder, that before your own advisor.toml, that before what is built in.

    Example: advisor settings --format json
    """
    user = user_settings()
    if format_ == "json":
        typer.echo(dumps({key: _stated(user, key) for key in KEYS}, ensure_ascii=False, indent=2))
        return
    shown = [
        ("setting", "value", "from"),
        *(_stated_cells(_stated(user, key), key) for key in KEYS),
    ]
    for line in (*aligned(shown), "", *_files(), *_variables(), *mistyped()):
        typer.echo(line.rstrip())


def _stated(user: Settings, key: str) -> dict[str, object]:
    """Give a setting as JSON has it; of one that is not stated what is built in, in words."""
    one = user.get(key)
    if one is None:
        return {"value": None, "from": "built-in", "default": _built_in(key)}
    value = one.value if isinstance(one.value, str) else [plain(str(path)) for path in one.value]
    return {"value": value, "from": one.at, "default": _built_in(key)}


def _built_in(key: str) -> str:
    if key not in ASKED:
        return _UNLAID.get(key, "the built-in folder alone")
    known = WITH_UNITS.get(key) or SETTINGS.get(key)
    return known.default if known and known.default else _NOT_STATED


def _stated_cells(row: Mapping[str, object], key: str) -> tuple[str, str, str]:
    value, source = row["value"], plain(str(row["from"]))
    if value is None:
        return key, f"({row['default']})", source
    return key, ", ".join(value) if isinstance(value, list) else plain(str(value)), source


def _files() -> Iterator[str]:
    """Say where the files of settings lie, or would."""
    user = user_file()
    if os.environ.get(VARIABLE) == "":
        yield f"no file counts: {VARIABLE} is empty"
    elif user:
        yield f"your own file: {plain(str(user))}{'' if user.is_file() else ' (there is none)'}"


def _variables() -> Iterator[str]:
    for name in OTHER_VARIABLES:
        if value := os.environ.get(name):
            yield f"{name}: {plain(value)}"
