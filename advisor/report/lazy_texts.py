"""Texts by name, each written when a template first asks for it."""

from __future__ import annotations

from collections.abc import Collection, ItemsView, Iterator, KeysView, ValuesView
from typing import TypeVar, overload

_T = TypeVar("_T")


class Placeholders(dict[str, str]):
    """A dictionary of all its names, in which a text stands once it was asked for.

    A report prints a third of the figures that templates may name. What makes one of these lists
    its ``names`` and gives a text in ``__missing__``.
    """

    __slots__ = ()
    names: Collection[str] = ()

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
