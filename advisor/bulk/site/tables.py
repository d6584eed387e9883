"""Pages with one long table: all cards, all models, one card, one model."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from advisor.bulk.batch.store import File
from advisor.bulk.site.catalogue import CARD, MODEL, Couple, Kind, Setup, Shown, Subject, couples
from advisor.bulk.site.matrix import Row, facts, setup_row, size_text, size_value, sizes_for
from advisor.bulk.site.page import Site, in_parts, numbered, pager, part_text
from advisor.report import figures as f
from advisor.units import rate

_MOST_COMPARED = 8


def list_pages(shown: Shown, kind: Kind) -> list[File]:
    """Make the list of all cards or all models."""
    subjects = shown.of_kind(kind)
    rows = [_list_row(shown, kind, one) for one in subjects]
    common = {
        "kind": kind.word,
        "groups": sorted({one.group for one in subjects}),
        "sizes": sizes_for(kind, subjects),
        **shown.counts(),
    }

    def make(part: Sequence[Row], number: int, count: int) -> File:
        return shown.site.page(
            numbered(kind.all_page, number),
            "list",
            common
            | {
                "rows": part,
                "part": part_text(number, count),
                "pager": pager(shown.site, kind.all_page, number, count),
            },
            section=kind.section,
        )

    return in_parts(rows, make)


def _list_row(shown: Shown, kind: Kind, one: Subject) -> Row:
    setups = shown.setups(kind, one)
    fitting = sum(setup.runs for setup in setups)
    second, value = _second(kind, one)
    return {
        "name": one.name,
        "href": f"{kind.folder}/{one.slug}.html",
        "group": one.group,
        "filter": size_value(one, kind.word),
        "size": size_text(one, kind.word),
        "value": size_value(one, kind.word),
        "second": second,
        "second_value": value,
        "fitting": str(fitting),
        "all": str(len(setups)),
        "share": f"{100 * fitting / len(setups):.1f}".removesuffix(".0"),
    }


def _second(kind: Kind, one: Subject) -> tuple[str, str]:
    """Bandwidth of a card, trained context of a model; as text and as a number."""
    if kind is CARD:
        rate = one.known.get("bandwidth_bytes_s")
        return f.quantity(rate, "GB/s") or "not known", f"{rate or 0:.0f}"
    context = one.known.get("trained_context_tokens")
    return f"{context:,} tokens" if context else "not known", str(context or 0)


def subject_pages(shown: Shown, kind: Kind) -> Iterator[File]:
    """Make the pages of every card or of every model."""
    other = MODEL if kind is CARD else CARD
    for one in shown.of_kind(kind):
        yield from _subject(shown, kind, other, one)


def _subject(shown: Shown, kind: Kind, other: Kind, one: Subject) -> list[File]:
    setups, path = shown.setups(kind, one), f"{kind.folder}/{one.slug}.html"
    others = [_partner(shown, kind, setup) for setup in setups]
    pairs = sorted(zip(others, setups, strict=True), key=lambda pair: _by_subject(*pair))
    rows = [_subject_row(shown, other, *pair) for pair in pairs]
    common = {
        "kind": kind.word,
        "name": one.name,
        "size": size_text(one, kind.word),
        "fitting": str(sum(setup.runs for setup in setups)),
        "all": str(len(setups)),
        "facts": facts(one, kind.word),
        "others": _compared_with(shown, one) if kind is CARD else [],
        "groups": sorted({partner.group for partner in others}),
        "sizes": sizes_for(other, others),
        "states": list(shown.site.words.values()),
        "legend": shown.site.legend(),
    }

    def make(part: Sequence[Row], number: int, count: int) -> File:
        return shown.site.page(
            numbered(path, number),
            "subject",
            common
            | {
                "rows": part,
                "part": part_text(number, count),
                "pager": pager(shown.site, f"{one.slug}.html", number, count),
            },
            section=kind.section,
            trail=[(kind.title, kind.all_page), (one.name, "")],
        )

    return in_parts(rows, make)


def _partner(shown: Shown, kind: Kind, setup: Setup) -> Subject:
    return shown.models[setup.model] if kind is CARD else shown.cards[setup.card]


def _by_subject(one: Subject, setup: Setup) -> tuple[object, ...]:
    return (one.group.casefold(), one.size, one.name.casefold(), setup.order)


def _subject_row(shown: Shown, other: Kind, one: Subject, setup: Setup) -> Row:
    return setup_row(setup, shown.site.words) | {
        "name": one.name,
        "href": f"../{shown.pair_path(setup)}",
        "group": one.group,
        "filter": size_value(one, other.word),
    }


def _compared_with(shown: Shown, one: Subject) -> list[Row]:
    return [
        {"name": f"Compare with {b.name if a.key == one.key else a.name}", "href": f"../{path}"}
        for a, b, path in shown.couples.get(one.key, ())[:_MOST_COMPARED]
    ]


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
    said = f"{rate(setup.speed[0])} tok/s" if setup.speed else ""
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
