"""The manifest: everything that the bytes of a batch depend on, and nothing else."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import get_args

from advisor.advice.pipeline import Advisor
from advisor.bulk.batch.formats import form_of
from advisor.bulk.batch.plan import Plan, shard_count
from advisor.errors import RequestError, UserError
from advisor.files import Kind, code_sha256, data_dir, read_tree, with_extra
from advisor.knowledge.layers import Stack, layers

_SUFFIXES: Mapping[Kind, tuple[str, ...]] = {
    "rules": (".yaml",),
    "templates": (".j2",),
    "knowledge": (".yaml", ".csv"),
}
_ASIDE: Mapping[Kind, tuple[str, ...]] = {
    "rules": ("scenarios/",),
    "templates": ("site/",),
    "knowledge": ("measurements/",),
}
"""Files that change no report."""
_SHORT = 16

Inputs = Mapping[str, str]
"""``rules/fit.yaml`` -> hash; the user's own stand under ``own/``, or under their names."""


def input_files(folders: Mapping[Kind, Stack]) -> Inputs:
    """Hash every file that reports are made from.

    Args:
        folders: The user's own folders of each kind, if any.

    Raises:
        UserError: A folder cannot be read.
    """
    found: dict[str, str] = {}
    for kind in get_args(Kind):
        found |= _hashed(kind, data_dir(kind), kind)
        for layer in layers(folders.get(kind), f"own/{kind}"):
            found |= _hashed(kind, layer.folder, layer.label)
    return found


def _hashed(kind: Kind, folder: Path, shown: str) -> dict[str, str]:
    try:
        files = read_tree(folder, _SUFFIXES[kind])
    except OSError as bad:
        raise UserError(f"cannot read '{bad.filename}': {bad.strerror}.") from None
    return {
        f"{shown}/{name}": hashlib.sha256(content).hexdigest()[:_SHORT]
        for name, content in files.items()
        if not name.startswith(_ASIDE[kind])
    }


def changed_files(then: Inputs, now: Inputs) -> Iterator[str]:
    """Name the files that differ: ``rules/fit.yaml changed``."""
    for name in sorted({*then, *now}):
        if name not in now:
            yield f"{name} removed"
        elif name not in then:
            yield f"{name} added"
        elif then[name] != now[name]:
            yield f"{name} changed"


SCHEMA_VERSION = 1
_SHOWN = 12
_SAID = {
    "advisor": "the version of advisor",
    "plan_sha256": "the plan",
    "rules_sha256": "the rules",
    "knowledge_sha256": "the knowledge",
    "templates_sha256": "the templates",
    "measurements_sha256": "your own measurements",
    "code_sha256": "the program",
    "engine": "the rule engine",
    "formats": "the formats",
    "length": "the length",
    "shard_size": "the shard size",
    "pyarrow": "the version of pyarrow",
    "zlib": "the version of zlib",
}
_LIBRARIES = ("pyarrow", "zlib")
"""What some formats alone depend on."""

_TOLD_ELSEWHERE = ("inputs",)
"""Only names what the hashes already tell; a built-in file may change behind a user's own."""

Manifest = Mapping[str, object]


def manifest(
    plan: Plan, advisor: Advisor, inputs: Inputs, *, formats: tuple[str, ...], length: str
) -> Manifest:
    """Describe a batch before it is made.

    Args:
        plan: What is to be reported.
        advisor: Rules, knowledge and templates.
        inputs: The files those come from, so that an audit can name what changed.
        formats: What is to be written.
        length: How much the reports say.
    """
    described = dict(plan.described)
    return {
        "schema_version": SCHEMA_VERSION,
        "scenarios": plan.scenarios,
        "shards": shard_count(plan),
        "shard_size": plan.shard_size,
        "skipped": dict(plan.skipped),
        "formats": list(formats),
        "length": length,
        **made_by(advisor, formats),
        "plan_sha256": hashlib.sha256(json.dumps(described).encode()).hexdigest(),
        "plan": described,
        "inputs": dict(inputs),
    }


def made_by(advisor: Advisor, formats: tuple[str, ...]) -> Mapping[str, str | None]:
    """Name the program and data that make the reports; workers must have the same."""
    made = advisor.provenance()
    found: dict[str, str | None] = {
        "advisor": made.advisor,
        "engine": made.engine,
        "code_sha256": code_sha256(),
        "rules_sha256": made.rules_sha256,
        "knowledge_sha256": made.knowledge_sha256,
        "templates_sha256": made.templates_sha256,
        "measurements_sha256": made.measurements_sha256,
    }
    if form_of("parquet", formats):
        found["pyarrow"] = pyarrow_version()
    if "jsonl.gz" in formats:
        found["zlib"] = zlib.ZLIB_RUNTIME_VERSION
    return found


def pyarrow_version() -> str:
    """Name the version of pyarrow.

    Raises:
        RequestError: It is not installed.
    """
    try:
        import pyarrow as pa  # noqa: PLC0415  an extra
    except ImportError:
        hint = f"{with_extra('parquet')} Or leave parquet out of --formats."
        raise RequestError("Parquet files need pyarrow", hint=hint) from None
    return str(pa.__version__)


def as_bytes(made: Manifest) -> bytes:
    """Write a manifest."""
    return (json.dumps(made, indent=1, ensure_ascii=True) + "\n").encode("ascii")


def differences(
    old: Mapping[str, object],
    new: Mapping[str, object],
    words: tuple[str, str] = ("then", "now"),
) -> list[str]:
    """Say what differs between two manifests, one clause each; empty where nothing does."""
    keys = [key for key in _SAID if old.get(key) != new.get(key)]
    if not keys and old != new:
        keys = [key for key in new if key not in _TOLD_ELSEWHERE and old.get(key) != new[key]]
    if "formats" in keys:
        keys = [key for key in keys if key not in _LIBRARIES]
    return [_clause(key, (old.get(key), new.get(key)), words) for key in keys]


def _clause(key: str, values: tuple[object, object], words: tuple[str, str]) -> str:
    said = _SAID.get(key, f"'{key}' in its manifest")
    if any(isinstance(value, Mapping) for value in values):
        return said
    both = (f"{_short(value)} {word}" for value, word in zip(values, words, strict=True))
    return f"{said} ({', '.join(both)})"


def _short(value: object) -> str:
    if value is None:
        return "none"
    if isinstance(value, list):
        return " and ".join(map(str, value))
    text = str(value)
    return text[:_SHOWN] if len(text) > 2 * _SHOWN else text
