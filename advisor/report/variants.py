"""Which of several wordings a report takes: ``{% vary %} ... {% or %} ... {% endvary %}``.

The choice hangs on what was asked (a hash) and on the place in the template alone: the same request
gives the same bytes, and the next one reads differently.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable

SEED = "request.variation"
"""The placeholder that holds the hash."""
PICKS = "picks"
"""The test that a ``vary`` block becomes when its template is parsed."""
_DIGITS, _TURN = 4, 7


def variation(asked: Iterable[object]) -> str:
    """Hash a request into 64 hexadecimal digits."""
    return hashlib.sha256("\0".join(map(str, asked)).encode()).hexdigest()


def turned(seed: str, by: int) -> str:
    """Turn a hash, for the texts of one of several things in a report."""
    start = _TURN * by % len(seed)
    return seed[start:] + seed[:start]


def place(template: str, number: int) -> int:
    """Number the places where wordings vary, over all templates."""
    return zlib.crc32(f"{template}:{number}".encode()) % (64 - _DIGITS + 1)


def picked(seed: str, at: int, choices: int, choice: int) -> bool:
    """Whether a choice, counted from 0, is the one for this request at this place."""
    return int(seed[at : at + _DIGITS], 16) % choices == choice
