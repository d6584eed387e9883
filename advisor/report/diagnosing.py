"""A log answered: its settings asked as a request, what it printed beside our figures."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from advisor.advice import Advisor
from advisor.advice.document import Advice
from advisor.errors import RequestError, UserError
from advisor.knowledge.layers import Stack
from advisor.knowledge.log_patterns import load_log_patterns
from advisor.knowledge.names import find_format_candidates, find_model
from advisor.knowledge.types import Knowledge
from advisor.reading import find_gpu
from advisor.reading.log_file import LogText, read_log
from advisor.reading.log_request import FromLog, format_told, may_be, settings_of, usual_card
from advisor.reading.logs import Log, read_lines
from advisor.report.assembly import document
from advisor.report.diagnosis import (
    Diagnosis,
    Row,
    diagnosed,
    held_by_others,
    lacking,
    with_assumed_card,
)
from advisor.report.figures import aligned, amount, count, say, spoken, wrapped
from advisor.runtimes.commands import commands_for
from advisor.scenario.resolve import cards_asked
from advisor.scenario.settings import SETTINGS, Request
from advisor.units import GIB, plain, typed

_PROGRAMS = "llama.cpp, Ollama, vLLM, SGLang, TGI, PyTorch, nvidia-smi and rocm-smi"
_ASKED = {
    "gpu": "the card: add --gpu NAME",
    "model": "the model: add --model NAME",
    "precision": "the weight format: add --precision NAME",
}
"""Setting that a request needs -> how it is asked for."""
_FIND: Mapping[str, Callable[[Knowledge, str], object]] = {
    "gpu": find_gpu,
    "model": find_model,
    "precision": find_format_candidates,
}


def diagnose(
    text: str | LogText,
    stated: Request,
    advisor: Advisor,
    *,
    knowledge: Stack = None,
    templates: Stack = None,
    shown: str = "the log",
    user_card: str = "",
) -> tuple[Diagnosis, list[UserError]]:
    """Say what a log prints beside what is computed, and what helps.

    What is ``stated`` counts before what the log says; the user's own card where neither names one,
    and the memory that the log shows may be its.

    Raises:
        RequestError: No line of it is known.
    """
    if isinstance(text, str):
        text = read_log(None, io.BytesIO(text.encode("utf-8", "replace")))
    read = read_lines(text, load_log_patterns(knowledge))
    if not read.known_lines and not read.commands:
        raise RequestError(
            f"no line of {shown} is known here ({read.lines:,} lines read)",
            hint=f"It reads what {_PROGRAMS} print. Give all of it, from the start of the program.",
        )
    found = settings_of(read, advisor.knowledge)
    nameless = not stated.gpu and found.unknown.get("gpu") == ""
    if nameless and user_card and may_be(user_card, read, advisor.knowledge):
        stated = replace(stated, gpu=user_card)
    assumed = usual_card(read, advisor.knowledge) if nameless and not stated.gpu else ""
    stated = replace(stated, gpu=assumed) if assumed else stated
    with spoken(templates):
        made, missing = _answered(read, found, stated, advisor, templates)
        return (with_assumed_card(made, assumed) if assumed else made), missing


def _answered(
    read: Log, found: FromLog, stated: Request, advisor: Advisor, templates: Stack
) -> tuple[Diagnosis, list[UserError]]:
    """Answer the request that log and flags make, unless they leave something open."""
    flags = stated.stated()
    settings = {**found.settings, **flags}
    several = stated.gpu and found.ranks > 1 and "gpus" not in flags
    if several and not cards_asked(stated, advisor.knowledge).counted:
        settings["gpus"] = found.ranks
    unknown = {key: seen for key, seen in found.unknown.items() if key not in settings}
    if unknown.get("precision") == "" and format_told(settings, advisor.knowledge):
        del unknown["precision"]
    if unknown:
        return diagnosed(read, settings, unknown, None), [_question(unknown, advisor.knowledge)]
    request = replace(Request(), **settings)
    try:
        answer = advisor.advise(request, complete=True, all_cards=True)
    except UserError as refused:  # what was read is shown all the same
        return diagnosed(read, settings, {}, None), [refused]
    doc = document(answer, templates=templates)
    made = diagnosed(read, settings, {}, doc, _starts(read, request, advisor))
    short = lacking(read, doc)
    if not short or request.reserve_gib is not None:
        return made, []
    reserve = _reserve(short, doc, request, advisor)
    kept = replace(request, reserve_gib=reserve)
    as_it_was = advisor.advise(kept, complete=True, all_cards=True)
    return held_by_others(made, short, reserve, document(as_it_was, templates=templates)), []


def _reserve(short: float, doc: Advice, request: Request, advisor: Advisor) -> float:
    """Give what others must hold of each card, GiB, so that so many bytes less are usable."""
    card = doc.memory.per_gpu[0]
    first = card.capacity_bytes - card.usable_bytes + short
    kept = replace(request, reserve_gib=first / GIB)
    tried = advisor.advise(kept, all_cards=True).memory.per_gpu[0]
    over = card.usable_bytes - short - tried.usable_bytes
    return max(0.0, round((first - over) / GIB, 2))


def _starts(read: Log, request: Request, advisor: Advisor) -> str | None:
    """Give the command with the longest context that the program itself says to hold."""
    longest = read.figure("max_context")
    if not longest or longest < 1 or not read.causes:
        return None
    answer = advisor.advise(replace(request, context=int(longest)), all_cards=True)
    commands = commands_for(answer.scenario, answer.memory)
    return commands[0].text if commands else None


def _question(unknown: dict[str, str], knowledge: Knowledge) -> RequestError:
    """Ask for what the log does not tell, all at once."""
    parts = [_ASKED[key] + _seen(key, seen, knowledge) for key, seen in unknown.items()]
    return RequestError(f"the log does not tell {'; '.join(parts)}.")


def _seen(key: str, seen: str, knowledge: Knowledge) -> str:
    """Say why what the log calls it is not enough."""
    if not seen:
        return ""
    try:
        _FIND[key](knowledge, seen)
    except RequestError as why:
        return f" ({why})"
    return f" (the log says '{seen[:100]}', which does not agree with the rest of it)"


COLUMNS = ("figure", "log", "computed", "difference", "line")
NUMBERS = frozenset({1, 2, 3, 4})
"""Columns that end in line."""
_NONE = "-"


def head() -> tuple[str, ...]:
    """Give the names of the columns."""
    return tuple(say(f"log.column.{name}") for name in COLUMNS)


def cells(row: Row) -> tuple[str, ...]:
    """Write one figure of the log beside ours."""
    name = say(f"log.figure.{row.figure}")
    difference = _NONE if row.difference is None else _difference(row)
    return (
        say("log.each", figure=name) if row.each_card else name,
        _shown(row, row.logged),
        _NONE if row.computed is None else _shown(row, row.computed),
        say("log.far", difference=difference) if row.far else difference,
        str(row.line) if row.line else _NONE,
    )


def said(found: Diagnosis) -> list[tuple[str, str]]:
    """List what the log says beside figures: label and text."""
    program = " ".join(filter(None, (found.program, found.version)))
    rows = {
        "program": plain(program),
        "cards": plain(", ".join(dict.fromkeys(found.cards.values()))),
        "model": found.model or "",
        "settings": settings_shown(found),
    }
    return [(say(f"log.label.{key}"), text) for key, text in rows.items() if text]


def settings_shown(found: Diagnosis) -> str:
    """Write the settings that were asked for, as flags of ``advise``."""
    return " ".join(_flag(name, value) for name, value in found.settings.items())


def _flag(name: str, value: object) -> str:
    text = (
        {True: "on", False: "off"}.get(value, str(value)) if isinstance(value, bool) else str(value)
    )
    shown = f'"{text}"' if " " in text else text
    return f"--{SETTINGS[name].typed_name.replace('_', '-')} {plain(shown)}"


def text_head(found: Diagnosis, width: int) -> Iterator[str]:
    """Write what the log says, up to the table."""
    yield say("log.head.said")
    yield ""
    labels = said(found)
    size = max((len(label) for label, _ in labels), default=0)
    for label, text in labels:
        first, *more = wrapped(text, width - size - 4)
        yield f"  {label.ljust(size)}  {first}"
        yield from (f"  {' ' * size}  {line}" for line in more)
    if found.cause:
        yield ""
        yield from wrapped(found.cause.text, width)
        if found.cause.quoted:
            quoted = say("log.at", line=found.cause.line, text=found.cause.quoted)
            yield from (f"  {line}" for line in wrapped(quoted, width - 2))


def text_table(found: Diagnosis) -> Iterator[str]:
    """Write the figures in columns."""
    yield say("log.head.compared")
    yield ""
    rows = [head(), *(cells(row) for row in found.comparison)]
    yield from aligned(rows, "  ", right=NUMBERS)


def remarks(found: Diagnosis, width: int) -> Iterator[str]:
    """Write what is to be said of the figures, and what starts as things stand."""
    for text in found.remarks:
        yield ""
        yield from wrapped(text, width)
    if found.starts:
        yield ""
        yield from (f"  $ {line}" for line in typed(found.starts).split("\n"))


def written(found: Diagnosis, form: str, width: int) -> str:
    """Write everything but the advice, as text or markdown."""
    if form == "markdown":
        return _markdown(found)
    lines = [*text_head(found, width)]
    lines += ["", *text_table(found)] if found.comparison else []
    return "\n".join([*lines, *remarks(found, width)]).rstrip("\n") + "\n"


def _markdown(found: Diagnosis) -> str:
    lines = [f"# {say('log.head.said')}", ""]
    lines += [f"- **{label}**: {_escaped(text)}" for label, text in said(found)]
    if found.cause:
        lines += ["", f"**{found.cause.text}**"]
        if found.cause.quoted:
            quoted = say("log.at", line=found.cause.line, text=found.cause.quoted)
            lines += ["", f"> {_escaped(quoted)}"]
    if found.comparison:
        lines += ["", f"## {say('log.head.compared')}", "", *_table(found.comparison)]
    for text in found.remarks:
        lines += ["", text]
    if found.starts:
        lines += ["", "```sh", typed(found.starts), "```"]
    return "\n".join(lines) + "\n"


def _table(rows: Sequence[Row]) -> Iterator[str]:
    yield f"| {' | '.join(head())} |"
    yield "|---|" + "---:|" * (len(COLUMNS) - 1)
    yield from (f"| {' | '.join(cells(row))} |" for row in rows)


def _escaped(text: str) -> str:
    """Keep what strangers wrote from being markup."""
    return "".join(f"\\{sign}" if sign in "\\`*_[]<>|#!" else sign for sign in text)


def _shown(row: Row, value: float) -> str:
    if row.unit == "bytes":
        return amount(value)
    return f"{count(value)} %" if row.unit == "%" else count(value)


def _difference(row: Row) -> str:
    value = row.difference or 0.0
    sign = "-" if value < 0 else "+"
    return f"{sign}{_shown(row, abs(value))}"
