"""Ollama's library: which model a tag holds, and in which format.

``knowledge/ollama_tags.tsv`` has a line for each tag; docs/names.md says how it was made.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Final

from msgspec import Struct

from advisor.files import data_dir
from advisor.knowledge.index import model_words
from advisor.reading.format_patterns import said_in
from advisor.reading.name_parts import NameParts

FILE: Final = "ollama_tags.tsv"
_TUNED: Final = frozenset({"instruct", "chat", "it", "text", "base", "latest"})


class Tag(Struct, frozen=True):
    """One tag of the library."""

    name: str
    """``llama3.2:3b``"""
    model: str
    """The model it holds, as a name that is read."""
    precision: str
    """Its format."""


@cache
def _tags() -> Mapping[str, Mapping[str, Tag]]:
    """Read the tags by name of the family, the default one first."""
    found: dict[str, dict[str, Tag]] = {}
    for line in (data_dir("knowledge") / FILE).read_text("utf-8").splitlines():
        if line and not line.startswith("#"):
            family, tag, model, precision = line.split("\t")
            found.setdefault(family, {})[tag] = Tag(f"{family}:{tag}", model, precision)
    return found


@cache
def _holding() -> Mapping[tuple[str, str], str]:
    every = [tag for family in _tags().values() for tag in family.values()]
    return {(tag.model.casefold(), tag.precision): tag.name for tag in reversed(every)}


def tag_of(model: str, precision: str) -> str | None:
    """Name the tag that holds a model in this format, ``qwen2.5:7b``; None: none is known."""
    return _holding().get((model.casefold(), precision))


def _family(name: str) -> Mapping[str, Tag]:
    return _tags().get(name.casefold().strip(), {})


def tag_named(parts: NameParts) -> Tag | None:
    """Find a tag that is written out; ``qwen2.5:14b-instruct-q5_K_M`` holds ``qwen2.5:14b``."""
    if not parts.tag:
        return None
    words = re.findall(r"[a-z0-9.]+", said_in(parts.tag).rest)
    size = "-".join(word for word in words if word not in _TUNED)
    return _family(parts.name).get(size) if size else default_tag(parts)


def default_tag(parts: NameParts) -> Tag | None:
    """Find the tag that a bare name stands for."""
    return next(iter(_family(parts.name).values()), None)


def library_format(model: str) -> str | None:
    """Give the format in which the library holds a model, by the words of its name."""
    asked = _told(model)
    tags = (tag for family in _tags().values() for tag in family.values())
    return next((tag.precision for tag in tags if _told(tag.model) == asked), None)


def _told(name: str) -> Sequence[str]:
    words = model_words(name.rpartition("/")[2])
    return [word for word in words if word not in _TUNED and word != "meta"]
