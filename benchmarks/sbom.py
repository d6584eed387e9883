"""Write what an install of advisor holds as a bill of materials: CycloneDX 1.6.

    python benchmarks/sbom.py                                  onto the terminal
    python benchmarks/sbom.py -o dist/advisor.cdx.json         into a file

From what is installed here: every package that advisor or an extra for users needs, with version,
licence and what it needs itself. Of the same environment it gives the same bytes: it says neither
when nor where.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from advisor.files import DISTRIBUTION

PROJECT = Path(__file__).parents[1] / "pyproject.toml"
FOR_USERS = ("durable", "hub", "parquet", "dask", "serve", "mcp")
"""Extras beside what every install has."""


def declared() -> list[str]:
    """List what pyproject.toml requires, extras for users included."""
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    extras: Mapping[str, list[str]] = project["optional-dependencies"]
    return [*project["dependencies"], *(name for extra in FOR_USERS for name in extras[extra])]


def key_of(name: str) -> str:
    """Write a package's name as registries compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def named(requirement: str) -> str:
    """Give the package that a requirement names."""
    return re.split(r"[^A-Za-z0-9_.-]", requirement.strip(), maxsplit=1)[0]


def needs(found: Distribution) -> list[str]:
    """List what a package requires, its extras aside."""
    return [line for line in found.requires or () if "extra ==" not in line]


def installed(requirements: Iterable[str]) -> Iterator[Distribution]:
    """Give the distributions of these requirements and all that those require, once each."""
    seen, left = set[str](), list(requirements)
    while left:
        name = named(left.pop())
        if key_of(name) in seen:
            continue
        seen.add(key_of(name))
        try:
            found = distribution(name)
        except PackageNotFoundError:  # of another platform or Python
            continue
        left += needs(found)
        yield found


def licence(found: Distribution) -> str:
    """Give what a package says of its licence: the expression, else the words, else the groups."""
    fields = found.metadata
    for key in ("License-Expression", "License"):
        stated: str = (fields.get_all(key) or [""])[0]
        if stated and len(stated.splitlines()) == 1:
            return stated
    groups = [c for c in fields.get_all("Classifier") or () if c.startswith("License")]
    return ", ".join(group.rpartition(" :: ")[2] for group in groups)


def purl(found: Distribution) -> str:
    """Name a package as bills of materials do."""
    return f"pkg:pypi/{key_of(found.metadata['Name'])}@{found.version}"


def bill() -> Mapping[str, object]:
    """Describe advisor and everything that it needs."""
    own = distribution(DISTRIBUTION)
    every = sorted(installed(declared()), key=purl)
    by_key = {key_of(one.metadata["Name"]): one for one in every}
    edges = [(own, declared()), *((one, needs(one)) for one in every)]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {"type": "application", **_component(own)}},
        "components": [{"type": "library", **_component(one)} for one in every],
        "dependencies": [
            {
                "ref": purl(one),
                "dependsOn": sorted(
                    {purl(by_key[key]) for line in lines if (key := key_of(named(line))) in by_key}
                ),
            }
            for one, lines in edges
        ],
    }


def _component(found: Distribution) -> Mapping[str, object]:
    made: dict[str, object] = {
        "bom-ref": purl(found),
        "name": found.metadata["Name"],
        "version": found.version,
        "purl": purl(found),
    }
    if stated := licence(found):
        made["licenses"] = [{"license": {"name": stated}}]
    return made


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("-o", "--out", type=Path)
    out: Path | None = parser.parse_args().out
    text = json.dumps(bill(), indent=1) + "\n"
    if out is None:
        sys.stdout.write(text)
        return
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
