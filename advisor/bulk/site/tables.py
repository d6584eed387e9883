"""Pages with one long table: all cards, all models, one card, one model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from advisor.bulk.batch.shard import File
from advisor.bulk.site.catalogue import Catalogue, Setup, Subject
from advisor.bulk.site.neighbours import Couple, couples_by_card
from advisor.bulk.site.page import Site
from advisor.bulk.site.parts import in_parts, numbered, pager, part_text
from advisor.bulk.site.words import Row, facts, setup_row, size_text, size_value
from advisor.report import figures as f
from advisor.units import GIB, counted

_MEMORY_GIB = (8, 12, 16, 24, 32, 48, 80, 128)
_BILLIONS = (1, 3, 7, 13, 30, 70, 200)
_GIGA = 1e9
_MOST_COMPARED = 8


class Kind(Struct, frozen=True):
    """Cards or models, where pages for both are alike."""

    word: str
    folder: str
    all_page: str
    section: str
    title: str


CARD = Kind("card", "card", "cards.html", "cards", "Cards")
MODEL = Kind("model", "model", "models.html", "models", "Models")


class Shown(Struct, frozen=True):
    """What pages are made from: the catalogue, and the shown setups by card and by model."""

    site: Site
    catalogue: Catalogue
    by_card: Mapping[str, list[Setup]]
    by_model: Mapping[str, list[Setup]]
    cards: Mapping[str, Subject]
    models: Mapping[str, Subject]
    couples: Mapping[str, list[Couple]]

    @classmethod
    def of(cls, site: Site, catalogue: Catalogue) -> Shown:
        """Sort the shown setups."""
        by_card: dict[str, list[Setup]] = {}
        by_model: dict[str, list[Setup]] = {}
        for (card, model), setup in catalogue.best.items():
            by_card.setdefault(card, []).append(setup)
            by_model.setdefault(model, []).append(setup)
        cards = {one.key: one for one in catalogue.cards}
        models = {one.key: one for one in catalogue.models}
        couples = couples_by_card(catalogue.cards)
        return cls(site, catalogue, by_card, by_model, cards, models, couples)

    def of_kind(self, kind: Kind) -> list[Subject]:
        """Give all cards, or all models."""
        return self.catalogue.cards if kind is CARD else self.catalogue.models

    def setups(self, kind: Kind, subject: Subject) -> list[Setup]:
        """Give the shown setup of every pair of a card or model."""
        found = self.by_card if kind is CARD else self.by_model
        return found[subject.key]

    def pair_path(self, setup: Setup) -> str:
        """Name the page of a pair, from the folder of the site."""
        return f"pair/{self.models[setup.model].slug}/{self.cards[setup.card].slug}.html"

    def counts(self) -> dict[str, object]:
        """Say how much there is."""
        return {
            "cards_count": counted(len(self.cards), "card"),
            "models_count": counted(len(self.models), "model"),
            "reports_count": counted(self.catalogue.reports, "report"),
        }


def sizes_for(kind: Kind, subjects: Sequence[Subject]) -> list[Row]:
    """Give the steps of the filter by memory or by parameters that tell subjects apart."""
    largest = max((one.size for one in subjects), default=0)
    if kind is CARD:
        known = [n for n in _MEMORY_GIB if n * GIB <= largest]
        return [{"value": str(n), "name": f"{n} GiB"} for n in known]
    known = [n for n in _BILLIONS if n * _GIGA <= largest]
    return [{"value": str(n), "name": f"{n} billion"} for n in known]


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
