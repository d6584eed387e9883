"""Tables whose records are made when they are first looked at."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

from msgspec import convert, json

T = TypeVar("T")


class Table(Mapping[str, T]):
    """Name -> record, in file order; equal names give the same object."""

    __slots__ = ("_built", "_decoder", "_kind", "_stored")

    def __init__(self, stored: Mapping[str, object], kind: type[T]) -> None:
        """Hold the stored records of one type: JSON texts or mappings of its fields."""
        self._stored = stored
        self._kind = kind
        self._decoder: json.Decoder[T] | None = None
        self._built: dict[str, T] = {}

    def __getitem__(self, name: str) -> T:
        found = self._built.get(name)
        if found is None:
            found = self._built[name] = self._made(self._stored[name])
        return found

    def _made(self, stored: object) -> T:
        if not isinstance(stored, str):
            return convert(stored, self._kind)
        if self._decoder is None:
            self._decoder = json.Decoder(self._kind)
        return self._decoder.decode(stored)

    def __iter__(self) -> Iterator[str]:
        return iter(self._stored)

    def __len__(self) -> int:
        return len(self._stored)

    def __contains__(self, name: object) -> bool:
        return name in self._stored
