"""The commands of docs/changing-rules.md are run again, and the page must show what they say."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.running import run

PAGE = Path(__file__).resolve().parents[1] / "docs" / "changing-rules.md"
KEPT = re.compile(r"^working out the facts of .* scenarios; kept\n", re.MULTILINE)
FENCE = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
"""A file to write (yaml PATH), an edit (diff PATH), or commands with their output (console)."""


def commands(block: str) -> list[tuple[str, str]]:
    """Split a session into commands and what they print."""
    parts = re.split(r"^\$ ", block, flags=re.MULTILINE)
    lines = [part.partition("\n") for part in parts if part.strip()]
    return [(command, output) for command, _, output in lines]


def edit(path: Path, block: str) -> None:
    """Apply the lines of a diff that begin with - and +."""
    old = "".join(f"{line[1:]}\n" for line in block.splitlines() if line.startswith("-"))
    new = "".join(f"{line[1:]}\n" for line in block.splitlines() if line.startswith("+"))
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in {path}"
    path.write_text(text.replace(old, new), encoding="utf-8")


def same(shown: str, got: str) -> bool:
    """Compare line by line; a line of three dots stands for any number of lines."""
    pattern = "".join(
        r"(?:.*\n)*?" if line == "..." else re.escape(f"{line}\n") for line in shown.splitlines()
    )
    return re.fullmatch(pattern, got if got.endswith("\n") else f"{got}\n") is not None


def session(capsys: pytest.CaptureFixture[str], block: str) -> str:
    """Run commands and give them with what they say now, shortened where the page is."""
    seen = ""
    for command, shown in commands(block):
        program, *words = shlex.split(command)
        assert program == "advisor", command
        got = run(capsys, *words)
        text = got.out + KEPT.sub("", got.err)
        seen += f"$ {command}\n{shown if same(shown, text) else text}"
    return seen


def played(capsys: pytest.CaptureFixture[str], page: str, change: Callable[[str], None]) -> str:
    """Do everything the page does, in the present folder, and give the page as it is now."""
    now, end = "", 0
    for found in FENCE.finditer(page):
        kind, path, block = found.groups()
        now += page[end : found.start(3)]
        now += session(capsys, block) if kind == "console" else block
        end = found.end(3)
        if kind == "diff":
            edit(Path(path), block)
        elif kind != "console":
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            Path(path).write_text(block, encoding="utf-8")
        if Path("house").is_dir():
            change("house")
    return now + page[end:]


def test_the_page_shows_what_the_commands_say(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On failure run it with ADVISOR_REWRITE_DOCS=1, and read the difference."""
    rewrite = os.environ.get("ADVISOR_REWRITE_DOCS")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ADVISOR_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("ADVISOR_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.delenv("ADVISOR_CONFIG", raising=False)
    page = PAGE.read_text(encoding="utf-8")
    now = played(capsys, page, monkeypatch.chdir)
    if rewrite:
        PAGE.write_text(now, encoding="utf-8")
    assert now == page
