"""``advisor ask``: a question in plain words, read, shown as flags, and answered."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer
from msgspec.structs import asdict

from advisor.api import Session
from advisor.cli.advise import NOT_FITTING, Format, advise
from advisor.cli.options import Asked, Length, Output, adds_to_request
from advisor.cli.report_output import takes_folders, takes_user_files, width_of, write
from advisor.cli.reverse import flags_of, gpus_for, models_for
from advisor.cli.user_settings import TAKEN, standing, stated_here, used_settings
from advisor.errors import RequestError, raise_problems
from advisor.knowledge import load_knowledge
from advisor.knowledge.layers import Stack, UserFiles
from advisor.knowledge.merit import use_said
from advisor.reading.log_file import read_log
from advisor.reading.sentence_cards import Read
from advisor.reading.sentences import read_sentence
from advisor.report.diagnosing import NUMBERS, cells, head, remarks, text_head
from advisor.report.diagnosis import Diagnosis
from advisor.report.figures import say
from advisor.scenario.settings import FLAGS, KEYS, SETTINGS, WITH_UNITS, request_from
from advisor.units import shell_word

_TEXT = next(iter(Format))
_WHY = frozenset({"why"})
_ANSWERED = frozenset({"why", "slow"})
"""Words that a report of the standard length answers: it says what happens."""


@takes_folders
def ask(
    sentence: Annotated[
        list[str], typer.Argument(help='What you want to know, for example "llama 3 8b on a 4090".')
    ],
    format_: Annotated[
        Format, typer.Option("--format", metavar="<word>", help="How the report is written.")
    ] = _TEXT,
    length: Annotated[
        Length | None,
        typer.Option(
            metavar="<word>",
            help="How much is said: short, standard or full. (default: short, or standard where "
            "you ask why)",
        ),
    ] = None,
    output: Output = None,
    *,
    user: UserFiles,
    fail_unless_fits: Annotated[
        bool, typer.Option("--fail-unless-fits", help="Exit 3 unless the verdict is 'fits'.")
    ] = False,
) -> None:
    """Answer a question in plain words: how it was read, as flags of advise, then the report.

    The words decide, not a language model: the same sentence is always read in the same way. Where
    it names no card, the one of your settings is meant; where it names several models, or cards to
    choose between, each is answered.

    Example: advisor ask "llama 3 8b with 32k context on a 4090"
    """
    knowledge, card_known = load_knowledge(user.knowledge), "gpu" in stated_here()
    read = read_sentence(" ".join(sentence), knowledge, card_known=card_known)
    _refuse_several(read, format_, output)
    if read.asks != "advise":
        _take_use(read)
        for settings in _each(read):
            _list(read, settings, format_, output, user.knowledge)
        return
    why = bool(_WHY.intersection(map(str.casefold, read.left)))
    read.left = [word for word in read.left if not why or word.casefold() not in _ANSWERED]
    length = length or ("standard" if why else "short")
    _advise_each(read, format_, length, output, user, fail_unless_fits=fail_unless_fits)


def _advise_each(
    read: Read,
    format_: Format,
    length: Length,
    output: Path | None,
    user: UserFiles,
    *,
    fail_unless_fits: bool,
) -> None:
    """Answer for each model, and each card, that is named."""
    failed = False
    for settings in map(partial(_numbered, read, user), _each(read)):
        _show(read, _as_flags(settings), aside=format_ is not _TEXT)
        try:
            advise(
                **_values(settings),
                format_=format_,
                length=length,
                output=output,
                rules=user.rules,
                templates=user.templates,
                knowledge=user.knowledge,
                fail_unless_fits=fail_unless_fits,
            )
        except typer.Exit:
            failed = True
    if failed:
        raise typer.Exit(NOT_FITTING)


def _numbered(read: Read, user: UserFiles, settings: Mapping[str, object]) -> Mapping[str, object]:
    """Take the fewest cards that hold it, where it is asked how many it takes; say so."""
    if not read.how_many or "gpus" in settings:
        return settings
    found = Session(**asdict(user)).fewest_cards(request_from(settings))
    count, whole = found or (None, False)
    if count is None:
        told = "No number of these cards up to 32 holds it; one is sized."
    elif whole:
        told = f"It takes {count}, the fewest that hold it."
    else:
        told = f"It takes {count} to start; no number up to 32 holds all requests at once."
    read.assumed = " ".join(filter(None, (read.assumed, told)))
    return {**settings, "gpus": count} if count else settings


_SEVERAL = {"model": "models", "gpu": "cards"}


def _refuse_several(read: Read, form: str, output: Path | None) -> None:
    """Refuse several answers in one document.

    Raises:
        RequestError: Several models or cards are named, and it is not printed as text.
    """
    if read.more and (form is not _TEXT or output):
        kind = next(iter(read.more[0]))
        raise RequestError(
            f"'{read.settings[kind]}' and '{read.more[0][kind]}' are two {_SEVERAL[kind]}",
            hint="Ask for one of them, or as text.",
        )


def _each(read: Read) -> Iterator[Mapping[str, object]]:
    """Give the settings for each model and card that is named; what is said of all is said once."""
    yield read.settings
    read.assumed, read.left = "", []
    for other in read.more:
        typer.echo("")
        yield {k: v for k, v in {**read.settings, **other}.items() if v is not None}


def _show(read: Read, flags: str, *, aside: bool) -> None:
    """Say how it was read; beside the answer where that is for machines."""
    typer.echo(f"read as: {flags}", err=aside)
    if read.assumed:
        typer.echo(read.assumed, err=aside)
    if read.left:
        typer.echo(f"left out: {', '.join(read.left)}", err=aside)
    typer.echo("", err=aside)


def _list(
    read: Read,
    settings: Mapping[str, object],
    form: str,
    output: Path | None,
    knowledge: Stack,
) -> None:
    """Answer a question without a card or without a model by the reverse command.

    Raises:
        RequestError: It is to be written in a form that a list does not have.
    """
    if form not in {"text", "json"}:
        raise RequestError(f"a list is not written as {form}", hint="Write --format json.")
    names = {one.name for one in flags_of(read.asks)}
    said = {(WITH_UNITS.get(k) or SETTINGS[k]).typed_name: v for k, v in settings.items()}
    taken: dict[str, object] = {}
    for key, value in {**said, **read.wanted}.items():
        if key in names:
            taken[key] = value if isinstance(value, int) else str(value)
        else:
            read.left.append(f"{key.replace('_', '-')} {value}")
    _show(read, f"{read.asks} {_as_flags(taken)}".rstrip(), aside=form != "text")
    if "precision" in taken:
        taken["precision"] = [taken["precision"]]
    own = ("for_" if key == "for" else key for key in TAKEN[read.asks])
    taken |= standing(name for name in own if name in names and name not in taken)
    written = "table" if form == "text" else "json"
    answer = models_for if read.asks == "models-for" else gpus_for
    answer(**{**taken, "format_": written, "output": output, "knowledge": knowledge})


def _take_use(read: Read) -> None:
    """Take what the model is for from the words that say nothing else."""
    said = {phrase: use for phrase in read.left if (use := use_said(phrase))}
    if said and "modality" not in read.wanted:
        phrase, read.wanted["for_"] = next(iter(said.items()))
        read.left.remove(phrase)


def _as_flags(said: Mapping[str, object]) -> str:
    order = dict.fromkeys(("gpu", "model", *KEYS, *said))
    flags = ((key.strip("_"), shell_word(str(said[key]))) for key in order if key in said)
    return " ".join(dict.fromkeys(f"--{key.replace('_', '-')} {value}" for key, value in flags))


def _values(settings: Mapping[str, object]) -> dict[str, object]:
    """Give every flag of a request as if it had been typed."""
    values: dict[str, object] = {setting.typed_name: None for setting in FLAGS}
    for key, value in settings.items():
        setting = WITH_UNITS.get(key) or SETTINGS[key]
        values[setting.typed_name] = value if setting.kind == "whole" else str(value)
    return values | standing(name for name, value in values.items() if value is None)


LogFormat = Literal["text", "markdown", "json"]


@adds_to_request
@takes_user_files()
def diagnose(
    asked: Asked,
    log: Annotated[
        Path | None,
        typer.Argument(
            metavar="LOG", help="A file; '-' or nothing: standard input.", show_default=False
        ),
    ] = None,
    format_: Annotated[
        LogFormat, typer.Option("--format", metavar="<word>", help="text, markdown or json.")
    ] = "text",
    length: Annotated[
        Length,
        typer.Option(
            metavar="<word>", help="How much of the report follows: short, standard, full."
        ),
    ] = "short",
    output: Output = None,
    fail_unless_fits: Annotated[
        bool, typer.Option("--fail-unless-fits", help="Exit 3 unless the verdict is 'fits'.")
    ] = False,
    *,
    user: UserFiles,
) -> None:
    """Read a log or an error text, set its figures beside ours, and say what helps.

    It knows lines of llama.cpp, Ollama, vLLM, SGLang, TGI and PyTorch, and the tables of
    nvidia-smi and rocm-smi. What the log does not tell is given as for advise, and counts first.
    Where neither names a card, the one of your settings is taken.

    Example: advisor diagnose server.log --gpu "RTX 3090"
    """
    raise_problems(asked.wrong)
    if log is None and (sys.stdin is None or sys.stdin.isatty()):
        raise RequestError("no log is named", hint="Name a file, or send one to standard input.")
    user_card = str(one.value) if (one := stated_here().get("gpu")) else ""
    lines = read_log(log, sys.stdin.buffer)
    answer = Session(**asdict(user)).diagnose(lines, asked.request, _named(log), user_card)
    report = answer.report
    if report and not asked.request.gpu and answer.document.settings.get("gpu") == user_card:
        standing(["gpu"])
        report.noted(used_settings())
    terminal = format_ == "text" and output is None and sys.stdout.isatty()
    color, width = terminal and not os.environ.get("NO_COLOR"), width_of(terminal=terminal)
    above = _drawn_above if terminal else None
    write(answer.page(format_, length, above=above, width=width, color=color), output)
    raise_problems(answer.errors)
    if fail_unless_fits and report and report.document.verdict.state != "fits":
        raise typer.Exit(NOT_FITTING)


def _named(log: Path | None) -> str:
    return f"'{log}'" if log and str(log) != "-" else "standard input"


def _drawn_above(made: Diagnosis, _form: str, width: int) -> str:
    """What a log says, with its table as rich draws it."""
    lines = [*text_head(made, width), *_drawn(made, width), *remarks(made, width)]
    return "\n".join(lines).rstrip("\n") + "\n"


def _drawn(made: Diagnosis, width: int) -> Iterator[str]:
    if not made.comparison:
        return
    yield ""
    from rich.console import Console  # noqa: PLC0415  start-up
    from rich.table import Table  # noqa: PLC0415

    drawn = Table(title=say("log.head.compared"), title_justify="left")
    for number, name in enumerate(head()):
        drawn.add_column(name, justify="right" if number in NUMBERS else "left")
    for row in made.comparison:
        drawn.add_row(*cells(row), style="yellow" if row.far else None)
    console = Console(width=width, no_color=bool(os.environ.get("NO_COLOR")))
    with console.capture() as held:
        console.print(drawn)
    yield held.get().rstrip("\n")
