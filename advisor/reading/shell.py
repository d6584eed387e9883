"""Shell text taken apart: line ends, quotes, variables, wrappers and containers."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from msgspec import Struct, field

from advisor.errors import RequestError
from advisor.knowledge.catalogue import PROCESSOR
from advisor.units import shell_word

_CONTINUED = re.compile(r"[ \t]*(?:[\\^`][ \t]*\r?\n[ \t]*|\r?\n[ \t]*(?=--?[a-zA-Z]))")
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


def mounts(words: Sequence[str]) -> Mapping[str, str]:
    """Read which folders a container is given: the path inside, and the one outside."""
    found: dict[str, str] = {}
    for word, after in zip(words, (*words[1:], ""), strict=True):
        name, _, value = word.partition("=")
        if name in {"-v", "--volume"} and (matched := _MOUNT.fullmatch(value or after)):
            found[matched[2].rstrip("/")] = matched[1].rstrip("/")
        elif name == "--mount":
            said = dict(one.partition("=")[::2] for one in (value or after).split(","))
            outside = said.get("source") or said.get("src")
            inside = said.get("target") or said.get("dst") or said.get("destination")
            found |= {inside.rstrip("/"): outside.rstrip("/")} if inside and outside else {}
    return found


_MOUNT = re.compile(r"((?:[A-Za-z]:)?[^:]+):(/[^:]*)(?::[a-zA-Z,]+)?")


_ON_CPU = re.compile(
    r"\bcpu[\s-]+(?:only|inference)\b|\b(?:only|pure|just)\s+(?:on\s+)?(?:a\s+|the\s+|my\s+)?cpu\b"
    r"|\b(?:on|with)\s+(?:a\s+|the\s+|my\s+)?cpu\b|\bgpu\s*:\s*(?:none|no|n/?a)\b"
    r"|\b(?:no|without(?:\s+an?)?|(?:don'?t|do\s+not)\s+have\s+an?)\s+(?:\w+\s+)?(?:gpu|(?:graphics|video)\s+card)\b"
    r"|\bintegrated\s+(?:graphics|gpu)\b|\bi-?gpu\s+only\b",
    re.IGNORECASE,
)
_ELSEWHERE = (
    r"welche\w*|wie\s?viele?|beste\w*|quel(?:le)?s?|combien|meilleure?s?|qu[e\u00e9]|cu[a\u00e1]l(?:es)?"
    r"|cu[a\u00e1]nt[ao]s?|mejor|quale|quanta|\u0447\u0442\u043e|\u043a\u0430\u043a\w+|\u0441\u043a\u043e\u043b\u044c\u043a\u043e"
)
"""What asks in German, French, Spanish, Italian and Russian."""
_ASKS_MODELS = re.compile(
    r"\b(?:what|which|best|good|biggest|largest|smartest|strongest|fastest|recommend\w*|suggest\w*"
    rf"|any|{_ELSEWHERE})\b",
    re.IGNORECASE,
)
_ASKS_CARDS = re.compile(
    r"\b(?:what|which|best|cheapest|smallest|fastest|minimum|how\s+much|recommend\w*|suggest\w*|need"
    rf"|buy|required?|requirements?|hardware|{_ELSEWHERE})\b",
    re.IGNORECASE,
)


class Read(Struct):
    """What a sentence says: keys of a request, and the words that were not understood."""

    settings: dict[str, object] = field(default_factory=dict)
    left: list[str] = field(default_factory=list)
    wanted: dict[str, str] = field(default_factory=dict)
    """Flags of ``models-for`` and ``gpus-for`` that are none of a request."""
    asks: Literal["advise", "models-for", "gpus-for"] = "advise"
    """The command that answers it."""
    assumed: str = ""
    """What was taken for granted, a sentence."""


def means_own(text: str, read: Read) -> bool:
    """Whether a question without a card is about one's own: no word of it may be another card."""
    if "model" in read.settings:
        return not (read.left or read.wanted or _ASKS_CARDS.search(text) or _ON_CPU.search(text))
    return bool(_ASKS_MODELS.search(text)) and not (read.left or _ON_CPU.search(text))


def on_processor(text: str) -> bool:
    """Whether a question says that there is no card, or that none is used."""
    return bool(_ON_CPU.search(text))


def take_processor(text: str, read: Read, *, own_card: bool) -> None:
    """Take the processor for what computes where it, or RAM alone, is named and no card."""
    said, settings = on_processor(text), read.settings
    asks_cards = "model" in settings and _ASKS_CARDS.search(text)
    if "gpu" in settings or ((own_card or asks_cards) and not said):
        return
    if said or not settings.keys().isdisjoint({"cpu", "ram"}):
        settings["gpu"] = PROCESSOR.name
        read.assumed = read.assumed or (
            "" if said else "No card is named: it is sized for the processor alone."
        )


def command_for(
    text: str, read: Read, *, own_card: bool
) -> Literal["advise", "models-for", "gpus-for"]:
    """Say which command answers: where a name is missing, what asks for it, or leaves no word over.

    Raises:
        RequestError: Neither a card nor a model is named, or a word may be the one that is missing.
    """
    has_card, has_model = own_card or "gpu" in read.settings, "model" in read.settings
    if has_card and has_model:
        read.left += [f"{flag.replace('_', '-')} {value}" for flag, value in read.wanted.items()]
        return "advise"
    if has_card and (_ASKS_MODELS.search(text) or read.wanted or not read.left):
        return "models-for"
    if has_model and (_ASKS_CARDS.search(text) or read.wanted or not read.left):
        return "gpus-for"
    missing, known = ("model", "gpu") if has_card else ("card", "model")
    command = "models-for --gpu" if has_card else "gpus-for --model"
    named = shell_word(str(read.settings.get(known, "")))
    hint = f"For all that would do: advisor {command} {named}." if known in read.settings else ""
    raise RequestError(f"no {missing} is named in this question", hint=hint)
