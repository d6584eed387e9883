"""Every example of docs/overlays.md is written to disk as it stands there, and is right."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from advisor.cli.user_settings import folders, settings_in
from tests.cli.running import run

Capture = pytest.CaptureFixture[str]
PAGE = Path(__file__).resolve().parents[2] / "docs" / "overlays.md"
FENCE = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
EXAMPLES = [found.groups() for found in FENCE.finditer(PAGE.read_text(encoding="utf-8"))]
FILES = {path: text for kind, path, text in EXAMPLES if kind == "yaml"}


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for path, text in FILES.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_example_says_which_file_it_is() -> None:
    assert len(FILES) >= 5
    assert None not in FILES
    assert {kind for kind, _, _ in EXAMPLES} <= {"yaml", "toml", "sh", "text"}


def test_all_examples_together_are_a_house_without_a_problem(capsys: Capture, house: Path) -> None:
    for command in ("rules check --quick --rules rules", "knowledge check --knowledge knowledge"):
        outcome = run(capsys, *command.split())
        assert outcome.code == 0, outcome.out + outcome.err
        assert "no problem found" in outcome.out
    tested = run(capsys, "rules", "test", "rules", "--rule", "quantize-to-fit")
    assert tested.out == "2 of 2 cases hold\n"


def test_lists_of_folders_are_settings(house: Path) -> None:
    for name in ("company", "team"):
        for kind in ("rules", "templates", "knowledge"):
            (house / name / kind).mkdir(parents=True)
    for kind, _, text in EXAMPLES:
        if kind == "toml":
            named = folders(settings_in(house / "advisor.toml", text.encode()))
            assert {len(paths) for paths in named.values()} == {2}
