"""What comes with an install: free to pass on, named in a bill, and in CI locked by hash."""

from __future__ import annotations

import re
import sys
import tomllib
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from benchmarks.sbom import PROJECT, bill, declared, installed, key_of, licence, named, purl

LOCK = Path(__file__).parents[1] / "requirements.lock"
FREE = re.compile(
    r"\b(MIT|BSD|Apache|ISC|PSF|MPL-?2|MPL 2|Mozilla Public License 2)", re.IGNORECASE
)
BINDING = re.compile(r"\b(A?GPL|LGPL|SSPL|commercial|proprietary)", re.IGNORECASE)
ENTRY = re.compile(r"([a-z0-9-]+)==(\S+)( ; [^\\]+)?((?: \\\n    --hash=sha256:[0-9a-f]{64})+)\n")


@pytest.fixture(scope="module")
def every() -> list[Distribution]:
    return list(installed(declared()))


def test_every_package_is_free_to_use_and_pass_on(every: list[Distribution]) -> None:
    known = {found.metadata["Name"]: licence(found) for found in every}
    assert {"msgspec", "pydantic", "typer", "Jinja2"} <= {*known} | {name.title() for name in known}
    assert {n: text for n, text in known.items() if not FREE.search(text)} == {}
    assert {n: text for n, text in known.items() if BINDING.search(text)} == {}


def test_the_bill_names_every_package_once_and_what_it_needs(every: list[Distribution]) -> None:
    made = bill()
    components, dependencies = made["components"], made["dependencies"]
    assert isinstance(components, list)
    assert isinstance(dependencies, list)
    assert [one["purl"] for one in components] == sorted({purl(found) for found in every})
    assert all(one["version"] and one["licenses"] for one in components)
    assert {one["ref"] for one in dependencies} == {
        *(one["bom-ref"] for one in components), purl(distribution("advisor")),
    }  # fmt: skip
    reached = {ref for one in dependencies for ref in one["dependsOn"]}
    assert reached == {one["bom-ref"] for one in components}
    assert bill() == made


def test_the_lock_holds_all_that_is_required_with_hashes_and_names_no_host() -> None:
    text = LOCK.read_text(encoding="utf-8")
    body = "".join(line for line in text.splitlines(keepends=True) if not line.startswith("#"))
    assert ENTRY.sub("", body) == "", "an entry without a hash: make requirements.lock again"
    assert "://" not in text
    locked: dict[str, list[str]] = {}
    for name, version, _, _ in ENTRY.findall(body):
        locked.setdefault(name, []).append(version)
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))
    wanted = project["project"]["dependencies"] + project["project"]["optional-dependencies"]["dev"]
    for line in (*wanted, *project["build-system"]["requires"]):
        required = Requirement(line)
        versions = locked.get(key_of(required.name), [])
        assert versions, f"{required.name}: make requirements.lock again, as its first lines say"
        assert all(required.specifier.contains(version) for version in versions), line


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="not installed there")
def test_the_source_of_durable_rules_is_one_file_known_by_its_hash() -> None:
    found = next(
        e
        for e in ENTRY.finditer(LOCK.read_text(encoding="utf-8"))
        if named(e[1]) == "durable-rules"
    )
    assert found[4].count("--hash") == 1
