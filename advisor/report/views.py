"""What templates may name: texts by name, each written when a template first asks for it.

A report prints a third of what templates may name. Most of that is a figure of the document,
printed as ``knowledge/facts.yaml`` declares it; what takes more than that has a writer.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, ItemsView, Iterator, KeysView, Mapping, ValuesView
from functools import cache
from operator import attrgetter
from typing import Any, ClassVar, TypeVar, overload

from advisor.knowledge.vocabulary import OPTION, FactType, Vocabulary, load_vocabulary
from advisor.report import figures as f
from advisor.report.figures import speaking, words

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
    "point": f.speed_point,
    "span": f.span,
    "evidence": f.evidence,
    "flag": f.flag,
    "words": lambda text: str(text or "").replace("_", " "),
}
"""Other ways, as ``print:`` in facts.yaml names them."""


@cache
def vocabulary() -> Vocabulary:
    """Give what rules and templates may name."""
    return load_vocabulary()


@cache
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
