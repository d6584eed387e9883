"""Names as benchmarks write them, turned into spellings the knowledge base may know."""

from __future__ import annotations

import re

from advisor.knowledge.vendors import BACKEND_OF_WORD

_PART = re.compile(r"-\d{5}-of-\d{5}$")
_GGUF_END = re.compile(
    r"[-_.](?:UD-)?((?:I?Q\d|TQ\d)(?:_[0-9A-Z]+)*|BF16|F16|FP16|F32|FP32|MXFP4(?:_MOE)?|NVFP4)$",
    re.IGNORECASE,
)
_TYPE_END = re.compile(
    r"(?:all |mostly )?\b((?:I?Q\d|TQ\d)\w*|BF16|F16|F32|MXFP4(?: MoE)?|NVFP4)"
    r"(?: - (Small|Medium|Large|[\d.]+ bpw.*))?$",
    re.IGNORECASE,
)
_SIZES = {"small": "_S", "medium": "_M", "large": "_L"}
_HUB_ENDS = (
    (r"awq(?:-int4|-4bit)?", "AWQ"),
    (r"gptq-int8|gptq-8bit", "GPTQ 8-bit"),
    (r"gptq(?:-int4|-4bit)?", "GPTQ 4-bit"),
    (r"fp8(?:-dynamic|-block|-kv)?", "FP8"),
    (r"(?:unsloth-)?bnb-4bit", "NF4"),
    (r"quantized\.w8a8|w8a8|int8-w8a8", "INT8 W8A8"),
    (r"nvfp4", "NVFP4"),
    (r"mxfp4", "MXFP4"),
)


def of_gguf(filename: str) -> tuple[tuple[str, ...], str]:
    """Split a GGUF file's name: spellings of its model, and its format or nothing.

    ``models/google_gemma-3-27b-it-Q4_K_M.gguf`` gives that stem without the format, then
    without the uploader's name before the underscore.
    """
    stem = re.split(r"[/\\]", filename)[-1].removesuffix(".gguf")
    stem = _PART.sub("", stem)
    found = _GGUF_END.search(stem)
    precision = found.group(1).upper() if found else ""
    if precision == "MXFP4":
        precision = "MXFP4_MOE"  # what llama.cpp calls every such file
    return model_spellings(stem[: found.start()] if found else stem), precision


def of_model_type(text: str) -> str:
    """Give the format that llama.cpp names at the end of a model's type, or nothing.

    ``qwen2 7B Q4_K - Medium`` is Q4_K_M.
    """
    found = _TYPE_END.search(text)
    if not found:
        return ""
    size = _SIZES.get((found.group(2) or "").casefold(), "")
    name = found.group(1).replace(" ", "_").upper()
    return f"{name}{size}"


def of_hub(name: str) -> tuple[tuple[str, ...], str]:
    """Split a Hugging Face id: spellings of its model, and its format or nothing."""
    base = name.strip().rstrip("/")
    for ending, precision in _HUB_ENDS:
        found = re.search(rf"[-_.](?:{ending})$", base, re.IGNORECASE)
        if found:
            return model_spellings(base[: found.start()]), precision
    return model_spellings(base), ""


def model_spellings(name: str) -> tuple[str, ...]:
    """List ways to write a model's name: as it is, without publisher, without uploader."""
    last = name.rpartition("/")[2]
    short = re.sub(r"^[A-Za-z][A-Za-z-]*_", "", last)
    plain = re.sub(r"-(?:GGUF|HF)$", "", short, flags=re.IGNORECASE)
    bare = re.sub(r"^Meta-", "", plain, flags=re.IGNORECASE)
    return tuple(dict.fromkeys(part for part in (name, last, short, plain, bare) if part))


def card_spellings(name: str) -> tuple[str, ...]:
    """List ways to write a card's name: as a driver does, without brackets, without edition."""
    plain = re.sub(r"\s*\((?!R\)|TM\))[^)]*\)\s*$", "", name).strip()
    bare = re.sub(r" (?:Workstation|Server)? ?Edition$", "", plain)
    return tuple(dict.fromkeys(part for part in (name, plain, bare) if part))


def backend_of(text: str) -> tuple[str, bool]:
    """Give the backend that a list of backends stands for, and whether RPC took part.

    Empty when none of them drives a card.
    """
    words = [word.strip().casefold() for word in re.split(r"[,/+ ]", text)]
    found = next((BACKEND_OF_WORD[word] for word in words if word in BACKEND_OF_WORD), "")
    return found, "rpc" in words
