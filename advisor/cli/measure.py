"""``advisor measure``: take in, time, list and remove the user's own measurements."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from advisor.cli.measure_text import added, listed, removed
from advisor.cli.options import Format, KnowledgeFolder
from advisor.errors import RequestError, UserError, raise_problems
from advisor.estimator.calibration.outputs import (
    accuracy_files,
    knowledge_files,
    stale_files,
    write_files,
)
from advisor.estimator.calibration.user.benchmark import iso_date
from advisor.estimator.calibration.user.benchmark_file import File, read_bytes
from advisor.estimator.calibration.user.plausibility import Given, stored_gpu
from advisor.estimator.calibration.user.server_http import Address, address_of
from advisor.estimator.calibration.user.servers import OLLAMA_HERE, rows_of, served_at
from advisor.files import data_dir
from advisor.knowledge import load_knowledge
from advisor.knowledge.types import Knowledge
from advisor.reading.machine.probe import ask_tool
from advisor.scenario.host import cards_here

_SETUP = "What files and servers do not say"
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
    form: _Format = "text",
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
        as_json=form == "json",
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


def list_(knowledge: _Knowledge = None, form: _Format = "text") -> None:
    """List your measurements.

    Example: advisor measure list --format json
    """
    typer.echo(listed(knowledge, as_json=form == "json"), nl=False)


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


_BENCH_SECONDS = 3600.0
_Address = Annotated[
    str | None,
    typer.Argument(
        metavar="[ADDRESS]", help=f"Where the server answers. [default: Ollama, {OLLAMA_HERE}]"
    ),
]
_Bench = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Run llama-bench on this GGUF file instead."),
]
_Serves = Annotated[str, typer.Option(metavar="NAME", help="The model, as the server names it.")]
_Runs = Annotated[int, typer.Option(min=1, max=100, help="Answers that are timed.")]
_Card = Annotated[
    str, typer.Option(help="The card. [default: that of this machine]", rich_help_panel=_SETUP)
]


def run(
    address: _Address = None,
    bench: _Bench = None,
    serves: _Serves = "",
    runs: _Runs = 3,
    gpu: _Card = "",
    gpus: _Gpus = None,
    model: _Model = "",
    precision: _Precision = "",
    framework: _Framework = "",
    dry_run: _DryRun = False,
    knowledge: _Knowledge = None,
    form: _Format = "text",
) -> None:
    """Time a model server that runs here, and add its speed to your measurements.

    Ollama on this machine is asked unless an address is stated: of llama-server, vLLM, SGLang or
    another with /v1/completions. It generates a few hundred tokens. Only that address is asked.

    Example: advisor measure run http://127.0.0.1:8080
    """
    if bench and address:
        raise RequestError("--bench and an address are both stated", hint="Leave one out.")
    given = Given(gpu, gpus, model, precision, framework)
    if bench:
        file = _benched(bench)
    else:
        known = load_knowledge(knowledge)
        file = _timed(address_of(address or OLLAMA_HERE), serves, runs, given, known)
    text, wrong = added(
        [file], given, knowledge, dry_run=dry_run, keep_good=False, as_json=form == "json"
    )
    raise_problems(wrong)
    typer.echo(text, nl=False)


def _timed(place: Address, serves: str, runs: int, given: Given, known: Knowledge) -> File:
    """Time a server; what the user states of it goes before what it says of itself."""
    if not (given.gpu or place.is_here):
        raise RequestError(
            f"the server at {place} is another machine's, and its card is not known",
            hint="State it: --gpu.",
        )
    served = served_at(place, serves, known)
    card = {} if given.gpu else _card_here(given.gpus, known)
    if not (served.framework or given.framework):
        raise RequestError(
            f"what serves at {place} does not say which engine it is",
            hint="State it: --framework.",
        )
    rows = (
        {key: value for key, value in row.items() if not getattr(given, key, None)}
        for row in rows_of(served, runs, card)
    )
    lines = "\n".join(map(json.dumps, rows))
    return File(f"{served.framework or given.framework} at {place}", lines.encode())


def _card_here(gpus: int | None, known: Knowledge) -> dict[str, object]:
    """Name the card of this machine as it is stored, where it is certain which one it is.

    Raises:
        RequestError: It has none, or which of them the server uses is not known.
    """
    cards = cards_here(known)
    if cards.gpu.name not in known.gpus or cards.each:
        raise RequestError(
            f"this machine has {cards.gpu.name}, which is no card of the catalogue alone",
            hint="State the card: --gpu.",
        )
    if cards.count > 1 and gpus is None:
        raise RequestError(
            f"this machine has {cards.count} cards, and the server does not say how many it uses",
            hint="State it: --gpus.",
        )
    return {"gpu": stored_gpu(cards.gpu, known)}


def _benched(file: Path) -> File:
    if not file.is_file():
        raise RequestError(f"'{file}' is no file", hint="Name a GGUF file.")
    answer = ask_tool(("llama-bench", "-m", str(file), "-o", "json"), seconds=_BENCH_SECONDS)
    if answer.problem:
        raise RequestError(f"llama-bench {answer.problem}", hint="It comes with llama.cpp.")
    return File("llama-bench", answer.text.encode())


def calibrate(
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="DIR", help="Folder to write to. [default: the knowledge]"
        ),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; fail when a file is out of date.")
    ] = False,
    accuracy: Annotated[
        Path | None,
        typer.Option(
            "--accuracy",
            metavar="DIR",
            help="Write or check the accuracy page and its plots there.",
        ),
    ] = None,
    knowledge: KnowledgeFolder = None,
) -> None:
    """Fit the speed model to the measurements that the project carries.

    Writes calibration-fitted.yaml and measured.csv. The same measurements give the same bytes.

    Example: advisor calibrate --check
    """
    known = load_knowledge(knowledge)
    if accuracy is not None:
        folder, texts = accuracy, accuracy_files(known)
    else:
        folder, texts = output or data_dir("knowledge"), knowledge_files(known)
    if not check:
        write_files(folder, texts)
        typer.echo(f"wrote {', '.join(texts)} to {folder}")
        return
    stale = stale_files(folder, texts)
    if stale:
        again = f"advisor calibrate{' --accuracy ' + str(accuracy) if accuracy else ''}"
        raise RequestError(f"out of date: {', '.join(stale)}", hint=f"Run '{again}'.")
    typer.echo(f"{', '.join(texts)}: up to date")
