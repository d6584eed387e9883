"""``gpus-for``, the cards that run a model, and ``models-for``, the models that run on a card."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal

from msgspec import Struct
from msgspec.structs import replace

from advisor.advice.preparation import card_warnings, model_warnings
from advisor.errors import RequestError, UserError, raise_problems
from advisor.knowledge.cards import Cards
from advisor.knowledge.catalogue import MAKERS
from advisor.models.resolution import model_from_record, text_alone
from advisor.models.stored_tensors import Model
from advisor.reverse.answers import (
    Answer,
    Cause,
    Found,
    Reader,
    Reason,
    Settings,
    ascending,
    counted,
    descending,
    read_wish,
    row_of,
)
from advisor.reverse.search import Search
from advisor.scenario.asked_model import find_model_named
from advisor.scenario.choices import precision_asked
from advisor.scenario.resolve import cards_asked, default_context
from advisor.scenario.settings import Request

if TYPE_CHECKING:
    from advisor.knowledge.types import Framework, Gpu, Knowledge, ModelRecord
    from advisor.models.stored_tensors import Model


Sort = Literal["price", "memory", "speed", "power"]
SORTS: Sequence[Sort] = ("price", "memory", "speed", "power")
FORMS = ("desktop", "workstation", "laptop", "datacenter", "edge", "unified")
_FORM_OF = {"consumer": "desktop", "mobile": "laptop"}
_MOST_HOPEFUL: Sequence[Reason] = (
    "too_slow",
    "speed_unknown",
    "larger_loss_only",
    "does_not_fit",
    "not_sizable",
    "cannot_run",
)


class CardFilter(Struct, frozen=True):
    """Which cards are asked for; None or empty: all."""

    vendor: str | None = None
    forms: Sequence[str] = ()
    max_price_usd: float | None = None
    """Launch price of all cards together; a card of unknown price is left out."""
    max_power_w: float | None = None
    """Board power of all cards together; a card of unknown power is left out."""
    released_from: str | None = None


def form_of(gpu: Gpu) -> str:
    """Say what kind of machine a card is for."""
    return "unified" if gpu.unified_memory else _FORM_OF.get(gpu.segment, gpu.segment)


def price_usd(gpu: Gpu, gpus: int) -> float | None:
    """Launch price of all cards together, US dollars; None where no source states it."""
    return None if gpu.launch_price_usd is None else gpus * gpu.launch_price_usd


def power_w(gpu: Gpu, gpus: int) -> float | None:
    """Board power of all cards together, W; None where no source states it."""
    return None if gpu.tdp_w is None else gpus * gpu.tdp_w


def gpus_for(
    model: str,
    settings: Settings,
    wanted: CardFilter,
    knowledge: Knowledge,
    *,
    sort: str = "price",
    limit: int | None = None,
) -> tuple[Model, Found]:
    """Find the cards that run a model, each with the fewest of them that do.

    Args:
        model: The model, as ``--model`` takes it.
        settings: How it is to run; ``gpus`` is the most equal cards.
        wanted: Which cards are asked for.
        knowledge: The knowledge base.
        sort: price, memory, speed or power; unknown figures come last.
        limit: Most cards given; None: all.

    Raises:
        UserError: Names or numbers are wrong, all of them at once; or the model cannot be sized.
    """
    reader = Reader()
    known = reader.attempt(lambda: find_model_named(model, knowledge))
    settings = reader.attempt(lambda: _as_stored(settings, known)) or settings
    by = reader.one_of("order", sort, SORTS)
    wanted = _checked(wanted, reader)
    wish = read_wish(settings, knowledge, reader)
    raise_problems(reader.errors)
    assert known
    assert by
    assert wish
    if wish.request.text_only:
        known = text_alone(known)
    search = Search(knowledge, wish)
    tried = [_tried(search, gpu, wanted, known) for gpu in knowledge.gpus.values()]
    answers = [found for found in tried if isinstance(found, Answer)]
    causes = [found for found in tried if not isinstance(found, Answer)]
    if search.error is not None and not answers:
        raise search.error
    answers.sort(key=lambda answer: _order(by, answer))
    rows = [row_of(a, wish, a.gpu.name, model, knowledge) for a in answers[:limit]]
    best = {name: row_of(a, wish, a.gpu.name, model, knowledge) for name, a in _firsts(answers)}
    said = tuple(model_warnings(known, wish.request.context or default_context(known)))
    return known, Found(wish, rows, len(answers), len(tried), counted(causes), by, best, said)


def _as_stored(settings: Settings, model: Model | None) -> Settings:
    """Ask for the format that the model's own files hold, where none is stated."""
    if model is None or settings.precisions or not (model.stored or model.held_format):
        return settings
    return replace(settings, precisions=(precision_asked(Request(), model),))


def _checked(wanted: CardFilter, reader: Reader) -> CardFilter:
    reader.not_below("--max-price", wanted.max_price_usd)
    reader.not_below("--max-power", wanted.max_power_w)
    forms = [reader.one_of("form", text, FORMS) for text in wanted.forms]
    return replace(
        wanted,
        vendor=reader.one_of("vendor", wanted.vendor, tuple(MAKERS)),
        forms=[form for form in forms if form],
    )


def _tried(search: Search, gpu: Gpu, wanted: CardFilter, model: Model) -> Answer | Cause:
    if not _is_kind(gpu, wanted):
        return "filtered"
    if gpu.not_for_sale:
        return "not_for_sale"
    if wanted.released_from and not gpu.released:
        return "release_unknown"
    if wanted.released_from and (gpu.released or "") < wanted.released_from:
        return "filtered"
    if gpu.vram_bytes is None:
        return "memory_unknown"
    if wanted.max_price_usd is not None and gpu.launch_price_usd is None:
        return "price_unknown"
    if wanted.max_power_w is not None and gpu.tdp_w is None:
        return "power_unknown"
    return _fewest(search, gpu, wanted, model)


def _is_kind(gpu: Gpu, wanted: CardFilter) -> bool:
    if wanted.vendor not in {None, gpu.vendor}:
        return False
    return not wanted.forms or form_of(gpu) in wanted.forms


def _fewest(search: Search, gpu: Gpu, wanted: CardFilter, model: Model) -> Answer | Cause:
    """Take the fewest equal cards that run the model, or else one with the help of system RAM."""
    reasons: list[Reason] = []
    counts = _affordable(gpu, wanted, search.wish.gpus)
    for split in (False, True) if search.wish.may_split else (False,):
        for count in counts:
            found = search.best(Cards(gpu, count, (), counted=False), model, split=split)
            if isinstance(found, Answer):
                return found
            reasons.append(found)
    return next((reason for reason in _MOST_HOPEFUL if reason in reasons), "filtered")


def _affordable(gpu: Gpu, wanted: CardFilter, most: int) -> Sequence[int]:
    """List the numbers of cards within price and power; laptops and shared memory have one."""
    return [
        count
        for count in range(1, 2 if gpu.stands_alone else most + 1)
        if not _is_above(price_usd(gpu, count), wanted.max_price_usd)
        and not _is_above(power_w(gpu, count), wanted.max_power_w)
    ]


def _is_above(value: float | None, most: float | None) -> bool:
    return value is not None and most is not None and value > most


def value_of(name: str, answer: Answer) -> float | None:
    """Give the figure that an order goes by, in its base unit; None where it is not known."""
    gpu, gpus = answer.gpu, answer.scenario.gpus
    if name == "price":
        return price_usd(gpu, gpus)
    if name == "power":
        return power_w(gpu, gpus)
    return answer.decode_tok_s if name == "speed" else answer.memory.capacity_bytes


def _order(name: str, answer: Answer) -> tuple[object, ...]:
    """Sort by a figure, then by fewer cards, less memory, more speed, and by name."""
    value = value_of(name, answer)
    return (
        descending(value) if name == "speed" else ascending(value),
        answer.scenario.gpus,
        answer.memory.capacity_bytes,
        descending(answer.decode_tok_s),
        answer.gpu.name,
    )


def _firsts(answers: Sequence[Answer]) -> Iterator[tuple[str, Answer]]:
    """Give the first card of every order, where its figure is known at all."""
    for name in SORTS:
        known = [answer for answer in answers if value_of(name, answer) is not None]
        if known:
            yield name, min(known, key=lambda answer: _order(name, answer))


MODALITIES = ("text", "vision", "audio", "embedding")


class ModelFilter(Struct, frozen=True):
    """Which models are asked for; None: all."""

    family: str | None = None
    modality: str | None = None
    min_parameters: float | None = None
    max_parameters: float | None = None
    released_from: str | None = None
    """ISO date or the beginning of one; a model of unknown date is left out."""


def models_for(
    gpu: str,
    settings: Settings,
    wanted: ModelFilter,
    knowledge: Knowledge,
    *,
    limit: int | None = None,
    all_formats: bool = False,
) -> tuple[Cards, Found]:
    """Find the models that run on a card, the best first.

    Args:
        gpu: The card or the cards of one machine, as ``--gpu`` takes them.
        settings: How they are to run.
        wanted: Which models are asked for.
        knowledge: The knowledge base.
        limit: Most models given; None: all.
        all_formats: Whether every format that fits has a row of its own.

    Raises:
        UserError: Names or numbers are wrong; all of them at once.
    """
    reader = Reader()
    asked = Request(gpu=gpu, gpus=settings.gpus)
    cards = reader.attempt(lambda: cards_asked(asked, knowledge))
    settings = replace(settings, gpus=cards.count) if cards else settings
    wanted = _checked_models(wanted, knowledge, reader)
    wish = read_wish(settings, knowledge, reader)
    if cards and wish and wish.framework and cards.gpu.vendor not in wish.framework.vendors:
        reader.errors.append(_wrong_vendor(wish.framework, cards.gpu))
    raise_problems(reader.errors)
    assert cards
    assert wish
    search = Search(knowledge, wish)
    tried = [_tried_model(search, cards, wanted, record) for record in knowledge.models.values()]
    answers = [found for found in tried if isinstance(found, Answer)]
    answers.sort(key=lambda answer: _merit(answer, search))
    causes = [found for found in tried if not isinstance(found, Answer)]
    shown: Sequence[Answer] = answers[:limit]
    if all_formats:
        shown = [each for best in shown for each in _formats(search, cards, best)]
    named = cards.gpu.name if knowledge.gpus.get(cards.gpu.name) == cards.gpu else gpu
    rows = [row_of(a, wish, named, a.scenario.model.name, knowledge) for a in shown]
    said = cards.read_as or _card_notes(knowledge, gpu, cards)
    return cards, Found(wish, rows, len(answers), len(tried), counted(causes), warnings=said)


def _wrong_vendor(framework: Framework, card: Gpu) -> RequestError:
    return RequestError(
        f"{framework.name} does not run on {card.vendor} cards",
        hint=f"It runs on: {', '.join(framework.vendors)}.",
    )


def _card_notes(knowledge: Knowledge, text: str, cards: Cards) -> tuple[str, ...]:
    kinds = {gpu.name: gpu for gpu in cards.each or (cards.gpu,)}.values()
    return tuple(line for gpu in kinds for line in card_warnings(knowledge, text, gpu))


def _checked_models(wanted: ModelFilter, knowledge: Knowledge, reader: Reader) -> ModelFilter:
    families = sorted({record.family for record in knowledge.models.values()})
    least, most = wanted.min_parameters, wanted.max_parameters
    reader.not_below("--min-params", least)
    reader.not_below("--max-params", most)
    reader.in_order(("--min-params", least), ("--max-params", most))
    return replace(
        wanted,
        family=reader.one_of("model family", wanted.family, families),
        modality=reader.one_of("modality", wanted.modality, MODALITIES),
    )


def _tried_model(
    search: Search, cards: Cards, wanted: ModelFilter, record: ModelRecord
) -> Answer | Cause:
    if wanted.family not in {None, record.family}:
        return "filtered"
    if wanted.modality not in {None, record.modality}:
        return "filtered"
    if wanted.released_from and not record.released:
        return "release_unknown"
    if wanted.released_from and (record.released or "") < wanted.released_from:
        return "filtered"
    try:
        model = model_from_record(record, search.knowledge)
    except UserError:
        return "not_sizable"
    if search.wish.request.text_only:
        model = text_alone(model)
    if not _is_of_size(model, wanted):
        return "filtered"
    trained, context = model.trained_context_tokens, search.wish.request.context
    if trained and context and context > trained:
        return "short_training"
    return search.best(cards, model, split=search.wish.may_split)


def _is_of_size(model: Model, wanted: ModelFilter) -> bool:
    least, most = wanted.min_parameters or 0.0, wanted.max_parameters
    return model.parameters >= least and (most is None or model.parameters <= most)


def _formats(search: Search, cards: Cards, best: Answer) -> Iterator[Answer]:
    """Give every format of a model that fits, the best first."""
    yield best
    for other in search.every(cards, best.scenario.model):
        if other.scenario.precision is not best.scenario.precision:
            yield other


def _merit(answer: Answer, search: Search) -> tuple[object, ...]:
    """More parameters first, then less loss, then the newer; asked for speed, the fastest.

    Models that write come before those for embeddings and speech: their sizes do not compare.
    """
    model, speed = answer.scenario.model, answer.decode_tok_s
    writes = model.modality in {"text", "vision"}
    by_quality = (-model.parameters, ascending(answer.loss_percent), _age(model), model.name)
    if search.wish.prefer == "speed":
        return (not writes, descending(speed), *by_quality)
    if search.wish.prefer == "balanced":
        readable = speed is not None and speed >= search.knowledge.policy["reading_speed"]
        return (not writes, not readable, *by_quality)
    return (not writes, *by_quality)


def _age(model: Model) -> tuple[bool, int]:
    """Sort the newest first and those of unknown date last."""
    day = int((model.released or "0").replace("-", ""))
    return (not day, -day)
