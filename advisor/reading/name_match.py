"""The one model whose words, with words declared to name none, are all that a name holds."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from advisor.errors import RequestError, UserError
from advisor.knowledge import names
from advisor.knowledge.index import model_words
from advisor.knowledge.types import Knowledge, ModelRecord
from advisor.memo import by_identity
from advisor.models import model_from_record
from advisor.models.stored_tensors import Model
from advisor.reading.format_patterns import PLAIN, FormatSaid
from advisor.reading.known import as_tuned, has_tuning, tuned_of, tuning_of
from advisor.reading.name_parts import (
    SEGMENT,
    SIZE,
    VERSION,
    NameParts,
    Segments,
    based_on,
    is_version,
    less_tuned,
    less_tunings,
    publisher_words,
    rests_of,
    without,
    words,
)
from advisor.reading.public_list import PublicModel, bare_key, every_named, find_public
from advisor.reading.public_made import SAME_WITHIN
from advisor.reading.public_sizing import model_of, model_unlisted
from advisor.reading.published import abridged, is_draft

_FREE: Final = re.compile(r"a\d+(?:\.\d+)?b|\d{4}|\d+k|\d+e|1\.0")
_MOST_TOKENS: Final = 40
_LETTERS: Final = re.compile(r"(?<![a-z0-9.])[a-z]+")


class Match(Struct, frozen=True):
    """A known model, and what of the name is no part of its own."""

    model: Model
    tuned: bool = False
    """Whether the rest says that it is a fine-tune of it."""
    unlisted: bool = False  # whether the rest is taken for how a fine-tune is called


def match(knowledge: Knowledge, parts: NameParts, said: FormatSaid) -> Match | None:
    """Find the model whose words, with declared ones, are all that the name holds.

    A known model in the tuning that is asked for goes before the public list, that before a known
    one in another tuning, and a whole name before one that is less the words of a fine-tune.

    Raises:
        UserError: The public list has several models of this name, or it cannot be sized.
    """
    several: list[UserError] = []
    for text in dict.fromkeys((said.rest, VERSION.sub(".", said.rest))):
        right = _LETTERS.sub(lambda said: words().slips.get(said[0], said[0]), text)
        segments = tuple(SEGMENT.findall(right))
        if segments and len(segments) <= _MOST_TOKENS:
            found = _first(knowledge, rests_of(segments, parts), parts, several)
            if found is not None:
                return found
    if several:
        raise several[0]
    return None


def _first(
    knowledge: Knowledge, rests: Sequence[Segments], parts: NameParts, several: list[UserError]
) -> Match | None:
    """Try every way on every reading; what names several models goes into ``several``."""
    bases = ((f(rests), True) for f in (based_on, less_tuned, less_tunings))
    for some, tuned in ((rests, False), *bases):
        for way in (_just_so, _listed, _released, _nearly):
            for rest in some:
                try:
                    found = way(knowledge, rest, parts)
                except UserError as error:
                    several.append(error)
                    continue
                if found is not None and (not several or _is_wide_as(rests[0], found)):
                    return Match(found, tuned=tuned)
    return None


def _is_wide_as(rest: Segments, base: Model) -> bool:
    """Whether a listed repository that cannot be sized has the widths of what may be its base."""
    own = next(iter(every_named("-".join(rest))), None)
    stated = own and (own.num_hidden_layers, own.hidden_size, own.vocab_size)
    return stated == _widths(base)


def _just_so(knowledge: Knowledge, rest: Segments, parts: NameParts) -> Model | None:
    """Give a known model that has just these words, in the tuning that is asked for."""
    found, tuning = _record(knowledge, rest)
    if found is None or not _may_stand(found, parts):
        return None
    return (
        as_tuned(knowledge, found, tuning)
        if has_tuning(found, tuning)
        else tuned_of(found, tuning, knowledge)
    )


def _listed(knowledge: Knowledge, rest: Segments, _: NameParts) -> Model | None:
    """Give the repository of this name; one that is called like a family alone is not meant."""
    if len(rest) == 1 and rest[0] in begun_by(knowledge):
        return None
    return _public(knowledge, "-".join(rest))


def _released(knowledge: Knowledge, rest: Segments, _: NameParts) -> Model | None:
    """Give a release with a repository of its own and the sizes of a model, or a shorter name."""
    own = words().releases.get("-".join(w for w in rest if w not in words().tunings))
    if not own:
        return None
    record = _record(knowledge, tuple(SEGMENT.findall(own.sizes.lower())))[0]
    model = model_from_record(record, knowledge) if record else _public(knowledge, own.sizes)
    if model is None or model.hf_id == own.hf_id:
        return model
    trained = int(own.trained_context or model.trained_context_tokens or 0)
    return replace(
        model,
        name=own.hf_id.rpartition("/")[2],
        hf_id=own.hf_id,
        trained_context_tokens=trained or None,
        released=None,
        companions={},
        sized_as=f"{own.hf_id} is sized as {model.name}, whose sizes it has.",
    )


def _nearly(knowledge: Knowledge, rest: Segments, parts: NameParts) -> Model | None:
    """Give a known model in whatever tuning, or the one release of it that there is."""
    found = _record(knowledge, rest)[0] or _release(knowledge, _core(" ".join(rest)))
    if found is None or not _may_stand(found, parts):
        return None
    return model_from_record(found, knowledge)


def _may_stand(record: ModelRecord, parts: NameParts) -> bool:
    """Whether a maker's word in the name is that of this model's publisher."""
    publisher = (record.hf_id or "").partition("/")[0].casefold()
    own = {*publisher_words(publisher), *model_words(" ".join((record.name, *record.aliases)))}
    short, said = words().short, SEGMENT.findall(parts.name.lower())
    if any(own.issuperset(model_words(short[word])) for word in short.keys() & {*said}):
        own |= short.keys()  # ``MS-24B``: no maker's word there
    makers = (words().makers.get(word) for word in model_words(parts.name) if word not in own)
    return all(publisher in map(str.casefold, of) for of in makers if of)


def _core(text: str) -> tuple[str, ...]:
    """The words of a name that are no tuning and no filler, in the order that is compared."""
    known, tokens = words().tunings, model_words(text)
    versions = {
        at for at, (w, after) in enumerate(pairwise(tokens)) if w == "v" and is_version(after)
    }
    return tuple(sorted(w for at, w in enumerate(tokens) if w not in known and at not in versions))


def _record(knowledge: Knowledge, rest: Segments) -> tuple[ModelRecord | None, str]:
    """Find the known model of just these words, and the tuning that they ask for."""
    text = " ".join(rest)
    tuning = tuning_of(model_words(text), words().tunings)
    found = _by_core(knowledge)["cores"].get(_core(text), ())
    if len(found) > 1:
        same = [n for n in found if tuning_of(model_words(n), words().tunings) == tuning]
        found = same if len(same) == 1 else found
    return (knowledge.models[found[0]] if len(found) == 1 else None), tuning


def _release(knowledge: Knowledge, tokens: tuple[str, ...]) -> ModelRecord | None:
    """Find the one model that has just these words and the marks of its release."""
    if not any(SIZE.fullmatch(word) for word in tokens):
        return None
    cores = _by_core(knowledge)["cores"]
    begun = (one for word in tokens for one in begun_by(knowledge).get(word, ()))
    found = {
        record.name
        for core, record in begun
        if len(cores[core]) == 1 and len(core) > len(tokens) and _only_free(core, tokens)
    }
    return knowledge.models[found.pop()] if len(found) == 1 else None


def _only_free(core: Sequence[str], wanted: Sequence[str]) -> bool:
    left, lacks = Counter(core) - Counter(wanted), Counter(wanted) - Counter(core)
    return not lacks and bool(left) and all(map(_FREE.fullmatch, left))


@by_identity  # 1.13 of questions
def _by_core(knowledge: Knowledge) -> Mapping[str, Mapping[tuple[str, ...], Sequence[str]]]:
    """Key every spelling of the known models by its words, whatever their order."""
    keys: dict[tuple[str, ...], list[str]] = {}
    for record in knowledge.models.values():
        short = (record.hf_id or "").rpartition("/")[2]
        cores = {_core(text) for text in (record.name, *record.aliases, short)}
        for core in cores.union(without(one, words().filler) for one in cores) - {()}:
            keys.setdefault(core, []).append(record.name)
    return {"cores": keys}


@by_identity  # 1.04 of 60 questions, 1.14 of 540
def begun_by(
    knowledge: Knowledge,
) -> Mapping[str, Sequence[tuple[tuple[str, ...], ModelRecord]]]:
    """Key every spelling by the words with which a name of the model, or its family, begins."""
    begins: dict[str, list[tuple[tuple[str, ...], ModelRecord]]] = {}
    for core, names_ in _by_core(knowledge)["cores"].items():
        for record in map(knowledge.models.__getitem__, names_):
            spelled = map(model_words, (record.family, record.name, *record.aliases))
            for word in {one[0] for one in spelled if one}:
                begins.setdefault(word, []).append((core, record))
    return begins


_CLASS: Final = frozenset({"small", "medium", "large", "mini", "think", "thinking", "reasoning"})
"""Words of a name that say of a size what its number says, or of a release how it answers."""
_DATED: Final = re.compile(r"-(2\d)([01]\d)\b")
_ONE_SIZE: Final = 0.15
"""How far the parameters of releases may lie apart that are of one size without its number."""


def releases(
    knowledge: Knowledge, said: FormatSaid
) -> tuple[Sequence[ModelRecord], Sequence[ModelRecord]]:
    """List the models that are named by family and size without their version, newest first.

    What these have beyond the words tells version, release or maker. Then those that are models of
    another kind. Nothing where the words leave the size open.
    """
    wanted = _core(said.rest)
    size = next((word for word in wanted if SIZE.fullmatch(word)), "")
    plain, more = dict[str, ModelRecord](), dict[str, ModelRecord]()
    for core, record in (one for word in wanted for one in begun_by(knowledge).get(word, ())):
        left = _left(core, wanted, size, record)
        if left is not None:
            (more if any(map(_tells_kind, left)) else plain)[record.name] = record
    beside = [one for one in more.values() if one.name not in plain]
    found = sorted(plain.values(), key=_when, reverse=True)
    if not found and size and len(beside) == 1:
        return beside, ()
    named = sum(word.isalpha() for word in wanted)
    if not found or not (size or (named > 1 and _of_one_size(found, knowledge))):
        return (), ()
    return found, beside


def _when(record: ModelRecord) -> str:
    """Tell the month of a release, by its name where it is not known."""
    dated = _DATED.search(record.name)
    return record.released or (f"20{dated[1]}-{dated[2]}" if dated else "")


def names_family(knowledge: Knowledge, text: str) -> bool:
    """Whether a word of a text is one with which names of models begin."""
    return not begun_by(knowledge).keys().isdisjoint(model_words(text))


def _left(
    core: Sequence[str], wanted: Sequence[str], size: str, record: ModelRecord
) -> Sequence[str] | None:
    """Give the words of a model beyond those wanted; None where it lacks one of them."""
    left, label = list(core), f"{record.label_parameters_b or 0:g}b"
    for word in wanted:
        same = next((one for one in (word, f"{word}.0") if one in left), None)
        if same:
            left.remove(same)
        elif word != size or label != size:
            return None
    publisher = (record.hf_id or "").partition("/")[0]
    return [word for word in left if publisher not in words().makers.get(word, ())]


def _tells_kind(word: str) -> bool:
    """Whether a word tells another kind of model, not another release."""
    return not (is_version(word) or _FREE.fullmatch(word) or SIZE.fullmatch(word) or word in _CLASS)


def _of_one_size(records: Sequence[ModelRecord], knowledge: Knowledge) -> bool:
    counts = [model_from_record(one, knowledge).parameters for one in records]
    return min(counts) >= (1 - _ONE_SIZE) * max(counts)


def loosely(knowledge: Knowledge, text: str, parts: NameParts, said: FormatSaid) -> ModelRecord:
    """Find the one model that has all these words, its family's among them, as names always were.

    Raises:
        RequestError: None has, or several.
    """
    if parts.publisher:
        raise names.unknown_repository(knowledge, text)
    if parts.tag or said.precision:
        raise names.unknown_model(knowledge, text)
    record = names.find_model(knowledge, text)
    tokens = set(model_words(text))
    told = any(_tells_family(spelling, tokens) for spelling in (record.name, *record.aliases))
    own = {*model_words(record.name)}
    more = (own.difference(model_words(one.name)) for one in abridged(said.rest, ()))
    if told and not any(any(map(_tells_kind, one)) for one in more):
        return record
    raise names.unknown_model(knowledge, text)


def _tells_family(spelling: str, tokens: set[str]) -> bool:
    """Whether words hold a model's family and its generation: ``baichuan 7b`` is no Baichuan2."""
    family, *rest = model_words(spelling)
    generation = rest[:1] if rest and is_version(rest[0]) else []
    return tokens.issuperset([family, *generation])


def listed_whole(knowledge: Knowledge, parts: NameParts) -> Model | None:
    """Give the repository of the public list that is named just so."""
    if not parts.publisher:
        return None
    return _public(knowledge, f"{parts.publisher}/{parts.name}")


_ABOUT_SAME: Final = 0.1
"""Within this share of the parameters, a repository and what its name was read as are one model."""


def of_its_own(
    knowledge: Knowledge, parts: NameParts, said: FormatSaid, found: Match | None
) -> Match | None:
    """Give the repository that has the whole name, format included, where its sizes are others.

    The elements of packed files are no parameters, so fewer of them say nothing, unless the
    sixteenth part would be left: that is the head alone of one that drafts.

    Raises:
        RequestError: They are too far apart to be one model, so the name may mean either.
    """
    other = parts.publisher or parts.ending or parts.tag or parts.name in begun_by(knowledge)
    public = None if other else _whole(parts, found)
    if public is None:
        return found
    if found and is_draft(public) and found.model.parameters > 16 * (public.parameters_raw or 1e12):
        raise _may_mean(parts, found, public, public.parameters_raw or 0)
    try:
        own = _public(knowledge, public.hf_id)
    except UserError:
        own = None
    if own is None or found is None:
        return _unsized(parts, public, found) if own is None else Match(own)
    more = own.parameters / found.model.parameters - 1
    same = abs(more) <= SAME_WITHIN
    if not same and (abs(more) <= _ABOUT_SAME or said.precision in PLAIN):
        if abs(more) <= _ABOUT_SAME or _widths(own) == _widths(found.model):
            return Match(own)
    elif same or more < 0 or _widths(own) == _widths(found.model):
        return found
    raise _may_mean(parts, found, public, own.parameters)


def _unsized(parts: NameParts, public: PublicModel, found: Match | None) -> Match | None:
    """Give what a name tells, unless its repository holds more elements than that parameters."""
    elements = public.parameters_raw or 0
    if found and elements > (1 + _ABOUT_SAME) * found.model.parameters:
        raise _may_mean(parts, found, public, elements)
    return found


def _may_mean(parts: NameParts, found: Match, public: PublicModel, holds: int) -> RequestError:
    one, other = found.model.parameters / 1e9, holds / 1e9
    return RequestError(
        f"'{parts.name}' may mean {found.model.name} of {one:.3g} billion parameters or "
        f"{public.hf_id} of {other:.3g} billion",
        hint="Write the repository, publisher included.",
    )


def _whole(parts: NameParts, found: Match | None) -> PublicModel | None:
    """Find the listed repository of a bare name, unless it is the address of what was found."""
    if found and bare_key((found.model.hf_id or "").replace("/", "-")) == bare_key(parts.name):
        return None
    try:
        return find_public(parts.name)
    except UserError:
        return None


def _widths(model: Model) -> tuple[int, int, int]:
    return model.shape.layers, model.shape.hidden, model.shape.vocab


def _public(knowledge: Knowledge, text: str) -> Model | None:
    public = find_public(text)
    return model_of(public, knowledge) if public else model_unlisted(text)
