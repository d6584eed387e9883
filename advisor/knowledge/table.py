"""Tables whose records become dataclasses when they are first looked at."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

T = TypeVar("T")


class Table(Mapping[str, T]):
    """Name -> record, in file order; equal names give the same object."""

    __slots__ = ("_build", "_built", "_stored")

    def __init__(self, stored: Mapping[str, object], build: Callable[..., T]) -> None:
        """Hold the stored records: JSON texts or mappings of the dataclass's fields."""
        self._stored = stored
        self._build = build
        self._built: dict[str, T] = {}

    def __getitem__(self, name: str) -> T:
        found = self._built.get(name)
        if found is None:
            found = self._built[name] = self._build(**_fields(self._stored[name]))
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._stored)

    def __len__(self) -> int:
        return len(self._stored)

    def __contains__(self, name: object) -> bool:
        return name in self._stored


def _fields(stored: object) -> Mapping[str, object]:
    raw = json.loads(stored) if isinstance(stored, str) else stored
    assert isinstance(raw, Mapping)
    return {key: value if key == "config" else _frozen(value) for key, value in raw.items()}


def _frozen(value: object) -> object:
    if isinstance(value, list):
        return tuple(_frozen(item) for item in value)
    if isinstance(value, dict):
        return {key: _frozen(item) for key, item in value.items()}
    return value
