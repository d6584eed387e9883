"""The commands, put together."""

from __future__ import annotations

from typing import Annotated

import typer

from advisor import __version__
from advisor.cli.advise import advise
from advisor.cli.batch import batch
from advisor.cli.estimate import estimate
from advisor.cli.knowledge import knowledge_app
from advisor.cli.measure import measure_app
from advisor.cli.reverse import gpus_for, models_for
from advisor.cli.rules import rules_app

app = typer.Typer(
    name="advisor",
    help="Will this language model run on this GPU, how well, and what should you change?",
    pretty_exceptions_enable=False,
    add_completion=False,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> None:  # noqa: FBT001  a Typer callback
    if asked:
        typer.echo(f"advisor {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show a traceback when something fails.")
    ] = False,
) -> None:
    """Will this language model run on this GPU, how well, and what should you change?"""


app.command()(advise)
app.command()(estimate)
app.command()(batch)
app.command()(models_for)
app.command()(gpus_for)
app.add_typer(knowledge_app)
app.add_typer(measure_app)
app.add_typer(rules_app)
