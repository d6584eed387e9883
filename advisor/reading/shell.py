"""Shell text taken apart: line ends, quotes, variables, wrappers and containers."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from advisor.errors import RequestError

_CONTINUED = re.compile(r"[ \t]*(?:[\\^`][ \t]*\r?\n[ \t]*|\r?\n[ \t]*(?=--[a-z]))")
"""A line that goes on: a backslash, the caret of cmd.exe, the backtick of PowerShell, or flags
alone on the next."""
_PROMPT = re.compile(
    r"^\s*(?:(?:[$>%]|PS [^>\n]*>|\[[^\]\n]*\][$#]|[\w.-]+@[\w.-]+:[^$#\n]*[$#])\s+"
    r"|[A-Za-z]:\\[^>\n]*>\s*)"
)
_WINDOWS = re.compile(r"[A-Za-z]:\\|(?<!\S)\.{1,2}\\|\\\w+\.(?:exe|gguf)", re.IGNORECASE)
_VARIABLE = re.compile(r"(?:\$env:)?([A-Za-z_]\w*)=(.*)", re.DOTALL)
_POWERSHELL = re.compile(r"\$(?:env:)?(\w+)\s*=\s*")
_USED = re.compile(r"\$(?:\{(\w+)\}|(\w+))|%(\w+)%")
"""A variable where its value is used."""
_ENDS = frozenset({"&&", "||", ";", "|", "&", ">", ">>", "2>&1", "2>", "<"})
_DECLARES = frozenset({"export", "set", "setx", "env"})


class Invocation(Struct, frozen=True):
    """One command: its variables, its words, and the file its output goes to."""

    variables: Mapping[str, str]
    words: tuple[str, ...]
    output: str = ""


def invocations(text: str) -> Sequence[Invocation]:
    """Take a pasted text apart into its commands.

    Variables that a line declares hold for those that follow.

    Raises:
        RequestError: A quotation mark is not closed.
    """
    kept: dict[str, str] = {}
    found = []
    for line in _lines(text):
        for words in _split(_words(_USED.sub(lambda used: _value(used, kept), line))):
            variables, rest, output = _parts(words)
            if rest:
                found.append(Invocation({**kept, **variables}, tuple(rest), output))
            else:
                kept.update(variables)
    return found


def _value(used: re.Match[str], kept: Mapping[str, str]) -> str:
    """Give what a line before says a variable is; as it stands where none does."""
    return kept.get(used[1] or used[2] or used[3], used[0])


def _lines(text: str) -> Iterator[str]:
    for line in _CONTINUED.sub(" ", text).splitlines():
        shown = _POWERSHELL.sub(r"\1=", _PROMPT.sub("", line)).strip()
        if shown and not shown.startswith(("#", "```", "REM ", "::")):
            yield shown


def _words(line: str) -> Sequence[str]:
    reader = shlex.shlex(line, posix=True, punctuation_chars=False)
    reader.whitespace_split = True
    reader.commenters = ""
    if _WINDOWS.search(line):
        reader.escape = ""
    try:
        return list(reader)
    except ValueError:
        raise RequestError(
            f"a quotation mark is not closed in: {line[:80]}", hint="Paste the whole command."
        ) from None


def _split(words: Sequence[str]) -> Iterator[Sequence[str]]:
    """Divide a line at its operators; what follows ``>`` stays with what is written."""
    part: list[str] = []
    for word in words:
        if word in _ENDS - {">", ">>"}:
            yield part
            part = []
        elif word.endswith(";") and len(word) > 1:
            yield [*part, word[:-1]]
            part = []
        elif word.startswith("#"):
            break
        else:
            part.append(word)
    yield part


def _parts(words: Sequence[str]) -> tuple[dict[str, str], Sequence[str], str]:
    """Give the variables before a command, its words, and where it writes to."""
    variables: dict[str, str] = {}
    rest = list(words)
    while rest and (rest[0].casefold() in _DECLARES or _VARIABLE.fullmatch(rest[0])):
        if matched := _VARIABLE.fullmatch(rest.pop(0)):
            variables[matched[1]] = matched[2]
    output = ""
    for sign in (">", ">>"):
        if sign in rest:
            at = rest.index(sign)
            output = "".join(rest[at + 1 : at + 2])
            rest = rest[:at]
    return variables, rest, output


def said_before(words: Sequence[str]) -> tuple[dict[str, str], str | None]:
    """Read what a container is given before its image: variables, and its cards.

    Returns:
        Variables, and the value of ``--gpus`` (``all``, a number, ``device=0,1``) or None.
    """
    variables, cards = {}, None
    for at, word in enumerate(words):
        name, _, value = word.partition("=")
        following = words[at + 1] if at + 1 < len(words) else ""
        if name == "--gpus":
            cards = (value or following).strip("\"'")
        stated = following if word in {"-e", "--env"} else value if name == "--env" else word
        if matched := _VARIABLE.fullmatch(stated):
            variables[matched[1]] = matched[2]
    return variables, cards
