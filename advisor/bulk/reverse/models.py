"""``models-for``: the models that run on a card or cards, the best for a use first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal

from msgspec import Struct
from msgspec.structs import replace

from advisor.advice.preparation import card_warnings
from advisor.bulk.reverse import Ranking, context_for, least_context, may_be_of_use
from advisor.bulk.reverse.answers import (
    Answer,
    Cause,
    Found,
    Reader,
    Row,
    Settings,
    Wish,
    counted,
    read_wish,
    row_of,
)
from advisor.bulk.reverse.search import Search
from advisor.errors import RequestError, UserError, raise_problems
from advisor.knowledge.catalogue import Cards, cards_by
from advisor.knowledge.merit import USES, merits
from advisor.models import model_from_record, text_alone
from advisor.models.stored_tensors import Model
from advisor.reading.public_list import PublicModel, exact
from advisor.reading.public_sizing import model_of
from advisor.scenario.host import with_processor
from advisor.scenario.resolve import cards_asked

if TYPE_CHECKING:
    from collections.abc import Callable

    from advisor.knowledge.types import Framework, Knowledge

MODALITIES = ("text", "vision", "audio", "embedding")
_USE_OF = {"embedding": "embedding", "vision": "vision", "audio": None}
"""Modality that was asked for -> the use that is meant where none was stated."""


class ModelFilter(Struct, frozen=True):
    """Which models are asked for; None or empty: all."""

    family: str | None = None
    modality: str | None = None
    min_parameters: float | None = None
    max_parameters: float | None = None
    released_from: str | None = None
    """ISO date or the beginning of one; a model of unknown date is left out."""
    licences: Sequence[str] = ()
    """Licences by their short names; a model of unknown licence is left out."""


class _Candidate(Struct, frozen=True):
    """A model of the catalogue or of the public list, before it is sized."""

    name: str
    family: str
    modality: str
    released: str | None
    licence: str | None
    made: Callable[[], Model]


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

    A ``limit`` of None is all; with ``all_formats`` every format that fits has a row of its own.

    Raises:
        UserError: Names or numbers are wrong; all of them at once.
    """
    reader = Reader()
    asked = with_processor(replace(settings.request, gpu=gpu), knowledge)
    settings = replace(settings, request=replace(asked, gpu=settings.request.gpu))
    cards = reader.attempt(lambda: cards_asked(asked, knowledge))
    wanted = _checked(wanted, knowledge, reader)
    wish = read_wish(_completed(settings, wanted, cards), knowledge, reader)
    if cards and wish and wish.framework and cards.gpu.vendor not in wish.framework.vendors:
        reader.errors.append(_wrong_vendor(wish.framework, cards.gpu.vendor))
    raise_problems(reader.errors)
    assert cards
    assert wish
    searches = _Searches(Ranking(knowledge, wish))
    tried = [_tried(searches, cards, wanted, one) for one in _candidates(knowledge, wish)]
    answers = [found for found in tried if isinstance(found, Answer)]
    answers.sort(key=searches.ranking.key)
    shown: Sequence[Answer] = answers[:limit]
    if all_formats:
        shown = [each for best in shown for each in searches.formats(cards, best)]
    found = Found(
        wish,
        list(_rows(shown, searches.ranking, gpu, cards)),
        len(answers),
        len(tried),
        counted([found for found in tried if not isinstance(found, Answer)]),
        warnings=cards.read_as or _card_notes(knowledge, gpu, cards),
        context=context_for(wish, knowledge.policy),
    )
    return cards, found


def _completed(settings: Settings, wanted: ModelFilter, cards: Cards | None) -> Settings:
    """State how many cards there are, and the use that the kind of model is for."""
    if cards:
        settings = replace(settings, request=replace(settings.request, gpus=cards.count))
    usual = _USE_OF.get(wanted.modality or "", USES[0])
    return replace(settings, use=usual if settings.use is None else settings.use)


def _rows(answers: Sequence[Answer], ranking: Ranking, text: str, cards: Cards) -> Iterator[Row]:
    """Complete the answers that are shown; a card that is no record is called as it was typed."""
    wish, known = ranking.wish, ranking.knowledge
    gpu = cards.gpu.name if known.gpus.get(cards.gpu.name) == cards.gpu else text
    for answer in answers:
        row = row_of(answer, wish, gpu, _called(answer.scenario.model), known)
        yield replace(row, merit=ranking.merit(answer))


def _called(model: Model) -> str:
    """Give the name by which a model is asked for by itself."""
    return model.name if model.origin == "knowledge" else model.hf_id or model.name


def _wrong_vendor(framework: Framework, vendor: str) -> RequestError:
    return RequestError(
        f"{framework.name} does not run on {cards_by(vendor)}",
        hint=f"It runs on: {', '.join(framework.vendors)}.",
    )


def _card_notes(knowledge: Knowledge, text: str, cards: Cards) -> tuple[str, ...]:
    kinds = {gpu.name: gpu for gpu in cards.each or (cards.gpu,)}.values()
    return tuple(line for gpu in kinds for line in card_warnings(knowledge, text, gpu))


def _checked(wanted: ModelFilter, knowledge: Knowledge, reader: Reader) -> ModelFilter:
    records = knowledge.models.values()
    families = sorted({record.family for record in records})
    licences = sorted({record.licence for record in records if record.licence})
    least, most = wanted.min_parameters, wanted.max_parameters
    reader.not_below("--min-params", least)
    reader.not_below("--max-params", most)
    reader.in_order(("--min-params", least), ("--max-params", most))
    named = [reader.one_of("licence", text, licences) for text in wanted.licences]
    return replace(
        wanted,
        family=reader.one_of("model family", wanted.family, families),
        modality=reader.one_of("modality", wanted.modality, MODALITIES),
        licences=[name for name in named if name],
    )


def _candidates(knowledge: Knowledge, wish: Wish) -> Iterator[_Candidate]:
    """Give every record, and what boards name for the use that the public list alone has."""
    for record in knowledge.models.values():
        yield _Candidate(
            record.name,
            record.family,
            record.modality,
            record.released,
            record.licence,
            lambda record=record: model_from_record(record, knowledge),  # type: ignore[misc]
        )
    own = {record.hf_id for record in knowledge.models.values()}
    for name in merits(knowledge).uses.get(wish.use or "", ()):
        listed = exact(name) if "/" in name and name not in own else None
        if listed is None:
            continue
        yield _Candidate(
            listed.hf_id,
            listed.architecture,
            listed.modality,
            listed.release_date or None,
            listed.license or None,
            lambda listed=listed: _listed(listed, knowledge),  # type: ignore[misc]
        )


def _listed(public: PublicModel, knowledge: Knowledge) -> Model:
    """Size a repository; one of which neither list nor architecture tells the layers is refused.

    Raises:
        RequestError: It cannot be sized well enough to be compared.
    """
    model = model_of(public, knowledge)
    if not (model.shape.described or public.num_hidden_layers):
        raise RequestError(f"the layers of {public.hf_id} are not known.")
    return model


_Early = Literal["filtered", "release_unknown", "licence_unknown"]


def _filtered(one: _Candidate, wanted: ModelFilter, wish: Wish) -> _Early | None:
    """Say why a model is not asked for, as far as that is known before it is sized."""
    if wanted.family not in {None, one.family} or wanted.modality not in {None, one.modality}:
        return "filtered"
    if not may_be_of_use(one.modality, wish.use):
        return "filtered"
    if wanted.released_from and not one.released:
        return "release_unknown"
    if wanted.released_from and (one.released or "") < wanted.released_from:
        return "filtered"
    if wanted.licences and not one.licence:
        return "licence_unknown"
    if wanted.licences and one.licence not in wanted.licences:
        return "filtered"
    return None


def _tried(
    searches: _Searches, cards: Cards, wanted: ModelFilter, one: _Candidate
) -> Answer | Cause:
    wish = searches.ranking.wish
    early = _filtered(one, wanted, wish)
    if early:
        return early
    try:
        model = one.made()
    except UserError:
        return "not_sizable"
    if wish.request.text_only:
        model = text_alone(model)
    if not may_be_of_use(model.modality, wish.use):
        return "filtered"
    least, most = wanted.min_parameters or 0.0, wanted.max_parameters
    if model.parameters < least or (most is not None and model.parameters > most):
        return "filtered"
    trained = model.trained_context_tokens
    if trained and least_context(wish, searches.ranking.knowledge.policy) > trained:
        return "short_training"
    return searches.best(cards, model)


class _Searches:
    """Looks for a format that is fast enough and loses little, else for the best that fits."""

    def __init__(self, ranking: Ranking) -> None:
        self.ranking = ranking
        self._plain = Search(ranking.knowledge, ranking.wish)
        self._fast: dict[float, Search] = {}

    def best(self, cards: Cards, model: Model) -> Answer | Cause:
        """Find the best format of a model, or say why there is none."""
        split = self.ranking.wish.may_split
        speed = self.ranking.least_speed(model)
        if speed:
            found = self._at_least(speed).best(cards, model, split=split)
            if isinstance(found, Answer):
                return found
        return self._plain.best(cards, model, split=split)

    def formats(self, cards: Cards, best: Answer) -> Iterator[Answer]:
        """Give every format of a model that fits, the best first."""
        yield best
        for other in self._plain.every(cards, best.scenario.model):
            if other.scenario.precision is not best.scenario.precision:
                yield other

    def _at_least(self, speed: float) -> Search:
        if speed not in self._fast:
            wish, knowledge = self.ranking.wish, self.ranking.knowledge
            gentle = min(wish.max_loss_percent, knowledge.policy["little_loss_percent"])
            fast = replace(wish, min_speed_tok_s=speed, max_loss_percent=gentle)
            self._fast[speed] = Search(knowledge, fast)
        return self._fast[speed]
