"""What templates may name: texts by name, each written when a template first asks for it.

A report prints a third of what templates may name. Most of that is a figure of the document,
printed as ``knowledge/facts.yaml`` declares it; what takes more than that has a writer.
"""

from __future__ import annotations

import re
from collections.abc import (
    Callable,
    Collection,
    ItemsView,
    Iterable,
    Iterator,
    KeysView,
    Mapping,
    Sequence,
    ValuesView,
)
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, overload

from advisor.knowledge.vocabulary import OPTION, FactType, vocabulary
from advisor.report import figures as f
from advisor.report.figures import say, speaking, words
from advisor.units import plain, rate

if TYPE_CHECKING:
    from markupsafe import Markup

    from advisor.advice.document import Advice
    from advisor.knowledge.layers import UserEntry

_T = TypeVar("_T")
_OF_OPTION = f"{OPTION}."
_BY_UNIT: Mapping[str, Callable[[Any], str]] = {
    "": f.count,
    "tokens": f.count,
    "GiB": f.amount,
    "%": f.percent,
    "USD": f.dollars,
    "B": f.billions,
    "M": lambda number: f.billions(number or None),
    "tok/s": f.speed_range,
}
"""How numbers are printed; those in other units with the unit behind them."""
_PRINTERS: Mapping[str, Callable[[Any], str]] = {
    "size": f.size,
    "amount": f.amount,
    "decimal": f.decimal_gb,
    "nominal": f.nominal,
    "count": f.count,
    "some": lambda number: f.count(number or None),
    "digits": lambda number: f"{number:.1f}" if number else "",
    "speed": f.speed_range,
    "pace": lambda number: f.say("speed.point", speed=rate(number)),
    "rate": rate,
    "evidence": f.evidence,
    "flag": f.flag,
    "words": lambda text: str(text or "").replace("_", " "),
}
"""Other ways, as ``print:`` in facts.yaml names them."""


@cache  # 1.06 of an advice, 2.2 of reports
def _figures() -> Mapping[str, tuple[Callable[[Any], object], Callable[[Any], str]]]:
    """Name -> what takes its figure out of what it is about, and what prints it."""
    known = vocabulary()
    every = [*known.facts.values(), *known.texts.values()]
    return {one.name: (_taker(one), _printer(one)) for one in every if one.texts}


def _taker(one: FactType) -> Callable[[Any], object]:
    return attrgetter(one.at) if one.at else lambda about: about.facts[one.name]


def _printer(one: FactType) -> Callable[[Any], str]:
    if one.print:
        return _PRINTERS[one.print]
    if one.kind != "number":
        return f.flag if one.kind == "flag" else lambda text: str(text or "")
    if one.as_sold:
        return f.size
    return _BY_UNIT.get(one.unit) or (lambda value: f.quantity(value, one.unit))


class Placeholders(dict[str, str]):
    """A dictionary of all its names, in which a text stands once it was asked for.

    What makes one of these lists its ``names`` and gives a text in ``__missing__``.
    """

    __slots__ = ()
    names: ClassVar[Collection[str]] = ()

    def _all(self) -> dict[str, str]:
        written = dict(zip(super().keys(), super().values(), strict=True))
        return written | {name: self[name] for name in self.names if name not in written}

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or name in self.names

    def keys(self) -> KeysView[str]:  # type: ignore[override]  # a view of a plain dictionary
        """Write all texts."""
        return self._all().keys()

    def values(self) -> ValuesView[str]:  # type: ignore[override]  # a view of a plain dictionary
        """Write all texts."""
        return self._all().values()

    def items(self) -> ItemsView[str, str]:  # type: ignore[override]  # a view of a plain dictionary
        """Write all texts."""
        return self._all().items()

    @overload
    def get(self, name: str, other: None = None, /) -> str | None: ...
    @overload
    def get(self, name: str, other: str, /) -> str: ...
    @overload
    def get(self, name: str, other: _T, /) -> str | _T: ...
    def get(self, name: str, other: object = None, /) -> object:
        """Give a text, or something else where there is none of this name."""
        return self[name] if name in self else other  # noqa: SIM401 - this is what gets


class View(Placeholders):
    """Figures of a document or of a recommendation, in the words spoken when this was made."""

    __slots__ = ("_about", "words")
    writers: ClassVar[Mapping[str, Callable[..., str]]] = {}
    of_option: ClassVar[bool] = False

    def __init__(self, *about: Any) -> None:
        """Take what writers are given; the last of it holds the figures."""
        super().__init__()
        self._about, self.words = about, words()

    @property
    def names(self) -> Collection[str]:  # type: ignore[override]  # those of the vocabulary
        """Everything of its group that templates of all folders may name."""
        known = vocabulary().named_in("actions").values()
        return [one.name for one in known if (one.group == OPTION) is self.of_option]

    def __missing__(self, name: str) -> str:
        """Write a text.

        Raises:
            KeyError: There is none of this name.
        """
        if words() is not self.words:
            with speaking(self.words):
                return self[name]
        writer = self.writers.get(name)
        text = self[name] = self._figure(name) if writer is None else writer(*self._about)
        return text

    def _figure(self, name: str) -> str:
        take, printed = _figures()[name]
        try:
            figure = take(self._about[-1])
        except (AttributeError, LookupError):  # of a card that is not known, or not concluded
            return ""
        return printed(figure)


class Told(Placeholders):
    """Both views, and what is given beside them in front."""

    __slots__ = ("_option", "_situation")

    def __init__(
        self, more: Mapping[str, str], situation: View, option: View | None = None
    ) -> None:
        """Take all three."""
        super().__init__(more)
        self._situation, self._option = situation, option

    @property
    def names(self) -> Collection[str]:  # type: ignore[override]  # those of the views
        """Those of both views."""
        return [*self._situation.names, *(self._option.names if self._option is not None else ())]

    def __missing__(self, name: str) -> str:
        """Take a text of the view that it belongs to.

        Raises:
            KeyError: There is none of this name.
        """
        view = self._option if name[:7] == _OF_OPTION else self._situation
        if view is None:
            raise KeyError(name)
        text = self[name] = view[name]
        return text


_ASIDE = re.compile(r"\s*\([^)]*\)")
_GRID = re.compile(r"\((?:H|image)/(\d+)\)")
_TILE = re.compile(r"(\d+) per (\d+)px (tile|view)")
_PLAIN = re.compile(r"(up to )?(\d[\d,]*)(?: to (\d[\d,]*))?")
_PARTS = {
    "weights": "rough.weights",
    "compute buffer": "rough.compute",
    "activations": "rough.compute",
    "overhead": "rough.overhead",
    "KV cache": "rough.kv",
    "shards": "rough.shards",
    "split": "rough.split",
    "runtime": "rough.runtime",
}
_SPELLED_WITH_A_VOWEL = "aefhilmnorsx8"


def _head(note: str | None) -> str:
    """The first statement of a note, without its asides."""
    text = plain(note or "")
    return text if _GRID.match(text) else re.split(r"[;:,] ", _ASIDE.sub("", text))[0]


def image_tokens(note: str | None) -> str:
    """Write the image-token note of a model as a quantity; empty where it gives none.

    ``576 (24x24, 336px/14)`` becomes ``576 tokens``, ``(H/28)*(W/28); patch 14`` becomes
    ``one token for every 28 x 28 pixels``.
    """
    head = _head(note)
    if found := _TILE.match(head):
        return say("image.tile", n=_count(found[1]), pixels=found[2], kind=found[3])
    if found := _GRID.match(head):
        return say("image.grid", side=found[1])
    if head == "1 text token":
        return say("image.one")
    if found := _PLAIN.fullmatch(head):
        if found[3]:
            return say("image.range", low=_count(found[2]), high=_count(found[3]))
        return say("image.most" if found[1] else "image.plain", n=_count(found[2]))
    return ""


def images_held(note: str | None, context_tokens: int) -> str:
    """How many images of the largest size a context holds; empty where no size is given."""
    found = _PLAIN.fullmatch(_head(note))
    most = int((found[3] or found[2]).replace(",", "")) if found else 0
    return f.count(context_tokens // most) if most else ""


def _count(digits: str) -> str:
    return f.count(int(digits.replace(",", "")))


def estimated_parts(phrases: Sequence[str]) -> str:
    """Write ``weights: sized by average`` and its like as ``the weights (sized by average)``."""
    by_part: dict[str, list[str]] = {}
    for phrase in phrases:
        part, _, how = plain(phrase).partition(": ")
        by_part.setdefault(say(_PARTS[part]) if part in _PARTS else part, []).append(how)
    return f.listed(
        [
            say("rough.how", part=part, how="; ".join(how)) if any(how) else part
            for part, how in by_part.items()
        ]
    )


def article(name: str) -> str:
    """Give ``a`` or ``an`` for a type name that is read letter by letter: ``an fp8``."""
    vowel = name[:1].lower() in _SPELLED_WITH_A_VOWEL
    return say("change.article.vowel" if vowel else "change.article")


_WORDS = {"gpu": "card", "format": "weight format", "kv_type": "KV-cache type"}


def said(entry: UserEntry | None) -> str:
    """Say in a sentence where an entry of the user's stands; empty for a built-in one."""
    if entry is None:
        return ""
    text = str(entry)
    return f"{text[:1].upper()}{text[1:]}."


def whose(doc: Advice) -> str:
    """Name everything of the user's that a report rests on; empty where there is nothing."""
    made = doc.provenance
    parts = [named(entry) for entry in made.yours]
    off = [f"{item.name} ({item.at}: {item.reason.rstrip('.')})" for item in made.switched_off]
    sentences = [
        *([f"Yours: {_joined(parts)}."] if parts else []),
        *([f"Switched off: {_joined(off)}."] if off else []),
    ]
    return " ".join(sentences)


def named(entry: UserEntry) -> str:
    """Name an entry of the user's with its place, and which of its figures are built in."""
    what = _WORDS.get(entry.what, entry.what)
    other = entry.replaces
    behind = "" if other is None else ", replaces the built-in one"
    if other not in {None, entry.name}:
        behind = f", replaces {other}"
    elif not entry.over_built_in:
        behind = f", replaces {entry.replaces_at}"
    return f"{what} {entry.name} ({entry.at}{behind}{entry.inherited})"


def _joined(parts: Iterable[str]) -> str:
    return "; ".join(parts).rstrip(".")


_SPECIAL = re.compile(r"([\\*\[\]<|#]|^>)")
_MARKS = "\\*[]<|#>"
_CODE = re.compile(r"`([^`]*)`")


def escaped(text: str) -> str:
    """Make text safe inside Markdown; code spans stay code."""
    if not any(map(text.__contains__, _MARKS)):
        return text
    pieces = _CODE.split(text)
    return "".join(
        f"`{piece}`" if index % 2 else _SPECIAL.sub(r"\\\1", piece)
        for index, piece in enumerate(pieces)
    )


def coded(text: str) -> Markup:
    """Escape text for HTML and turn its code spans into ``code`` elements."""
    from markupsafe import Markup, escape  # noqa: PLC0415

    parts = [
        Markup("<code>{}</code>").format(piece) if index % 2 else escape(piece)
        for index, piece in enumerate(_CODE.split(text))
    ]
    return Markup("").join(parts)
