"""Parameters of a model in the groups that formats treat differently."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from advisor.estimate.gguf_tensors import gguf_layout
from advisor.estimate.gguf_types import kept_type
from advisor.models.shape import LLAMA_BLOCKS, Moe, Shape

if TYPE_CHECKING:
    from advisor.models.model import Model

_MATRICES_PER_EXPERT = 3


class ParameterSplit(Struct, frozen=True):
    """Parameter counts; ``vectors`` are the norms, biases and routers no format quantises."""

    embedding: int
    output: int
    """0 when tied."""
    other: int
    layers: tuple[int, ...]
    experts: tuple[int, ...]
    vectors: tuple[int, ...]
    vision: int

    def likeness(self, shape: Shape) -> Shape:
        """Describe a Llama of the same widths, to borrow its average bits per weight."""
        experts = shape.moe if any(self.experts) else None
        width = shape.intermediate or 4 * shape.hidden
        return replace(
            shape,
            model_type="mixtral" if experts else "llama",
            blocks=LLAMA_BLOCKS,
            gated=True,
            windows=True,
            heads=shape.heads or 1,
            kv_heads=shape.kv_heads or shape.heads or 1,
            head_dim=shape.head_dim or shape.hidden,
            intermediate=width,
            layer_kinds="F" * shape.layers,
            ffn_kinds=("E" if experts else "D") * shape.layers,
            moe=_whole_width(experts, width) if experts else None,
            mla=None,
            recurrent=None,
            kv_heads_by_layer=None,
            counts=None,
        )


def _whole_width(moe: Moe, width: int) -> Moe:
    return moe if moe.width else replace(moe, width=width)


def parameter_split(model: Model) -> ParameterSplit:
    """Split a model's parameters, exactly where its counts are known, else evenly over layers."""
    shape, counts = model.shape, model.shape.counts
    vision = model.vision_parameters
    if counts is None:
        embedding = shape.vocab * shape.hidden
        output = 0 if shape.tied else embedding
        total = model.parameters
        each = max(total - vision - embedding - output, 0) // max(shape.layers, 1)
        layers = (each,) * shape.layers
        experts = tuple(_experts(shape, kind, each) for kind in shape.ffn_kinds)
    else:
        embedding, output, total = counts.embedding, counts.output, counts.total
        layers, experts = counts.layers, counts.experts
    other = max(total - vision - embedding - output - sum(layers), 0)
    vectors = tuple(map(min, _vectors(shape), layers))
    return ParameterSplit(embedding, output, other, layers, experts, vectors, vision)


def _experts(shape: Shape, kind: str, layer: int) -> int:
    if kind != "E" or not shape.moe:
        return 0
    all_experts = shape.moe.experts * _MATRICES_PER_EXPERT * shape.hidden * shape.moe.width
    return min(all_experts, layer)


def _vectors(shape: Shape) -> tuple[int, ...]:
    layout = gguf_layout(shape)
    if layout is None:
        norms = 2 * shape.hidden
        router = shape.hidden * shape.moe.experts if shape.moe else 0
        return tuple(norms + (router if kind == "E" else 0) for kind in shape.ffn_kinds)
    kept = {
        kind: sum(tensor.elements for tensor in tensors if kept_type(tensor))
        for kind, tensors in layout.blocks.items()
    }
    return tuple(kept[kind] for kind in layout.kinds)
