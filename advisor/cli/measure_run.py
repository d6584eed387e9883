"""``advisor measure run``: time a server that runs, or run llama-bench, and add the figures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from advisor.calibration.user.benchmark_file import File
from advisor.calibration.user.plausibility import Given, stored_gpu
from advisor.calibration.user.server_http import Address, address_of
from advisor.calibration.user.servers import OLLAMA_HERE, rows_of, served_at
from advisor.cli.measure_text import added
from advisor.cli.options import Format
from advisor.errors import RequestError, raise_problems
from advisor.knowledge import load_knowledge
from advisor.knowledge.types import Knowledge
from advisor.reading.machine.probe import ask_tool
from advisor.scenario.here import cards_here

_BENCH_SECONDS = 3600.0
_STATED = "What the server does not say"
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
_Gpu = Annotated[
    str, typer.Option(help="The card. [default: that of this machine]", rich_help_panel=_STATED)
]
_Gpus = Annotated[int | None, typer.Option(min=1, help="Number of cards.", rich_help_panel=_STATED)]
_Model = Annotated[str, typer.Option(help="The model.", rich_help_panel=_STATED)]
_Precision = Annotated[str, typer.Option(help="Weight format.", rich_help_panel=_STATED)]
_Framework = Annotated[str, typer.Option(help="The engine.", rich_help_panel=_STATED)]
_DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would change; store nothing.")]
_Knowledge = Annotated[
    list[Path] | None, typer.Option(help="Your folder of knowledge: they are kept there.")
]
_Form = Annotated[Format, typer.Option("--format", help="How the answer is written.")]


def run(
    address: _Address = None,
    bench: _Bench = None,
    serves: _Serves = "",
    runs: _Runs = 3,
    gpu: _Gpu = "",
    gpus: _Gpus = None,
    model: _Model = "",
    precision: _Precision = "",
    framework: _Framework = "",
    dry_run: _DryRun = False,
    knowledge: _Knowledge = None,
    form: _Form = Format.text,
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
        [file], given, knowledge, dry_run=dry_run, keep_good=False, as_json=form is Format.json
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
