"""What a config.json leaves unsaid: the defaults that a class has in transformers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final, cast

from advisor.files import table_rows
from advisor.models.architecture import NAMES
from advisor.models.architectures.tables import FAMILIES, WRAPPERS
from advisor.models.config_keys import Keys
from advisor.models.shape import Shape
from advisor.models.vision_towers import Wrapper


def family_of(name: str) -> str:
    """The name that a text part's family has here and in ``Shape.model_type``."""
    return next((known for known, family in FAMILIES.items() if name in family.also), name)


def is_known(name: str) -> bool:
    """Whether a ``model_type``, of a text model or of a wrapper, is in the tables."""
    return name in WRAPPERS or family_of(name) in FAMILIES


_HEAD: Final = re.compile(r"(For[A-Z]\w*|LMHeadModel|Model)$")
_JOINTS: Final = re.compile("[-_.]")


def type_of_class(config: Mapping[str, object]) -> str:
    """The known architecture of the class in ``architectures``: of DeepseekV4ForCausalLM."""
    named = config.get("architectures")
    first = f"{named[0]}" if isinstance(named, list) and named else ""
    plain = _HEAD.sub("", first).lower()
    return next((k for k in (*WRAPPERS, *FAMILIES) if plain and _JOINTS.sub("", k) == plain), "")


_FILE: Final = "class_defaults.tsv"
_BUILT: Final = "built"
_PARTS: Final = "sub_configs"
_SIZES: Final = re.compile(
    r"hidden|intermediate|vocab|heads?|layers|experts|head_dim|rank|window|width|_dim$|d_ff|pattern"
)

Defaults = Mapping[str, object]
_NONE: Final[Defaults] = MappingProxyType({})


def class_defaults(model_type: str) -> Defaults:
    """Give the structural keys of a class with their defaults; empty for an unknown class."""
    found = (row[-1] for row in table_rows(_FILE) if row[0] == model_type)
    return cast("dict[str, object]", json.loads(next(found, "{}")))


def built_factor(model_type: str) -> float:
    """Give how many times what is estimated of its defaults a class builds; 1 where unknown."""
    found = class_defaults(model_type).get(_BUILT)
    return found if isinstance(found, float) else 1.0


def part_defaults(model_type: str, part: str) -> Defaults:
    """Give what a part of a wrapper is where the file has none of that name.

    Returns:
        Its ``model_type`` and where it differs from that class; empty where the wrapper's class
        makes no such part.
    """
    found = parts_made(model_type).get(part)
    return found if isinstance(found, Mapping) else _NONE


def parts_made(model_type: str) -> Defaults:
    """Give the parts that the class of a wrapper makes, by their keys."""
    found = class_defaults(model_type).get(_PARTS)
    return found if isinstance(found, Mapping) else _NONE


def parts_estimated(outer: Keys, text: Keys, model_type: str) -> int:
    """Estimate the parameters of the parts beside the text model: plain transformer blocks."""
    stated = {name: v for name, v in outer.data.items() if name.endswith("_config")}
    usual = (name for name in parts_made(model_type) if name.endswith("_config"))
    made = set(usual) - {*stated, *TEXT_PARTS}
    total = sum(_blocks_of({}, _usual_part(model_type, name, {}), text) for name in made)
    for name, value in stated.items():
        if isinstance(value, Mapping) and value is not text.data:
            total += _blocks_of(value, _usual_part(model_type, name, value), text)
    return total


def _usual_part(model_type: str, name: str, stated: Mapping[str, object]) -> Mapping[str, object]:
    """What an absent size of a part means; a part that is not there at all may differ from that."""
    made = part_defaults(model_type, name)
    named = stated.get("model_type") or made.get("model_type")
    usual = class_defaults(f"{named}")
    return usual if stated else {**usual, **made}


_OTHER_LAYERS: Final = ("encoder_layers", "num_layers")


def _blocks_of(part: Mapping[str, object], usual: Mapping[str, object], text: Keys) -> int:
    def first(*names: str) -> int:
        found = (values.get(name) for values in (part, usual) for name in names)
        return next((n for n in found if type(n) is int and 0 < n < 10**6), 0)

    hidden = first("embed_dim", "hidden_size", "d_model", "width", "vt_hidden_size")
    layers = first("num_hidden_layers", "depth", "layers", "vt_num_hidden_layers", *_OTHER_LAYERS)
    width = first("intermediate_size", "encoder_ffn_dim", "ffn_dim") or 4 * hidden
    beside = (v for v in part.values() if isinstance(v, Mapping) and v is not text.data)
    inner = sum(_blocks_of(value, {}, text) for value in beside)
    return layers * hidden * (4 * hidden + 2 * width) + inner


def keeps_nothing(model_type: str) -> bool:
    """Whether the code of a class never speaks of a cache, as an encoder's does not."""
    return class_defaults(model_type).get("caches") is False


def is_size(key: str) -> bool:
    """Whether a key states a size of the model, by its name."""
    return _SIZES.search(key) is not None


HIDDEN: Final = NAMES["hidden"]
TEXT_PARTS: Final = NAMES["text part"]
_VISION: Final = "vision_config"


def text_part(outer: Keys, model_type: str, wrapper: Wrapper | None, *, whole: bool) -> Keys | None:
    """The part that holds the text model; None where its keys stand outside."""
    nested = outer.section(*TEXT_PARTS)
    if nested is not None or wrapper is None or not whole or outer.stated(*HIDDEN) is not None:
        return nested
    made = next((p for p in TEXT_PARTS if part_defaults(model_type, p)), None)
    return outer.part(made, part_defaults(model_type, made)) if made else None


def with_class_defaults(
    outer: Keys, text: Keys, model_type: str, text_type: str
) -> tuple[Keys, Keys]:
    """Put the defaults of the reference classes behind the keys of a file."""
    behind = {**class_defaults(text_type), **text.of_class}
    if text is outer:
        inner = part_defaults(model_type, TEXT_PARTS[0]).get("model_type", "")
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


_HARMLESS: Final = re.compile(
    "|".join(part for row in table_rows("harmless_keys.tsv") for part in row[0].split())
)
"""Keys that change no size."""
_DRAFTS: Final = re.compile(r"nextn|mtp")
_MOST_NAMED, _MOST_SIZES = 4, 16


def doubts_of(parts: Iterable[tuple[Keys, str]]) -> tuple[str, ...]:
    """Say of the parts of a config which structural keys nothing read, and what was assumed.

    Each part comes with the ``model_type`` of its class.
    """
    listed = tuple(parts)
    unread = [name for keys, kind in listed for name in _unread(keys, kind)]
    if not unread:
        return ()
    shown = ", ".join(unread[:_MOST_NAMED]) + (" ..." if unread[_MOST_NAMED:] else "")
    return (f"Approximate: its config states {shown}, which advisor does not read.",)


def assumed_of(keys: Keys, shape: Shape) -> tuple[str, ...]:
    """Say which sizes the file does not state, so that those of its class were taken."""
    tables = ("window", shape.window), ("expert", shape.moe), ("per_layer", shape.lookup)
    unused = ["pattern", *(word for word, used in tables if not used)]
    sizes = [
        f"{key} {value}"
        for key, value in sorted(keys.seen.assumed.items())
        if is_size(key.rpartition(".")[2]) and type(value) is int and value > 1
        if not any(word in key.replace("moe_", "expert_") for word in unused)
    ]
    if not sizes:
        return ()
    told, more = ", ".join(sizes[:_MOST_SIZES]), len(sizes) - _MOST_SIZES
    rest = f" and {more} more" if more > 0 else ""
    return (f"Its config does not state {told}{rest}: the default of its class is taken.",)


def _unread(keys: Keys, kind: str) -> Iterator[str]:
    usual: Mapping[str, object] = class_defaults(kind)
    for name, value in keys.unread().items():
        if _HARMLESS.search(name.lower()) or _DRAFTS.search(name) or usual.get(name) == value:
            continue
        if name == "layer_types" and _is_plain(value):
            continue
        if _shapes(value) or (value is False and usual.get(name) is True):
            yield name


def _is_plain(value: object) -> bool:
    """Whether all layers are of one kind, and of none that forgets."""
    kinds = set(map(str, value)) if isinstance(value, list) else set()
    return len(kinds) == 1 and not re.search("sliding|chunk|linear|conv|mamba", "".join(kinds))


def _shapes(value: object) -> bool:
    """Whether a value may be a size, a pattern or a switch that is on."""
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value > 1
    return isinstance(value, list | tuple | Mapping) and len(value) > 0
