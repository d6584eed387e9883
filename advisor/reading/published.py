"""How a repository holds its weights, as its name says: packed or not, in which format here."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from advisor.reading.public_list import PublicModel

_PACKED: Final = re.compile(
    r"(?<![a-z])(awq|gptq|gguf|bnb|exl[23]?|mlx|hqq|eetq|aqlm|quip|autoround|auto-round|ov|onnx"
    r"|nvfp4|mxfp[48]|fp[48]|nf4|int[2348]|uint4|w[348]a\d+|quantized|quant|optiq|oq\d|torchao)(?![a-z])"
    r"|(?<![a-z0-9])(\d(\.\d+)?-?(bits?|bpw)|i?q[1-8]([-_][0-9k]\w*)?)(?![a-z0-9])"
)
GGUF_DEFAULT: Final = "Q4_K_M"
"""What llama.cpp takes of a GGUF repository where no file is named (its common/arg.cpp)."""
_FORMATS: Final[Sequence[tuple[str, str]]] = (
    (r"gguf", GGUF_DEFAULT),
    (r"mlx.*(?<!\d)8-?bit", "MLX 8-bit"),
    (r"mlx.*(?<!\d)6-?bit", "MLX 6-bit"),
    (r"mlx.*(?<!\d)4-?bit", "MLX 4-bit"),
    (r"mlx.*(?<!\d)3-?bit", "MLX 3-bit"),
    (r"mlx", ""),
    (r"nvfp4", "NVFP4"),
    (r"mxfp4", "MXFP4"),
    (r"(gptq|w8a16).*(int8|8-?bit)|w8a16", "GPTQ 8-bit"),
    (r"gptq.*(int3|3-?bit)", "GPTQ 3-bit"),
    (r"awq.*(int8|8-?bit)", ""),
    (r"gptq|auto-?round|w4a16", "GPTQ 4-bit"),
    (r"awq", "AWQ 4-bit"),
    (r"w8a8|int8-dynamic|quantized.*int8", "INT8 W8A8"),
    (r"fp8", "FP8"),
    (r"bnb.*4-?bit|4-?bit.*bnb|nf4", "NF4"),
    (r"bnb.*8-?bit|8-?bit.*bnb", "INT8 (bitsandbytes)"),
    (r"hqq.*4-?bit", "HQQ 4-bit"),
)
"""The first that is found; empty: packed in a form that has no name here, or in several."""
_SIXTEEN: Final = re.compile(r"(?<![a-z])(bf16|fp16|f16|bfloat16)(?![a-z0-9])")


def _told(public: PublicModel) -> str:
    return f"{public.format} {public.name.lower()}"


def is_packed(public: PublicModel) -> bool:
    """Whether its files hold weights of less than 16 bits, so that elements are no parameters."""
    return bool(public.format) or _PACKED.search(_told(public)) is not None


def published_format(public: PublicModel) -> str | None:
    """Name the weight format that its files hold, None for 16 bits and where it is not told."""
    if not is_packed(public):
        return None
    packs_for_mlx = "mlx" in public.hf_id.partition("/")[0].lower()
    told = f"{'mlx ' if packs_for_mlx else ''}{_told(public)}"
    return next((name for word, name in _FORMATS if re.search(word, told)), "") or None


def has_gguf(public: PublicModel) -> bool:
    """Whether it holds GGUF files, of which there are mostly several."""
    return "gguf" in _told(public)


def says_sixteen_bits(public: PublicModel) -> bool:
    """Whether its name says that it was unpacked to 16 bits."""
    return _SIXTEEN.search(public.name.lower()) is not None


def unpacked_name(name: str) -> str:
    """Take what says how a model is packed off the end of its name: ``Qwen3-32B-AWQ``."""
    while (found := _LAST.search(name)) and _says_packing(found[1].lower()):
        name = name[: found.start()]
    return name


_LAST: Final = re.compile(r"[-_]([^-_]+)$")
_PACKING: Final = frozenset({"dynamic", "block", "static", "sym", "fast", "ct", "qat"})


def _says_packing(word: str) -> bool:
    """Whether a word, or each of its parts (``quantized.w4a16``), says only how it is packed."""
    parts = [word] if _PACKED.fullmatch(word) else word.split(".")
    return all(part in _PACKING or _PACKED.fullmatch(part) for part in parts)
