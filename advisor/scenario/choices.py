"""Which format and which framework a request gets: what was asked for, else the first that runs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

from msgspec.structs import replace

from advisor.errors import RequestError
from advisor.knowledge.types import Format, Framework, Gpu, Knowledge
from advisor.memo import Kept
from advisor.models.shape import UNKNOWN
from advisor.models.stored_tensors import PACKED, Model
from advisor.reading.known import read_format
from advisor.scenario import support
from advisor.scenario.settings import Request

_MOST_SHOWN = 8
_MOST_KINDS = 128
Pair = tuple[Format, Framework]
DEFAULT_PRECISION = "FP16"
PUBLISHED = "the published format"
"""Stands for the formats that hold what was released, those of as many bits, then FP16."""
USUAL = "the usual format"
"""Stands for what a runtime takes where nobody names a format (``Framework.usual_formats``)."""
_OWN = {"bfloat16": "BF16", "float16": "FP16"}
"""The format of a checkpoint's own 16 bits."""
_SIXTEEN = re.compile(r"16[ -]?bits?")


def formats_named(text: str, knowledge: Knowledge) -> tuple[Format, ...]:
    """List the formats a precision stands for: one, or all of a family name such as INT4.

    Raises:
        RequestError: Unknown.
    """
    bits = support.family_bits(text)
    if bits is None:
        return read_format(knowledge, text).formats
    meant = (f for f in knowledge.formats.values() if f.class_bits == bits and f.offered)
    return tuple(f for f in meant if not (f.floats and support.says_integers(text, bits)))


def formats_for(text: str, model: Model | None, knowledge: Knowledge) -> tuple[Format, ...]:
    """List the formats a precision stands for, as ``precision_asked`` gives it.

    Raises:
        RequestError: Unknown.
    """
    if text == USUAL:
        return formats_named(DEFAULT_PRECISION, knowledge)
    if text != PUBLISHED or model is None:
        return formats_named(text, knowledge)
    released = [knowledge.formats[name] for name in model.native_formats]
    bits = released[0].class_bits
    alike = [f for f in knowledge.formats.values() if f.class_bits == bits and f.offered]
    plain = formats_named(DEFAULT_PRECISION, knowledge)
    return tuple({f.name: f for f in (*released, *alike, *plain)}.values())


def precision_said(
    text: str | None, named: str, chosen: Format, knowledge: Knowledge
) -> tuple[str, ...]:
    """Say which format was taken for a precision that no entry lists just so.

    Args:
        text: The precision as stated.
        named: What the name of the model says.
        chosen: What was taken.
        knowledge: The knowledge base.
    """
    if not text:
        return ()
    if named and chosen not in formats_named(named, knowledge):
        return (f"The name says {named}, the stated precision {text}: that is what is sized.",)
    if support.family_bits(text) is not None:
        return ()
    return read_format(knowledge, text).said(text, chosen)


def precision_asked(
    request: Request, model: Model | None, framework: Framework | None = None
) -> str:
    """The precision stated, else what the model's name, files, library or publisher say, or usual.

    Args:
        request: What was typed.
        model: What it names.
        framework: The one that is stated.

    Raises:
        RequestError: The files hold a mix that has no name here.
    """
    if request.precision:
        return request.precision
    if model is None:
        return DEFAULT_PRECISION
    if model.held_format:
        return model.held_format
    packed = model.origin == "config" and model.native_dtype == PACKED
    if model.stored is None and not packed:
        return _asked_by_none(model, framework)
    if model.stored is None or model.stored.format_name is None:
        files, config = f"the files of {model.name}", f"the config of {model.name}"
        what = f"{files} hold a mix of types" if model.stored else f"{config} states a packing"
        raise RequestError(
            f"{what} that has no name here",
            hint="State the precision to size it as: --precision.",
        )
    return model.stored.format_name


def _asked_by_none(model: Model, framework: Framework | None) -> str:
    """Say what a model is taken in whose files are not here; a config.json alone is 16 bits."""
    if framework and framework.library_tags:
        from advisor.reading.ollama import library_format  # noqa: PLC0415  of one framework

        if held := library_format(model.name):
            return held
    readable = set(framework.formats if framework and framework.usual_formats else ())
    if model.native_formats and (not readable or readable.intersection(model.native_formats)):
        return PUBLISHED
    return DEFAULT_PRECISION if model.origin == "config" and not model.hf_id else USUAL


def _is_family(text: str) -> bool:
    return support.family_bits(text) is not None


def is_own_dtype(asked: str, chosen: Format) -> bool:
    """Whether 16 bits were taken as the checkpoint's own type, which no command need name."""
    own = asked == USUAL or _SIXTEEN.fullmatch(asked.strip().casefold())
    return bool(own) and chosen.family == "unquantized"


class Choices:
    """What runs on one kind of card for one kind of model, worked out when it is asked for."""

    __slots__ = ("_knowledge", "_pairs", "_runners", "_runs", "_sample", "lists")

    def __init__(self, knowledge: Knowledge, gpu: Gpu | None, model: Model) -> None:
        """Hold a card and a model that stand for their kinds."""
        self._knowledge = knowledge
        self._sample = gpu, model
        self._runners: dict[str, Mapping[str, Framework]] = {}
        self._runs: dict[tuple[str, str], bool] = {}
        self._pairs: dict[tuple[str, str, bool], Pair | None] = {}
        self.lists: dict[tuple[object, ...], tuple[object, Sequence[object]]] = {}
        """Lists of formats and frameworks that follow from the kinds (``remedies.formats``)."""

    def runners(self, precision: Format) -> Mapping[str, Framework]:
        """Give the frameworks that run a format, in knowledge order, by name."""
        found = self._runners.get(precision.name)
        if found is None:
            known = self._knowledge.frameworks.values()
            found = {f.name: f for f in known if self.runs(f, precision)}
            self._runners[precision.name] = found
        return found

    def runs(self, framework: Framework, precision: Format) -> bool:
        """Whether a framework runs a format."""
        key = (framework.name, precision.name)
        found = self._runs.get(key)
        if found is None:
            listed = precision.name in framework.formats
            found = listed and not support.obstacle(framework, precision, *self._sample)
            self._runs[key] = found
        return found

    def default_pair(self, text: str, framework: Framework | None, *, split: bool) -> Pair | None:
        """Give what the defaults choose for a precision as ``precision_asked`` gives it."""
        key = (text, framework.name if framework else "", split)
        if key not in self._pairs:
            tried = candidates(self._knowledge, framework, split=split)
            self._pairs[key] = self.asked_pair(text, tried)
        return self._pairs[key]

    def asked_pair(self, text: str, candidates: Iterable[Framework]) -> Pair | None:
        """Find the first framework that runs what ``precision_asked`` gives, and its best format.

        What is usual is each framework's own, and 16 bits where it has none that runs.
        """
        tried = tuple(candidates)
        if text == USUAL:
            for candidate in tried:
                for name in self._usual(candidate):
                    if self.runs(candidate, self._knowledge.formats[name]):
                        return self._knowledge.formats[name], candidate
        return self.first_pair(
            tried, formats_for(text, self._sample[1], self._knowledge), family=_is_family(text)
        )

    def _usual(self, framework: Framework) -> Sequence[str]:
        own = _OWN.get(self._sample[1].native_dtype or "", DEFAULT_PRECISION)
        return framework.usual_formats or (own, DEFAULT_PRECISION)

    def first_pair(
        self, candidates: Iterable[Framework], formats: Sequence[Format], *, family: bool = False
    ) -> Pair | None:
        """Find the first framework that runs one of the formats, and its best one.

        What the publisher released goes before everything else, then formats of as many bits. A
        ``family`` name (INT8) leaves the format open: what computes step by step in Python goes
        last then, and of formats of one quality that goes first in which the card computes.
        """
        tried = sorted(candidates, key=lambda f: family and f.step_by_step)
        gpu = self._sample[0]
        for tier in _tiers(formats, self._sample[1]):
            for candidate in tried:
                fitting = [f for f in tier if self.runs(candidate, f)]
                if fitting:
                    order = {name: place for place, name in enumerate(candidate.formats)}
                    best = min(
                        fitting,
                        key=lambda f: (
                            *support.quality_order(f),
                            family and not (gpu and support.is_native(f, gpu)),
                            order[f.name],
                        ),
                    )
                    return best, candidate
        return None


_kept: Kept[tuple[object, ...], Choices] = Kept(_MOST_KINDS)
"""Without it a plan takes 1.39 times as long, lines of ``estimate`` 1.05."""


def choices_for(knowledge: Knowledge, gpu: Gpu | None, model: Model) -> Choices:
    """Give the choices of a card and a model, kept for all cards and models alike."""
    key = (
        id(knowledge),
        gpu and (gpu.vendor, gpu.compute_capability, gpu.architecture),
        model.shape.outer_type or model.shape.model_type,
        bool(model.vision_parameters),
        model.modality,
        model.native_formats,
        model.native_dtype,
    )
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


def candidates(
    knowledge: Knowledge, framework: Framework | None, *, split: bool
) -> Sequence[Framework]:
    """List the frameworks to choose from: the stated one, or all, or all that place layers."""
    if framework:
        return [framework]
    known = tuple(knowledge.frameworks.values())
    return [f for f in known if f.places_layers] if split else known


def _tiers(formats: Sequence[Format], model: Model) -> Iterator[Sequence[Format]]:
    own = [f for f in formats if support.is_published(f, model)]
    if own:
        yield own
        yield [f for f in formats if f.class_bits == own[0].class_bits]
    yield formats


def choose(
    knowledge: Knowledge,
    formats: Sequence[Format],
    asked: str,
    *,
    framework: Framework | None,
    gpu: Gpu | None,
    model: Model,
    split: bool = False,
) -> tuple[Format, Framework]:
    """Settle on one format and one framework.

    Args:
        knowledge: The knowledge base.
        formats: What the precision may stand for, at least one.
        asked: The precision as typed, for messages.
        framework: As stated, or None for the default.
        gpu: The card, None when sizes alone are asked for.
        model: The model.
        split: Whether the request places layers or experts itself.

    Raises:
        RequestError: Nothing runs it; the message says why and what does.
    """
    found = None
    if framework is None and gpu is None:
        found = _card_free(knowledge, formats, model)
    chosen = candidates(knowledge, framework, split=split)
    choices = choices_for(knowledge, gpu, model)
    if asked == USUAL:
        found = found or choices.asked_pair(asked, chosen)
    found = found or choices.first_pair(chosen, formats, family=_is_family(asked))
    found = found or (_beyond(formats, framework, gpu, model) if framework else None)
    if found:
        return found
    raise RequestError(
        _nothing_runs(knowledge, formats, asked, framework=framework, gpu=gpu, model=model),
        hint=_what_runs(knowledge, framework, gpu, model),
    )


def _beyond(
    formats: Sequence[Format], framework: Framework, gpu: Gpu | None, model: Model
) -> Pair | None:
    """Take what the stated framework runs in another release, or built for the card by oneself."""
    also = framework.beyond
    wider = replace(
        framework,
        formats=(*framework.formats, *also),
        not_on=tuple(one for one in framework.not_on if one not in also),
    )
    running = (f for f in formats if not support.obstacle(wider, f, gpu, model))
    best = min(running, key=support.quality_order, default=None) if also else None
    return (best, framework) if best else None


def _card_free(
    knowledge: Knowledge, formats: Sequence[Format], model: Model
) -> tuple[Format, Framework] | None:
    """Take the framework whose buffers are known apart from any card where sizes alone are asked.

    llama.cpp's are, for nearly every architecture that can be sized.
    """
    for framework in knowledge.frameworks.values():
        if framework.card_free:
            if support.unsized(framework, model.shape):
                return None
            order = framework.formats
            known = [f for f in formats if f.offered and f.name in order]
            published = [f for f in known if support.is_published(f, model)]
            best = min(
                published or known,
                key=lambda f: (*support.quality_order(f), order.index(f.name)),
                default=None,
            )
            return (best, framework) if best else None
    return None


def _nothing_runs(
    knowledge: Knowledge,
    formats: Sequence[Format],
    asked: str,
    *,
    framework: Framework | None,
    gpu: Gpu | None,
    model: Model,
) -> str:
    tried = [framework] if framework else [*knowledge.frameworks.values()]
    pairs = [(precision, candidate) for precision in formats for candidate in tried]
    known = [(precision, one) for precision, one in pairs if precision.name in one.formats]
    reasons = dict.fromkeys(
        support.why_not(candidate, precision, gpu, model)
        for precision, candidate in known or (pairs if framework else ())
    )
    where = f" on {gpu.name}" if gpu else ""
    listed = "; ".join(list(reasons)[:3]) or "no framework in the knowledge base does"
    if asked in {USUAL, PUBLISHED} and reasons:
        return f"{model.name} cannot run{where}: {listed}."
    return f"{asked} cannot run for {model.name}{where}: {listed}."


def _what_runs(
    knowledge: Knowledge, framework: Framework | None, gpu: Gpu | None, model: Model
) -> str:
    if model.shape.model_type == UNKNOWN:
        return "Its config.json names it: give the path of that file, or --hub."
    if framework and (runnable := _runnable(knowledge, framework, gpu, model)):
        return f"{framework.name} runs: {', '.join(runnable)}. Give one of them as --precision."
    pairs = (
        (f.name, runnable)
        for f in knowledge.frameworks.values()
        if (runnable := _runnable(knowledge, f, gpu, model))
    )
    name, runnable = next(pairs, ("", []))
    what = f"{name} runs: {', '.join(runnable)}. Give --framework {name} or leave it out."
    return what if name else "Nothing known here runs this model."


def _runnable(
    knowledge: Knowledge, framework: Framework, gpu: Gpu | None, model: Model
) -> list[str]:
    """Name the first formats that it runs, as many as a message shows."""
    formats = (knowledge.formats[name] for name in framework.formats)
    running = (f.name for f in formats if f.offered and runs(knowledge, framework, f, gpu, model))
    return list(islice(running, _MOST_SHOWN))
