"""An answer in at most about 2 kB, for a language model to read: verdict, figures, what to do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from advisor.api import CommandCheck, LogAnswer, Report, Table
from advisor.report import figures as f

if TYPE_CHECKING:
    from advisor.bulk.estimates import LineDoc

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
            text = _lines(_report(found))
        case Table():
            text = found.written("text")
        case CommandCheck():
            text = found.written("text").partition("\n\n")[0] + "\n"
            text += f"A command that starts: {found.corrected}\n" if found.corrected else ""
            text += "\n" + _lines(_report(found.report))
        case LogAnswer():
            text = _lines(_log(found))
        case _:
            text = _lines(_estimate(found))
    return _cut(text)


def _cut(text: str) -> str:
    """Leave lines out at the end of what is too long."""
    if len(text) <= MOST:
        return text
    return text[: text.rindex("\n", 0, MOST - len(_CUT)) + 1] + _CUT


def _lines(lines: Iterator[str]) -> str:
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
        span = f"{f.rate(pace.low)} to {f.rate(pace.high)}"
        yield f"Speed: {f.rate(pace.estimate)} tok/s of one sequence ({span})."


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
