"""How a repository holds its weights, as its name and the list say; ``format_patterns`` reads it.

What packs weights in a form that has no name here is known by its word alone.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache
from typing import Final, NamedTuple

from msgspec import json
from msgspec.structs import replace

from advisor.files import table_rows
from advisor.knowledge.index import model_words
from advisor.knowledge.names import models_with
from advisor.knowledge.types import Knowledge, ModelRecord
from advisor.models.shape import UNKNOWN
from advisor.reading.format_patterns import GGUF_TYPE, PLAIN, FormatSaid, default_tag, said_in
from advisor.reading.name_parts import NameParts, words
from advisor.reading.public_list import (
    PublicModel,
    bare_key,
    beginning,
    every_named,
    exact,
    going_on,
    having,
    sort_key,
)

GGUF_DEFAULT: Final = "Q4_K_M"
"""What llama.cpp takes of a GGUF repository where no file is named (its common/arg.cpp)."""
FILE: Final = "published_formats.tsv"
ELSEWHERE: Final = "packed_repos.tsv"
CONFIGS: Final = "packed_configs.tsv"
RECORDED: Final = "repositories.tsv"
OWN: Final = "own_records.tsv"
_DRAFTS: Final = re.compile("dspark|eagle|dflash|mtp|medusa|draft|speculator", re.IGNORECASE)
_UNNAMED: Final = re.compile(
    r"(?<![a-z])(gguf|mlx|onnx|ov|exl|exl[23]|hqq|aqlm|quip|bnb|quantized|quant|optiq|oq\d|torchao|fp[48]"
    r"|mxfp8|int[2348]|uint4|w[348]a\d+)(?![a-z])|(?<![a-z0-9])\d(\.\d+)?-?(bits?|bpw)(?![a-z0-9])"
)
"""Words that say that weights are packed, and not in which format."""
_SIXTEEN: Final = frozenset({"BF16", "FP16"})
_SIZE: Final = re.compile(r"(?<![a-z0-9.])(\d+(?:[._]\d+)?)([bm])(?![a-z0-9])", re.IGNORECASE)
_ACTIVE: Final = re.compile(r"(?<![a-z0-9])a(\d+(?:\.\d+)?)([bm])(?![a-z0-9])", re.IGNORECASE)
_UNITS: Final = {"b": 1e9, "m": 1e6}
ROUNDED: Final = 0.12  # how far the size in a name lies from what it rounds
_OPEN: Final = re.compile(r"|INT\d")  # what leaves the scheme open: nothing, or bits alone


def _said(public: PublicModel) -> FormatSaid:
    """Read the format in the name; where it tells no more than bits, the list's word counts."""
    mlx = "mlx" in public.hf_id.partition("/")[0].lower() or public.format == "mlx"
    found = said_in(public.name, mlx=mlx)
    if not public.format or not _OPEN.fullmatch(found.precision):
        return found
    return said_in(f"{public.format} {found.precision}".strip(), mlx=mlx)


def is_draft(public: PublicModel) -> bool:
    """Whether a repository's name says that it is a head that drafts for another model."""
    return _DRAFTS.search(public.name) is not None


def is_packed(public: PublicModel) -> bool:
    """Whether its files hold weights of less than 16 bits."""
    name, said = public.name.lower(), said_in(public.name)
    if "unquantized" in name:
        return False
    if said.precision in _SIXTEEN:
        return _UNNAMED.search(said.rest.replace("mlx", "")) is not None
    return bool(public.format or _UNNAMED.search(name)) or said.precision not in PLAIN


def counts_parameters(public: PublicModel) -> bool:
    """Whether the list counts parameters of it: elements, of packed ones where its name agrees.

    A count that is the very size in the name was taken from there.
    """
    stated = public.parameters_raw or 0
    if not stated or not is_packed(public) or said_in(public.name).precision.startswith("FP8"):
        return bool(stated)
    return any(0 < abs(size - stated) <= ROUNDED * size for size in sizes_said(public.name))


def sizes_said(name: str) -> Sequence[float]:
    """Give the sizes that a name says, in parameters: ``35B``, ``REAP-19B``, not ``A3B``."""
    return [
        float(number.replace("_", ".")) * _UNITS[unit.lower()]
        for number, unit in _SIZE.findall(name)
    ]


def active_said(name: str) -> float | None:
    """Give the active parameters that a name says: ``A3B``."""
    found = _ACTIVE.search(name)
    return float(found[1]) * _UNITS[found[2].lower()] if found else None


def published_format(public: PublicModel) -> str | None:
    """Name the weight format that its files hold, None for 16 bits and where it is not told."""
    said = _said(public).precision
    if said == "MXFP8":
        return "MLX 8-bit" if "mlx" in public.hf_id.lower() else "FP8"
    if GGUF_TYPE.fullmatch(said):
        return said.upper() if has_gguf(public) else None
    if has_gguf(public):
        return GGUF_DEFAULT
    if said and _OPEN.fullmatch(said):
        return f"{packed_config(public.hf_id).get('format', '')}" or None
    name = said.replace("MLX MXFP4", "MLX 4-bit").replace("exl", "EXL")
    return None if said in PLAIN or ("bpw" in said and "EXL" not in name) else name


class Recorded(NamedTuple):
    """The known model that a repository holds, as somebody looked it up."""

    repository: str
    record: str
    """Its name, or the repository by which alone it is found."""
    format: str
    """Weight format of its files; empty for that of the model, and where none has a name here."""
    source: str
    seen: str

    @property
    def told(self) -> str:
        """Say in which format, who says so and when it was seen; a clause."""
        held = f", which it holds in {self.format}" if self.format else ""
        return f"{held} ({self.source}, seen {self.seen})"


def recorded_repositories() -> Iterator[Recorded]:
    """Read which repositories hold a known model under a name of their own."""
    return (Recorded(*row) for row in table_rows(RECORDED))


def recorded_as(hf_id: str) -> Recorded | None:
    """Give the known model that a repository holds; None where nobody looked it up."""
    folded = hf_id.casefold()
    return next((o for o in recorded_repositories() if o.repository.casefold() == folded), None)


def own_record(hf_id: str) -> ModelRecord | None:
    """Give the record that only this name finds, with its publisher or without; a line for each."""
    asked = bare_key(hf_id)
    last = {asked[-1:], asked[-1:].upper()}
    for name, record in (row for row in table_rows(OWN) if row[0][-1] in last):
        key = name.lower().replace("_", "-")
        if key.endswith(asked) and key.removesuffix(asked)[-1:] in {"", "/"}:
            return json.decode(record, type=ModelRecord)
    return None


def sourced_format(hf_id: str) -> str | None:
    """Give the format that a source says a repository is published in; None: none was found."""
    return next((row[1] for row in table_rows(FILE) if row[0] == hf_id), None)


def has_gguf(public: PublicModel) -> bool:
    """Whether it holds GGUF files, of which there are mostly several."""
    return "gguf" in f"{public.format} {public.name.lower()}"


def says_sixteen_bits(public: PublicModel) -> str | None:
    """Give the 16 bits to which its name says that it was unpacked; None where it says none."""
    said = said_in(public.name).precision
    return said if said in _SIXTEEN else None


def unpacked_name(name: str) -> str:
    """Take what says how a model is packed off the end of its name: ``Qwen3-32B-AWQ``."""
    while (found := _LAST.search(name)) and _says_packing(found[1].lower()):
        name = name[: found.start()]
    return name


@cache  # 3.2 of reports, 2.3 of questions
def packings_of(hf_id: str) -> Mapping[str, str]:
    """Find the repositories that publish a model in other formats: format -> ``publisher/name``.

    They have its name with nothing but words of packing behind it, and its sizes. The publisher's
    own goes first, then the most downloaded.
    """
    publisher, _, name = hf_id.partition("/")
    begun, found = [*beginning(name)], _seen_elsewhere(hf_id)
    own = _listed_in(begun, hf_id)
    if own is None:
        return found
    maker = publisher.partition("-")[0]
    begun += beginning(f"{maker}-{name}")
    same = [one for one in begun if one.hf_id != own.hf_id and _packs_it(one, own, maker)]
    same.sort(key=lambda one: (one.hf_id.partition("/")[0] != publisher, -(one.hf_downloads or 0)))
    for one in same:
        if (held := published_format(one)) and not _is_anothers(one, held):
            found.setdefault(held, one.hf_id)
    return found


def _seen_elsewhere(hf_id: str) -> dict[str, str]:
    """Read what a source says beside the list of who publishes a model in which format."""
    return {row[1]: row[2] for row in table_rows(ELSEWHERE) if row[0] == hf_id}


def packed_config(repository: str) -> Mapping[str, object]:
    """Give what is known of a repository's quantization_config; empty where nothing is."""
    name = repository.lower()
    known = (row[1] for row in table_rows(CONFIGS) if fnmatchcase(name, row[0].lower()))
    return json.decode(next(known, "{}"), type=dict[str, object])


def listed_as(hf_id: str) -> PublicModel | None:
    """Find a repository in the list, or a copy of that name where the original is not listed."""
    return _listed_in(beginning(hf_id.partition("/")[2]), hf_id)


def _listed_in(begun: Iterable[PublicModel], hf_id: str) -> PublicModel | None:
    key, copies = sort_key(hf_id), list[PublicModel]()
    for one in begun:
        if sort_key(one.hf_id) == key:
            return one
        if one.name == hf_id.partition("/")[2]:
            copies.append(one)
    return next((one for one in copies if not is_packed(one)), None)


@cache  # 1.17 of an advice, 3.9 of reports
def gguf_repos_of(hf_id: str) -> Sequence[str]:
    """List the GGUF repositories of a model: those the list has of it, and of copies of it."""
    own = listed_as(hf_id)
    if own is None:
        return ()
    copies = (
        one for one in every_named(own.name)
        if own.parameters_raw and one.parameters_raw == own.parameters_raw
    )  # fmt: skip
    named = (repository for one in (own, *copies) for repository in one.gguf_repos)
    return tuple(dict.fromkeys(named))


def _is_anothers(public: PublicModel, held: str) -> bool:
    """Whether MLX alone reads its files, in a format that has a name elsewhere too."""
    mlx = public.format == "mlx" or "mlx" in public.hf_id.lower()
    return mlx and not held.startswith("MLX")


def _packs_it(one: PublicModel, own: PublicModel, maker: str) -> bool:
    """Whether a repository is a model of this name and these sizes, packed."""
    if not one.num_hidden_layers or one.architecture == UNKNOWN or has_gguf(one):
        return False
    sizes = ("num_hidden_layers", "hidden_size", "vocab_size")
    pairs = ((getattr(one, size), getattr(own, size)) for size in sizes)
    if not all(a == b or None in {a, b} for a, b in pairs):
        return False
    of = bare_key(own.name)
    return bare_key(unpacked_name(one.name)) in {of, f"{maker.lower()}-{of}"}


_LAST: Final = re.compile(r"[-_]([^-_]+)$")
_PACKING: Final = frozenset(
    {"dynamic", "block", "static", "sym", "fast", "ct", "qat", "auto", "round"}
)


def _says_packing(word: str) -> bool:
    """Whether a word, or each of its parts (``quantized.w4a16``), says only how it is packed."""
    parts = word.split(".")
    return word in _PACKING or _packs(word) or (len(parts) > 1 and all(map(_says_packing, parts)))


def _packs(word: str) -> bool:
    said = said_in(word)
    named = said.precision not in PLAIN and not said.rest.strip()
    return named or _UNNAMED.fullmatch(word) is not None


_RELEASE: Final = re.compile(r"preview|a\d+(?:\.\d+)?b|\d{4}|\d+k|\d+e|v\d(?:[.-]\d)?|[bf]?f16")
"""Words behind a name that tell a release of it: active size, date, context, experts, version."""
_SIZED: Final = re.compile(r"\d+(?:\.\d+)?[bm]")
_LEAST_TAKEN: Final = 100  # downloads below which nobody means what is not named in full


def most_taken(knowledge: Knowledge, text: str) -> Sequence[ModelRecord]:
    """List the models of one family that a text names, the library's own or most downloaded first.

    What says least beside it goes first. Nothing where it names one or none, or no family.
    """
    records = [knowledge.models[name] for name in models_with(knowledge, text)]
    families = {model_words(record.family)[:1] for record in records}
    if len(records) <= 1 or families != {model_words(text)[:1]}:
        return ()
    parts = re.split(r"[\s_-]+", text.strip())
    spelled = ("".join(parts), "-".join(parts))
    tags = (default_tag(NameParts(name)) for name in spelled)
    usual = {model_words(tag.model) for tag in tags if tag}
    said = {*model_words(text)}
    beside = {
        one.name: -sum(not _marks_release(w) for w in {*model_words(one.name)} - said)
        for one in records
    }
    return sorted(records, key=lambda one: (beside[one.name], *taken(one, usual)), reverse=True)


def taken(record: ModelRecord, usual: Collection[Sequence[str]] = ()) -> tuple[bool, int]:
    """Rank a model by whether it is the library's, then by downloads."""
    public = exact(record.hf_id) if record.hf_id else None
    return model_words(record.name) in usual, (public and public.hf_downloads) or 0


def abridged(name: str, makers: Sequence[str]) -> Sequence[PublicModel]:
    """Find the repositories that a name means which leaves off a maker and marks of the release.

    Returns:
        Copies of one model, the most downloaded first, what is not packed before the rest; nothing
        where none begins so, or what does are several models.
    """
    stems = dict.fromkeys((bare_key(name), bare_key(name).replace(".", "-")))
    before = ("", *(f"{maker}-" for maker in makers))
    begun = [one for stem in stems for maker in before for one in _begun(f"{maker}{stem}")]
    found = [*(begun or _with_words(name))]
    found.sort(key=lambda one: (is_packed(one), -(one.hf_downloads or 0)))
    wide = {(one.num_hidden_layers, one.hidden_size) for one in found}
    return found if len(wide) == 1 else ()


def _with_words(name: str) -> Iterator[PublicModel]:
    """Give the repositories of just these words in any order and spelling, beside marks.

    The size has to be one of them, and a word that is no common one.
    """
    wanted = Counter(model_words(name))
    telling = max((word for word in wanted if word.isalpha()), key=len, default="")
    size = next(filter(_SIZED.fullmatch, wanted), "")
    if len(telling) < _TELLING or not size:
        return

    def meant(own: str) -> bool:
        if wanted - Counter(model_words(own)):
            return False
        rest = Counter(model_words(unpacked_name(own)))
        return not wanted - rest and all(map(_marks_release, rest - wanted))

    told = (telling, size, *filter(str.isalpha, wanted))
    yield from filter(_is_taken, having(told, meant))


def names_with(text: str, hf_id: str) -> Sequence[str]:
    """List a publisher's models whose names have all words of a text, the most downloaded first."""
    wanted, publisher = {*model_words(text)}, f"{hf_id.partition('/')[0]}/"
    found = having(filter(str.isalpha, wanted), lambda own: wanted.issubset(model_words(own)))
    theirs = [one for one in found if one.hf_id.startswith(publisher) and not is_packed(one)]
    theirs.sort(key=lambda one: -(one.hf_downloads or 0))
    return [one.name for one in filter(_is_taken, theirs)]


_LATER: Final = re.compile(r"\d\.\d|think(?:ing|er)|reasoning")  # behind a whole name
_TELLING: Final = 4


def _begun(stem: str) -> Iterator[PublicModel]:
    def meant(own: str) -> bool:
        rest = bare_key(unpacked_name(own)).removeprefix(stem)
        marks = (word for word in rest.split("-") if word and not _LATER.fullmatch(word))
        return rest[:1] in {"", "-"} and all(map(_marks_release, marks))

    yield from filter(_is_taken, going_on(stem, meant))


def _is_taken(one: PublicModel) -> bool:
    """Whether people may mean a repository that they do not name in full."""
    known = (one.hf_downloads or 0) >= _LEAST_TAKEN and one.num_hidden_layers
    return bool(known) and not is_draft(one)


def _marks_release(word: str) -> bool:
    known = words()
    plain = word in known.tunings or word in known.filler
    return plain or bool(_RELEASE.fullmatch(word) or _SIZED.fullmatch(word))


def less_publisher(knowledge: Knowledge, parts: NameParts) -> NameParts:
    """Part ``ByteDance-Seed_Seed-OSS-36B``, as packers write it, where the publisher is known."""
    publisher, _, name = parts.name.partition("_")
    named = (publisher and name) and (
        _publishes(publisher, knowledge) or exact(f"{publisher}/{said_in(name).rest.strip(' -_')}")
    )
    return replace(parts, name=name) if named else parts


def _publishes(publisher: str, knowledge: Knowledge) -> bool:
    start = f"{publisher.casefold()}/"
    return any((one.hf_id or "").casefold().startswith(start) for one in knowledge.models.values())
