"""Two cards side by side: pages made in advance, and the data for any other two."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from advisor.bulk.batch.shard import File
from advisor.bulk.site.catalogue import Setup, Subject
from advisor.bulk.site.neighbours import Couple, couples
from advisor.bulk.site.page import Site
from advisor.bulk.site.parts import in_parts, numbered, pager, part_text
from advisor.bulk.site.tables import CARD, Shown
from advisor.bulk.site.words import Row, facts, setup_row
from advisor.report import figures as f

_UNKNOWN = "not known"


def versus_pages(shown: Shown) -> Iterator[File]:
    """Make the comparison of every couple of neighbours."""
    for couple in couples(shown.catalogue.cards):
        yield from _versus(shown, couple)


def _versus(shown: Shown, couple: Couple) -> list[File]:
    one, two, path = couple
    both = [{setup.model: setup for setup in shown.setups(CARD, card)} for card in (one, two)]
    rows = [
        {
            "name": model.name,
            "href": f"../model/{model.slug}.html",
            "cells": [_cell(shown, setups.get(model.key)) for setups in both],
        }
        for model in shown.catalogue.models
        if any(model.key in setups for setups in both)
    ]
    common = {
        **_named(shown, "one", one),
        **_named(shown, "two", two),
        "facts": _facts(one, two),
        "all": str(len(rows)),
        "legend": shown.site.legend(),
    }

    def make(part: Sequence[Row], number: int, count: int) -> File:
        name = path.rpartition("/")[2]
        return shown.site.page(
            numbered(path, number),
            "versus",
            common
            | {
                "rows": part,
                "part": part_text(number, count),
                "pager": pager(shown.site, name, number, count),
            },
            section="compare",
            trail=[("Compare", "compare.html"), (f"{one.name} or {two.name}", "")],
        )

    return in_parts(rows, make)


def _named(shown: Shown, which: str, card: Subject) -> dict[str, object]:
    fitting = sum(setup.runs for setup in shown.setups(CARD, card))
    return {
        f"{which}_name": card.name,
        f"{which}_href": f"../card/{card.slug}.html",
        f"{which}_fits": str(fitting),
    }


def _facts(one: Subject, two: Subject) -> list[Row]:
    left, right = dict(facts(one, CARD.word)), dict(facts(two, CARD.word))
    return [
        {"label": label, "one": left.get(label, _UNKNOWN), "two": right.get(label, _UNKNOWN)}
        for label in {**left, **right}
    ]


def _cell(shown: Shown, setup: Setup | None) -> Row:
    if setup is None:
        return {"state": ""}
    return setup_row(setup, shown.site.words) | {"href": f"../{shown.pair_path(setup)}"}


def compare_pages(shown: Shown) -> list[File]:
    """Make the page that leads to every comparison."""
    items = [
        {"name": f"{one.name} or {two.name}", "href": path}
        for one, two, path in couples(shown.catalogue.cards)
    ]
    cards = [{"name": one.name, "slug": one.slug} for one in shown.catalogue.cards]

    def make(part: Sequence[Row], number: int, count: int) -> File:
        context = {
            "items": part,
            "cards": cards,
            "pager": pager(shown.site, "compare.html", number, count),
            **shown.counts(),
        }
        path = numbered("compare.html", number)
        return shown.site.page(path, "compare", context, section="compare")

    return in_parts(items, make)


def card_data(shown: Shown) -> Iterator[File]:
    """Give what the comparison of any two cards reads, a script for each card."""
    for card in shown.catalogue.cards:
        models = {
            shown.models[setup.model].name: _figures(shown.site, setup, shown.pair_path(setup))
            for setup in shown.setups(CARD, card)
        }
        data = {"name": card.name, "facts": facts(card, CARD.word), "models": models}
        yield script(f"data/card-{card.slug}.js", "card", card.slug, data)


def _figures(site: Site, setup: Setup, path: str) -> list[object]:
    words = site.words[setup.state]
    said = f"{f.rate(setup.speed[0])} tok/s" if setup.speed else ""
    speed = round(setup.speed[0], 2) if setup.speed else ""
    row = setup_row(setup, site.words)
    word = f"{words.symbol} {words.word}"
    return [setup.state, word, row["setup"], said, speed, path, words.rank]


def script(path: str, call: str, *values: object) -> File:
    """Write data as a script, since a page opened from a disk cannot read files."""
    given = ",".join(_safe(value) for value in values)
    return File(path, f"ADVISOR.{call}({given});\n".encode("ascii"))


def _safe(value: object) -> str:
    return json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))


def search_data(entries: Sequence[Mapping[str, str]]) -> list[File]:
    """Cut the entries of the search into scripts of the size of a page."""

    def make(part: Sequence[Mapping[str, str]], number: int, _count: int) -> File:
        return script(f"data/search-{number}.js", "add", list(part))

    return in_parts(entries, make)
