"""The models that a request names: a known name, a name that is read, files; who may draft."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from advisor.errors import RequestError, UserError, is_slip
from advisor.knowledge.index import model_words
from advisor.knowledge.layers import allowed, check_path
from advisor.knowledge.types import Knowledge, ModelRecord
from advisor.models import model_from_path, model_from_record
from advisor.models.hub_names import PUBLIC_HOSTS, in_cache
from advisor.models.stored_tensors import Model
from advisor.reading import read_model, read_whole
from advisor.reading.format_patterns import library_format, said_in
from advisor.reading.known import ModelRead, listed
from advisor.reading.name_parts import SIZE, words
from advisor.reading.public_list import PublicModel, beginning, containing
from advisor.reading.published import is_packed, most_taken, taken
from advisor.scenario import Scenario, support

_MODEL_FILES = (".json", ".gguf", ".safetensors")


def find_model_named(text: str, knowledge: Knowledge) -> Model:
    """Find a model by what people call it, or as a folder or file, see ``model_named``.

    Raises:
        UserError: Unknown, or a file that cannot be read.
    """
    return model_named(text, knowledge).model


def model_named(text: str, knowledge: Knowledge) -> ModelRead:
    """Read the name of a model (``advisor.reading``), or its files where the text is a path.

    A known name goes before a folder of that name; write ``./name`` for the folder. The name of
    a weight file that is not here is read as any name.

    Raises:
        UserError: Unknown, or a file that cannot be read.
    """
    if _is_path(text):
        if _exists(text):
            return _from_files(text)
        if _is_file_name(text):
            return _of_file_name(text, knowledge)
        return _of_lost_path(text, knowledge) or _from_files(text)
    try:
        return read_model(knowledge, text)
    except RequestError:
        if not _exists(text, Path.is_dir):
            for otherwise in _OTHERWISE:
                if meant := otherwise(text, knowledge):
                    return meant
            raise
    return _from_files(text)


def _tried(text: str, knowledge: Knowledge) -> ModelRead | None:
    try:
        return model_named(text, knowledge)
    except UserError:
        return None


def is_of_library(model: Model) -> bool:
    """Whether it is held as in Ollama's library alone, which another runtime leaves."""
    own = "GGUF" not in (model.hf_id or "GGUF")
    return own and model.held_format in {library_format(model.name)} - {None}


def _with_a_point(text: str, knowledge: Knowledge) -> ModelRead | None:
    """Read a version that lacks its point: ``qwen36-27b``, ``llama31 8b``."""
    pointed = _VERSION.sub(r"\1.\2", text)
    if pointed == text or "/" in text:
        return None
    read = _tried(pointed, knowledge)
    line = f"'{text.strip()}' is read as {{}}."
    return read and replace(read, said=(line.format(read.model.name), *read.said[1:]))


_VERSION = re.compile(r"(?<=[a-z])(\d)(\d)(?=[-_\s])", re.IGNORECASE)


def _less_filler(text: str, knowledge: Knowledge) -> ModelRead | None:
    """Read a name beside words that name no model: ``mistral flavor of your choice``."""
    plain = " ".join(one for one in text.split() if one.casefold() not in words().filler)
    if plain in {"", text}:
        return None
    if not (read := _tried(plain, knowledge)) or read.said:
        return read
    return replace(read, said=(f"'{text}' is read as {read.model.name}.",))


def _most_usual(text: str, knowledge: Knowledge) -> ModelRead | None:
    """Take the usual one of several models that a name leaves open: ``gemma 3n``, ``llava 1.5``."""
    said = said_in(text)
    named = [one.name for one in most_taken(knowledge, said.rest)]
    if not named or "/" in text:
        return None
    others = named[1:]
    read = read_model(knowledge, f"{named[0]} {said.precision}".strip())
    line = f"'{text.strip()}' is read as {read.model.name}, the most usual of that name."
    also = f" It could also be {listed(others, _MOST_SAID)}."
    return replace(read, said=(line + also,), others=tuple(others))


_MOST_SAID = 4


def _of_a_size(text: str, knowledge: Knowledge) -> ModelRead | None:
    """Take the most downloaded model of a size that is all that is said: ``7B``, ``30B models``."""
    said = said_in(text)
    left = [one for one in _TOLD.findall(said.rest.casefold()) if one not in words().filler]
    if "/" in text or len(left) != 1 or not SIZE.fullmatch(left[0]):
        return None
    found = sorted(_called_by(float(left[0][:-1]), knowledge), key=taken, reverse=True)
    if not found or left[0][-1] != "b":
        return None
    first, *others = [one.name for one in found]
    read = read_model(knowledge, f"{first} {said.precision}".strip())
    line = (
        f"'{text.strip()}' names a size and no model: {first}, here the most downloaded, is sized"
    )
    also = f" Others of that size: {listed(others, _MOST_SAID)}." if others else ""
    return replace(read, said=(f"{line}.{also}",), others=tuple(others[:_MOST_SAID]))


_TOLD = re.compile(r"[^\W_]+(?:\.[^\W_]+)*")


def _called_by(billions: float, knowledge: Knowledge) -> Iterator[ModelRecord]:
    """Give the models that are called by so many parameters and made for text first of all."""
    for one in knowledge.models.values():
        plain = not any(map(words().kind.search, model_words(one.name)))
        if one.label_parameters_b == billions and one.modality in {"text", "vision"} and plain:
            yield one


def _largest(text: str, knowledge: Knowledge) -> ModelRead | None:
    """Take the largest of several sizes that are named: ``Qwen3 {4B,8B}``, ``llama-2 7b/13b``."""
    found = _SIZES.search(text)
    if found is None:
        return None
    sizes = sorted(map(float, _NUMBER.findall(found[0])))
    read = _tried(f"{text[: found.start()]}{sizes[-1]:g}B{text[found.end() :]}", knowledge)
    if read is None:
        return None
    line = f"'{text.strip()}' names {len(sizes)} sizes: {read.model.name}, the largest, is sized."
    return replace(read, said=(line, *read.said[1:]))


_BESIDE = r"\s*(?:[/,|&+]|\b(?:and|or|und|oder|et|ou)\b)\s*"
_SIZES = re.compile(
    rf"[\[{{(]?(?<![\d.])\d+(?:\.\d+)?b(?:{_BESIDE}\d+(?:\.\d+)?b)+\b[\]}})]?", re.IGNORECASE
)
_NUMBER = re.compile(r"\d+(?:\.\d+)?")


def _put_right(text: str, knowledge: Knowledge) -> ModelRead | None:
    """Read a name with slips put right: ``Lllama 70B``, ``Mimimax M2.7``."""
    right, known = dict[str, str](), _words_known(knowledge)
    for typed in () if "/" in text else set(_WORD.findall(said_in(text).rest)):
        begun = (model_words(one.name)[0] for one in beginning(typed))
        if typed not in known["any"] and typed not in begun:
            close = [one for one in known["named"] if _is_meant(typed, one)]
            right |= {typed: close[0]} if len(close) == 1 else {}
    put = _WORD.sub(lambda found: right.get(found[0].casefold(), found[0]), text)
    read = _tried(put, knowledge) if right else None
    slips = "".join(f", with {new} for {typed}" for typed, new in sorted(right.items()))
    line = f"'{text.strip()}' is read as {read.model.name}{slips}." if read else ""
    return read and replace(read, said=(line, *read.said[1:]))


_WORD = re.compile(r"[a-z]{4,}", re.IGNORECASE)
_LONG = 6  # from so many letters on the first may be wrong, too


def _is_meant(typed: str, word: str) -> bool:
    return (typed[0] == word[0] or len(word) >= _LONG) and is_slip(typed, word)


def _words_known(knowledge: Knowledge) -> Mapping[str, Collection[str]]:
    """Give the words of the known models' names, and with them those that names bear besides."""
    said = " ".join(" ".join((one.name, *one.aliases)) for one in knowledge.models.values())
    beside = (*words().tuned, *words().filler, *words().makers, *words().packers)
    named = {*_WORD.findall(said.casefold()), *words().tunings}
    return {"named": named, "any": named.union(beside)}


def _less_context(text: str, knowledge: Knowledge) -> ModelRead | None:
    """Read a name beside the context that it is to have: ``qwen3 8b 32k ctx``."""
    plain = _CONTEXT.sub("", text)
    read = _tried(plain, knowledge) if plain not in {"", text} else None
    line = f"'{text.strip()}' is read as {{}}; a context counts where --context states it."
    return read and replace(read, said=(line.format(read.model.name), *read.said[1:]))


_CONTEXT = re.compile(
    r"[\s,(@-]*(?:\b(?:with|at|and|in)\s+|@\s*)*(?:an?\s+)?(?<![\w.])\d{1,4}(?:,?\d{3}|\s*k)\s*(?:tokens?\s*)?"
    r"(?:of\s+)?(?:ctx|context|tokens?)(?:\s+(?:window|length|size))?\)?\s*$|\s*@\s*\d{1,4}k$",
    re.IGNORECASE,
)


def _of_more_words(text: str, knowledge: Knowledge) -> ModelRead | None:
    """Take the listed repository whose name has all words of a text, and its release and size."""
    said = said_in(text)
    told = [word for word in model_words(said.rest) if word not in words().filler]
    named = max((word for word in told if word.isalpha()), key=len, default="")
    least = len("abc") if len(told) > 1 else _LONG
    if "/" in text or len(named) < least or _JOINED.search(text):
        return None
    found = [one for one in containing(named, _MOST_LOOKED_AT) if _is_release(one, told)]
    sizes = [one.parameters_raw or 0 for one in found]
    if not found or min(sizes) * (1 + _ALIKE) < max(sizes):
        return None
    others = [one.name for one in found[1:] if len(told) == 1]
    if len(told) == 1 and not _is_all_of(found, named, knowledge):
        return None
    read = read_model(knowledge, f"{found[0].name} {said.precision}".strip())
    line = f"'{text.strip()}' is read as {read.model.name}, whose name has all of these words."
    also = f" It could also be {listed(others, _MOST_SAID)}." if others else ""
    return replace(read, said=(line + also, *read.said[1:]), others=tuple(others))


def _is_all_of(found: Sequence[PublicModel], word: str, knowledge: Knowledge) -> bool:
    """Whether one publisher's models alone begin with a word, which says nothing else in names."""
    publishers = {one.hf_id.partition("/")[0] for one in found}
    begins = all(one.name.casefold().startswith(word) for one in found)
    return begins and len(publishers) == 1 and word not in _words_known(knowledge)["any"]


_JOINED = re.compile(r"[a-z]\d+b(?![a-z])", re.IGNORECASE)  # ``internvl38b``: 3-8B, or 38B?
_MOST_LOOKED_AT = 500
_ALIKE = 0.1
_MANY = 4  # words of a text that may lack the first of a name: ``oig-oasst1-512-6_9b``
_OF_RELEASE = re.compile(r"[mkv]?\d+(?:\.\d+)*|[mkv]|a?\d+(?:\.\d+)?[bm]|\d+k")


def _is_release(one: PublicModel, told: Collection[str]) -> bool:
    """Whether a repository's name has these words, and besides none that tells another kind."""
    own = model_words(said_in(one.name).rest)
    beside = set(own) - set(told) - words().filler - set(words().tunings)
    beside -= set(model_words(one.name.partition("-")[0]) if len(told) >= _MANY else ())
    return not is_packed(one) and set(told) <= set(own) and all(map(_OF_RELEASE.fullmatch, beside))


def _either(text: str, knowledge: Knowledge) -> ModelRead | None:
    """Take the first of two releases of one size: ``Deepseek V3/R1``."""
    found = _TWO.fullmatch(text.strip())
    if found is None:
        return None
    try:
        first, other = (read_model(knowledge, f"{found[1]} {found[n]}") for n in (2, 3))
    except UserError:
        return None
    if first.model.parameters != other.model.parameters:
        return None
    line = f"'{text.strip()}' names two of one size: {first.model.name} is sized."
    return replace(first, said=(line, *first.said[1:]))


_TWO = re.compile(r"([a-z][\w.-]*) (\w+) ?/ ?(\w+)", re.IGNORECASE)


def _fine_tune(text: str, knowledge: Knowledge) -> ModelRead | None:
    try:
        return read_whole(knowledge, text)
    except UserError:
        return None


_OTHERWISE = (
    _with_a_point, _most_usual, _of_a_size, _largest, _either, _fine_tune, _less_filler,
    _less_context, _of_more_words, _put_right,
)  # fmt: skip
"""What a whole request's name is read as where no reader of names knows it."""


def _of_file_name(text: str, knowledge: Knowledge) -> ModelRead:
    """Read the name of a file, with the repository before it or whatever folder it lies in."""
    hint = ""
    for name in dict.fromkeys((text, text.rpartition("/")[2])):
        try:
            return read_model(knowledge, name)
        except RequestError as unknown:
            hint = unknown.hint if unknown.hint.startswith("Did you mean") else ""
    check_path(text)
    if "/" not in text:
        message = f"{text}: there is no such file, and no model is known by this name"
        raise RequestError(message, hint=hint or "Give the file's path, or name its base model.")
    try:
        return _from_files(text)
    except UserError as missing:
        missing.hint = missing.hint or hint
        raise


def _of_lost_path(text: str, knowledge: Knowledge) -> ModelRead | None:
    """Read what a path that is not here is called by; one word (``/models/K2``) may be anything."""
    check_path(text)
    plain = text.replace("\\", "/").rstrip("/")
    for name in (in_cache(plain), plain.rpartition("/")[2]):
        if not re.search(r"\w[-_.: ]\w", name):
            continue
        try:
            read = read_model(knowledge, name)
        except UserError:
            continue
        line = f"'{text}' is not on this machine: {read.model.name}, which it is called, is sized."
        return replace(read, said=(line, *read.said))
    return None


def _is_file_name(text: str) -> bool:
    """Whether a text is the bare name of a weight file, or such a file of a repository."""
    plain = not text.startswith((".", "/", "~")) and "\\" not in text
    return plain and text.endswith((".gguf", ".safetensors"))


def _from_files(text: str) -> ModelRead:
    check_path(text)
    path = Path(text)
    if not _exists(text, Path.is_dir) and path.suffix not in _MODEL_FILES:
        what = "not a model file" if path.is_file() else "no such folder"
        raise RequestError(
            f"{text}: {what}",
            hint="Give a folder with a config.json, a .gguf or a .safetensors file.",
        )
    return ModelRead(model_from_path(path))


def _is_path(text: str) -> bool:
    """Whether a text can only be a path: ``publisher/model`` is a Hugging Face id."""
    begins, ends = text.startswith((".", "/", "~/")), text.rstrip("/.").endswith(_MODEL_FILES)
    on_hub = "://" in text or text.partition("/")[0].casefold() in PUBLIC_HOSTS
    return not on_hub and (begins or ends or "\\" in text)


def _exists(text: str, is_one: Callable[[Path], bool] = Path.exists) -> bool:
    try:
        return allowed(text) and is_one(Path(text))
    except (OSError, ValueError):
        return False


_MOST_NAMED = 3


def _usable_drafts(scenario: Scenario, knowledge: Knowledge) -> str:
    """Name the smallest models of the family that could draft."""
    model, found = scenario.model, list[Model]()
    for record in knowledge.models.values():
        if record.family != model.family or record.modality != model.modality:
            continue
        try:
            other = model_from_record(record, knowledge)
        except RequestError:
            continue
        fits = support.same_vocabulary(other, model, scenario.framework)
        if fits and other.active_parameters <= model.active_parameters * support.DRAFT_SHARE:
            found.append(other)
    found.sort(key=lambda other: (other.parameters, other.name))
    if not found:
        return "No small model of its family has the same vocabulary: leave the draft out."
    return f"Of its family these can: {', '.join(other.name for other in found[:_MOST_NAMED])}."


def draft_problems(scenario: Scenario, knowledge: Knowledge) -> Iterator[RequestError]:
    """Say what keeps a draft model, or the model's own head, from drafting as asked."""
    draft, model = scenario.draft_model, scenario.model
    if draft and not support.same_vocabulary(draft, model, scenario.framework):
        yield RequestError(
            f"{draft.name} cannot draft for {model.name}: its vocabulary has "
            f"{draft.shape.vocab:,} tokens, not {model.shape.vocab:,}",
            hint=_usable_drafts(scenario, knowledge),
        )
    if (draft or scenario.mtp) and (why := support.no_drafting(scenario)):
        error = RequestError(
            f"{scenario.framework.name} cannot draft here: {why}",
            hint="Leave the draft out, or share the model in another way: --split.",
        )
        yield error.answered("What follows drafts nothing.", mtp=None, draft_model=None)
    if not scenario.mtp:
        return
    if scenario.draft_model:
        yield RequestError(
            "mtp and a draft model exclude each other", hint="Leave one of them out."
        )
    why = support.no_head(scenario.framework, scenario.model)
    if why:
        error = RequestError(why, hint="Leave mtp out, or name a --draft-model.")
        yield error.answered("What follows drafts nothing.", mtp=None)
