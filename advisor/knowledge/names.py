"""From what people type to records; an unknown name is an error with the nearest ones.

Cards are read by ``advisor.reading``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Protocol, TypeVar

from msgspec.structs import replace

from advisor.errors import RequestError, by_letters, most_alike, nearest
from advisor.knowledge.catalogue import BACKEND_OF_WORD
from advisor.knowledge.index import (
    by_text,
    model_core,
    model_cores,
    model_key,
    models_called,
    models_published,
    of_one_family,
    plain_key,
)
from advisor.knowledge.types import Format, Framework, Knowledge, KvType, ModelRecord
from advisor.memo import by_identity

_MOST_LISTED = 8


class _HasAliases(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def aliases(self) -> tuple[str, ...]: ...


R = TypeVar("R", bound=_HasAliases)


@by_text
def find_model(knowledge: Knowledge, text: str) -> ModelRecord:
    """Find a model by name, alias or Hugging Face id.

    Instruct, Chat, IT, HF and Base may be left out; otherwise every word must be there.

    Raises:
        RequestError: Unknown (nearest names) or ambiguous (candidates).
    """
    if name := models_published(knowledge).get(text.casefold()):
        return knowledge.models[name]
    if "/" in text:
        return _same_publisher(knowledge, text)
    names = models_with(knowledge, text)
    if len(names) > 1:
        raise RequestError(
            f"'{text}' names several models: {_listed(names)}.", hint="Write one of these."
        )
    if not names:
        raise unknown_model(knowledge, text)
    return knowledge.models[names[0]]


def models_with(knowledge: Knowledge, text: str) -> Sequence[str]:
    """Name the models of just this name, or else those that have all of its words."""
    exact = models_called(knowledge).get(model_key(text))
    return exact or _with_cores(model_cores(knowledge), model_core(text))


def family_called(knowledge: Knowledge, text: str) -> str | None:
    """Give the family that a text names, where several models are called so: all of it."""
    named = models_with(knowledge, text)
    families = {knowledge.models[name].family for name in named}
    if len(named) < 2 or len(families) != 1:  # noqa: PLR2004
        return None
    family = families.pop()
    whole = sum(one.family == family for one in knowledge.models.values())
    return family if whole == len(named) else None


@by_text
def find_format_candidates(knowledge: Knowledge, text: str) -> tuple[Format, ...]:
    """Find the weight formats of this name or alias, in file order; never none.

    Two formats may share a name (MXFP4 of llama.cpp and of the servers); the framework decides.

    Raises:
        RequestError: Unknown, with the nearest names.
    """
    if found := _named(knowledge.formats, text):
        return found
    raise _unknown_format(knowledge, text)


@by_text
def find_framework(knowledge: Knowledge, text: str) -> Framework:
    """Find an inference runtime by name or alias.

    Raises:
        RequestError: Unknown, with the nearest names.
    """
    found = _named(knowledge.frameworks, text) or _beside_a_runtime(knowledge, text)
    if not found:
        raise _unknown("framework", text, knowledge.frameworks, ", ".join(knowledge.frameworks))
    return found[0]


def framework_called(knowledge: Knowledge, text: str) -> Framework | None:
    """Give the runtime of just this name or alias."""
    return next(iter(_named(knowledge.frameworks, text)), None)


_RELEASE = re.compile(r"v?\d+(?:\.\w+)*(?:-[a-z]+)?|b\d{3,}|cu\d{2,3}|g?(?=\D*\d)[0-9a-f]{7,40}")
_BESIDE_RUNTIME = frozenset(
    """and build container current docker dev engine github image latest main master native nightly
    on python release server stable the using version via windows with wsl wsl2""".split()  # noqa: SIM905  a table of words
)
"""Words beside the name of a runtime that say nothing of what it does with memory."""


def backend_beside(text: str) -> str | None:
    """Give the back end that stands beside a runtime's name: ``llama.cpp Vulkan``."""
    return next(
        (found for w in _runtime_words(text) if (found := BACKEND_OF_WORD.get(w.casefold()))), None
    )


def _runtime_words(text: str) -> Sequence[str]:
    return re.split(r"[\s()\[\],;/+@]+|(?<=\w)(?:[:=]+|-(?=v?\d))", text.strip())


def _beside_a_runtime(knowledge: Knowledge, text: str) -> tuple[Framework, ...]:
    """Find a runtime beside its version, back end or a part of it: ``vllm 0.11``; one alone."""
    words = [w for w in _runtime_words(text) if w and not _says_no_runtime(w)]
    if whole := _named(knowledge.frameworks, " ".join(words)):
        return whole
    each = [_named(knowledge.frameworks, word)[:1] for word in words]
    found = {one.name: one for pair in each for one in pair}
    inside = [one for one in found.values() if not one.loads_with]  # what a front end loads with
    named = inside if len(inside) == 1 else [*found.values()]
    return tuple(named) if len(named) == 1 and all(each) else ()


def _says_no_runtime(word: str) -> bool:
    key = word.casefold()
    return bool(_RELEASE.fullmatch(key)) or key in _BESIDE_RUNTIME or key in BACKEND_OF_WORD


def framework_meant(knowledge: Knowledge, text: str) -> Framework | None:
    """Find a runtime by its name, or as what another program's name says that it is built on.

    None where nothing here describes the program.

    Raises:
        RequestError: It is nearly a name that is known, or none at all.
    """
    try:
        return find_framework(knowledge, text)
    except RequestError:
        if _TRAINS.search(text):
            raise RequestError(
                f"{text} trains models, and training is not sized here",
                hint="Name what the model is to run with, or leave the framework out.",
            ) from None
        if not any(map(str.isalpha, text)) or _is_slip(knowledge, text):
            raise
        return _borne(knowledge, text)


_TRAINS = re.compile(
    r"axolotl|torchtune|llama[- ]?factory|\b(?:peft|trl|megatron)\b", re.IGNORECASE
)


def _is_slip(knowledge: Knowledge, text: str) -> bool:
    """Whether a text is nearly the name of a runtime, and not one with a word of its own behind."""
    folded, known = text.casefold(), [*map(str.casefold, _spellings(knowledge.frameworks.values()))]
    rests = (folded.removeprefix(one) for one in known if len(one) > _SHORT)
    if any(_OWN_WORD.fullmatch(rest) for rest in rests if rest != folded):
        return False
    return bool(get_close_matches(folded, known, 1, _SLIP))


_SLIP, _SHORT = 0.8, 3
_OWN_WORD = re.compile(r"[.\s_-]?(?:ai|[ch]pp|rs|go|js|net|lite)")
"""Behind the name of a runtime: a program of its own, ``vllm.cpp``, ``KoboldAI``."""


def _borne(knowledge: Knowledge, text: str) -> Framework | None:
    """Find the one runtime whose name a program bears: ``vllm-gfx906``, ``Jan.ai``."""
    found = (_named(knowledge.frameworks, w)[:1] for w in _PARTS.findall(text) if len(w) > 1)
    meant = {one.name: one for pair in found for one in pair}
    return meant.popitem()[1] if len(meant) == 1 else None


_PARTS = re.compile(r"llama\.?cpp|[a-z0-9]+", re.IGNORECASE)


def sized_framework(knowledge: Knowledge, text: str) -> Framework | None:
    """Find the runtime as which a name is sized: of one known by name alone, what is nearest to it.

    None where nothing is: then whatever runs the format stands for it.

    Raises:
        RequestError: As ``framework_meant``.
    """
    found = framework_meant(knowledge, text)
    if found is None or found.sized or found.loads_with:
        return found
    base = next((f for f in knowledge.frameworks.values() if found.name in f.variants), None)
    return base and _with_formats_of(found, base)


def _with_formats_of(found: Framework, base: Framework) -> Framework:
    """Let what stands for a program run the formats that its own record has, and say so."""
    own = {
        one: f"{found.name} runs {one}, {base.name} does not: it is sized as if it did"
        for one in found.formats
        if one not in base.formats
    }
    return replace(base, beyond={**own, **base.beyond}) if own else base


def stands_in(knowledge: Knowledge, text: str | None) -> bool:
    """Whether a program is sized as what is nearest to it, not as itself or what it runs inside."""
    if not text:
        return False
    found = (*_named(knowledge.frameworks, text), *_beside_a_runtime(knowledge, text))
    return not any(one.sized or one.loads_with for one in found[:1])


def runtime_said(knowledge: Knowledge, text: str | None, taken: Framework) -> Iterator[str]:
    """Say as what a program is sized that is no runtime known here."""
    if not text:
        return
    own = "what it does its own way is not counted"
    if sized_framework(knowledge, text) is None:
        yield f"Nothing here describes {text}: it is sized as {taken.name}, and {own}."
    elif not (_named(knowledge.frameworks, text) or _beside_a_runtime(knowledge, text)):
        yield f"{text} is sized as {taken.name}, whose name it bears; {own}."


def find_kv_type(knowledge: Knowledge, text: str, framework: Framework | None = None) -> KvType:
    """Find a KV-cache element type by name or alias; of several a framework's own goes first.

    Raises:
        RequestError: Unknown, with the nearest names.
    """
    found = _kv_types_called(knowledge, text)
    if framework is None or len(found) == 1:
        return found[0]
    own = (*framework.kv_types, *framework.beyond)
    return next((one for one in found if one.name in own), found[0])


@by_text
def _kv_types_called(knowledge: Knowledge, text: str) -> tuple[KvType, ...]:
    key, known = plain_key(text), knowledge.kv_types.values()
    exact = (one for one in known if plain_key(one.name) == key)
    found = (*exact, *(one for one in known if key in map(plain_key, one.aliases)))
    if found:
        return found
    raise _unknown("KV-cache type", text, knowledge.kv_types, ", ".join(knowledge.kv_types))


def _with_cores(cores: Sequence[tuple[str, str]], wanted: Sequence[str]) -> list[str]:
    """List the models with exactly these words, or else with all of them."""
    if not wanted:
        return []
    spelled, rarest = " ".join(wanted), max(wanted, key=len)
    found = [one for one in cores if rarest in one[1]]
    same = list(dict.fromkeys(name for name, core in found if core == spelled))
    if same:
        return same
    need = {word: wanted.count(word) for word in wanted}
    return list(dict.fromkeys(name for name, core in found if _has_words(core.split(), need)))


def _has_words(words: Sequence[str], need: Mapping[str, int]) -> bool:
    return all(words.count(word) >= count for word, count in need.items())


def _named(table: Mapping[str, R], text: str) -> tuple[R, ...]:
    return tuple(table[name] for name in _index(table).get(plain_key(text), ()))


# Bulk estimates take 1.15 times as long without, as most name a format.
@by_identity  # 1.06 of an advice, 1.02 of lines
def _index(table: Mapping[str, R]) -> Mapping[str, Sequence[str]]:
    """Key every name and alias of a small table."""
    keys: dict[str, list[str]] = {}
    for record in table.values():
        for key in {plain_key(name) for name in (record.name, *record.aliases)} - {""}:
            keys.setdefault(key, []).append(record.name)
    return keys


def _spellings(table: Iterable[R]) -> list[str]:
    return [name for record in table for name in (record.name, *record.aliases)]


@by_identity
def _model_spellings(knowledge: Knowledge) -> Mapping[str, Sequence[str]]:
    models = knowledge.models.values()
    spellings = {model_key(n): n for m in models for n in (*m.aliases, m.name)}
    return by_letters(spellings.values())


def _near_models(knowledge: Knowledge, text: str) -> list[str]:
    choices = most_alike(text, _model_spellings(knowledge))
    return [name for name in nearest(text, choices) if of_one_family(text, name)]


def unknown_model(knowledge: Knowledge, text: str) -> RequestError:
    """Say that no model is called this; a near name shares more than a size or a tuning with it."""
    otherwise = (
        "'advisor knowledge find WORD', give the model's config.json or .gguf file, "
        "or name the model that it is tuned or merged of"
    )
    return RequestError(
        f"unknown model '{text}'.", hint=lambda: _hint(_near_models(knowledge, text), otherwise)
    )


def _same_publisher(knowledge: Knowledge, text: str) -> ModelRecord:
    """Take ``meta-llama/Llama-3.1-8B-Instruct`` for the publisher's model of that name."""
    publisher, _, name = text.partition("/")
    if "/" in name:
        raise unknown_repository(knowledge, text)
    named = models_with(knowledge, name)
    found = knowledge.models[named[0]] if len(named) == 1 else None
    if not found or (found.hf_id or "").partition("/")[0].casefold() != publisher.casefold():
        raise unknown_repository(knowledge, text)
    return found


def unknown_repository(knowledge: Knowledge, text: str) -> RequestError:
    """Say that this Hugging Face id is not known; its last part may be, or be near one that is."""
    hint = "Give a local folder with its config.json, or let 'advisor advise --hub' look it up."
    name = text.rpartition("/")[2]
    named = models_with(knowledge, name)
    if len(named) == 1:
        hint = f"Did you mean '{knowledge.models[named[0]].hf_id or named[0]}'?"
    elif near := _near_models(knowledge, name):
        hint = f"{_hint(near, '')} {hint}"
    return RequestError(f"unknown model '{text}'.", hint=hint)


def _unknown(what: str, text: str, choices: Iterable[str], otherwise: str) -> RequestError:
    return RequestError(f"unknown {what} '{text}'.", hint=_hint(nearest(text, choices), otherwise))


def _unknown_format(knowledge: Knowledge, text: str) -> RequestError:
    """Name the formats that begin like this, as runtimes prefer them, else near ones."""
    offered, key = {n: f for n, f in knowledge.formats.items() if f.offered}, plain_key(text)
    preferred = dict.fromkeys(n for f in knowledge.frameworks.values() for n in f.formats)
    sizes = [n for n in preferred if n in offered and key and plain_key(n).startswith(key)][:3]
    near = sizes or nearest(text, _spellings(offered.values()))
    hint = _hint(near, "'advisor knowledge find WORD'")
    error = RequestError(f"unknown weight format '{text}'.", hint=hint)
    if not near and (bits := _BITS_IN.search(text)):
        said = f"{bits[1] or bits[2]}-bit"
        error.answered(f"What follows is of {said} weights.", precision=said)
    return error


_BITS_IN = re.compile(
    r"(?:int|fp|[wqt])[-_ ]?([2-8])(?![\d.])|(?<![\d.])([2-8])[- ]?bit", re.IGNORECASE
)


def _hint(names: Sequence[str], otherwise: str) -> str:
    if not names:
        return f"Try {otherwise}."
    quoted = [f"'{name}'" for name in names]
    head = ", ".join(quoted[:-1])
    return f"Did you mean {f'{head} or {quoted[-1]}' if head else quoted[-1]}?"


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_MOST_LISTED])
    more = len(names) - _MOST_LISTED
    return f"{shown} and {more} more" if more > 0 else shown


_WORD = re.compile(r"[^\W\d_]+")


def line_of(family: str) -> str:
    """Give the word that a family begins with: Qwen of Qwen3-Next."""
    found = _WORD.match(family)
    return found[0] if found else family
