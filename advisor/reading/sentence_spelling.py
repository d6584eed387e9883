"""The words of a question, written alike: counts, sizes and signs in the forms that others use."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache

from advisor.files import table_rows
from advisor.reading.sentence_numbers import COUNTS, TOLD

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
_FILES = re.compile(
    r"\b(?:bigger|larger|smaller|more|less|over|under)\s+than\s+\d+(?:\.\d+)?\s?g(?:i?b)?\b"
    r"(?!\s*(?:of\s+)?v?ram)",
    re.IGNORECASE,
)
"""How large files are, which names no card: ``bigger than 16g``."""
_STORED = re.compile(
    r"[~\u2248]?(?<![\w.])\d+(?:\.\d+)?\s?[gt]i?b?\s+(?:of\s+)?(?:ssd|nvme|hdd|m\.2|disks?|storage|drives?|swap)\b"
    r"|[~\u2248]\s?\d+(?:\.\d+)?\s?gi?b\b(?!\s*(?:of\s+)?v?ram)"
    r"|(?<![\w.])\d+(?:\.\d+)?\s?gi?b\s+(?:of\s+)?(?=(?:[\w.-]+\s+)?(?:weights|files?|download)\b)",
    re.IGNORECASE,
)
"""How large a disk, a file or all weights are: ``256 GB SSD``, ``26GB mixtral weights``."""
_SERIES = r"(?:(?:nvidia|amd|intel)\s+)?(?:geforce\s+|radeon\s+)?(?:rtx|gtx|rx|arc|tesla)\s*"
_SERIES += r"\w?\d{2,4}(?:\s?(?:ti|super|xtx?))*(?!\w)"
"""A card with its series before it."""


def _summed(said: re.Match[str]) -> str:
    """Join the cards of a list under its heading: ``GPU: RTX 4090, RTX 3090 Ti``."""
    return re.sub(r"\s*[,/&]\s*", " + ", said[0])


_WRITTEN: Sequence[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]]] = (
    (
        _REPLACED,
        lambda said: f"{said[1] or said[3] or said[5]} {_told(said[2] or said[4] or said[6])} ",
    ),
    (_INSTEAD, lambda said: _told(said[0])),
    (_FLAGS, lambda said: _told(said[0].strip(",./").replace(",", "/"))),
    (
        re.compile(
            r"\b(koboldcpp|llama\.cpp|ollama|vllm|sglang|exllamav[23]|lmdeploy|lm-?studio|mlx-lm)"
            r"[-=_]+v?(\d+\.\d+[\w.]*)",
            re.IGNORECASE,
        ),
        r"\1 | \2",
    ),
    (re.compile(r"\bintel/(?=vllm|llm-scaler)", re.IGNORECASE), ""),
    (
        re.compile(
            r"\bunsloth(?:['\u2019]?s)?\s+(?=(?:dynamic|ud|gguf|quant|i?q\d|\d))", re.IGNORECASE
        ),
        "",
    ),
    (
        re.compile(
            r"(?<![\w.])(\d+(?:\.\d+)?)\s?tb(?=\s+(?:of\s+)?(?:system\s+)?(?:ram|memory|ddr))",
            re.IGNORECASE,
        ),
        lambda said: f"{1024 * float(said[1]):g}GB",
    ),
    (re.compile(r"\bcore\s+(\d)\s+ultra\s+(?=\d{3})", re.IGNORECASE), r"Core Ultra \1 "),
    (_FILES, lambda said: _told(said[0])),
    (
        re.compile(
            r"\b(?:dual|two|2x?)\s+(?:(?:amd|nvidia|intel)\s+)?(?:gpus?|cards?)[\s:,(]+"
            r"(?=\w[^.;]{2,40}?\s(?:and|\+)\s)",
            re.IGNORECASE,
        ),
        " ",
    ),
    (_STORED, lambda said: _told(said[0])),
    (
        re.compile(
            r"\b(?:win(?:dows)?|ubuntu|debian|fedora|(?:linux\s?)?mint|rhel|rocky|centos|macos)(?:\s+linux)?\s*\d{1,2}(?:\.\d+)*(?![\w.])"
            r"|\b(?:64|32)[\s-]?bits?\b(?=[\s,.;)]|$)(?!\s*(?:float|precision))",
            re.IGNORECASE,
        ),
        " ",
    ),
    (re.compile(r"\b(i[3579])\s+\w+\s+(?:lake|bridge)\s*-?\s*(?=\d{4})", re.IGNORECASE), r"\1-"),
    (re.compile(r"\bgpus?\s*[:=]\s*(?:no|none|n/a|-)(?![\w-])", re.IGNORECASE), "no gpu "),
    (re.compile(rf"\b(gpus?\s*[:=]\s*){_SERIES}(?:\s*[,/&]\s*{_SERIES})+", re.IGNORECASE), _summed),
    (re.compile(r"\bgpu[\s:=-]+(?=\d{1,3}\s?gi?b\b)", re.IGNORECASE), "VRAM "),
    (
        re.compile(
            r"[\s,;?(]+each\s+(?:\w*\d\w*\s+)?(?:gpu|card)s?\s+(?:has|have|with)\s+\d{1,3}\s?gi?b?"
            r"(?:\s+(?:of\s+)?(?:v?ram|memory))?\b\)?",
            re.IGNORECASE,
        ),
        " ",
    ),
    (re.compile(r"(?<=\db)[\s-]+class\b", re.IGNORECASE), ""),
    (re.compile(r"\bn_gpu_layers\s*[=:]\s*(?=\d)", re.IGNORECASE), "gpu layers "),
    (
        re.compile(
            r"(\b(?:compar\w+|between)\b[^.?!]+?)\s(?:and|with|to|und|et|y)\s", re.IGNORECASE
        ),
        r"\1 vs ",
    ),
    (re.compile(r"\bpython3?\s+-m\s+(vllm|sglang)[\w.]*", re.IGNORECASE), r"\1 "),
    (re.compile(r"(?<!\w)(?:--model(?:[_-]path)?|-m|-hf)[\s=]+(?=[\w./~])", re.IGNORECASE), " "),
    (
        re.compile(r"(?<![\w.])([2-9]|1[0-6])(?=(?:[ahlvtp]\d|b\d\d)\d{0,2}s?\b)", re.IGNORECASE),
        r"\1x ",
    ),
    (
        re.compile(
            r"(?<=\w)(?<!laptop)\s+with\s+(\d{1,3}\s?gi?b)\b(?:\s+(?:of\s+)?vram)?"
            r"(?!\s*(?:of\s+)?(?:system\s+)?(?:ram|ddr|memory|unified))",
            re.IGNORECASE,
        ),
        r" \1",
    ),
    (re.compile(r",?\s+and\s+(?:an?|one)\s+(?=(?:\w+\s+){0,2}\w*\d)", re.IGNORECASE), " and "),
    (re.compile(r"(?<=\w)\s+-(?=\d+(?:\.\d+)?b(?!\w))", re.IGNORECASE), "-"),
    (re.compile(r"(?<=\d),(?=\d\s?gi?b\b)", re.IGNORECASE), "."),
    (
        re.compile(r"(?<![\w.])(\d{4,6})\s?mi?b\b", re.IGNORECASE),
        lambda said: f"{max(1, round(int(said[1]) / 1024 + 0.2))}GB",
    ),
    (re.compile(r"(\d{4})\s?ti\s?s\b", re.IGNORECASE), r"\1 Ti SUPER"),
    (re.compile(r"(\d{4})\s?d\s?v2\b", re.IGNORECASE), r"\1 D V2"),
    (
        re.compile(
            r"\b(m[1-5](?:\s*(?:pro|max|ultra))?)[\s,]+(\d{1,3})\s?(?:gb)?\s?/\s?(?:\d{3,4}\s?(?:gb)?|\d\s?tb)(?!\w)",
            re.IGNORECASE,
        ),
        r"\1 \2GB",
    ),
    (
        re.compile(
            r"\b(?:the\s+)?(\d+(?:\.\d+)?b)\s+(?:model|version|variant|size)\s+of\s+"
            r"([a-z][\w.-]*(?:\s+\d+(?:\.\d+)?(?![\w.]))?)",
            re.IGNORECASE,
        ),
        r"\2 \1",
    ),
    (
        re.compile(
            r"\b(?:intel/)?(vllm|sglang|llama\.?cpp|ollama)[-/](?=(?:xpu|rocm|cuda|cpu|vulkan|sycl|metal|gfx\d+)\b)",
            re.IGNORECASE,
        ),
        r"\1 ",
    ),
    (
        re.compile(
            r"[\s,(]+(?<![\w.])(dual|two|three|four|[2-9]|1\d)\s*x?\s+(?:(?:graphics|video)\s+)?(?:cards?|gpus?)\b(?=\s*(?:[,.;)]|$))",
            re.IGNORECASE,
        ),
        lambda said: f" {COUNTS.get(said[1].casefold(), said[1])}x | ",
    ),
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
            r"((?:ddr\d[\w-]*(?:[\s-]+\d{4}(?:\s?(?:mhz|mt/?s))?)?|ram|memory)\s*)"
            r"\(\s*\d{1,2}\s*[x\u00d7]\s*\d{1,3}\s*gi?b\s*\)",
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


def _told(said: str) -> str:
    """Write words as one that names nothing and is told as left out."""
    return f" {TOLD}{TOLD.join(said.split())} "


def as_told(word: str) -> str:
    """Give words that were written as one as they were said."""
    return word.strip(TOLD).replace(TOLD, " ")


def apart(text: str) -> str:
    """Part ``2x16gb``, put ``32 b`` together, write ``12 gigs`` and ``3bit mlx`` as others do.

    What is the version of a program goes last, where it is no part of a name.
    """
    text = in_english(text.translate(_WIDE))
    text = _EACH.sub(_of_each, text)
    for pattern, written in _WRITTEN:
        text = pattern.sub(written, text)
    versions = [found[0] for found in _VERSION.finditer(text)]
    return " | ".join((_VERSION.sub(" ", text), *versions))


_LANGUAGES = "other_languages.tsv"


@cache
def _elsewhere() -> tuple[re.Pattern[str], dict[str, str]]:
    """Read what other languages say, the longest first, and what it means."""
    rows = table_rows(_LANGUAGES)
    meant = {w.replace("_", " "): english for english, said in rows for w in said.split()}
    longest = sorted(meant, key=len, reverse=True)
    whole = "|".join(re.escape(w) for w in longest if w < "\u3000")
    inside = "|".join(re.escape(w) for w in longest if w >= "\u3000")
    pattern = rf"(?<![\w-])(?:{whole})(?![\w-])|(?<=\d)\u0433\u0431\b|{inside}"
    return re.compile(pattern, re.IGNORECASE), meant


def in_english(text: str) -> str:
    """Write counts, memory and the like of other languages as English has them."""
    pattern, meant = _elsewhere()
    return pattern.sub(lambda said: f" {meant[said[0].casefold()]} ", text)


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
