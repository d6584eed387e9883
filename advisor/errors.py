"""Everything that can go wrong, as one tree; and the nearest names where one is unknown.

AdvisorError
 * UserError            the user's input or files are wrong: exit 1
   * RequestError       what was asked for (a GPU, a model, a number)
   * KnowledgeError     a file in knowledge/
   * RuleFileError      a file in rules/
   * TemplateError      a file in templates/
   * SourceFileError    a model file (config.json, GGUF, safetensors)
   * Problems           several of the above, reported together
 * EngineError          a bug of ours: exit 70
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from difflib import SequenceMatcher, get_close_matches
from typing import Self

from msgspec import Struct


def visible(text: str) -> str:
    """Make foreign text safe to print: its lines stay, other control and invisible characters go.

    Names come from files, listings and headers of strangers; whatever stands in a message passes
    here, so that no message moves a cursor, renames a window or hides what it says.
    """
    if text.isascii() and text.replace("\n", "").isprintable():
        return text
    shown = (c if c.isprintable() or c == "\n" else " " if c.isspace() else "" for c in text)
    return "".join(shown)


def as_sentence(error: Exception) -> str:
    """Give a message with a full stop, to stand beside others."""
    text = str(error)
    return text if text.endswith((".", "?")) else f"{text}."


class Source(Struct, frozen=True, order=True):
    """A place in a file; ``line`` and ``column`` count from 1, 0 means unknown."""

    file: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        return ":".join([visible(self.file), *(str(n) for n in (self.line, self.column) if n)])


class Edit(Struct, frozen=True):
    """What to write instead of what stands at the place of a problem."""

    old: str
    new: str


class AdvisorError(Exception):
    """A message for whoever must act, with where it happened and what to do.

    Args:
        message: What is wrong, one or two sentences.
        source: Where, when it is a place in a file.
        hint: What to do ("Did you mean 'memory.deficit'?"), or what gives it when it is asked for.
        lint: The kind of mistake (``unknown-fact``), for files that ``rules check`` reads.
        edit: The correction, where only one is possible.
    """

    def __init__(
        self,
        message: str,
        *,
        source: Source | None = None,
        hint: str | Callable[[], str] = "",
        lint: str = "",
        edit: Edit | None = None,
    ) -> None:
        self.message = visible(message)
        self.source = source
        self._hint = hint
        self.lint = lint
        self.edit = edit
        super().__init__(self.message)

    @property
    def hint(self) -> str:
        """What to do; worked out once, where somebody reads it: many an error is only tried."""
        if not isinstance(self._hint, str):
            self._hint = self._hint()
        return visible(self._hint)

    @hint.setter
    def hint(self, hint: str) -> None:
        self._hint = hint

    def __reduce__(self) -> str | tuple[object, ...]:
        """Give what another process makes it of."""
        self._hint = self.hint
        return super().__reduce__()

    def __str__(self) -> str:
        where = f"{self.source}: " if self.source else ""
        if not self.hint:
            return f"{where}{self.message}"
        stop = "" if self.message.endswith((".", "!", "?", ":")) else "."
        return f"{where}{self.message}{stop} {self.hint}"


class UserError(AdvisorError):
    """The user's input or files are wrong."""


class RequestError(UserError):
    """The request names something unknown, ambiguous or impossible."""

    instead: tuple[str, Mapping[str, object]] | None = None
    """What the rest of it is answered with, said in a sentence, and those settings."""

    def answered(self, said: str, **settings: object) -> Self:
        """Give it with what the rest of the request can be answered with."""
        self.instead = said, settings
        return self


def otherwise(error: UserError) -> tuple[Sequence[str], Mapping[str, object]] | None:
    """Say how a request is answered that cannot be as it is stated; None where it is not."""
    every = error.errors if isinstance(error, Problems) else (error,)
    ways = [one.instead for one in every if isinstance(one, RequestError) and one.instead]
    if len(ways) != len(every):
        return None
    told = [
        f"{one.message.rstrip('.')}. {said}" for one, (said, _) in zip(every, ways, strict=True)
    ]
    return told, {name: value for _, change in ways for name, value in change.items()}


class KnowledgeError(UserError):
    """A file in knowledge/ is wrong."""


class RuleFileError(UserError):
    """A file in rules/ is wrong."""


class TemplateError(UserError):
    """A file in templates/ is wrong."""


class SourceFileError(UserError):
    """A model file cannot be read."""


class NotDescribedError(SourceFileError):
    """A model's file that may be well-formed, of which nothing here describes some part."""


class EngineError(AdvisorError):
    """The rule engine failed: a bug of ours."""


class Problems(UserError):  # noqa: N818  it is what it holds
    """All problems found, so that nobody has to fix them one run at a time.

    Args:
        errors: At least one; they are kept sorted by place.
    """

    def __init__(self, errors: Iterable[UserError]) -> None:
        self.errors: Sequence[UserError] = sorted(
            errors, key=lambda e: (e.source or Source(""), e.message)
        )
        super().__init__("\n".join(str(e) for e in self.errors))


def raise_problems(errors: Sequence[UserError]) -> None:
    """Raise what was collected: one error as itself, several as ``Problems``."""
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise Problems(errors)


_SHORT = 2
"""In a word of two letters a wrong one leaves too little: the first letter has to do."""


def nearest(word: str, choices: Iterable[str], *, most: int = 3) -> list[str]:
    """List up to ``most`` choices close to ``word``, best first, case-blind."""
    by_fold: dict[str, str] = {}
    for choice in choices:
        by_fold.setdefault(choice.casefold(), choice)
    typed = word.casefold()
    found = get_close_matches(typed, list(by_fold), n=most, cutoff=0.6)
    if not found and len(typed) <= _SHORT:
        begin_alike = [name for name in by_fold if name[:1] == typed[:1]]
        found = get_close_matches(typed, begin_alike, n=most, cutoff=0.0)
    return [by_fold[name] for name in found]


def did_you_mean(word: str, choices: Iterable[str]) -> str:
    """Give ``Did you mean 'x'?`` or an empty string."""
    names = nearest(word, choices)
    if not names:
        return ""
    quoted = [f"'{name}'" for name in names]
    listed = quoted[0] if len(quoted) == 1 else ", ".join(quoted[:-1]) + " or " + quoted[-1]
    return f"Did you mean {listed}?"


_SURE = 0.85
_LINKS = re.compile(r"[-_ ]")
_DIGIT = re.compile(r"\d")
_ONE_NAME = re.compile(r"Did you mean '([^']+)'\?")


def guess(word: str, choices: Collection[str]) -> str:
    """Give ``Did you mean 'x'?``: the one that is surely meant, else up to three, or nothing."""
    names = nearest(word, choices)
    sure = names and SequenceMatcher(None, word.casefold(), names[0].casefold()).ratio() >= _SURE
    alone = sure and (
        _letters(word) == _letters(names[0]) or not any(is_slip(word, n) for n in names[1:])
    )
    return did_you_mean(word, names[:1] if alone else names)


def correction(word: str, hint: str) -> Edit | None:
    """Give the edit that a hint asks for when it names one possibility, a slip away."""
    match = _ONE_NAME.fullmatch(hint)
    return Edit(word, match[1]) if match and is_slip(word, match[1]) else None


def is_slip(word: str, name: str) -> bool:
    """Whether a name was meant: one letter too many, too few, wrong or swapped with the next.

    Case, hyphens and underscores aside. A digit is never a slip: 4090 and 4080 are two cards.
    """
    typed, meant = _letters(word), _letters(name)
    if _DIGIT.findall(typed) != _DIGIT.findall(meant) or min(len(typed), len(meant)) <= _SHORT:
        return typed == meant
    begin = next((i for i, (a, b) in enumerate(zip(typed, meant, strict=False)) if a != b), None)
    if begin is None:
        return abs(len(typed) - len(meant)) <= 1
    rest, wanted = typed[begin:], meant[begin:]
    swapped = rest[:2] == wanted[1::-1] and rest[2:] == wanted[2:]
    return swapped or wanted[1:] in {rest, rest[1:]} or rest[1:] == wanted


def _letters(text: str) -> str:
    return _LINKS.sub("", text.casefold())


_LETTERS = 3
_SEPARATORS = str.maketrans("-_", "  ")
_MOST_COMPARED = 12
"""Comparing letter by letter takes a hundred times as long as counting groups in common."""
_LEAST_SHARED = 0.35
"""Of 2,464 names found for 1,500 random texts 31 share less of the groups of the most alike one."""


def by_letters(choices: Iterable[str]) -> Mapping[str, Sequence[str]]:
    """Key many choices by the groups of letters that they hold, for ``most_alike``."""
    keys: dict[str, list[str]] = {}
    for choice in choices:
        for group in sorted(_groups(choice)):
            keys.setdefault(group, []).append(choice)
    return keys


def most_alike(word: str, keyed: Mapping[str, Sequence[str]]) -> list[str]:
    """List the choices that share most groups of letters with a word, of equals the shortest."""
    alike = Counter(choice for group in sorted(_groups(word)) for choice in keyed.get(group, ()))
    least = _LEAST_SHARED * max(alike.values(), default=0)
    likely = (one for one, count in alike.items() if count >= least)
    return sorted(likely, key=lambda one: (-alike[one], len(one)))[:_MOST_COMPARED]


def _groups(text: str) -> set[str]:
    folded = text.casefold().translate(_SEPARATORS)
    return {folded[at : at + _LETTERS] for at in range(len(folded) - _LETTERS + 1)}
