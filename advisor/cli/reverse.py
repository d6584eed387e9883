"""``advisor models-for`` and ``advisor gpus-for``: the reverse questions, asked and shown."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from advisor.api import Session
from advisor.bulk.reverse.asked import WANTED, Wanted, read_wanted
from advisor.bulk.reverse.table import Table, dropped_words
from advisor.bulk.reverse.view import USED, narrowed, tight_rows, with_bars
from advisor.cli.options import (
    KNOWLEDGE,
    Hub,
    Offline,
    keyword,
    layers_option,
    names_of,
    read_flags,
    setting_flag,
    spread,
)
from advisor.cli.report_output import write
from advisor.cli.user_settings import used_settings
from advisor.errors import UserError, raise_problems
from advisor.knowledge.merit import USES
from advisor.scenario.settings import SETTINGS

if TYPE_CHECKING:
    from rich.table import Table as Drawn

    from advisor.bulk.reverse.view import Column

_RUN = "How it is to run"
_HOST = "The computer around the card"
_OUTPUT = "The answer"
_PANELS = (
    None, _RUN, "What is good enough", _HOST, "Which ones",
    "Models that are not in the knowledge base", _OUTPUT,
)  # fmt: skip
_FLAGS: Mapping[str, Mapping[str, str]] = {
    _RUN: {
        "gpus": "",
        "framework": "for each format the first that runs it",
        "context": "what the use takes, else 4096",
        **dict.fromkeys((
            "batch", "kv_cache", "gpu_memory_utilization", "max_num_batched_tokens", "eager",
            "text_only", "images", "image_size", "reserve_gib",
        ), ""),
    },
    _HOST: dict.fromkeys(("ram_gib", "ram_type", "ram_bandwidth_gb_s", "cpu"), ""),
}  # fmt: skip
"""Panel -> the settings of a request that both take, and what holds where one is not stated."""
_CARDS = 4
"""Equal cards of each kind that are tried where no number was stated: what one board takes."""
_UP_TO = f"Up to this many equal cards; the fewest that run it are listed. (default: {_CARDS})"
Form = Literal["table", "json", "csv"]


def flags_of(question: str) -> Sequence[Parameter]:
    """Give the flags of a reverse question, in the order of panels."""
    cards = question == "gpus-for"
    subject = "model" if cards else "gpu"
    flags = [
        setting_flag(SETTINGS[subject], panel=None),
        *(
            setting_flag(SETTINGS[name], panel=panel, default=default)
            for panel, names in _FLAGS.items()
            for name, default in names.items()
        ),
        *map(_wanted_flag, WANTED[question].values()),
        _flag("format_", Form, "How the answer is written.", _OUTPUT, "--format", "table"),
        _flag("output", Path | None, "Write to this file.", _OUTPUT, "--output", None, "-o"),
        keyword("knowledge", Annotated[list[Path] | None, layers_option(KNOWLEDGE, _OUTPUT)]),
    ]
    if cards:
        flags += [keyword("hub", Hub, False), keyword("offline", Offline, False)]
        flags[1] = _flag("gpus", str | None, _UP_TO, _RUN, "--gpus", None, metavar="<int>")
    return sorted(
        flags, key=lambda one: _PANELS.index(one.annotation.__metadata__[0].rich_help_panel)
    )


def _flag(
    name: str,
    kind: object,
    said: str,
    panel: str,
    flag: str,
    default: object,
    *more: str,
    **how: Any,
) -> Parameter:
    option = typer.Option(flag, *more, help=said, rich_help_panel=panel, **how)
    return keyword(name, Annotated[kind, option], default)


def _parameter(one: Wanted) -> str:
    return "for_" if one.typed_name == "for" else one.typed_name


def _wanted_flag(one: Wanted) -> Parameter:
    """Make the flag of a setting that no request has."""
    name, switch = one.typed_name, one.kind == "switch"
    return _flag(
        _parameter(one),
        bool if switch else list[str] | None if one.several else str | None,
        one.help + (f" (default: {one.default})" if one.default else ""),
        one.panel,
        f"--{name.replace('_', '-')}",
        False if switch else None,
        metavar="N|all" if one.kind == "count or all" else None,
        autocompletion=names_of(name, USES if name == "for" else ()),
    )


def _asks(question: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Replace the parameter ``given`` of a command by the flags of a question, as typed."""
    return lambda command: spread(command, "given", flags_of(question), dict)


@_asks("models-for")
def models_for(given: dict[str, Any]) -> None:
    """List the best models and formats that run on a card or cards.

    The best are those that public leaderboards rate highest for the use
    (--for), less what the weight format costs, with room for the context
    and the speed that the use takes.

    Example: advisor models-for --gpu "RTX 4070" --for code
    """
    session = Session(knowledge=given.pop("knowledge"))
    _answer("models-for", given, lambda asked: session.models_for(given["gpu"], **asked))


@_asks("gpus-for")
def gpus_for(given: dict[str, Any]) -> None:
    """List the cards that run a model: the cheapest, smallest, fastest, and at which format.

    Prices are launch prices, and only those that a source states: most
    cards have none and stand behind those that have one.

    Example: advisor gpus-for --model qwen3-32b --vendor AMD
    """
    offline = given["offline"]
    session = Session(
        knowledge=given.pop("knowledge"), hub=given["hub"] or offline, offline=offline
    )
    given["gpus"] = _CARDS if given["gpus"] is None else given["gpus"]
    _answer("gpus-for", given, lambda asked: session.gpus_for(given["model"], **asked))


def _answer(
    question: str, given: Mapping[str, Any], ask: Callable[[Mapping[str, Any]], Table]
) -> None:
    """Read the flags, ask, and write the answer as a table, JSON or CSV.

    Raises:
        UserError: Flags are wrong or the file cannot be written; every problem at once.
    """
    settings = (SETTINGS[name].typed_name for names in _FLAGS.values() for name in names)
    request = read_flags({name: given[name] for name in settings})
    typed = {one.name: given[_parameter(one)] for one in WANTED[question].values()}
    own, wrong = read_wanted(question, typed, flags=True)
    problems = [*request.wrong, *wrong]
    try:
        table = ask({**request.request.stated(), **own})
    except UserError as error:
        raise_problems([*problems, *getattr(error, "errors", [error])])
        raise
    raise_problems(problems)
    table.noted(used_settings())
    if given["format_"] != "table":
        write(table.written(given["format_"]), given["output"])
    elif given["output"] is None and sys.stdout.isatty():
        _print_rich(table)
    else:
        write(table.written(), given["output"])


def _print_rich(table: Table) -> None:
    """Draw the table with a bar of how full the card is; narrow terminals get fewer columns."""
    from rich.console import Console  # noqa: PLC0415  only on a terminal
    from rich.text import Text  # noqa: PLC0415

    page, found = table.page, table.found
    console = Console(no_color=bool(os.environ.get("NO_COLOR")), highlight=False)
    for number, line in enumerate(page.head):
        console.print(Text(line, style="bold" if number == 0 else ""))
    console.print()
    if found.rows:
        kept, dropped = narrowed(with_bars(page.columns, found), console.width)
        console.print(_drawn(kept, table))
        for left in dropped_words(dropped):
            console.print(Text(left, style="dim"))
        console.print()
    for line in page.tail:
        console.print(Text(line, style="dim"))


def _drawn(columns: Sequence[Column], table: Table) -> Drawn:
    from rich.table import Table as Drawn  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    drawn = Drawn(box=None, header_style="bold", pad_edge=False, padding=(0, 1))
    for column in columns:
        drawn.add_column(column.name, justify="right" if column.right else "left")
    tight = tight_rows(table.found, table.knowledge.policy)
    for cells, little in zip(zip(*(c.cells for c in columns), strict=True), tight, strict=True):
        styled = (
            Text(cell, style=("yellow" if little else "green") if column.name == USED else "")
            for cell, column in zip(cells, columns, strict=True)
        )
        drawn.add_row(*styled)
    return drawn
