"""Which formats a precision stands for, and which one is meant where none is stated."""

from __future__ import annotations

import re
from collections.abc import Iterable

from advisor.errors import RequestError
from advisor.knowledge.types import Format, Framework, Gpu, Knowledge, KvType
from advisor.models.stored_tensors import PACKED, Model
from advisor.reading.known import read_format
from advisor.scenario import support
from advisor.scenario.settings import Request

Caches = tuple[str, ...]
"""Names of types of the cache."""
DEFAULT_PRECISION = "FP16"
PUBLISHED = "the published format"
"""Stands for the formats that hold what was released, those of as many bits, then FP16."""
USUAL = "the usual format"
"""Stands for what a runtime takes where nobody names a format (``Framework.usual_formats``)."""
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
