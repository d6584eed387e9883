"""What a site is about: cards, models and the setups of each pair, from the index of a batch."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from msgspec.structs import asdict

from advisor.bulk.batch.formats import folder_names, form_of, is_name
from advisor.bulk.batch.manifest import Batch, Entry, document_of, index_entries
from advisor.bulk.batch.store import ERRORS, INDEX
from advisor.bulk.site.page import STATES, Site
from advisor.errors import RequestError
from advisor.units import counted

if TYPE_CHECKING:
    from advisor.advice.configuration import GpuDoc, ModelDoc
    from advisor.advice.document import Advice


_RUNNING = frozenset(STATES[:2])
Setting = tuple[tuple[str, object], ...]
"""A request without its card and model."""


class Setup(Struct, frozen=True):
    """One scenario of a pair: what is asked, the verdict, and where its document lies."""

    order: int
    """Place in the index."""
    id: str
    card: str
    model: str
    setting: Setting
    """The request without card and model."""
    precision: str
    context_tokens: int
    framework: str
    state: str
    required_bytes: int
    usable_bytes: int | None
    headroom_bytes: int | None
    deficit_bytes: int | None
    speed: tuple[float, float, float] | None
    """Tokens per second: estimate, low, high."""
    advice: str
    place: tuple[str, int, int]
    """File, offset and length of the document."""
    bits: float = 0.0
    """Bits per weight, 0 where unknown."""

    @property
    def runs(self) -> bool:
        """Whether it fits, tightly or well."""
        return self.state in _RUNNING


class Subject(Struct, frozen=True):
    """A card or a model as the site names it."""

    key: str
    name: str
    slug: str
    group: str
    """The vendor of a card, the family of a model."""
    size: float
    """Bytes of memory of a card, parameters of a model; 0 where unknown."""
    known: Mapping[str, Any]
    """Its figures, as its documents give them."""


class Catalogue(Struct):
    """Everything of a batch that pages show, documents aside."""

    cards: list[Subject]
    models: list[Subject]
    pairs: Mapping[tuple[str, str], list[Setup]]
    """By the keys of card and model, in the order of the index."""
    settings: list[Setting]
    length: str
    reports: int = 0
    best: dict[tuple[str, str], Setup] = field(default_factory=dict)
    """The setup that the matrix shows."""


def read_catalogue(batch: Batch) -> Catalogue:
    """Read the index of a batch.

    Raises:
        RequestError: The batch is not finished, is damaged, or holds no documents.
    """
    if not form_of("jsonl", batch.formats):
        hint = "Make the batch with --formats jsonl (and any others)."
        raise RequestError(f"'{batch.root}' holds no result documents", hint=hint)
    pairs: dict[tuple[str, str], list[Setup]] = {}
    seen: set[str] = set()
    firsts = _Firsts(batch)
    for order, entry in enumerate(index_entries(batch.root, INDEX)):
        try:
            setup = _setup(order, entry, firsts)
        except (LookupError, TypeError, AttributeError, ValueError, OSError) as bad:
            raise _damaged(batch, order, bad) from None
        if setup.id not in seen:
            seen.add(setup.id)
            pairs.setdefault((setup.card, setup.model), []).append(setup)
    if not pairs:
        failed = (batch.root / ERRORS).is_file()
        hint = f"See its {ERRORS}." if failed else "Run 'advisor audit'."
        raise RequestError(f"'{batch.root}' holds no report", hint=hint)
    settings = dict.fromkeys(setup.setting for group in pairs.values() for setup in group)
    return Catalogue(
        cards=_ordered(firsts.cards.values()),
        models=_ordered(firsts.models.values()),
        pairs=pairs,
        settings=list(settings),
        length=str(batch.manifest["length"]),
        reports=len(seen),
        best={key: best_of(group) for key, group in pairs.items()},
    )


def _damaged(batch: Batch, order: int, bad: Exception) -> RequestError:
    where = f"{batch.root / INDEX}:{order + 1}"
    said = f"{type(bad).__name__} {bad}".strip()
    return RequestError(f"{where}: cannot be used ({said})", hint="Run 'advisor audit'.")


def best_of(setups: Iterable[Setup]) -> Setup:
    """Choose what a matrix shows of a pair.

    The best verdict; of those that run the largest format, then the longest context; of those
    that do not, the one that needs least.
    """
    return min(setups, key=_rank)


def _rank(setup: Setup) -> tuple[float, ...]:
    state = STATES.index(setup.state)
    if setup.runs:
        return (state, -setup.bits, -setup.context_tokens, setup.order)
    return (state, setup.required_bytes, setup.order)


def _ordered(subjects: Iterable[Subject]) -> list[Subject]:
    """Cards by vendor and memory, models by family and size; the slugs are told apart."""
    found = sorted(subjects, key=lambda s: (s.group.casefold(), s.size, s.name.casefold(), s.key))
    slugs = folder_names([one.key for one in found])
    return [
        Subject(one.key, one.name, slugs[one.key], one.group, one.size, one.known) for one in found
    ]


class _Firsts(Struct):
    """Figures that every document of a card, model or format repeats, read once each."""

    batch: Batch
    cards: dict[str, Subject] = field(default_factory=dict)
    models: dict[str, Subject] = field(default_factory=dict)
    bits: dict[tuple[str, str], float] = field(default_factory=dict)
    settings: dict[Setting, Setting] = field(default_factory=dict)

    def setting(self, request: Mapping[str, object]) -> Setting:
        """Give the rest of a request, the same object for equal ones."""
        key = tuple(sorted(request.items()))
        return self.settings.setdefault(key, key)

    def note(self, card: str, model: str, precision: str, entry: Entry) -> float:
        """Read the document where something of it is new; gives the bits per weight."""
        key = (model, precision)
        if card in self.cards and model in self.models and key in self.bits:
            return self.bits[key]
        doc = document_of(self.batch.root, entry)
        self.cards.setdefault(card, _card(card, doc))
        self.models.setdefault(model, _model(model, doc))
        return self.bits.setdefault(key, doc.memory.bits_per_weight or 0.0)


def _card(key: str, doc: Advice) -> Subject:
    gpu: GpuDoc | None = doc.scenario.gpu
    if gpu is None:
        raise ValueError("a report without a card")
    several = bool(doc.scenario.cards)
    name = key if several or key.casefold() != gpu.name.casefold() else gpu.name
    return Subject(key, name, "", gpu.vendor, float(gpu.vram_bytes or 0), asdict(gpu))


def _model(key: str, doc: Advice) -> Subject:
    model: ModelDoc = doc.scenario.model
    return Subject(key, model.name, "", model.family, float(model.parameters), asdict(model))


def _setup(order: int, entry: Entry, firsts: _Firsts) -> Setup:
    request = dict(entry["request"])
    card = sys.intern(str(request.pop("gpu", entry["gpu"])))
    model = sys.intern(str(request.pop("model", None) or request.pop("config", entry["model"])))
    precision = sys.intern(str(entry["precision"]))
    place, speed = entry["files"]["jsonl"], entry["decode_tok_s"]
    if not is_name(entry["id"]):
        raise ValueError(f"'{entry['id']}' is no name of a report")
    if entry["state"] not in STATES:
        raise ValueError(f"'{entry['state']}' is no verdict")
    return Setup(
        order=order,
        id=entry["id"],
        card=card,
        model=model,
        setting=firsts.setting(request),
        precision=precision,
        context_tokens=int(entry["context_tokens"]),
        framework=sys.intern(str(entry["framework"])),
        state=sys.intern(str(entry["state"])),
        required_bytes=int(entry["required_bytes"]),
        usable_bytes=entry["usable_bytes"],
        headroom_bytes=entry["headroom_bytes"],
        deficit_bytes=entry["deficit_bytes"],
        speed=speed and (speed["estimate"], speed["low"], speed["high"]),
        advice=sys.intern(str(entry["first"]["title"])) if entry["first"] else "",
        place=(sys.intern(str(place["path"])), int(place["offset"]), int(place["bytes"])),
        bits=firsts.note(card, model, precision, entry),
    )


_ALL_PAIRS = 12
"""So many cards are compared each with each."""
_NEXT = 2

Couple = tuple[Subject, Subject, str]
"""Two cards and the path of the page that compares them."""


def couples(cards: Sequence[Subject]) -> list[Couple]:
    """Pair cards: all of them, or neighbours in memory of the same vendor and of any."""
    ordered = sorted(cards, key=lambda one: (one.size, one.name.casefold(), one.key))
    if len(ordered) <= _ALL_PAIRS:
        chosen = {(a.key, b.key): (a, b) for a, b in combinations(ordered, 2)}
    else:
        chosen = {}
        groups = [[one for one in ordered if one.group == name] for name in _groups(ordered)]
        for row in (ordered, *groups):
            for step in range(1, _NEXT + 1):
                near = zip(row, row[step:], strict=False)
                chosen |= {(a.key, b.key): (a, b) for a, b in near}
    return [(a, b, f"compare/{a.slug}--{b.slug}.html") for a, b in chosen.values()]


def _groups(cards: Sequence[Subject]) -> list[str]:
    return sorted({one.group for one in cards})


def couples_by_card(cards: Sequence[Subject]) -> dict[str, list[Couple]]:
    """Sort the couples by each of their cards."""
    found: dict[str, list[Couple]] = {}
    for couple in couples(cards):
        for one in couple[:2]:
            found.setdefault(one.key, []).append(couple)
    return found


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
