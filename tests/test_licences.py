"""Every package that a user gets with this one may be used and passed on freely."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

PROJECT = Path(__file__).parents[1] / "pyproject.toml"
FREE = re.compile(
    r"\b(MIT|BSD|Apache|ISC|PSF|MPL-?2|MPL 2|Mozilla Public License 2)", re.IGNORECASE
)
BINDING = re.compile(r"\b(A?GPL|LGPL|SSPL|commercial|proprietary)", re.IGNORECASE)
FOR_USERS = ("durable", "hub", "parquet", "dask")


def declared() -> list[str]:
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    extras: Mapping[str, list[str]] = project["optional-dependencies"]
    return [*project["dependencies"], *(name for extra in FOR_USERS for name in extras[extra])]


def installed(requirements: Iterable[str]) -> Iterator[Distribution]:
    """Give the distributions of these requirements and all that those require, once each."""
    seen, left = set[str](), list(requirements)
    while left:
        name = re.split(r"[^A-Za-z0-9_.-]", left.pop().strip(), maxsplit=1)[0]
        key = re.sub(r"[-_.]+", "-", name).lower()
        if key in seen:
            continue
        seen.add(key)
        try:
            found = distribution(name)
        except PackageNotFoundError:  # of another platform or Python
            continue
        left += [line for line in found.requires or () if "extra ==" not in line]
        yield found


def licence(found: Distribution) -> str:
    fields = found.metadata
    stated = [(fields.get_all(key) or [""])[0][:80] for key in ("License-Expression", "License")]
    groups = [c for c in fields.get_all("Classifier") or () if c.startswith("License")]
    return " ".join([*stated, *groups]).strip()


def test_every_package_is_free_to_use_and_pass_on() -> None:
    known = {found.metadata["Name"]: licence(found) for found in installed(declared())}
    assert {"msgspec", "pydantic", "typer", "Jinja2"} <= {*known} | {name.title() for name in known}
    assert {n: text for n, text in known.items() if not FREE.search(text)} == {}
    assert {n: text for n, text in known.items() if BINDING.search(text)} == {}
