"""What other repositories take from this one: hooks, an action, an image file."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.cli.running import run

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "repositories.md").read_text(encoding="utf-8")
HOOKS = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
ACTION = ROOT / ".github" / "actions" / "check" / "action.yml"
IMAGE = (ROOT / "docs" / "examples" / "Containerfile").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, flags=re.DOTALL)


def commands() -> Iterator[str]:
    """Every command line of advisor that the files and the page name."""
    listed = {hook["id"]: hook for hook in HOOKS}
    for hook in yaml.safe_load(blocks("yaml")[0])["repos"][0]["hooks"]:
        yield shlex.join([*shlex.split(listed.pop(hook["id"])["entry"]), *hook["args"]])
    assert not listed, "the page leaves hooks out"
    for step in yaml.safe_load(ACTION.read_text(encoding="utf-8"))["runs"]["steps"]:
        if step.get("run", "").startswith("advisor"):
            yield step["run"]
    yield from (line for line in blocks("sh")[0].splitlines() if line)
    start = re.search(r"CMD \[(.*)\]", IMAGE)
    assert start
    yield "advisor " + shlex.join(re.findall(r'"([^"]+)"', start[1]))


@pytest.mark.parametrize("line", sorted(set(commands())))
def test_every_command_and_option_exists(
    line: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    words = shlex.split(line)[1:]
    name = words[: 2 if words[0] == "rules" else 1]
    told = run(capsys, *name, "--help")
    assert told.code == 0
    for option in (word for word in words if word.startswith("--")):
        assert re.search(rf"(?<!\S){option}(?!\S)", told.out), option


def test_what_the_action_asks_for_is_declared() -> None:
    action = yaml.safe_load(ACTION.read_text(encoding="utf-8"))
    used = set(re.findall(r"inputs\.([\w-]+)", ACTION.read_text(encoding="utf-8")))
    assert used == set(action["inputs"])
    assert (ACTION.parent / "../../..").resolve() == ROOT
    with_ = yaml.safe_load(blocks("yaml")[1])["steps"][1]["with"]
    assert set(with_) <= set(action["inputs"])


def test_the_image_names_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    (extras,) = re.findall(r'"/src\[([\w,]+)\]"', IMAGE)
    assert set(extras.split(",")) <= set(PROJECT["optional-dependencies"])
    (port,) = re.findall(r"EXPOSE (\d+)", IMAGE)
    assert f"[default: {port}]" in run(capsys, "serve", "--help").out
    assert f":{port}:{port}" in PAGE
    for minor in re.findall(r"python:3\.(\d+)", IMAGE):
        assert int(minor) >= int(PROJECT["requires-python"].removeprefix(">=3."))
