"""Bytes of a GGUF file, and of a model's own files, tensor by tensor."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from advisor.estimator.gguf_tensors import Layout, Tensor
from advisor.estimator.gguf_types import (
    FALCON,
    SEVENTY_B,
    Rules,
    Site,
    Sites,
    category_of,
    kept_type,
    preferred_types,
)
from advisor.knowledge.types import GgmlType
from advisor.models.shape import Shape
from advisor.models.stored_tensors import Part, StoredModel, StoredTensor, place_of

ALIGNMENT = 32
"""Every tensor starts at a multiple of this many bytes in llama.cpp's buffers."""
_SEVENTY_B_LAYERS = 80


class Span(Struct, frozen=True):
    """Bytes of a group of tensors: as stored, and as placed with every tensor aligned."""

    stored: int
    placed: int

    def __add__(self, other: Span) -> Span:
        return Span(self.stored + other.stored, self.placed + other.placed)

    def __sub__(self, other: Span) -> Span:
        return Span(self.stored - other.stored, self.placed - other.placed)


NOTHING = Span(0, 0)
Widest = tuple[int, int]
"""Bytes of the largest tensor that leads down out of a feed-forward block, and of any other."""


def _wider(known: Widest, category: str, size: int) -> Widest:
    down, other = known
    return (max(down, size), other) if category == "DOWN" else (down, max(other, size))


class GgufBytes(Struct, frozen=True):
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
    lookup: Span = NOTHING
    widest: tuple[Widest, ...] = ()
    """Largest tensors of each layer; empty: not known."""

    @property
    def stored(self) -> int:
        """File bytes without metadata."""
        total = self.embedding.stored + self.lookup.stored + self.norm.stored + self.rope.stored
        if not self.tied:
            total += self.output.stored
        return total + sum(layer.stored for layer in self.layers)

    def with_experts(self, other: GgufBytes) -> GgufBytes:
        """Give the same with the experts of another format."""
        pairs = zip(self.layers, self.experts, other.experts, strict=True)
        layers = tuple(layer - own + kept for layer, own, kept in pairs)
        return replace(self, layers=layers, experts=other.experts, widest=other.widest)


def gguf_bytes(
    shape: Shape, layout: Layout, ftype: str, types: Mapping[str, GgmlType]
) -> GgufBytes:
    """Size every tensor of a model in a file type."""
    rules = Rules(ftype, types, _like(shape, layout))
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
    beside: dict[Part, Span] = {}
    for tensor in (*layout.outside, *((layout.rope,) if layout.rope else ())):
        part = place_of(tensor.name, shape.layers).part
        size = _span(tensor, kept_type(tensor) or rules.beside_type(tensor, tied=tied), types)
        beside[part] = beside.get(part, NOTHING) + size
    return GgufBytes(
        embedding=embedding,
        output=output,
        norm=beside.get("norm", NOTHING),
        rope=sum((beside.get(part, NOTHING) for part in ("output", "other")), NOTHING),
        layers=tuple(block[0] for block in blocks),
        experts=tuple(block[1] for block in blocks),
        tied=tied,
        lookup=beside.get("lookup", NOTHING),
        widest=tuple(block[2] for block in blocks),
    )


def table_span(elements: int, ftype: str, types: Mapping[str, GgmlType]) -> Span:
    """Size what is looked up by token beside the embedding: the quantiser treats it as one.

    Source: ``tensor_get_category`` of llama.cpp's ``src/llama-quant.cpp``.
    """
    tensor = Tensor("per_layer_token_embd.weight", elements)
    return _span(tensor, Rules(ftype, types).beside_type(tensor, tied=False), types)


def _like(shape: Shape, layout: Layout) -> str:
    """Whose rules of their own are followed."""
    of_70b = {"qwen2": True, "deci": True, "llama": shape.heads != shape.kv_heads}
    if shape.layers == _SEVENTY_B_LAYERS and of_70b.get(layout.architecture):
        return SEVENTY_B
    return FALCON if layout.architecture == FALCON else ""


def _grouping(shape: Shape) -> int:
    """Query heads per key/value head of the first layer, which the quantiser asks.

    None where it attends not, and the file states heads layer by layer.
    """
    listed = shape.recurrent is None or shape.recurrent.kind not in {"deltanet", "lightning"}
    kv = shape.kv_heads_by_layer[0] if shape.kv_heads_by_layer else shape.kv_heads
    if listed and shape.layer_kinds[0] in "RN" and shape.role == "decoder":
        return 0
    return shape.heads // kv if kv else 1


def _span(tensor: Tensor, kind: str, types: Mapping[str, GgmlType]) -> Span:
    stored = _stored(tensor, types[kind])
    return Span(stored, -(-stored // ALIGNMENT) * ALIGNMENT)


def _stored(tensor: Tensor, block: GgmlType) -> int:
    return block.block_bytes * (tensor.ne0 // block.block_elements) * tensor.ne1 * tensor.ne2


class _Part(NamedTuple):
    """A tensor of a block, with what its name says."""

    tensor: Tensor
    category: str
    kept: str | None
    """Its type where it is never quantised."""
    expert: bool


class _Kind(NamedTuple):
    """One kind of block: what every such block holds, and the tensors that differ by place."""

    fixed: Span
    fixed_experts: Span
    varying: tuple[_Part, ...]
    values: int
    """Tensors of category V, which the quantiser numbers."""
    downs: int
    widest: Widest
    """Of what is the same in every such block."""


def _parts(layout: Layout) -> Mapping[str, tuple[_Part, ...]]:
    """Read the names of a layout's blocks."""
    return {kind: tuple(map(_part, tensors)) for kind, tensors in layout.blocks.items()}


def _part(tensor: Tensor) -> _Part:
    kept = kept_type(tensor)
    category = "" if kept else category_of(tensor.name)
    return _Part(tensor, category, kept, "_exps." in tensor.name)


_Sized = tuple[Span, Span, Widest]


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
        self._grouping = _grouping(shape)
        self._kinds = {kind: self._kind(parts) for kind, parts in _parts(layout).items()}
        self._known: dict[tuple[str, ...], _Sized] = {}

    def sized(self) -> list[_Sized]:
        """Give bytes of every block, of its routed experts and of its largest tensors."""
        names = self._layout.kinds
        if not any(kind.varying for kind in self._kinds.values()):
            alike = {n: (k.fixed, k.fixed_experts, k.widest) for n, k in self._kinds.items()}
            return [alike[name] for name in names]
        kinds = [self._kinds[name] for name in names]
        values = sum(kind.values for kind in kinds)
        downs = sum(kind.downs for kind in kinds)
        series = {
            "V": self._series("V", values, values),
            "DOWN": self._series("DOWN", max(downs, len(kinds)), self._shape.layers),
            "UP": self._series("UP", len(kinds), self._shape.layers),
            "GATE": self._series("GATE", len(kinds), self._shape.layers),
        }
        return list(self._in_order(names, kinds, series))

    def _series(self, category: str, numbers: int, count: int) -> Sequence[str]:
        if not self._rules.varies(category):
            return ()
        sites = Sites(numbers, count, self._shape.layers, self._experts, self._grouping)
        rules = self._rules
        return preferred_types(rules.ftype, category, sites, rules.like)

    def _in_order(
        self, names: Sequence[str], kinds: Sequence[_Kind], series: Mapping[str, Sequence[str]]
    ) -> Iterator[_Sized]:
        """Number the tensors block by block; experts' DOWN go by block where the rules say so."""
        by_block = self._experts > 1 and not self._rules.low_bit
        known, value, down = self._known, 0, 0
        for index, (name, kind) in enumerate(zip(names, kinds, strict=True)):
            key, downs = [name], down
            for part in kind.varying:
                category = part.category
                if category == "V":
                    number = value
                elif category == "DOWN":
                    number, downs = index if by_block else downs, downs + 1
                else:
                    number = index
                key.append(series[category][number])
            found = known.get(tuple(key))
            if found is None:
                found = known[tuple(key)] = self._sum(kind, key[1:])
            yield found
            value += kind.values
            down += kind.downs

    def _kind(self, parts: Iterable[_Part]) -> _Kind:
        rules, types = self._rules, self._types
        anywhere = Site(0, 0, 0, self._shape.layers, self._experts, self._grouping)
        stored = placed = expert_stored = expert_placed = 0
        widest = (0, 0)
        varying = []
        for part in parts:
            if rules.varies(part.category):
                varying.append(part)
                continue
            name = part.kept or rules.block_type(part.tensor, part.category, anywhere)
            size = _stored(part.tensor, types[name])
            aligned = -(-size // ALIGNMENT) * ALIGNMENT
            stored += size
            placed += aligned
            widest = _wider(widest, part.category, size)
            if part.expert:
                expert_stored += size
                expert_placed += aligned
        numbered = [part.category for part in varying]
        return _Kind(
            Span(stored, placed),
            Span(expert_stored, expert_placed),
            tuple(varying),
            numbered.count("V"),
            numbered.count("DOWN"),
            widest,
        )

    def _sum(self, kind: _Kind, chosen: Iterable[str]) -> _Sized:
        whole, routed, widest = kind.fixed, kind.fixed_experts, kind.widest
        for part, preferred in zip(kind.varying, chosen, strict=True):
            span = _span(part.tensor, self._rules.fitting(part.tensor, preferred), self._types)
            whole += span
            routed += span if part.expert else NOTHING
            widest = _wider(widest, part.category, span.stored)
        return whole, routed, widest


def vision_bytes(model: StoredModel) -> int:
    """Size the image or audio tower with its projector."""
    return sum(tensor.n_bytes for tensor in model.vision_tensors)


def stored_bytes(model: StoredModel) -> GgufBytes:
    """Group the text model's bytes as placement needs them.

    ``placed`` counts what llama.cpp adds to align every tensor of a GGUF file; ``rope`` holds
    everything outside layers, embedding, output and final norm. Tensors that no runtime loads
    (multi-token prediction, buffers) are left out.
    """
    shape = model.shape
    outside: dict[Part, Span] = {}
    layers, experts = [NOTHING] * shape.layers, [NOTHING] * shape.layers
    widest = [(0, 0)] * shape.layers
    for tensor in model.tensors:
        span = _tensor_span(tensor, aligned=model.kind == "gguf")
        place = place_of(tensor.name, shape.layers)
        if place.part == "layer":
            layers[place.layer] += span
            experts[place.layer] += span if place.expert else NOTHING
            widest[place.layer] = _wider(widest[place.layer], category_of(tensor.name), span.stored)
        else:
            outside[place.part] = outside.get(place.part, NOTHING) + span
    embedding = outside.get("embedding", NOTHING)
    return GgufBytes(
        embedding=embedding,
        output=embedding if shape.tied else outside.get("output", NOTHING),
        norm=outside.get("norm", NOTHING),
        rope=outside.get("other", NOTHING) + outside.get("encoder", NOTHING),
        layers=tuple(layers),
        experts=tuple(experts),
        tied=shape.tied,
        lookup=outside.get("lookup", NOTHING),
        widest=tuple(widest),
    )


def _tensor_span(tensor: StoredTensor, *, aligned: bool) -> Span:
    size = tensor.n_bytes
    return Span(size, -(-size // ALIGNMENT) * ALIGNMENT if aligned else size)
