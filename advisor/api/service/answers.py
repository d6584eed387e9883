"""A question answered: through the API, as bytes of a form or in brief, with a status of HTTP."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from advisor.api import CommandCheck, LogAnswer, Report, Session
from advisor.api.service import EXPLAIN, FORMS, QUESTIONS
from advisor.api.service.openapi import page_of
from advisor.bulk.reverse.table import Table
from advisor.errors import Problems, RequestError, UserError, visible
from advisor.knowledge.layers import NotAllowedError
from advisor.report import figures as f
from advisor.units import json_line, rate

if TYPE_CHECKING:
    from advisor.bulk.estimates import LineDoc


BRIEF = "brief"
"""The form that tools give: a page short enough for a language model."""
_EVERY = {**QUESTIONS, EXPLAIN.name: EXPLAIN}

MOST_LINE = 65_536
"""Bytes of a line of ``/bulk``."""


class Asked(Struct, frozen=True):
    """One question as it goes to whoever answers it."""

    question: str
    given: Mapping[str, Any]
    form: str = "json"
    length: str = ""
    """How much of a report a page has; empty: as the command."""
    lines: Sequence[bytes] | None = None
    """Where it is a part of ``/bulk``: its lines, each with settings of its own."""


class Answer(Struct, frozen=True):
    """What comes of it."""

    body: bytes
    status: int = 200
    media: str = FORMS["json"]
    bug: str = ""
    """Where the fault is ours: the traceback, for the log alone."""


def answer(session: Session, asked: Asked) -> Answer:
    """Answer a question; whatever goes wrong is an answer too."""
    try:
        if asked.lines is not None:
            return _lines(session, asked.question, asked.lines)
        found = _ask(session, asked.question, asked.given)
        media = FORMS.get(asked.form, FORMS["text"])
        if asked.form == "json":
            return Answer(json_line(_document(found)), media=media)
        return Answer(_written(found, asked).encode("utf-8", "replace"), media=media)
    except UserError as wrong:
        return refusal(wrong)
    except OSError as bad:
        return refusal(UserError(_plainly(bad)))
    except Exception:  # noqa: BLE001  told in the log, never to who asks
        return failure(traceback.format_exc())


def _ask(session: Session, question: str, given: Mapping[str, Any]) -> Any:
    """Put the question to the API."""
    missing = [name for name in _EVERY[question].needed if given.get(name) is None]
    if missing:
        raise RequestError(f"{' and '.join(missing)} must be stated", hint=_example(question))
    method: Callable[..., Any] = getattr(session, question.replace("-", "_"))
    first = _FIRST.get(question)
    if first is None:
        return method(**given)
    return method(given.get(first), **{name: one for name, one in given.items() if name != first})


_FIRST = {
    "models-for": "gpu",
    "gpus-for": "model",
    "check-command": "command",
    "diagnose": "log",
    "explain": "rule",
}
"""Question -> the setting that the API takes by its place."""


def _example(question: str) -> str:
    examples = {"gpu": "RTX 4090", "model": "llama-3-8b", "command": "vllm serve ...", "log": "..."}
    stated = ", ".join(f'"{name}": "{examples[name]}"' for name in _EVERY[question].needed)
    return f"For example {{{stated}}}."


def _document(found: Any) -> Any:
    """Give the document of an answer; an estimate is one itself."""
    return getattr(found, "document", found)


def _written(found: Any, asked: Asked) -> str:
    if asked.form == BRIEF:
        return brief(found)
    if isinstance(found, str):
        return found
    form = asked.form
    more = (asked.length,) if QUESTIONS[asked.question].has_length and asked.length else ()
    if form == "html" and asked.question != "advise":
        return page_of(found.written("markdown", *more))
    text: str = found.written(form, *more)
    return text


# ---- many at once


def _lines(session: Session, question: str, lines: Sequence[bytes]) -> Answer:
    """Answer lines of ``/bulk``: a line for each, what is wrong alone on its own."""
    answered = [_line(session, question, line) for line in lines]
    bugs = [bug for _, bug in answered if bug]
    return Answer(b"".join(line for line, _ in answered), bug=bugs[0] if bugs else "")


def _line(session: Session, question: str, line: bytes) -> tuple[bytes, str]:
    name: object = None
    try:
        given = read_object(line, "the line", most=MOST_LINE)
        name = given.pop("id", None)
        if not (name is None or isinstance(name, str | int | float)):
            name = None
            raise RequestError("id must be a text or a number")  # noqa: TRY301
        found = _ask(session, question, given)
        doc = msgspec.to_builtins(_document(found))
        return _json({"id": name} | doc | {"id": name, "error": None}), ""
    except (UserError, OSError) as wrong:
        told = wrong if isinstance(wrong, UserError) else UserError(_plainly(wrong))
        return _json({"id": name, "error": error_doc(told)}), ""
    except Exception:  # noqa: BLE001  one line must not cost the others
        return _json({"id": name, "error": _BUG}), traceback.format_exc()


def read_object(content: bytes, what: str, *, most: int) -> dict[str, Any]:
    """Read a JSON object.

    Raises:
        RequestError: It is none, or too long.
    """
    if len(content) > most:
        raise RequestError(f"{what} is longer than {most:,} bytes")
    try:
        found = msgspec.json.decode(content)
    except (ValueError, RecursionError) as bad:
        raise RequestError(f"{what} is not JSON: {visible(str(bad))}") from None
    if not isinstance(found, dict):
        kind = "a list" if isinstance(found, list) else "a single value"
        raise RequestError(f"{what} holds {kind}, not an object", hint='Write {"name": value}.')
    return found


# ---- what is wrong


_BUG = {
    "message": "advisor failed here, and that is a bug in advisor.",
    "hint": "Its log says more.",
    "errors": [],
}


def error_doc(wrong: UserError) -> dict[str, Any]:
    """Tell what is wrong: all of it as one message, and each by itself."""
    several = wrong.errors if isinstance(wrong, Problems) else [wrong]
    each = [{"message": one.message, "hint": one.hint} for one in several]
    hint = several[0].hint if len(several) == 1 else ""
    return {"message": wrong.message, "hint": hint, "errors": each}


def refusal(wrong: UserError, status: int = 0) -> Answer:
    """Tell whoever asks what is wrong with the question."""
    several = wrong.errors if isinstance(wrong, Problems) else [wrong]
    barred = all(isinstance(one, NotAllowedError) for one in several)
    return Answer(_json(error_doc(wrong)), status or (403 if barred else 422))


def failure(bug: str) -> Answer:
    """Tell that the fault is ours; why stands in the log alone."""
    return Answer(_json(_BUG), 500, bug=bug)


def _plainly(bad: OSError) -> str:
    return bad.strerror or "a file or connection failed"


def _json(doc: object) -> bytes:
    return msgspec.json.encode(doc) + b"\n"


MOST = 2_000
"""Characters."""
_REMEDIES = 3
_CUT = "... (cut; whole=true gives the whole document)\n"


def brief(found: Any) -> str:
    """Write an answer of the API short."""
    match found:
        case str():
            text = found
        case Report():
            text = _brief_lines(_report(found))
        case Table():
            text = found.written("text")
        case CommandCheck():
            text = found.written("text").partition("\n\n")[0] + "\n"
            text += f"A command that starts: {found.corrected}\n" if found.corrected else ""
            text += "\n" + _brief_lines(_report(found.report))
        case LogAnswer():
            text = _brief_lines(_log(found))
        case _:
            text = _brief_lines(_estimate(found))
    return _cut(text)


def _cut(text: str) -> str:
    """Leave lines out at the end of what is too long."""
    if len(text) <= MOST:
        return text
    return text[: text.rindex("\n", 0, MOST - len(_CUT)) + 1] + _CUT


def _brief_lines(lines: Iterator[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _report(report: Report) -> Iterator[str]:
    doc = report.document
    yield f"Verdict: {doc.verdict.state}. {doc.verdict.sentence}"
    yield from _figures(doc.memory, doc.speed)
    one = doc.scenario
    yield (
        f"Setup: {one.precision}, {one.context_tokens:,} tokens of context, {one.batch} at once, "
        f"KV cache {one.kv_cache}, {one.framework}."
    )
    for item in doc.recommendations[:_REMEDIES]:
        yield f"{item.rank}. {item.title}. {item.text}"
        yield from (f"   $ {command.text}" for command in item.commands[:1])
        yield f"   As settings: {dict(item.change)}"
    if not doc.recommendations:
        yield "Nothing needs to change." if report.fits else "No remedy is known."
    yield from (f"Note: {text}" for text in doc.warnings[:2])


def _figures(memory: Any, speed: Any) -> Iterator[str]:
    short, usable = memory.deficit_bytes > 0, memory.usable_bytes
    more, less = (memory.required_bytes, usable) if short else (usable, memory.required_bytes)
    said = f"{'missing' if short else 'free'} {f.rest(more, less)}"
    yield f"Needs {f.amount(memory.required_bytes)}, usable {f.amount(usable)}, {said}."
    pace = speed and speed.decode_tok_s
    if pace:
        span = f"{rate(pace.low)} to {rate(pace.high)}"
        yield f"Speed: {rate(pace.estimate)} tok/s of one sequence ({span})."


def _estimate(doc: LineDoc) -> Iterator[str]:
    if doc.parameters:
        yield f"Parameters: {doc.parameters.total:,}, active {doc.parameters.active or 0:,}."
    if doc.memory is None:
        yield "Its memory is not known."
        return
    memory = doc.memory
    if memory.usable_bytes is None:
        yield f"Needs {f.amount(memory.required_bytes)}."
    else:
        yield from _figures(memory, doc.speed)
    bits = f" ({memory.bits_per_weight:.2f} bits each)" if memory.bits_per_weight else ""
    yield (
        f"Weights {f.amount(memory.weights_bytes)}{bits}, KV cache "
        f"{f.amount(memory.kv_cache_bytes)}, work buffers {f.amount(memory.compute_buffer_bytes)}."
    )


def _log(found: LogAnswer) -> Iterator[str]:
    yield found.cause or "No cause is known from these lines."
    yield from (f"Remark: {text}" for text in found.details.get("remarks", ()))
    if starts := found.details.get("starts"):
        yield f"This starts: {starts}"
    yield from (f"Missing: {text}" for text in found.missing)
    if found.report:
        yield from _report(found.report)
