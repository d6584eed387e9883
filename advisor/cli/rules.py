"""``advisor rules``: check, test and describe rule files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from advisor.errors import RequestError, UserError

rules_app = typer.Typer(name="rules", help="Check and test rule files.", no_args_is_help=True)
_Folder = Annotated[
    Path | None, typer.Argument(help="Folder of rule files. (default: the built-in rules)")
]


@rules_app.command()
def check(folder: _Folder = None) -> None:
    """Check syntax, names, units and conflicts; every problem of every file at once."""
    from advisor.pipeline import Advisor  # noqa: PLC0415

    _must_hold_rules(folder)
    advisor = Advisor.load(rules=folder)
    files = {rule.source.file for rule in advisor.ruleset.rules if rule.source}
    typer.echo(f"{len(advisor.ruleset.rules)} rules in {len(files)} files: no problem found")


@rules_app.command()
def test(
    folder: _Folder = None,
    rule: Annotated[
        list[str] | None, typer.Option("--rule", "-r", help="Only this rule; repeatable.")
    ] = None,
) -> None:
    """Run every case of every rule; a failure prints what was missing and by how much."""
    from advisor.pipeline import Advisor  # noqa: PLC0415
    from advisor.suggest import did_you_mean  # noqa: PLC0415
    from advisor.workbench.cases import run_cases  # noqa: PLC0415

    _must_hold_rules(folder)
    advisor = Advisor.load(rules=folder)
    known = {r.ladder or r.id for r in advisor.ruleset.rules} | {
        r.id for r in advisor.ruleset.rules
    }
    for name in rule or ():
        if name not in known:
            raise RequestError(f"unknown rule '{name}'", hint=did_you_mean(name, known))
    failed = total = 0
    for result in run_cases(advisor, frozenset(rule) if rule else None):
        total += 1
        if not result.ok:
            failed += 1
            typer.echo(
                f"FAILED {result.case.source}: {result.rule}: {result.case.name}: {result.problem}"
            )
            for line in result.details:
                typer.echo(f"    {line}")
    if not total:
        raise RequestError("no case was run", hint="Add cases to the rules.")
    typer.echo(f"{total - failed} of {total} cases hold")
    if failed:
        raise typer.Exit(1)


@rules_app.command()
def schema() -> None:
    """Print the JSON Schema that editors use for completion."""
    from advisor.rulefile.schema import rules_schema  # noqa: PLC0415
    from advisor.vocabulary import load_vocabulary  # noqa: PLC0415

    typer.echo(json.dumps(rules_schema(load_vocabulary()), indent=2))


def _must_hold_rules(folder: Path | None) -> None:
    if folder is None:
        return
    problem: UserError | None = None
    if not folder.is_dir():
        problem = RequestError(f"{folder} is not a folder")
    elif not any(folder.rglob("*.yaml")):
        problem = RequestError(f"{folder} holds no rule file (*.yaml)")
    if problem:
        raise problem
