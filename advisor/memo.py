"""Results kept by the identity of their inputs.

Shapes hold plain mappings and so cannot be hashed, yet thousands of what-ifs share them.
Every entry holds its inputs, so an identity cannot be reused while the entry lives.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import wraps
from types import FunctionType
from typing import Any, Generic, TypeVar, TypeVarTuple
from weakref import WeakSet

from msgspec import Raw, json

_In = TypeVarTuple("_In")
_Out = TypeVar("_Out")
_Key = TypeVar("_Key", bound=Hashable)
_Kind = TypeVar("_Kind")

_MOST_ENTRIES = 2_048
_tables: list[dict[Any, Any]] = []
_generations: WeakSet[Kept[Any, Any]] = WeakSet()


def table() -> dict[Any, Any]:
    """Make a table that is emptied when everything is forgotten."""
    made: dict[Any, Any] = {}
    _tables.append(made)
    return made


def forget() -> None:
    """Forget every result: what belongs to knowledge that is gone must not outlive it."""
    for made in _tables:
        made.clear()
    for kept in _generations:
        kept.clear()


def by_identity(make: Callable[[*_In], _Out]) -> Callable[[*_In], _Out]:
    """Remember what ``make`` gave for the very same objects; positional arguments only."""
    return by_identity_up_to(_MOST_ENTRIES)(make)


def by_identity_up_to(
    most: int,
) -> Callable[[Callable[[*_In], _Out]], Callable[[*_In], _Out]]:
    """Like ``by_identity``, with room for ``most`` results; all are dropped when it is full."""

    def remembering(make: Callable[[*_In], _Out]) -> Callable[[*_In], _Out]:
        kept: dict[object, tuple[tuple[*_In], _Out]] = table()

        def made(key: object, inputs: tuple[*_In]) -> _Out:
            if len(kept) >= most:
                kept.clear()
            found = kept[key] = (inputs, make(*inputs))
            return found[1]

        def of_one(one: object) -> _Out:
            key = id(one)
            found = kept.get(key)
            return found[1] if found else made(key, (one,))  # type: ignore[arg-type]

        def of_four(one: object, two: object, three: object, four: object) -> _Out:
            key = (id(one), id(two), id(three), id(four))
            found = kept.get(key)
            return found[1] if found else made(key, (one, two, three, four))  # type: ignore[arg-type]

        def of_any(*inputs: *_In) -> _Out:
            key = (*map(id, inputs),)
            found = kept.get(key)
            return found[1] if found else made(key, inputs)

        quick = {1: of_one, 4: of_four}.get(_inputs_of(make), of_any)
        return wraps(make)(quick)  # type: ignore[arg-type, return-value]

    return remembering


def _inputs_of(make: Callable[..., object]) -> int:
    """How many inputs a function takes: with their key written out they are found sooner."""
    return make.__code__.co_argcount if isinstance(make, FunctionType) else 0


class Kept(Generic[_Key, _Out]):
    """Results by key, up to twice ``most``: what was not asked for lately goes first.

    Two generations: a full one becomes the old one, and what is found there becomes new again.
    """

    __slots__ = ("__weakref__", "_most", "_new", "_old")

    def __init__(self, most: int) -> None:
        self._most = most
        self._new: dict[_Key, _Out] = {}
        self._old: dict[_Key, _Out] = {}
        _generations.add(self)

    def __len__(self) -> int:
        """How many results are kept, those kept twice counted twice."""
        return len(self._new) + len(self._old)

    def clear(self) -> None:
        """Forget every result."""
        self._new, self._old = {}, {}

    def get(self, key: _Key) -> _Out | None:
        """Give what is kept, or None."""
        found = self._new.get(key)
        if found is None:
            found = self._old.get(key)
            if found is not None:
                self.put(key, found)
        return found

    def put(self, key: _Key, result: _Out) -> None:
        """Keep a result."""
        if len(self._new) >= self._most:
            self._old, self._new = self._new, {}
        self._new[key] = result


@by_identity  # 1.15 of an advice, 2.0 of reports
def decoded(stored: Raw | None, kind: type[_Kind]) -> _Kind | None:
    """Read what is kept as JSON when it is first asked for; None where there is none."""
    return None if stored is None else json.decode(stored, type=kind)
