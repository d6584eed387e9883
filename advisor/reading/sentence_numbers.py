"""The numbers of a question and its processor: contexts, users, RAM, shares, images."""

from __future__ import annotations

import re
from collections.abc import Mapping, MutableMapping, Sequence

from advisor.errors import RequestError
from advisor.files import table_rows
from advisor.reading.name_parts import params_around
from advisor.reading.ram import PI, is_cpu, read_ram
from advisor.units import UnitError, parse_whole

HOLE = "|"
"""What stands where something was taken out."""
TOLD = "~"
"""What stands before and within words that are no name and are only told."""
_LONGEST_NAME = 8
COUNTS = {
    "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "eight": 8, "ten": 10, "dual": 2,
    "twin": 2, "triple": 3, "quad": 4, "both": 2, "a": 1, "an": 1, "one": 1, "single": 1, "my": 1,
}  # fmt: skip
_GROUPED = re.compile(r"\d{1,3}(?:[. \u00a0\u202f]\d{3})+")
"""A whole number as it is written in Europe: ``128.000``, ``32 768``."""
_PART = re.compile(r"\{([A-Z_]+)\}")
_Said = tuple[str, str, Mapping[str, str]]


def _said() -> tuple[Sequence[_Said], Mapping[str, str]]:
    """Read how settings are said, and the parts that the expressions there are made of."""
    parts, rows = {"COUNT": rf"(?P<n>\d+|{'|'.join(COUNTS)})"}, list[_Said]()
    for name, pattern, *flags in table_rows("said_settings.tsv"):
        whole = _PART.sub(lambda part: parts[part[1]], pattern)
        if name.startswith("="):
            parts[name[1:]] = whole
        else:
            stands_for = dict(flag.split("=") for flag in "".join(flags).split())
            rows.append((name, whole, stands_for))
    return rows, parts


_SAID, _PARTS = _said()
_WISHED = ("limit", "wish")
"""What is no setting of a request, but of the reverse questions."""
GB = _PARTS["GB"]
_CPU = re.compile(
    r"\b(?:(?:2\s*x|dual|two)\s+)?(?:(?:amd|intel)\s+)?(?:(?:ryzen|threadripper|epyc|xeon|core\s+(?:ultra|i[3579]))\b"
    rf"|i[3579][\s-]?\d{{4,5}}|\d{{4,5}}(?:x3d|[xkg]|kf|ks|wx|ge)\b|{PI})",
    re.IGNORECASE,
)
"""How a processor begins; whether it is one its list says, which is read only then."""
_NO_CPU = re.compile(
    r"\b(?:(?:amd\s+)?ryzen\s+(?:[3579]\s+)?(?:pro\s+)?\d{4}[a-z]{0,2}(?:3d)?"
    r"|(?:intel\s+)?(?:core\s+)?i[3579][\s-]?\d{4,5}\w{0,2}|(?:intel\s+)?core\s+ultra\s+\d\s+\d{3}\w*)\b",
    re.IGNORECASE,
)
"""Written as a processor, and in no list."""
_WORDS = {"8-bit": "q8", "8bit": "q8", "4-bit": "q4", "4bit": "q4", "dp": "data"}
_WORDS.update({bits: f"exl-q{bits}" for bits in "468"})
"""How a value is said otherwise; bits alone are ExLlama's, of keys and of values."""


def read_numbers(text: str, settings: MutableMapping[str, object]) -> str:
    """Take the processor, then the numbers that have a meaning, out of a text; the first of each.

    Args:
        text: The question.
        settings: Takes the keys of a request that are found.

    Returns:
        The text with holes where they stood.
    """
    text = _without_cpu(text, settings)
    for name, pattern, _ in _SAID:
        is_taken = name in settings or name in _WISHED
        matched = None if is_taken else re.search(pattern, text, re.IGNORECASE)
        value = _value(name, matched.groupdict()) if matched else None
        if matched and value is not None:
            settings[name] = value
            text = f"{text[: matched.start()]} {HOLE} {text[matched.end() :]}"
    return text


def counted(word: str) -> int:
    """How many a word says there are; 0 for a word that says none."""
    glued = re.fullmatch(r"(\d{1,2})x", word, re.IGNORECASE)
    return int(glued[1]) if glued else COUNTS.get(word.casefold(), 0)


_RANK = r"tp|pp|(?:tensor|pipeline)[-_]parallel(?=[-_]size)"
_RANKS = re.compile(
    rf"(?<!\w)-{{0,2}}(?P<a>{_RANK})(?:[\s_-]?size)?\s?[=:]?\s?(?P<n>\d{{1,2}})(?:(?:[\s,/+&-]|and)*"
    rf"(?P<b>{_RANK})(?:[\s_-]?size)?\s?[=:]?\s?(?P<m>\d{{1,2}}))?\b",
    re.IGNORECASE,
)
"""Cards of a tensor split and of a pipeline: ``TP8 PP2``, ``tensor-parallel-size 4``."""


def read_ranks(text: str, settings: MutableMapping[str, object]) -> str:
    """Take how many cards split tensors, and how many form a pipeline, out of a question."""
    said = _RANKS.search(text)
    if said is None:
        return text
    ranks = {said["a"][0].casefold(): int(said["n"])}
    ranks |= {said["b"][0].casefold(): int(said["m"])} if said["b"] else {}
    tensor, pipeline = ranks.get("t", 1), ranks.get("p", 1)
    settings["gpus"] = tensor * pipeline
    if pipeline > 1:
        settings["split"] = "layer" if tensor == 1 else "tensor"
    if tensor > 1 and pipeline > 1:
        settings["stages"] = pipeline
    return f"{text[: said.start()]} {HOLE} {text[said.end() :]}"


def read_limits(text: str, wanted: MutableMapping[str, str]) -> str:
    """Take a speed and a price that are wished for out of a question, see ``read_wishes``."""
    return _flags(text, "limit", wanted)


def read_wishes(text: str, wanted: MutableMapping[str, str]) -> str:
    """Take what is wished of models out of a text: their sizes and what they read.

    Args:
        text: The words that are no name.
        wanted: Takes flags of ``models-for`` and ``gpus-for``, with underscores.

    Returns:
        The text with holes where they stood.
    """
    text = _flags(text, "wish", wanted)
    size = re.search(r"(?<![\w.:-])(\d+(?:\.\d+)?[bm])(?![\w-])", text, re.IGNORECASE)
    if size and wanted.keys().isdisjoint({"min_params", "max_params"}):
        wanted["min_params"], wanted["max_params"] = params_around(size[1])
        text = f"{text[: size.start()]} {HOLE} {text[size.end() :]}"
    return text


def _flags(text: str, what: str, wanted: MutableMapping[str, str]) -> str:
    for name, pattern, flags in _SAID:
        matched = re.search(pattern, text, re.IGNORECASE) if name == what else None
        if matched and wanted.keys().isdisjoint(flags):
            said = matched.groupdict()
            wanted.update((flag, form.format_map(said)) for flag, form in flags.items())
            text = f"{text[: matched.start()]} {HOLE} {text[matched.end() :]}"
    return text


def _without_cpu(text: str, settings: MutableMapping[str, object]) -> str:
    """Take out the processor: what is known of any stretch of words that begins with its brand."""
    for begin in _CPU.finditer(text):
        named = text[begin.start() :]
        clause = named.partition(",")[0]
        words = (clause if is_cpu(clause.strip()) else named).split()[:_LONGEST_NAME]
        for size in range(len(words), 0, -1):
            said = " ".join(words[:size]).strip(",;.?!()- ")
            if is_cpu(said):
                settings["cpu"] = said
                behind = text[begin.start() :].split(maxsplit=size)[size:]
                return f"{text[: begin.start()]} {HOLE} {' '.join(behind)}"
    return _NO_CPU.sub(lambda said: f" {TOLD}{TOLD.join(said[0].split())} ", text)


def _value(name: str, found: Mapping[str, str | None]) -> object:
    """Give what a pattern found as the value of a key; None for a number that is not whole."""
    if said := found.get("r"):
        return said if _is_ram(said) else None
    if found.get("on") or found.get("a"):
        return "on" if found.get("on") else "all"
    if size := found.get("s"):
        return size
    if share := found.get("f"):
        return float(share)
    if percent := found.get("p"):
        return int(percent) / 100
    if word := found.get("w"):
        return _WORDS.get(word.casefold(), word.casefold())
    number = found.get("n") or found.get("m") or "1"
    if number.casefold() in COUNTS:
        return COUNTS[number.casefold()]
    if _GROUPED.fullmatch(number) and not found.get("k"):
        number = re.sub(r"\D", "", number)
    try:
        return f"{number}GB" if name == "ram" else parse_whole(number + (found.get("k") or "")[:1])
    except UnitError:
        return None


def _is_ram(text: str) -> bool:
    try:
        read_ram(text)
    except (RequestError, UnitError):
        return False
    return True
