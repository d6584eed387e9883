"""Texts that are no names, and names with letters changed: what a reader must bear."""

from __future__ import annotations

import random
import string
from collections.abc import Iterator

from advisor.knowledge import load_knowledge

LETTERS = string.ascii_letters + string.digits + "-_.:/ @()é四\t\"'"


def texts(count: int, rng: random.Random) -> Iterator[str]:
    """Give random strings, every other one made of a known name."""
    known = [n for m in load_knowledge().models.values() for n in (m.name, *m.aliases)]
    for number in range(count):
        if number % 2:
            yield "".join(rng.choices(LETTERS, k=rng.randint(0, 40)))
        else:
            name = list(rng.choice(known))
            for _ in range(rng.randint(1, 4)):
                name.insert(rng.randint(0, len(name)), rng.choice(LETTERS))
            yield "".join(name)
