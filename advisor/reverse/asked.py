"""The settings of a reverse question that no request has, each declared once.

Words that a question looks up (``purpose``, ``sort`` ...) are taken as texts here; an unknown one
is refused with the nearest by the question itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from advisor.errors import RequestError, UserError, raise_problems
from advisor.knowledge.merit import USES
from advisor.report import figures as f
from advisor.report.figures import wrapped
from advisor.report.views import escaped
from advisor.reverse.answers import Reader, Settings
from advisor.reverse.cards import FORMS, SORTS
from advisor.reverse.view import (
    Column,
    caches,
    card_columns,
    cards_named,
    frameworks,
    lines,
    marked,
    model_columns,
    narrowed,
    whose,
    writes,
)
from advisor.reverse.words import left_out_words, ranking_words
from advisor.scenario.resolve import DEFAULT_CONTEXT_TOKENS, default_context
from advisor.scenario.settings import Setting, out_of_bounds, request_from, typed_value
from advisor.suggest import did_you_mean
from advisor.units import plain

if TYPE_CHECKING:
    from advisor.knowledge.catalogue import Cards
    from advisor.knowledge.types import Knowledge
    from advisor.models.stored_tensors import Model
    from advisor.reverse.answers import Cause, Found

_MOST = 1e12


class Wanted(Setting, frozen=True):
    """A setting that may take several values."""

    several: bool = False


_BOTH = (
    Wanted(
        "Weight formats to be tried: Q4_K_M, AWQ, INT4 ...",
        name="precisions", several=True, default="all formats with a measured loss",
    ),
    Wanted(
        f"What the model is for: {', '.join(USES)}. Sets the context and speed that suffice.",
        name="purpose",
    ),
    Wanted(
        "What counts: quality, speed or balanced.",
        name="prefer", default="quality for models, balanced for cards",
    ),
    Wanted(
        "Tokens/s of one sequence, at least.",
        name="min_speed", kind="number", least=0, most=_MOST, unit="tokens/s",
    ),
    Wanted(
        "Perplexity increase of the weight format over FP16, at most.",
        name="max_loss", kind="number", least=0, most=_MOST, unit="%", default="12",
    ),
    Wanted("Take formats whose loss nobody measured too.", name="unmeasured", kind="switch"),
    Wanted(
        "Most rows, or all.",
        name="limit", kind="count or all", most=100_000, default="10",
    ),
)  # fmt: skip
_MODELS = (
    Wanted("A row for every format that fits.", name="all_formats", kind="switch"),
    Wanted("Only this model family.", name="family"),
    Wanted("Only models of these licences: apache-2.0, mit ...", name="licences", several=True),
)
_CARDS = (
    Wanted(f"Order of the cards: {', '.join(SORTS)}.", name="sort", default="price"),
    Wanted("Only cards of this vendor.", name="vendor"),
    Wanted(f"Kinds of card: {', '.join(FORMS)}.", name="forms", several=True),
    Wanted(
        "Launch price of all cards together, at most.",
        name="max_price_usd", kind="number", least=0, most=_MOST, unit="US dollars",
    ),
)  # fmt: skip
WANTED: Mapping[str, Mapping[str, Wanted]] = {
    "models-for": {one.name: one for one in (*_BOTH, *_MODELS)},
    "gpus-for": {one.name: one for one in (*_BOTH, *_CARDS)},
}
"""Question -> what it takes besides the settings of a request, by name."""


def read_wanted(question: str, given: Mapping[str, object]) -> dict[str, object]:
    """Read the plain values of a question's own settings; ``None`` means not stated.

    Raises:
        UserError: An unknown name, a value of the wrong kind or out of bounds; all of them.
    """
    declared, read, problems = WANTED[question], dict[str, object](), list[UserError]()
    for name, value in given.items():
        try:
            if value is not None:
                read[name] = _value(declared[name], value)
        except KeyError:
            hint = did_you_mean(name, declared) or f"Known: {', '.join(declared)}."
            problems.append(RequestError(f"unknown key '{name}'", hint=hint))
        except (TypeError, ValueError, OverflowError) as wrong:
            problems.append(RequestError(f"{name}: {wrong}"))
    bounded = (out_of_bounds(declared[k], v) for k, v in read.items() if isinstance(v, int | float))
    raise_problems([*problems, *filter(None, bounded)])
    return read


def _value(setting: Wanted, value: object) -> object:
    if not setting.several:
        return typed_value(setting, value)
    if not isinstance(value, str) and isinstance(value, Sequence):
        return [typed_value(setting, one) for one in value]
    raise TypeError(f"'{value}' is not a list of names")


class Wishes:
    """A reverse question taken apart: its subject, its own settings, those of a request."""

    def __init__(
        self,
        question: str,
        own: Mapping[str, object],
        settings: Mapping[str, object],
        **subject: object,
    ) -> None:
        """Read them.

        Raises:
            UserError: A name, a kind or a bound is wrong; all of them.
        """
        stated = {name: value for name, value in settings.items() if value is not None}
        named = {name: value for name, value in stated.items() if name in WANTED[question]}
        rest = {name: value for name, value in stated.items() if name not in named}
        if twice := {"gpu", "model", "precision"} & rest.keys():
            what = "a reverse question takes one card or one model, and formats as precisions=[...]"
            raise RequestError(f"{what}, not {' and '.join(sorted(twice))}")
        reader = Reader()
        read = reader.attempt(lambda: read_wanted(question, {**own, **named}))
        request = reader.attempt(lambda: request_from({**rest, **subject}))
        raise_problems(reader.errors)
        assert request
        self.own: Mapping[str, Any] = read or {}
        self.request = request
        self.subject = request.gpu or request.model or ""
        limit: Any = self.own.get("limit")
        self.limit: int | None = None if limit == "all" else limit

    def settings(self, prefer: str) -> Settings:
        """Put them as the question takes them."""
        own = self.own
        return Settings(
            request=replace(self.request, gpu=None, model=None),
            precisions=own.get("precisions", ()),
            min_speed_tok_s=own.get("min_speed"),
            max_loss_percent=own.get("max_loss"),
            unmeasured=own.get("unmeasured", False),
            prefer=own.get("prefer", prefer),
            use=own.get("purpose"),
        )


_USUAL_CONTEXT = f"{DEFAULT_CONTEXT_TOKENS:,} tokens of context, or the trained length if shorter"
_WIDTH = 80
"""Columns in a pipe; names stay whole whatever they take."""
_UNJUDGED: dict[Cause, str] = {
    "price_unknown": "price left out",
    "power_unknown": "power left out",
    "release_unknown": "age left out",
}
"""Causes for which nobody can say whether a card is among those asked for."""
_BEST = {
    "price": "Cheapest of known launch price",
    "memory": "Smallest",
    "speed": "Fastest",
    "power": "Least power",
}


class Page(Struct, frozen=True):
    """An answer before it is written."""

    head: Sequence[str]
    """Sentences above the table, the first its title."""
    columns: Sequence[Column]
    tail: Sequence[str]
    """Lines below it."""


def models_page(cards: Cards, found: Found, knowledge: Knowledge) -> Page:
    """Lay out the answer to ``models-for``."""
    return _page(_model_head(cards, found, knowledge), model_columns(found), found, knowledge)


def cards_page(model: Model, found: Found, knowledge: Knowledge) -> Page:
    """Lay out the answer to ``gpus-for``."""
    return _page(_card_head(model, found, knowledge), card_columns(found), found, knowledge)


def _page(
    head: Sequence[str], columns: Sequence[Column], found: Found, knowledge: Knowledge
) -> Page:
    return Page(head, marked(columns, found, knowledge), list(_tail(found, knowledge)))


def written_text(page: Page) -> str:
    """Write it for a pipe."""
    return "\n".join(_text_lines(page)) + "\n"


def written_markdown(page: Page) -> str:
    """Write it as Markdown, with every column."""
    title, *more = map(escaped, page.head)
    text = [f"# {title}", *more]
    if rows := list(zip(*(column.cells for column in page.columns), strict=True)):
        names = [column.name for column in page.columns]
        rule = "".join("---:|" if column.right else "---|" for column in page.columns)
        cells = (" | ".join(map(escaped, row)) for row in rows)
        text.append(
            "\n".join([f"| {' | '.join(names)} |", f"|{rule}", *(f"| {c} |" for c in cells)])
        )
    return "\n\n".join([*text, *([escaped(" ".join(page.tail))] if page.tail else [])]) + "\n"


def _model_head(cards: Cards, found: Found, knowledge: Knowledge) -> list[str]:
    card, equal = cards.gpu, not cards.each
    named = f"{cards.count} x {card.name}" if equal and cards.count > 1 else card.name
    each = cards.each or (card,) * cards.count
    size = f.size(sum(gpu.vram_bytes or 0 for gpu in each))
    shown = len({row.answer.scenario.model.name for row in found.rows})
    fit = f"{found.fitting} of {found.tried} models run"
    return [
        f"{named}, {size}: {fit}{_shown(shown, found.fitting)}",
        *_notes(found),
        *_setup(found),
        ranking_words(found, knowledge),
    ]


def _card_head(model: Model, found: Found, knowledge: Knowledge) -> list[str]:
    name, size = plain(model.name), f.billions(model.parameters)
    unknown = {cause: found.left_out.get(cause, 0) for cause in _UNJUDGED}
    fit = f"{found.fitting} of {found.tried - sum(unknown.values())} cards run it"
    fit += "".join(f", {n} of unknown {_UNJUDGED[cause]}" for cause, n in unknown.items() if n)
    return [
        f"{name}, {size} parameters: {fit}{_shown(len(found.rows), found.fitting)}",
        *_notes(found),
        *_setup(found, default_context(model)),
        ranking_words(found, knowledge),
        *_firsts(found),
    ]


def _shown(shown: int, fitting: int) -> str:
    return "" if shown == fitting else f", {shown} shown (--limit all)"


def _setup(found: Found, usual: int | None = None) -> Iterator[str]:
    """Say how everything runs; what differs between rows has a column."""
    wish = found.wish
    context, batch = found.context or usual, wish.request.batch or 1
    parts = [
        f"{context:,} tokens of context" if context else _USUAL_CONTEXT,
        f"{batch} sequences" if batch > 1 else "one sequence",
    ]
    if caches(found) or not found.rows:
        parts.append(f"KV cache {wish.kv_type.name}")
    used = frameworks(found)
    if len(used) == 1:
        parts.append(used[0])
    speed = "; tok/s of one sequence with an empty cache"
    yield f"With {', '.join(parts)}{speed if writes(found) else ''}."


def _notes(found: Found) -> list[str]:
    return [f"Note: {plain(text)}" for text in found.warnings]


def _firsts(found: Found) -> Iterator[str]:
    for name, row in found.best.items():
        scenario = row.answer.scenario
        yield f"{_BEST[name]}: {cards_named(scenario)} with {scenario.precision.name}"


def _tail(found: Found, knowledge: Knowledge) -> Iterator[str]:
    if found.left_out:
        words = "; ".join(f"{count} {why}" for count, why in left_out_words(found))
        total = sum(found.left_out.values())
        yield from wrapped(f"Left out, {total} of {found.tried}: {words}.", _WIDTH)
    yield from whose(found, knowledge)


def _text_lines(page: Page) -> Iterator[str]:
    for line in page.head:
        yield from wrapped(line, _WIDTH)
    yield ""
    if page.columns[0].cells:
        kept, dropped = narrowed(page.columns, _WIDTH)
        yield from lines(kept)
        yield ""
        yield from dropped_words(dropped)
    yield from page.tail


def dropped_words(dropped: Sequence[str]) -> Iterator[str]:
    """Name the columns for which there was no room."""
    if dropped:
        yield from wrapped(f"Not shown: {', '.join(dropped)} (--format csv).", _WIDTH)
