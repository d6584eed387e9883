"""Which ggml type llama.cpp's quantiser gives each tensor.

Source: ``src/llama-quant.cpp`` of llama.cpp 0c1e57098, without importance matrix or overrides, but
IQ3_XXS with one, as nobody publishes it without; checked against its dry run on 957 model and
file-type pairs (tests/data/llamacpp_quant.csv.gz), and IQ3_XXS against published files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from advisor.estimator.gguf_tensors import Tensor
from advisor.files import table_rows
from advisor.knowledge.types import GgmlType


class FileType(NamedTuple):
    """A row of ``knowledge/gguf_file_types.tsv``, with the types that its rules give."""

    name: str
    number: str = ""
    format: str = ""
    base: str = "-"
    """Of a tensor without a rule of its own."""
    values: str = "-"
    down: str = "-"
    falcon_down: str = "-"
    output: str = "-"
    output_8_experts: str = "-"
    key_query: str = "-"


_FILE_TYPES = {row[0]: FileType(*row) for row in table_rows("gguf_file_types.tsv")}
BASE_TYPES: Mapping[str, str] = {
    name: one.base for name, one in _FILE_TYPES.items() if one.base != "-"
}
"""File type -> type of a tensor without a rule of its own."""

SEVENTY_B, FALCON = "70B", "falcon"
UNQUANTISED = frozenset({"F32", "F16", "BF16"})
_LOW_BIT = frozenset({"IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ2_M"})
_TWO_BIT_S = frozenset({"IQ2_S", "IQ2_M"})
_MIXTRAL_EXPERTS = 8
_GROUPED = 4

_PARTS = table_rows("gguf_tensor_parts.tsv")
_KEPT_F32 = [part for what, part in _PARTS if what == "F32"]
_NEVER_QUANTISED = [part for what, part in _PARTS if what == "never"]
_CATEGORIES = [(part, what) for what, part in _PARTS if what not in {"F32", "never"}]
_FALLBACK = {"Q2_K": "Q4_0", "Q3_K": "Q4_0", "Q4_K": "Q5_0", "Q5_K": "Q5_1", "Q6_K": "Q8_0"}


class Site(NamedTuple):
    """Where a tensor stands: what the rules look at besides its name."""

    number: int
    """Number of tensors of its category before it (or its block, see ``Rules``)."""
    up_to: int
    """What ``number`` runs to."""
    block: int
    layers: int
    experts: int
    grouping: int
    """Query heads per key/value head."""


class Sites(NamedTuple):
    """What a run of numbered tensors has in common; see ``Site``."""

    numbers: int
    up_to: int
    """``Site.up_to``."""
    layers: int
    experts: int
    grouping: int


def _more_bits(index: int, count: int) -> bool:
    return (
        index < count // 8 or index >= 7 * count // 8 or (index - count // 8) % 3 == 2  # noqa: PLR2004
    )


_WHEN: Mapping[str, Callable[[Site], bool]] = {
    "always": lambda _: True,
    "grouped": lambda s: s.grouping >= _GROUPED,
    "first two": lambda s: s.number < 2,  # noqa: PLR2004
    "first four": lambda s: s.number < 4,  # noqa: PLR2004
    "first sixteenth": lambda s: s.number < s.layers // 16,
    "first eighth": lambda s: s.number < s.layers // 8,
    "spread": lambda s: _more_bits(s.number, s.up_to),
    "spread, 8 experts": lambda s: s.experts == _MIXTRAL_EXPERTS and _more_bits(s.number, s.up_to),
}


def _first(rules: str, site: Site) -> str | None:
    """Give the type of the first rule that holds: ``first two Q5_K; always Q4_K``."""
    for rule in rules.split("; "):
        when, _, kind = rule.rpartition(" ")
        if when and _WHEN[when](site):
            return kind
    return None


def _typed(cell: str) -> str | None:
    """Give what a cell names; None where it has no rule."""
    return None if cell == "-" else cell


def _by_index(rules: str) -> bool:
    """Whether one of them looks at where a tensor stands."""
    return any(rule.startswith(("first", "spread")) for rule in rules.split("; "))


def category_of(name: str) -> str:
    """Name the rule group of a block's tensor: V, K, Q, O, UP, GATE, DOWN, or empty."""
    return next((category for part, category in _CATEGORIES if part in name), "")


def kept_type(tensor: Tensor) -> str | None:
    """Give the type of a tensor that is never quantised; None for the others."""
    name = tensor.name
    if tensor.kind in UNQUANTISED:
        return tensor.kind
    flat = tensor.ne1 == 1 and tensor.ne2 == 1
    kept = flat or not name.endswith("weight") or any(part in name for part in _NEVER_QUANTISED)
    if not kept:
        return None
    return "F32" if flat or any(part in name for part in _KEPT_F32) else "F16"


class Rules:
    """The type rules of one file type for one model.

    Args:
        ftype: File type, a key of ``BASE_TYPES``, or a ggml type taken for every block.
        types: Block sizes by type name.
        like: ``70B`` for a grouped-query Llama or a Qwen2 of 80 layers, ``falcon`` for a Falcon,
            which have rules of their own.
    """

    def __init__(self, ftype: str, types: Mapping[str, GgmlType], like: str = "") -> None:
        self.ftype = ftype
        self.base = BASE_TYPES.get(ftype, ftype)
        self._row = _FILE_TYPES.get(ftype, FileType(ftype))
        self.low_bit = ftype in _LOW_BIT
        self._types = types
        self.like = like

    def matrix_type(self, tensor: Tensor, *, as_output: bool) -> str:
        """Give the type of the input embedding or the output matrix."""
        if self.ftype in UNQUANTISED:
            return self.base
        return self.fitting(tensor, self._output(tensor) if as_output else self._embedding())

    def varies(self, category: str) -> bool:
        """Whether tensors of a category get different types in different blocks."""
        if self.ftype in UNQUANTISED or self.ftype == "MXFP4_MOE":
            return False
        if category == "DOWN":
            return self.low_bit or _by_index(self._row.down)
        if category == "V":
            return not self.low_bit and _by_index(self._row.values)
        return self.ftype == "IQ3_XS" and category in {"UP", "GATE"}

    def block_type(self, tensor: Tensor, category: str, site: Site) -> str:
        """Give the type of a tensor that is quantised."""
        if self.ftype in UNQUANTISED:
            return self.base
        return self.fitting(tensor, tensor.kind or self._preferred(tensor, category, site))

    def beside_type(self, tensor: Tensor, *, tied: bool) -> str:
        """Give the type of a tensor beside the layers; what is looked up is as the embedding."""
        if "token_embd" in tensor.name and self.ftype not in UNQUANTISED:
            return self.fitting(tensor, self._output(tensor) if tied else self._embedding())
        return self.block_type(tensor, "", Site(0, 0, 0, 0, 0, 0))

    def _output(self, tensor: Tensor) -> str:
        if self.ftype in {"MXFP4_MOE", "Q8_0"}:
            return "Q8_0"
        if self.like == FALCON or tensor.ne0 % self._types[self.base].block_elements:
            return "Q8_0"
        return "Q5_K" if self.low_bit or self.ftype == "IQ3_XXS" else "Q6_K"

    def _embedding(self) -> str:
        if self.ftype == "MXFP4_MOE":
            return "Q8_0"
        if self.ftype in _TWO_BIT_S or self.ftype == "IQ3_XXS":
            return "IQ3_S"
        return "Q2_K" if self.low_bit else self.base

    def _preferred(self, tensor: Tensor, category: str, site: Site) -> str:
        if self.ftype == "MXFP4_MOE":
            return "MXFP4" if tensor.ne2 > 1 else "Q8_0"
        return self.preferred(category, site)

    def preferred(self, category: str, site: Site) -> str:
        """Give the type before it is fitted to a tensor's rows; not for MXFP4_MOE."""
        chosen = self._low(category, site) if self.low_bit else self._usual(category, site)
        return chosen or self.base

    def _low(self, category: str, site: Site) -> str | None:
        small = self.ftype in _TWO_BIT_S
        if category == "V":
            rich = site.grouping >= _GROUPED or site.experts >= _GROUPED
            return "Q4_K" if rich else "IQ3_S" if small else "Q2_K"
        if category == "K":
            return "Q4_K" if site.experts == _MIXTRAL_EXPERTS else None
        if category == "DOWN":
            early = site.number < site.layers // 8
            return ("IQ3_S" if small else "Q2_K") if early else None
        if category == "O":
            if site.experts == _MIXTRAL_EXPERTS:
                return "Q5_K"
            return "IQ2_XXS" if self.ftype in {"IQ1_S", "IQ1_M"} else "IQ3_S" if small else None
        return None

    def _usual(self, category: str, site: Site) -> str | None:
        if site.experts == _MIXTRAL_EXPERTS and category in {"V", "K", "O"}:
            return self._eight_experts(category)
        if category == "V":
            return self._value(site)
        if category in {"K", "Q"}:
            return _typed(self._row.key_query)
        if category == "DOWN":
            own = self._row.falcon_down if self.like == FALCON else "-"
            return _first(self._row.down if own == "-" else own, site)
        if category == "O" and self.like == FALCON:
            return "Q4_K" if self.ftype == "Q3_K_L" else None
        if category == "O":
            return _typed(self._row.output)
        if category in {"UP", "GATE"} and self.ftype == "IQ3_XS":
            middle = site.layers // 8 <= site.block < 7 * site.layers // 8
            return "IQ3_XXS" if middle else None
        return None

    def _eight_experts(self, category: str) -> str | None:
        if category == "O":
            return _typed(self._row.output_8_experts)
        return "Q8_0"

    def _value(self, site: Site) -> str | None:
        chosen = _first(self._row.values, site)
        return (
            "Q5_K"
            if self.like == SEVENTY_B and (chosen or self.base) in {"Q3_K", "Q4_K"}
            else chosen
        )

    def fitting(self, tensor: Tensor, chosen: str) -> str:
        """Replace a type whose blocks do not divide the tensor's rows."""
        if tensor.ne0 % self._types[chosen].block_elements == 0:
            return chosen
        fallback = _FALLBACK.get(chosen, "IQ4_NL" if chosen.startswith("IQ") else "F16")
        fits = tensor.ne0 % self._types[fallback].block_elements == 0
        return fallback if fits else "F16"


def preferred_types(ftype: str, category: str, sites: Sites, like: str) -> tuple[str, ...]:
    """List what the rules prefer for the tensors of a category that differ by place.

    ``category`` is as ``category_of`` names it; ``sites`` tells how far the tensors are numbered,
    and in what they stand; ``like`` is that of the rules.

    Gives type names by number of the tensor (or of its block).
    """
    rules = Rules(ftype, {}, like)
    return tuple(
        rules.preferred(
            category,
            Site(number, sites.up_to, number, sites.layers, sites.experts, sites.grouping),
        )
        for number in range(sites.numbers)
    )
