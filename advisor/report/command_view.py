"""What comes of a pasted command, as lines of text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct

from advisor.advice.command_check import Checked
from advisor.advice.document import Advice
from advisor.advice.preparation import usual_tokens
from advisor.reading.meanings import not_sized
from advisor.report.figures import wrapped
from advisor.report.views import escaped
from advisor.units import typed

_WIDTH = 88
_SAID = {
    "yes": "It starts.",
    "in part": "It starts with a part of the model in system RAM.",
    "no": "It does not start.",
}


# ---- as text


def command_lines(found: Checked) -> Iterator[str]:
    """Say in lines of a terminal how a command was read, and whether it starts."""
    yield from wrapped(f"Read as: {_read_as(found)}", _WIDTH)
    yield from wrapped(_verdict(found), _WIDTH)
    for note in _notes(found):
        yield from wrapped(note, _WIDTH)
    if found.corrected:
        yield ""
        yield _HEADING[found.by is not None]
        yield ""
        yield from (f"  $ {line}" for line in typed(found.corrected).split("\n"))


def command_markdown(found: Checked) -> str:
    """Say the same in Markdown."""
    said = [f"# {escaped(_verdict(found))}", f"Read as: {escaped(_read_as(found))}"]
    said += map(escaped, _notes(found))
    if found.corrected:
        said += [_HEADING[found.by is not None], f"```sh\n{typed(found.corrected)}\n```"]
    return "\n\n".join(said) + "\n"


_HEADING = {True: "A command that starts:", False: "The same as the program takes it:"}


def _read_as(found: Checked) -> str:
    scenario, asked = found.advice.scenario, found.asked
    cards = f"{scenario.gpus}x " if scenario.gpus > 1 and not scenario.cards else ""
    card = f"{cards}{scenario.gpu.name}" if scenario.gpu else "no card"
    parts = [
        f"{asked.framework} ({found.pasted.tool}, {asked.version})",
        f"{scenario.model.name} in {scenario.precision.name}",
        card,
        f"{scenario.context_tokens:,} tokens",
    ]
    parts += [f"{scenario.batch} sequences"] if scenario.batch > 1 else []
    keys, values = scenario.kv_cache_k.name, scenario.kv_cache_v.name
    parts += [f"cache {keys if keys == values else f'{keys}/{values}'}"]
    return ", ".join(parts) + "."


def _verdict(found: Checked) -> str:
    if found.refused:
        return f"It does not start: {found.pasted.tool} refuses the line."
    if found.sequences:
        return (
            f"It starts, and holds {found.sequences} of {found.advice.scenario.batch} sequences "
            "at their full length at once."
        )
    return _SAID[found.starts]


def _notes(found: Checked) -> Iterator[str]:
    pasted, asked = found.pasted, found.asked
    for unknown in pasted.unknown:
        near = f" Did you mean {' or '.join(unknown.nearest)}?" if unknown.nearest else ""
        ignored = ", a variable that it passes over" if unknown.ignored else ""
        yield f"Not known to {asked.framework} {asked.version}: {unknown.name}{ignored}.{near}"
    if pasted.earlier:
        known = f"{asked.framework} {asked.version}"
        told = ", ".join(pasted.earlier)
        yield f"Earlier versions alone take it so: {told}. {known} refuses the line."
    yield from (f"{text}." for text in pasted.wrong)
    if found.asked.own_context:
        context = f"{found.advice.scenario.context_tokens:,} tokens"
        how = "its own default" if _has_a_default(found) else "as advise takes them"
        how = "lowered until it fits" if asked.fits_context else how
        yield f"No context is stated: {context} are taken, {how}."
    yield from _not_as_told(found)
    if unsized := not_sized(pasted):
        yield f"Changes memory or speed in a way that is not sized: {', '.join(unsized)}."
    if plain := pasted.without_effect:
        yield f"Neither memory nor speed: {', '.join(plain)}."


def _has_a_default(found: Checked) -> bool:
    return "context" in found.asked.settings or usual_tokens(found.advice.scenario) is not None


def _not_as_told(found: Checked) -> Iterator[str]:
    """Give what is sized in another way than the command has it."""
    scenario, said = found.advice.scenario, found.pasted.said()
    shares, room = said.get("shares", ""), found.advice.memory.cache_room
    yield from found.asked.not_sized
    slots = room.state_slots if room else None
    if slots and said.get("states") != str(slots):
        yield (
            f"It is sized with {slots} recurrent states (--max-mamba-cache-size {slots}). Untold, "
            "almost half of what is left goes to states, and fewer tokens fit."
        )
    if scenario.gpus > 1 and scenario.cpu_experts and len(set(shares.split(","))) == 1:
        yield (
            "With experts in system RAM the cards are taken to be filled alike, by the -ts of the "
            "command that advise prints. Equal shares leave the first cards empty."
        )


# ---- as JSON


class UnknownFlag(Struct, frozen=True):
    """A flag that the program does not have."""

    flag: str
    """It as written."""
    nearest: Sequence[str]
    """Flags that the program has and that look alike."""


class CommandDoc(Struct, frozen=True):
    """How a command was read, and what comes of it."""

    program: str
    """The program that the line calls."""
    framework: str
    """The runtime that it is."""
    version: str
    """The version whose flags are known here."""
    settings: Mapping[str, Any]
    """What the request takes from the line."""
    starts: Literal["yes", "in part", "no"]
    """Whether it starts; in part: with a part of the model in system RAM."""
    sequences_at_once: int | None
    """Sequences held at their full length; null: all that are asked for. [sequences]"""
    unknown: Sequence[UnknownFlag]
    """What the program does not know."""
    wrong: Sequence[str]
    """Why the program refuses the line, a sentence each."""
    not_sized: Sequence[str]
    """What changes memory or speed and is not in the figures."""
    without_effect: Sequence[str]
    """Flags that change neither memory nor speed."""
    corrected: str | None
    """The line that starts; null where this one does, or none is known."""
    corrected_change: Mapping[str, Any] | None
    """The settings that it changes; null where it only leaves flags out."""
    earlier: Sequence[str] = ()
    """Flags that earlier versions of the program alone take so."""


class CommandAnswer(Struct, frozen=True):
    """The JSON of ``advisor check-command``; keys may be added, never renamed."""

    command: CommandDoc
    """How the line was read, and what comes of it."""
    advice: Advice
    """The report of what it starts."""


def command_doc(found: Checked, doc: Advice) -> CommandAnswer:
    """Put it as JSON has it, with the report."""
    pasted, asked = found.pasted, found.asked
    told = CommandDoc(
        program=pasted.tool,
        framework=asked.framework,
        version=asked.version,
        settings=asked.settings,
        starts=found.starts,
        sequences_at_once=found.sequences,
        unknown=[UnknownFlag(one.name, one.nearest) for one in pasted.unknown],
        wrong=pasted.wrong,
        not_sized=[*not_sized(pasted), *_not_as_told(found)],
        without_effect=pasted.without_effect,
        earlier=pasted.earlier,
        corrected=found.corrected or None,
        corrected_change=found.by.change if found.by else None,
    )
    return CommandAnswer(told, doc)
