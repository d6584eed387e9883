"""A text that names a model, taken apart, and its name less the words that are none of a model's.

The words stand in ``knowledge/model_words.tsv``, read when a name is not known just so.

Forms: ``name``, ``name:tag`` of Ollama, ``publisher/name[@revision][:file or format]``, addresses
of the public hub and of Ollama's library, and names of weight files.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from advisor.errors import RequestError
from advisor.files import table_rows
from advisor.knowledge.index import model_words
from advisor.models.hub_names import has_hub_form, is_address, parse

_LIBRARY: Final = re.compile(
    r"(?:(?:https?://)?(?:www\.)?ollama\.com|ollama:/)(?:/library)?/", re.IGNORECASE
)
_HUB_HOST: Final = re.compile(
    r"(?:(?:https?://)?(?:hf-mirror\.com|(?:www\.)?modelscope\.(?:cn|ai)/models)|(?:www\.)?(?:hf\.co|huggingface\.co)|(?:hf|huggingface|modelscope|ms):/)/",
    re.IGNORECASE,
)
_HUB: Final = "https://huggingface.co"
_BEHIND: Final = re.compile(r"^([^/:]+/[^/:]+)/([^/:]+\.gguf)$", re.IGNORECASE)
"""A file behind its repository: ``hf://unsloth/Qwen3-8B-GGUF/Qwen3-8B-Q4_0.gguf``."""
_ENDING: Final = re.compile(r"\.(gguf|llamafile|safetensors|bin|pth?)$", re.IGNORECASE)
_GGML: Final = re.compile(
    r"\.(?:ggml(?:v\d)?(?![a-z0-9])|i1-)|-chat-v\d+-imatrix(?![^-])", re.IGNORECASE
)
"""What files say of their kind: ``llama-2-13b.ggmlv3.q4_0.bin``, ``Qwen3-8B.i1-IQ3_M.gguf``; of ds4
the template that its importance matrix was made with.
"""
_SHARD: Final = re.compile(r"-\d{5}-of-\d{5}$")
_LONGEST: Final = 300
_CACHED: Final = re.compile(
    r"(?:(?P<publisher>[^_]+)_)?(?P<name>.+-gguf)_(?P<file>.+)", re.IGNORECASE
)
"""A file as llama.cpp keeps what it loaded: ``unsloth_Qwen3-8B-GGUF_Qwen3-8B-Q4_0``."""
_FOLDER: Final = re.compile(
    r"(?P<repository>[\w.-]+/[\w.-]+-gguf)/(?P<file>[\w.-]+)", re.IGNORECASE
)
"""A folder of a repository that holds one format: ``unsloth/Qwen3-8B-GGUF/Qwen3-8B-Q4_0``."""
_APART: Final = re.compile(
    r"(?<=\d)\s+(?=b(?:illion)?\b)|(?<=\d[bB])illion\b(?:[\s-]param\w*)?|\.ggmlv\d$", re.IGNORECASE
)
"""What stands between a size and its unit, or behind it: ``32 B``, ``7 billion``."""
_FILE_SIZE: Final = re.compile(r"\s+[-(,]*\s*\d+[.,]\d+\s*G(?:i?B|o)\)?$", re.IGNORECASE)
_TIMES: Final = re.compile(r"(?<=\d)\s*[*\u00d7]\s*(?=\d+(?:\.\d+)?b\b)", re.IGNORECASE)
"""A mixture's sign as it is typed: ``8*7B``."""
_DEEPSEEK: Final = re.compile(r"^ds[\s_-]?(?=[rv]\d)", re.IGNORECASE)
"""As it is written in haste: ``ds v3.2``."""
_SHOWN: Final = re.compile(r"\?(?:.*&)?show_file_info=([^&#]+).*")
"""A file that a page of the hub shows."""
_PAGE: Final = re.compile(r"[?#].*|/(?:tags|blobs)(?:/.*)?$")
"""What is behind the name in an address: a question, a place on the page, a list of Ollama's."""
_PLAIN_FILE: Final = re.compile(
    r"(?:.*/)?(?P<folder>[\w.-]+)/(?:ggml-)?model[-_.]?(?P<format>[\w-]*)\.(?P<ending>bin|gguf|pth)",
    re.IGNORECASE,
)
"""A file that is named by its folder alone: ``llama-7b/ggml-model-q4_0.bin``."""


class NameParts(Struct, frozen=True):
    """The parts of a text that names a model."""

    name: str
    publisher: str = ""
    tag: str = ""
    """What stands behind a colon and is no file: Ollama's tag, or a format."""
    file: str = ""
    """The name of a weight file in the repository, less ending and number of its part."""
    ending: str = ""
    """``gguf`` ... where the text names a weight file."""

    @property
    def may_be_ollama(self) -> bool:
        """Whether Ollama's library may have this name."""
        return not self.publisher and not self.ending

    @property
    def is_gguf(self) -> bool:
        """Whether what it names holds GGUF files."""
        words = re.findall(r"[a-z0-9]+", self.name.casefold())
        return self.ending == "gguf" or "gguf" in words


def parts_of(text: str) -> NameParts:
    """Take a text apart.

    Raises:
        RequestError: It is an address of something else.
    """
    bare = _APART.sub("", _APART.sub("", _less_remarks(text)))
    if len(bare) > _LONGEST:
        return NameParts(bare)
    if (plain := _PLAIN_FILE.fullmatch(bare)) and "://" not in bare:
        return _of_file(f"{plain['folder']}-{plain['format']}", plain["ending"].casefold())
    for host in (_LIBRARY, _HUB_HOST):
        found = host.match(bare)
        bare = _BEHIND.sub(r"\1:\2", _PAGE.sub("", bare[found.end() :])) if found else bare
    if is_address(bare):
        return _on_hub(bare)
    if found and bare.count("/") > 1:
        return _on_hub(f"{_HUB}/{bare}")
    one = "-".join(bare.split())
    if "/" in bare and has_hub_form(one):
        return _on_hub(one)
    if found := _FOLDER.fullmatch(bare):
        return replace(_on_hub(found["repository"]), file=found["file"], ending="gguf")
    if "/" in bare:
        raise RequestError(f"'{bare[:200]}' is no name of a model", hint="Write publisher/name.")
    name, _, tag = bare.partition(":")
    ending = _ENDING.search(bare)
    if ending:
        return _of_file(_stem(bare.replace(":", " ")), ending[1].casefold())
    return NameParts(name.strip(), tag=tag.strip())


def _less_remarks(text: str) -> str:
    """Leave out the size of a file, and write a line of LM Studio's list as the repository."""
    bare = _FILE_SIZE.sub("", text.strip().strip("'\"").replace("___", "."))
    bare = _DEEPSEEK.sub("deepseek-", _SHOWN.sub(r"/blob/main/\1", _TIMES.sub("x", bare)))
    publisher, *rest = bare.split(" - ")
    if rest and packs(publisher) and len(rest[0].split()) == 1:
        told = [one for one in rest[1:] if one.casefold() not in rest[0].casefold()]
        bare = ":".join((f"{publisher}/{rest[0]}", *told))
    return bare


def _of_file(stem: str, ending: str) -> NameParts:
    if kept := _CACHED.fullmatch(stem):
        return NameParts(kept["name"], kept["publisher"] or "", file=kept["file"], ending=ending)
    return NameParts(stem, ending=ending)


def _on_hub(text: str) -> NameParts:
    found = parse(text, _HUB)
    publisher, _, name = found.repository.rpartition("/")
    wanted = (found.wanted or found.folder).rpartition("/")[2]
    if ending := _ENDING.search(wanted):
        return NameParts(name, publisher, file=_stem(wanted), ending=ending[1].casefold())
    packed = re.search(r"^\d_\d{1,2}$|\d[-_]?(?:bpw|bit)", found.revision)  # ``6.0bpw``, ``6_5``
    return NameParts(name, publisher, tag=wanted or (found.revision if packed else ""))


def _stem(file: str) -> str:
    return _SHARD.sub("", _GGML.sub("-", _ENDING.sub("", file)))


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
    plain = without(segments, known.filler | {word for word, m in known.tunings.items() if not m})
    bare = without(plain, known.packers)
    whole = [plain, segments] if parts.is_gguf else [segments, plain]
    packs = known.packers.union(known.makers).issuperset(publisher_words(parts.publisher))
    own = frozenset(publisher_words(parts.publisher) if packs else ())
    less = [
        without(kept, taken) for taken in (own, frozenset(known.makers)) for kept in (plain, bare)
    ]
    own_name = parts.publisher.casefold()
    tells = own_name in segments and own_name not in known.makers
    signed = [without(plain, {own_name})] if tells and not known.tuned.isdisjoint(segments) else []
    return list(dict.fromkeys(kept for kept in (*whole, bare, *less, *signed) if kept))


def based_on(rests: Sequence[Segments]) -> Sequence[Segments]:
    """Put the base for names that do not tell it: ``vicuna-13b``, ``miqu-1-70b``, ``L3-8B-...``."""
    short, told = words().short, words().bases.intersection(rests[0])
    # A single word has to be listed whole; ``Koala-Mistral-7B`` is of two bases.
    rests = [w for w in rests if told.issubset(w) and (w[1:] or w[0] in words().same)]
    spelled = [tuple(w for one in kept for w in short.get(one, one).split("-")) for kept in rests]
    longer = [kept for kept in (*spelled, *less_tuned(spelled)) if kept not in rests]
    bases = (base for kept in rests if (base := _base(kept) or _base(_family_words(kept))))
    return list(dict.fromkeys((*bases, *longer)))


def _family_words(segments: Segments) -> Segments:
    """Leave out words of fine-tunes that no family bears: ``WizardLM-13B-Uncensored``."""
    named = "-".join(words().built_on)
    return tuple(w for w in segments if w not in words().tuned or w in named)


def _base(segments: Segments) -> Segments:
    """Look up family, version and size of a name that holds nothing else."""
    known = words()
    plain = [w for w in segments if w not in known.tunings]
    if same := known.same.get("-".join(plain)):
        return tuple(same.split("-"))
    size = next((word for word in plain if SIZE.fullmatch(word)), "")
    family = "".join(word for word in plain if word.isalpha())
    version = next((word.lstrip("v") for word in plain if _VERSION.fullmatch(word)), "")
    told = {w for w in plain if w in known.short and (size or "." in w)}
    own = {size, *told}
    if not (size or told) or not all(w.isalpha() or w in own or _MARK.fullmatch(w) for w in plain):
        return ()
    alike = not any(map(known.other.search, {*plain} - told))
    if told and alike:  # of two the one with a version: ``L3.3-MS-...`` is no Mistral Small
        return tuple(f"{known.short[max(told, key=len)]}-{size}".strip("-").split("-"))
    first = plain[0] if alike and plain else family
    keys = (
        f"{family}-{version}-{size}", f"{family}-{version}", f"{family}-{size}", family,
        f"{first}-{size}",
    )  # fmt: skip
    key = next((key for key in keys if key in known.built_on), "")
    base = known.built_on[key].format(size=size) if key else ""
    sizes = set(filter(SIZE.fullmatch, base.lower().split("-")))
    other = sizes and size not in {*sizes, key.rpartition("-")[2]}
    return tuple(base.split("-")) if base and not other else ()


_VERSION: Final = re.compile(r"v?\d(?:\.\d+)?")
_MARK: Final = re.compile(r"v?\d{1,2}(?:\.\d+){0,2}[a-z]?|[rx]\d|\d+k|\d{4}|\d\.\dx")
"""Of a release: its version, context, date."""


def params_around(size: str) -> tuple[str, str]:
    """Give the least and the most parameters of models that are called ``70b``."""
    number, unit = float(size[:-1]), size[-1].upper()
    return f"{(1 - _AROUND) * number:.3g}{unit}", f"{(1 + _AROUND) * number:.3g}{unit}"


def publisher_words(publisher: str) -> Sequence[str]:
    """Cut a publisher into words."""
    return re.findall(r"[a-z0-9]+", publisher.casefold())


def packs(publisher: str) -> bool:
    """Whether somebody is known to pack others' models: ``mlx-community``."""
    own = publisher_words(publisher)
    return bool(own) and words().packers.issuperset(own)


def less_tunings(rests: Sequence[Segments]) -> Sequence[Segments]:
    """Take the tuning off a name as repositories write it: a base may be listed alone."""
    less = (without(kept, set(words().tunings)) for kept in rests)
    return [one for one, kept in zip(less, rests, strict=True) if one != kept]


def without(segments: Sequence[str], taken: frozenset[str] | set[str]) -> tuple[str, ...]:
    """Leave some words out of a name."""
    return tuple(one for one in segments if one not in taken)


def less_tuned(rests: Sequence[Segments]) -> Sequence[Segments]:
    """Take the words of fine-tunes out of each reading that has some, and tells a size."""
    whole = [_without_tuned(kept) for kept in rests]
    less = (*whole, *(one[:-1] for one in whole if one not in rests and _ends_as_release(one)))
    same = [without(kept, words().edited) for kept in rests]
    found = (
        one
        for one in (*same, *less)
        if one not in rests and (one in same or any(map(_tells_size, one)))
    )
    return list(dict.fromkeys(found))


def _ends_as_release(segments: Segments) -> bool:
    """Whether a version of the fine-tune stands behind the size: ``airoboros-l2-70b-2.1``."""
    at_end = len(segments) > 1 and _VERSION.fullmatch(segments[-1])
    return bool(at_end) and _tells_size(segments[-2])


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


_WORDS_FILE: Final = "model_words.tsv"


class Release(Struct, frozen=True):
    """A release of its own that has the sizes of another model."""

    sizes: str
    """The model whose sizes it has."""
    hf_id: str
    """Its repository, ``publisher/name``."""
    trained_context: str = ""
    """Tokens, where they are not those of that model."""


class Words(Struct, frozen=True):
    """The words by kind, in lower case."""

    tunings: Mapping[str, str]
    """``instruct``, ``it`` ... -> ``instruct``, ``base`` or nothing (``hf``)."""
    makers: Mapping[str, tuple[str, ...]]
    """A maker's or family's word -> the publishers whose models it may stand before."""
    packers: frozenset[str]  # publishers that pack or mirror others' models, as names have them
    tuned: frozenset[str]  # of fine-tunes: what bears one has the sizes of its base
    edited: frozenset[str]  # that keep the model's own weights but for a few: ``abliterated``
    filler: frozenset[str]
    other: re.Pattern[str]  # in a word: it tells a model of another size than the base it bears
    kind: re.Pattern[str]  # the same, of another kind of model: one that hears, sees, ranks
    short: Mapping[str, str]
    """A word that stands for a base within names of fine-tunes (``l3``) -> the base."""
    releases: Mapping[str, Release]  # a whole name -> the release that it names
    same: Mapping[str, str]  # a whole name -> the model whose sizes it has
    built_on: Mapping[str, str]
    """A family of fine-tunes that does not name its base -> the base, less its size."""
    bases: frozenset[str]  # with which these bases begin, ``mistral``: no maker's word beside them
    slips: Mapping[str, str]
    refused: Mapping[str, str]  # a family of which nothing is sized -> why
    unread: Mapping[str, tuple[str, ...]]
    """A format that no runtime here reads -> the nearest, with ``{bits}``, and who reads it."""
    unread_called: re.Pattern[str]
    """One of them with its bits: ``JANG_4M``."""


UNSIZED_FILE: Final = "unsized_cards.tsv"


@cache  # 1.10 of reports, 1.57 of questions
def words() -> Words:
    """Read the words, once."""
    kinds: dict[str, dict[str, str]] = {}
    releases: dict[str, Release] = {}
    unread: dict[str, tuple[str, ...]] = {}
    for kind, listed, *means in table_rows(_WORDS_FILE):
        if kind == "release":
            releases |= dict.fromkeys(listed.split(), Release(*means))
        elif kind == "unread":
            unread |= dict.fromkeys(listed.split(), tuple(means))
        else:
            kinds.setdefault(kind, {}).update(dict.fromkeys(listed.split(), "".join(means[:1])))
    return Words(
        tunings=kinds["tuning"],
        makers={word: tuple(means.split()) for word, means in kinds["maker"].items()},
        packers=frozenset(kinds["packer"]),
        tuned=frozenset((*kinds["tuned"], *kinds["edited"])),
        edited=frozenset(kinds["edited"]),
        filler=frozenset(kinds["filler"]),
        other=re.compile("|".join((*kinds["other"], *kinds["kind"]))),
        kind=re.compile("|".join(kinds["kind"])),
        short=kinds["short"],
        releases=releases,
        same=kinds["same"],
        built_on=kinds["built-on"],
        bases=frozenset(re.findall(r"(?m)^[a-z]+", "\n".join(kinds["built-on"].values()).lower())),
        slips=kinds["slip"],
        refused=kinds["refused"],
        unread=unread,
        unread_called=re.compile(
            rf"(?<![a-z0-9])(?P<word>{_any_of(unread)})"
            r"(?:[-_ ]?(?P<bits>[1-8])(?:[-_ ]?bits?|[a-z]{1,2})?)?(?![a-z0-9])"
        ),
    )


def unsized_card(text: str) -> tuple[RequestError, str, bool] | None:
    """Say why hardware that a text names is not sized, its name, whether RAM is its memory."""
    for named, why, *shares in table_rows(UNSIZED_FILE):
        spelled = _any_of(named.split(", ")).replace(r"\ ", r"[\s-]*")
        if found := re.search(rf"(?<![a-z0-9])(?:{spelled})(?![a-z0-9])", text, re.IGNORECASE):
            hint = "The nearest is the processor beside it: --gpu cpu with its --ram."
            error = RequestError(f"'{found[0]}' is not sized: {why}", hint=hint)
            if shares == ["beside"]:
                error.answered("What follows is of the processor beside it.", gpu="cpu", gpus=None)
            return error, found[0], shares == ["shares"]
    return None


def _any_of(named: Iterable[str]) -> str:
    return "|".join(map(re.escape, sorted(named, key=len, reverse=True)))
