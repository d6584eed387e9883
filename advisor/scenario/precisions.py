"""Which weight formats a precision stands for: one name, a family name, or what was published."""

from __future__ import annotations

from advisor.errors import RequestError
from advisor.knowledge import names
from advisor.knowledge.types import Format, Knowledge
from advisor.models.model import Model
from advisor.scenario import support
from advisor.scenario.settings import Request

DEFAULT_PRECISION = "FP16"
PUBLISHED = "the published format"
"""Stands for the formats that hold what was released, those of as many bits, then FP16."""


def formats_named(text: str, knowledge: Knowledge) -> tuple[Format, ...]:
    """List the formats a precision stands for: one, or all of a family name such as INT4.

    Raises:
        RequestError: Unknown.
    """
    bits = support.family_bits(text)
    if bits is None:
        return names.find_format_candidates(knowledge, text)
    return tuple(f for f in knowledge.formats.values() if f.class_bits == bits and f.offered)


def formats_for(text: str, model: Model | None, knowledge: Knowledge) -> tuple[Format, ...]:
    """List the formats a precision stands for, as ``precision_asked`` gives it.

    Raises:
        RequestError: Unknown.
    """
    if text != PUBLISHED or model is None:
        return formats_named(text, knowledge)
    released = [knowledge.formats[name] for name in model.native_formats]
    bits = released[0].class_bits
    alike = [f for f in knowledge.formats.values() if f.class_bits == bits and f.offered]
    plain = formats_named(DEFAULT_PRECISION, knowledge)
    return tuple({f.name: f for f in (*released, *alike, *plain)}.values())


def precision_asked(request: Request, model: Model | None) -> str:
    """The precision stated, else what the model's files hold or was published, else FP16.

    Raises:
        RequestError: The files hold a mix that has no name here.
    """
    if request.precision:
        return request.precision
    if model is None:
        return DEFAULT_PRECISION
    if model.stored is None:
        return PUBLISHED if model.native_formats else DEFAULT_PRECISION
    if model.stored.format_name is None:
        raise RequestError(
            f"the files of {model.name} hold a mix of types that has no name here",
            hint="State the precision to size it as: --precision.",
        )
    return model.stored.format_name
