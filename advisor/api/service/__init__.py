"""The questions of ``advisor`` for other programs: over HTTP, and as tools of a language model.

What can be asked is declared here, once: routes, the OpenAPI document and the tools follow.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, Literal

from msgspec import Struct

from advisor.bulk.reverse.asked import WANTED, Wanted
from advisor.errors import RequestError
from advisor.scenario.setting_kinds import Setting
from advisor.scenario.settings import AROUND, SETTINGS, WITH_UNITS

Log = Callable[[str], None]
"""Takes one line, without its end."""
_ON = {"true": True, "on": True, "yes": True, "1": True}
_OFF = {"false": False, "off": False, "no": False, "0": False}
SWITCH: Mapping[str, bool] = {**_ON, **_OFF}
"""Words of a query for yes and no."""
FORMS = {
    "json": "application/json",
    "html": "text/html",
    "markdown": "text/markdown",
    "text": "text/plain",
    "csv": "text/csv",
}
"""Form -> media type, the one that is given where all are taken first."""
Form = Literal["json", "html", "markdown", "text", "csv"]
_PAGES: Sequence[Form] = ("json", "html", "markdown", "text")


class Question(Struct, frozen=True):
    """One question."""

    name: str
    """Its path, and the command that answers the same."""
    summary: str
    settings: Mapping[str, Setting]
    """What it takes, by name."""
    document: str
    """The schema of its JSON; empty: it has none."""
    needed: Sequence[str] = ()
    """Settings that must be stated."""
    text: str = ""
    """The setting that a body of plain text is."""
    forms: Sequence[Form] = _PAGES
    has_length: bool = False
    """Whether its pages come short, standard or full."""
    slow: bool = False
    """Whether it sizes a whole catalogue."""


_REQUEST = {
    **{name: one for name, one in SETTINGS.items() if name != "config"},
    **WITH_UNITS,
}
_MACHINE = {
    name: _REQUEST[name]
    for name in ("gpu", "gpus", "reserve_gib", "reserve", *AROUND, "ram", "ram_bandwidth")
}


def _reverse(name: str, subject: str) -> dict[str, Setting]:
    wanted = WANTED[name]
    others = {"gpu", "model", "precision", *wanted} - {subject}
    return {**{k: v for k, v in _REQUEST.items() if k not in others}, **wanted}


_EVERY = (
    Question(
        "advise",
        "Whether a model runs on a card, how well, and what to change.",
        _REQUEST,
        "report",
        needed=("gpu", "model"),
        has_length=True,
    ),
    Question(
        "estimate",
        "Parameters, memory and speed alone, without rules.",
        _REQUEST,
        "estimate",
        needed=("model",),
        forms=("json",),
    ),
    Question(
        "models-for",
        "The best models and formats that run on a card.",
        _reverse("models-for", "gpu"),
        "reverse",
        needed=("gpu",),
        forms=(*_PAGES, "csv"),
        slow=True,
    ),
    Question(
        "gpus-for",
        "The cards that run a model.",
        _reverse("gpus-for", "model"),
        "reverse",
        needed=("model",),
        forms=(*_PAGES, "csv"),
        slow=True,
    ),
    Question(
        "check-command",
        "Whether a pasted command starts on a card, and which one does.",
        {"command": Setting("The command as it would be typed.", name="command"), **_MACHINE},
        "check-command",
        needed=("command", "gpu"),
        text="command",
        has_length=True,
    ),
    Question(
        "diagnose",
        "What a log or an error text says beside the figures, and what helps.",
        {"log": Setting("What the program printed.", name="log"), **_REQUEST},
        "diagnose",
        needed=("log",),
        text="log",
        has_length=True,
    ),
)
QUESTIONS: Mapping[str, Question] = MappingProxyType({one.name: one for one in _EVERY})
"""Every question over HTTP by its name."""
EXPLAIN = Question(
    "explain",
    "Why: which rules recommend what and what is barred; of one rule, what it needs.",
    {"rule": Setting("A rule, for example quantize-to-fit.", name="rule"), **_REQUEST},
    "",
    needed=("gpu", "model"),
    forms=("text",),
)
"""Asked by tools alone."""


def from_query(question: Question, pairs: Sequence[tuple[str, str]]) -> dict[str, object]:
    """Read the settings of a question from a query; a list is a name that is repeated.

    Raises:
        RequestError: A setting that takes one value is stated twice.
    """
    given: dict[str, Any] = {}
    for name, text in pairs:
        if not text:
            continue  # a field of a form that was left empty
        setting = question.settings.get(name)
        if isinstance(setting, Wanted) and setting.several:
            given.setdefault(name, []).append(text)
        elif name in given:
            raise RequestError(f"'{name}' is stated twice", hint="State it once.")
        elif setting and setting.kind == "switch":
            given[name] = SWITCH.get(text.casefold(), text)
        else:
            given[name] = text
    return given


def schema_of(setting: Setting) -> dict[str, Any]:
    """Describe what a setting takes, as JSON Schema."""
    default = f" Not stated: {setting.default}." if setting.default else ""
    unit = f" [{setting.unit}]" if setting.unit and setting.kind != "text" else ""
    one = _kind(setting)
    if isinstance(setting, Wanted) and setting.several:
        one = {"type": "array", "items": one}
    return {**one, "description": f"{setting.help}{default}{unit}"}


def _kind(setting: Setting) -> dict[str, Any]:
    bounds = {"minimum": setting.least, "maximum": setting.most} if setting.most else {}
    if setting.with_unit:
        return {"type": "number", **bounds}
    match setting.kind:
        case "word":
            return {"enum": list(setting.words)}
        case "switch":
            return {"type": "boolean"}
        case "number":
            return {"type": ["number", "string"] if united(setting) else "number", **bounds}
        case "whole":
            said = {"type": "string", "minLength": 1, "description": "With a unit: 32k."}
            return {"anyOf": [{"type": "integer", **bounds}, said]}
        case "count or all":
            return {"anyOf": [{"type": "integer", "minimum": 0, **bounds}, {"const": "all"}]}
        case _:
            return {"type": "string", "minLength": 1}


def united(setting: Setting) -> bool:
    """Whether a number may be a text with its unit too."""
    return isinstance(setting, Wanted) and bool(setting.dimension)


def schema_named(name: str, setting: Setting) -> dict[str, Any]:
    """Describe a setting under one of its names: that with a unit takes a text."""
    if name != setting.with_unit:
        return schema_of(setting)
    return {"type": ["string", "number"], "minLength": 1, "description": setting.help}


def line(event: str, **told: object) -> str:
    """Write a line of the log: JSON with the time, what happened, and what is known of it."""
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    return json.dumps({"time": now, "event": event, **told}, default=str)
