"""``advisor rules docs``: the rulebook."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from advisor.cli.folders import KnowledgeFolder, RulesFolder, TemplatesFolder
from advisor.cli.rules_sample import Workers, progress_line

if TYPE_CHECKING:
    from advisor.advice.pipeline import Advisor
    from advisor.workbench.rulebook.material import Measured

_SAMPLE = 400


class BookFormat(StrEnum):
    """How the rulebook is written."""

    html = "html"
    md = "md"


def docs(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write into.")] = Path(
        "rulebook"
    ),
    format_: Annotated[
        BookFormat, typer.Option("--format", help="Static pages, or Markdown.")
    ] = BookFormat.html,
    cover: Annotated[
        Path | None,
        typer.Option(help="What 'rules cover --format json' wrote. [default: measured now]"),
    ] = None,
    sample: Annotated[
        int,
        typer.Option(help="Scenarios to measure how often rules fire; 0: none.", min=0),
    ] = _SAMPLE,
    rules: RulesFolder = None,
    templates: TemplatesFolder = None,
    knowledge: KnowledgeFolder = None,
    workers: Workers = None,
) -> None:
    """Write a rulebook: a page per rule, the facts, and pictures of what depends on what.

    The pages need no network and no other files, so they can be opened from a folder or served
    from anywhere. The same rules give the same bytes.
    """
    from advisor.advice.pipeline import Advisor  # noqa: PLC0415
    from advisor.workbench.rulebook.book import Sources, make_book, write_book  # noqa: PLC0415
    from advisor.workbench.rulebook.material import read_cover_file  # noqa: PLC0415

    advisor = Advisor.load(rules=rules, templates=templates, knowledge=knowledge)
    measured = read_cover_file(cover) if cover else _measured(advisor, sample, knowledge, workers)
    book = make_book(advisor, Sources(rules, templates), measured)
    pages = write_book(book, output, format_.value)
    typer.echo(f"{pages} pages in {output}, beginning with index.{format_.value}")


def _measured(
    advisor: Advisor, sample: int, knowledge: Path | None, workers: int | None
) -> Measured | None:
    if not sample:
        return None
    from advisor.workbench.bulk import evaluate_all  # noqa: PLC0415
    from advisor.workbench.cover import cover as measure  # noqa: PLC0415
    from advisor.workbench.cover_views import cover_json  # noqa: PLC0415
    from advisor.workbench.fact_store_files import Origin, sampled_facts  # noqa: PLC0415
    from advisor.workbench.rulebook.material import read_cover  # noqa: PLC0415

    store = sampled_facts(sample, Origin(knowledge, workers=workers), progress=progress_line())
    return read_cover(cover_json(measure(evaluate_all(store, advisor.ruleset))))
