"""The numbers of a question and its processor: contexts, users, RAM, shares, images."""

from __future__ import annotations

import re
from collections.abc import Mapping, MutableMapping, Sequence

from advisor.errors import RequestError
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
_N = r"(?P<n>\d{1,3}(?:[ \u00a0\u202f]\d{3})+|\d+(?:[,_]\d+)*(?:\.\d+)*(?:e\d+)?)\s*(?P<k>[km])?"
_GROUPED = re.compile(r"\d{1,3}(?:[. \u00a0\u202f]\d{3})+")
"""A whole number as it is written in Europe: ``128.000``, ``32 768``."""
_COUNT = rf"(?P<n>\d+|{'|'.join(COUNTS)})"
_WINDOW = (
    r"(?:context(?:[\s_-]+(?:windows?|length|len|size|limit))?|ctx(?:[\s_-]size)?|n_ctx|num_ctx"
)
_WINDOW += r"|max[\s_-]kv[\s_-]size"
_WINDOW += r"|seq(?:uence)?\s+length|max[\s_-]+(?:model|seq)[\s_-]+len(?:gth)?)"
_AT_ONCE = r"(?:concurrent|parallel|simultaneous)"
_USERS = r"(?:users?|people|persons?|sequences?|slots?|streams?|clients?|sessions?|conversations?)"
_ASKED = r"(?:requests?|queries|prompts?)"
_RAM = r"(?:system\s+|main\s+|of\s+)*(?:ddr\d\s+)?(?:ram|system\s+memory|main\s+memory)"
GB = r"(?P<n>\d+(?:\.\d+)?)\s*(?:gi?b|g|go)"
_RATE = r"(?:[\s@-]*\d{1,2}\d(?:00|33|66|67)(?!\s*(?:xtx?|gre)\b)(?:\s*(?:mt/?s|mhz))?)"
"""Rates of memory; numbers of cards end otherwise, or have a word behind them."""
_WIDE = r"(?:(?:\d{1,2}|single|dual|triple|quad|six|octa|eight|twelve)[\s-]*channels?)"
_CHANNELS = rf"(?:[\s,]+{_WIDE})"
_WIDTH = rf"(?:{_CHANNELS}|\s*x\s*\d{{1,2}}(?=\s*(?:[,.;?!]|$)))?"
_DDR = rf"(?:lp)?ddr[345][lx]?{_RATE}?{_WIDTH}"
_SIZED = r"(?:\d+\s*x\s*)?\d+\s*(?:[gt]i?b|g|go)(?:\s*x\s*\d+)?"
_KV = r"(?P<w>f16|bf16|q8_0|q8|q6|q5_1|q5_0|q4_1|q4_0|q4|fp8(?:_e[45]m[23])?|int8|[48]-?bit)"
_ABOUT = r"of|at|in|as|is|to|up\s+to|set\s+to|around|about|approx\.?|roughly"
_IS = rf"\s*(?:(?:{_ABOUT})\b|[=:~\u2248]|\s)*"
_OWN = "".join(f"(?<!{word} )" for word in ("video", "gpu", "graphics", "unified", "shared"))
"""Before memory that is a card's, or one with the processor."""
_OF_CARDS = "".join(f"(?<!{word}[ -])" for word in ("rtx", "gtx", "rx", "arc", "tesla"))
"""Before a number that is a card's: ``RTX 3090 context 8k``."""
_CLAIM = (
    r"(?:(?:gpu[\s_-])?mem(?:ory)?[\s_-]util(?:i[sz]ation)?"
    r"|(?:(?:free[\s_-])?(?:cuda|gpu)[\s_-])?mem(?:ory)?[\s_-]fraction(?:[\s_-]static)?)"
)
"""The share of a card, as the flags of vLLM, SGLang, TGI and TensorRT-LLM call it."""
_PARALLEL = r"parallel(?:ism)?"
_SHARE = r"(?:(?P<f>0?\.\d+)|(?P<p>\d{1,2})\s?%)"
_PATTERNS: Sequence[tuple[str, str]] = (
    ("batch", rf"\bbatch(?:\s+size)?{_IS}(?P<n>\d+)\b"),
    ("batch", rf"(?<!\w)-{{0,2}}max[\s_-]num[\s_-]seqs{_IS}(?P<n>\d+)\b"),
    ("batch", rf"\b{_COUNT}\s+(?:{_AT_ONCE}\s+)?{_USERS}\b"),
    ("batch", rf"\b(?P<n>\d+)\s+{_AT_ONCE}(?:\s+{_ASKED})?\b"),
    ("batch", rf"\b(?P<n>\d+)\s+{_ASKED}\s+(?:at\s+once|in\s+parallel|at\s+a\s+time)\b"),
    ("context", rf"{_WINDOW}{_IS}{_N}(?:\s+tokens?)?\b"),
    ("context", rf"(?<!\w)-c\s+{_N}\b"),
    (
        "context",
        rf"{_OF_CARDS}\b{_N}[\s-]*(?:tokens?\s+(?:of\s+)?)?(?:{_WINDOW}|tokens?)\b",
    ),
    (
        "ram",
        rf"\b(?:ram\s*[:=]?\s*)?(?P<r>{_SIZED}[\s,]+(?:of\s+)?(?:(?:system|main)\s+)?(?:ram\s+)?{_DDR})(?:\s+ram)?\b",
    ),
    ("ram", rf"\b(?P<r>(?:{_WIDE}[\s,]+)?{_DDR}[\s,]+{_SIZED})(?:\s+ram)?\b"),
    ("ram", rf"\b(?P<r>{_SIZED}[\s,]+(?:of\s+|ram\s+)*\d{{4,5}}\s*(?:mt/?s?|mhz))(?:\s+ram)?\b"),
    ("ram_type", rf"\b(?P<r>{_DDR})(?:\s+ram)?\b"),
    ("ram_type", r"\b(?P<r>\d{1,2}\s+(?:sticks?|dimms?))\s+of\s+(?:ram|memory)\b"),
    ("ram", rf"\b(?P<r>\d+\s*g(?:i?b|o)?\s*x\s*\d+)\s+{_RAM}\b"),
    ("ram", rf"\b{_RAM}{_IS}(?P<r>\d+\s*g(?:i?b|o)?\s*x\s*\d+)\b"),
    ("ram", rf"\b{GB}\s+{_RAM}\b"),
    ("ram", rf"\b{_RAM}{_IS}{GB}\b"),
    ("ram", r"\b(?P<n>8|12|16|24|32|48|64|96|128|192|256|384|512|768)\s+ram\b"),
    (
        "ram",
        rf"{_OWN}\bmemory(?:\s*:\s*|\s+){GB}\b(?!\s*(?:vram|gpus?|cards?|of)\b)",
    ),
    (
        "gpu_layers",
        r"\b(?P<n>\d+)\s+(?:gpu\s+layers|layers\s+(?:off-?loaded|(?:on|in)\s+(?:the\s+)?(?:gpu|card|vram)))\b",
    ),
    ("gpu_layers", r"(?<!\w)(?:-?ngl|(?:--)?gpu[\s-]?layers)\s*[=:]?\s*(?P<n>\d+)\b"),
    ("kv_cache_k", rf"\bcache(?:[\s_-]mode)?{_IS}(?P<w>[468])(?=\s*,\s*[468]\b)"),
    ("kv_cache_v", r"(?<=\|)\s*,\s*(?P<w>[468])\b"),
    ("kv_cache", rf"\b{_KV}\s+(?:kv|k/v|k\s+(?:and|&)\s+v|key[/-]value)(?:[\s-]?cache)?\b"),
    ("kv_cache", rf"\b(?:kv|k/v)(?:[\s-]?cache)?{_IS}{_KV}\b"),
    ("kv_cache", rf"\bcache(?:[\s-]+(?:quant\w*|types?))?{_IS}{_KV}(?![\w.])"),
    ("kv_cache", rf"\b{_KV}\s+cache\b"),
    (
        "split",
        rf"\b(?P<w>tensor(?=[\s-]{_PARALLEL})|layer|row|data)[\s-](?:split|{_PARALLEL})\b(?:\s*=?\s*\d{{1,2}}\b(?!\s*k))?(?:\s+(?:and|\+|with)\s+(?:expert[\s-]{_PARALLEL}|ep)\b)?",
    ),
    ("split", r"\b(?P<w>dp)\s?=?\s?\d{1,2}\b"),
    ("split", r"\b(?P<w>tensor[\s-]split)\b"),
    ("mtp", r"\b(?P<n>\d+)\s+(?:mtp|drafted)\s+tokens?\b|\bmtp\s*=?\s*(?P<m>\d+)\b"),
    (
        "image_size",
        r"\b(?P<s>\d{3,5}\s*[x\u00d7]\s*\d{2,5}|720p|1080p|4k(?=\s+(?:image|photo)))(?:\s*px)?\b",
    ),
    (
        "images",
        rf"\b{_COUNT}\s+(?:(?:large|small|big|\||px|full[\s-]hd)\s+)*(?:images?|photos?|pictures?|screenshots?)(?:\s+(?:per|in\s+each|each|a)\s+(?:prompt|request|message|query))?\b",
    ),
    ("text_only", r"\b(?P<on>text[\s-]only|without\s+(?:vision|images|mmproj)|no[\s-]mmproj)\b"),
    ("eager", r"\b(?P<on>(?:enforce[\s-])?eager(?:[\s-]mode)?)\b"),
    (
        "reserve",
        r"\b(?:reserve|keep|leave)\s+(?P<s>\d+(?:\.\d+)?\s*gi?b)(?:\s+(?:free|for\s+other\s+programs))?\b",
    ),
    (
        "reserve",
        r"\b(?P<s>\d+(?:\.\d+)?\s*gi?b)\s+(?:reserved|taken|used)\s+(?:for|by)\s+other\s+programs\b",
    ),
    ("max_num_batched_tokens", rf"\bmax[\s_-]num[\s_-]batched[\s_-]tokens{_IS}{_N}"),
    ("gpu_memory_utilization", rf"\b{_CLAIM}{_IS}{_SHARE}"),
    ("gpu_memory_utilization", rf"(?<![\w.]){_SHARE}\s+(?:of\s+)?{_CLAIM}\b"),
    ("context", r"\b(?:at|with|to|for)\s+(?P<n>\d+)\s*(?P<k>k)\b"),
    ("context", r"(?<![\w.~])(?<!\w-)(?P<n>\d+)(?P<k>k)\b(?![-.]\w)"),
    ("context", r"(?<![\w.-])(?P<n>2048|4096|8192|16384|32768|65536|131072|262144)(?![\w.-])"),
    ("cpu_experts", r"(?<!\w)(?:--?)?(?:n[_-]?c(?:pu)?[_-]?moe)\s*=?\s*(?P<n>\d+)\b"),
    ("cpu_experts", r"(?<!\w)(?:--?)?(?P<a>cpu[_-]moe)\b"),
)
"""A key of a request, and how it is said; the first of a key counts. What waits beside a context,
``16k context 8 users``, is taken before it."""
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
_UNDER = (
    r"(?<!\w)(?:under|below|less\s+than|fewer\s+than|up\s+to|at\s+most|max(?:imum)?|smaller\s+than"
    r"|<=?)\s*"
)
_OVER = (
    r"(?<!\w)(?:over|above|more\s+than|at\s+least|min(?:imum)?|bigger\s+than|larger\s+than|>=?)\s*"
)
_B = r"\d+(?:\.\d+)?"
_Wishes = Sequence[tuple[str, Mapping[str, str]]]
_LIMITS: _Wishes = (
    (
        rf"(?:{_OVER}|\bat\s+)?(?<![\w.])(?P<n>{_B})\s*\+?\s*(?:tok(?:en)?s?\s*(?:/|per|a)\s*s(?:ec(?:ond)?)?|t/s|tps)\b",
        {"min_speed": "{n}"},
    ),
    (
        rf"(?:{_UNDER}|\bfor\s+|\bbudget\s+(?:of\s+|is\s+)?)?(?:\$\s?(?P<n>\d[\d,]*(?:\.\d+)?k?)\b(?:\s*(?:usd|dollars?|bucks))?)",
        {"max_price": "{n}"},
    ),
    (
        rf"(?:{_UNDER}|\bfor\s+|\bbudget\s+)?\b(?P<n>\d[\d,]*k?)\s*(?:(?:usd|dollars?|bucks)\b|\$)",
        {"max_price": "{n}"},
    ),
)
_WISHES: _Wishes = (
    (
        rf"(?<![\w.-])(?P<n>{_B})\s*b?\s*(?:-|to|\u2013)\s*(?P<m>{_B})\s*b\b",
        {"min_params": "{n}B", "max_params": "{m}B"},
    ),
    (rf"{_UNDER}(?P<n>{_B})\s*b\b", {"max_params": "{n}B"}),
    (rf"{_OVER}(?P<n>{_B})\s*b\b", {"min_params": "{n}B"}),
    (r"\b(?:vision|multimodal|vlm|image)\b(?:\s+(?=(?:llms?|models?)\b))?", {"modality": "vision"}),
    (r"\bembeddings?\b", {"modality": "embedding"}),
    (r"\bfastest\b", {"prefer": "speed"}),
    (r"\b(?:speech|transcription|whisper|audio)\b", {"modality": "audio"}),
)
"""How flags of the reverse questions are said; of two for one flag the first counts."""
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
    for name, pattern in _PATTERNS:
        matched = None if name in settings else re.search(pattern, text, re.IGNORECASE)
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
    return _flags(text, _LIMITS, wanted)


def read_wishes(text: str, wanted: MutableMapping[str, str]) -> str:
    """Take what is wished of models out of a text: their sizes and what they read.

    Args:
        text: The words that are no name.
        wanted: Takes flags of ``models-for`` and ``gpus-for``, with underscores.

    Returns:
        The text with holes where they stood.
    """
    text = _flags(text, _WISHES, wanted)
    size = re.search(r"(?<![\w.:-])(\d+(?:\.\d+)?[bm])(?![\w-])", text, re.IGNORECASE)
    if size and wanted.keys().isdisjoint({"min_params", "max_params"}):
        wanted["min_params"], wanted["max_params"] = params_around(size[1])
        text = f"{text[: size.start()]} {HOLE} {text[size.end() :]}"
    return text


def _flags(text: str, patterns: _Wishes, wanted: MutableMapping[str, str]) -> str:
    for pattern, flags in patterns:
        matched = re.search(pattern, text, re.IGNORECASE)
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
        return f"{number}GB" if name == "ram" else parse_whole(number + (found.get("k") or ""))
    except UnitError:
        return None


def _is_ram(text: str) -> bool:
    try:
        read_ram(text)
    except (RequestError, UnitError):
        return False
    return True
