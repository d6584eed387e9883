"""``--fix``: corrections written where their problem stands, each proved by checking again."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import unified_diff
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from advisor.errors import RequestError, Source, UserError
from advisor.files import data_dir, read_tree
from advisor.knowledge.layers import stack
from advisor.rules.language import SCENARIOS
from advisor.rules.language.layout import formatted
from advisor.rules.language.model import openable
from advisor.workbench.lint import Asked, Means, check_all
from advisor.workbench.lint.problem import Edited, Problem, decoded


def differences(files: Sequence[Edited]) -> str:
    """Write what changes as a unified diff, which ``patch`` takes."""
    return "".join(line for file in files for line in _difference(file))


def _difference(file: Edited) -> Iterator[str]:
    before, after = (_lines(text) for text in (file.before, file.after))
    for line in unified_diff(before, after, f"a/{file.shown}", f"b/{file.shown}"):
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def _lines(text: str) -> list[str]:
    """Split at line feeds alone, as ``diff`` does."""
    return [line for line in text.replace("\n", "\n\0").split("\0") if line]


def replace_files(files: Sequence[Edited]) -> None:
    """Put the new contents in the place of the old: all are written aside before one is replaced.

    Raises:
        RequestError: A file cannot be written; then none was replaced but those named.
    """
    parts: list[tuple[Path, Path]] = []
    try:
        for file in files:
            part = file.path.with_name(f".{file.path.name}.{os.getpid()}.part")
            parts.append((part, file.path))
            part.write_bytes(file.after.encode())
            part.chmod(file.path.stat().st_mode & 0o777)
        for part, path in parts:
            part.replace(path.resolve())
    except OSError as error:
        message = f"{error.filename} cannot be written: {error.strerror}"
        raise RequestError(message, hint="Nothing is half-written.") from None
    finally:
        for part, _ in parts:
            part.unlink(missing_ok=True)


_ROUNDS = 10
_BROKEN = {"yaml-syntax", "duplicate-key"}
_BREAK = re.compile(r"\r\n|[\r\n\x85\u2028\u2029]")


class Corrections(Struct, frozen=True):
    """What can be corrected."""

    files: Sequence[Edited]
    changes: Sequence[str]
    """What was written where, a line for each mistake that is gone afterwards."""


def corrected(asked: Sequence[Asked], means: Means) -> Corrections:
    """Give the files that corrections change, without writing any.

    A correction stays only if its problem is gone afterwards and the file is still YAML. What
    it lays open is corrected in turn.
    """
    quick = replace(means, sample=0, try_cases=False)
    found = [_corrected(one, quick) for one in asked]
    files = [file for one in found for file in one.files]
    return Corrections(files, [change for one in found for change in one.changes])


def _corrected(asked: Asked, means: Means) -> Corrections:
    *below, top = stack(asked.folder) or (data_dir("rules"),)
    found = {name: decoded(content) for name, content in read_tree(top, [".yaml"]).items()}
    texts = {name: text for name, text in found.items() if text is not None}
    after, changes = dict(texts), list[str]()
    with tempfile.TemporaryDirectory() as folder:
        trial = _Trial(asked, top, Path(folder) / top.resolve().name, means, below)
        tried: set[tuple[str, str, str]] = set()
        for _ in range(_ROUNDS):
            fixes = [f for f in trial.fixes(after) if f.key not in tried]
            tried |= {f.key for f in fixes}
            if not fixes:
                break
            kept = trial.kept(after, fixes)
            after = _applied(after, kept)
            changes += [fix.said(openable(top / fix.name)) for fix in kept]
    files = [
        Edited(top / name, openable(top / name), before, after[name])
        for name, before in texts.items()
        if after[name] != before
    ]
    return Corrections(files, changes)


class _Fix(Struct, frozen=True):
    name: str
    """Of the file, below the folder."""
    problem: Problem
    begin: int
    end: int

    @property
    def key(self) -> tuple[str, str, str]:
        """What is put right, wherever it has moved."""
        return (self.name, self.problem.lint.id, self.problem.message)

    def said(self, file: str) -> str:
        """Say what is written where, in a file as a user would type it."""
        edit, at = self.problem.edit, self.problem.source
        assert edit is not None
        return f"{Source(file, at.line)}: '{edit.old}' becomes '{edit.new}'"

    def applied(self, text: str) -> str:
        """Write the correction; it must be the last in the file that is not written yet."""
        assert self.problem.edit is not None
        return text[: self.begin] + self.problem.edit.new + text[self.end :]


class _Trial(Struct, frozen=True):
    """A copy of the folder on which corrections are tried."""

    asked: Asked
    top: Path
    copy: Path
    means: Means
    below: Sequence[Path] = ()
    """Layers that the folder is laid over."""
    known: dict[tuple[str, ...], Sequence[tuple[str, Problem]]] = field(default_factory=dict)
    """Contents of the files -> what is wrong with them."""

    def fixes(self, texts: Mapping[str, str]) -> Sequence[_Fix]:
        """List the corrections that can be written, without those that overlap another."""
        found: dict[tuple[str, int], _Fix] = {}
        for name, one in self._problems(texts):
            fix = _placed(name, one, texts[name]) if name in texts else None
            if fix is not None:
                found.setdefault((name, fix.begin), fix)
        ordered = sorted(found.values(), key=lambda f: (f.name, f.begin))
        apart: list[_Fix] = []
        for fix in ordered:
            if not apart or apart[-1].name != fix.name or apart[-1].end <= fix.begin:
                apart.append(fix)
        return apart

    def kept(self, texts: Mapping[str, str], fixes: Sequence[_Fix]) -> Sequence[_Fix]:
        """Give the corrections that leave fewer of their problems and break no file.

        They are tried together and, where a file breaks, one by one from the end.
        """
        before = _counted(self._problems(texts))
        found = self._problems(_applied(texts, fixes))
        broken = {name for name, one in found if one.lint.id in _BROKEN}
        broken -= {name for name, lint, _ in before if lint in _BROKEN}
        if broken and len(fixes) > 1:
            good: list[_Fix] = []
            for fix in sorted(fixes, key=lambda f: -f.begin):
                good += self.kept(_applied(texts, good), [fix])
            return good
        left, tried = _counted(found), Counter(fix.key for fix in fixes)
        return [
            fix
            for fix in fixes
            if fix.name not in broken and before[fix.key] - left[fix.key] >= tried[fix.key]
        ]

    def _problems(self, texts: Mapping[str, str]) -> Sequence[tuple[str, Problem]]:
        key = tuple(texts.values())
        if key not in self.known:
            self.known[key] = self._found(texts)
        return self.known[key]

    def _found(self, texts: Mapping[str, str]) -> Sequence[tuple[str, Problem]]:
        shutil.rmtree(self.copy, ignore_errors=True)
        shutil.copytree(self.top, self.copy)
        for name, text in texts.items():
            (self.copy / name).write_bytes(text.encode())
        checked = check_all([Asked((*self.below, self.copy))], self.means)
        names = {openable(self.copy / name): name for name in texts}
        named = [(names[p.source.file], p) for p in checked.problems if p.source.file in names]
        return [(name, p) for name, p in named if self.asked.wants(openable(self.top / name))]


def _counted(found: Iterable[tuple[str, Problem]]) -> Counter[tuple[str, str, str]]:
    return Counter((name, one.lint.id, one.message) for name, one in found)


def _applied(texts: Mapping[str, str], fixes: Iterable[_Fix]) -> dict[str, str]:
    after = dict(texts)
    for fix in sorted(fixes, key=lambda f: -f.begin):
        after[fix.name] = fix.applied(after[fix.name])
    return after


def _placed(name: str, found: Problem, text: str) -> _Fix | None:
    """Find the words to replace: on the line of the problem, from its column on."""
    if found.edit is None or not found.source.line:
        return None
    begin = _line_start(text, found.source.line) + max(found.source.column - 1, 0)
    begin += found.source.line == 1 and text.startswith("\ufeff")
    line_end = _BREAK.search(text, begin)
    whole = rf"(?<![\w.-]){re.escape(found.edit.old)}(?![\w.-])"
    match = re.compile(whole).search(text, begin, line_end.start() if line_end else len(text))
    return _Fix(name, found, *match.span()) if match else None


def _line_start(text: str, line: int) -> int:
    """Where a line begins, counted as YAML counts lines."""
    starts = [0, *(found.end() for found in _BREAK.finditer(text))]
    return starts[min(line, len(starts)) - 1]


def reformatted(paths: Sequence[Path]) -> tuple[Sequence[Edited], int, Sequence[UserError]]:
    """Format files and folders without writing any.

    No path stands for the built-in rules.

    Gives the files that change, how many do not, and what is wrong with the rest.

    Raises:
        RequestError: A path holds no rule file.
    """
    changed: list[Edited] = []
    errors: list[UserError] = []
    same = 0
    for path in dict.fromkeys(
        file for folder in paths or [data_dir("rules")] for file in _files(folder)
    ):
        shown = openable(path)
        content = path.read_bytes()
        try:
            after = formatted(content, shown)
        except UserError as error:
            errors.append(error)
            continue
        if after.encode() == content:
            same += 1
        else:
            changed.append(Edited(path, shown, content.decode(), after))
    return changed, same, errors


def _files(path: Path) -> Iterator[Path]:
    if path.is_dir():
        names = [name for name in read_tree(path, [".yaml"]) if not name.startswith(SCENARIOS)]
        if not names:
            raise RequestError(f"{path} holds no rule file (*.yaml)")
        yield from (path / name for name in names)
    elif not path.is_file():
        raise RequestError(f"there is no file or folder '{path}'")
    elif path.suffix != ".yaml":
        raise RequestError(f"{path} is no rule file", hint="A rule file ends in .yaml.")
    else:
        yield path
