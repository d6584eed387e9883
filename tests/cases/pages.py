"""The pages of docs/cases: each quotes a command and what the program says to it.

python -m tests.cases.pages     writes what it says now into the pages; read them again then
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

from msgspec.json import decode

from advisor.advice.document import Advice
from advisor.bulk.reverse.documents import MeritDoc, ReverseDoc
from advisor.cli.main import main
from advisor.report import figures as f

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "cases"
_CASE = re.compile(
    r"^## (?P<title>[^\n]+)\n\n```sh\n(?P<command>advisor (?:advise|models-for) [^`]+?)\n```\n\n"
    r"(?P<table>(?:\|[^\n]*\n)+)",
    re.MULTILINE,
)
_REMEDIES = 3


@dataclass(frozen=True, slots=True)
class Case:
    """One section of a page."""

    title: str
    command: str
    table: str


def pages() -> list[Path]:
    return sorted(path for path in FOLDER.glob("*.md") if path.name != "README.md")


def cases(page: Path) -> list[Case]:
    found = _CASE.finditer(page.read_text(encoding="utf-8"))
    return [Case(m["title"], m["command"], m["table"]) for m in found]


def table(command: str) -> str:
    """What the program says to a command, as the pages have it."""
    said = _printed(command)
    if " models-for " in command:
        return "".join(_models(decode(said, type=ReverseDoc)))
    doc = decode(said, type=Advice)
    rows = [("", "what advisor says"), ("---", "---"), *_figures(doc), *_remedies(doc)]
    return "".join(f"| {name} | {text} |\n" for name, text in rows)


def _printed(command: str) -> str:
    """The JSON as it was printed."""
    words = [*shlex.split(command.replace("\\\n", " ")), "--format", "json"]
    out = io.StringIO()
    with patch.object(sys, "argv", words), contextlib.redirect_stdout(out):  # noqa: SIM117
        with contextlib.suppress(SystemExit):
            main()
    return out.getvalue()


def _models(doc: ReverseDoc) -> Iterator[str]:
    """The first models, with what the boards say of each."""
    yield "| | model | merit | needs, speed | the boards |\n|---|---|---:|---|---|\n"
    for row in doc.rows[:_REMEDIES]:
        scenario, merit = row.scenario, row.merit
        named = f"{scenario.model.name}, {scenario.precision}"
        points, said = (
            ("-", "none") if merit is None else (f"{merit.in_format:.1f}", _boards(merit))
        )
        needs = f.amount(row.memory.required_bytes)
        speed = f.speed_point(row.speed.decode_tok_s) if row.speed else ""
        yield f"| {row.rank} | {named} | {points} | {needs}, {speed} | {said} |\n"


def _boards(merit: MeritDoc) -> str:
    said = (f"{one.board} {one.value:g} ({one.seen})" for one in merit.figures)
    return f"{f'as {merit.relative}: ' if merit.relative else ''}{', '.join(said)}"


def _figures(doc: Advice) -> Iterator[tuple[str, str]]:
    memory, asked = doc.memory, doc.scenario
    yield "setup", f"{asked.precision} in {asked.framework}"
    needs = f"{f.amount(memory.required_bytes)} of {f.amount(memory.usable_bytes or 0)}"
    yield "verdict", f"`{doc.verdict.state}`, needs {needs}"
    parts = ("weights", "kv_cache", "compute_buffer")
    sizes = [
        f"{part.replace('_', ' ')} {f.amount(getattr(memory, f'{part}_bytes'))}" for part in parts
    ]
    yield "made of", ", ".join(sizes)
    if doc.speed:
        yield "speed", f.speed_range(doc.speed.decode_tok_s)
    if doc.commands:
        yield "run it", f"`{_one_line(doc.commands[0].text)}`"


def _remedies(doc: Advice) -> Iterator[tuple[str, str]]:
    for item in doc.recommendations[:_REMEDIES]:
        after = item.after
        free = f"{f.amount(after.headroom_bytes or 0)} free"
        free += " (thin)" if after.margin == "thin" else ""
        point = f.speed_point(after.decode_tok_s)
        said = ", ".join(part for part in (item.title, free, point) if part)
        yield str(item.rank), said
    if doc.recommendations and not doc.commands:
        yield "first as a command", f"`{_one_line(doc.recommendations[0].command or '')}`"


def _one_line(command: str) -> str:
    return " ".join(command.replace("\\\n", " ").split())


def write() -> None:
    for page in pages():
        text = page.read_text(encoding="utf-8")
        page.write_text(_CASE.sub(_renewed, text), encoding="utf-8")


def _renewed(found: re.Match[str]) -> str:
    return found[0].removesuffix(found["table"]) + table(found["command"])


if __name__ == "__main__":
    write()
