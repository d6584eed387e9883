"""Names of models with something over: a size, a mark, other separators, a fine-tune's own words.

A word that nothing explains makes a name no known model's, with one exception. Where a name is
written as that of a repository or a file, or tells the format of one, and it bears a known model
with its size, the rest is how somebody calls a fine-tune, unless a word of it tells a model of
another size (``other`` in ``model_words.tsv``: drafts, pruned and joined models, towers). Decision
78 counts how often that holds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from advisor.errors import RequestError, UserError
from advisor.knowledge.index import model_words, models_called, plain_key
from advisor.knowledge.types import Knowledge
from advisor.models import model_from_record
from advisor.models.stored_tensors import Model
from advisor.reading.format_patterns import FormatSaid, tag_named
from advisor.reading.known import ModelRead, as_tuned, known_model, tuning_of
from advisor.reading.name_match import Match, loosely, match, names_family
from advisor.reading.name_parts import (
    SEGMENT,
    SIZE,
    VERSION,
    NameParts,
    Segments,
    packs,
    parts_of,
    rests_of,
    words,
)
from advisor.reading.public_list import bare_key, beginning, every_named
from advisor.reading.read_names import by_words, format_of, put_together, quoted


def read_by_words(knowledge: Knowledge, text: str, *, whole: bool = False) -> ModelRead:
    """Find the model that a text names where no model is known just so.

    ``whole``: no word of it is of anything else, as in a sentence.

    Raises:
        UserError: Nothing has this name, several do, or it cannot be sized.
    """
    try:
        return by_words(knowledge, text)
    except RequestError:
        for otherwise in (*_OTHERWISE, _fine_tune) if whole else _OTHERWISE:
            if read := otherwise(knowledge, text):
                return read
        if why := _why_not_sized(text):
            raise why from None
        raise


def _why_not_sized(text: str) -> RequestError | None:
    """Say what a name means that is no language model, or no one model; None: nothing is known."""
    name = bare_key(text.rpartition("/")[2])
    refused = words().refused.items()
    begun = ((word, why) for word, why in refused if name.startswith(word))
    if why := next((y for w, y in begun if re.match(rf"{re.escape(w)}(?![a-z])", name)), ""):
        hint = _SIZED_HERE if "no language" in why else _ITS_FILES
        return RequestError(f"{quoted(text)} {why}", hint=hint)
    if _MERGED.search(name):
        return RequestError(
            f"{quoted(text)} is put together of several models and does not tell its size",
            hint=_ITS_FILES,
        )
    return None


_SIZED_HERE: Final = "Models that read and write text are sized here, and what embeds or ranks it."
_ITS_FILES: Final = "Give its config.json or its .gguf file."
_MERGED: Final = re.compile(r"franken|clown|(?<![a-z0-9])\d{1,2}x\d+(?:\.\d+)?b(?![a-z0-9])")


def _in_its_folder(knowledge: Knowledge, text: str) -> ModelRead | None:
    """Read a folder as text-generation-webui calls it: ``Publisher_Model-exl2``."""
    folder = _FOLDER.fullmatch(text)
    if folder is None:
        return None
    try:
        return read_by_words(knowledge, f"{folder[1]}/{folder[2]}")
    except UserError:
        return None


def _not_listed(knowledge: Knowledge, text: str) -> ModelRead | None:
    """Read somebody's repository or file as the model whose whole name it bears."""
    parts = parts_of(text)
    said = format_of(parts)
    found = None if " " in text else unlisted(knowledge, parts, said)
    return put_together(knowledge, text, parts, said, found) if found else None


def _fine_tune(knowledge: Knowledge, text: str) -> ModelRead | None:
    """Read all that somebody calls a model, beside its format: ``Qwen3-8B Sparkle Q4_K_M``.

    In a sentence the words beside a model may be anybody's.
    """
    parts = parts_of(text)
    said = format_of(parts)
    if _JOINS.search(text) or not (said.precision or parts.is_gguf):
        return None
    found = unlisted(knowledge, parts, said, whole=True)
    return put_together(knowledge, text, parts, said, found) if found else None


_JOINS: Final = re.compile(
    r"[+&,;]|\b(?:and|or|vs|versus|plus|with|und|oder|mit|et|ou|avec)\b", re.IGNORECASE
)
"""What stands between two models, or a model and what is beside it."""


def _by_its_copies(knowledge: Knowledge, text: str) -> ModelRead | None:
    """Read a maker's own repository that the list lacks while it has copies of that name."""
    parts = parts_of(text)
    if parts.tag or parts.file or not parts.publisher:
        return None
    begun = bare_key(parts.name).partition("-")[0]
    if not any(beginning(begun, parts.publisher)):
        return None
    try:
        read = by_words(knowledge, parts.name)
    except UserError:
        return None
    if read.model.origin != "list" or bare_key(read.model.name) != bare_key(parts.name):
        return None
    model = replace(read.model, hf_id=f"{parts.publisher}/{parts.name}")
    line = f"{quoted(text)} is sized by copies of that name, since no list here has it."
    return replace(read, model=model, said=(line,))


def _with_its_size(knowledge: Knowledge, text: str) -> ModelRead | None:
    """Read a name beside the size that it does not bear: ``MiniMax M2 230B-A10B``.

    The size has to be that of the model, or of what a token reads of it.
    """
    sizes, plain = _SIZES_BESIDE.findall(text), _SIZES_BESIDE.sub("", text).strip(" -_")
    packed = "/" in text and format_of(parts_of(text)).precision
    if not sizes or ("/" in text and not packed) or not names_family(knowledge, text):
        return None
    read = _plainly(knowledge, plain)
    if read is None:
        return None
    model = read.model
    for active, number, unit in sizes:
        own = (model.active_parameters if active else model.parameters) or 0
        said = float(number) * _UNITS[unit.casefold()]
        if abs(own - said) > (max(_ACTIVE, _ROUNDED * said) if active else _ROUNDED * said):
            return None
    line = f"{quoted(text)} is read as {model.name}."
    return _called(read, text, plain) if packed else replace(read, said=read.said or (line,))


def _plainly(knowledge: Knowledge, text: str) -> ModelRead | None:
    """Read a name that is known just so, or by its words."""
    if known := known_model(knowledge, text):
        return ModelRead(known)
    parts = parts_of(text)
    said = format_of(parts)
    try:
        found = match(knowledge, parts, said)
    except UserError:
        return None
    return put_together(knowledge, text, parts, said, found) if found else None


def _with_a_unit(knowledge: Knowledge, text: str) -> ModelRead | None:
    """Read a size that lacks its unit: ``Qwen2.5-72-int4``."""
    bare = (
        "" if "/" in text or _SIZES_BESIDE.search(text) else _BARE_SIZE.sub(r"\1b", text, count=1)
    )
    if bare in {"", text}:
        return None
    read = _plainly(knowledge, bare)
    if read is None:
        return None
    said = float(_BARE_SIZE.search(text)[1]) * _UNITS["b"]  # type: ignore[index]  # it was replaced
    alike = abs(read.model.parameters / said - 1) <= 2 * _ROUNDED
    return replace(read, said=(f"{quoted(text)} is read as {read.model.name}.",)) if alike else None


def _by_letters(knowledge: Knowledge, text: str) -> ModelRead | None:
    """Read a name whose words are parted otherwise: ``qwen25-coder:14b``, ``Qwen3-8-27B``.

    A size that stands apart has to be one of the model's.
    """
    parts = parts_of(text)
    said = format_of(parts)
    if parts.ending or (parts.publisher and not packs(parts.publisher)):
        return None
    key, sizes = plain_key(said.rest), set(filter(SIZE.fullmatch, model_words(said.rest)))
    found = {
        name
        for spelled, named in models_called(knowledge).items()
        if spelled[-1] == key[-1:]
        and spelled.replace(" ", "").replace(".", "") == key
        and all(_has_size(spelled.split(), s) for s in sizes)
        for name in named
    }
    if len(found) != 1:
        return None
    tuning = tuning_of(model_words(text), words().tunings)
    model = as_tuned(knowledge, knowledge.models[found.pop()], tuning)
    return put_together(knowledge, text, parts, said, Match(model))


def _as_a_tag(knowledge: Knowledge, text: str) -> ModelRead | None:
    """Read a family of Ollama's library with a size of it: ``cogito 70b``; the file is not said."""
    tag = _FAMILY_AND_SIZE.fullmatch(text.strip().casefold())
    if tag is None or tag_named(NameParts(tag[1], tag=tag[2])) is None:
        return None
    read = by_words(knowledge, f"{tag[1]}:{tag[2]}")
    line = f"{quoted(text)} is read as {read.model.name}, as Ollama has it."
    return replace(read, model=replace(read.model, held_format=None), said=(line,))


_FAMILY_AND_SIZE: Final = re.compile(r"([a-z][\w.-]*?)[\s-]+(\d+(?:\.\d+)?[bm])")


def _has_size(spelled: Sequence[str], size: str) -> bool:
    return size in spelled or f"a{size}" in spelled


def _less_marks(knowledge: Knowledge, text: str) -> ModelRead | None:
    """Read a name beside the context that its owner gave it, or a word for what it is anyway.

    ``qwen3.5-9b-64k:latest``, ``Qwen 3.6 MoE 35B``, ``Qwen3.5-VL-27B``.
    """
    less = _CONTEXT.sub("", text)
    plain = _KIND.sub(" ", less).strip(" -_")
    if "/" in text or plain in {"", text} or every_named(text):
        return None
    try:
        read = by_words(knowledge, plain)
    except UserError:
        return None
    said = {word.casefold() for word in _KIND.findall(less)}
    if ("moe" in said and not read.model.shape.moe) or (
        said - {"moe"} and read.model.modality != "vision"
    ):
        return None
    return replace(read, said=(f"{quoted(text)} is read as {read.model.name}.", *read.said))


def _less_remarks(knowledge: Knowledge, text: str) -> ModelRead | None:
    """Read a name less a mark of whoever packed or tuned it, its tag's size as a part of it.

    ``GLM-4.6-GPTQ-W4A16-v2``, ``openchat_3.5-16k.Q2_K.gguf``, ``somebody/llama-3-lexi:8b``.
    """
    for mark, plainly in _REMARKS:
        spelled = mark.sub(plainly, text).strip(" -_")
        if spelled in {"", text}:
            continue
        try:
            read = read_by_words(knowledge, spelled)
        except UserError:
            continue
        return _called(read, text, spelled)
    return None


def _called(read: ModelRead, text: str, spelled: str) -> ModelRead:
    """Give what another spelling was read as under its own name, and its repository."""
    parts = parts_of(text if "/" in text else spelled)
    own = f"{parts.publisher}/{parts.name}" if parts.publisher else None
    said = [line.replace(quoted(spelled), quoted(text)) for line in read.said]
    said = said or [f"{quoted(text)} is read as {read.model.name}."]
    return replace(read, model=replace(read.model, hf_id=own), said=tuple(said))


_FORMAT_BEFORE: Final = r"(?:w\da\d+|int\d|fp\d|awq|gptq|\dbits?|\dbpw|nvfp4|mxfp4|gguf|q\d\w*)"
_REMARKS: Final = (
    (re.compile(r"^([\w.-]+?)--(?=[\w.-]+$)"), r"\1/"),
    (
        re.compile(r"^([^/:\s]+/[^/:\s]+|[^/:\s]+):(\d+(?:\.\d+)?b)(?![a-z0-9])", re.IGNORECASE),
        r"\1-\2",
    ),
    (re.compile(r"(?<=\d)b(?=a\d+(?:\.\d+)?b(?![a-z0-9]))", re.IGNORECASE), "b-"),
    (re.compile(r"(?<=\d)b[/a]?(\d{1,2})(?:ab?|b)?(?![\w.])", re.IGNORECASE), r"b-a\1b"),
    (
        re.compile(r"(?<=[a-z -])(\d)[-_](\d)(?=[-_ ]\d+(?:\.\d+)?b(?![a-z0-9]))", re.IGNORECASE),
        r"\1.\2",
    ),
    (re.compile(rf"([-_ ]{_FORMAT_BEFORE})[-_ ]v\d+(?:\.\d+)?$", re.IGNORECASE), r"\1"),
    (re.compile(r"[-_ ]tr\d(?=[-_ ]|$)", re.IGNORECASE), ""),
    (re.compile(r"(?<=\dbit)[-_](?:fp|bf)16$", re.IGNORECASE), ""),
    (re.compile(r"^(?!.*\dk.*\dk)(.*?)[-_ ]\d{1,3}k(?=[-_.]|$)", re.IGNORECASE), r"\1"),
    (re.compile(r"(?<=\db)[-_ ]\d(?:\.\d)?t(?=[-_ .]|$)", re.IGNORECASE), ""),
)
"""Each with what stands in its place."""
_CONTEXT: Final = re.compile(r"(?:[-_](?:ctx)?\d{1,4}k(?:[-_]?ctx)?)?(?::latest)?$", re.IGNORECASE)
_KIND: Final = re.compile(r"[\s_-]*\b(moe|vl|vision)\b[\s_-]*", re.IGNORECASE)
_OTHERWISE: Final = (
    _with_its_size, _with_a_unit, _by_letters, _as_a_tag, _less_marks, _in_its_folder, _not_listed,
    _by_its_copies, _less_remarks,
)  # fmt: skip
_FOLDER: Final = re.compile(r"([A-Za-z-]{3,})_([A-Za-z][\w.]*(?:-[\w.]+){2,})")
_SIZES_BESIDE: Final = re.compile(
    r"(?:[\s_(:-]+|(?<=[bt])\.)(a?)(\d+(?:\.\d+)?)([bt])(?![a-z0-9])\)?", re.IGNORECASE
)
_BARE_SIZE: Final = re.compile(r"(?<=[\s_-])(\d{2,3})(?=$|[\s_-])")
_UNITS: Final = {"b": 1e9, "t": 1e12}
_ROUNDED: Final = 0.05  # how far a size that is told may lie from the parameters
_ACTIVE: Final = 1.5e9  # the same, in parameters, of what a token reads: some count embeddings
_MOST: Final = 14  # segments of a name
_PLAIN: Final = re.compile(
    r"[a-z]+\d+[a-z]{2,}|[a-z]{2,}|v?\d{1,2}(?:\.\d+){0,2}|[a-z]{2,}\d|\d{4}|\d+(?:\.\d+)?[kt]"
)
"""What a fine-tune may be called: words, versions, dates, tokens of context or of training."""


def unlisted(
    knowledge: Knowledge, parts: NameParts, said: FormatSaid, *, whole: bool = False
) -> Match | None:
    """Find the known model that the name of somebody's repository or file bears whole.

    ``whole``: the text is a name, though it is written as neither; no word of it begins another's.
    """
    if not (whole or parts.publisher or parts.ending) or every_named(parts.name):
        return None
    segments = tuple(SEGMENT.findall(VERSION.sub(".", said.rest)))
    if len(segments) > _MOST or not any(map(SIZE.fullmatch, segments)):
        return None
    for rest in rests_of(segments, parts)[:2]:
        for size in range(len(rest) - 1, 1, -1):
            found = _borne(knowledge, rest, size, parts, apart=whole)
            if found:
                one = next(iter(found.values()))
                return Match(one, tuned=True, unlisted=True) if len(found) == 1 else None
    return None


def _borne(
    knowledge: Knowledge, rest: Segments, size: int, parts: NameParts, *, apart: bool
) -> Mapping[str, Model]:
    """Give the models that stretches of so many segments are, beside words of a fine-tune alone."""
    found = dict[str, Model]()
    for stretch, others in (*_stretches(rest, size), *_parted(rest, size)):
        if apart and names_family(knowledge, " ".join(others)):
            continue
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
