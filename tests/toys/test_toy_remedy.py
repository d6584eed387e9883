"""A new remedy is one module, a rule and a text, and is advised like every other."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from shutil import copytree, ignore_patterns

import pytest

import advisor
from advisor.remedies import actions

PACKAGE = Path(advisor.__file__).parent
REMEDIES = Path("remedies")
MODULE = '''"""Fewer tokens of a prompt at once."""

from collections.abc import Iterator

from msgspec.structs import replace

from advisor.remedies.option import Base, Remedy, make_option
from advisor.remedies.option import Option


def propose(base: Base, *_: object) -> Iterator[Option]:
    if base.scenario.ubatch > 64:
        yield make_option(base, REMEDY, {"ubatch": 64}, replace(base.scenario, ubatch=64))


REMEDY = Remedy("small-steps", frozenset({"ubatch"}), "setting", propose)
'''
REGISTERED = {
    "from advisor.remedies import (": "\n    small_steps,",
    "REMEDIES: list[Remedy] = [": "\n    small_steps.REMEDY,",
}
RULE = """
- rule: take-small-steps
  why: Buffers for a prompt grow with what is read of it at once.
  source: this test
  when: {option.family: is small-steps, option.fits: is yes}
  recommend: {action: small-steps, score: {base: 99}, text: small-steps.md.j2}
  cases:
    - {name: usual, given: {gpu: RTX 4090, model: llama-3-8b}, expect: fires, change: {ubatch: 64}}
    - {name: already, given: {gpu: RTX 4090, model: llama-3-8b, ubatch: 64}, expect: silent}
"""
TEXT = """# Read the prompt in small steps
It then takes {{ option.required }} instead of {{ option.before_required }}.
"""
ASKED = ("advise", "--gpu", "RTX 4090", "--model", "llama-3-8b", "--precision", "Q8_0")


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program with one more module among its remedies, all else as it is."""
    root = tmp_path_factory.mktemp("house")
    package = root / "advisor"
    package.mkdir()
    for one in PACKAGE.iterdir():
        if one.name != REMEDIES.name:
            (package / one.name).symlink_to(one)
    copytree(PACKAGE / REMEDIES, package / REMEDIES, ignore=ignore_patterns("__pycache__"))
    registry = package / REMEDIES / "__init__.py"
    text = registry.read_text(encoding="utf-8")
    for place, line in REGISTERED.items():
        assert text.count(place) == 1
        text = text.replace(place, place + line)
    registry.write_text(text, encoding="utf-8")
    (package / REMEDIES / "small_steps.py").write_text(MODULE, encoding="utf-8")
    (root / "rules").mkdir()
    (root / "rules" / "mine.yaml").write_text(RULE, encoding="utf-8")
    (root / "templates" / "actions").mkdir(parents=True)
    (root / "templates" / "actions" / "small-steps.md.j2").write_text(TEXT, encoding="utf-8")
    return root


def run(root: Path, *words: str, code: int = 0) -> str:
    """Run the program that lies in a folder."""
    env = {**os.environ, "PYTHONPATH": str(root), "COLUMNS": "100", "NO_COLOR": "1"}
    done = subprocess.run([sys.executable, "-m", "advisor", *words], cwd=root, env=env,
                          capture_output=True, text=True, check=False)  # fmt: skip
    assert done.returncode == code, done.stderr
    return done.stdout + done.stderr


def asked(house: Path, *words: str) -> Sequence[str]:
    folders = ("--rules", str(house / "rules"), "--templates", str(house / "templates"))
    return [*ASKED, *words, *folders]


@pytest.fixture(scope="module")
def recommended(house: Path) -> Sequence[Mapping[str, object]]:
    found = json.loads(run(house, *asked(house, "--format", "json")))["recommendations"]
    return [item for item in found if isinstance(item, dict)]


def test_it_is_recommended_with_its_figures(
    house: Path, recommended: Sequence[Mapping[str, object]]
) -> None:
    first = recommended[0]
    assert (first["action"], first["rule"]) == ("small-steps", "take-small-steps")
    assert first["change"] == {"ubatch": 64}
    before, after = first["before"], first["after"]
    assert isinstance(before, dict)
    assert isinstance(after, dict)
    assert after["required_bytes"] < before["required_bytes"]
    said = run(house, *asked(house))
    assert "Read the prompt in small steps" in said
    now, then = (f"{one['required_bytes'] / 2**30:.1f} GiB" for one in (after, before))
    assert f"It then takes {now} instead of {then}." in " ".join(said.split())


def test_its_change_run_by_itself_gives_the_same_figures(
    house: Path, recommended: Sequence[Mapping[str, object]]
) -> None:
    alone = json.loads(run(house, *asked(house, "--ubatch", "64", "--format", "json")))
    after = recommended[0]["after"]
    assert isinstance(after, dict)
    assert alone["memory"]["required_bytes"] == after["required_bytes"]
    assert "small-steps" not in [item["action"] for item in alone["recommendations"]]


def test_the_others_stay_as_they_are(recommended: Sequence[Mapping[str, object]]) -> None:
    others = json.loads(run(PACKAGE.parent, *ASKED, "--format", "json"))["recommendations"]
    assert [item["action"] for item in recommended[1:]] == [item["action"] for item in others]


def test_without_the_module_the_rule_is_refused(house: Path) -> None:
    assert "small-steps" not in actions()
    refused = run(PACKAGE.parent, *asked(house), code=1)
    assert "mine.yaml:6:" in refused
    assert "small-steps" in refused
