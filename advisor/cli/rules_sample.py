"""``advisor rules cover``, ``diff`` and ``mutate``: what rules do over the catalogue."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from advisor.cli.options import Format, OnlyRules, Output, Scenarios, Workers
from advisor.cli.report_output import progress_line, takes_folders, write
from advisor.knowledge.layers import OwnFiles
from advisor.workbench.bulk import evaluate_all
from advisor.workbench.comparison import compare_sides
from advisor.workbench.cover import cover as measure
from advisor.workbench.cover_views import cover_html, cover_json, cover_text
from advisor.workbench.diff_views import View
from advisor.workbench.fact_store_files import Origin, sampled_facts
from advisor.workbench.mutation_run import Search, mutated_rules, mutation_json, mutation_text
from advisor.workbench.sides import Folders, base_side, load_side

DIFFERS = 3
_SAMPLE = 20_000

SampleSize = Annotated[int, typer.Option(help="Scenarios of the catalogue.", min=1, max=1_000_000)]


CoverFormat = Literal["text", "json", "html"]
DiffFormat = Literal["text", "markdown", "json"]
FailOn = Literal["verdict", "first", "any"]


@takes_folders
def cover(
    sample: SampleSize = _SAMPLE,
    format_: Annotated[CoverFormat, typer.Option("--format", help="How it is written.")] = ("text"),
    thresholds: Annotated[
        bool, typer.Option("--thresholds", help="Add a line for every numeric condition.")
    ] = False,
    output: Output = None,
    workers: Workers = None,
    *,
    own: OwnFiles,
) -> None:
    """Measure over the catalogue how often each rule fires, and which thresholds ever decide.

    The facts of the sample are worked out once, kept, and used again until knowledge changes.

    Example: advisor rules cover --thresholds
    """
    side = load_side(Folders(*own.folders))
    store = sampled_facts(sample, Origin(own.knowledge, workers=workers), progress=progress_line())
    coverage = measure(evaluate_all(store, side.advisor.ruleset))
    if format_ == "json":
        text = cover_json(coverage)
    elif format_ == "html":
        text = cover_html(coverage)
    else:
        text = cover_text(coverage, thresholds=thresholds)
    write(text, output)


@takes_folders
def diff(
    base: Annotated[
        str,
        typer.Argument(
            help="A folder of rules, a folder that holds rules/, templates/ or knowledge/, or a "
            "git revision, or 'built-in' to see what your own files change."
        ),
    ],
    sample: SampleSize = _SAMPLE,
    format_: Annotated[DiffFormat, typer.Option("--format", help="How it is written.")] = ("text"),
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
    *,
    own: OwnFiles,
) -> None:
    """Show which reports an edit of rules, templates or knowledge changes.

    Every scenario of the sample is decided on both sides. Compared are the verdict, the
    recommendations and their order, the notes, what is barred and the words. Each change is told
    under its cause, found by running again with one edit left out or alone.

    Example: advisor rules diff built-in
    """
    folders = Folders(*own.folders)
    new = load_side(folders)
    with base_side(base, folders) as old:
        difference, prose, beside = compare_sides(
            old, new, sample, workers=workers, progress=progress_line()
        )
    view = View(difference, prose, beside, base, examples)
    write({"text": view.text, "markdown": view.markdown, "json": view.json}[format_](), output)
    if fail_on and (difference.fails(fail_on) or (prose and prose.reworded and fail_on == "any")):
        raise typer.Exit(DIFFERS)


Limit = Annotated[
    int | None,
    typer.Option(
        help="Look for a killing case for so many survivors; 0 needs no sample. [default: all]",
        min=0,
    ),
]
Known = Annotated[
    Path | None,
    typer.Option(help="File of mutants that an earlier run found to be the same as the rule."),
]
Accept = Annotated[
    bool, typer.Option("--accept", help="Look for all of them again, and write that file.")
]
FailUnder = Annotated[
    float | None, typer.Option(help="Exit 1 when fewer are killed, in %.", min=0, max=100)
]


@takes_folders
def mutate(
    rule: OnlyRules = None,
    limit: Limit = None,
    known: Known = None,
    accept: Accept = False,
    sample: SampleSize = _SAMPLE,
    format_: Annotated[Format, typer.Option("--format", help="How it is written.")] = "text",
    fail_under: FailUnder = None,
    output: Output = None,
    scenarios: Scenarios = None,
    workers: Workers = None,
    *,
    own: OwnFiles,
) -> None:
    """Put one mistake at a time into the rules, and see whether a test notices.

    Survivors are printed with a case to paste that kills them, found among the scenarios of the
    sample; what no scenario tells from the original is listed apart and counts for nothing.
    With --limit 0 and --known nothing is searched: seconds instead of minutes, for CI.

    Example: advisor rules mutate --rule quantize-to-fit --limit 5
    """
    if accept and (known is None or limit is not None):
        raise typer.BadParameter("needs --known, and no --limit.", param_hint="'--accept'")
    folders = Folders(*own.folders)
    search = Search(sample, limit, known, accept=accept, workers=workers)
    result = mutated_rules(folders, scenarios, list(rule or ()), search, progress_line())
    write(mutation_json(result) if format_ == "json" else mutation_text(result), output)
    if fail_under is not None and 100 * result.share < fail_under:
        raise typer.Exit(1)
