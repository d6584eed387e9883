"""The flags of programs, and what starts them (knowledge/flags); read only where they are asked."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from functools import lru_cache

from msgspec import Struct

from advisor.files import data_dir

NOT_SIZED = "?"
"""What a flag sets that changes memory or speed in a way that has no figure here."""
TAKES_NONE = "flag"


class Flag(Struct, frozen=True):
    """One flag of one program: its spellings, what it takes, and what it means here."""

    names: tuple[str, ...]
    kind: str
    choices: tuple[str, ...]
    sets: str
    """The meaning (advisor/reading/meanings.py), ``NOT_SIZED``, or empty: neither memory nor
    speed."""
    values: Mapping[str, str]
    """Word of the program -> word of this project; empty: as if the flag were not there."""
    source: str


class Start(Struct, frozen=True):
    """What starts a program: words of a command, or the name of a container image."""

    kind: str
    words: tuple[str, ...]
    tool: str


BY_MODELFILE = "ollama"
"""The program that is told by a file, by variables and by flags together."""
_ITS_TABLES = ("ollama run", "Modelfile", "ollama serve")
IN_PYTHON = "transformers"
"""What Python loads that is not told otherwise."""


@lru_cache(maxsize=1)
def starts() -> Sequence[Start]:
    """Every way to start a program, the longest first."""
    found = [Start(r["kind"], tuple(r["words"].split()), r["tool"]) for r in _rows("starts.csv")]
    return sorted(found, key=lambda start: (-len(start.words), -len(start.words[0])))


@lru_cache(maxsize=16)
def flags_of(tool: str) -> Mapping[str, Flag]:
    """Give the flags of a program by spelling, with hyphens for underscores."""
    tools = _ITS_TABLES if tool == BY_MODELFILE else (tool,)
    found = [_flag(row) for row in _rows("flags.csv") if row["tool"] in tools]
    return {spelled(name): flag for flag in found for name in flag.names}


def unsaid(tool: str, meaning: str) -> str:
    """Give what a program takes where its command does not say it; empty: not known."""
    found = (flag.values.get("", "") for flag in flags_of(tool).values() if flag.sets == meaning)
    return next(found, "")


def spelled(name: str) -> str:
    """Write a flag with hyphens: parsers take underscores for them."""
    return name.replace("_", "-") if name.startswith("-") else name


def _flag(row: Mapping[str, str]) -> Flag:
    pairs = (pair.partition("=") for pair in row["values"].split("|") if pair)
    return Flag(
        tuple(row["names"].split(";")),
        row["kind"],
        tuple(filter(None, row["choices"].split(";"))),
        row["sets"],
        {word: meant for word, _, meant in pairs},
        row["source"],
    )


def _rows(name: str) -> Sequence[Mapping[str, str]]:
    path = data_dir("knowledge") / "flags" / name
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
