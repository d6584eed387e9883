"""What a name tells of a model, put together and said in a sentence."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from advisor.errors import RequestError
from advisor.files import table_rows
from advisor.knowledge.index import model_key, model_words
from advisor.knowledge.programs import GGUF_FILE
from advisor.knowledge.types import Knowledge, ModelRecord
from advisor.models import model_from_record
from advisor.models.stored_tensors import Model
from advisor.reading.format_patterns import (
    BRANCH,
    FormatSaid,
    Tag,
    bits_of_family,
    default_tag,
    said_in,
    tag_named,
)
from advisor.reading.known import (
    ModelRead,
    as_tuned,
    known_model,
    listed,
    meant,
    read_format,
    tells_instruct,
    tuning_of,
)
from advisor.reading.name_match import (
    Match,
    begun_by,
    listed_whole,
    loosely,
    match,
    of_its_own,
    releases,
)
from advisor.reading.name_parts import (
    SIZE,
    NameParts,
    params_around,
    parts_of,
    publisher_words,
    words,
)
from advisor.reading.public_list import bare_key, every_named, exact
from advisor.reading.public_sizing import model_of
from advisor.reading.published import (
    GGUF_DEFAULT,
    abridged,
    is_packed,
    less_publisher,
    most_taken,
    names_with,
    published_format,
    unpacked_name,
)

_MOST_SAID: Final = 4


def by_words(knowledge: Knowledge, text: str) -> ModelRead:
    """Read a name of which every word is explained.

    Raises:
        UserError: One is not, several models are named, or it cannot be sized.
    """
    parts = parts_of(text)
    bare = less_publisher(knowledge, parts)
    parts, said = (parts if parts.publisher else bare), format_of(bare)
    whole = listed_whole(knowledge, parts)
    if whole is not None:
        return put_together(knowledge, text, parts, said, Match(whole), listed=True)
    tag = tag_named(parts) if parts.may_be_ollama else None
    if tag is not None:
        return _tagged(knowledge, text, said, tag)
    known = known_model(knowledge, text)
    if known is not None:
        return ModelRead(known)
    found = match(knowledge, parts, said)
    own = of_its_own(knowledge, parts, said, found)
    if own is not None:
        read = put_together(knowledge, text, parts, said, own, listed=own is not found)
        alone = not (parts.publisher or own.tuned)
        return _or_others(knowledge, text, parts, said, read) if alone else read
    plain = replace(parts, name=said.rest.strip(" -_.")) if said.precision else parts
    tag = default_tag(plain) if parts.may_be_ollama and not parts.tag else None
    if tag is not None:
        return _tagged(knowledge, text, said, tag)
    try:
        record = loosely(knowledge, text, parts, said)
        return _of_fewer_words(text, record, ModelRead(model_from_record(record, knowledge)))
    except RequestError:
        newest, kinds = releases(knowledge, said)
        told = [w for w in said.rest.casefold().split() if w not in words().filler]
        if len(told) == 1 and SIZE.fullmatch(told[0]) and not parts.publisher:
            raise _only_a_size(text, told[0]) from None
        if not parts.publisher and (one := _abridged(knowledge, text, said, alone=not newest)):
            return one
        if parts.publisher or not newest:
            raise
        return _newest(knowledge, text, said, (*newest, *kinds))


def _of_fewer_words(text: str, record: ModelRecord, read: ModelRead) -> ModelRead:
    """Say what was taken where no name of it is all in the text, and what else has its words."""
    names = (record.name, *record.aliases, (record.hf_id or "").rpartition("/")[2])
    told = _UNSAID.union(model_words(text))
    if any(map(told.issuperset, map(model_words, names))):
        return read
    others = [name for name in names_with(text, record.hf_id or "") if name not in names]
    also = f" It could also be {listed(others, _MOST_SAID)}." if others else ""
    line = f"{quoted(text)} is read as {read.model.name}.{also}"
    return replace(read, said=(line,), others=tuple(others[:_MOST_SAID]))


_UNSAID: Final = frozenset({"instruct", "chat", "it", "hf"})  # what a short name may lack


def _abridged(
    knowledge: Knowledge, text: str, said: FormatSaid, *, alone: bool
) -> ModelRead | None:
    """Take what a name of the list begins with where all that begins so is one model.

    Raises:
        UserError: The model cannot be sized.
    """
    name = said.rest.strip(" -_.")
    if not (_RELEASED.search(name) or (alone and _TWO_WORDS.fullmatch(name))):
        return None
    makers = _makers_of(knowledge, "".join(model_words(name)[:1]))
    found = abridged(name, makers)
    if not found and not most_taken(knowledge, name):  # else it is one of those, of some size
        spelled = {bare_key(_PARTED.sub(form, name)) for form in (r"\1\2", r"\1-\2")}
        others = sorted(spelled - {bare_key(name)}, key=len)
        found = next(filter(None, (abridged(one, makers) for one in others)), ())
    if not found:
        return None
    wanted = tuning_of(model_words(text), words().tunings) or "instruct"
    one = max(
        found, key=lambda m: (_tuning(m.name) == wanted, _tuning(m.name) == "", not is_packed(m))
    )
    model = model_of(one, knowledge)
    line = f"{quoted(text)} is read as {model.name}"
    held, remark, mixed = _held(knowledge, said.precision) if said.precision else ("", "", False)
    if is_packed(one):
        model = replace(model, name=unpacked_name(one.name), hf_id=None, held_format=None)
        line = f"{quoted(text)} is read as {model.name}"
    if held:
        model, line = replace(model, named_format=held), f"{line} in {held}{remark}"
    return ModelRead(model, held, (f"{line}.",), (), mixed)


_RELEASED: Final = re.compile(r"[a-z].*\d|\d.*[a-z]{2}")  # a word and a number
_PARTED: Final = re.compile(r"^([A-Za-z]+)[\s-]?(\d(?![\d.]*[bBmM]\b))")
"""A name before its version, which people part and join: ``MiniCPM 4.1``, ``phi4``."""
_TWO_WORDS: Final = re.compile(r"[a-z]{4,}[\s_-]+[a-z]{4,}")


def _makers_of(knowledge: Knowledge, family: str) -> Sequence[str]:
    """Give the words of those who publish the known models that begin so."""
    records = (record for _, record in begun_by(knowledge).get(family, ()))
    publishers = {(record.hf_id or "").partition("/")[0] for record in records}
    return [maker for maker, of in words().makers.items() if not publishers.isdisjoint(of)]


def _untuned(knowledge: Knowledge, model: Model) -> Model:
    """Give the base of a model whose name says that it is tuned; of some the repository is open."""
    name = _TUNED.sub("", model.name)
    if name == model.name:
        return model
    if (known := known_model(knowledge, name)) and known.name == name:
        return known
    listed = exact(f"{(model.hf_id or '').partition('/')[0]}/{name}")
    return replace(model, name=name, hf_id=listed and listed.hf_id, companions={})


_TUNED: Final = re.compile(r"-(?:instruct|it|chat)(?=-|$)", re.IGNORECASE)


def _tuning(name: str) -> str:
    return tuning_of(model_words(name), words().tunings)


def _only_a_size(text: str, size: str) -> RequestError:
    least, most = params_around(size)
    return RequestError(
        f"{quoted(text)} is a size and names no model",
        hint=f"Name the family too: 'llama {size}'. Which models of that size run on a card: "
        f"advisor models-for --gpu CARD --min-params {least} --max-params {most}.",
    )


def _or_others(
    knowledge: Knowledge, text: str, parts: NameParts, said: FormatSaid, read: ModelRead
) -> ModelRead:
    """Name newer models beside the first of a family, which has no version; or take the newest.

    Only what is written just as its repository is the first one: ``Qwen-14B``, not ``qwen 14b``.
    """
    if (record := knowledge.models.get(read.model.name)) and not said.precision:
        return _of_fewer_words(text, record, read)
    newest, kinds = releases(knowledge, said)
    if not newest or read.model.origin != "list":
        return read
    telling = [w for w in model_words(said.rest) if not (SIZE.fullmatch(w) or w in words().tunings)]
    if parts.name != read.model.name and len(telling) == 1:
        _refuse_far_apart(text, model_from_record(newest[0], knowledge), read.model)
        return _newest(knowledge, text, said, (*newest, *kinds), read.model.name)
    others = [one.name for one in newest]
    line = f"Newer of that family and size: {listed(others, _MOST_SAID)}."
    return replace(read, said=(*read.said, line), others=tuple(others))


_FAR_APART: Final = 0.05  # of the parameters: the first of a family is no older release then


def _refuse_far_apart(text: str, newest: Model, first: Model) -> None:
    if abs(newest.parameters - first.parameters) > _FAR_APART * first.parameters:
        raise RequestError(
            f"{quoted(text)} may mean {first.name} or {newest.name}", hint="Write one of these."
        )


def _newest(
    knowledge: Knowledge,
    text: str,
    said: FormatSaid,
    records: Sequence[ModelRecord],
    first: str = "",
) -> ModelRead:
    """Take the newest of several releases, in the tuning that is asked for, and name the others."""
    others = [*(record.name for record in records[1:]), *filter(None, (first,))]
    tuning = tuning_of(model_words(text), words().tunings)
    model = as_tuned(knowledge, records[0], tuning)
    line = f"{quoted(text)} is read as {model.name}, the newest of that name that is known here"
    held, remark, mixed = _held(knowledge, said.precision) if said.precision else ("", "", False)
    if held:
        model, line = replace(model, named_format=held), f"{line}, in {held}{remark}"
    also = f" It could also be {listed(others, _MOST_SAID)}." if others else ""
    return ModelRead(model, held, (f"{line}.{also}",), tuple(others), mixed)


def format_of(parts: NameParts) -> FormatSaid:
    """Take the format out of the name; that of a file or tag goes before the repository's."""
    mlx = "mlx" in publisher_words(parts.publisher)
    said = said_in(parts.name, mlx=mlx)
    if parts.file:
        return replace(said_in(parts.file, mlx=mlx), rest=said.rest)
    if parts.tag:
        branch = "EXL" in said.precision
        tag = said_in(BRANCH.sub(r"\1.\2bpw", parts.tag) if branch else parts.tag, mlx=mlx)
        rest = f"{said.rest} {tag.rest}" if not parts.publisher else said.rest
        held = bits_of_family(tag.precision, said.precision) if branch else tag.precision
        return FormatSaid(held or said.precision, rest)
    return said


def put_together(
    knowledge: Knowledge,
    text: str,
    parts: NameParts,
    said: FormatSaid,
    found: Match,
    *,
    listed: bool = False,
) -> ModelRead:
    """Give the model that was found, with the format that the name says, and how it was read."""
    model = _as_meant(knowledge, parts, found)
    own = f"{parts.publisher}/{parts.name}"
    plain = (listed or own == model.hf_id) and not (parts.file or parts.tag or parts.is_gguf)
    told = said.precision or parts.is_gguf or found.tuned or parts.publisher
    if plain or not (told or model_key(text) != model_key(model.name)):
        return ModelRead(model)
    line = f"{quoted(text)} is read as {model.name}"
    line += _AS_TUNED[found.unlisted] if found.tuned else ""
    packed = said.precision or parts.is_gguf or found.tuned or listed
    line += "" if packed or not _is_anothers(parts, model) else _OF_ANOTHER
    if parts.publisher:
        model = replace(model, name=_name_of(parts, model, said), hf_id=own)
    elif found.tuned:
        model = replace(model, name=_as_typed(parts, said), hf_id=None, companions={})
    if said.precision:
        held, remark, mixed = _held(knowledge, said.precision)
        model = (
            replace(model, held_format=held)
            if parts.publisher
            else _of_that_name(model, parts, held)
        )
        return ModelRead(model, held, (f"{line} in {held}{remark}.",), mixed=mixed)
    if parts.is_gguf:
        held = _only_file(own)
        why = "its only file" if held else "which llama.cpp takes where no file is named"
        held = held or GGUF_DEFAULT
        return ModelRead(replace(model, held_format=held), "", (f"{line} in {held}, {why}.",))
    return ModelRead(model, "", (f"{line}.",))


def _as_meant(knowledge: Knowledge, parts: NameParts, found: Match) -> Model:
    record = knowledge.models.get(found.model.name)
    if record is None or found.tuned or parts.publisher or _tuning(parts.name):
        return found.model
    return as_tuned(knowledge, record, meant(record, parts.name))


def _only_file(repository: str) -> str:
    """Name the format of a GGUF repository that is known to hold one file, empty of others."""
    listed = (row for row in table_rows(GGUF_FILE) if row[1:2] == [repository])
    return next((row[2][:-1] for row in listed if row[2].endswith("=")), "")


_AS_TUNED: Final = (
    ", whose sizes it has as a fine-tune",
    ", whose name it bears and whose sizes a fine-tune has (no list here has it)",
)
_OF_ANOTHER: Final = " (no list here has it of that publisher, who makes models of their own)"


def _is_anothers(parts: NameParts, model: Model) -> bool:
    """Whether a maker of models is named who has not made this one."""
    makers = {publisher.casefold() for of in words().makers.values() for publisher in of}
    own = (model.hf_id or "").partition("/")[0].casefold()
    return parts.publisher.casefold() in makers - {own}


def quoted(text: str) -> str:
    """Quote what was typed."""
    return f"'{text.strip()}'"


def _name_of(parts: NameParts, model: Model, said: FormatSaid) -> str:
    """A packed copy keeps the name of what it holds, so that its files are named once."""
    return model.name if said.precision or parts.is_gguf else parts.name


def _as_typed(parts: NameParts, said: FormatSaid) -> str:
    """Give the name of a fine-tune as it was typed, less its format."""
    rest = _ENDS.sub("", said.rest)
    typed = parts.name[: len(rest)]
    return _GAPS.sub("-", typed if typed.casefold() == rest else rest)


_ENDS: Final = re.compile(r"[\s._()\[\]-]+$")
_GAPS: Final = re.compile(r"[_-]*\s[\s_-]*")


def _held(knowledge: Knowledge, word: str) -> tuple[str, str, bool]:
    """Give the format's name, or the word where it names several.

    With what its size rests on, and whether the file holds a maker's own mix.
    """
    try:
        read = read_format(knowledge, word)
    except RequestError:
        return word, "", False
    only = read.formats[0].name if len(read.formats) == 1 else word
    return only, f" (named {word.upper()}{read.remark})" if read.remark else "", read.mixed


def _of_that_name(model: Model, parts: NameParts, held: str) -> Model:
    """Give a model in the format that a bare name says, of the repository that is called so.

    Of several its maker's, then the most downloaded; of a file nobody knows the repository.
    """
    if parts.ending:
        return replace(model, hf_id=None, held_format=held)
    owner = (model.hf_id or "").partition("/")[0]
    kept = tells_instruct if tells_instruct(model.name) else bool
    named = (one for one in every_named(parts.name) if kept(one.name))
    same = [one.hf_id for one in named if published_format(one) == held]
    if not same:
        return replace(model, named_format=held)
    maker = (one for one in same if one.partition("/")[0] == owner)
    return replace(model, hf_id=next(maker, same[0]), held_format=held)


def _tagged(knowledge: Knowledge, text: str, said: FormatSaid, tag: Tag) -> ModelRead:
    """Read a tag of Ollama's library: the model that it holds, in its format.

    Raises:
        UserError: The model cannot be sized.
    """
    model = known_model(knowledge, tag.model)
    inner = ModelRead(model) if model else by_words(knowledge, tag.model)
    if _tuning(text) == "base":
        inner = ModelRead(_untuned(knowledge, inner.model))
    held, remark, _ = _held(knowledge, said.precision or tag.precision)
    line = f"{quoted(text)} is read as {inner.model.name}, Ollama's {tag.name}, "
    line += f"{'in' if said.precision else 'which holds'} {held}{remark}."
    model = replace(inner.model, held_format=held)
    return ModelRead(model, held if said.precision else "", (line,))
