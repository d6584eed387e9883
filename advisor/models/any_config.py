"""Any config.json: sized by the tables where they have its architecture, else estimated."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from msgspec.structs import replace

from advisor.errors import NotDescribedError
from advisor.models.architectures import FAMILIES, WRAPPERS, family_of
from advisor.models.architectures.unknown import (
    SPREAD,
    cache_loose,
    described,
    parts_estimated,
    sections,
    used_unknown,
)
from advisor.models.class_defaults import class_defaults, doubts_of, part_defaults
from advisor.models.config import count, describe, read_config, read_text
from advisor.models.config_keys import Keys, read_json_object
from advisor.models.shape import UNKNOWN, Counts, Shape
from advisor.suggest import did_you_mean


def load_config(path: Path) -> Shape:
    """Read a config.json, or the one in a folder.

    Raises:
        SourceFileError: It is missing, unreadable, not JSON, or lacks a size.
    """
    file = path / "config.json" if path.is_dir() else path
    return read_any(read_json_object(file), str(file))


def read_any(config: Mapping[str, object], shown: str) -> Shape:
    """Read a config of any architecture; what is estimated stands in the doubts of the shape.

    Args:
        config: The content of a config.json.
        shown: The name that messages carry.

    Raises:
        SourceFileError: A size is missing, wrong or impossible.
    """
    try:
        shape = read_config(config, shown)
    except NotDescribedError:
        return _estimated(config, shown)
    if shape.counts is not None:
        return shape
    named = shape.outer_type or shape.model_type
    why = (
        f"Approximate: no formula counts all of architecture '{named}'; its parameters are "
        "estimated from its config."
    )
    guess = _estimated(config, shown)
    return replace(shape, counts=guess.counts, spread=SPREAD, doubts=(*shape.doubts, why))


def _estimated(config: Mapping[str, object], shown: str) -> Shape:
    outer = Keys(config, shown)
    model_type = outer.word("model_type") or UNKNOWN
    text, text_type = _text(outer, model_type)
    nested = family_of(text_type) in FAMILIES and text is not outer
    known = _known_text(text, text_type, shown) if nested else None
    said = _said(model_type, text_type if known else "")
    shape = known or _described(text, text_type)
    beside = parts_estimated(outer, text)
    return replace(
        shape,
        outer_type=model_type if text is not outer else "",
        counts=_with(shape.counts, beside),
        spread=SPREAD,
        described=known is not None,
        doubts=(said, *shape.doubts),
        quantization=shape.quantization or _section(config, "quantization_config"),
        dtype=shape.dtype or _word(config, "dtype") or _word(config, "torch_dtype"),
    )


def _text(outer: Keys, model_type: str) -> tuple[Keys, str]:
    """Give the part that holds the text model, and its architecture."""
    stated = ("text_config", "llm_config", "language_config", "text_model_config", "llm_cfg")
    found = outer.section(*stated)
    if found is None:
        name = next(sections(outer.data), "")
        found = outer.section(name) if name else None
    usual = part_defaults(model_type, "text_config").get("model_type")
    text = found or outer
    named = text.word("model_type") or (usual if found else None) or model_type
    return text.with_class(class_defaults(f"{named}")), f"{named}"


def _known_text(text: Keys, text_type: str, shown: str) -> Shape | None:
    try:
        shape = read_config({**text.data, "model_type": text_type}, shown)
    except NotDescribedError:
        return None
    return shape if shape.counts else None


def _described(text: Keys, text_type: str) -> Shape:
    family = described(text, text_type)
    tied = text.flag("tie_word_embeddings", default=family.tied)
    arch = read_text(text, text_type, family, tied=tied)
    shape = describe(text, arch, family, text_type, None)
    unread = doubts_of([(text, text_type)])
    loose = 1.0 if unread else cache_loose(arch)
    counts = count(arch, family, 0)
    unknown = used_unknown(text, shape.moe)
    return replace(shape, counts=counts, cache_loose=loose, doubts=unread, reads_unknown=unknown)


def _said(model_type: str, text_type: str) -> str:
    if text_type:
        return (
            f"Approximate: architecture '{model_type}' not described; its text model is sized as "
            f"'{text_type}', its other parts are estimated."
        )
    near = did_you_mean(model_type, sorted({*FAMILIES, *WRAPPERS}))
    return (
        f"Approximate: architecture '{model_type}' not described: weights and cache estimated from "
        f"its config. {near}".strip()
    )


def _with(counts: Counts | None, beside: int) -> Counts | None:
    if counts is None:
        return None
    total, active = counts.total + beside, counts.active + beside
    return replace(counts, total=total, active=active, vision=counts.vision + beside)


def _section(config: Mapping[str, object], name: str) -> Mapping[str, object] | None:
    found = config.get(name)
    return found if isinstance(found, Mapping) else None


def _word(config: Mapping[str, object], name: str) -> str | None:
    found = config.get(name)
    return found if isinstance(found, str) else None
