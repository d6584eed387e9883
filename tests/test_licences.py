"""What comes with an install: free to pass on, named in a bill, and in CI locked by hash."""

from __future__ import annotations

import importlib
import re
import tomllib
from pathlib import Path
from types import ModuleType

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
FREE = re.compile(
    r"\b(MIT|BSD|Apache|ISC|PSF|MPL-?2|MPL 2|Mozilla Public License 2)", re.IGNORECASE
)
BINDING = re.compile(r"\b(A?GPL|LGPL|SSPL|commercial|proprietary)", re.IGNORECASE)
ENTRY = re.compile(r"([a-z0-9-]+)==(\S+)( ; [^\\]+)?((?: \\\n    --hash=sha256:[0-9a-f]{64})+)\n")


@pytest.fixture
def sbom(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module("sbom")


def test_every_package_is_free_to_use_and_pass_on(sbom: ModuleType) -> None:
    found = sbom.installed(sbom.declared())
    known = {one.metadata["Name"]: sbom.licence(one) for one in found}
    assert {"msgspec", "pydantic", "typer", "Jinja2"} <= {*known} | {name.title() for name in known}
    assert {n: text for n, text in known.items() if not FREE.search(text)} == {}
    assert {n: text for n, text in known.items() if BINDING.search(text)} == {}


def test_the_bill_names_every_package_once_and_what_it_needs(sbom: ModuleType) -> None:
    made = sbom.bill()
    names = [one["purl"] for one in made["components"]]
    assert names == sorted({sbom.purl(found) for found in sbom.installed(sbom.declared())})
    assert all(one["version"] and one["licenses"] for one in made["components"])
    own = made["metadata"]["component"]["bom-ref"]
    assert {one["ref"] for one in made["dependencies"]} == {own, *names}
    assert {ref for one in made["dependencies"] for ref in one["dependsOn"]} == {*names}
    assert sbom.bill() == made


def test_the_lock_holds_all_that_is_required_with_hashes_and_names_no_host() -> None:
    text = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    body = "".join(line for line in text.splitlines(keepends=True) if not line.startswith("#"))
    assert ENTRY.sub("", body) == "", "an entry without a hash: make requirements.lock again"
    assert "://" not in text
    locked: dict[str, list[str]] = {}
    for name, version, _, hashes in ENTRY.findall(body):
        locked.setdefault(name, []).append(version)
        assert name != "durable-rules" or hashes.count("--hash") == 1
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wanted = project["project"]["dependencies"] + project["project"]["optional-dependencies"]["dev"]
    for line in (*wanted, *project["build-system"]["requires"]):
        required = Requirement(line)
        versions = locked.get(required.name.lower().replace("_", "-"), [])
        assert versions, f"{required.name}: make requirements.lock again, as its first lines say"
        assert all(required.specifier.contains(version) for version in versions), line
