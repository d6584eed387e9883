"""The wheel carries everything: built, installed apart, run from another folder."""

from __future__ import annotations

import email
import json
import os
import re
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from advisor.cli.completion import DOCUMENTS
from advisor.files import DISTRIBUTION, __version__, with_extra

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = [
        sys.executable,
        "-m",
        "build",
        "--wheel",
        "--no-isolation",
        "-o",
        str(folder),
        str(ROOT),
    ]
    scratch = tmp_path_factory.mktemp("scratch")
    environment = {**os.environ, "TMPDIR": str(scratch)}
    done = subprocess.run(build, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert not list(scratch.iterdir()), "the build left something behind"
    return next(folder.glob("*.whl"))


def test_the_wheel_carries_data_and_its_compiled_form(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    for expected in (
        "advisor/data/rules/fit.yaml",
        "advisor/data/templates/report/report.md.j2",
        "advisor/data/knowledge/facts.yaml",
        "advisor/data/lints/unknown-fact.md",
        *(f"advisor/data/schemas/{name}.schema.json" for name in DOCUMENTS),
        "advisor/api/service/ask.html",
        "advisor/py.typed",
    ):
        assert expected in names
    for kind in ("architectures", "knowledge", "rules", "shapes", "vocabulary"):
        assert any(n.startswith(f"advisor/data/compiled/{kind}-") for n in names), kind
    assert not any(n.startswith(("tests/", "benchmarks/")) for n in names)


def test_the_wheel_runs_from_another_folder_without_compiling(wheel: Path, tmp_path: Path) -> None:
    """Installed into a folder of its own; only the dependencies come from this environment."""
    site = tmp_path / "site"
    zipfile.ZipFile(wheel).extractall(site)
    (tmp_path / "elsewhere").mkdir()
    paths = [str(site), sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(dict.fromkeys(paths)),
        "ADVISOR_CACHE_DIR": str(tmp_path / "cache"),
    }
    run = (
        "import sys, advisor; assert advisor.__file__.startswith(sys.argv.pop(1)); "
        "from advisor.cli.main import main; main()"
    )
    arguments = ["advise", "--gpu", "RTX 4090", "--model", "phi-3-medium", "--precision", "fp16"]
    arguments += ["--format", "json"]
    done = subprocess.run(
        [sys.executable, "-S", "-c", run, str(site), *arguments],
        cwd=tmp_path / "elsewhere",
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["verdict"]["state"] == "needs_offload"
    assert not any((tmp_path / "elsewhere").iterdir())
    assert not list((tmp_path / "cache").glob("*.json"))


def test_an_unwritable_cache_costs_time_and_nothing_else(tmp_path: Path) -> None:
    environment = {**os.environ, "ADVISOR_CACHE_DIR": "/proc/no/such/place"}
    command = [sys.executable, "-m", "advisor", "advise", "--gpu", "RTX 4090"]
    done = subprocess.run(
        [*command, "--model", "llama-3-8b", "--precision", "Q8_0"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "fits" in done.stdout
    assert done.stderr == ""


def test_extras_are_named_by_the_package_that_is_installed(wheel: Path) -> None:
    """`advisor` on an index is somebody else's, so no hint may send a user there."""
    archive = zipfile.ZipFile(wheel)
    (entry,) = [n for n in archive.namelist() if n.endswith(".dist-info/METADATA")]
    stated = email.message_from_string(archive.read(entry).decode())
    assert (stated["Name"], stated["Version"]) == (DISTRIBUTION, __version__)
    assert stated["Author"] == "the advisor developers"
    plain = [line for line in stated.get_all("Requires-Dist", []) if "extra ==" not in line]
    assert not [line for line in plain if "durable" in line], "a plain install needs no compiler"
    for name in stated.get_all("Provides-Extra", []):
        assert with_extra(name) == f"Install it: pip install '{stated['Name']}[{name}]'."
    foreign = re.compile(r"(?<![-\w])advisor\[")
    texts = [*(ROOT / "advisor").rglob("*.py"), *(ROOT / "docs").glob("*.md"), ROOT / "README.md"]
    assert not [path for path in texts if foreign.search(path.read_text(encoding="utf-8"))]
