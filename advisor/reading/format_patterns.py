"""Weight formats by their form in names: GGUF types, bits per weight, words; also taken out."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from typing import Final

from msgspec import Struct

from advisor.errors import RequestError
from advisor.files import table_rows
from advisor.knowledge.index import model_words, plain_key, spellings
from advisor.knowledge.names import find_format_candidates
from advisor.knowledge.types import Format, Knowledge
from advisor.reading.name_parts import NameParts, words
from advisor.units import GB

_Found = tuple[tuple[Format, ...], str, bool]
PLAIN: Final = frozenset({"", "BF16", "FP16", "F32"})
"""What a name says of weights that are not packed."""
GGUF_TYPE: Final = re.compile(
    r"(?<![a-z0-9])(?P<made>(?:ud|smol)[-_ ]?)?(?P<type>(?:iq|tq|q)[1-8]"
    r"(?:[-_ ]?(?:k[lst]?s?|[01](?!\d)|nl|xxs|xs|s|m)(?:[-_ ]?(?:xxl|xl|l|m|s|xs|xxs|p))?)?)"
    r"(?:_r(?:4|8|16))?(?![a-z0-9])"
)
"""A type of llama-quantize, behind ``UD-`` or ``smol-`` where it was mixed layer by layer; ``_R4``
where a fork interleaved its rows."""
_OF_TENSORS: Final = re.compile(
    r"(?<![a-z0-9])(?:w\d|[a-z]{2,})i?q[1-8](?:_?[0-9kmsx]+)?(?![a-z0-9])"
)
"""Types of single kinds of tensors behind that of a mix: ``AProjQ8``, ``w2Q2K``."""
BITS_PER_WEIGHT: Final = re.compile(
    r"(?<![a-z0-9.])(?:(?P<maker>exl[23]|gguf|mlx)[-_ ]*)?(?:sc[-_ ])?(?P<bits>\d(?:\.\d{1,6})?)"
    r"[-_ ]?(?:bpw|bits?[-_ /]?(?:per[-_ ])?weight)(?:[-_ ]*(?:h|hb|head|ng|v)\d)*"
    r"(?:[-_ (]*(?P<after>exl[23])\)?)?(?![a-z0-9])"
)
"""Behind the bits may stand those of other tensors: ``4.0bpw_H6``, ``3.05bpw_h5_ng5``."""
BRANCH: Final = re.compile(r"^(\d)_(\d{1,2})$")
"""The branch of a repository of EXL2 or EXL3 files: ``3_0``, ``4_25``."""
_TURNED: Final = re.compile(r"^([2-8])[-_ ]?q$")
_BITS_OF: Final = re.compile(
    r"(?<![a-z0-9])(exl[23]|mlx(?=\D+\d\.))(?:[-_ @(]|at |in )+(\d(?:\.\d+)?)[-_ ]?bits?(?![a-z])"
    r"\)?"
)
_BITS_BEFORE: Final = re.compile(
    r"(?<![a-z0-9.])(\d(?:\.\d+)?)[-_ ]?bits?[-_ (]+(exl[23])(?![a-z0-9])\)?"
)
_BITS_ALONE: Final = re.compile(r"(?<![a-z0-9])(exl[23])[-_ ]+(\d\.\d{1,2})(?![\w.]|[-_ ]?b)")
"""Bits beside a format of any number of them: ``exl3 at 3.5 bits``, ``2.5 bit EXL2``,
``exl2-3.0``."""
_ROWS: Final = re.compile(r"_r(?:4|8|16)$")  # of ik_llama.cpp: rows lie interleaved
_LEAST_BITS, _MOST_BITS = 1.0, 8.5
_FAMILIES: Final = {"gguf": ("gguf-k", "gguf-i")}
"""The families that makers of GGUF files choose from where they tell only the bits."""
_BITS_UNSAID: Final = frozenset({"exl2", "exl3"})
"""Formats of any number of bits, which are published in several."""
_USUAL_BITS: Final = 4.0
_GROUP: Final = re.compile(
    r"[-_ ]?(?<![a-z])(?:g|gs|group(?:[-_ ]?size)?[-_ =]*)\d{2,3}(?![a-z0-9])"
    r"|(?:[-_ ]|(?<=bit))\d{2,3}gs?(?![a-z0-9])|(?<=\d)[-_](?:fp|bf)16$"
)
"""Of a format: how many weights share a scale, or the type of what is not packed (``oQ8-fp16``)."""
_LONGEST: Final = 100


def patterned(knowledge: Knowledge, text: str) -> _Found | None:
    """Find the formats that a text stands for by its form.

    With what their size rests on, and whether it is a maker's own mix of types.

    Raises:
        RequestError: It is one that no runtime here reads.
    """
    folded = _TURNED.sub(r"gguf q\1", BRANCH.sub(r"\1.\2bpw", text.strip().casefold()))
    folded = _with_bpw(folded)
    if len(folded) > _LONGEST:
        return None
    if unread := why_unread(text):
        raise unread
    if near := _near(knowledge.formats).get(plain_key(folded)):
        return tuple(knowledge.formats[name] for name in near), _MIX, True
    if (found := GGUF_TYPE.fullmatch(folded)) and found["made"]:
        return _under(knowledge, found["type"])
    if found := BITS_PER_WEIGHT.fullmatch(folded):
        maker = found["maker"] or found["after"] or "exl"
        return _by_bits(knowledge, maker, float(found["bits"]))
    if folded in _BITS_UNSAID:
        usual = _by_bits(knowledge, folded, _USUAL_BITS)
        return usual and (usual[0], _UNSAID, False)
    if folded in _GGUF_ALONE:
        return find_format_candidates(knowledge, _USUAL_TYPE), _TYPE_UNSAID, False
    if (found := _MEAN.fullmatch(folded)) and "." in found[1]:
        return _by_bits(knowledge, "gguf", float(found[1]))
    ungrouped = _ROWS.sub("", _GROUP.sub("", folded)).strip(" -_")
    if ungrouped not in {folded, ""}:
        return _under(knowledge, ungrouped)
    return _beside(knowledge, folded)


def _with_bpw(folded: str) -> str:
    told = _BITS_ALONE.sub(r"\1 \2bpw", _BITS_OF.sub(r"\1 \2bpw", folded))
    return _BITS_BEFORE.sub(r"\2 \1bpw", told)


_GGUF_ALONE: Final = frozenset({"gguf", "ggml"})
_NO_BITS: Final = _BITS_UNSAID | _GGUF_ALONE | {"gptq", "awq", "mlx"}
"""Words for formats that come in several sizes."""
_USUAL_TYPE: Final = "Q4_K_M"
_TYPE_UNSAID: Final = f", since nothing tells its type; {_USUAL_TYPE} is usual"
_MEAN: Final = re.compile(r"(?:(?:unsloth|dynamic|ud)[-_ ])*(\d(?:\.\d{1,3})?)[-_ ]?bits?")
"""Over all tensors, as makers of mixed files tell it, GGUF where there is a point: ``1.58-bit``."""
_CLASS: Final = re.compile(r"(?<=_k)[\s_-]*(small|medium|large)\b")
_REMARK: Final = re.compile(
    r"\s*\([^()]*\)|^\d\.\d+[-_ ]?bits?[-_ ](?=i?q\d)|\b(?:dynamic|ud)[-_ ]v?2(?:\.0)?\b"
    r"|^mostly[\s_]"
)
_BITS_BEHIND: Final = re.compile(r"[\s,(/-]+\d(?:\.\d+)?[-_ ]?(?:bpw|bits?)\)?$")
"""Behind a type, as llama.cpp prints it too: ``mostly Q8_0``, ``IQ3_XXS - 3.0625 bpw``."""
_IN_BRACKETS: Final = re.compile(r"(?:quant(?:i[sz]ed)?|\d[-_ ]?bits?|int\d)\s*\(([^()]+)\)")
_SAYS_NOTHING: Final = frozenset(
    """ammo by default dynamic false format from imat modelopt ollama only precision qat quant
    quants quantized quark torch true via weight weights with""".split()  # noqa: SIM905  a table of words
)
_USUAL_OF_BITS: Final = {
    "Q2": "Q2_K", "Q3": "Q3_K_M", "Q4": "Q4_K_M", "Q5": "Q5_K_M", "Q6": "Q6_K", "Q8": "Q8_0",
}  # fmt: skip
"""Of a GGUF type that tells its bits alone: ``gguf q4``."""


def _beside(knowledge: Knowledge, folded: str) -> _Found | None:
    """Find a format beside words that say nothing of it: ``Q4_K_M (GGUF)``, ``NVFP4 (unsloth)``."""
    inner = _IN_BRACKETS.sub(r"\1", folded)
    spelled = _CLASS.sub(lambda found: f"_{found[1][0]}", _REMARK.sub("", inner) or inner)
    of_type = GGUF_TYPE.search(spelled)
    said, known = said_in(_BITS_BEHIND.sub("", spelled) if of_type else spelled), words()
    left = {*_parts(said.rest)} - known.filler - known.packers - _SAYS_NOTHING
    if left or plain_key(said.precision) in {"", plain_key(folded)}:
        return None
    ggml = not _GGUF_ALONE.isdisjoint(_parts(said.rest))
    types = said.precision.replace("INT", "Q") if ggml else said.precision
    named = _USUAL_OF_BITS.get(types.upper(), said.precision)
    try:
        return find_format_candidates(knowledge, named), "", False
    except RequestError:
        return patterned(knowledge, named)


def _under(knowledge: Knowledge, inner: str) -> _Found | None:
    """Read what stands behind a maker's prefix, or before a group size."""
    try:
        return find_format_candidates(knowledge, inner), _MIX, True
    except RequestError:
        found = patterned(knowledge, inner)
    return (found[0], _MIX, True) if found else None


_MIX: Final = "; the file itself may be up to a tenth smaller or larger"
_NEXT: Final = ", the next size that is listed"
_UNSAID: Final = f", since nothing tells its bits per weight; {_USUAL_BITS:g} are usual"


def _by_bits(knowledge: Knowledge, maker: str, bits: float) -> _Found | None:
    """Take the formats of as many bits per weight, or the next larger listed ones."""
    if not _LEAST_BITS <= bits <= _MOST_BITS:
        return None
    nearest: dict[str, Format] = {}
    for one in knowledge.formats.values():
        if (
            one.family.startswith(_FAMILIES.get(maker, maker))
            and one.bits_per_weight
            and one.bits_per_weight >= bits
        ):
            kept = maker if maker == "gguf" else one.family
            best = nearest.get(kept)
            if best is None or one.bits_per_weight < (best.bits_per_weight or 0):
                nearest[kept] = one
    if not nearest:
        return None
    exact = all(one.bits_per_weight == bits for one in nearest.values())
    return tuple(nearest.values()), "" if exact else _NEXT, False


def _near(formats: Mapping[str, Format]) -> Mapping[str, Sequence[str]]:
    """Key the mixes that are sized as a listed format."""
    keys: dict[str, list[str]] = {}
    for one in formats.values():
        for spelling in one.near:
            keys.setdefault(plain_key(spelling), []).append(one.name)
    return keys


# ---- the format within the name of a repository or file


_BITS: Final = re.compile(r"(\d(?:\.\d+)?)[\s-]*(?:bits?|bpw)", re.IGNORECASE)
_PACKED_BY: Final = re.compile(r"EXL[23]|MLX")


def bits_of_family(precision: str, held: str) -> str:
    """Read bits beside the family that a name says, ``2bit`` of ``...-exl2``, and the reverse."""
    bits, family = _BITS.fullmatch(precision.strip()), _PACKED_BY.match(held)
    if bits and family:
        return f"{family[0]} {bits[1]}{'-bit' if family[0] == 'MLX' else 'bpw'}"
    family_said = precision.strip().casefold()
    if not held or family_said not in _NO_BITS:
        return precision
    if held.casefold().startswith(family_said):
        return held
    both = said_in(f"{family_said} {held}")
    return both.precision if _GGUF_ALONE.issuperset(_parts(both.rest)) else precision


def in_words_of(said: str, runs: Collection[str]) -> str:
    """Give a stated precision as its own kind of file to a runtime that ``runs`` those formats."""
    folded = said.strip().casefold()
    if GGUF_TYPE.fullmatch(folded):
        bits = "".join(filter(str.isdigit, said))[:1]
        return next((one for one in runs if one == f"MLX {bits}-bit"), said)
    if any(one.startswith("EXL") for one in runs) and (mean := _MEAN.fullmatch(folded)):
        listed = any(one.endswith(f" {mean[1]}.0bpw") for one in runs)
        return said if listed else f"{mean[1]}bpw"
    if own := next((one for one in runs if plain_key(one) == f"{plain_key(folded)}modelopt"), ""):
        return own
    told = BITS_PER_WEIGHT.fullmatch(folded)
    if told is None or told["maker"] or told["after"]:
        return said
    maker = "gguf" if _USUAL_TYPE in runs else "mlx" if "MLX 4-bit" in runs else ""
    return f"{maker} {said}".strip()


class FormatSaid(Struct, frozen=True):
    """What a name says of the format of the weights."""

    precision: str
    """A word that ``read_format`` knows; empty where the name leaves it open."""
    rest: str
    """The name without it, in lower case."""


_WORD: Final = r"(?<![a-z0-9])(?:{})(?![a-z0-9])"
_PATTERNS: Final = tuple((_WORD.format(spelled), name) for spelled, name in spellings("format"))
_ANY: Final = _WORD.format("|".join(spelled for spelled, _ in spellings("format")))
"""Compiled when the first name is read: a plain start reads none."""


def said_in(name: str, *, mlx: bool = False) -> FormatSaid:
    """Take the format out of a name.

    Args:
        name: Of a model, repository or file, publisher left out.
        mlx: Whether its publisher packs for MLX, so that ``4bit`` is MLX's.
    """
    folded = _with_bpw(name.casefold())
    mlx = mlx or "mlx" in _parts(folded)
    if mlx and (found := re.search(r"mxfp4(?:[-_ ]?q8)?", folded)):
        return FormatSaid("MLX MXFP4", _without(folded, found))
    if found := words().unread_called.search(folded):
        return FormatSaid(found[0].upper(), _without(folded, found))
    if found := BITS_PER_WEIGHT.search(folded):
        maker = found["maker"] or found["after"] or _maker(folded)
        rest = re.sub(r"(?<![a-z0-9])exl[23](?![a-z0-9])", " ", _without(folded, found))
        return FormatSaid(f"{maker} {found['bits']}bpw".strip(), rest)
    if found := GGUF_TYPE.search(folded):
        again = re.compile(rf"(?<![a-z0-9]){re.escape(found[0])}(?![a-z0-9])")
        rest = _OF_TENSORS.sub(" ", again.sub(" ", _without(folded, found)))
        return FormatSaid(found[0].replace(" ", "_"), rest)
    for pattern, meant in _PATTERNS if re.search(_ANY, folded) else ():
        if found := re.search(pattern, folded):
            number = next((group for group in found.groups() if group and group.isdigit()), "")
            rest = _without(folded, found)
            return FormatSaid(_numbered(meant, number, mlx=mlx), rest)
    return FormatSaid("", folded)


def why_unread(text: str) -> RequestError | None:
    """Say who reads a format that no runtime here does, and what is nearest; None: it is none."""
    found = words().unread_called.fullmatch(text.strip().casefold())
    if found is None:
        return None
    named, why, *usual = words().unread[found["word"]]
    named = named.format(bits=found["bits"] or "".join(usual) or 4)
    hint = f"The nearest is --precision '{named}'."
    error = RequestError(f"{text.strip()} cannot be sized: {why}", hint=hint)
    return error.answered(f"What follows is of {named}, the nearest.", precision=named)


def _maker(folded: str) -> str:
    return next((word for word in _parts(folded) if word in {"exl2", "exl3", "gguf"}), "")


def _parts(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", text)


def _numbered(meant: str, number: str, *, mlx: bool) -> str:
    if meant == "INTN" and mlx:
        return f"MLX {number}-bit"
    return meant.replace("INTN", f"INT{number}").replace("N-bit", f"{number}-bit")


def _without(text: str, found: re.Match[str]) -> str:
    return f"{text[: found.start()]} {text[found.end() :]}"


FILE: Final = "ollama_tags.tsv"
_RELEASE: Final = re.compile(r"v\d+(?:\.\d+)*")
"""Behind a size: ``7b-instruct-v1.1`` has the size of ``7b``."""
_TUNED: Final = frozenset(
    {"instruct", "chat", "it", "text", "base", "latest", "coding", "mtp", "qat"}
)


class Tag(Struct, frozen=True):
    """One tag of the library."""

    name: str
    """``llama3.2:3b``"""
    model: str
    """The model it holds, as a name that is read."""
    precision: str
    """Its format."""
    listed_bytes: float | None = None
    """Its file, where that is clearly larger than the format gives."""


class _Library(Struct, frozen=True):
    """The tags of the library, as they are looked for."""

    families: Mapping[str, Mapping[str, Tag]]
    """By name of the family and by its letters alone (``deepseekr1``), the default tag first."""
    models: Sequence[Tag]
    """Tags of models themselves: a family whose words its model lacks is a fine-tune."""
    holding: Mapping[tuple[str, str], Tag]  # by model and format


@cache  # 1.26 of an advice for Ollama
def _library() -> _Library:
    found: dict[str, dict[str, Tag]] = {}
    for family, tag, model, precision, *listed in table_rows(FILE):
        size = float(listed[0]) * GB if listed else None
        found.setdefault(family, {})[tag] = Tag(f"{family}:{tag}", model, precision, size)
    tags = [tag for family in found.values() for tag in family.values()]
    own = [tag for tag in tags if _words(tag.name.partition(":")[0]) <= _words(tag.model)]
    holding = {(tag.model.casefold(), tag.precision): tag for tag in reversed(own)}
    alike = {plain_key(family): found[family] for family in reversed(found)}
    return _Library({**alike, **found}, own, holding)


def _words(name: str) -> frozenset[str]:
    return frozenset(re.findall(r"[a-z]+|\d+(?:\.[1-9])*", name.casefold()))


def tag_of(model: str, names: Iterable[str]) -> Tag | None:
    """Give the tag that holds a model in a format of these names, ``qwen2.5:7b``; None: none is."""
    found = (_library().holding.get((model.casefold(), name)) for name in names)
    return next(filter(None, found), None)


def tag_named(parts: NameParts) -> Tag | None:
    """Find a tag that is written out; ``qwen2.5:14b-instruct-q5_K_M`` holds ``qwen2.5:14b``."""
    if not parts.tag:
        return None
    left = re.findall(r"[a-z0-9.]+", said_in(parts.tag).rest)
    told = [word for word in left if word not in _TUNED]
    families, name = _library().families, parts.name.casefold().strip()
    family, size = families.get(name) or families.get(plain_key(name), {}), "-".join(told)
    plain = "-".join(word for word in told if not _RELEASE.fullmatch(word))
    found = (family.get(one) for one in (parts.tag.casefold(), size, plain))
    return next(filter(None, found), None) if size else default_tag(parts)


def default_tag(parts: NameParts) -> Tag | None:
    """Find the tag that a bare name stands for."""
    name = parts.name.casefold().strip()
    family = _library().families.get(name, {})
    tag = next(iter(family.values()), None)
    return tag if tag and tag.name.partition(":")[0] == name else None


def library_format(model: str) -> str | None:
    """Give the format in which the library holds a model, by the words of its name."""
    asked = _told(model)
    return next((tag.precision for tag in _library().models if _told(tag.model) == asked), None)


def _told(name: str) -> Sequence[str]:
    return [w for w in model_words(name.rpartition("/")[2]) if w not in {*_TUNED, "meta"}]
