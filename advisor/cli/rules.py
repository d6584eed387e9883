"""``advisor rules``: check, test and describe rule files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from advisor.cli.rules_docs import docs
from advisor.cli.rules_explain import explain, facts
from advisor.cli.rules_sample import cover, diff
from advisor.cli.rules_test import must_hold_rules, mutate, test

rules_app = typer.Typer(name="rules", help="Check and test rule files.", no_args_is_help=True)
_Folder = Annotated[
    Path | None, typer.Argument(help="Folder of rule files. (default: the built-in rules)")
]


@rules_app.command()
def check(folder: _Folder = None) -> None:
    """Check syntax, names, units and conflicts; every problem of every file at once."""
    from advisor.pipeline import Advisor  # noqa: PLC0415

    must_hold_rules(folder)
    advisor = Advisor.load(rules=folder)
    files = {rule.source.file for rule in advisor.ruleset.rules if rule.source}
    typer.echo(f"{len(advisor.ruleset.rules)} rules in {len(files)} files: no problem found")


rules_app.command()(test)
rules_app.command()(cover)
rules_app.command()(diff)
rules_app.command()(docs)
rules_app.command()(explain)
rules_app.command()(facts)
rules_app.command()(mutate)


@rules_app.command()
def schema() -> None:
    """Print the JSON Schema that editors use for completion."""
    from advisor.rulefile.schema import rules_schema  # noqa: PLC0415
    from advisor.vocabulary import load_vocabulary  # noqa: PLC0415

    typer.echo(json.dumps(rules_schema(load_vocabulary()), indent=2))
