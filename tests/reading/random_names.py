"""Texts that are no names, and names with letters changed: what a reader must bear."""

from __future__ import annotations

import random
import string
from collections.abc import Callable, Iterator

from advisor.knowledge import load_knowledge

LETTERS = string.ascii_letters + string.digits + "-_.:/ @()é四\t\"'"
LOOK_ALIKES = str.maketrans("oOlIaeB8", "0\u041e1l\u0430\u0435\u0412\uff18")
"""Letters and digits that look like others: Cyrillic, full width."""
HIDDEN = "\x00\x07\x1b\x7f\u200b\u200d\u202e\ufeff\u0301\ud800\n\r\f\u2028"
"""Control characters, spaces without width, a lone surrogate, marks without a letter."""
BESIDE = ("GGUF", "q4_k_m", "awq", "4bit", "8b", "70b", "a3b", "v2", "2507", "instruct", "3.1", ":")


def texts(count: int, rng: random.Random) -> Iterator[str]:
    """Give random strings: letters, changed names, shuffled words, look-alikes, hidden letters."""
    known = [n for m in load_knowledge().models.values() for n in (m.name, *m.aliases)]
    words = sorted({word for name in known for word in name.split("-")})

    def letters() -> str:
        return "".join(rng.choices(LETTERS, k=rng.randint(0, 40)))

    def changed(more: str = LETTERS) -> str:
        name = list(rng.choice(known))
        for _ in range(rng.randint(1, 4)):
            name.insert(rng.randint(0, len(name)), rng.choice(more))
        return "".join(name)

    def shuffled() -> str:
        some = rng.choices(words, k=rng.randint(1, 4)) + rng.choices(BESIDE, k=rng.randint(0, 3))
        return rng.choice(" -_/:").join(rng.sample(some, len(some)))

    kinds: tuple[Callable[[], str], ...] = (
        letters,
        changed,
        shuffled,
        lambda: rng.choice(known).translate(LOOK_ALIKES),
        lambda: changed(HIDDEN),
    )
    for number in range(count):
        yield kinds[number % len(kinds)]()
