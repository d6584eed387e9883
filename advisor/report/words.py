"""The words that stand in no template: ``templates/words.txt``, a user's file in front of it.

Figures are set into them (``about {speed}``), so placeholders arrive in templates ready to print.
Which words are spoken is a matter of the report being written, as precision is of a decimal
context: ``spoken`` sets it for a block, and everything that writes figures asks ``say``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from pathlib import Path
from string import Formatter

from advisor.errors import Source, TemplateError
from advisor.files import data_dir
from advisor.suggest import did_you_mean

FILE = "words.txt"
_ONE, _EQUALS = ".one", " = "


class Words(dict[str, str]):
    """Texts by name. One set of words equals itself alone, so that texts can be kept by it."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:  # type: ignore[override]  # a dictionary has none
        return id(self)


def read_words(folder: Path) -> tuple[dict[str, str], list[TemplateError]]:
    """Read a folder's words and find every line that is wrong; no file is no words."""
    built_in = data_dir("templates")
    try:
        text = (folder / FILE).read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}, []
    except UnicodeDecodeError:
        return {}, [TemplateError("the file is not UTF-8", source=_source(0))]
    found, problems = dict[str, str](), list[TemplateError]()
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        name, equals, said = line.partition(_EQUALS)
        if not equals or not said.strip():
            hint = "Write 'name = text'."
            problems.append(
                TemplateError("this line names no text", source=_source(number), hint=hint)
            )
            continue
        found[name.strip()] = said.strip()
        if folder != built_in:
            problems += _wrong(name.strip(), said, number)
    return found, problems


def _source(line: int) -> Source:
    return Source(f"templates/{FILE}", line)


def _wrong(name: str, text: str, line: int) -> Iterator[TemplateError]:
    """Hold an entry of a user's file against the built-in one of this name."""
    known = words_of(None)
    try:
        given = _figures_in(text)
    except ValueError as bad:
        yield TemplateError(f"'{name}': {bad}", source=_source(line), hint="Write figures as {n}.")
        return
    if name not in known and name.removesuffix(_ONE) not in known:
        hint = did_you_mean(name, sorted(known))
        yield TemplateError(f"unknown name '{name}'.", source=_source(line), hint=hint)
        return
    wanted = _figures_in(known.get(name) or known[name.removesuffix(_ONE)])
    for figure in sorted(given - wanted):
        hint = f"It has {', '.join(sorted(wanted)) or 'none'}."
        yield TemplateError(f"'{name}' has no '{{{figure}}}'.", source=_source(line), hint=hint)


def _figures_in(text: str) -> frozenset[str]:
    return frozenset(name for _, name, _, _ in Formatter().parse(text) if name is not None)


@lru_cache(maxsize=8)
def words_of(folder: Path | None) -> Words:
    """Give the words with a user's folder (or none) in front.

    Raises:
        TemplateError: The user's words.txt is wrong; its first problem.
    """
    if folder is None:
        return Words(read_words(data_dir("templates"))[0])
    users, problems = read_words(folder)
    if problems:
        raise problems[0]
    return Words({**words_of(None), **users})


def forget_words() -> None:
    """Read the words anew from now on."""
    words_of.cache_clear()


_spoken: ContextVar[Words | None] = ContextVar("spoken", default=None)


@contextmanager
def spoken(folder: Path | None) -> Iterator[None]:
    """Write with the words of a folder inside this block.

    Raises:
        TemplateError: Its words.txt is wrong.
    """
    with speaking(words_of(folder)):
        yield


class speaking:  # noqa: N801 - used as a function is
    """Write with these words inside this block."""

    __slots__ = ("_before", "_words")

    def __init__(self, spoken_words: Words) -> None:
        """Take the words."""
        self._words = spoken_words

    def __enter__(self) -> None:
        """Begin."""
        self._before = _spoken.set(self._words)

    def __exit__(self, *_: object) -> None:
        """Go back to the words before."""
        _spoken.reset(self._before)


def words() -> Words:
    """Give the words that are spoken now; what is kept of texts is kept by them."""
    return _spoken.get() or words_of(None)


def say(name: str, **figures: object) -> str:
    """Give the text of a name, with figures set into it."""
    text = (_spoken.get() or words_of(None))[name]
    return text.format_map(figures) if figures else text


def known(kind: str, name: object) -> str:
    """Give the text of a name of a kind; empty for a name that has none."""
    return (_spoken.get() or words_of(None)).get(f"{kind}.{name}", "")


def counted(name: str, number: int, **figures: object) -> str:
    """Give the text for a number of things, in the singular where there is one."""
    texts = _spoken.get() or words_of(None)
    form = name + _ONE if number == 1 and name + _ONE in texts else name
    return texts[form].format_map({"n": f"{number:,}", **figures})
