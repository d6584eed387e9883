"""``gpus-for``: the cards that run a model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from msgspec import Struct
from msgspec.structs import replace

from advisor.advice.preparation import model_warnings
from advisor.bulk.reverse import context_for
from advisor.bulk.reverse.answers import (
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
from advisor.bulk.reverse.search import Search
from advisor.errors import UserError, raise_problems
from advisor.estimator import estimate_memory
from advisor.files import table_rows
from advisor.knowledge.catalogue import BY_PCI, Cards, sizes_of
from advisor.models import text_alone
from advisor.models.stored_tensors import Model
from advisor.scenario.asked_format import precision_asked
from advisor.scenario.asked_model import model_named
from advisor.scenario.resolve import default_context, resolve
from advisor.scenario.settings import Request
from advisor.units import GIB

if TYPE_CHECKING:
    from advisor.knowledge.types import Gpu, Knowledge
    from advisor.models.stored_tensors import Model


Sort = Literal["price", "memory", "speed", "power"]
SORTS: Sequence[Sort] = ("price", "memory", "speed", "power")
FORMS = ("desktop", "workstation", "laptop", "datacenter", "edge", "unified")
_FORM_OF = {"consumer": "desktop", "mobile": "laptop"}
_NUMBERS = (1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32)
"""Of cards that are tried where one asks how many: up to four nodes of 8."""
_MOST_HOPEFUL: Sequence[Reason] = (
    "too_slow",
    "speed_unknown",
    "larger_loss_only",
    "does_not_fit",
    "not_sizable",
    "cannot_run",
)


_PRICES = "machine_prices.tsv"


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

    ``request.gpus`` of the settings is the most equal cards. Unknown figures come last; a ``limit``
    of None is all.

    Raises:
        UserError: Names or numbers are wrong, all of them at once; or the model cannot be sized.
    """
    reader = Reader()
    named = reader.attempt(lambda: model_named(model, knowledge))
    known = named.model if named else None
    settings = reader.attempt(lambda: _as_stored(settings, known)) or settings
    by = reader.one_of("order", sort, SORTS)
    wanted = _checked(wanted, reader)
    wish = read_wish(settings, knowledge, reader)
    raise_problems(reader.errors)
    assert named
    assert known
    assert by
    assert wish
    if wish.request.text_only:
        known = text_alone(known)
    search, prices = Search(knowledge, wish), machine_prices()
    sold = {name: as_sold(gpu, prices) for name, gpu in knowledge.gpus.items()}
    tried = [_tried(search, g, sold[g.name], wanted, known) for g in knowledge.gpus.values()]
    answers = [found for found in tried if isinstance(found, Answer)]
    causes = [found for found in tried if not isinstance(found, Answer)]
    if search.error is not None and not answers:
        raise search.error
    answers.sort(key=lambda answer: _order(by, answer))
    rows = [row_of(a, wish, _named(a.gpu, sold), model, knowledge) for a in answers[:limit]]
    best = {
        name: row_of(a, wish, _named(a.gpu, sold), model, knowledge) for name, a in _firsts(answers)
    }
    warned = model_warnings(known, wish.request.context or default_context(known))
    context = context_for(wish, knowledge.policy)
    said = (*named.said, *warned)
    found = Found(wish, rows, len(answers), len(tried), counted(causes), by, best, said, context)
    return known, found


def fewest_cards(request: Request, knowledge: Knowledge) -> tuple[int, bool] | None:
    """Find the fewest of a request's card that run it, each as ``advise`` sizes it.

    Returns:
        How many, and whether they hold all of its requests at once: where no number that is tried
        does, the fewest that hold one. None: no number of them runs it.
    """
    first = None
    for count in _NUMBERS:
        try:
            scenario = resolve(replace(request, gpus=count), knowledge)
            memory = estimate_memory(scenario, knowledge)
        except UserError:
            continue
        if memory.deficit_bytes == 0:
            if memory.held_sequences in {None, scenario.batch}:
                return count, True
            first = first or count
    return (first, False) if first else None


def _as_stored(settings: Settings, model: Model | None) -> Settings:
    """Ask for the format that the model's own files hold, where none is stated."""
    if model is None or settings.precisions or not (model.stored or model.told_format):
        return settings
    return replace(settings, precisions=(precision_asked(Request(), model),))


def _checked(wanted: CardFilter, reader: Reader) -> CardFilter:
    reader.not_below("--max-price", wanted.max_price_usd)
    reader.not_below("--max-power", wanted.max_power_w)
    forms = [reader.one_of("form", text, FORMS) for text in wanted.forms]
    return replace(
        wanted,
        vendor=reader.one_of("vendor", wanted.vendor, tuple(BY_PCI.values())),
        forms=[form for form in forms if form],
    )


def _tried(
    search: Search, gpu: Gpu, sold: Sequence[Gpu], wanted: CardFilter, model: Model
) -> Answer | Cause:
    if not _is_kind(gpu, wanted):
        return "filtered"
    if gpu.not_for_sale:
        return "not_for_sale"
    if wanted.released_from and not gpu.released:
        return "release_unknown"
    if wanted.released_from and (gpu.released or "") < wanted.released_from:
        return "filtered"
    if wanted.max_power_w is not None and gpu.tdp_w is None:
        return "power_unknown"
    priced = [one for one in sold if one.launch_price_usd is not None]
    if wanted.max_price_usd is not None and sold and not priced:
        return "price_unknown"
    return _fewest(search, sold if wanted.max_price_usd is None else priced, wanted, model)


def machine_prices() -> Mapping[str, Mapping[int, float]]:
    """What computers cost, by their card and the memory in bytes that it shares."""
    found: dict[str, dict[int, float]] = {}
    for card, size, usd, *_ in table_rows(_PRICES):
        found.setdefault(card, {})[int(size) * GIB] = float(usd)
    return found


def as_sold(gpu: Gpu, machines: Mapping[str, Mapping[int, float]]) -> Sequence[Gpu]:
    """Give a card by each memory with which it is sold, the smallest first, and that price.

    None: its computers have as much memory as their buyers put in.
    """
    prices, own = machines.get(gpu.name, {}), gpu.launch_price_usd
    return [
        replace(gpu, vram_bytes=size, launch_price_usd=prices.get(size) if own is None else own)
        for size in sorted({*sizes_of(gpu), *prices})
    ]


def _named(gpu: Gpu, sold: Mapping[str, Sequence[Gpu]]) -> str:
    """Name a card, with its memory where it is sold with several."""
    several = gpu.unified_memory and len(sold[gpu.name]) > 1
    return f"{gpu.name}:{(gpu.vram_bytes or 0) // GIB}GB" if several else gpu.name


def _is_kind(gpu: Gpu, wanted: CardFilter) -> bool:
    if wanted.vendor not in {None, gpu.vendor}:
        return False
    return not wanted.forms or form_of(gpu) in wanted.forms


def _fewest(
    search: Search, sold: Sequence[Gpu], wanted: CardFilter, model: Model
) -> Answer | Cause:
    """Take the least memory that runs the model: of a card, then of equal ones.

    Else one with the help of system RAM.
    """
    if not sold:
        return "memory_unknown"
    reasons: list[Reason] = []
    most = search.wish.gpus
    tried = [(gpu, count) for gpu in sold for count in _affordable(gpu, wanted, most)]
    for split in (False, True) if search.wish.may_split else (False,):
        for gpu, count in tried:
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
