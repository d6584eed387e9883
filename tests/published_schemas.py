"""Writes the published schemas of the JSON documents: ``python -m tests.published_schemas``.

A property is described by the docstring below its field, which may end with ``[unit]``; a key that
ends with its unit needs none. What holds settings or facts is described by their declarations.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
import textwrap
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args

import msgspec

from advisor.advice.configuration import ScenarioDoc
from advisor.advice.document import Advice
from advisor.advice.projection import QUOTED_FACTS
from advisor.bulk.estimates import LineDoc
from advisor.bulk.reverse.documents import ReverseDoc
from advisor.knowledge.vocabulary import FactType, load_vocabulary
from advisor.report.command_view import CommandAnswer
from advisor.report.diagnosis import Diagnosis
from advisor.report.doctor import DoctorDoc
from advisor.scenario.setting_kinds import Setting
from advisor.scenario.settings import SETTINGS

FOLDER = Path(__file__).resolve().parent.parent / "docs"
RELEASE = "0.2"
"""Raised with a release that changes a schema."""
DOCUMENTS: Mapping[str, type[msgspec.Struct]] = {
    "report": Advice,
    "reverse": ReverseDoc,
    "estimate": LineDoc,
    "diagnose": Diagnosis,
    "check-command": CommandAnswer,
    "doctor": DoctorDoc,
}
UNITS = {
    "_bytes": "bytes", "_bytes_s": "bytes/s", "_tok_s": "tokens/s", "_tokens": "tokens",
    "_percent": "%", "_usd": "US dollars", "_w": "W", "_s": "s", "_gb": "GB",
    "_tflops_fp32acc": "TFLOPS", "_gib": "GiB", "_gb_s": "GB/s", "_bits": "bits", "_mt_s": "MT/s",
    "_rows": "rows", "images": "images", "_utilization": "share of 1",
}  # fmt: skip
"""End of a key -> what it counts."""
_BASE = {
    "memory": "bytes", "bandwidth": "bytes/s", "power": "W", "share": "%", "money": "US dollars",
    "parameters": "parameters", "bits": "bits", "rate": "tokens/s", "time": "s",
    "tokens": "tokens", "compute": "TFLOPS", "count": "count",
}  # fmt: skip
"""Dimension of a fact -> the base unit that documents have it in."""
_SETTINGS = {"request", "change", "settings", "corrected_change"}
_TYPES: Mapping[str, Mapping[str, object]] = {
    "text": {"type": "string"},
    "switch": {"type": "boolean"},
    "whole": {"type": "integer"},
    "number": {"type": "number"},
    "count or all": {"anyOf": [{"type": "integer"}, {"const": "all"}]},
}


def path_of(name: str) -> Path:
    """Where the schema of a document lies."""
    return FOLDER / f"{name}.schema.json"


@cache
def schema(name: str) -> dict[str, Any]:
    """Make the schema of a document from its types."""
    kind = DOCUMENTS[name]
    made = msgspec.json.schema(kind)
    defs: dict[str, Any] = made["$defs"]
    for owner in _structs(kind, set()):
        defs[owner.__name__]["description"] = _plain(inspect.getdoc(owner) or "")
        for field in msgspec.structs.fields(owner):
            found = defs[owner.__name__]["properties"][field.encode_name]
            _describe(found, field.encode_name, _docs(owner).get(field.name, ""))
            if field.name in _SETTINGS:
                _refer(found, "Settings", defs, _settings)
            if field.name == "facts":
                _refer(found, "Facts", defs, _facts)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:advisor:schema:{name}:{RELEASE}",
        **made,
    }


def written(name: str) -> str:
    """Write the schema of a document as it is published."""
    return json.dumps(schema(name), indent=1, sort_keys=True) + "\n"


def numeric(found: Mapping[str, Any]) -> bool:
    """Whether a property is a number, or holds some without a definition of its own."""
    kinds = found.get("type")
    below = [*found.get("anyOf", ()), found.get("items"), found.get("additionalProperties")]
    return kinds in {"integer", "number"} or any(
        numeric(one) for one in below if isinstance(one, Mapping)
    )


def _structs(kind: object, seen: set[object]) -> Iterator[type[msgspec.Struct]]:
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct) and kind not in seen:
        seen.add(kind)
        yield kind
        for field in msgspec.structs.fields(kind):
            yield from _structs(field.type, seen)
    for part in get_args(kind):
        yield from _structs(part, seen)


@cache
def _docs(owner: type) -> Mapping[str, str]:
    """Read the docstrings of a class's fields, inherited ones too."""
    found: dict[str, str] = {}
    for one in reversed([base for base in owner.__mro__ if base.__module__.startswith("advisor.")]):
        body = ast.parse(textwrap.dedent(inspect.getsource(one))).body[0].body  # type: ignore[attr-defined]
        for field, text in pairwise(body):
            if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr):
                found[ast.unparse(field.target)] = inspect.cleandoc(ast.literal_eval(text.value))
    return found


def _describe(found: dict[str, Any], key: str, text: str) -> None:
    words, unit = _parted(text)
    if words:
        found["description"] = _plain(words)
    if numeric(found) and (unit or (unit := _unit_of(key))):
        found["x-unit"] = unit


def _parted(text: str) -> tuple[str, str]:
    """Divide a docstring from the unit in brackets at its end."""
    found = re.fullmatch(r"(?s)(.*?)(?: \[([^]]+)\])?", text)
    assert found
    return found[1], found[2] or ""


def _unit_of(key: str) -> str:
    fitting = [end for end in UNITS if key.endswith(end)]
    return UNITS[max(fitting, key=len)] if fitting else ""


def _plain(text: str) -> str:
    return " ".join(text.replace("``", "`").split())


def _refer(found: dict[str, Any], name: str, defs: dict[str, Any], make: Any) -> None:
    """Let a map be described by what it may hold."""
    reference = {"$ref": f"#/$defs/{name}"}
    nullable = {"anyOf": [reference, {"type": "null"}]} if "anyOf" in found else reference
    text = {"description": found["description"]} if "description" in found else {}
    found.clear()
    found.update(nullable | text)
    defs[name] = make()


def _settings() -> dict[str, Any]:
    return {
        "type": "object",
        "title": "Settings",
        "description": "Settings by name; one that is not there was not stated.",
        "properties": {name: _setting(one) for name, one in SETTINGS.items()},
    }


def _setting(one: Setting) -> dict[str, Any]:
    kind = {"enum": list(one.words)} if one.words else dict(_TYPES[one.kind])
    default = f" Not stated: {one.default}." if one.default else ""
    found = kind | {"description": f"{one.help}{default}"}
    if numeric(found):
        found["x-unit"] = one.unit or _unit_of(one.name) or _unit_in_documents(one.name)
    return found


def _unit_in_documents(setting: str) -> str:
    """What a setting counts: as the scenario of a report has it."""
    known = _docs(ScenarioDoc)
    key = next(key for key in (setting, f"{setting}_tokens") if key in known)
    return _unit_of(key) or _parted(known[key])[1]


def _facts() -> dict[str, Any]:
    known = load_vocabulary().facts
    return {
        "type": "object",
        "title": "Facts",
        "description": "Facts by name, in base units; one that is not there is not known.",
        "properties": {name: _fact(known[name]) for name in QUOTED_FACTS},
    }


def _fact(fact: FactType) -> dict[str, Any]:
    if fact.kind == "number":
        unit = _BASE[fact.dimension]
        return {"type": "number", "description": fact.help, "x-unit": unit}
    if fact.kind == "enum":
        return {"enum": list(fact.values), "description": fact.help}
    return {"type": "boolean" if fact.kind == "flag" else "string", "description": fact.help}


_KINDS: Mapping[str, tuple[type, ...]] = {
    "object": (dict,), "array": (list,), "string": (str,), "boolean": (bool,), "integer": (int,),
    "number": (int, float), "null": (type(None),),
}  # fmt: skip


def problems(
    value: Any, kept: Mapping[str, Any], defs: Mapping[str, Any], at: str = ""
) -> list[str]:
    """What a document has that its schema does not allow, keys that it does not name included."""
    if "$ref" in kept:
        return problems(value, defs[kept["$ref"].rpartition("/")[2]], defs, at)
    if "anyOf" in kept:
        tried = [problems(value, one, defs, at) for one in kept["anyOf"]]
        return min(tried, key=len)
    allowed = kept.get("enum", [kept["const"]] if "const" in kept else [value])
    kinds = _KINDS[kept["type"]] if "type" in kept else (object,)
    wrong = isinstance(value, bool) and bool not in kinds and object not in kinds
    if value not in allowed or wrong or not isinstance(value, kinds):
        return [f"{at}: {value!r} is no {kept.get('type', allowed)}"]
    return list(_below(value, kept, defs, at))


def _below(value: Any, kept: Mapping[str, Any], defs: Mapping[str, Any], at: str) -> Iterator[str]:
    if isinstance(value, list):
        for number, one in enumerate(value):
            yield from problems(one, kept.get("items", {}), defs, f"{at}/{number}")
    if not isinstance(value, dict):
        return
    named = kept.get("properties", {})
    yield from (f"{at}: {key} is missing" for key in kept.get("required", ()) if key not in value)
    for key, one in value.items():
        below = named.get(key, kept.get("additionalProperties"))
        if isinstance(below, Mapping):
            yield from problems(one, below, defs, f"{at}/{key}")
        elif named and below is None:
            yield f"{at}: {key} is not named"


if __name__ == "__main__":
    for one in DOCUMENTS:
        path_of(one).write_text(written(one), encoding="utf-8")
