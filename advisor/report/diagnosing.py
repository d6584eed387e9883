"""A log answered: its settings asked as a request, what it printed beside our figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec.structs import replace

from advisor.advice.document import Advice
from advisor.advice.pipeline import Advisor
from advisor.errors import RequestError, UserError
from advisor.knowledge.layers import Stack
from advisor.knowledge.log_patterns import load_log_patterns
from advisor.knowledge.names import find_format_candidates, find_model
from advisor.knowledge.types import Knowledge
from advisor.reading.cards import find_gpu
from advisor.reading.log_file import LogText
from advisor.reading.log_request import (
    FromLog,
    format_told,
    may_be,
    settings_of,
    usual_card,
)
from advisor.reading.logs import Log, read_lines
from advisor.report.assembly import document
from advisor.report.diagnosis import (
    Diagnosis,
    diagnosed,
    held_by_others,
    lacking,
    with_assumed_card,
)
from advisor.report.figures import spoken
from advisor.runtimes.commands import commands_for
from advisor.scenario.resolve import cards_asked
from advisor.scenario.settings import Request
from advisor.units import GIB

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
    text: LogText,
    stated: Request,
    advisor: Advisor,
    *,
    knowledge: Stack = None,
    templates: Stack = None,
    shown: str = "the log",
    own_card: str = "",
) -> tuple[Diagnosis, list[UserError]]:
    """Say what a log prints beside what is computed, and what helps.

    Args:
        text: The log.
        stated: What is known besides; it counts before what the log says.
        advisor: Rules and knowledge.
        knowledge: Folders laid over the built-in knowledge.
        templates: Folders whose texts stand in front of the built-in ones.
        shown: What the log is called in messages.
        own_card: The user's card; it counts where neither log nor request names one, and the
            memory that the log shows may be its.

    Returns:
        What was found, and what is missing for figures of ours.

    Raises:
        RequestError: No line of it is known.
    """
    read = read_lines(text, load_log_patterns(knowledge))
    if not read.known_lines and not read.commands:
        raise RequestError(
            f"no line of {shown} is known here ({read.lines:,} lines read)",
            hint=f"It reads what {_PROGRAMS} print. Give all of it, from the start of the program.",
        )
    found = settings_of(read, advisor.knowledge)
    nameless = not stated.gpu and found.unknown.get("gpu") == ""
    if nameless and own_card and may_be(own_card, read, advisor.knowledge):
        stated = replace(stated, gpu=own_card)
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
        answer = advisor.advise(request, complete=True)
    except UserError as refused:  # what was read is shown all the same
        return diagnosed(read, settings, {}, None), [refused]
    doc = document(answer, templates=templates)
    made = diagnosed(read, settings, {}, doc, _starts(read, request, advisor))
    short = lacking(read, doc)
    if not short or request.reserve_gib is not None:
        return made, []
    reserve = _reserve(short, doc, request, advisor)
    as_it_was = advisor.advise(replace(request, reserve_gib=reserve), complete=True)
    return held_by_others(made, short, reserve, document(as_it_was, templates=templates)), []


def _reserve(short: float, doc: Advice, request: Request, advisor: Advisor) -> float:
    """Give what others must hold of each card, GiB, so that so many bytes less are usable."""
    card = doc.memory.per_gpu[0]
    first = card.capacity_bytes - card.usable_bytes + short
    tried = advisor.advise(replace(request, reserve_gib=first / GIB)).memory.per_gpu[0]
    kept = card.usable_bytes - short - tried.usable_bytes
    return max(0.0, round((first - kept) / GIB, 2))


def _starts(read: Log, request: Request, advisor: Advisor) -> str | None:
    """Give the command with the longest context that the program itself says to hold."""
    longest = read.figure("max_context")
    if not longest or longest < 1 or not read.causes:
        return None
    answer = advisor.advise(replace(request, context=int(longest)))
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
