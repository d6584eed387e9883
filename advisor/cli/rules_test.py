"""``advisor rules test``: are the rules right?"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from advisor.cli.case_results import json_of, placed, text_of
from advisor.cli.folders import KnowledgeFolder, TemplatesFolder
from advisor.errors import RequestError, UserError

if TYPE_CHECKING:
    from advisor.rules.language.file_places import Places
    from advisor.workbench.watch import Session

Folder = Annotated[
    Path | None, typer.Argument(help="Folder of rule files. [default: the built-in rules]")
]
Scenarios = Annotated[
    Path | None, typer.Option(help="Folder of scenario files. [default: scenarios/ of the rules]")
]
OnlyRules = Annotated[
    list[str] | None, typer.Option("--rule", "-r", help="Only this rule; repeatable.")
]


class Format(StrEnum):
    """How it is written."""

    text = "text"
    json = "json"


def test(
    folder: Folder = None,
    rule: OnlyRules = None,
    scenarios: Scenarios = None,
    format_: Annotated[Format, typer.Option("--format", help="How it is written.")] = Format.text,
    junit: Annotated[Path | None, typer.Option(help="Write JUnit XML to this file too.")] = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="Run again what an edit concerns, until Ctrl-C.")
    ] = False,
    accept: Annotated[
        bool,
        typer.Option("--accept", help="Write what is seen now into the scenarios that fail."),
    ] = False,
    templates: TemplatesFolder = None,
    knowledge: KnowledgeFolder = None,
) -> None:
    """Run the cases of every rule and the scenario files; a failure says what was missing.

    With --rule only the cases of that rule run, and no scenarios.
    """
    from advisor.cli.report_output import write  # noqa: PLC0415
    from advisor.workbench.cases import junit_xml  # noqa: PLC0415
    from advisor.workbench.rule_names import find_rules  # noqa: PLC0415
    from advisor.workbench.watch import stamp  # noqa: PLC0415

    places = _places(folder, scenarios)
    session = _session(folder, scenarios, templates, knowledge, places)
    begun = stamp(session.folders)
    only = find_rules(session.runner.advisor.ruleset, rule) if rule else None
    if accept:
        typer.echo(f"{session.accept()} scenarios brought up to date; look at the difference")
        session.reload()
    results = placed(session.run(only, () if only else session.scenarios), places)
    if not results and not watch:
        raise RequestError("no case was run", hint="Add cases to the rules.")
    typer.echo(json_of(results) if format_ is Format.json else text_of(results), nl=False)
    if junit:
        write(junit_xml(results), junit)
    if watch:
        from advisor.cli.rules_watch import watch_files  # noqa: PLC0415

        watch_files(session, only, begun, places)
    if not all(result.ok for result in results):
        raise typer.Exit(1)


def _places(folder: Path | None, scenarios: Path | None) -> Places:
    from advisor.rules.language.file_places import Places  # noqa: PLC0415

    return Places.of([None, folder, *([scenarios.parent, scenarios] if scenarios else [])])


def _session(
    folder: Path | None,
    scenarios: Path | None,
    templates: Path | None,
    knowledge: Path | None,
    places: Places,
) -> Session:
    from advisor.advice.pipeline import Advisor  # noqa: PLC0415
    from advisor.workbench.cases import Runner  # noqa: PLC0415
    from advisor.workbench.scenario_file import load_scenarios, scenario_folder  # noqa: PLC0415
    from advisor.workbench.watch import Session  # noqa: PLC0415

    must_hold_rules(folder)
    if scenarios is not None and not scenarios.is_dir():
        raise RequestError(f"{scenarios} is not a folder", hint="Name a folder of scenario files.")
    advisor = Advisor.load(rules=folder, templates=templates, knowledge=knowledge)
    where = scenarios or scenario_folder(folder)
    try:
        found = load_scenarios(
            where, advisor.vocabulary, advisor.ruleset, advisor.knowledge.names()
        )
    except UserError as error:
        raise places.error(error) from None
    if scenarios is not None and not found:
        raise RequestError(f"{scenarios} holds no scenario", hint="Add a file that ends in .yaml.")
    return Session(Runner(advisor, templates=templates), found, folder, where, knowledge)


def must_hold_rules(folder: Path | None) -> None:
    """Refuse a folder without rule files.

    Raises:
        RequestError: It is none, or holds none.
    """
    if folder is None:
        return
    problem: UserError | None = None
    if not folder.is_dir():
        problem = RequestError(f"{folder} is not a folder")
    elif not any(folder.rglob("*.yaml")):
        problem = RequestError(f"{folder} holds no rule file (*.yaml)")
    if problem:
        raise problem
