"""``advisor rules cover`` and ``diff``: what rules do over the catalogue."""

from __future__ import annotations

import sys
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from advisor.cli.folders import KnowledgeFolder, RulesFolder, TemplatesFolder

DIFFERS = 3
_SAMPLE = 20_000

SampleSize = Annotated[int, typer.Option(help="Scenarios of the catalogue.", min=1, max=1_000_000)]
Workers = Annotated[
    int | None,
    typer.Option(help="Processes that work out facts. [default: one per processor]", min=1),
]
Output = Annotated[Path | None, typer.Option("--output", "-o", help="Write to this file.")]


class CoverFormat(StrEnum):
    """How coverage is written."""

    text = "text"
    json = "json"
    html = "html"


class DiffFormat(StrEnum):
    """How a difference is written."""

    text = "text"
    markdown = "markdown"
    json = "json"


class FailOn(StrEnum):
    """Which changes are too many for CI."""

    verdict = "verdict"
    first = "first"
    any = "any"


def cover(
    sample: SampleSize = _SAMPLE,
    format_: Annotated[CoverFormat, typer.Option("--format", help="How it is written.")] = (
        CoverFormat.text
    ),
    thresholds: Annotated[
        bool, typer.Option("--thresholds", help="Add a line for every numeric condition.")
    ] = False,
    output: Output = None,
    workers: Workers = None,
    rules: RulesFolder = None,
    templates: TemplatesFolder = None,
    knowledge: KnowledgeFolder = None,
) -> None:
    """Measure over the catalogue how often each rule fires, and which thresholds ever decide.

    The facts of the sample are worked out once, kept, and used again until knowledge changes.
    """
    from advisor.cli.report_output import write  # noqa: PLC0415
    from advisor.workbench.bulk import evaluate_all  # noqa: PLC0415
    from advisor.workbench.cover import cover as measure  # noqa: PLC0415
    from advisor.workbench.cover_views import cover_html, cover_json, cover_text  # noqa: PLC0415
    from advisor.workbench.fact_store_files import Origin, sampled_facts  # noqa: PLC0415
    from advisor.workbench.sides import Folders, load_side  # noqa: PLC0415

    side = load_side(Folders(rules, templates, knowledge))
    store = sampled_facts(sample, Origin(knowledge, workers=workers), progress=progress_line())
    coverage = measure(evaluate_all(store, side.advisor.ruleset))
    if format_ is CoverFormat.json:
        text = cover_json(coverage)
    elif format_ is CoverFormat.html:
        text = cover_html(coverage)
    else:
        text = cover_text(coverage, thresholds=thresholds)
    write(text, output)


def diff(
    base: Annotated[
        str,
        typer.Argument(
            help="A folder of rules, a folder that holds rules/, templates/ or knowledge/, or a "
            "git revision, or 'built-in' to see what your own files change."
        ),
    ],
    sample: SampleSize = _SAMPLE,
    format_: Annotated[DiffFormat, typer.Option("--format", help="How it is written.")] = (
        DiffFormat.text
    ),
    examples: Annotated[int, typer.Option(help="Examples of each rule.", min=0)] = 2,
    fail_on: Annotated[
        FailOn | None,
        typer.Option(
            help="Exit 3 when a verdict changes, when a first recommendation changes as well, or "
            "when anything does."
        ),
    ] = None,
    output: Output = None,
    workers: Workers = None,
    rules: RulesFolder = None,
    templates: TemplatesFolder = None,
    knowledge: KnowledgeFolder = None,
) -> None:
    """Show which reports an edit of rules, templates or knowledge changes.

    Every scenario of the sample is decided on both sides. Compared are the verdict, the
    recommendations and their order, the notes, what is barred and, where templates differ, the
    words.
    """
    from advisor.cli.report_output import write  # noqa: PLC0415
    from advisor.workbench.comparison import compare_sides  # noqa: PLC0415
    from advisor.workbench.diff_views import diff_json, diff_markdown, diff_text  # noqa: PLC0415
    from advisor.workbench.sides import Folders, base_side, load_side  # noqa: PLC0415

    folders = Folders(rules, templates, knowledge)
    new = load_side(folders)
    with base_side(base, folders) as old:
        difference, prose, beside = compare_sides(
            old, new, sample, workers=workers, progress=progress_line()
        )
    views = {"text": diff_text, "markdown": diff_markdown, "json": diff_json}
    write(views[format_.value](difference, prose, beside, base=base, examples=examples), output)
    if fail_on and (
        difference.fails(fail_on.value) or (prose and prose.reworded and fail_on == "any")
    ):
        raise typer.Exit(DIFFERS)


def progress_line() -> Callable[[int, int], None]:
    """Say on standard error how far the facts are: on a terminal all the time, else once."""
    live = sys.stderr.isatty()
    told = False

    def tell(done: int, total: int) -> None:
        nonlocal told
        if live:
            end = "\n" if done >= total else ""
            typer.echo(f"\rworking out facts: {done:,} of {total:,}{end}", err=True, nl=False)
        elif not told:
            typer.echo(f"working out the facts of {total:,} scenarios; kept", err=True)
        told = True

    return tell
