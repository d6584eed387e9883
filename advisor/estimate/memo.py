"""Results kept by the identity of their inputs.

Shapes hold plain mappings and so cannot be hashed, yet thousands of what-ifs share them.
Every entry holds its inputs, so an identity cannot be reused while the entry lives.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, TypeVarTuple

_In = TypeVarTuple("_In")
_Out = TypeVar("_Out")

_MOST_ENTRIES = 2_048


def by_identity(make: Callable[[*_In], _Out]) -> Callable[[*_In], _Out]:
    """Remember what ``make`` gave for the very same objects; positional arguments only."""
    return by_identity_up_to(_MOST_ENTRIES)(make)


def by_identity_up_to(
    most: int,
) -> Callable[[Callable[[*_In], _Out]], Callable[[*_In], _Out]]:
    """Like ``by_identity``, with room for ``most`` results; all are dropped when it is full."""

    def remembering(make: Callable[[*_In], _Out]) -> Callable[[*_In], _Out]:
        kept: dict[tuple[int, ...], tuple[tuple[*_In], _Out]] = {}

        def remembered(*inputs: *_In) -> _Out:
            key = tuple(map(id, inputs))
            found = kept.get(key)
            if found is None:
                if len(kept) >= most:
                    kept.clear()
                found = (inputs, make(*inputs))
                kept[key] = found
            return found[1]

        return remembered

    return remembering
