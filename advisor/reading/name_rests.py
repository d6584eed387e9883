"""A name less the words that are none of a model's own: the readings that are tried in turn."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from advisor.knowledge.index import model_words
from advisor.reading.name_parts import NameParts
from advisor.reading.words import words

SIZE: Final = re.compile(r"\d+(?:\.\d+)?[bm]")
_AROUND: Final = 0.1
"""How far the parameters of models that are called by one size lie from it."""
VERSION: Final = re.compile(r"(?<=(?<!\d)\d)_(?=\d(?!\d))")
"""What stands for the point of a version: ``2_2``."""
SEGMENT: Final = re.compile(r"[a-z0-9.]*[a-z0-9]")
Segments = tuple[str, ...]


def rests_of(segments: Segments, parts: NameParts) -> Sequence[Segments]:
    """Give readings of a name, each with more words taken as none of the model's own."""
    known = words()
    plain = _less(segments, known.filler | {word for word, m in known.tunings.items() if not m})
    bare = _less(plain, known.packers)
    whole = [plain, segments] if parts.is_gguf else [segments, plain]
    packs = known.packers.union(known.makers).issuperset(publisher_words(parts.publisher))
    own = frozenset(publisher_words(parts.publisher) if packs else ())
    less = [
        _less(kept, taken) for taken in (own, frozenset(known.makers)) for kept in (plain, bare)
    ]
    return list(dict.fromkeys(kept for kept in (*whole, bare, *less) if kept))


def based_on(rests: Sequence[Segments]) -> Sequence[Segments]:
    """Put the base for names that do not tell it: ``vicuna-13b``, ``miqu-1-70b``, ``L3-8B-...``."""
    short = words().short
    spelled = [tuple(w for one in kept for w in short.get(one, one).split("-")) for kept in rests]
    longer = [kept for kept in (*spelled, *less_tuned(spelled)) if kept not in rests]
    bases = (base for kept in rests if (base := _base(kept)))
    return list(dict.fromkeys((*bases, *longer)))


def _base(segments: Segments) -> Segments:
    """Look up family, version and size of a name that holds nothing else."""
    known = words()
    plain = [w for w in segments if w not in known.tunings]
    if same := known.same.get("-".join(plain)):
        return tuple(same.split("-"))
    size = next((word for word in plain if SIZE.fullmatch(word)), "")
    family = "".join(word for word in plain if word.isalpha())
    version = next((word.lstrip("v") for word in plain if _VERSION.fullmatch(word)), "")
    if not size or not all(w.isalpha() or w == size or _MARK.fullmatch(w) for w in plain):
        return ()
    keys = (f"{family}-{version}-{size}", f"{family}-{version}", f"{family}-{size}", family)
    base = next((known.built_on[key] for key in keys if key in known.built_on), "")
    return tuple(base.format(size=size).split("-")) if base else ()


_VERSION: Final = re.compile(r"v?\d(?:\.\d+)?")
_MARK: Final = re.compile(r"v?\d(?:\.\d+)?|\d+k|\d{4}")
"""Of a release: its version, context, date."""


def params_around(size: str) -> tuple[str, str]:
    """Give the least and the most parameters of models that are called ``70b``."""
    number, unit = float(size[:-1]), size[-1].upper()
    return f"{(1 - _AROUND) * number:.3g}{unit}", f"{(1 + _AROUND) * number:.3g}{unit}"


def publisher_words(publisher: str) -> Sequence[str]:
    """Cut a publisher into words."""
    return re.findall(r"[a-z0-9]+", publisher.casefold())


def _less(segments: Sequence[str], taken: frozenset[str] | set[str]) -> tuple[str, ...]:
    return tuple(one for one in segments if one not in taken)


def less_tuned(rests: Sequence[Segments]) -> Sequence[Segments]:
    """Take the words of fine-tunes out of each reading that has some, and tells a size."""
    less = (_without_tuned(kept) for kept in rests)
    found = (kept for kept in less if kept not in rests and any(map(_tells_size, kept)))
    return list(dict.fromkeys(found))


def _tells_size(segment: str) -> bool:
    return any(SIZE.fullmatch(word) for word in model_words(segment))


def _without_tuned(segments: Segments) -> Segments:
    """Take out the words of fine-tunes, with the version that stands behind each."""
    tuned = words().tuned
    kept: list[str] = []
    after = False
    for segment in segments:
        tokens = [word for word in model_words(segment) if word != "v"]
        is_tuned = bool(tokens) and tokens[0] in tuned and all(map(is_version, tokens[1:]))
        if not is_tuned and not (after and tokens and all(map(is_version, tokens))):
            kept.append(segment)
        after = is_tuned and len(tokens) == 1
    return tuple(kept)


def is_version(word: str) -> bool:
    """Whether a word is a number, with points or without."""
    return word.replace(".", "").isdigit()
