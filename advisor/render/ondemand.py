"""Texts by name, each written when a template first asks for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar, overload

from advisor.render.wording import speaking, words

_T = TypeVar("_T")


class Placeholders(dict[str, str]):
    """A dictionary of all its names, in which a text stands once it was asked for.

    A report prints a third of the figures that templates may name. Texts are written in the words
    that were spoken when this was made.
    """

    __slots__ = ("_names", "_words", "_write")

    def __init__(
        self,
        names: Mapping[str, object],
        write: Callable[[str], str],
        ready: Mapping[str, str] | None = None,
    ) -> None:
        """Take what is known.

        Args:
            names: Names of texts that are still to be written.
            write: Writes one of them.
            ready: Texts that are there already; they stand before what ``write`` gives.
        """
        super().__init__(ready or {})
        self._names, self._write, self._words = names, write, words()

    def __missing__(self, name: str) -> str:
        """Write a text.

        Raises:
            KeyError: There is none of this name.
        """
        if name not in self._names:
            raise KeyError(name)
        if words() is self._words:
            text = self._write(name)
        else:
            with speaking(self._words):
                text = self._write(name)
        self[name] = text
        return text

    def _all(self) -> dict[str, str]:
        written = dict(zip(super().keys(), super().values(), strict=True))
        return written | {name: self[name] for name in self._names if name not in written}

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or name in self._names

    def keys(self):  # type: ignore[no-untyped-def,override]  # noqa: ANN201 - of a plain one
        return self._all().keys()

    def values(self):  # type: ignore[no-untyped-def,override]  # noqa: ANN201 - of a plain one
        return self._all().values()

    def items(self):  # type: ignore[no-untyped-def,override]  # noqa: ANN201 - of a plain one
        return self._all().items()

    @overload
    def get(self, name: str, other: None = None, /) -> str | None: ...
    @overload
    def get(self, name: str, other: str, /) -> str: ...
    @overload
    def get(self, name: str, other: _T, /) -> str | _T: ...
    def get(self, name: str, other: object = None, /) -> object:
        """Give a text, or something else where there is none of this name."""
        return self[name] if name in self else other
