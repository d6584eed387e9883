"""The words of a question: written alike, and its format, runtime, back end, cards and model."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from advisor.errors import RequestError
from advisor.knowledge import names
from advisor.knowledge.catalogue import BACKEND_OF_WORD
from advisor.knowledge.merit_scale import card_names
from advisor.knowledge.types import Knowledge
from advisor.memo import by_identity
from advisor.reading import is_read
from advisor.reading.format_patterns import why_unread
from advisor.reading.known import read_format
from advisor.reading.name_match import names_family
from advisor.reading.name_parts import SIZE
from advisor.reading.name_parts import words as name_words
from advisor.reading.public_list import find_public
from advisor.reading.sentence_cards import Read, card_in
from advisor.reading.sentence_numbers import COUNTS, GB, HOLE, read_numbers

LONGEST_NAME = 8  # words; no card or model has more
_LONGEST_CARDS = 14  # words of cards that are joined
MODEL_WAS = "|model|"  # what stands where the model was taken out
_AS_FILES = re.compile(r".*\.gguf|(?=.*\d)\w[\w.]*(?:[-_][\w.]+){2,}")
"""A word that is written as files and repositories are."""
_BESIDE_CARDS = frozenset({"gb", "gib", "g", "go", "laptop", "notebook", "mobile"})
_BITS = re.compile(r"([2-4]|8)[\s-]?bits?|(?:q|int)([48])", re.IGNORECASE)
_ENGLISH = frozenset({"full", "half"})  # words for formats that mean other things
PIECE = re.compile(r"[a-z]+|\d+(?:\.\d+)?")
_SIZE = re.compile(r"\d+(?:\.\d+)?(?:gi?b|g|go|b|bit|bpw)?")
STOP = frozenset(
    """
    a about all also am an and any anyone are as at be but by can card cards could do does for from
    get gpu gpus graphics good hello help hey hi how i if in is it just let llm load local
    locally machine me memory model models my need of ok okay on one or our out pc please possible
    question rig run running runs serve serving setup should so some start tell that the their them
    there this to try use used using vram want we what when which will with work works would you
    your possible enough fit fits big large me us was have has had got computer thanks which
    where while without than then only really quite well host hosting inference quantized quant
    quantised version format precision weights cache kv each per max maximum context window
    length tokens token size long fine-tuned finetuned best better biggest largest smartest smarter
    strongest powerful cheapest recommend recommended recommendation recommendations suggest
    suggestions decent minimum needed required requirements require requires hardware graphic buy
    buying get getting budget most any many much more there's what's whats here now currently today
    still new newest llms ai home own owner people someone thing things anything something option
    options choice handle afford build s re ll ve t m d only fastest smallest
    t/s tok/s tps colab kaggle flag flags server servers ubuntu linux windows macos cpu cpu-only
    able deploy deploying deployment platform total each nvlink
    auf mit mein meine meiner einer einem eine ein kann ich man braucht brauche brauch f\u00fcr und
    oder modell modelle karte kontext l\u00e4uft laufen welche welches welcher wie viel viele sur
    avec mon ma une pour peut je puis-je faire tourner carte mod\u00e8le modele quel quelle con en
    mi una para puedo correr modelo tarjeta cu\u00e1l cual que qu\u00e9
    """.split()  # noqa: SIM905  a table of words
)
_OF_NAMES = frozenset({"ai", "max", "large", "server", "d"})
"""Those of them that names begin or end with."""


_JOINED = frozenset({"+", "and", "plus", "&", "und", "et", "y"})
"""What stands between cards that are used together."""
_BEFORE = (STOP - COUNTS.keys() - _OF_NAMES) | _JOINED


def take_names(words: Sequence[str], knowledge: Knowledge, read: Read) -> Sequence[str]:
    """Take what names a format, a runtime, a back end, cards and a model; give what is left."""
    for name, find in _FINDERS.items():
        words = _taken(words, name, find, knowledge, read)
    return words


def _taken(
    words: Sequence[str],
    name: str,
    find: Callable[[str, Knowledge], str | None],
    knowledge: Knowledge,
    read: Read,
) -> Sequence[str]:
    """Take the longest stretch of words that names something; give what is left."""
    known = vocabulary(knowledge)[name]
    known |= _beside_models(knowledge) if name == "model" else frozenset()
    longest = _LONGEST_CARDS if name == "gpu" else LONGEST_NAME
    for size in range(min(longest, len(words)), 0, -1):
        for at in range(len(words) - size + 1):
            part = words[at : at + size]
            if not _may_name(part, known, name):
                continue
            if found := find(" ".join(part), knowledge):
                read.settings[name] = found
                hole = MODEL_WAS if name == "model" else HOLE
                return [*words[:at], hole, *words[at + size :]]
    return words


def _may_name(part: Sequence[str], known: frozenset[str], name: str) -> bool:
    """Whether every word may belong to such a name, so that asking is worth it."""
    first, last = part[0].casefold(), part[-1].casefold()
    if first in _BEFORE or last in STOP - _OF_NAMES:
        return False
    if last in _JOINED and not (name == "model" and last == "plus"):
        return False
    return all(_belongs(word.casefold(), known, name) for word in part)


def _belongs(word: str, known: frozenset[str], name: str) -> bool:
    if name == "gpu" and word in _JOINED:
        return True
    if (
        word in known
        or word.removesuffix("s") in known
        or (name == "gpu" and word in COUNTS)
        or _SIZE.fullmatch(word)
    ):
        return True
    if name == "model" and ("/" in word.strip("/") or _AS_FILES.fullmatch(word)):
        return True
    if name == "gpu" and any(map(str.isdigit, word)):
        word = word.replace("o", "0")
    pieces = PIECE.findall(word)
    return bool(pieces) and all(p in known or p in {"x", "s"} or p[0].isdigit() for p in pieces)


@by_identity
def _beside_models(knowledge: Knowledge) -> frozenset[str]:
    """Give what may stand in a name beside a model's own words: fine-tunes, tunings, formats."""
    listed = name_words()
    named = (*listed.releases, *listed.same, *listed.built_on, *listed.short)
    found = {word for name in named for word in name.split("-")}
    found |= listed.tuned | listed.filler | listed.packers | set(listed.tunings)
    return frozenset(found - STOP) | vocabulary(knowledge)["precision"]


def _model(text: str, knowledge: Knowledge) -> str | None:
    if SIZE.fullmatch(text.casefold()):
        return None
    is_path = "/" in text.strip("/") and " " not in text
    if is_path or text.endswith(".gguf") or is_read(knowledge, text):
        return text
    try:
        names.find_model(knowledge, text)
    except RequestError as error:
        several = "several models" in error.message and names_family(knowledge, text)
        return text if several or _is_listed(text) else None
    return text if names_family(knowledge, text) else None


def _is_listed(text: str) -> bool:
    try:
        return find_public(text) is not None
    except RequestError:
        return False


def _format(text: str, knowledge: Knowledge) -> str | None:
    if text.casefold() in _ENGLISH:
        return None
    try:
        read_format(knowledge, text)
    except RequestError:
        matched = _BITS.fullmatch(text)
        plain = f"INT{matched[1] or matched[2]}" if matched else None
        return text if why_unread(text) else plain
    return text


def _framework(text: str, knowledge: Knowledge) -> str | None:
    found = names.framework_called(knowledge, text)
    return found.name if found else None


def _backend(text: str, _knowledge: Knowledge) -> str | None:
    return BACKEND_OF_WORD.get(text.casefold())


_FINDERS: Mapping[str, Callable[[str, Knowledge], str | None]] = {
    "precision": _format,
    "framework": _framework,
    "backend": _backend,
    "gpu": card_in,
    "model": _model,
}
"""In this order: a format of two words may begin with the name of a framework."""


@by_identity
def vocabulary(knowledge: Knowledge) -> Mapping[str, frozenset[str]]:
    """Give the words that names of each kind are made of."""
    return {
        "framework": _words_of(knowledge.frameworks.values()),
        "backend": frozenset(BACKEND_OF_WORD),
        "gpu": _words_of(knowledge.gpus.values()) | _machine_words(knowledge) | _BESIDE_CARDS,
        "model": _words_of(knowledge.models.values()) | {"b", "m"},
        "precision": _words_of(knowledge.formats.values())
        | {"bit", "bits", "ud", "xl"}
        | name_words().unread.keys(),
    }


def _machine_words(knowledge: Knowledge) -> frozenset[str]:
    products = (name for m in card_names(knowledge).machines for name in (m.name, *m.aliases))
    found = frozenset(word for name in products for word in name.casefold().split())
    return found - (STOP - _OF_NAMES)


def _words_of(records: object) -> frozenset[str]:
    found: set[str] = set()
    for record in records:  # type: ignore[attr-defined]  # records with names
        for spelling in (record.name, *record.aliases):
            folded = spelling.casefold()
            found.update(folded.split())
            found.update(PIECE.findall(folded))
    return frozenset(found)


def is_of_name(word: str, known: frozenset[str]) -> bool:
    """Whether a word is part of a name: it has a figure, a hyphen, or stands in known names."""
    return word.casefold() in known or "-" in word or any(map(str.isdigit, word))


_BESIDE_CPU = re.compile(
    r"\b(?:cpu|processor|only|alone|with|and|of|ram|memory|no|without|an?|gpu|desktop|laptop)\b"
    r"|[\s,;()|+/-]+",
    re.IGNORECASE,
)


def processor_said(text: str) -> Mapping[str, object] | None:
    """Read a text that names a processor and its memory, and nothing else: keys of a request."""
    settings: dict[str, object] = {}
    rest = read_numbers(apart(text), settings)
    size = re.search(rf"(?<![\w.]){GB}(?!\w)", rest, re.IGNORECASE)
    if size and "ram" not in settings:
        settings["ram"] = f"{size['n']}GB"
        rest = f"{rest[: size.start()]} {rest[size.end() :]}"
    said = "cpu" in settings and settings.keys() <= {"cpu", "ram", "ram_type"}
    return settings if said and not _BESIDE_CPU.sub("", rest) else None


_COUNT_SIGNS = "\u5f20\u5361\u5757\u4e2a\u7247\u679a\u53f0"
_HAN = "\u3400-\u9fff"
_WIDE = str.maketrans(
    {
        "\uff1a": ": ",
        "\uff0c": ", ",
        "\uff08": " (",
        "\uff09": ") ",
        "\uff1b": "; ",
        "\uff1f": "? ",
        "\u3001": ", ",
    }
)
"""Signs as Chinese writes them."""
_EXL = r"(?:\s+(?:quants?|quanti[sz]ed|quanti[sz]ation|version|at|in|to|of|with|a))*\s+"
_WRITTEN = (
    *(
        (re.compile(f"{numeral}\\s*[{_COUNT_SIGNS}]\\s*(?=[A-Za-z0-9])"), f" {number}x ")
        for numeral, number in zip("\u4e24\u4e8c\u4e09\u56db\u516b", (2, 2, 3, 4, 8), strict=True)
    ),
    (re.compile(f"\u53cc[{_COUNT_SIGNS}]?\\s*(?=[A-Za-z0-9])"), " 2x "),
    (re.compile("(?<=[A-Za-z0-9])\u7684(?=[A-Za-z0-9])"), " "),
    (re.compile(r"\b([abhlv])-(?=(?:10|20|40|100|200|800)\b)", re.IGNORECASE), r"\1"),
    (
        re.compile(
            r"\b\d{3,5}\s*mhz\b(?=[\s,]+\d+\s+cores?\b)|\b\d{1,3}\s+logical\s+processors?\b",
            re.IGNORECASE,
        ),
        " ",
    ),
    (re.compile(r"\(\s*\d+(?:[.,]\d+)?\s*gi?b\s+usable\s*\)", re.IGNORECASE), " "),
    (re.compile(r"\b(m[1-5])(pro|max|ultra)\b|\b(rtx)(a\d{4})\b", re.IGNORECASE), r"\1\3 \2\4"),
    (re.compile(r"\b(max|ultra)\s+(m[1-5])\b", re.IGNORECASE), r"\2 \1"),
    (re.compile(r"(?<=[a-z]{4})(?<!ggml)(?<!exllama)(?=v\d)", re.IGNORECASE), " "),
    (
        re.compile(rf"\b(exl[23]){_EXL}(\d(?:\.\d+)?)[\s-]*(?:bpw|bits?)\b", re.IGNORECASE),
        r"\1 \2bpw",
    ),
    (re.compile(r"(?<![\w.])(\d(?:\.\d+)?)[\s-]*bits?\s+(exl[23])\b", re.IGNORECASE), r"\2 \1bpw"),
    (re.compile(r"(?<=\dbpw)\s+(?:per|/)\s*weights?\b", re.IGNORECASE), " "),
    (re.compile(r"\b((?:fp|int|bf)\d{1,2})[\s-]weights?\b", re.IGNORECASE), r"\1"),
    (re.compile(r"(?<!\w)(\d{1,2})[\s-]gpu\s+(?=\w*\d)", re.IGNORECASE), r"\1x "),
    (
        re.compile(
            r"(?<![\w.])(\d{1,2})\s+(?:gpu'?s?|(?:graphics\s+)?cards?)[\s,:]*(?:with|of|at|each)?\s*"
            r"(\d{1,3})\s?g(?:i?b|o)?(?:\s+(?:of\s+)?vram)?\s+each\b",
            re.IGNORECASE,
        ),
        r"\1x \2GB",
    ),
    (
        re.compile(r"(?<![\w.])(\d{1,2})\s+(\d{1,3})\s?gi?b\s+(?:gpu'?s|cards)\b", re.IGNORECASE),
        r"\1x \2GB",
    ),
    (re.compile(r"\b(dual|two|triple|three|quad|four)-(?=\w*\d)", re.IGNORECASE), r"\1 "),
    (re.compile(r"\b(?:intel\s+)?(?:core\s+)?i[3579]\b(?![\s-]?\d)", re.IGNORECASE), " "),
    (re.compile(rf"(?<![\w.])(\d{{1,2}})\s*[{_COUNT_SIGNS}]\s*(?=[A-Za-z0-9])"), r" \1x "),
    (re.compile("\u7b14\u8bb0\u672c(?:\u7535\u8111)?"), " laptop "),
    (
        re.compile(
            "\u662f\u5426|\u53ef\u4ee5|\u80fd\u591f|\u80fd\u4e0d\u80fd|\u8fd0\u884c|\u90e8\u7f72|\u63a8\u7406|\u8bf7\u95ee|\u9700\u8981|\u591a\u5c11|\u591a\u5927|"
            "\u5355\u5361|\u5355\u5f20|\u600e\u4e48|[\u8dd1\u7528\u5417\u80fd\u5728\u4e0a\u7684\u5462]"
        ),
        " ",
    ),
    *(
        (re.compile(chinese), f" {english} ")
        for chinese, english in {
            "\u81f3\u5f3a\u94c2\u91d1": "Xeon Platinum",
            "\u81f3\u5f3a\u91d1\u724c": "Xeon Gold",
            "\u81f3\u5f3a\u94f6\u724c": "Xeon Silver",
            "\u81f3\u5f3a": "Xeon",
            "\u9704\u9f99": "EPYC",
            "\u9510\u9f99": "Ryzen",
            "\u9177\u777f": "Core",
            "\u663e\u5361": "",
            "\u5185\u5b58": "RAM",
        }.items()
    ),
    (
        re.compile(
            r"\b(?:[lr]?(?:dimm|ecc)\s+)*(\d{1,3}\s?g(?:i?b)?)\s*[x*\u00d7]\s*(\d{1,2})\s*[\u6761\u6839](?:\s*=\s*\d+\s*[gt]b?)?",
            re.IGNORECASE,
        ),
        r"\1x\2 ",
    ),
    (
        re.compile(
            rf"\b(\d{{1,3}}\s?g(?:i?b)?)\s*[x*\u00d7]\s*(\d{{1,2}})\s*[{_COUNT_SIGNS}]",
            re.IGNORECASE,
        ),
        r"\1 x\2 ",
    ),
    (re.compile("\u663e\u5b58"), " VRAM "),
    (re.compile(f"(?<=[A-Za-z0-9])\\s*[\u52a0\u548c\u4e0e]\\s*(?=[A-Za-z0-9{_HAN}])"), " + "),
    (re.compile(f"(?<=[A-Za-z0-9])(?=[{_HAN}])|(?<=[{_HAN}])(?=[A-Za-z])"), " "),
    (
        re.compile(
            r"((?:ddr\d[\w-]*|ram|memory)\s*)\(\s*\d{1,2}\s*[x\u00d7]\s*\d{1,3}\s*gi?b\s*\)",
            re.IGNORECASE,
        ),
        r"\1",
    ),
    (re.compile(r"\(\s*a?\d+(?:\.\d+)?b\s+active[^()]{0,20}\)", re.IGNORECASE), " "),
    (re.compile(r"(?<=\w)\s*\*\s*(?=\d)|(?<=\d)\s*\*\s*(?=\w)"), "x"),
    (
        re.compile(
            r"(?<!\w)(\d{1,2}x?|two|three|four|dual)\s+"
            r"(?:used|second[\s-]?hand|refurbished|old|new|identical|separate)\s+(?=\w)",
            re.IGNORECASE,
        ),
        r"\1 ",
    ),
    (re.compile(r"[`*]+|\((?:r|tm)\)", re.IGNORECASE), " "),
    (re.compile(r"(?<=\w)\\(?=\w)"), "/"),
    (re.compile(r"\b\d+th\s+gen\b|@?\s*\b\d+(?:\.\d+)?\s*ghz\b", re.IGNORECASE), " "),
    (
        re.compile(
            r"\b\d+[\s-]*(?:cores?|threads?)\b(?!\s+gpu)(?:[\s-]*(?:cpu|processor))?", re.IGNORECASE
        ),
        " ",
    ),
    (re.compile(r"(?<![\w.])(\d{1,2}x)(?=[a-z]|\d{1,3}\s?g)", re.IGNORECASE), r"\1 "),
    (re.compile(r"(\d)\s[bB](?![\w-])"), r"\1b"),
    (re.compile(r"(\d)\s?gigs?\b", re.IGNORECASE), r"\1GB"),
    (re.compile(r"\b(\d)[\s-]?bits?\s+mlx\b", re.IGNORECASE), r"mlx \1bit"),
)


def apart(text: str) -> str:
    """Part ``2x16gb``, put ``32 b`` together, write ``12 gigs`` and ``3bit mlx`` as others do.

    What is the version of a program goes last, where it is no part of a name.
    """
    text = _EACH.sub(_of_each, text.translate(_WIDE))
    for pattern, written in _WRITTEN:
        text = pattern.sub(written, text)
    versions = [found[0] for found in _VERSION.finditer(text)]
    return " | ".join((_VERSION.sub(" ", text), *versions))


_VERSION = re.compile(
    r"(?<![\w.:/-])v?\d+\.\d+\.\d+(?:\.?(?:post|rc|dev)\d+)?(?![\w-]|\.\d)", re.IGNORECASE
)
_EACH = re.compile(
    r"(?<![\w.])(?P<all>\d{2,4})\s?gi?b\s+(?:of\s+|total\s+)*vram[\s,(]*"
    r"(?:over|across|on|from|with|in|total)?\s*(?P<n>\d{1,2})\s+(?:gpu'?s|cards)\b\)?",
    re.IGNORECASE,
)
"""Memory of several cards together: ``96GB VRAM, 4 GPUs``."""


def _of_each(said: re.Match[str]) -> str:
    each, rest = divmod(int(said["all"]), int(said["n"]) or 1)
    return said[0] if rest else f"{said['n']}x {each}GB"
