"""Which format and which framework a request gets: what was asked for, else the first that runs."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter, itemgetter

from msgspec.structs import replace

from advisor.errors import RequestError
from advisor.files import table_rows
from advisor.knowledge.types import Format, Framework, Gpu, Knowledge
from advisor.memo import Kept
from advisor.models.shape import UNKNOWN
from advisor.models.stored_tensors import Model
from advisor.scenario import support
from advisor.scenario.asked_format import (
    DEFAULT_PRECISION,
    PUBLISHED,
    USUAL,
    Caches,
    formats_for,
    formats_named,
    has_room,
    is_family,
    kinds_of,
    released_of,
)
from advisor.scenario.capability import has_slow_kernels, is_obtainable, makes, repository_of
from advisor.scenario.instead import Asked, CannotRunError, reasons_given
from advisor.scenario.setting_kinds import is_sixteen

Pair = tuple[Format, Framework]
_PACKERS = "packers.tsv"
_Distance = Callable[[Format], tuple[float, ...]]


class Choices:
    """What runs on one kind of card for one kind of model, worked out when it is asked for."""

    __slots__ = ("_knowledge", "_pairs", "_runners", "_runs", "_sample", "lists")

    def __init__(self, knowledge: Knowledge, gpu: Gpu | None, model: Model) -> None:
        """Hold a card and a model that stand for their kinds."""
        self._knowledge = knowledge
        self._sample = gpu, model
        self._runners: dict[str, Mapping[str, Framework]] = {}
        self._runs: dict[tuple[str, str], bool] = {}
        self._pairs: dict[tuple[str, str, bool, Caches], Pair | None] = {}
        self.lists: dict[tuple[object, ...], tuple[object, Sequence[object]]] = {}
        """Lists of formats and frameworks that follow from the kinds (``format_lists``)."""

    def runners(self, precision: Format) -> Mapping[str, Framework]:
        """Give the frameworks that run a format, in knowledge order, by name."""
        found = self._runners.get(precision.name)
        if found is None:
            known = self._knowledge.frameworks.items()
            found = {name: one for name, one in known if self.runs(one, precision)}
            self._runners[precision.name] = found
        return found

    def runs(self, framework: Framework, precision: Format) -> bool:
        """Whether a framework runs a format."""
        key = (framework.name, precision.name)
        found = self._runs.get(key)
        if found is None:
            found = self._runs[key] = not support.obstacle(framework, precision, *self._sample)
        return found

    def by_distance(
        self, framework: Framework, formats: Iterable[Format], distance: _Distance
    ) -> Iterator[Sequence[Format]]:
        """Give those that a framework runs, the nearest first, all at one distance at once."""
        gpu, model = self._sample
        if support.never_there(framework, gpu) or not support.supports_model(framework, model):
            return
        far = sorted(((distance(f), f) for f in formats), key=itemgetter(0))
        for _, alike in groupby(far, key=itemgetter(0)):
            if running := [f for _, f in alike if self.runs(framework, f)]:
                yield running

    def default_pair(
        self, text: str, framework: Framework | None, model: Model, *, split: bool, serves: Caches
    ) -> Pair | None:
        """Give what the defaults choose for a precision as ``precision_asked`` gives it."""
        key = (text, framework.name if framework else "", split, serves)
        if key not in self._pairs:
            tried = candidates(self._knowledge, framework, split=split, serves=serves)
            self._pairs[key] = self.asked_pair(text, tried)
        found = self._pairs[key]
        return found and self.held_pair(found, text, model)

    def held_pair(self, pair: Pair, text: str, model: Model) -> Pair:
        """Of a family name (INT4) take a format that is published; floats and slow kernels last."""
        precision, framework = pair
        own = released_of(text, model, self._knowledge)
        if not is_family(text) or (is_obtainable(framework, precision, model) and not own):
            return pair
        named = formats_named(text, self._knowledge)
        held = (*own, *(f for f in named if is_obtainable(framework, f, model)))
        best = min(
            (f for f in held if self.runs(framework, f)),
            key=lambda f: (
                support.is_other(f, text),
                has_slow_kernels(framework, f, self._sample[0], model) + (f not in own),
                *support.quality_order(f),
            ),
            default=precision,
        )
        return best, framework

    def asked_pair(self, text: str, candidates: Sequence[Framework]) -> Pair | None:
        """Find the first framework that runs what ``precision_asked`` gives, and its best format.

        What is usual is each framework's own, and 16 bits where it has none that runs. Those are
        the checkpoint's own, also where 16 bits were asked for, and FP16 where they do not run.
        """
        for candidate in candidates if text == USUAL or is_sixteen(text) else ():
            for name in self._usual(candidate, text):
                if self.runs(candidate, self._knowledge.formats[name]):
                    return self._knowledge.formats[name], candidate
        return self.first_pair(
            candidates, formats_for(text, self._sample[1], self._knowledge), text * is_family(text)
        )

    def _usual(self, framework: Framework, text: str) -> Sequence[str]:
        own = (support.own_sixteen(self._sample[1]), DEFAULT_PRECISION)
        return (framework.usual_formats if text == USUAL else ()) or own

    def first_pair(
        self, candidates: Sequence[Framework], formats: Sequence[Format], family: str = ""
    ) -> Pair | None:
        """Find the first framework that runs one of the formats, and its best one.

        What the publisher released goes before everything else, then formats of as many bits. A
        ``family`` name (INT8) leaves the format open: what computes step by step in Python goes
        last then, of formats of one quality that goes first in which the card computes, and floats
        stand back where it says integers.
        """
        tried = sorted(candidates, key=attrgetter("step_by_step")) if family else candidates
        gpu, model = self._sample
        for tier in _tiers(formats, model):
            for candidate in tried:
                fitting = [f for f in tier if self.runs(candidate, f)]
                if len(fitting) > 1:
                    fitting.sort(
                        key=lambda f: (
                            support.is_other(f, family),
                            has_slow_kernels(candidate, f, gpu, model),
                            *support.quality_order(f),
                            family and not (gpu and support.is_native(f, gpu)),
                            candidate.formats.index(f.name),
                        )
                    )
                if fitting:
                    return fitting[0], candidate
        return None


_kept: Kept[tuple[object, ...], Choices] = Kept(128)
"""Without it a plan takes 1.39 times as long, lines of ``estimate`` 1.05."""


def kind_of(model: Model) -> tuple[Hashable, ...]:
    """All of a model that decides what runs it (``support.obstacle``) and what it comes in."""
    shape = model.shape
    return (
        shape.described or id(model),
        shape.model_type,
        shape.outer_type or f"{shape.config.get('model_type')}",
        shape.head_dim,
        shape.mla and (shape.mla.index_dim or 0),
        shape.moe is None,
        bool(shape.lookup),
        bool(model.vision_parameters),
        model.modality,
        model.native_formats,
        model.told_format,
        (model.native_dtype, model.shape.dtype),
        model.hf_id and kinds_of(model.hf_id),
    )


def choices_for(knowledge: Knowledge, gpu: Gpu | None, model: Model) -> Choices:
    """Give the choices of a card and a model, kept for all cards and models alike."""
    card = gpu and (gpu.vendor, gpu.compute_capability, gpu.architecture)
    key = (id(knowledge), card, *kind_of(model))
    found = _kept.get(key)
    if found is None:
        found = Choices(knowledge, gpu, model)
        _kept.put(key, found)
    return found


def runs(
    knowledge: Knowledge, framework: Framework, precision: Format, gpu: Gpu | None, model: Model
) -> bool:
    """Whether the framework runs this format of this model on this card."""
    return choices_for(knowledge, gpu, model).runs(framework, precision)


def runs_as_stated(
    knowledge: Knowledge, framework: Framework, precision: Format, gpu: Gpu | None, model: Model
) -> bool:
    """Whether it runs, also a format that only other releases or a plugin of it have."""
    if precision.name in framework.formats:
        return runs(knowledge, framework, precision, gpu, model)
    return _beyond((precision,), framework, gpu, model) is not None


def obtainable(
    pairs: Iterable[Pair], model: Model, gpu: Gpu | None, knowledge: Knowledge
) -> Sequence[Pair]:
    """Leave out what nobody is known to publish, where the framework has as many bits that are.

    Of what was released in few bits all that packs it again in as many. What the card must unpack
    stands for nothing that it computes in.
    """
    released = min((knowledge.formats[n].class_bits or 0 for n in model.native_formats), default=99)
    best: dict[tuple[str, int], bool] = {}
    known = [
        (pair, is_obtainable(*pair[::-1], model), not support.is_unpacked(pair[0], model, gpu))
        for pair in pairs
    ]
    for (precision, framework), held, likely in known:
        if held:
            key = framework.name, precision.class_bits or 0
            best[key] = best.get(key, False) or likely
    return [
        (precision, framework)
        for (precision, framework), held, likely in known
        if held
        or not (
            (bits := precision.class_bits or 0) >= released
            or best.get((framework.name, bits), likely - 1) >= likely
        )
    ]


def how_had(precision: Format, framework: Framework, model: Model) -> int:
    """Say whether the format is to be had (1), and of its publisher or a known packer (2)."""
    address, own = repository_of(model, precision), (model.hf_id or "").partition("/")[0]
    if address is None or makes(framework, precision, model):
        return 2 * is_obtainable(framework, precision, model)
    publisher = address.partition("/")[0]
    return 1 + (publisher == own or any(row[0] == publisher for row in table_rows(_PACKERS)))


def candidates(
    knowledge: Knowledge, framework: Framework | None, *, split: bool, serves: Caches = ()
) -> Sequence[Framework]:
    """List the frameworks to choose from: the stated one, all, or all that place layers.

    Of a front end those that it loads models with; those built for many users first where such a
    one is meant.
    """
    if framework:
        return [knowledge.frameworks[name] for name in framework.loads_with] or [framework]
    known = list(knowledge.frameworks.values())
    if serves:
        known.sort(key=lambda f: not _serves(f, serves))
    return [f for f in known if f.places_layers] if split else known


def _tiers(formats: Sequence[Format], model: Model) -> Iterator[Sequence[Format]]:
    own = [f for f in formats if support.is_published(f, model) or f.name == model.told_format]
    if own:
        yield own
        yield [f for f in formats if f.class_bits == own[0].class_bits]
    yield formats


def _serves(framework: Framework, caches: Caches) -> bool:
    kept = set(caches) <= set(framework.kv_types)
    return kept and bool(framework.serves_batches) and support.upkeep(framework) is None


def choose(
    knowledge: Knowledge,
    formats: Sequence[Format],
    asked: str,
    *,
    framework: Framework | None,
    gpu: Gpu | None,
    model: Model,
    split: bool = False,
    serves: Caches = (),
    cards: int = 1,
    beside_ram: bool = False,
) -> Pair:
    """Settle on one format and one framework.

    ``split``: the request places layers or experts itself; ``serves``: types of the cache, where
    a server is meant that no framework states; ``cards``: so many share the model;
    ``beside_ram``: system RAM is stated for what they do not hold.

    Raises:
        CannotRunError: Nothing runs it; the message says why and what does.
    """
    found = None if framework or gpu else _card_free(knowledge, formats, model)
    chosen = candidates(knowledge, framework, split=split, serves=serves)
    choices = choices_for(knowledge, gpu, model)
    family = asked if len(formats) > 1 and is_family(asked) else ""
    found = found or choices.asked_pair(asked, chosen)
    if found and family:
        found = choices.held_pair(found, asked, model)
    found = found or (_beyond(formats, framework, gpu, model) if framework else None)
    is_open = gpu and gpu.segment != "datacenter" and (family or asked in {USUAL, PUBLISHED})
    if found and beside_ram and is_open:
        room = has_room(found[0], gpu, model, cards, knowledge.policy) or found[1].places_layers
        placed = () if room else candidates(knowledge, None, split=True)
        return choices.asked_pair(family or USUAL, placed) or found
    if found:
        return found
    message = _nothing_runs(
        knowledge, formats, asked, framework=framework, gpu=gpu, model=model, cards=cards
    )
    if model.shape.model_type == UNKNOWN:
        hint = "Its config.json names it: give the path of that file, or --hub."
        raise RequestError(message, hint=hint)
    runners, nearest = choices.runners, choices.by_distance
    looked = Asked(knowledge, formats, asked, framework, gpu, model, cards, runners, nearest)
    raise CannotRunError(message, looked.ways, looked.seems_held)


def _beyond(
    formats: Sequence[Format], framework: Framework, gpu: Gpu | None, model: Model
) -> Pair | None:
    """Take what the stated framework runs in another release, or built for the card by oneself."""
    wider = _wider(formats, framework, gpu, model)
    for tier in _tiers(formats, model) if framework.beyond else ():
        running = [f for f in tier if not support.obstacle(wider, f, gpu, model)]
        if listed := [f for f in running if f.name in framework.formats] or running:
            return min(listed, key=support.quality_order), framework
    return None


def _wider(
    formats: Sequence[Format], framework: Framework, gpu: Gpu | None, model: Model
) -> Framework:
    """Give the framework with what other releases or builds of it run, too."""
    also = framework.beyond
    more = (f.name for f in formats if f.name in also or f.kind in also)
    kinds = {model.shape.model_type, model.shape.outer_type}.intersection(also)
    return replace(
        framework,
        model_types=tuple(sorted({*framework.model_types, *kinds})),
        formats=(*framework.formats, *more),
        not_on=tuple(one for one in framework.not_on if one not in also),
        capabilities=tuple(
            row
            for row in framework.capabilities
            if not {row.name, gpu.architecture if gpu and row.about == "card" else ""} & {*also}
        ),
    )


def _card_free(knowledge: Knowledge, formats: Sequence[Format], model: Model) -> Pair | None:
    """Take what has buffers known apart from any card (llama.cpp) where sizes alone are asked."""
    framework = next((f for f in knowledge.frameworks.values() if f.card_free), None)
    if framework is None or support.unsized(framework, model.shape):
        return None
    known = [f for f in formats if f.offered and f.name in framework.formats]
    known.sort(key=lambda f: (*support.quality_order(f), framework.formats.index(f.name)))
    best = next((f for f in known if support.is_published(f, model)), next(iter(known), None))
    return (best, framework) if best else None


def _nothing_runs(
    knowledge: Knowledge,
    formats: Sequence[Format],
    asked: str,
    *,
    framework: Framework | None,
    gpu: Gpu | None,
    model: Model,
    cards: int,
) -> str:
    wider = framework and _wider((), framework, gpu, model)
    tried = [wider] if wider else [*knowledge.frameworks.values()]
    pairs = [(precision, candidate) for precision in formats for candidate in tried]
    known = [(precision, one) for precision, one in pairs if precision.name in one.formats]
    reasons: dict[str, str] = {}  # by what each says of all its formats
    for precision, one in known or (pairs if framework else ()):
        text = support.never_there(one, gpu) or support.why_not(one, precision, gpu, model)
        reasons.setdefault(text.partition(": ")[2] or text, text)
    where = (f" on {gpu.name}" if gpu else "") + (f" in {framework.name}" if framework else "")
    said = reasons_given(reasons, framework)
    listed = "; ".join(said[:3]) or "no framework in the knowledge base does"
    if framework and support.unsized(framework, model.shape):
        held = (knowledge.formats[name] for name in framework.formats)
        if not any(has_room(one, gpu, model, cards, knowledge.policy) for one in held):
            there = f"the card{'s' * (cards > 1)} in any format of {framework.name}"
            listed = f"its weights do not fit on {there}, and {listed}"
    met = {gpu and gpu.vendor, *(one.kind for one in formats)}
    verb = "be sized" if framework and not met.isdisjoint(framework.not_sized) else "run"
    if asked in {USUAL, PUBLISHED} and reasons:
        return f"{model.name} cannot {verb}{where}: {listed}."
    return f"{asked} cannot {verb} for {model.name}{where}: {listed}."
