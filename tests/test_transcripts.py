"""Every command of README.md and docs/ is run as printed, and the page must show what it says.

Each page has a folder of its own with the files of docs/examples in it. A fence says what it is:

- ``console``: commands after ``$``, each with all it prints (a line of three dots: any lines)
- ``sh``: commands alone, which must end well
- ``yaml PATH``: a file to write, in any language; ``diff PATH``: an edit of one

A line whose first word is not ``advisor`` is for the reader alone, but for ``cd`` into a folder; so
is a fence that says ``no-run``, as for a server, a network, a card, or minutes of work.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import shutil
import sys
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from advisor.workbench.fact_store import FactStore
from advisor.workbench.fact_store_files import sampled_facts
from tests.cli.running import run
from tests.conftest import run_few_cases

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
KEPT = re.compile(r"^working out the facts of .* scenarios; kept\n", re.MULTILINE)
FENCE = re.compile(r"^```(\w*)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SHELL = {"sh", "console"}
COMMAND = re.compile(r"^(?:\$ )?advisor ", re.MULTILINE)
Capture = pytest.CaptureFixture[str]
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md")), *sorted(DOCS.glob("gallery/*.md"))]


def to_run(page: Path) -> bool:
    fences = FENCE.findall(page.read_text(encoding="utf-8"))
    return any(
        kind in SHELL and path != "no-run" and COMMAND.search(block) for kind, path, block in fences
    )


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
    return re.fullmatch(pattern, got if got.endswith("\n") or not got else f"{got}\n") is not None


def shortened(shown: str, got: str) -> str:
    """What is said now, with dots where the page has them."""
    old, new, lines = shown.splitlines(), got.splitlines(), []
    for _, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        gone, come = old[a:b], new[c:d]
        if "..." in gone:
            before, after = gone.index("..."), gone[::-1].index("...")
            come = [*come[:before], "...", *come[max(before, len(come) - after) :]]
        lines += come
    return "".join(f"{line}\n" for line in lines)


class Said(NamedTuple):
    code: int
    text: str


class Reader:
    """Somebody with a shell who does what a page says, from top to bottom."""

    def __init__(self, capsys: Capture, patch: pytest.MonkeyPatch) -> None:
        self._capsys, self._patch = capsys, patch
        self.other: list[str] = []
        """What was said that a page does not show, each after its command."""

    def page(self, text: str) -> str:
        """Do everything on the page and give it as it would be today."""
        return FENCE.sub(self._fence, text)

    def _fence(self, found: re.Match[str]) -> str:
        kind, path, block = found.groups()
        if kind == "console" and path is None:
            return found[0].replace(block, self._session(block))
        if kind == "sh" and path is None:
            self._alone(block)
        elif kind == "diff":
            edit(Path(path), block)
        elif path and "." in path:
            file = Path(path).expanduser()
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(block, encoding="utf-8")
        return found[0]

    def _session(self, block: str) -> str:
        seen = ""
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, shown = part.partition("\n")
            said = self._say(command)
            if said is not None and not same(shown, said.text):
                self.other.append(f"$ {command}\n{said.text}")
                shown = shortened(shown, said.text)
            seen += f"$ {command}\n{shown}"
        return seen

    def _alone(self, block: str) -> None:
        for command in block.replace("\\\n", " ").splitlines():
            with self._patch.context() as patch:
                spare(patch)  # nobody compares what it says
                said = self._say(command)
            assert said is None or said.code == 0, f"{command}\n{said.text}"

    def _say(self, command: str) -> Said | None:
        """What a command says, None where it is not ours; ``< FILE`` and ``> FILE`` are obeyed."""
        words = shlex.split(command, comments=True)
        if words[:1] == ["cd"]:
            self._patch.chdir(words[1])
        if words[:1] != ["advisor"]:
            return None
        given, kept = file_after("<", words), file_after(">", words) or file_after(">>", words)
        stdin = io.BytesIO(given.read_bytes() if given else b"")
        self._patch.setattr(sys, "stdin", io.TextIOWrapper(stdin))
        got = run(self._capsys, *words[1:])
        if kept:
            kept.write_text(got.out, encoding="utf-8")
        return Said(got.code, ("" if kept else got.out) + KEPT.sub("", got.err))


def spare(patch: pytest.MonkeyPatch) -> None:
    """Let commands run few cases and small samples, where the whole would say the same."""
    run_few_cases(patch)
    for user in ("advisor.cli.rules", "advisor.workbench.lint"):
        patch.setattr(f"{user}.sampled_facts", sampled_little)


def sampled_little(count: int, *more: Any, **named: Any) -> FactStore:
    return sampled_facts(min(count, 60), *more, **named)


def file_after(sign: str, words: list[str]) -> Path | None:
    """The file of a redirection, both taken out of the words."""
    if sign not in words:
        return None
    at = words.index(sign)
    _, name = words.pop(at), words.pop(at)
    return Path(name).expanduser()


@pytest.mark.parametrize(
    "page", [page for page in PAGES if to_run(page)], ids=lambda page: page.name
)
def test_the_page_shows_what_the_commands_say(
    page: Path, capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On failure run it with ADVISOR_REWRITE_DOCS=1, and read the difference."""
    here = shutil.copytree(DOCS / "examples", tmp_path / "here")
    monkeypatch.chdir(here)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("ADVISOR_DATA_DIR", str(tmp_path / "data"))
    for name in ("ADVISOR_CONFIG", "ADVISOR_CONFIG_DIR", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    text = page.read_text(encoding="utf-8")
    reader = Reader(capsys, monkeypatch)
    now = reader.page(text)
    if os.environ.get("ADVISOR_REWRITE_DOCS"):
        page.write_text(now, encoding="utf-8")
    assert now == text, "\n".join(reader.other)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_command_stands_where_nobody_runs_it(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    outside = FENCE.sub(lambda found: "" if found[1] in SHELL else found[3], text)
    assert not re.findall(r"^ *(?:\$ )?advisor [a-z-]+ .*-.*$", outside, re.MULTILINE)
