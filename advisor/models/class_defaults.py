"""What absent keys of a config.json mean: the defaults of its class in transformers.

``knowledge/class_defaults.tsv`` has a line for each ``model_type``; its first line names the
version. ``benchmarks/class_defaults.py`` makes it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Final, cast

from advisor.files import data_dir
from advisor.models.config_keys import Keys
from advisor.models.vision_towers import Wrapper

_FILE: Final = "class_defaults.tsv"
_PARTS: Final = "sub_configs"
_SIZES: Final = re.compile(
    r"hidden|intermediate|vocab|heads?|layers|experts|head_dim|rank|window|width|_dim$|d_ff|pattern"
)

Defaults = Mapping[str, object]
_NONE: Final[Defaults] = MappingProxyType({})


@cache
def _table() -> str:
    return (data_dir("knowledge") / _FILE).read_text(encoding="ascii")


@cache
def class_defaults(model_type: str) -> Defaults:
    """Give the structural keys of a class with their defaults; empty for an unknown class."""
    _, found, rest = _table().partition(f"\n{model_type}\t")
    line = rest.partition("\n")[0].partition("\t")[2] if found else "{}"
    return cast("dict[str, object]", json.loads(line))


def part_defaults(model_type: str, part: str) -> Defaults:
    """Give what a part of a wrapper is where the file has none of that name.

    Returns:
        Its ``model_type`` and where it differs from that class; empty where the wrapper's class
        makes no such part.
    """
    parts = class_defaults(model_type).get(_PARTS)
    found = parts.get(part) if isinstance(parts, Mapping) else None
    return found if isinstance(found, Mapping) else _NONE


def keeps_nothing(model_type: str) -> bool:
    """Whether the code of a class never speaks of a cache, as an encoder's does not."""
    return class_defaults(model_type).get("caches") is False


def is_size(key: str) -> bool:
    """Whether a key states a size of the model, by its name."""
    return _SIZES.search(key) is not None


HIDDEN: Final = ("hidden_size", "d_model", "n_embd", "dim")
_TEXT_PARTS: Final = ("text_config", "llm_config", "language_config", "text_model_config")
_VISION: Final = "vision_config"


def text_part(outer: Keys, model_type: str, wrapper: Wrapper | None, *, whole: bool) -> Keys | None:
    """The part that holds the text model; None where its keys stand outside."""
    nested = outer.section(*_TEXT_PARTS)
    if nested is not None or wrapper is None or not whole or outer.stated(*HIDDEN) is not None:
        return nested
    made = next((p for p in _TEXT_PARTS if part_defaults(model_type, p)), None)
    return outer.part(made, part_defaults(model_type, made)) if made else None


def with_class_defaults(
    outer: Keys, text: Keys, model_type: str, text_type: str
) -> tuple[Keys, Keys]:
    """Put the defaults of the reference classes behind the keys of a file."""
    behind = {**class_defaults(text_type), **text.of_class}
    if text is outer:
        inner = part_defaults(model_type, _TEXT_PARTS[0]).get("model_type", "")
        behind = {**class_defaults(f"{inner}"), **behind}
        both = outer.with_class({**class_defaults(model_type), **behind})
        return both, both
    return outer.with_class(class_defaults(model_type)), text.with_class(behind)


def vision_part(outer: Keys, model_type: str) -> Keys | None:
    """The part that describes the image tower, or the tower that the class makes without it."""
    stated = outer.section(_VISION)
    made = part_defaults(model_type, _VISION) if outer.of_class else None
    if not made:
        return stated
    if stated is not None:
        named = stated.word("model_type") or made["model_type"]
        return stated.with_class(class_defaults(f"{named}"))
    if _VISION in outer.data:
        return None
    return outer.part(_VISION, {**class_defaults(f"{made['model_type']}"), **made})
