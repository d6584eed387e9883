"""Bulk estimates: requests in as JSON Lines or CSV, figures out as JSON Lines.

Lines are read, estimated and written one at a time, so memory does not grow with the file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from math import isfinite
from typing import Any, BinaryIO

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from advisor.advice.configuration import MemoryDoc, SpeedDoc
from advisor.advice.projection import memory_doc, speed_doc
from advisor.bulk import Row, read_rows
from advisor.errors import Problems, RequestError, SourceFileError, UserError, as_sentence
from advisor.estimator import estimate_memory
from advisor.estimator.limits import find_limits
from advisor.estimator.placement import host_fits
from advisor.estimator.speed import estimate_speed
from advisor.estimator.speed_rates import speeds_of
from advisor.estimator.weights import weights_of
from advisor.knowledge.names import find_model
from advisor.knowledge.types import Knowledge, ModelRecord
from advisor.models import model_from_record
from advisor.models.stored_tensors import Model
from advisor.scenario import Scenario
from advisor.scenario.figures import Memory
from advisor.scenario.resolve import resolve
from advisor.scenario.settings import Request, request_from
from advisor.units import json_line

_MOST_SHOWN = 1000
_ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False, check_circular=False)


class ParametersDoc(Struct, frozen=True):
    """Parameters, as numbers of weights."""

    total: int
    """All weights. [parameters]"""
    active: int | None
    """Those that one token uses. [parameters]"""
    vision: int | None
    """Image or audio tower and projector. [parameters]"""


class LineDoc(Struct, frozen=True):
    """One line of the output."""

    id: Any
    """The ``id`` of the request, as it stands there; null without one."""
    parameters: ParametersDoc | None = None
    """Weights of the model; null where the line is wrong."""
    memory: MemoryDoc | None = None
    """What it occupies; null where the line is wrong or that is not known."""
    speed: SpeedDoc | None = None
    """How fast it runs; null without a card, where it does not run, or where that is not known."""
    error: str | None = None
    """What is wrong with the line, a message; null: nothing."""


class Failure(Struct, frozen=True):
    """Why a line has no figures."""

    message: str
    bug: Exception | None = None
    """Set when the fault is ours."""


class Line(Struct, frozen=True):
    """What comes of one line of a file."""

    number: int
    """Line of the file, from 1."""
    document: LineDoc
    failure: Failure | None

    def written(self) -> str:
        """Write it as ASCII JSON, without its end."""
        line = json_line(self.document)
        if line.isascii():
            return line[:-1].decode()
        return _ENCODER.encode(to_builtins(self.document))


def estimates(stream: BinaryIO, name: str, knowledge: Knowledge) -> Iterator[Line]:
    """Estimate the requests of a file one by one.

    Raises:
        UserError: Nothing in the file can be read, or the knowledge is wrong for every line.
    """
    speeds_of(knowledge)
    rows = read_rows(stream, name)
    return (Line(row.number, *estimate_row(row, knowledge)) for row in rows)


def estimate_row(row: Row, knowledge: Knowledge) -> tuple[LineDoc, Failure | None]:
    """Estimate one request; whatever is wrong with it stays on its line."""
    given = dict(row.given)
    name = given.pop("id", None)
    if row.problem:
        return _refused(name, Failure(row.problem))
    if not _is_name(name):
        return _refused(None, Failure("id must be a text or a number."))
    try:
        return _answered(name, request_from(given), knowledge), None
    except UserError as error:
        return _refused(name, Failure(_message(error)))
    except OSError as bad:
        return _refused(name, Failure(_shortened(f"{bad.strerror}: '{bad.filename}'.")))
    except Exception as bug:  # noqa: BLE001  one line must not cost the others; told at the end
        message = f"advisor failed here, and that is a bug in advisor: {type(bug).__name__}: {bug}"
        return _refused(name, Failure(message, bug))


def estimate_request(request: Request, knowledge: Knowledge) -> LineDoc:
    """Estimate one request.

    Raises:
        UserError: Something of it is wrong.
    """
    return _answered(None, request, knowledge)


def _is_name(value: object) -> bool:
    if isinstance(value, float):
        return isfinite(value)
    return value is None or isinstance(value, str | int)


def _message(error: UserError) -> str:
    several = error.errors if isinstance(error, Problems) else [error]
    return _shortened(" ".join(as_sentence(part) for part in several))


def _shortened(text: str) -> str:
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]} ..."


def _refused(name: object, failure: Failure) -> tuple[LineDoc, Failure]:
    return LineDoc(name, error=failure.message), failure


def _answered(name: object, request: Request, knowledge: Knowledge) -> LineDoc:
    try:
        return _estimated(name, request, knowledge)
    except SourceFileError:
        stated = None if request.framework else _stated_parameters(request, knowledge)
        if stated is None:
            raise
        return LineDoc(name, stated)


def _stated_parameters(request: Request, knowledge: Knowledge) -> ParametersDoc | None:
    """Give the published counts of a known model that no formula covers."""
    if request.config or not request.model:
        return None
    try:
        record = find_model(knowledge, request.model)
    except RequestError:
        return None
    if record.parameters is None or _can_be_sized(record, knowledge):
        return None
    return ParametersDoc(record.parameters, record.active_parameters, record.vision_parameters)


def _can_be_sized(record: ModelRecord, knowledge: Knowledge) -> bool:
    try:
        model_from_record(record, knowledge)
    except UserError:
        return False
    return True


def _estimated(name: object, request: Request, knowledge: Knowledge) -> LineDoc:
    scenario = resolve(request, knowledge)
    memory = _memory(request, _as_stored(scenario), knowledge)
    if memory is None:
        return LineDoc(name, _parameters(scenario.model))
    runs = host_fits(scenario, memory)
    return LineDoc(
        name,
        _parameters(scenario.model),
        memory_doc(memory, find_limits(scenario, knowledge, memory)),
        speed_doc(estimate_speed(scenario, memory, knowledge)) if runs else None,
    )


def _parameters(model: Model) -> ParametersDoc:
    active = None if model.shape.reads_unknown else model.read_parameters
    return ParametersDoc(model.parameters, active, model.vision_parameters)


def _as_stored(scenario: Scenario) -> Scenario:
    """Take the text model alone where nothing but llama.cpp's own buffers is asked for.

    Its files hold no image tower; that is a file of its own, which some back end must load.
    """
    neutral = scenario.gpu is None and scenario.backend is None
    if neutral and scenario.model.vision_parameters and scenario.framework.card_free:
        return replace(scenario, model=_text_part(scenario.model))
    return scenario


def _text_part(model: Model) -> Model:
    text = model.parameters - model.vision_parameters
    return replace(model, parameters=text, vision_parameters=0)


def _memory(request: Request, scenario: Scenario, knowledge: Knowledge) -> Memory | None:
    """Size the scenario; None for an architecture whose parameters alone are known.

    Whoever states a framework asks for its memory, so there it is an error.
    """
    weights_of(scenario.model, scenario.precision, scenario.framework, knowledge.ggml_types)
    try:
        return estimate_memory(scenario, knowledge)
    except RequestError:
        if request.framework:
            raise
        return None
