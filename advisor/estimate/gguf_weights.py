"""Bytes of a GGUF file, tensor by tensor."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from advisor.estimate.gguf_tensors import Layout, Tensor
from advisor.estimate.gguf_types import Rules, Site, category_of, kept_type
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


@dataclass(frozen=True, slots=True)
class _Kind:
    """One kind of block: what every such block holds, and the tensors that differ by place."""

    fixed: Span
    fixed_experts: Span
    varying: tuple[tuple[Tensor, str], ...]
    values: int
    """Tensors of category V, which the quantiser numbers."""
    downs: int


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
        self._kinds = {kind: self._kind(tensors) for kind, tensors in layout.blocks.items()}
        self._known: dict[tuple[int, tuple[str, ...]], tuple[Span, Span]] = {}

    def sized(self) -> list[tuple[Span, Span]]:
        """Give bytes of every block and of its routed experts."""
        kinds = [self._kinds[name] for name in self._layout.kinds]
        values = sum(kind.values for kind in kinds)
        value = down = 0
        found = []
        for index, kind in enumerate(kinds):
            found.append(self._block(index, kind, (value, values), down))
            value += kind.values
            down += kind.downs
        return found

    def _kind(self, tensors: Iterable[Tensor]) -> _Kind:
        anywhere = Site(0, 0, 0, self._shape.layers, self._experts, self._grouping)
        fixed = experts = NOTHING
        varying = []
        for tensor in tensors:
            chosen = kept_type(tensor)
            category = "" if chosen else category_of(tensor.name)
            if self._rules.varies(category):
                varying.append((tensor, category))
                continue
            name = chosen or self._rules.block_type(tensor, category, anywhere)
            span = _span(tensor, name, self._types)
            fixed += span
            experts += span if _is_expert(tensor) else NOTHING
        numbered = [category for _, category in varying]
        return _Kind(fixed, experts, tuple(varying), numbered.count("V"), numbered.count("DOWN"))

    def _block(
        self, index: int, kind: _Kind, value: tuple[int, int], down: int
    ) -> tuple[Span, Span]:
        chosen = tuple(self._chosen(index, kind, value, down))
        key = (id(kind), chosen)
        if key not in self._known:
            self._known[key] = self._sum(kind, chosen)
        return self._known[key]

    def _chosen(self, index: int, kind: _Kind, value: tuple[int, int], down: int) -> Iterator[str]:
        """Give the types of the tensors that differ by place."""
        layers, experts = self._shape.layers, self._experts
        by_block = experts > 1 and not self._rules.low_bit
        for tensor, category in kind.varying:
            number, count = value if category == "V" else (down, layers)
            if category == "DOWN":
                number = index if by_block else down
                down += 1
            site = Site(number, count, index, layers, experts, self._grouping)
            yield self._rules.block_type(tensor, category, site)

    def _sum(self, kind: _Kind, chosen: tuple[str, ...]) -> tuple[Span, Span]:
        whole, routed = kind.fixed, kind.fixed_experts
        for (tensor, _), name in zip(kind.varying, chosen, strict=True):
            span = _span(tensor, name, self._types)
            whole += span
            routed += span if _is_expert(tensor) else NOTHING
        return whole, routed


def _is_expert(tensor: Tensor) -> bool:
    return "_exps." in tensor.name
