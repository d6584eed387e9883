"""Requests drawn from the whole catalogue, and what does not hold of the reports on them."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator

from advisor.advice import Advisor
from advisor.advice.document import Advice, wrong_in
from advisor.errors import UserError
from advisor.knowledge.types import Knowledge
from advisor.report.assembly import document
from advisor.report.pages import render_markdown
from advisor.report.prose import MOST_WORDS
from advisor.scenario.settings import request_from
from tests.readability import read, words

_SOMETIMES = 0.4
_COUNT = re.compile(r"^\dx ")
_HARD = ("framework", "split", "gpu_layers", "kv_cache")
_CHOICES: dict[str, tuple[object, ...]] = {
    "context": (1, 512, 4_096, 32_768, 131_072, 1_000_000),
    "batch": (1, 2, 7, 64, 512),
    "ram": ("8GB", "64GB", "1TB"),
    "gpu_layers": (0, 1, 13, 999),
    "use": ("none", "chat", "coding"),
    "split": ("layer", "row", "none", "tensor"),
    "kv_cache": ("f16", "q8_0", "q4_0"),
}


def requests(knowledge: Knowledge, seed: int) -> Iterator[dict[str, object]]:
    """Draw requests without end; the same for the same seed."""
    rng = random.Random(seed)
    cards, models = list(knowledge.gpus), list(knowledge.models)
    formats, frameworks = list(knowledge.formats), list(knowledge.frameworks)
    while True:
        card = rng.choice(["", "", "2x ", "4x ", "8x "]) + rng.choice(cards)
        card += f" + {rng.choice(cards)}" if rng.random() < _SOMETIMES / 2 else ""
        drawn: dict[str, object] = {"gpu": card, "model": rng.choice(models)}
        drawn["precision"] = rng.choice(formats)
        if rng.random() < _SOMETIMES:
            drawn["framework"] = rng.choice(frameworks)
        drawn |= {k: rng.choice(v) for k, v in _CHOICES.items() if rng.random() < _SOMETIMES / 2}
        yield drawn


def easier(given: dict[str, object]) -> tuple[dict[str, object], ...]:
    """Give a request, then without what is most often refused, step by step."""
    plain = {key: value for key, value in given.items() if key not in _HARD}
    usual = plain | {"precision": "Q4_K_M"}
    alone = usual | {"gpu": _COUNT.sub("", str(given["gpu"])).partition(" + ")[0]}
    return given, plain, usual, alone


def answered(advisor: Advisor, given: dict[str, object]) -> Advice | None:
    """Ask, then without what is most often refused; None where that is refused too."""
    for one in easier(given):
        try:
            return document(advisor.advise(request_from(one)))
        except UserError:
            continue
    return None


def wrong_with(advisor: Advisor, given: dict[str, object], longest: Counter[str]) -> list[str]:
    """List what does not hold of the report on a request; a refused one holds."""
    doc = answered(advisor, given)
    if doc is None:
        longest["refused"] += 1
        return []
    wrong = wrong_in(doc)
    for length, most in MOST_WORDS.items():
        counted = len(words(read(render_markdown(doc, length=length))))
        longest[length] = max(longest[length], counted)
        wrong += [f"{counted} words in a {length} report"] if counted > most else []
    return wrong
