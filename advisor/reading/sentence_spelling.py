"""The words of a question, written alike: counts, sizes and signs in the forms that others use."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from advisor.files import table_rows
from advisor.knowledge.index import in_latin
from advisor.reading.near import in_english
from advisor.reading.sentence_numbers import COUNTS, TOLD

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
_FLAGS = re.compile(
    r"(?<!\w)-{1,2}(?:ts|tensor-split|(?:gpu[-_])?split)[\s=]+\d[\d.,/]*", re.IGNORECASE
)
_OLD = r"(?:[^\s,.;?!]+\s+){0,4}?[^\s,.;?!]*\d[^\s,;?!]*"
_OLD += r"(?:\s+(?:ti|super|xtx?|gre|d|\d{1,3}\s?gb?|laptop|mobile)(?!\w))*"
_CHANGED = r"(?:upgrad|switch|swapp?|mov|chang|migrat|replac)(?:e|es|ed|ing)?|went|going|go|coming"
_BY = r"(?:to|with|by|for\s+(?:an?|one|two|my))"
_REPLACED = re.compile(
    rf"\b(?P<a>(?:{_CHANGED})\s+(?:over\s+)?)(?P<x>from\s+{_OLD})\s+(?=to\s)"
    rf"|\b(?P<b>(?:{_CHANGED})\s+)(?P<y>(?:my|the|our|an?)\s+(?:old\s+)?{_OLD})\s+(?={_BY}\s)"
    rf"|\b(?P<c>(?:upgrad|swapp?|replac)(?:e|es|ed|ing)?\s+)(?P<z>{_OLD})\s+(?={_BY}\s)",
    re.IGNORECASE,
)
"""What was replaced by something else: ``upgraded from a 3080 Ti to a 3090``."""
_INSTEAD = re.compile(
    rf"\b(?:(?:instead\s+of|rather\s+than|previously|formerly|sold|coming\s+from|upgrad\w+\s+from|up\s+from)\s+"
    rf"(?:my\s+|the\s+|an?\s+)?(?:old\s+)?){_OLD}",
    re.IGNORECASE,
)


def _summed(said: re.Match[str]) -> str:
    """Join the cards of a list under its heading: ``GPU: RTX 4090, RTX 3090 Ti``."""
    return re.sub(r"\s*[,/&]\s*", " + ", said[0])


def _told(said: str) -> str:
    """Write words as one that names nothing and is told as left out."""
    return f" {TOLD}{TOLD.join(said.split())} "


_Written = tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]]
_MADE: Mapping[str, Callable[[re.Match[str]], str]] = {
    "{left out}": lambda said: _told(said[0]),
    "{joined}": _summed,
    "{in GB}": lambda said: f"{max(1, round(int(said[1]) / 1024 + 0.2))}GB",
    "{counted}": lambda said: f" {COUNTS.get(said[1].casefold(), said[1])}x | ",
}
"""What ``spellings.tsv`` has no letters for."""


def _spelling(pattern: str, written: str = "") -> _Written:
    return re.compile(pattern, re.IGNORECASE), _MADE.get(written, written.replace("_", " "))


_WRITTEN: Sequence[_Written] = (
    (
        _REPLACED,
        lambda said: f"{said[1] or said[3] or said[5]} {_told(said[2] or said[4] or said[6])} ",
    ),
    (_INSTEAD, lambda said: _told(said[0])),
    (_FLAGS, lambda said: _told(said[0].strip(",./").replace(",", "/"))),
    *(_spelling(*row) for row in table_rows("spellings.tsv")),
)


def as_told(word: str) -> str:
    """Give words that were written as one as they were said."""
    return word.strip(TOLD).replace(TOLD, " ")


def apart(text: str) -> str:
    """Part ``2x16gb``, put ``32 b`` together, write ``12 gigs`` and ``3bit mlx`` as others do.

    What is the version of a program goes last, where it is no part of a name.
    """
    text = in_english(in_latin(text.translate(_WIDE)))
    text = _EACH.sub(_of_each, text)
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
