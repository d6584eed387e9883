"""``advisor runtimes``: what each runtime does on which card, and where that was read."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Sequence
from typing import Annotated

import typer
from msgspec.structs import asdict

from advisor.api import Extra, Session
from advisor.cli.advise import NOT_FITTING
from advisor.cli.options import (
    Asked,
    Format,
    KnowledgeFolder,
    Length,
    Output,
    takes_machine,
)
from advisor.cli.own_settings import used_settings
from advisor.cli.report_output import takes_own_files, write
from advisor.errors import RequestError, raise_problems
from advisor.knowledge import load_knowledge
from advisor.knowledge.layers import OwnFiles
from advisor.knowledge.names import find_framework
from advisor.knowledge.programs import Capability
from advisor.knowledge.types import Framework, Gpu, Knowledge
from advisor.models.stored_tensors import Model
from advisor.reading import find_cards
from advisor.report.figures import aligned, wrapped
from advisor.scenario import support
from advisor.scenario.asked_model import model_named
from advisor.scenario.capability import asked

_WIDTH = 100


def runtimes(
    name: Annotated[str | None, typer.Argument(help="A runtime: its rows.")] = None,
    gpu: Annotated[str | None, typer.Option(help="With a name: what runs on this card.")] = None,
    model: Annotated[str | None, typer.Option(help="With a name: what runs for it.")] = None,
    knowledge: KnowledgeFolder = None,
) -> None:
    """Show what each runtime does on which card, and the file and line it was read from.

    A runtime alone lists what keeps it from cards, models, formats and cache types. With --gpu or
    --model it answers for each of its formats and cache types; ``listed`` means that its own lists
    name it and nothing more is known.

    Example: advisor runtimes vLLM --gpu T4
    """
    known = load_knowledge(knowledge)
    if name is None:
        lines = aligned([("runtime", "version", "memory", "rows", "upkeep"), *_all(known)])
    else:
        card = find_cards(known, gpu).gpu if gpu else None
        sized = model_named(model, known).model if model else None
        lines = _one(known, find_framework(known, name), card, sized)
    for line in lines:
        typer.echo(line)


def _all(known: Knowledge) -> Iterator[tuple[str, ...]]:
    for runtime in known.frameworks.values():
        rows = len(runtime.capabilities)
        yield (
            runtime.name,
            runtime.version,
            _memory(runtime),
            str(rows) if rows else "none",
            support.upkeep(runtime) or "",
        )


def _memory(runtime: Framework) -> str:
    if not runtime.sized:
        return "not modelled"
    return "compared" if runtime.memory_checked else "not compared"


def _one(
    known: Knowledge, runtime: Framework, gpu: Gpu | None, model: Model | None
) -> Iterator[str]:
    yield f"{runtime.name} {runtime.version}, on cards of {', '.join(runtime.vendors)}"
    yield f"memory: {_memory(runtime)} with what it printed"
    if gpu or model:
        yield ""
        yield from aligned([*_answers(known, runtime, gpu, model)])
        return
    for row in runtime.capabilities:
        yield ""
        yield from _shown(row)
    yield ""
    yield "What no row answers: the lists of frameworks.yaml (formats, cache types, models)."


def _shown(row: Capability) -> Iterator[str]:
    named = f" {', '.join(row.of)}" if row.of else ""
    where = "; ".join(_conditions(row)) or "everywhere"
    yield from wrapped(f"{row.about}{named}: {row.answer} ({where})", _WIDTH)
    yield from (f"  {line}" for line in wrapped(f"{row.why}.", _WIDTH - 2))
    yield f"  {row.framework} {row.version}, {row.at}"


def _conditions(row: Capability) -> Iterator[str]:
    lists: Sequence[tuple[str, Sequence[str]]] = (
        ("", row.vendors), ("", row.architectures), ("", row.backends),
        ("attention ", row.attention), ("heads other than ", row.other_head_sizes),
        ("", row.model_types), ("all but ", row.other_model_types),
    )  # fmt: skip
    yield from (f"{word}{', '.join(names)}" for word, names in lists if names)
    if row.from_capability:
        yield f"compute capability from {row.from_capability:g}"
    if row.below_capability:
        yield f"compute capability below {row.below_capability:g}"
    if row.experts:
        yield "mixtures of experts"
    if row.lookups:
        yield "models with tables looked up by token"


def _answers(
    known: Knowledge, runtime: Framework, gpu: Gpu | None, model: Model | None
) -> Iterator[tuple[str, str, str]]:
    """Answer for every format and cache type of a runtime."""
    shape = model.shape if model else None
    for name in runtime.formats:
        why = _why_not(known, runtime, name, gpu, model)
        yield name, "refused" if why else "listed", why
    for name in runtime.kv_types:
        row = asked(runtime, "kv_cache", name, gpu, shape)
        yield f"cache {name}", row.answer if row else "listed", row.why if row else ""


def _why_not(
    known: Knowledge, runtime: Framework, name: str, gpu: Gpu | None, model: Model | None
) -> str:
    if model:
        return support.why_not(runtime, known.formats[name], gpu, model)
    rows = (asked(runtime, about, name, gpu, None) for about in ("card", "weights"))
    return next((row.why for row in rows if row and row.answer == "refused"), "")


_MOST_TEXT = 100_000


@takes_machine
@takes_own_files()
def check_command_line(
    machine: Asked,
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="-- COMMAND...", help="The command, behind --. Without it, standard input."
        ),
    ] = None,
    format_: Annotated[Format, typer.Option("--format", help="How it is written.")] = "text",
    length: Annotated[
        Length, typer.Option(metavar="<word>", help="How much of the report follows.")
    ] = "short",
    output: Output = None,
    fail_unless_fits: Annotated[
        bool, typer.Option("--fail-unless-fits", help="Exit 3 unless the command starts.")
    ] = False,
    *,
    own: OwnFiles,
) -> None:
    """Say whether a pasted command starts on a card, what it leaves, and which one does.

    It reads what starts vLLM, SGLang, TensorRT-LLM, TGI, LMDeploy, llama.cpp and what is built on
    it, Ollama (and Modelfiles), TabbyAPI, text-generation-webui, MLX-LM and LM Studio; also in a
    container, with variables and over several lines.

    Example: advisor check-command --gpu T4 -- vllm serve Qwen/Qwen3-8B-AWQ
    """
    raise_problems(machine.wrong)
    extras: Sequence[Extra] = ["barred", "reasons"] if format_ == "json" else []
    session = Session(**asdict(own))
    found = session.check_command(_pasted(command), machine.request, extras)
    found.report.noted(used_settings())
    write(found.written(format_, length), output)
    if fail_unless_fits and found.starts != "yes":
        raise typer.Exit(NOT_FITTING)


def _pasted(command: Sequence[str] | None) -> str:
    """Give the command as one text.

    Raises:
        RequestError: There is none, or it is far too long for one.
    """
    if command:
        return command[0] if len(command) == 1 else shlex.join(command)
    if sys.stdin is None or sys.stdin.isatty():
        raise RequestError(
            "no command is given", hint="Write it behind --, or send it to standard input."
        )
    text = sys.stdin.read(_MOST_TEXT + 1)
    if len(text) > _MOST_TEXT or not text.strip():
        what = "is empty" if not text.strip() else "is too long for a command"
        raise RequestError(f"standard input {what}", hint="Send a command to it.")
    return text
