"""``advisor rules mutate``: would a mistake in the rules be noticed?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from advisor.cli.folders import KnowledgeFolder, RulesFolder, TemplatesFolder
from advisor.cli.rules_sample import Output, SampleSize, Workers, progress_line
from advisor.cli.rules_test import Format, OnlyRules, Scenarios

_SAMPLE = 20_000
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


def mutate(
    rule: OnlyRules = None,
    limit: Limit = None,
    known: Known = None,
    accept: Accept = False,
    sample: SampleSize = _SAMPLE,
    format_: Annotated[Format, typer.Option("--format", help="How it is written.")] = Format.text,
    fail_under: FailUnder = None,
    output: Output = None,
    scenarios: Scenarios = None,
    workers: Workers = None,
    rules: RulesFolder = None,
    templates: TemplatesFolder = None,
    knowledge: KnowledgeFolder = None,
) -> None:
    """Put one mistake at a time into the rules, and see whether a test notices.

    Survivors are printed with a case to paste that kills them, found among the scenarios of the
    sample; what no scenario tells from the original is listed apart and counts for nothing.
    With --limit 0 and --known nothing is searched: seconds instead of minutes, for CI.
    """
    from advisor.cli.report_output import write  # noqa: PLC0415
    from advisor.workbench.mutation_run import Search, mutated_rules, mutation_json, mutation_text  # noqa: PLC0415
    from advisor.workbench.sides import Folders  # noqa: PLC0415

    if accept and (known is None or limit is not None):
        raise typer.BadParameter("needs --known, and no --limit.", param_hint="'--accept'")
    folders = Folders(rules, templates, knowledge)
    search = Search(sample, limit, known, accept=accept, workers=workers)
    result = mutated_rules(folders, scenarios, list(rule or ()), search, progress_line())
    write(mutation_json(result) if format_ is Format.json else mutation_text(result), output)
    if fail_under is not None and 100 * result.share < fail_under:
        raise typer.Exit(1)
