"""Which weight formats are worth trying, kept for each kind of card, and what else runs them."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from functools import wraps
from itertools import groupby
from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace

from advisor.estimator.weights import weight_profile
from advisor.knowledge.catalogue import backend_in
from advisor.knowledge.types import Format, Framework, Gpu, Knowledge
from advisor.models.stored_tensors import Model
from advisor.runtimes import runtime_of
from advisor.scenario import Scenario, can_split, support
from advisor.scenario.asked_format import precision_asked
from advisor.scenario.capability import has_slow_kernels, slow_weights
from advisor.scenario.choices import Pair, choices_for, obtainable, runs
from advisor.scenario.support import without_lost_drafts

if TYPE_CHECKING:
    from advisor.remedies.option import Base

Sized = tuple[Format, int]
"""A format, and the bytes of the model's weights in it."""
_Item = TypeVar("_Item")
_Listed = Callable[[Scenario, Knowledge], Sequence[_Item]]
_FOUR_BITS = 4


def _once(*parts: str) -> Callable[[_Listed[_Item]], _Listed[_Item]]:
    """Build a list once per kind of card, framework and these parts of a scenario."""

    def decorated(build: _Listed[_Item]) -> _Listed[_Item]:
        @wraps(build)
        def found(scenario: Scenario, knowledge: Knowledge) -> Sequence[_Item]:
            lists = choices_for(knowledge, scenario.gpu, scenario.model).lists
            records = [getattr(scenario, part) for part in parts]
            key = (build, scenario.framework.name, *map(id, records))
            entry = lists.get(key)
            if entry is None:
                entry = lists[key] = (records, build(scenario, knowledge))
            return entry[1]  # type: ignore[return-value]  # written by the same build

        return found

    return decorated


def worth_having(scenario: Scenario, knowledge: Knowledge) -> Sequence[Format]:
    """Formats of the framework but those larger and worse than another, the smallest first."""
    sized = reversed(sized_formats(scenario, knowledge))
    return [precision for precision, _ in sized if can_share(scenario, precision)]


def can_share(scenario: Scenario, precision: Format) -> bool:
    """Whether the cards can share the model in this format; one card always can."""
    return scenario.gpus == 1 or can_split(replace(scenario, precision=precision))


@_once("model")
def sized_formats(scenario: Scenario, knowledge: Knowledge) -> Sequence[Sized]:
    """The formats worth having with what the weights take in each, bytes; the largest first."""
    return _sized(scenario, knowledge)


def _sized(
    scenario: Scenario, knowledge: Knowledge, asked: Container[str] | None = None
) -> Sequence[Sized]:
    """The like, of those that are asked for: none of the others may keep one of them out."""
    framework, model = scenario.framework, scenario.model
    listed = [
        (precision, framework)
        for name in framework.formats
        if (precision := knowledge.formats[name]).offered
        and not support.keeps_experts(precision, model)
        and runs(knowledge, framework, precision, scenario.gpu, model)
        and (model.shape.moe or precision.family not in support.EXPERTS_ONLY)
    ]
    sized = [
        (precision, weight_profile(model, precision, framework, knowledge.ggml_types).total_bytes)
        for precision, _ in obtainable(listed, model, scenario.gpu, knowledge)
        if asked is None or precision.name in asked
    ]
    gpu, own = scenario.gpu, support.own_sixteen(model)
    sized.sort(key=lambda one: (one[1], support.quality_order(one[0]), _later(one[0], gpu, own)))
    kept, best = list[Sized](), float("inf")
    for precision, size in sized:
        loss = support.format_loss(precision, model)
        if precision.family == "unquantized" and any(f.family == "unquantized" for f, _ in kept):
            continue
        worth = best > 0 if loss is None else loss < best
        if worth:
            kept.append((precision, size))
            if loss is not None and not slow_weights(framework, precision, gpu, model):
                best = loss
    return [one for one in kept[::-1] if not _outdone(one, kept, scenario)]


def _later(precision: Format, gpu: Gpu | None, own: str) -> tuple[bool, bool]:
    """Order equal sizes: floats that the card multiplies go last, the model's own 16 bits first."""
    floats = gpu and precision.family in support.FLOAT_UNITS and support.is_native(precision, gpu)
    return bool(floats), precision.name != own


def _outdone(one: Sized, others: Sequence[Sized], scenario: Scenario) -> bool:
    """Whether a server has one of as many bits, no larger, that this card has units for.

    Only where nobody measured what either loses; FP8 also where nobody says which units there are.
    """
    (precision, size), model, gpu = one, scenario.model, scenario.gpu
    measured = support.format_loss(precision, model) is not None
    if measured or gpu is None or not scenario.framework.serves_batches:
        return False
    return not support.is_native(precision, gpu) and any(
        other.class_bits == precision.class_bits
        and stored <= size
        and support.is_native(other, gpu) in ((True, None) if other.family == "fp8" else (True,))
        and support.format_loss(other, model) is None
        for other, stored in others
        if other is not precision
    )


@_once("model")
def faithful_formats(scenario: Scenario, knowledge: Knowledge) -> Sequence[Sized]:
    """Those below 16 bits that lose little, or are likely to; in a server the quick ones."""
    most, model = knowledge.policy["little_loss_percent"], scenario.model
    listed = (knowledge.formats[name] for name in scenario.framework.formats)
    kind = [f for f in listed if f.family != "unquantized" and has_quick_kernels(scenario, f)]
    asked = {one.name for one in kind if (support.format_loss(one, model) or 0.0) <= most}
    sized = _sized(scenario, knowledge, asked)
    return [one for one in sized if _loses_little(one[0], scenario, knowledge)]


def _loses_little(precision: Format, scenario: Scenario, knowledge: Knowledge) -> bool:
    """Whether it loses little, or nobody measured it and it has four bits that the card likes.

    Of GGUF formats only measured ones count: there is one of every size. Of MXFP4, whose scales are
    powers of two, only what was trained for it.
    """
    model = scenario.model
    loss = support.format_loss(precision, model)
    if loss is not None:
        return loss <= knowledge.policy["little_loss_percent"]
    if precision.kind == "gguf" or support.is_rounded(precision, model):
        return False
    needed, gpu = precision.native_compute_capability, scenario.gpu
    likes = not (needed and gpu and gpu.compute_capability) or gpu.compute_capability >= needed
    return likes and (precision.class_bits or 0) >= _FOUR_BITS


@_once()
def families_elsewhere(scenario: Scenario, knowledge: Knowledge) -> Sequence[Sequence[Pair]]:
    """Format families that only other frameworks run, each from its largest format down."""
    own, known = set(scenario.framework.formats), knowledge.formats.values()
    formats = [f for f in known if f.offered and f.name not in own]
    choices = choices_for(knowledge, scenario.gpu, scenario.model)
    pairs = [
        (f, framework)
        for f in sorted(formats, key=_family_order)
        if (framework := next(filter(_kept_up, choices.runners(f).values()), None))
    ]
    return [list(group) for _, group in groupby(pairs, key=lambda pair: pair[0].family)]


def _kept_up(framework: Framework) -> bool:
    return support.upkeep(framework) is None


def _family_order(precision: Format) -> tuple[str, float]:
    return (precision.family, -(precision.bits_per_weight or 0.0))


@_once("precision", "model")
def other_frameworks(scenario: Scenario, knowledge: Knowledge) -> Sequence[Pair]:
    """Other modelled frameworks, each with the format it would run in place of this one."""
    return [
        (precision, framework)
        for framework in knowledge.frameworks.values()
        if _differs(framework, scenario.framework)
        if (precision := _same_class(scenario, knowledge, framework))
    ]


def _differs(framework: Framework, present: Framework) -> bool:
    """Whether it is another engine: Ollama runs llama.cpp, so neither is news to the other."""
    if framework is present or not framework.sized or not _kept_up(framework):
        return False
    return framework.memory_model != present.memory_model or not runtime_of(framework).one_engine


_USUAL_BITS = (4, 8)
"""Bits that servers have formats of, the fewest first."""


def _same_class(scenario: Scenario, knowledge: Knowledge, framework: Framework) -> Format | None:
    """The same format or, where it has none or one with slow kernels, one of equal bits."""
    own, gpu, model = scenario.precision, scenario.gpu, scenario.model
    if not has_slow_kernels(framework, own, gpu, model) and runs(
        knowledge, framework, own, gpu, model
    ):
        return own
    bits = own.class_bits or 0
    for class_bits in (bits, *(more for more in _USUAL_BITS if 0 < bits < more)):
        found = _of_bits(scenario, knowledge, framework, class_bits)
        quick = (f for f in found if not has_slow_kernels(framework, f, gpu, model))
        equal = found if class_bits == bits else quick
        if best := _preferred(equal, framework, scenario, knowledge):
            return best
    return None


def _preferred(
    formats: Iterable[Format], by: Framework, scenario: Scenario, knowledge: Knowledge
) -> Format | None:
    gpu, model = scenario.gpu, scenario.model
    held = [f for f, _ in obtainable(((f, by) for f in formats), model, gpu, knowledge)]
    return min(held, key=lambda f: _preference(by, f, gpu, model), default=None)


def of_equal_bits(
    scenario: Scenario, knowledge: Knowledge, framework: Framework, precision: Format
) -> Iterator[Format]:
    """Formats of a framework that run here, of the same number of bits."""
    if precision.class_bits is not None:
        yield from _of_bits(scenario, knowledge, framework, precision.class_bits)


def of_usual_bits(
    scenario: Scenario, knowledge: Knowledge, framework: Framework
) -> Iterator[Format]:
    """Of the bits that servers have formats of, the most first, give what is preferred."""
    for bits in reversed(_USUAL_BITS):
        formats = _of_bits(scenario, knowledge, framework, bits)
        if found := _preferred(formats, framework, scenario, knowledge):
            yield found


def _of_bits(
    scenario: Scenario, knowledge: Knowledge, framework: Framework, class_bits: int
) -> Iterator[Format]:
    for name in framework.formats:
        other = knowledge.formats[name]
        equal = other.offered and other.class_bits == class_bits
        if equal and runs(knowledge, framework, other, scenario.gpu, scenario.model):
            yield other


def _preference(by: Framework, precision: Format, gpu: Gpu | None, model: Model) -> list[float]:
    native = gpu is not None and support.is_native(precision, gpu) is True
    published = support.is_published(precision, model)
    slow = has_slow_kernels(by, precision, gpu, model)
    return [not published, slow, not native, *support.quality_order(precision)]


def has_quick_kernels(scenario: Scenario, precision: Format) -> bool:
    """Whether it is a format that a server computes in at speed; other programs take any."""
    framework, gpu, model = scenario.framework, scenario.gpu, scenario.model
    return not (framework.serves_batches and has_slow_kernels(framework, precision, gpu, model))


def in_framework(base: Base, framework: Framework, precision: Format) -> Scenario | None:
    """The request in another framework; None where its cache type or cards cannot follow."""
    scenario = base.scenario
    for kind in (scenario.kv_cache_k, scenario.kv_cache_v):
        if not support.runs_kv(framework, kind, scenario.gpu, scenario.model.shape):
            return None
    places, flash = framework.places_layers, base.request.flash_attention
    other = replace(
        scenario,
        framework=framework,
        stages=scenario.stages if framework is scenario.framework else None,
        precision=precision,
        backend=scenario.gpu and backend_in(framework, scenario.gpu, scenario.backend),
        flash_attention=framework.flash_attention is not False if flash is None else flash,
        gpu_layers=scenario.gpu_layers if places else None,
        cpu_experts=scenario.cpu_experts if places and framework.expert_offload else 0,
    )
    other = without_lost_drafts(other)
    return other if can_split(other) else None


def in_placing(base: Base, precision: Format | None = None) -> Scenario | None:
    """The request in the framework that places layers, where its own does not.

    Without ``precision`` the largest format worth having there is kept.
    """
    for framework in base.knowledge.frameworks.values():
        if framework.places_layers:
            kept = in_framework(base, framework, precision or base.scenario.precision)
            if precision or kept is None:
                return kept
            formats = worth_having(kept, base.knowledge)
            return in_framework(base, framework, formats[-1]) if formats else None
    return None


def read_again(base: Base, card: Gpu) -> Format:
    """What was asked means on another card, where another engine reads the format of today's.

    So where today's card does not run what the model was released in, and the other does.
    """
    own, released = base.scenario, base.scenario.model.native_formats
    listed = own.precision.name in own.framework.formats
    if listed and (not released or support.is_published(own.precision, own.model)):
        return own.precision
    asked = precision_asked(base.request, own.model, own.framework)
    choices = choices_for(base.knowledge, card, own.model)
    pair = choices.default_pair(asked, own.framework, own.model, split=False, serves=())
    taken = pair and (not listed or support.is_published(pair[0], own.model))
    return pair[0] if pair and taken else own.precision
