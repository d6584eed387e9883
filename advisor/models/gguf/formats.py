"""Numbers that GGUF files use for tensor types and file types.

Source: gguf 0.19.0 (``GGMLQuantizationType``, ``GGML_QUANT_SIZES``, ``LlamaFileType``); the
tests hold both tables against that package and against knowledge/ggml_types.yaml.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from advisor.models.stored_tensors import StoredTensor

_TYPES: Final = """
0 F32 1 4|1 F16 1 2|2 Q4_0 32 18|3 Q4_1 32 20|6 Q5_0 32 22|7 Q5_1 32 24|8 Q8_0 32 34|9 Q8_1 32 40
10 Q2_K 256 84|11 Q3_K 256 110|12 Q4_K 256 144|13 Q5_K 256 176|14 Q6_K 256 210|15 Q8_K 256 292
16 IQ2_XXS 256 66|17 IQ2_XS 256 74|18 IQ3_XXS 256 98|19 IQ1_S 256 50|20 IQ4_NL 32 18
21 IQ3_S 256 110|22 IQ2_S 256 82|23 IQ4_XS 256 136|24 I8 1 1|25 I16 1 2|26 I32 1 4|27 I64 1 8
28 F64 1 8|29 IQ1_M 256 56|30 BF16 1 2|34 TQ1_0 256 54|35 TQ2_0 256 66|39 MXFP4 32 17
40 NVFP4 64 36|41 Q1_0 128 18
"""

TENSOR_TYPES: Final[Mapping[int, tuple[str, int, int]]] = MappingProxyType(
    {
        int(number): (name, int(elements), int(size))
        for number, name, elements, size in (
            entry.split() for entry in _TYPES.replace("\n", "|").split("|") if entry
        )
    }
)
"""Number -> name, elements of a block, bytes of a block."""

FILE_TYPES: Final[Mapping[int, str]] = MappingProxyType(
    {
        0: "F32",
        1: "FP16",
        2: "Q4_0",
        3: "Q4_1",
        7: "Q8_0",
        8: "Q5_0",
        9: "Q5_1",
        10: "Q2_K",
        11: "Q3_K_S",
        12: "Q3_K_M",
        13: "Q3_K_L",
        14: "Q4_K_S",
        15: "Q4_K_M",
        16: "Q5_K_S",
        17: "Q5_K_M",
        18: "Q6_K",
        19: "IQ2_XXS",
        20: "IQ2_XS",
        21: "Q2_K_S",
        22: "IQ3_XS",
        23: "IQ3_XXS",
        24: "IQ1_S",
        25: "IQ4_NL",
        26: "IQ3_S",
        27: "IQ3_M",
        28: "IQ2_S",
        29: "IQ2_M",
        30: "IQ4_XS",
        31: "IQ1_M",
        32: "BF16",
        36: "TQ1_0",
        37: "TQ2_0",
        38: "MXFP4_MOE",
        39: "NVFP4 (GGUF)",
        40: "Q1_0",
    }
)
"""``general.file_type`` -> the format in knowledge/."""

_BY_TENSOR_TYPE: Final = {
    "F16": "FP16",
    "Q3_K": "Q3_K_M",
    "Q4_K": "Q4_K_M",
    "Q5_K": "Q5_K_M",
    "MXFP4": "MXFP4_MOE",
    "NVFP4": "NVFP4 (GGUF)",
}


def commonest_format(tensors: Iterable[StoredTensor]) -> str | None:
    """Name the format of the tensor type that most weights have."""
    counted: Counter[str] = Counter()
    for tensor in tensors:
        counted[tensor.type_name] += tensor.elements
    if not counted:
        return None
    name = counted.most_common(1)[0][0]
    found = _BY_TENSOR_TYPE.get(name, name)
    return found if found in FILE_TYPES.values() else None
