"""The commands that run a scenario, filled in from the templates of knowledge/commands.yaml.

What a program takes, and how it is written, stands there; this module only knows the values.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct

from advisor.knowledge.command_settings import PLACEHOLDERS, SWITCHES
from advisor.knowledge.types import Framework
from advisor.memo import Kept
from advisor.runtimes.command_values import (
    VALUES,
    Shares,
    Started,
    holds,
    needed_settings,
    shares_of,
)
from advisor.scenario.figures import Memory
from advisor.scenario.resolve import default_backend
from advisor.scenario.scenario import Key, Scenario, size_key

_PLACEHOLDER = re.compile(r"\{([a-z_]+)(?::(raw|json))?\}")
_OPERATORS = frozenset({">", "&", "&&", "|"})
_NO_REASON = "No option for it is known."


class Gap(Struct, frozen=True):
    """A setting that a program cannot be told, and why."""

    setting: str
    reason: str


class Command(Struct, frozen=True):
    """A complete invocation of one program."""

    program: str
    what: str
    version: str
    text: str
    """Lines for a POSIX shell."""
    gaps: tuple[Gap, ...]


class _Part(NamedTuple):
    """A stretch of fixed text, then one placeholder (or none)."""

    before: str
    name: str
    mode: str


class _Piece(Struct, frozen=True):
    when: str
    words: tuple[str | tuple[_Part, ...], ...]
    """Each as it is written, or its parts where a placeholder is in it."""
    carries: tuple[str, ...]


class _Program(Struct, frozen=True):
    """A record of commands.yaml, taken apart once."""

    fields: Mapping[str, object]
    interpreter: tuple[_Piece, ...]
    lines: tuple[tuple[_Piece, ...], ...]


def commands_for(scenario: Scenario, memory: Memory | None = None) -> tuple[Command, ...]:
    """Give an invocation for every program of the scenario's framework, the fullest first.

    Args:
        scenario: What is to run.
        memory: Its estimate; without it a server is not told to leave what other programs need.
    """
    shares = shares_of(scenario, memory)
    key, records = _key(scenario, shares)
    found = _written_for.get(key)
    if found is None:
        programs = _programs(scenario.framework)
        made = [_command(program, scenario, shares) for program in programs]
        in_order = tuple(sorted(made, key=_left_unsaid))
        found = (records, in_order)
        _written_for.put(key, found)
    return found[1]


def command_for(scenario: Scenario, memory: Memory | None = None) -> str:
    """Give the invocation that leaves the least unsaid; empty where none is sourced."""
    found = commands_for(scenario, memory)
    return found[0].text if found else ""


def can_tell(scenario: Scenario, setting: str) -> bool:
    """Whether the command that is shown says a setting; true where no command is sourced."""
    found = commands_for(scenario)
    return not found or all(gap.setting != setting for gap in found[0].gaps)


def _left_unsaid(command: Command) -> tuple[bool, int]:
    """Order programs; one for a single sequence goes last where several are asked for."""
    return any(gap.setting == "batch" for gap in command.gaps), len(command.gaps)


def _key(scenario: Scenario, shares: Shares | None) -> tuple[Key, Key]:
    """Give a key of what commands can hold; of the card that is its back end and what it shares."""
    gpu, (key, records) = scenario.gpu, size_key(scenario, None)
    return (*key, gpu and default_backend(gpu), shares), records


_written_for: Kept[Key, tuple[Key, tuple[Command, ...]]] = Kept(1_024)
"""What-ifs of neighbouring reports differ in the card alone."""
_kept: dict[int, tuple[Framework, tuple[_Program, ...]]] = {}


def _programs(framework: Framework) -> tuple[_Program, ...]:
    found = _kept.get(id(framework))
    if found is None or found[0] is not framework:
        made = tuple(_program(fields) for fields in framework.commands)
        found = _kept[id(framework)] = (framework, made)
    return found[1]


def _program(fields: Mapping[str, object]) -> _Program:
    interpreter, lines = fields["python"], fields["lines"]
    assert isinstance(interpreter, Sequence)
    assert isinstance(lines, Sequence)
    python = bool(interpreter)
    return _Program(
        fields,
        tuple(_piece(piece, python=False) for piece in interpreter),
        tuple(tuple(_piece(piece, python=python) for piece in line) for line in lines),
    )


def _piece(fields: Mapping[str, str], *, python: bool) -> _Piece:
    text, when = fields["text"], fields["when"]
    words = [tuple(_parts(word)) for word in ([text] if python else shlex.split(text))]
    names = [part.name for word in words for part in word if part.name]
    carried = [key for name in names for key in PLACEHOLDERS.get(name, ())]
    ready = (
        word if any(part.name for part in word) else _ready(word[0].before, python=python)
        for word in words
    )
    return _Piece(when, tuple(ready), (*carried, *SWITCHES.get(when, ())))


def _ready(word: str, *, python: bool) -> str:
    return word if python or word in _OPERATORS else shlex.quote(word)


def _parts(word: str) -> Iterator[_Part]:
    place = 0
    for found in _PLACEHOLDER.finditer(word):
        yield _Part(word[place : found.start()], found[1], found[2] or "")
        place = found.end()
    if place < len(word) or not word:
        yield _Part(word[place:], "", "")


def _command(program: _Program, scenario: Scenario, shares: Shares | None) -> Command:
    started = Started(scenario, program.fields, shares)
    carried: set[str] = set()
    lines = [_line(line, started, carried, bool(program.interpreter)) for line in program.lines]
    text = "\n".join(line for line in lines if line)
    if program.interpreter:
        header = _line(program.interpreter, started, carried, False)
        text = f"{header} <<'EOF'\n{text}\nEOF"
    fields = program.fields
    return Command(
        program=str(fields["name"]),
        what=str(fields["what"]),
        version=str(fields["version"]),
        text=text,
        gaps=tuple(_gaps(fields, scenario, carried)),
    )


def _line(pieces: Sequence[_Piece], started: Started, carried: set[str], python: bool) -> str:  # noqa: FBT001
    said: list[str] = []
    for piece in pieces:
        words = _said(piece, started, python=python)
        if words is not None:
            said += words
            carried.update(piece.carries)
    return " ".join(said)


def _said(piece: _Piece, started: Started, *, python: bool) -> Sequence[str] | None:
    """Write a piece out; None where its switch is off or a value is missing."""
    if piece.when and not holds(piece.when, started):
        return None
    words = []
    for parts in piece.words:
        word = parts if isinstance(parts, str) else _filled(parts, started, python=python)
        if word is None:
            return None
        words.append(word)
    return words


def _filled(parts: Sequence[_Part], started: Started, *, python: bool) -> str | None:
    word = ""
    for part in parts:
        word += part.before
        if part.name:
            value = _value(part.name, started)
            if value is None:
                return None
            word += _written(value, part, python=python)
    return _ready(word, python=python)


def _written(value: str, part: _Part, *, python: bool) -> str:
    if part.mode == "raw":
        return value
    if part.mode == "json":
        return json.dumps(value)
    return repr(value) if python else value


def _value(name: str, started: Started) -> str | None:
    known = VALUES.get(name)
    return known(started) if known else started.word(name)


def _gaps(fields: Mapping[str, object], scenario: Scenario, carried: set[str]) -> Iterator[Gap]:
    """What the scenario states and the command does not say, with the sourced reason."""
    reasons = fields["cannot"]
    assert isinstance(reasons, Mapping)
    missing = [key for key in needed_settings(scenario) if key not in carried]
    named = dict.fromkeys("kv_cache" if key.startswith("kv_cache") else key for key in missing)
    yield from (Gap(key, reasons.get(key, _NO_REASON)) for key in named)
    if scenario.model.vision_parameters and "images" in reasons:
        yield Gap("images", reasons["images"])
