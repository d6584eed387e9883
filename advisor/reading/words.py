"""Words in names of models that name no model: makers, packers, tunings, fine-tunes, filler.

They stand in ``knowledge/model_words.tsv``, one a line, read when a name is not known just so.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Final

from msgspec import Struct

from advisor.files import data_dir

FILE: Final = "model_words.tsv"


class Words(Struct, frozen=True):
    """The words by kind, in lower case."""

    tunings: Mapping[str, str]
    """``instruct``, ``it`` ... -> ``instruct``, ``base`` or nothing (``hf``)."""
    makers: Mapping[str, tuple[str, ...]]
    """A maker's or family's word -> the publishers whose models it may stand before."""
    packers: frozenset[str]
    """Publishers that pack or mirror others' models, and their words in names."""
    tuned: frozenset[str]
    """Words of fine-tunes: what bears one has the sizes of its base."""
    filler: frozenset[str]
    short: Mapping[str, str]
    """A word that stands for a base within names of fine-tunes (``l3``) -> the base."""
    same: Mapping[str, str]
    """A whole name -> the model whose sizes it has."""
    built_on: Mapping[str, str]
    """A family of fine-tunes that does not name its base -> the base, less its size."""


@cache
def words() -> Words:
    """Read the words, once."""
    kinds: dict[str, dict[str, str]] = {}
    for line in (data_dir("knowledge") / FILE).read_text("utf-8").splitlines():
        if line and not line.startswith("#"):
            kind, listed, *means = line.split("\t")
            kinds.setdefault(kind, {}).update(
                (one, means[0] if means else "") for one in listed.split()
            )
    return Words(
        tunings=kinds["tuning"],
        makers={word: tuple(means.split()) for word, means in kinds["maker"].items()},
        packers=frozenset(kinds["packer"]),
        tuned=frozenset(kinds["tuned"]),
        filler=frozenset(kinds["filler"]),
        short=kinds["short"],
        same=kinds["same"],
        built_on=kinds["built-on"],
    )
