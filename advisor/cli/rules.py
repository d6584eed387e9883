"""``advisor rules``: check, test and describe rule files."""

from __future__ import annotations

import json

import typer

from advisor.cli.rules_check import check
from advisor.cli.rules_docs import docs
from advisor.cli.rules_explain import explain, facts
from advisor.cli.rules_format import format_
from advisor.cli.rules_mutate import mutate
from advisor.cli.rules_sample import cover, diff
from advisor.cli.rules_test import test

rules_app = typer.Typer(name="rules", help="Check and test rule files.", no_args_is_help=True)
rules_app.command()(check)
rules_app.command("format")(format_)
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
    from advisor.remedies.registry import rule_vocabulary  # noqa: PLC0415
    from advisor.rules.language.schema import rules_schema  # noqa: PLC0415

    typer.echo(json.dumps(rules_schema(rule_vocabulary()), indent=2))
