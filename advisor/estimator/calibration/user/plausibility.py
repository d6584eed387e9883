"""One row against the knowledge base: names looked up, figures held against physics."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from advisor.errors import Problems, RequestError, Source, UserError, raise_problems
from advisor.estimator.calibration.user.benchmark import (
    Run,
    Skipped,
    card_spellings,
    model_spellings,
)
from advisor.estimator.calibration.user.physics import impossible, unlikely
from advisor.estimator.measured_speed import Measurement, Metric
from advisor.knowledge import names
from advisor.knowledge.index import plain_key
from advisor.knowledge.types import Format, Gpu, Knowledge, ModelRecord
from advisor.models import model_from_record
from advisor.reading import find_gpu
from advisor.scenario import Scenario
from advisor.scenario.asked_format import formats_named
from advisor.scenario.resolve import resolve
from advisor.scenario.settings import Request
from advisor.units import GIB

_T = TypeVar("_T")
_MOST_LISTED = 8
_SAME_SIZE = 0.01


class Given(Struct, frozen=True):
    """What the user states on the command line for every row of the files."""

    gpu: str = ""
    gpus: int | None = None
    model: str = ""
    precision: str = ""
    framework: str = ""
    backend: str = ""
    batch: int | None = None
    prompt_tokens: int | None = None
    gen_tokens: int | None = None
    date: str = ""


class Checked(Struct, frozen=True):
    """A figure that may be stored, with what is odd about it."""

    line: int
    measurement: Measurement
    warnings: tuple[str, ...]


def check(
    run: Run, given: Given, knowledge: Knowledge, *, file: str, name: str
) -> Checked | Skipped:
    """Look everything up and hold the figure against the estimator.

    What is ``given`` fills what the file leaves out, and must not contradict it; ``name`` is stored
    as the source where the row names none.

    Raises:
        UserError: All that is wrong with the row, with file and line.
    """
    try:
        run, request = _settled_run(run, given, knowledge)
        scenario = resolve(request, knowledge)
        if run.gpu_layers is not None and run.gpu_layers <= scenario.model.shape.layers:
            whole = scenario.model.shape.layers + 1
            reason = f"{run.gpu_layers} of {whole} layers were on the card; splits are not stored"
            return Skipped(run.line, reason)
        raise_problems(list(impossible(run, scenario, knowledge)))
    except UserError as error:
        raise_problems(list(_placed(error, Source(file, run.line))))
        raise
    measurement = _measurement(run, scenario, request, name)
    return Checked(run.line, measurement, tuple(unlikely(run, scenario, knowledge)))


def _settled_run(run: Run, given: Given, knowledge: Knowledge) -> tuple[Run, Request]:
    """Fill in lengths and names; what is missing of both at once."""
    problems: list[UserError] = []
    try:
        run = _completed(run, given)
    except UserError as error:
        problems.append(error)
    try:
        request = _request(run, given, knowledge)
    except UserError as error:
        problems += error.errors if isinstance(error, Problems) else [error]
    raise_problems(problems)
    return run, request


def _placed(error: UserError, place: Source) -> Iterator[UserError]:
    parts = error.errors if isinstance(error, Problems) else [error]
    for part in parts:
        yield RequestError(part.message, source=place, hint=part.hint)


def _completed(run: Run, given: Given) -> Run:
    """Fill in lengths and streams, and bring the figure to generated tokens per second."""
    run = replace(
        run,
        gpus=run.gpus or given.gpus or 1,
        prompt_tokens=_either(run.prompt_tokens, given.prompt_tokens),
        gen_tokens=_either(run.gen_tokens, given.gen_tokens),
        batch=_either(run.batch, given.batch),
        date=run.date or given.date,
    )
    if run.metric == "total_throughput_tok_s" and run.batch is None:
        raise RequestError(
            "how many streams ran at once is not in the file", hint="State it: --batch."
        )
    if run.metric == "decode_tok_s" and run.batch is None and run.usual_framework:
        raise RequestError(
            "requests had no fixed number of streams at once", hint="State it: --batch."
        )
    return _per_generated_token(run)


def _per_generated_token(run: Run) -> Run:
    if run.per == "tokens":
        return run
    prompt, gen, batch = run.prompt_tokens, run.gen_tokens, run.batch
    if gen is None or batch is None or (prompt is None and run.per == "prompts too"):
        raise RequestError(
            "the file does not say how long prompts and answers were",
            hint="State --prompt-tokens, --gen-tokens and --batch.",
        )
    share = gen / (gen + (prompt or 0)) if run.per == "prompts too" else gen * batch
    return replace(run, tok_s=run.tok_s * share, per="tokens", depth_tokens=prompt or 0)


def _either(said: int | None, stated: int | None) -> int | None:
    return stated if said is None else said


def _request(run: Run, given: Given, knowledge: Knowledge) -> Request:
    """Settle every name; the errors of all of them at once."""
    problems: list[UserError] = []

    def attempt(action: Callable[[], _T]) -> _T | None:
        try:
            return action()
        except UserError as error:
            problems.append(error)
            return None

    gpu = attempt(lambda: _gpu(run, given, knowledge))
    model = attempt(lambda: _model(run, given, knowledge))
    precision = attempt(lambda: _precision(run, given, knowledge))
    framework = attempt(lambda: _framework(run, given, knowledge))
    backend = attempt(lambda: _backend(run, given))
    raise_problems(problems)
    assert model
    depth = run.depth_tokens or 0
    return Request(
        gpu=gpu,
        gpus=run.gpus,
        model=model.name,
        precision=precision,
        framework=framework,
        backend=backend or None,
        batch=run.batch or 1,
        depth=depth,
        context=_context(run.metric, run.prompt_tokens or 0, run.gen_tokens or 0, depth),
    )


def _context(metric: Metric, prompt: int, gen: int, depth: int) -> int:
    """Count the tokens that one sequence held at the end; a prompt is part of decode's depth."""
    return max(prompt + gen, depth + (prompt if metric == "prefill_tok_s" else gen), depth + 1)


def _gpu(run: Run, given: Given, knowledge: Knowledge) -> str:
    """Name the card as it is stored: with its memory where the knowledge base has another."""
    found = _settled(
        "GPU",
        card_spellings(run.gpu),
        given.gpu,
        lambda text: find_gpu(knowledge, text),
        same=lambda one, other: one.name == other.name,
    )
    return stored_gpu(found, knowledge)


def stored_gpu(gpu: Gpu, knowledge: Knowledge) -> str:
    """Write a card so that it is found again: its name, or NAME:SIZE."""
    usual = knowledge.gpus[gpu.name].vram_bytes
    if gpu.vram_bytes in {None, usual}:
        return gpu.name
    assert gpu.vram_bytes
    return f"{gpu.name}:{gpu.vram_bytes / GIB:g}GB"


def _model(run: Run, given: Given, knowledge: Knowledge) -> ModelRecord:
    try:
        return _settled(
            "model",
            run.models,
            given.model,
            lambda text: _first(model_spellings(text), lambda t: names.find_model(knowledge, t)),
            same=lambda one, other: one.name == other.name,
        )
    except RequestError as error:
        alike = [] if given.model else _of_size(run, knowledge)
        if not alike:
            raise
        size = f"{(run.parameters or 0) / 1e9:.2f} B"
        hint = f"Add --model; models of {size} here: {', '.join(alike[:_MOST_LISTED])}."
        raise RequestError(error.message, hint=hint) from None


def _of_size(run: Run, knowledge: Knowledge) -> list[str]:
    """Name the models with as many parameters as the one that ran, its architecture first."""
    if not run.parameters or not run.parameters > 0:
        return []
    found: list[tuple[bool, int, str]] = []
    for record in knowledge.models.values():
        try:
            model = model_from_record(record, knowledge)
        except UserError:
            continue
        text_only = model.parameters - model.vision_parameters
        if abs(text_only / run.parameters - 1) < _SAME_SIZE:
            other = plain_key(model.shape.model_type) != plain_key(run.architecture)
            found.append((other, len(found), record.name))
    return [name for *_, name in sorted(found)]


def _precision(run: Run, given: Given, knowledge: Knowledge) -> str:
    def find(text: str) -> tuple[str, Sequence[Format]]:
        return text, formats_named(text, knowledge)

    def same(one: tuple[str, Sequence[Format]], other: tuple[str, Sequence[Format]]) -> bool:
        return bool({f.name for f in one[1]} & {f.name for f in other[1]})

    return _settled("weight format", run.precisions, given.precision, find, same=same)[0]


def _framework(run: Run, given: Given, knowledge: Knowledge) -> str | None:
    spoken = [run.framework] if run.framework else []
    if not spoken and not given.framework:
        return run.usual_framework or None
    found = _settled(
        "framework",
        spoken,
        given.framework,
        lambda text: names.find_framework(knowledge, text),
        same=lambda one, other: one.name == other.name,
    )
    return found.name


def _backend(run: Run, given: Given) -> str:
    if run.backend and given.backend and run.backend.casefold() != given.backend.casefold():
        raise _contradicted("backend", run.backend, given.backend)
    return run.backend or given.backend


def _settled(
    what: str,
    spoken: Sequence[str],
    stated: str,
    find: Callable[[str], _T],
    *,
    same: Callable[[_T, _T], bool],
) -> _T:
    """Look up what the file says, else what the user says; both must be the same thing.

    Raises:
        RequestError: Unknown, unsaid or contradicted.
    """
    option = {"GPU": "--gpu", "weight format": "--precision"}.get(what, f"--{what}")
    if stated:
        wanted = find(stated)
        said = _quietly(spoken, find)
        if said is not None and not same(said, wanted):
            raise _contradicted(what, spoken[0], stated)
        return wanted
    if not spoken:
        raise RequestError(f"the file does not say which {what}", hint=f"Add {option}.")
    try:
        return _first(spoken, find)
    except RequestError as error:
        hint = f"{error.hint} Or state it: {option}." if error.hint else f"State it: {option}."
        raise RequestError(error.message, hint=hint) from None


def _contradicted(what: str, said: str, stated: str) -> RequestError:
    return RequestError(
        f"the file says {what} '{said}', you say '{stated}'",
        hint="Leave the option out, or add that file on its own.",
    )


def _quietly(spoken: Sequence[str], find: Callable[[str], _T]) -> _T | None:
    try:
        return _first(spoken, find) if spoken else None
    except UserError:
        return None


def _first(spoken: Sequence[str], find: Callable[[str], _T]) -> _T:
    """Take the first spelling that is known; the error of the first where none is."""
    refused: UserError | None = None
    for text in spoken:
        try:
            return find(text)
        except UserError as error:
            refused = refused or error
    assert refused
    raise refused


def _measurement(run: Run, scenario: Scenario, request: Request, name: str) -> Measurement:
    assert scenario.gpu
    assert scenario.backend
    return Measurement(
        gpu=request.gpu or scenario.gpu.name,
        gpus=scenario.gpus,
        model=scenario.model.name,
        precision=scenario.precision.name,
        framework=scenario.framework.name,
        framework_version=run.framework_version,
        backend=scenario.backend,
        prompt_tokens=run.prompt_tokens or 0,
        gen_tokens=run.gen_tokens or 0,
        depth_tokens=scenario.depth_tokens,
        batch=scenario.batch,
        metric=run.metric,
        tok_s=_short(run.tok_s),
        stdev=None if run.stdev is None else _short(run.stdev),
        date=run.date,
        source=run.source or name,
        note=run.note,
    )


def _short(number: float) -> float:
    """Keep six significant digits: more were never measured."""
    return float(f"{number:.6g}")


def scenario_of(measurement: Measurement, knowledge: Knowledge) -> Scenario:
    """Give the setup of a stored figure to the estimator.

    Raises:
        UserError: The knowledge base no longer has what it names.
    """
    m = measurement
    return resolve(
        Request(
            gpu=m.gpu,
            gpus=m.gpus,
            model=m.model,
            precision=m.precision,
            framework=m.framework,
            backend=m.backend,
            batch=m.batch,
            depth=m.depth_tokens,
            context=_context(
                m.metric, m.prompt_tokens or 0, m.gen_tokens or 0, m.depth_tokens or 0
            ),
        ),
        knowledge,
    )
