"""Bytes of a GGUF file, tensor by tensor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate

from advisor.estimate.gguf_tensors import Layout, Tensor
from advisor.estimate.gguf_types import UNQUANTISED, Rules, Site, category_of, kept_type
from advisor.knowledge.types import GgmlType
from advisor.sources.shape import Shape

ALIGNMENT = 32
"""Every tensor starts at a multiple of this many bytes in llama.cpp's buffers."""
_SEVENTY_B_LAYERS = 80


@dataclass(frozen=True, slots=True)
class Span:
    """Bytes of a group of tensors: as stored, and as placed with every tensor aligned."""

    stored: int
    placed: int

    def __add__(self, other: Span) -> Span:
        return Span(self.stored + other.stored, self.placed + other.placed)


NOTHING = Span(0, 0)


@dataclass(frozen=True, slots=True)
class GgufBytes:
    """A model's tensors in groups that are placed together.

    ``output`` is the output matrix, or its copy of the embedding when ``tied``.
    """

    embedding: Span
    output: Span
    norm: Span
    rope: Span
    layers: tuple[Span, ...]
    experts: tuple[Span, ...]
    tied: bool

    @property
    def stored(self) -> int:
        """File bytes without metadata."""
        total = self.embedding.stored + self.norm.stored + self.rope.stored
        if not self.tied:
            total += self.output.stored
        return total + sum(layer.stored for layer in self.layers)


def gguf_bytes(
    shape: Shape, layout: Layout, ftype: str, types: Mapping[str, GgmlType]
) -> GgufBytes:
    """Size every tensor of a model in a file type."""
    rules = Rules(ftype, types, seventy_b=_is_seventy_b(shape, layout))
    tied = layout.tied
    embedding = _span(
        layout.embedding,
        rules.matrix_type(layout.embedding, as_output=layout.output is None),
        types,
    )
    output = embedding if tied else NOTHING
    if layout.output is not None:
        output = _span(layout.output, rules.matrix_type(layout.output, as_output=True), types)
    blocks = _Blocks(shape, layout, rules, types).sized()
    return GgufBytes(
        embedding=embedding,
        output=output,
        norm=sum((_span(tensor, "F32", types) for tensor in layout.outside), NOTHING),
        rope=_span(layout.rope, "F32", types) if layout.rope else NOTHING,
        layers=tuple(block[0] for block in blocks),
        experts=tuple(block[1] for block in blocks),
        tied=tied,
    )


def _is_seventy_b(shape: Shape, layout: Layout) -> bool:
    return (
        shape.layers == _SEVENTY_B_LAYERS
        and layout.architecture in {"llama", "qwen2"}
        and shape.heads != shape.kv_heads
    )


def _span(tensor: Tensor, kind: str, types: Mapping[str, GgmlType]) -> Span:
    block = types[kind]
    rows = tensor.ne1 * tensor.ne2
    stored = block.block_bytes * (tensor.ne0 // block.block_elements) * rows
    return Span(stored, -(-stored // ALIGNMENT) * ALIGNMENT)


def _counted_category(tensor: Tensor) -> str:
    """Name the rule group; tensors that are never quantised belong to none."""
    return "" if kept_type(tensor) else category_of(tensor.name)


class _Blocks:
    """Sizes the blocks in order, counting V and DOWN tensors as the quantiser does."""

    def __init__(
        self, shape: Shape, layout: Layout, rules: Rules, types: Mapping[str, GgmlType]
    ) -> None:
        self._shape = shape
        self._layout = layout
        self._rules = rules
        self._types = types
        self._experts = shape.moe.experts if shape.moe else 0
        self._grouping = shape.heads // shape.kv_heads if shape.kv_heads else 1
        self._categories = {
            kind: tuple((tensor, _counted_category(tensor)) for tensor in tensors)
            for kind, tensors in layout.blocks.items()
        }
        self._known: dict[tuple[str, tuple[str, ...]], tuple[Span, Span]] = {}

    def sized(self) -> list[tuple[Span, Span]]:
        """Give bytes of every block and of its routed experts."""
        values = [self._number(kind, "V") for kind in self._layout.kinds]
        downs = [self._number(kind, "DOWN") for kind in self._layout.kinds]
        values_before = [0, *accumulate(values)]
        downs_before = [0, *accumulate(downs)]
        return [
            self._block(index, kind, values_before[index], values_before[-1], downs_before[index])
            for index, kind in enumerate(self._layout.kinds)
        ]

    def _number(self, kind: str, category: str) -> int:
        return sum(found == category for _, found in self._categories[kind])

    def _block(
        self, index: int, kind: str, value: int, values: int, down: int
    ) -> tuple[Span, Span]:
        if self._rules.ftype in UNQUANTISED:
            return self._remembered(kind, self._uniform(kind))
        by_block = self._experts > 1 and not self._rules.low_bit
        layers = self._shape.layers
        found: list[str] = []
        for tensor, category in self._categories[kind]:
            kept = kept_type(tensor)
            if kept:
                found.append(kept)
                continue
            number, count = (value, values) if category == "V" else (down, layers)
            if category == "DOWN":
                number = index if by_block else down
                down += 1
            site = Site(number, count, index, layers, self._experts, self._grouping)
            found.append(self._rules.block_type(tensor, category, site))
        return self._remembered(kind, tuple(found))

    def _uniform(self, kind: str) -> tuple[str, ...]:
        return tuple(kept_type(tensor) or self._rules.base for tensor, _ in self._categories[kind])

    def _remembered(self, kind: str, chosen: tuple[str, ...]) -> tuple[Span, Span]:
        key = (kind, chosen)
        if key not in self._known:
            whole = experts = NOTHING
            for tensor, name in zip(self._layout.blocks[kind], chosen, strict=True):
                span = _span(tensor, name, self._types)
                whole += span
                if "_exps." in tensor.name:
                    experts += span
            self._known[key] = (whole, experts)
        return self._known[key]
