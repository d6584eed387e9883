"""``advisor measure``: take in, list and remove the user's own measurements."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from advisor.calibration.user.benchmark import iso_date
from advisor.calibration.user.benchmark_file import File, read_bytes
from advisor.calibration.user.plausibility import Given
from advisor.cli.measure_text import added, listed, removed
from advisor.cli.options import Format
from advisor.errors import RequestError, UserError, raise_problems

_SETUP = "What the files do not say"
_Knowledge = Annotated[
    list[Path] | None,
    typer.Option(
        help="Your folder of knowledge: they are kept there, not in your data folder; of several "
        "in the last that has some."
    ),
]


_Format = Annotated[Format, typer.Option("--format", help="How the answer is written.")]


_Files = Annotated[
    list[Path],
    typer.Argument(
        metavar="FILE...",
        help="What llama-bench, vLLM or SGLang benchmarks wrote, or a CSV with a column tok_s.",
    ),
]
_Gpu = Annotated[str, typer.Option(help="The card.", rich_help_panel=_SETUP)]
_Gpus = Annotated[int | None, typer.Option(min=1, help="Number of cards.", rich_help_panel=_SETUP)]
_Model = Annotated[str, typer.Option(help="The model.", rich_help_panel=_SETUP)]
_Precision = Annotated[str, typer.Option(help="Weight format.", rich_help_panel=_SETUP)]
_Framework = Annotated[str, typer.Option(help="The engine.", rich_help_panel=_SETUP)]
_Backend = Annotated[
    str, typer.Option(help="CUDA, ROCm, Vulkan, Metal, SYCL.", rich_help_panel=_SETUP)
]
_Batch = Annotated[int | None, typer.Option(min=1, help="Streams at once.", rich_help_panel=_SETUP)]
_Prompt = Annotated[
    int | None, typer.Option(min=0, help="Length of the prompts.", rich_help_panel=_SETUP)
]
_Gen = Annotated[
    int | None, typer.Option(min=1, help="Length of the answers.", rich_help_panel=_SETUP)
]
_Date = Annotated[
    str, typer.Option(help="Day of the measurement, 2026-03-31.", rich_help_panel=_SETUP)
]
_DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would change; store nothing.")]
_KeepGood = Annotated[
    bool, typer.Option("--keep-good", help="Store the good rows where others are wrong.")
]


def add(
    files: _Files,
    gpu: _Gpu = "",
    gpus: _Gpus = None,
    model: _Model = "",
    precision: _Precision = "",
    framework: _Framework = "",
    backend: _Backend = "",
    batch: _Batch = None,
    prompt_tokens: _Prompt = None,
    gen_tokens: _Gen = None,
    date: _Date = "",
    dry_run: _DryRun = False,
    keep_good: _KeepGood = False,
    knowledge: _Knowledge = None,
    form: _Format = Format.text,
) -> None:
    """Take in measurements, and show what they change.

    A setup you measured is then reported as measured, and other models on the same card follow
    it. Wrong rows are all named, and nothing is stored unless --keep-good says so.

    Example: advisor measure add bench.json
    """
    given = Given(
        gpu, gpus, model, precision, framework, backend, batch, prompt_tokens, gen_tokens,
        _day(date),
    )  # fmt: skip
    text, wrong = added(
        _read(files),
        given,
        knowledge,
        dry_run=dry_run,
        keep_good=keep_good,
        as_json=form is Format.json,
    )
    typer.echo(text, nl=False)
    if wrong and keep_good:
        typer.echo("".join(f"left out: {error}\n" for error in wrong), err=True, nl=False)
    else:
        raise_problems(wrong)


def _read(paths: Iterable[Path]) -> list[File]:
    """Read all files; what cannot be read is told for all of them."""
    problems: list[UserError] = []
    read: list[File] = []
    for path in dict.fromkeys(paths):
        try:
            read.append(File(str(path), read_bytes(path)))
        except UserError as error:
            problems.append(error)
    raise_problems(problems)
    return read


def _day(text: str) -> str:
    if text and not (re.fullmatch(r"\d{4}-\d\d-\d\d", text) and iso_date(text)):
        raise RequestError(f"--date is '{text}'", hint="Write it as 2026-03-31.")
    return text


def list_(knowledge: _Knowledge = None, form: _Format = Format.text) -> None:
    """List your measurements.

    Example: advisor measure list --format json
    """
    typer.echo(listed(knowledge, as_json=form is Format.json), nl=False)


def remove(
    ids: Annotated[
        list[str], typer.Argument(metavar="ID...", help="As 'advisor measure list' shows them.")
    ],
    knowledge: _Knowledge = None,
) -> None:
    """Remove measurements; all of them or, where an id is wrong, none.

    Example: advisor measure remove 60a66ba4
    """
    typer.echo(removed(ids, knowledge), nl=False)
