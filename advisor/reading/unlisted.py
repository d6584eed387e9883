"""Somebody's repository or file that nothing lists: sized as the model whose whole name it bears.

A word that nothing explains makes a name no known model's, with one exception. Where a name is
written as that of a repository or a file, and it bears a known model with its size, the rest is how
somebody calls a fine-tune, unless a word of it tells a model of another size (``other`` in
``model_words.tsv``: drafts, pruned and joined models, towers). Decision 78 counts how often that
holds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from advisor.errors import UserError
from advisor.knowledge.types import Knowledge
from advisor.models import model_from_record
from advisor.models.stored_tensors import Model
from advisor.reading.format_patterns import FormatSaid
from advisor.reading.name_match import Match, loosely, match, names_family
from advisor.reading.name_parts import (
    SEGMENT,
    SIZE,
    VERSION,
    NameParts,
    Segments,
    rests_of,
    words,
)
from advisor.reading.public_list import every_named

_MOST: Final = 14
"""Segments of a name."""
_PLAIN: Final = re.compile(
    r"[a-z]+\d+[a-z]{2,}|[a-z]{2,}|v?\d{1,2}(?:\.\d+){0,2}|[a-z]{2,}\d|\d{4}|\d+(?:\.\d+)?[kt]"
)
"""What a fine-tune may be called: words, versions, dates, tokens of context or of training."""


def unlisted(knowledge: Knowledge, parts: NameParts, said: FormatSaid) -> Match | None:
    """Find the known model that the name of somebody's repository or file bears whole."""
    if not (parts.publisher or parts.ending) or every_named(parts.name):
        return None
    segments = tuple(SEGMENT.findall(VERSION.sub(".", said.rest)))
    if len(segments) > _MOST or not any(map(SIZE.fullmatch, segments)):
        return None
    for rest in rests_of(segments, parts)[:2]:
        for size in range(len(rest) - 1, 1, -1):
            found = _borne(knowledge, rest, size, parts)
            if found:
                one = next(iter(found.values()))
                return Match(one, tuned=True, unlisted=True) if len(found) == 1 else None
    return None


def _borne(
    knowledge: Knowledge, rest: Segments, size: int, parts: NameParts
) -> Mapping[str, Model]:
    """Give the models that stretches of so many segments are, beside words of a fine-tune alone."""
    found = dict[str, Model]()
    for stretch, others in (*_stretches(rest, size), *_parted(rest, size)):
        if all(map(_says_no_size, others)) and any(map(SIZE.fullmatch, stretch)):
            model = _known(knowledge, "-".join(stretch))
            if model and not _publishes(model, parts.publisher):
                found[model.name] = model
    return found


def _stretches(rest: Segments, size: int) -> Iterator[tuple[Segments, Segments]]:
    """Give the stretches of so many segments, each with what is beside it."""
    for at in range(len(rest) - size + 1):
        yield rest[at : at + size], (*rest[:at], *rest[at + size :])


def _parted(rest: Segments, size: int) -> Iterator[tuple[Segments, Segments]]:
    """Give those that a fine-tune's words part before the size: ``Llama-3-some-words-8b-it``."""
    for at in (at for at, word in enumerate(rest) if SIZE.fullmatch(word)):
        for end in range(max(1, size - len(rest) + at), min(size, at)):
            behind = at + size - end
            between = rest[end:at]
            if behind <= len(rest) and all(map(str.isalpha, between)):
                yield (*rest[:end], *rest[at:behind]), (*between, *rest[behind:])


def _says_no_size(word: str) -> bool:
    """Whether a word may be a fine-tune's own: none tells a size, or another kind of model."""
    plain = _PLAIN.fullmatch(word) and not SIZE.fullmatch(word)
    return bool(plain) and words().other.search(word) is None


def _known(knowledge: Knowledge, name: str) -> Model | None:
    """Give a model that is known, or that its maker publishes, by its whole name."""
    if not names_family(knowledge, name):
        return None
    parts, said = NameParts(name), FormatSaid("", name)
    try:
        found = match(knowledge, parts, said) or Match(
            model_from_record(loosely(knowledge, name, parts, said), knowledge)
        )
    except UserError:
        return None
    if found.tuned:
        return None
    makers = {publisher for named in words().makers.values() for publisher in named}
    return (
        found.model
        if found.model.origin != "list" or (found.model.hf_id or "").partition("/")[0] in makers
        else None
    )


def _publishes(model: Model, publisher: str) -> bool:
    """Whether the model's own maker is named, whose next release may be of another size."""
    own = (model.hf_id or "").partition("/")[0].casefold()
    return own == publisher.casefold()
