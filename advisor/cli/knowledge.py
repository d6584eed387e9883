"""``advisor knowledge`` and ``runtimes``: look up and check what is known, and where it is from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from advisor.cli.options import KnowledgeFolder
from advisor.errors import RequestError, UserError, did_you_mean, raise_problems
from advisor.files import data_dir
from advisor.knowledge import (
    WARNINGS,
    check_knowledge,
    load_knowledge,
    provenance_line,
    unusual_figures,
)
from advisor.knowledge import find as search
from advisor.knowledge.index import names_a_series
from advisor.knowledge.names import find_framework
from advisor.knowledge.programs import Capability
from advisor.knowledge.types import Framework, Gpu, Knowledge
from advisor.models.stored_tensors import Model
from advisor.reading import find_cards
from advisor.reading.near_cards import did_you_mean_cards, near_cards
from advisor.reading.public_import import ages, behind, import_list, without_record
from advisor.reading.public_list import containing, places
from advisor.report.figures import aligned, wrapped
from advisor.scenario import support
from advisor.scenario.asked_model import model_named
from advisor.scenario.capability import asked, slow_weights
from advisor.units import counted

if TYPE_CHECKING:
    from advisor.reading.public_list import PublicModel

_MOST_LISTED = 10
"""Repositories of the public list that a search names."""


def find(
    words: Annotated[list[str], typer.Argument(metavar="TEXT", help="Part of a name.")],
    knowledge: KnowledgeFolder = None,
) -> None:
    """List what the knowledge base and the public list have under a name.

    Example: advisor knowledge find rtx 4060
    """
    known, text = load_knowledge(knowledge), " ".join(words)
    rows = [tuple(row) for row in search(known, text)]
    names = {row[1].casefold() for row in rows}
    listed = (one for one in containing(text, _MOST_LISTED) if one.name.casefold() not in names)
    rows += [("public list", one.hf_id, _public(one)) for one in listed]
    rows = rows or list(_read_as(known, text))
    if not rows:
        message = f"nothing here is called '{text}'"
        raise RequestError(message, hint=_near(known, text) or _HOW)
    if all(kind == "public list" for kind, *_ in rows) and (near := _near(known, text)):
        typer.echo(near)
    for line in aligned(rows):
        typer.echo(line)


def _public(one: PublicModel) -> str:
    size = (
        f"{one.parameters_raw / 1e9:.3g} billion elements" if one.parameters_raw else "size unknown"
    )
    return f"{size}, {one.release_date or 'no date'}{'; yours' if one.by_user else ''}"


def update(
    file: Annotated[Path, typer.Argument(help="CSV file with the columns of docs/public-list.md.")],
) -> None:
    """Take a newer list of public models; it goes before the built-in one.

    Example: advisor knowledge update newer.csv
    """
    target = places()[0]
    taken = import_list(file, target, f"{file.name}, taken on {datetime.now(UTC):%Y-%m-%d}")
    newest = f", the newest of {taken.newest}" if taken.newest else ""
    typer.echo(f"{taken.models:,} models{newest}: in {target}, before the built-in list")


def age(
    most: Annotated[
        int, typer.Option(min=1, help="Of so many most downloaded repositories.")
    ] = 300,
    knowledge: KnowledgeFolder = None,
) -> None:
    """Say how old what is known is, which families have newer models, and what has no record.

    Example: advisor knowledge age --most 100
    """
    known = load_knowledge(knowledge)
    head = ("", "entries", "newest", "undated", "seen")
    rows = [
        (a.what, f"{a.entries:,}", a.newest or "-", f"{a.undated:,}", a.seen) for a in ages(known)
    ]
    for line in aligned([head, *rows], right={1, 3}):
        typer.echo(line)
    families = list(behind(known))
    typer.echo(f"\nFamilies whose publisher has newer models on the list: {len(families)}")
    for line in aligned([(f.family, f.newest, _some(f.since)) for f in families], "  "):
        typer.echo(line)
    missing = without_record(known, most)
    typer.echo(f"\n{len(missing)} of the {most} most downloaded repositories have no record:")
    typer.echo(f"  {_some([public.hf_id for public in missing])}")


def _some(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


_MOST_NAMED = 3


def _read_as(known: Knowledge, text: str) -> Iterator[tuple[str, ...]]:
    """Give the card that people call so, as it is found under its own name."""
    with suppress(UserError):
        cards = find_cards(known, text)
        for name in dict.fromkeys(card.name for card in cards.each or (cards.gpu,)):
            yield from (tuple(row) for row in search(known, name) if name in row)


_HOW: Final = "Search for a part of the name, such as 4090 or qwen3."


def _near(known: Knowledge, text: str) -> str:
    """Name what is nearest of everything that has a name; empty where nothing is near."""
    tables = (known.models, known.formats, known.kv_types, known.frameworks)
    other = did_you_mean(text, [name for table in tables for name in table])
    cards = near_cards(known, text)
    if cards and (not other or names_a_series(text)):
        return did_you_mean_cards(cards)
    return other


def check(
    folder: Annotated[
        Path | None,
        typer.Argument(help="Folder of knowledge files. (default: --knowledge, or built-in)"),
    ] = None,
    knowledge: KnowledgeFolder = None,
) -> None:
    """Check every knowledge file, over the built-in ones; every problem at once.

    Example: advisor knowledge check --knowledge house/knowledge
    """
    from advisor.workbench.house import CHECKS  # noqa: PLC0415  a look-up does without

    folders = [folder] if folder else knowledge
    where = folders or data_dir("knowledge")
    found = check_knowledge(where, *CHECKS)
    warnings = [one for one in found if one.lint in WARNINGS]
    raise_problems([one for one in found if one.lint not in WARNINGS])
    known = load_knowledge(folders)
    unusual_figures()
    for one in warnings:
        typer.echo(f"warning: {one}")
    said = counted(len(warnings), "warning") if warnings else "no problem found"
    typer.echo(
        f"{len(known.gpus)} GPUs, {len(known.models)} models, {len(known.formats)} formats, "
        f"{len(known.frameworks)} frameworks: {said}"
    )
    if provenance := provenance_line(known):
        typer.echo(provenance)


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
        why, row = _why_not(known, runtime, name, gpu, model), None
        if not why and (row := slow_weights(runtime, known.formats[name], gpu, model)):
            why = row.why
        yield name, "slow" if row else "refused" if why else "listed", why
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
