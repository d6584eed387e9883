"""The file of words, ``words.txt``: names and texts into which figures are set, and nothing else.

A text may hold ``{n}`` where the built-in one of its name does: no formats, no parts, no code.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from advisor.errors import Source, TemplateError, did_you_mean
from advisor.units import typed

MAX_BYTES = 64 * 1024
"""Of one file; the largest built-in one has 9 KiB."""
UNREAD = "template-syntax"
"""The kind of mistake that keeps a file from being read."""


def read_source(folder: Path, name: str) -> bytes | None:
    """Read a file of texts; None where the folder has none of this name.

    Raises:
        TemplateError: It is no plain file, too large, not readable, or a link out of its folder.
    """
    path = folder / name
    if ".." in Path(name).parts or not os.path.lexists(path):
        return None
    try:
        if not path.resolve().is_relative_to(folder.resolve()):
            raise _refused(name, "a link that leads out of the folder is not followed")
        return _read(path, name)
    except (OSError, RuntimeError) as bad:
        reason = getattr(bad, "strerror", None) or bad
        raise _refused(name, f"the file cannot be read: {reason}") from None


def _read(path: Path, name: str) -> bytes:
    with open(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb") as file:  # noqa: PTH123 - a pipe must not hold us
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise _refused(name, "this is no plain file")
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise _refused(name, f"the file is larger than {MAX_BYTES // 1024} KiB")
    return content


def _refused(name: str, message: str) -> TemplateError:
    return TemplateError(message, source=Source(f"templates/{name}", 1, 1), lint=UNREAD)


FILE = "words.txt"
ONE = ".one"
"""Ends the name of a text for one thing."""
_EQUALS = " = "
_FIGURE = re.compile(r"\{([a-z][a-z0-9_]*)\}")
_LONGEST, _MOST_FIGURES = 600, 12
"""Characters and figures of one text; the built-in ones have 121 and 6."""

Line = tuple[int, str, str]
"""Its number, and the name and the text on it; both empty where it is none."""


def read_words(
    folder: Path, known: Mapping[str, str] | None = None
) -> tuple[dict[str, str], list[TemplateError]]:
    """Read a folder's words and find every line that is wrong; no file is no words.

    A user's words are held against the ``known`` ones, which are built in.
    """
    try:
        content = read_source(folder, FILE)
        lines = list(_lines((content or b"").decode()))
    except TemplateError as bad:
        return {}, [bad]
    except UnicodeDecodeError:
        return {}, [_wrong(1, "the file is not UTF-8", "Save it as UTF-8.", UNREAD)]
    problems = [
        _wrong(n, "this line names no text", "Write 'name = text'.")
        for n, name, text in lines
        if not name or not text
    ]
    problems += list(_repeated(lines))
    if known is not None:
        problems += [bad for line in lines if line[1] and line[2] for bad in _against(known, line)]
    return {name: text for _, name, text in lines if name and text}, problems


def _lines(text: str) -> Iterator[Line]:
    for number, line in enumerate(text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n"), 1):
        if line.strip() and not line.startswith("#"):
            name, equals, said = line.partition(_EQUALS)
            yield (number, name.strip(), said.strip()) if equals else (number, "", "")


def _repeated(lines: Sequence[Line]) -> Iterator[TemplateError]:
    """Tell what a file says twice: of two texts nobody would see the first."""
    first: dict[str, int] = {}
    for number, name, text in lines:
        if name and text and first.setdefault(name, number) != number:
            yield _wrong(number, f"'{name}' stands in line {first[name]} too.", "Delete one.")


def _wrong(line: int, message: str, hint: str = "", lint: str = "template-syntax") -> TemplateError:
    return TemplateError(message, source=Source(f"templates/{FILE}", line, 1), hint=hint, lint=lint)


def _against(known: Mapping[str, str], line: Line) -> Iterator[TemplateError]:
    """Hold an entry of a user's file against the built-in one of this name."""
    number, name, text = line
    model = known.get(name) or known.get(name.removesuffix(ONE))
    if model is None:
        yield _wrong(number, f"unknown name '{name}'.", did_you_mean(name, sorted(known)))
        return
    if typed(text) != text:
        yield _wrong(number, f"'{name}' holds control or invisible characters.", "Delete them.")
    if len(text) > _LONGEST or len(_FIGURE.findall(text)) > _MOST_FIGURES:
        said = f"'{name}' is longer than {_LONGEST} characters or {_MOST_FIGURES} figures."
        yield _wrong(number, said, "Say it shorter.")
    if set("{}") & set(_FIGURE.sub("", text)):
        yield _wrong(number, f"'{name}' holds a brace that is no figure.", "Write figures as {n}.")
    wanted = set(_FIGURE.findall(model))
    for figure in sorted(set(_FIGURE.findall(text)) - wanted):
        hint = f"It has {', '.join(sorted(wanted)) or 'none'}."
        yield _wrong(number, f"'{name}' has no '{{{figure}}}'.", hint)
