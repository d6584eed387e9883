"""Which weights of every layer a ``quantization_config`` leaves in 16 bits.

Such a config lists names, globs or, behind ``re:``, patterns; they are matched with the names that
transformers gives the modules of a layer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from typing import Final

from advisor.models.shape import Counts, Shape

_LISTS: Final = (
    "modules_to_not_convert",
    "ignore",
    "exclude_modules",
    "exclude",
    "ignored_layers",
    "llm_int8_skip_modules",
)
_PREFIXES: Final = ("model", "model.language_model", "language_model.model", "backbone")
_LAYER: Final = re.compile(r"(?:^|\.)layers\.\d+(?:\.|$)")
_FFN: Final = ("gate_proj", "up_proj", "down_proj")
_ATTENTION: Final = ("q_proj", "k_proj", "v_proj", "o_proj")
_LATENT: Final = ("q_a_proj", "q_b_proj", "kv_a_proj_with_mqa", "kv_b_proj", "o_proj")
_RECURRENT: Final = ("in_proj_qkv", "in_proj_z", "out_proj")
_MAMBA: Final = ("in_proj", "out_proj")
_NESTED: Final = re.compile(r"[*+}]\)+[*+{?]")
"""A repeated group that repeats: such a pattern may take for ever."""
_LONGEST: Final = 300

Named = Callable[[str], bool]


def kept_in_full(stated: Mapping[str, object], shape: Shape) -> tuple[int, ...]:
    """Count the weights of every layer that stay in 16 bits; empty where the config names none.

    Args:
        stated: A ``quantization_config``.
        shape: The model that it belongs to, with its parameters counted.
    """
    listed = [f"{name}" for key in _LISTS for name in _items(stated.get(key))]
    counts = shape.counts
    if not listed or counts is None:
        return ()
    named = _matcher(listed)
    kept = tuple(_kept(index, shape, counts, named) for index in range(shape.layers))
    return kept if any(kept) else ()


def _items(value: object) -> Sequence[object]:
    return value if isinstance(value, list | tuple) else ()


def _matcher(listed: Sequence[str]) -> Named:
    patterns = [*_patterns(listed)]
    others = [one for one in listed if not one.startswith("re:")]
    globs = [f"{one}{end}" for one in others if "*" in one for end in ("", ".*")]
    plain = {_inside(one) for one in others if "*" not in one}

    def named(name: str) -> bool:
        parts = name.split(".")
        steps = range(1, len(parts) + 1)
        if plain & {".".join(parts[:end]) for end in steps}:
            return True
        if plain & {".".join(parts[-count:]) for count in steps} or plain & {*parts[2:]}:
            return True
        whole = [f"{prefix}.{name}" for prefix in _PREFIXES]
        if any(fnmatchcase(one, glob) for one in whole for glob in globs):
            return True
        return any(pattern.search(one) for one in whole for pattern in patterns)

    return named


def _patterns(listed: Sequence[str]) -> Iterator[re.Pattern[str]]:
    for text in listed:
        if text.startswith("re:") and len(text) < _LONGEST and not _NESTED.search(text):
            with suppress(re.error):
                yield re.compile(text[3:])


def _inside(name: str) -> str:
    """Cut what stands before ``layers.N``: it differs from class to class."""
    found = _LAYER.search(name)
    return name[found.start() :].lstrip(".") if found else name


def _kept(index: int, shape: Shape, counts: Counts, named: Named) -> int:
    return round(
        sum(
            elements * sum(map(named, names)) / len(names)
            for elements, names in _parts(index, shape, counts)
        )
    )


def _parts(index: int, shape: Shape, counts: Counts) -> Iterator[tuple[int, Sequence[str]]]:
    """Give the parts of a layer: weights, and the modules among which they are divided."""
    at = f"layers.{index}"
    routed, matrices = counts.experts[index], 3 if shape.gated else 2
    ffn = _FFN if shape.gated else _FFN[1:]
    dense = matrices * shape.hidden * shape.intermediate if shape.ffn_kinds[index] == "D" else 0
    wide = shape.moe.shared_width if shape.moe and shape.ffn_kinds[index] == "E" else 0
    together = matrices * shape.hidden * wide
    yield routed, [f"{at}.mlp.experts.0.{name}" for name in ffn]
    yield dense, [f"{at}.mlp.{name}" for name in ffn]
    yield together, [f"{at}.mlp.shared_expert.{name}" for name in ffn]
    rest = max(counts.layers[index] - routed - dense - together, 0)
    yield rest, [f"{at}.{name}" for name in _mixer(index, shape)]


def _mixer(index: int, shape: Shape) -> Iterator[str]:
    """Give the modules of a layer's attention, or of what stands in its place."""
    recurrent = shape.recurrent if shape.layer_kinds[index] == "R" else None
    names: Sequence[str]
    if recurrent is None:
        block, names = "self_attn", _LATENT if shape.mla else _ATTENTION
    elif recurrent.kind == "deltanet":
        block, names = "linear_attn", _RECURRENT
    else:
        block, names = "mamba", _MAMBA
    block = "mixer" if shape.model_type == "nemotron_h" else block
    yield from (f"{block}.{name}" for name in names)
