"""``advisor doctor``: this machine and this program, with what is unusual."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from msgspec import json

from advisor.calibration import file_of
from advisor.cli.options import FindingsFormat, Format, KnowledgeFolder, Output
from advisor.cli.own_settings import FILE, KINDS, files, house_folders
from advisor.cli.progress import progress_line
from advisor.cli.report_output import takes_folders, write
from advisor.errors import RequestError
from advisor.knowledge import load_knowledge
from advisor.knowledge.layers import OwnFiles
from advisor.reading.machine import this_machine
from advisor.report.doctor import CardDoc, DoctorDoc, examined
from advisor.report.figures import aligned, wrapped
from advisor.rules.engine import engine_here
from advisor.units import GIB, MIB, counted, plain
from advisor.workbench.house import House, Looked, check_house
from advisor.workbench.lint.problem import WRITERS

_WIDTH = 100
_NOTHING = "-"


def doctor(
    format_: Annotated[
        Format, typer.Option("--format", metavar="<word>", help="text or json.")
    ] = Format.text,
    knowledge: KnowledgeFolder = None,
) -> None:
    """Show what this machine has, what is unusual, and what advisor runs on.

    Cards, their memory now, driver, power limit and ECC; processor and RAM; Python, rule engine,
    cache, settings; programs that run models. Nothing is changed and nothing is sent anywhere.

    Example: advisor doctor
    """
    found = examined(this_machine(), load_knowledge(knowledge), engine_here(), [*_settings()])
    if format_ is Format.json:
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


_SAMPLE = 400


@takes_folders
def check(
    folder: Annotated[
        Path | None,
        typer.Argument(help="Folder with rules/, templates/ and knowledge/, or an advisor.toml."),
    ] = None,
    *,
    own: OwnFiles,
    sample: Annotated[
        int, typer.Option(help="Scenarios of the catalogue to try rules on.", min=0, max=1_000_000)
    ] = _SAMPLE,
    format_: Annotated[
        FindingsFormat, typer.Option("--format", help="How findings are written.")
    ] = FindingsFormat.text,
    output: Output = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit 1 on warnings too.")] = False,
) -> None:
    """Check rules, texts, words, knowledge, facts and policy; then write every kind of report.

    Every action, note and verdict in every format and length: without a finding, each of them
    was written. Every problem of every file at once; exit code 1 when there is one.

    Example: advisor check house
    """
    house = _house(folder) if folder else House(*own.folders)
    looked = check_house(house, sample=sample, progress=progress_line())
    text = WRITERS[format_.value](looked.problems)
    write(text + (_summary(looked) if format_ is FindingsFormat.text else ""), output)
    if any(found.is_error or strict for found in looked.problems):
        raise typer.Exit(1)


def _house(folder: Path) -> House:
    """Find the parts of a house: those that its advisor.toml names, else those that it has.

    Raises:
        UserError: There are none, or advisor.toml is wrong.
    """
    if not folder.is_dir():
        raise RequestError(f"{folder} is not a folder", hint="Name a folder of your own files.")
    named = house_folders(folder)
    found = named or {kind: (folder / kind,) for kind in KINDS if (folder / kind).is_dir()}
    if not found:
        hint = f"It has {', '.join(f'{kind}/' for kind in KINDS)} or a file {FILE}."
        raise RequestError(f"{folder} holds nothing to check", hint=hint)
    return House(**found)


def _summary(looked: Looked) -> str:
    errors = sum(found.is_error for found in looked.problems)
    counts = ((errors, "error"), (len(looked.problems) - errors, "warning"))
    said = " and ".join(counted(n, word) for n, word in counts if n) or "no problem found"
    if not looked.reports:
        return f"{said}; no report was written, as files are wrong\n"
    wrote = f"{counted(looked.reports, 'situation')}, each in every format and length"
    return f"{wrote}, and {counted(looked.texts, 'wording')} of texts written: {said}\n"
