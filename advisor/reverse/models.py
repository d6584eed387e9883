"""``advisor models-for``: the best models for a card."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from advisor.advice.request_warnings import card_warnings
from advisor.errors import RequestError, UserError, raise_problems
from advisor.knowledge.cards import check_beside
from advisor.models.model import Model
from advisor.models.resolution import model_from_record
from advisor.reverse.answers import Cause, Found, ascending, counted, descending, row_of
from advisor.reverse.criteria import Reader, Settings, read_wish
from advisor.reverse.search import Answer, Search
from advisor.scenario.resolve import cards_asked
from advisor.scenario.settings import Request

if TYPE_CHECKING:
    from advisor.knowledge.types import Framework, Gpu, Knowledge, ModelRecord

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
) -> tuple[Gpu, Found]:
    """Find the models that run on a card, the best first.

    Args:
        gpu: The card, as ``--gpu`` takes it.
        settings: How they are to run.
        wanted: Which models are asked for.
        knowledge: The knowledge base.
        limit: Most models given; None: all.
        all_formats: Whether every format that fits has a row of its own.

    Raises:
        UserError: Names or numbers are wrong; all of them at once.
    """
    reader = Reader()
    card = reader.attempt(lambda: _one_kind(gpu, settings.gpus, knowledge))
    wanted = _checked(wanted, knowledge, reader)
    wish = read_wish(settings, knowledge, reader)
    if card and wish and wish.framework and card.vendor not in wish.framework.vendors:
        reader.errors.append(_wrong_vendor(wish.framework, card))
    raise_problems(reader.errors)
    assert card
    assert wish
    search = Search(knowledge, wish)
    tried = [_tried(search, card, wanted, record) for record in knowledge.models.values()]
    answers = [found for found in tried if isinstance(found, Answer)]
    answers.sort(key=lambda answer: _order(answer, search))
    causes = [found for found in tried if not isinstance(found, Answer)]
    shown: Sequence[Answer] = answers[:limit]
    if all_formats:
        shown = [each for best in shown for each in _formats(search, card, best)]
    named = card.name if knowledge.gpus.get(card.name) == card else gpu
    rows = [row_of(a, wish, named, a.scenario.model.name, knowledge) for a in shown]
    said = tuple(card_warnings(knowledge, gpu, card))
    return card, Found(wish, rows, len(answers), len(tried), counted(causes), warnings=said)


def _wrong_vendor(framework: Framework, card: Gpu) -> RequestError:
    return RequestError(
        f"{framework.name} does not run on {card.vendor} cards",
        hint=f"It runs on: {', '.join(framework.vendors)}.",
    )


def _one_kind(text: str, count: int | None, knowledge: Knowledge) -> Gpu:
    cards = cards_asked(Request(gpu=text), knowledge)
    if cards.counted:
        raise RequestError(
            f"'{text}' names several cards", hint="Name one card, and how many with --gpus."
        )
    check_beside([cards.gpu] * (2 if (count or 1) > 1 else 1))
    return cards.gpu


def _checked(wanted: ModelFilter, knowledge: Knowledge, reader: Reader) -> ModelFilter:
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


def _tried(search: Search, card: Gpu, wanted: ModelFilter, record: ModelRecord) -> Answer | Cause:
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
    if not _is_of_size(model, wanted):
        return "filtered"
    trained, context = model.trained_context_tokens, search.wish.request.context
    if trained and context and context > trained:
        return "short_training"
    return search.best(card, search.wish.gpus, model, split=search.wish.may_split)


def _is_of_size(model: Model, wanted: ModelFilter) -> bool:
    least, most = wanted.min_parameters or 0.0, wanted.max_parameters
    return model.parameters >= least and (most is None or model.parameters <= most)


def _formats(search: Search, card: Gpu, best: Answer) -> Iterator[Answer]:
    """Give every format of a model that fits, the best first."""
    yield best
    for other in search.every(card, search.wish.gpus, best.scenario.model):
        if other.scenario.precision is not best.scenario.precision:
            yield other


def _order(answer: Answer, search: Search) -> tuple[object, ...]:
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
