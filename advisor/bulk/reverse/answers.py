"""What is asked of every card and model, looked up, and what both questions answer with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import inf, isnan
from typing import Literal, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from advisor.errors import RequestError, UserError, did_you_mean
from advisor.estimator.limits import find_limits
from advisor.knowledge import names
from advisor.knowledge.merit import USES, Merit, Use
from advisor.knowledge.types import Format, Framework, Gpu, Knowledge, KvType
from advisor.scenario import Scenario, offloads, support
from advisor.scenario.asked_format import formats_named
from advisor.scenario.figures import Limits, Margin, Memory, Speed, margin_of
from advisor.scenario.host import ram_pace
from advisor.scenario.resolve import default_context
from advisor.scenario.settings import Request, number_problems

Prefer = Literal["quality", "speed", "balanced"]
PREFERENCES: Sequence[Prefer] = ("quality", "speed", "balanced")
NO_LIMIT = inf
_T = TypeVar("_T")


class Settings(Struct, frozen=True):
    """The settings both questions share, as typed; None: not stated."""

    request: Request = Request()
    """Everything but card, model and format; the number of cards is the most."""
    precisions: Sequence[str] = ()
    min_speed_tok_s: float | None = None
    max_loss_percent: float | None = None
    unmeasured: bool = False
    prefer: str = "quality"
    use: str | None = None
    """What the model is for; None: for models the one that their kind is for, for cards none."""


class Wish(Struct, frozen=True):
    """The same, looked up."""

    request: Request
    """As it was stated."""
    kv_type: KvType
    framework: Framework | None
    formats: Sequence[Format]
    """What may be tried, in the order of knowledge/."""
    min_speed_tok_s: float | None
    max_loss_percent: float
    """Of the weights; ``NO_LIMIT`` where any is taken."""
    unmeasured: bool
    """Whether formats without a measured loss are taken."""
    prefer: Prefer
    use: Use | None = None
    """What the model is for."""
    named: bool = False
    """Whether the formats were named, so that all of them are tried."""

    @property
    def gpus(self) -> int:
        """The number of cards, or the most of them."""
        return self.request.gpus or 1

    @property
    def may_split(self) -> bool:
        """Whether a part may lie in system RAM: where its size is stated."""
        return self.request.ram_gib is not None


class Reader:
    """Collects what is wrong while the rest is still being read."""

    def __init__(self) -> None:
        self.errors: list[UserError] = []

    def attempt(self, action: Callable[[], _T]) -> _T | None:
        """Run a look-up; an error of the user's is kept."""
        try:
            return action()
        except UserError as error:
            self.errors += getattr(error, "errors", [error])
            return None

    def one_of(self, what: str, text: str | None, known: Sequence[str]) -> str | None:
        """Look a word up among the known ones, case-blind."""
        if text is None:
            return None
        for name in known:
            if name.casefold() == text.strip().casefold():
                return name
        hint = did_you_mean(text, known) or f"Known: {_listed(known)}."
        self.errors.append(RequestError(f"unknown {what} '{text}'", hint=hint))
        return None

    def not_below(self, flag: str, value: float | None, least: float = 0.0) -> None:
        """Refuse a number below the least, or none at all (NaN)."""
        if value is not None and (isnan(value) or value < least):
            hint = f"Give at least {least:g}."
            self.errors.append(RequestError(f"{flag} is {value:,.10g}", hint=hint))

    def in_order(self, low: tuple[str, float | None], high: tuple[str, float | None]) -> None:
        """Refuse a lower bound above its upper one."""
        if low[1] is not None and high[1] is not None and low[1] > high[1]:
            message = f"{low[0]} {low[1]:,.10g} is above {high[0]} {high[1]:,.10g}"
            self.errors.append(RequestError(message, hint="Swap them, or leave one out."))


_MOST_LISTED = 12


def _listed(names_: Sequence[str]) -> str:
    more = len(names_) - _MOST_LISTED
    shown = ", ".join(names_[:_MOST_LISTED])
    return f"{shown} and {more} more" if more > 0 else shown


def read_wish(settings: Settings, knowledge: Knowledge, reader: Reader) -> Wish | None:
    """Look up the shared settings; what is wrong goes to ``reader``, None where much is."""
    request = settings.request
    reader.attempt(lambda: ram_pace(request, None, knowledge))
    reader.errors += number_problems(request)
    reader.not_below("--min-speed", settings.min_speed_tok_s)
    reader.not_below("--max-loss", settings.max_loss_percent)
    prefer = reader.one_of("preference", settings.prefer, PREFERENCES)
    use = reader.one_of("use", settings.use, USES)
    framework = reader.attempt(lambda: _framework(request.framework, knowledge))
    kv_type = reader.attempt(lambda: names.find_kv_type(knowledge, request.kv_cache or "f16"))
    formats = list(_formats(settings.precisions, knowledge, reader))
    if framework:
        reader.errors += _impossible(framework, kv_type, formats)
    if kv_type is None or prefer is None or reader.errors:
        return None
    named = bool(settings.precisions) or framework is not None
    loss = settings.max_loss_percent
    if loss is None:
        # Formats that were named are wanted, whatever they lose.
        loss = NO_LIMIT if settings.precisions else knowledge.policy["gentle_up_to_percent"]
    return Wish(
        request=request,
        kv_type=kv_type,
        framework=framework,
        formats=formats or [f for f in knowledge.formats.values() if f.offered],
        min_speed_tok_s=settings.min_speed_tok_s,
        max_loss_percent=loss,
        unmeasured=settings.unmeasured or named,
        prefer=prefer,  # type: ignore[arg-type]  # one of PREFERENCES
        use=use,  # type: ignore[arg-type]  # one of USES
        named=bool(settings.precisions),
    )


def _framework(name: str | None, knowledge: Knowledge) -> Framework | None:
    if name is None:
        return None
    found = names.find_framework(knowledge, name)
    if not found.sized:
        raise RequestError(
            f"{found.name} is known by name only, so nothing can be sized for it",
            hint="Leave --framework out, or name another.",
        )
    return found


def _impossible(
    framework: Framework, kv_type: KvType | None, formats: Sequence[Format]
) -> Iterator[UserError]:
    """Find what the framework runs on no card."""
    if kv_type and kv_type.name not in framework.kv_types:
        yield RequestError(
            f"{framework.name} cannot keep the KV cache as {kv_type.name}",
            hint=f"It keeps: {', '.join(framework.kv_types)}.",
        )
    if formats and not any(precision.name in framework.formats for precision in formats):
        yield RequestError(
            f"{framework.name} does not run {' or '.join(f.name for f in formats)}",
            hint=f"It runs: {', '.join(framework.formats[:_MOST_LISTED])}.",
        )


def _formats(texts: Sequence[str], knowledge: Knowledge, reader: Reader) -> Iterator[Format]:
    """Look up every format named; a name twice is one format."""
    seen: set[str] = set()
    for text in texts:
        for found in reader.attempt(lambda text=text: formats_named(text, knowledge)) or ():  # type: ignore[misc]
            if found.name not in seen:
                seen.add(found.name)
                yield found


def with_cards(request: Request, gpus: int) -> Request:
    """State the number of cards, where it is not one."""
    return replace(request, gpus=gpus if gpus > 1 else None)


Reason = Literal[
    "not_sizable",
    "cannot_run",
    "does_not_fit",
    "larger_loss_only",
    "too_slow",
    "speed_unknown",
]
Cause = Reason | Literal["filtered", "release_unknown", "licence_unknown", "price_unknown",
                         "power_unknown", "memory_unknown", "short_training",
                         "not_for_sale"]  # fmt: skip
CAUSES: Sequence[Cause] = (
    "does_not_fit",
    "larger_loss_only",
    "too_slow",
    "speed_unknown",
    "cannot_run",
    "short_training",
    "not_sizable",
    "memory_unknown",
    "price_unknown",
    "power_unknown",
    "release_unknown",
    "licence_unknown",
    "not_for_sale",
    "filtered",
)
"""In the order they are told."""


class Answer(Struct, frozen=True):
    """A model that runs on a card: the scenario and its figures, all from the estimator."""

    scenario: Scenario
    memory: Memory
    speed: Speed | None

    @property
    def gpu(self) -> Gpu:
        """The card."""
        assert self.scenario.gpu
        return self.scenario.gpu

    @property
    def loss_percent(self) -> float | None:
        """Perplexity increase of the weight format over FP16; None: not measured."""
        return support.format_loss(self.scenario.precision, self.scenario.model)

    @property
    def decode_tok_s(self) -> float | None:
        """Tokens per second of one stream."""
        return self.speed.decode_tok_s.estimate if self.speed else None

    @property
    def split(self) -> bool:
        """Whether a part lies in system RAM because the request's cards cannot hold it."""
        return offloads(self.scenario)

    def request(self, wish: Wish, gpu: str, model: str) -> Request:
        """Write the request that gives the same figures when it is estimated by itself."""
        scenario = self.scenario
        context = wish.request.context
        if wish.use is not None and scenario.context_tokens != default_context(scenario.model):
            context = scenario.context_tokens
        return replace(
            with_cards(wish.request, scenario.gpus),
            context=context,
            gpu=gpu,
            model=model,
            precision=scenario.precision.name,
            framework=scenario.framework.name,
            gpu_layers=scenario.gpu_layers,
            cpu_experts=scenario.cpu_experts or None,
        )


class RatedModel(Struct, frozen=True):
    """A model's merit, and what is left of it in a format."""

    merit: Merit
    points: float
    """In the format; what models are ranked by."""


class Row(Struct, frozen=True):
    """One line of an answer, with the limits of its scenario."""

    answer: Answer
    limits: Limits
    request: Request
    """Gives the same figures when it is estimated by itself."""
    margin: Margin | None = None
    """How far one may rely on what stays free."""
    merit: RatedModel | None = None
    """What leaderboards say of the model, where models were asked for."""


class Found(Struct, frozen=True):
    """The answer to one question."""

    wish: Wish
    rows: Sequence[Row]
    fitting: int
    """Models or cards that run, shown or not."""
    tried: int
    """All models or cards of the knowledge base."""
    left_out: dict[Cause, int]
    """Why the others are not among them, with how many; every one is counted once."""
    sort: str | None = None
    """What cards are sorted by; models are sorted by what is preferred."""
    best: Mapping[str, Row] = field(default_factory=dict)
    """The first of all cards by each order, where its figure is known."""
    warnings: Sequence[str] = ()
    """Plain sentences about what was asked."""
    context: int | None = None
    """Tokens that were stated, or that the use takes."""


def row_of(answer: Answer, wish: Wish, gpu: str, model: str, knowledge: Knowledge) -> Row:
    """Complete an answer that is shown."""
    limits = find_limits(answer.scenario, knowledge, answer.memory)
    margin = margin_of(answer.memory, knowledge.policy)
    return Row(answer, limits, answer.request(wish, gpu, model), margin)


def counted(causes: Sequence[Cause]) -> dict[Cause, int]:
    """Count causes, in the order they are told."""
    return {cause: causes.count(cause) for cause in CAUSES if cause in causes}


def descending(value: float | None) -> tuple[bool, float]:
    """Sort the largest first and the unknown last."""
    return (value is None, -(value or 0.0))


def ascending(value: float | None) -> tuple[bool, float]:
    """Sort the smallest first and the unknown last."""
    return (value is None, value or 0.0)
