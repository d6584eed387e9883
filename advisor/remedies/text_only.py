"""The part of a model that reads images, left out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from advisor.models.resolution import text_alone
from advisor.remedies.option import Base, Option, Remedy, make_option
from advisor.remedies.search import Plan
from advisor.runtimes.commands import can_tell
from advisor.scenario.figures import margin_of
from advisor.scenario.scenario import Scenario

_CHANGE: Final = {"text_only": True}
_FOR_IMAGES: Final = re.compile(
    r"vl\d?\b|vlm|vision|ocr|llava|pixtral|molmo|internvl|minicpm-v|paligemma|moondream|florence"
    r"|idefics|multimodal|omni|\dv\b",
    re.IGNORECASE,
)
"""Names of models made to read images: who asks for one wants that part."""


def propose(base: Base, *_: object) -> Iterator[Option]:
    """The same without its image reader, where memory is short."""
    if base.fits and margin_of(base.memory, base.knowledge.policy) != "thin":
        return
    other = _without_images(base)
    if other:
        yield make_option(base, REMEDY, _CHANGE, other)


def text_alone_plan(base: Base) -> Plan | None:
    """The start of a combination without the image reader; None where there is none."""
    other = _without_images(base)
    return Plan(base.scenario).then(other, _CHANGE, "setting") if other else None


def _without_images(base: Base) -> Scenario | None:
    """The request for text alone; None where images were asked for or the runtime cannot."""
    request, own = base.request, base.scenario
    model = text_alone(own.model)
    if request.images or request.image_size or _FOR_IMAGES.search(own.model.name):
        return None
    if model is own.model:
        return None
    other = replace(own, model=model, text_only=True)
    return other if can_tell(other, "text_only") else None


REMEDY = Remedy("text-only", frozenset({"text_only"}), "setting", propose)
