"""The tables of ``knowledge/architectures.yaml``, with the formulas and functions that they name.

A function that a field may name stands in a module of this folder, or in one of ``_MODULES``
beside it: what counts parameters, says what a layer does, or reads a size.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any, Final

from msgspec import Struct, convert

from advisor.errors import KnowledgeError, Source, did_you_mean
from advisor.files import compiled, data_dir, hashed
from advisor.models import architecture, layer_patterns, parameter_terms, recurrent, vision_towers
from advisor.models.architecture import Arch, Family, Gguf
from advisor.models.architectures import decoders, encoders, gemma, latent, seeing, uneven
from advisor.models.config_keys import Keys
from advisor.models.vision_towers import Tower, VisionFamily, Wrapper
from advisor.yamlfile import parse_yaml

FILE: Final = "architectures.yaml"
_MODULES: Final = (
    architecture,
    layer_patterns,
    parameter_terms,
    recurrent,
    vision_towers,
    decoders,
    encoders,
    gemma,
    latent,
    seeing,
    uneven,
)
_NAMED: Final[Mapping[str, Callable[..., Any]]] = {
    name: made
    for module in _MODULES
    for name, made in vars(module).items()
    if isinstance(made, FunctionType) and made.__module__ == module.__name__
}
_Entry = dict[str, Any]
_OWN: Final = ("also", "gguf")
"""What an entry does not take over from the one that it is like."""


def _read() -> dict[str, Any]:
    content = (data_dir("knowledge") / FILE).read_bytes()
    return compiled("architectures", hashed(content), lambda: _parsed(content), dict[str, Any])


def _parsed(content: bytes) -> dict[str, Any]:
    """Read the file; what an entry is like is written out."""
    tables: Any = parse_yaml(content, f"knowledge/{FILE}", KnowledgeError).plain()
    for name in ("families", "wrappers", "towers"):
        entries = tables[name]
        tables[name] = {key: _whole(entry, entries) for key, entry in entries.items()}
    return dict(tables)


def _whole(entry: _Entry, entries: Mapping[str, _Entry]) -> _Entry:
    if "like" not in entry:
        return entry
    taken = _whole(entries[entry["like"]], entries)
    own = {key: value for key, value in entry.items() if key != "like"}
    return {key: value for key, value in taken.items() if key not in _OWN} | own


def _made(said: object, declared: str) -> Any:
    """Make of a value of the file what a field or a parameter is declared as."""
    if declared == "tuple[Gguf, ...]" and isinstance(said, list):
        return tuple(map(_gguf, said))
    if declared == "VisionFamily | None":
        return TOWERS[said] if isinstance(said, str) else _struct(VisionFamily, said)
    if declared == "Mapping[str, Terms]" and isinstance(said, Mapping):
        return {letter: _made(terms, "Terms") for letter, terms in said.items()}
    if declared == "Terms" and isinstance(said, list):
        return tuple(map(_function, said))
    if said is not None and declared.startswith(("Term", "Kinds", "Projector", "Callable")):
        return _function(said)
    return tuple(said) if isinstance(said, list) else said


def _struct(kind: type, said: Any) -> Any:
    declared = kind.__annotations__
    return kind(**{key: _made(value, declared[key]) for key, value in said.items()})


def _function(said: Any) -> Any:
    """Find a function by its name, or make it: ``{when: [attention_bias, all_bias]}``."""
    if isinstance(said, str):
        return _named(said)
    ((name, given),) = said.items()
    make = _named(name)
    declared = make.__annotations__
    if not isinstance(given, Mapping):
        values = given if isinstance(given, list) else [given]
        given = dict(zip(declared, values, strict=False))
    return make(**{key: _made(value, declared[key]) for key, value in given.items()})


def _named(name: str) -> Any:
    formulas = _TABLES["formulas"]
    if name in formulas:
        return Formula(f"{formulas[name]}")
    if name not in _NAMED:
        message = f"'{name}' is no formula, and no function of advisor/models."
        hint = did_you_mean(name, {**_NAMED, **formulas})
        raise KnowledgeError(message, source=Source(f"knowledge/{FILE}"), hint=hint)
    return _NAMED[name]


_TOKENS: Final = re.compile(r"//|[-+*()]|\[[^]]+\]|[\w.]+")


class Formula(Struct, frozen=True):
    """A summand as the file writes it: ``2 * hidden * [n_shared_experts:2] + vocab``."""

    text: str

    def __call__(self, a: Arch | Tower) -> int:
        """Work it out for a model, or for its tower."""
        return _sum(a, _TOKENS.findall(self.text)[::-1])


def _sum(a: Arch | Tower, left: list[str]) -> int:
    total = _product(a, left)
    while left and left[-1] in {"+", "-"}:
        sign = 1 if left.pop() == "+" else -1
        total += sign * _product(a, left)
    return total


def _product(a: Arch | Tower, left: list[str]) -> int:
    found = _value(a, left)
    while left and left[-1] in {"*", "//"}:
        times, other = left.pop() == "*", _value(a, left)
        found = found * other if times else found // other
    return found


def _value(a: Arch | Tower, left: list[str]) -> int:
    word = left.pop()
    if word == "(":
        found = _sum(a, left)
        left.pop()
        return found
    if word.startswith("["):
        return _stated(a, word[1:-1])
    part, _, size = word.rpartition(".")
    if part:
        return _size(a, part, size)
    if word.isdigit():
        return int(word)
    return int(getattr(a, word) if hasattr(a, word) else _named(word)(a))


def _size(a: Any, part: str, size: str) -> int:
    """A size of what the model may lack; without experts it is 0."""
    holder = getattr(a, part)
    if holder is None and part != "moe":
        raise a.keys.error(f"its {part} sizes are not described, so it cannot be sized.")
    return getattr(holder, size, None) or 0


def _stated(a: Arch | Tower, said: str) -> int:
    """A key of the config: ``key``, ``key:2`` or ``key|hidden``."""
    key, *usual = re.split("[:|]", said)
    if not usual:
        return a.keys.whole(key)
    found = a.keys.maybe(key, least=int("|" in said))
    return _value(a, usual) if found is None else found


def _gguf(said: _Entry) -> Gguf:
    blocks = said.get("blocks")
    if blocks is not None:
        said = {**said, "blocks": {"architecture": said["architecture"], **blocks}}
    return convert(said, Gguf)


_TABLES: Final = _read()
FAMILIES: Final[dict[str, Family]] = {
    name: _struct(Family, said) for name, said in _TABLES["families"].items()
}
TOWERS: Final[Mapping[str, VisionFamily]] = {
    name: _struct(VisionFamily, said) for name, said in _TABLES["towers"].items()
}
WRAPPERS: Final[Mapping[str, Wrapper]] = {
    name: _struct(Wrapper, said) for name, said in _TABLES["wrappers"].items()
}
"""Multimodal ``model_type``, with its ``version`` where that tells, -> text model and tower."""
ONLY_FILES: Final = tuple(
    _gguf({"model_type": said["architecture"], **said}) for said in _TABLES["files"]
)
"""GGUF architectures without a family here: sizes follow from the file alone."""


def tower_of(kind: object) -> VisionFamily | None:
    """The tower of a vision ``model_type``; early Qwen2-VL files name it like the whole model."""
    return TOWERS.get(f"{kind}") or TOWERS.get(f"{kind}_vision")


def count_vision(outer: Keys, vision: Keys, wrapper: Wrapper, a: Arch) -> int | None:
    """Count tower and projector; None where no formula covers them."""
    family = wrapper.tower or tower_of(vision.stated("model_type") or wrapper.vision)
    if not wrapper.counted or family is None:
        return None
    usual = {} if outer.of_class else wrapper.tower_defaults
    tower = family.read(vision.with_defaults(family.sizes).with_defaults(usual))
    return family.count(tower) + wrapper.projector(outer, tower, a)
