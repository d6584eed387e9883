"""The best format of a model on a card, sized by the same estimator as ``advise``.

Whole catalogues are asked for at once, so what cannot fit is not sized: a lower bound of the
weights alone rules most formats out. Weights are sized once per model and format.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from advisor.bulk.reverse import context_for
from advisor.bulk.reverse.answers import Answer, Reason, Wish, with_cards
from advisor.errors import UserError
from advisor.estimator import estimate_memory
from advisor.estimator.limits import largest_gpu_layers, smallest_cpu_experts
from advisor.estimator.placement import card_of, host_fits
from advisor.estimator.speed import estimate_speed
from advisor.knowledge.catalogue import Cards, default_backend
from advisor.knowledge.types import Format, Framework, Knowledge
from advisor.models.stored_tensors import Model
from advisor.scenario import Scenario, support
from advisor.scenario.capability import cut_width
from advisor.scenario.choices import runs
from advisor.scenario.figures import margin_of
from advisor.scenario.host import ram_pace
from advisor.scenario.resolve import assembled

Pair = tuple[Format, Framework]
_LEAST_SHARE = 0.9
"""Weights on the cards are at least this share of parameters x nominal bits: the smallest seen
over every model and format is 0.946 (IQ3_XS, some of whose tensors are IQ3_XXS)."""
_FASTER_THAN_BOARD = 1.25
"""No speed is above reading at this multiple of the card's bandwidth."""


class _Pairs(Struct, frozen=True):
    """What a framework runs of a model on a card, the best first."""

    allowed: Sequence[Pair]
    beyond: Sequence[Pair]
    """Those that lose too much, or whose loss nobody measured, smallest first."""


class Search(Struct):
    """Sizes cards and models for one wish."""

    knowledge: Knowledge
    wish: Wish
    error: UserError | None = None
    """Why the last model that could not be sized cannot be."""
    _pairs: dict[tuple[object, ...], _Pairs] = field(default_factory=dict)

    def best(self, cards: Cards, model: Model, *, split: bool = False) -> Answer | Reason:
        """Find the best format of a model on the cards of a machine, or say why none is.

        With ``split`` a part may lie in system RAM where the whole does not fit.
        """
        pairs = self._pairs_for(cards, model)
        if not pairs.allowed and not pairs.beyond:
            return "cannot_run"
        try:
            return self._best_of(pairs, cards, model, split=split)
        except UserError as error:
            self.error = error
            return "not_sizable"

    def every(self, cards: Cards, model: Model) -> Iterator[Answer]:
        """Give all formats that may be taken and that fit, the best first."""
        for precision, framework in self._pairs_for(cards, model).allowed:
            answer = self._sized(cards, model, precision, framework)
            if answer and self._refusal(answer) is None:
                yield answer

    def _best_of(
        self, pairs: _Pairs, cards: Cards, model: Model, *, split: bool
    ) -> Answer | Reason:
        refusals: set[Reason] = set()
        found = self._first(pairs.allowed, cards, model, refusals)
        if found is None and split:
            found = self._first_split(pairs.allowed, cards, model, refusals)
        if found is not None:
            return found
        if refusals:
            return "too_slow" if "too_slow" in refusals else "speed_unknown"
        for precision, framework in pairs.beyond:
            if self._sized(cards, model, precision, framework):
                return "larger_loss_only"
        return "does_not_fit"

    def _first(
        self, pairs: Sequence[Pair], cards: Cards, model: Model, refusals: set[Reason]
    ) -> Answer | None:
        """Take the first that is good enough and leaves a margin; note why others are not."""
        hopeless, thin = [], None
        for pair in pairs:
            if self._is_too_slow(pair, cards, model):
                hopeless.append(pair)
                continue
            answer = self._sized(cards, model, *pair)
            if answer and self._is_refused(answer, refusals):
                continue
            if answer and margin_of(answer.memory, self.knowledge.policy) != "thin":
                return answer
            thin = thin or answer
        if thin:
            return thin
        for pair in reversed(hopeless):
            answer = None if refusals else self._sized(cards, model, *pair)
            if answer:
                self._is_refused(answer, refusals)
        return None

    def _is_too_slow(self, pair: Pair, cards: Cards, model: Model) -> bool:
        """Whether a format cannot be fast enough even if reading were all there is to it."""
        least, bandwidth = self.wish.min_speed_tok_s, cards.gpu.bandwidth_bytes_s
        if least is None or bandwidth is None:
            return False
        together = cards.count if pair[1].multi_gpu[:1] == ("tensor",) else 1
        reads = least_read_bytes(model, pair[0])
        return least * reads > _FASTER_THAN_BOARD * together * bandwidth

    def _is_refused(self, answer: Answer, refusals: set[Reason]) -> bool:
        refusal = self._refusal(answer)
        if refusal:
            refusals.add(refusal)
        return refusal is not None

    def _refusal(self, answer: Answer) -> Reason | None:
        least = self.wish.min_speed_tok_s
        if least is None:
            return None
        speed = answer.decode_tok_s
        if speed is None:
            return "speed_unknown"
        return "too_slow" if speed < least else None

    def _sized(
        self, cards: Cards, model: Model, precision: Format, framework: Framework
    ) -> Answer | None:
        """Estimate a format; None where it does not fit."""
        if least_weight_bytes(model, precision) > self._free(cards, framework):
            return None
        scenario = self._scenario(cards, model, precision, framework)
        memory = estimate_memory(scenario, self.knowledge)
        if memory.deficit_bytes != 0 or memory.held_sequences not in {None, scenario.batch}:
            return None
        return Answer(scenario, memory, estimate_speed(scenario, memory, self.knowledge))

    def _free(self, cards: Cards, framework: Framework) -> float:
        """Give what a framework finds free on all cards together, bytes."""
        found = (
            card_of(gpu, default_backend(gpu), framework, self.knowledge)
            for gpu in cards.each or (cards.gpu,)
        )
        free = sum((card.usable or 0) - card.overhead.central for card in found)
        return free if cards.each else cards.count * free

    def _scenario(
        self, cards: Cards, model: Model, precision: Format, framework: Framework
    ) -> Scenario:
        kv_type, context = self.wish.kv_type, context_for(self.wish, self.knowledge.policy)
        if context and model.trained_context_tokens and self.wish.request.context is None:
            context = min(context, model.trained_context_tokens)
        return assembled(
            replace(with_cards(self.wish.request, cards.count), context=context),
            cards=cards,
            model=model,
            precision=precision,
            framework=framework,
            kv_types=(kv_type, kv_type),
            backend=default_backend(cards.gpu),
            pace=ram_pace(self.wish.request, cards.gpu, self.knowledge),
        )

    def _first_split(
        self, pairs: Sequence[Pair], cards: Cards, model: Model, refusals: set[Reason]
    ) -> Answer | None:
        """Take the smallest balanced format that fits with a part of it in system RAM.

        Every byte in system RAM costs speed, so a smaller format goes before a better one.
        """
        if cards.gpu.unified_memory:
            return None
        for precision, framework in sorted(pairs, key=lambda pair: self._balance(pair[0], model)):
            if not framework.places_layers:
                continue
            answer = self._split(self._scenario(cards, model, precision, framework))
            if answer is None:
                continue
            if not self._is_refused(answer, refusals):
                return answer
        return None

    def _split(self, whole: Scenario) -> Answer | None:
        """Keep experts, or else layers, in system RAM: as few as it takes."""
        for scenario in _splits(whole, self.knowledge):
            memory = estimate_memory(scenario, self.knowledge)
            if memory.deficit_bytes == 0 and host_fits(scenario, memory):
                return Answer(scenario, memory, estimate_speed(scenario, memory, self.knowledge))
        return None

    def _pairs_for(self, cards: Cards, model: Model) -> _Pairs:
        shape, gpu, gpus = model.shape, cards.gpu, cards.count
        key = (
            (gpu.vendor, gpu.compute_capability, gpu.architecture, gpu.segment),
            (shape.outer_type or shape.model_type, model.modality, bool(model.vision_parameters)),
            (gpus, shape.heads if gpus > 1 else 0, shape.moe is not None, model.native_formats),
            self._cutting(cards, model),
        )
        found = self._pairs.get(key)
        if found is None:
            found = self._pairs[key] = self._made_pairs(cards, model)
        return found

    def _cutting(self, cards: Cards, model: Model) -> tuple[str, ...]:
        """Formats and frameworks in which the cards would cut blocks that must stay whole."""
        return tuple(
            f"{precision.name} {framework.name}"
            for precision in (self._formats(model) if cards.count > 1 else ())
            for framework in self.knowledge.frameworks.values()
            if cut_width(framework, precision, model, cards.count)
        )

    def _made_pairs(self, cards: Cards, model: Model) -> _Pairs:
        pairs = [
            (precision, framework)
            for precision in self._formats(model)
            if (self.wish.named or not support.keeps_experts(precision, model))
            and (framework := self._framework(precision, cards, model))
        ]
        allowed = [pair for pair in pairs if self._is_allowed(pair[0], model)]
        beyond = [pair for pair in pairs if not self._is_allowed(pair[0], model)]
        exact = self.wish.prefer == "quality" and self.wish.use is None
        order = self._gentleness if exact else self._balance
        last = _last_resort(cards)
        allowed.sort(key=lambda pair: (last(pair[1]), order(pair[0], model)))
        beyond.sort(key=lambda pair: _smallness(pair[0]))
        return _Pairs(allowed, beyond)

    def _formats(self, model: Model) -> tuple[Format, ...]:
        """The formats wished for, and those that the model is published in where none is named."""
        own = () if self.wish.named else map(self.knowledge.formats.get, model.native_formats)
        return tuple({f.name: f for f in (*self.wish.formats, *own) if f}.values())

    def _framework(self, precision: Format, cards: Cards, model: Model) -> Framework | None:
        """The framework asked for, or the first that runs the format with these settings."""
        if precision.family in support.EXPERTS_ONLY and model.shape.moe is None:
            return None
        stated = self.wish.framework
        known = self.knowledge.frameworks.values()
        for framework in [stated] if stated else sorted(known, key=_last_resort(cards)):
            if (
                runs(self.knowledge, framework, precision, cards.gpu, model)
                and support.runs_kv(framework, self.wish.kv_type, cards.gpu, model.shape)
                and support.may_advise(framework, model)
                and support.can_share(framework, precision, model, cards.count)
                and not _needs_flash(framework, self.wish)
            ):
                return framework
        return None

    def _is_allowed(self, precision: Format, model: Model) -> bool:
        loss = support.format_loss(precision, model)
        return self.wish.unmeasured if loss is None else loss <= self.wish.max_loss_percent

    def _gentleness(self, precision: Format, model: Model) -> tuple[float, ...]:
        """The least loss first, those not measured last, the larger of them first.

        What was published goes before anything that only takes more room.
        """
        if support.is_published(precision, model):
            return (False, 0.0, -float("inf"))
        missing, loss = support.quality_order(precision)
        return (missing, loss, -(precision.bits_per_weight or 0.0))

    def _balance(self, precision: Format, model: Model) -> tuple[float, ...]:
        """The smallest that still loses little, then by loss."""
        loss = support.format_loss(precision, model)
        name = "barely_lossy" if self.wish.prefer == "quality" else "balanced_up_to"
        if loss is not None and loss <= self.knowledge.policy[f"{name}_percent"]:
            return (0.0, *_smallness(precision), loss)
        return (1.0, *self._gentleness(precision, model))


def _last_resort(cards: Cards) -> Callable[[Framework], bool]:
    """Say which programs come last: on a datacenter card, those that place layer by layer."""
    serves = cards.gpu.segment == "datacenter"
    return lambda framework: serves and framework.places_layers


def _smallness(precision: Format) -> tuple[float, ...]:
    missing, loss = support.quality_order(precision)
    return (precision.bits_per_weight or 0.0, missing, loss)


def _needs_flash(framework: Framework, wish: Wish) -> bool:
    """Whether the cache type needs flash attention that the framework lacks."""
    return framework.flash_attention is False and wish.kv_type.needs_flash_attention


def least_weight_bytes(model: Model, precision: Format) -> int:
    """Give a size that the weights on the cards never fall below, without sizing a tensor.

    Parameters at the format's nominal bits; what is looked up by token may stay in system RAM, but
    for an embedding that is also the output.
    """
    return _least_bytes(model, precision, model.parameters)


def least_read_bytes(model: Model, precision: Format) -> int:
    """Give a size that one token never reads less of, in the same way; 0 where unknown."""
    return _least_bytes(model, precision, model.active_parameters - model.vision_parameters)


def _least_bytes(model: Model, precision: Format, parameters: int) -> int:
    if model.stored is not None or precision.bits_per_weight is None:
        return 0
    if support.KEPT_EXPERTS in model.native_formats:
        return 0
    shape = model.shape
    lookup = shape.lookup + (0 if shape.tied else shape.vocab * shape.hidden)
    return int(max(parameters - lookup, 0) * precision.bits_per_weight / 8 * _LEAST_SHARE)


def _splits(whole: Scenario, knowledge: Knowledge) -> Iterator[Scenario]:
    framework, shape = whole.framework, whole.model.shape
    if framework.expert_offload and shape.moe:
        experts = smallest_cpu_experts(whole, knowledge)
        if experts:
            yield replace(whole, cpu_experts=experts)
    if framework.cpu_offload:
        layers = largest_gpu_layers(whole, knowledge)
        if layers is not None and layers <= shape.layers:
            yield replace(whole, gpu_layers=layers)
