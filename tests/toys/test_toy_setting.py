"""A new setting is one entry in one file, and every way to state a request has it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from shutil import copytree, ignore_patterns

import pytest

import advisor
from advisor.errors import UserError
from advisor.scenario.settings import request_from

PACKAGE = Path(advisor.__file__).parent
SETTINGS = Path("scenario/settings.py")
BEFORE = "    split: Annotated["
ENTRY = '    toys: Annotated[int | None, Setting("Toys on the card.", _HOST, most=9)] = None\n'
ASKED = ("--gpu", "RTX 4090", "--model", "llama-3-8b")
RULE = """
- rule: toys
  why: Toys are in the way.
  when: {fit.state: is fits}
  note: notes/example-card.md.j2
  cases:
    - {name: few, given: {gpu: RTX 4090, model: llama-3-8b, toys: 3}, expect: fires}
    - {name: many, given: {gpu: RTX 4090, model: llama-3-8b, toys: 10}, expect: silent}
"""


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program with one more entry among its settings, all else as it is."""
    root = tmp_path_factory.mktemp("house")
    package = root / "advisor"
    package.mkdir()
    for one in PACKAGE.iterdir():
        if one.name != SETTINGS.parent.name:
            (package / one.name).symlink_to(one)
    copytree(PACKAGE / SETTINGS.parent, package / SETTINGS.parent,
             ignore=ignore_patterns("__pycache__"))  # fmt: skip
    text = (PACKAGE / SETTINGS).read_text(encoding="utf-8")
    assert text.count(BEFORE) == 1
    (package / SETTINGS).write_text(text.replace(BEFORE, ENTRY + BEFORE), encoding="utf-8")
    return root


def run(house: Path, *words: str, code: int = 0) -> str:
    env = {**os.environ, "PYTHONPATH": str(house), "COLUMNS": "100", "NO_COLOR": "1"}
    done = subprocess.run([sys.executable, *words], cwd=house, env=env, capture_output=True,
                          text=True, check=False)  # fmt: skip
    assert done.returncode == code, done.stderr
    return done.stdout + done.stderr


def test_it_is_a_flag_with_its_help_and_bounds(house: Path) -> None:
    helped = run(house, "-m", "advisor", "advise", "--help")
    line = next(line for line in helped.splitlines() if "--toys" in line)
    assert "<int>" in line
    assert "Toys on the card." in line
    assert run(house, "-m", "advisor", "advise", *ASKED, "--toys", "9")
    refused = run(house, "-m", "advisor", "advise", *ASKED, "--toys", "10", code=1)
    assert refused == "error: toys is 10. Give at most 9.\n"


def test_it_is_a_column_of_estimates(house: Path) -> None:
    (house / "few.csv").write_text("gpu,model,toys\nRTX 4090,llama-3-8b,3\n", encoding="utf-8")
    (house / "many.jsonl").write_text('{"model": "llama-3-8b", "toys": 10}\n', encoding="utf-8")
    few = json.loads(run(house, "-m", "advisor", "estimate", "few.csv"))
    assert few["error"] is None
    assert few["speed"]
    many = run(house, "-m", "advisor", "estimate", "many.jsonl", code=1)
    assert "toys is 10. Give at most 9." in many


def test_it_is_a_key_of_plans(house: Path) -> None:
    for toys, code in (("3", 0), ("10", 1)):
        plan = house / f"plan{toys}.yaml"
        plan.write_text(
            f"gpus: [RTX 4090]\nmodels: [llama-3-8b]\nwith: {{toys: {toys}}}\n", encoding="utf-8"
        )
        out = str(house / f"out{toys}")
        said = run(house, "-m", "advisor", "batch", str(plan), "--out", out, "--dry-run", code=code)
        assert ("toys is 10. Give at most 9." in said) == bool(code)


def test_it_is_a_key_of_cases_and_of_their_schema(house: Path) -> None:
    rules = house / "rules"
    rules.mkdir()
    (rules / "toys.yaml").write_text(RULE, encoding="utf-8")
    said = run(house, "-m", "advisor", "rules", "check", "rules", "--quick", code=1)
    assert "case 'many' of rule 'toys': its input is refused: toys is 10" in said
    assert "few" not in said
    assert '"toys"' in run(house, "-m", "advisor", "rules", "schema")


def test_the_scenario_has_it_as_stated(house: Path) -> None:
    code = (
        "from advisor.knowledge import load_knowledge\n"
        "from advisor.scenario.settings import request_from\n"
        "from advisor.scenario.resolve import resolve\n"
        "asked = request_from({'gpu': 'RTX 4090', 'model': 'llama-3-8b', 'toys': '3'})\n"
        "print(resolve(asked, load_knowledge()).toys, list(asked.stated()))"
    )
    assert run(house, "-c", code) == "3 ['gpu', 'model', 'toys']\n"


def test_without_the_entry_nothing_knows_it() -> None:
    with pytest.raises(UserError, match="unknown key 'toys'"):
        request_from({"toys": 3})
