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
