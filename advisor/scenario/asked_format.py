"""Which formats a precision stands for, and which one is meant where none is stated."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Final

from advisor.errors import RequestError
from advisor.knowledge.types import Format, Framework, Gpu, Knowledge, KvType
from advisor.models.stored_tensors import PACKED, Model
from advisor.reading.known import read_format
from advisor.scenario import support
from advisor.scenario.capability import is_obtainable
from advisor.scenario.settings import Request

Caches = tuple[str, ...]
"""Names of types of the cache."""
DEFAULT_PRECISION = "FP16"
PUBLISHED = "the published format"
"""Stands for the formats that hold what was released, those of as many bits, then FP16."""
USUAL = "the usual format"
"""Stands for what a runtime takes where nobody names a format (``Framework.usual_formats``)."""
SLOW_KERNELS = frozenset({"bnb"})
"""Families of formats that are unpacked in kernels of their own at each product."""
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
        from advisor.reading.format_patterns import library_format  # noqa: PLC0415  of one framework

        if held := library_format(model.name):
            return held
    readable = set(framework.formats if framework and framework.usual_formats else ())
    if model.native_formats and (not readable or readable.intersection(model.native_formats)):
        return PUBLISHED
    return DEFAULT_PRECISION if model.origin == "config" and not model.hf_id else USUAL


def is_family(text: str) -> bool:
    """Whether a precision is a name of a family of formats: INT4, 8-bit ..."""
    return support.family_bits(text) is not None


def is_own_dtype(asked: str, chosen: Format) -> bool:
    """Whether 16 bits were taken as the checkpoint's own type, which no command need name."""
    own = asked == USUAL or _SIXTEEN.fullmatch(asked.strip().casefold())
    return bool(own) and chosen.family == "unquantized"


def server_caches(
    knowledge: Knowledge, gpu: Gpu | None, batch: int, asked: str, caches: Iterable[KvType]
) -> Caches:
    """Name the types of the cache that a server is to keep where one is meant, else nothing.

    One is: many requests on a card of a data centre, and no file of another program.
    """
    many = batch >= knowledge.policy["server_from_sequences"]
    on_server = many and gpu is not None and gpu.segment == "datacenter"
    open_format = asked in {USUAL, PUBLISHED, "BF16", "FP16"} or is_family(asked)
    return tuple(kind.name for kind in caches) if on_server and open_format else ()


def distance(
    asked: Sequence[Format],
    usual: Sequence[str],
    model: Model,
    late: Container[str],
    other: Format,
) -> tuple[float, ...]:
    """Order formats: as published, as usual, then by how far they are from those asked for.

    Those of the families in ``late`` go last.
    """
    again = not support.is_published(other, model), support.keeps_experts(other, model)
    far = min(abs(_bits(other) - _bits(f)) for f in asked)
    return other.family in late, *again, other.name not in usual[:1], far


def _bits(precision: Format) -> float:
    return precision.class_bits or precision.bits_per_weight or 16


def likely_order(
    asked: Sequence[Format], framework: Framework, model: Model, other: Format
) -> tuple[object, ...]:
    """Order formats that are equally far: what was asked for, and what can be had, goes first."""
    held = other not in asked, not is_obtainable(framework, other, model)
    return *held, support.quality_order(other), framework.formats.index(other.name)


_FOR_WEIGHTS: Final = 0.9
"""Share of the memory that weights may take where something is to be computed beside them."""


def has_room(
    precision: Format, gpu: Gpu | None, model: Model, cards: int, policy: Mapping[str, float]
) -> bool:
    """Whether the cards may hold the weights; what is not GGUF keeps embedding and output whole."""
    bits = precision.bits_per_weight or precision.class_bits
    if gpu is None or not gpu.vram_bytes or not bits:
        return True
    wide = model.shape.vocab * model.shape.hidden * (1 if model.shape.tied else 2)
    wide = min(wide, model.parameters) if precision.kind != "gguf" else 0
    size = ((model.parameters - wide) * bits + wide * max(bits, 16)) / 8
    kept = policy[unified_share(gpu, policy)] / 100 if gpu.unified_memory else 0.0
    return size <= _FOR_WEIGHTS * (1 - kept) * cards * gpu.vram_bytes


def unified_share(gpu: Gpu, policy: Mapping[str, float]) -> str:
    """Name the share that a machine's system keeps of one memory: the kind's own, or the usual."""
    own = f"reserve_{gpu.segment}_unified_share"
    return own if own in policy else "reserve_unified_share"
