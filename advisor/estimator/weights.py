"""Weight bytes of a model in a format: one profile per pair, shared by every what-if."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from advisor.errors import RequestError
from advisor.estimator.gguf_tensors import Layout, gguf_layout
from advisor.estimator.gguf_types import BASE_TYPES, kept_type
from advisor.estimator.gguf_weights import (
    GgufBytes,
    Span,
    gguf_bytes,
    stored_bytes,
    table_span,
    vision_bytes,
)
from advisor.knowledge.types import Format, Framework, GgmlType
from advisor.memo import by_identity_up_to
from advisor.models.shape import LLAMA_BLOCKS, Shape, kept_in_full, mean_bits, packs_head
from advisor.runtimes import runtime_of
from advisor.runtimes.base import Weights, prefix_sums
from advisor.scenario.capability import config_of
from advisor.scenario.figures import WeightProfile
from advisor.scenario.support import KEPT_EXPERTS

if TYPE_CHECKING:
    from advisor.models.stored_tensors import Model

_MATRICES_PER_EXPERT = 3


class ParameterSplit(Struct, frozen=True):
    """Parameter counts; ``vectors`` are the norms, biases and routers no format quantises."""

    embedding: int
    output: int
    """0 when tied."""
    lookup: int
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
            moe=replace(experts, width=experts.width or width) if experts else None,
            mla=None,
            recurrent=None,
            kv_heads_by_layer=None,
            lookup=0,
            counts=None,
        )


def _parameter_split(model: Model, layout: Layout | None) -> ParameterSplit:
    """Split a model's parameters, exactly where its counts are known, else evenly over layers."""
    shape, counts = model.shape, model.shape.counts
    text = model.parameters - model.vision_parameters - shape.lookup
    if counts is None:
        embedding = shape.vocab * shape.hidden
        output = 0 if shape.tied else embedding
        each = max(text - embedding - output, 0) // max(shape.layers, 1)
        layers = (each,) * shape.layers
        experts = tuple(_experts(shape, kind, each) for kind in shape.ffn_kinds)
    else:
        embedding, output = counts.embedding, counts.output
        layers, experts = counts.layers, counts.experts
    other = max(text - embedding - output - sum(layers), 0)
    vectors = tuple(map(min, _vectors(shape, layout), layers))
    vision = model.vision_parameters
    return ParameterSplit(embedding, output, shape.lookup, other, layers, experts, vectors, vision)


def _experts(shape: Shape, kind: str, layer: int) -> int:
    if kind != "E" or not shape.moe:
        return 0
    all_experts = shape.moe.experts * _MATRICES_PER_EXPERT * shape.hidden * shape.moe.width
    return min(all_experts, layer)


def _vectors(shape: Shape, layout: Layout | None) -> tuple[int, ...]:
    if layout is None:
        norms = 2 * shape.hidden
        router = shape.hidden * shape.moe.experts if shape.moe else 0
        return tuple(norms + (router if kind == "E" else 0) for kind in shape.ffn_kinds)
    kept = {
        kind: sum(tensor.elements for tensor in tensors if kept_type(tensor))
        for kind, tensors in layout.blocks.items()
    }
    return tuple(kept[kind] for kind in layout.kinds)


_PLAIN_FILE_TYPES = {"FP16": "F16", "F16": "F16", "BF16": "BF16", "FP32": "F32", "F32": "F32"}
_HEAD_TOO = frozenset({"exl2", "exl3"})
_EVERYTHING = frozenset({"mlx"})
_VISION_TOO = frozenset({"bnb", "mlx"})
_PLAIN_BITS = 16
_UNCHECKED_SHARE = 0.01
_SPREAD_SHARE = 0.03
_MOST_MODELS = 512
"""Room for every model of a catalogue: some 4 KB for each of its formats."""


def weight_profile(
    model: Model,
    precision: Format,
    framework: Framework,
    ggml_types: Mapping[str, GgmlType],
) -> WeightProfile:
    """Say where the weight bytes of a model lie, once per model and format.

    Raises:
        RequestError: The format's bits per weight are unknown.
    """
    return weights_of(model, precision, framework, ggml_types).profile


def weights_of(
    model: Model,
    precision: Format,
    framework: Framework,
    ggml_types: Mapping[str, GgmlType],
) -> Weights:
    """Size and group the weights of a model in a format, the same in engines that read one file.

    Raises:
        RequestError: The format's bits per weight are unknown.
    """
    as_gguf = precision.kind == "gguf" or runtime_of(framework).gguf_alone
    return _known(model).weights(precision, ggml_types, as_gguf=as_gguf)


class _Known:
    """A model, what its weights have in every format, and what was found for formats so far."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.layout = gguf_layout(model.shape)
        self.split = _parameter_split(model, self.layout)
        self._found: dict[tuple[int, bool, int], tuple[Weights, object]] = {}

    def weights(
        self, precision: Format, ggml_types: Mapping[str, GgmlType], *, as_gguf: bool
    ) -> Weights:
        """Size the model in a format, once; an entry holds what its key is the identity of."""
        key = (id(precision), as_gguf, id(ggml_types))
        found = self._found.get(key)
        if found is None:
            made = _weights(self, precision, ggml_types, as_gguf=as_gguf)
            if self.model.shape.spread and not self.model.stored:
                made = _estimated(made, self.model.shape.spread)
            found = self._found[key] = (made, (precision, ggml_types))
        return found[0]


_known = by_identity_up_to(_MOST_MODELS)(_Known)
"""Without it a plan takes 2.14 times as long, lines of ``estimate`` 5.2."""


def _estimated(found: Weights, spread: float) -> Weights:
    """Widen what is known of weights whose number is an estimate."""
    why = (*found.approximate, "weights: architecture not described: parameters estimated")
    return replace(found, approximate=why, spread=max(found.spread, spread))


def _weights(
    known: _Known, precision: Format, ggml_types: Mapping[str, GgmlType], *, as_gguf: bool
) -> Weights:
    model, layout = known.model, known.layout
    if (stored := model.stored) and stored.format_name == precision.name:
        return _gguf(model, stored_bytes(stored), (), 0.0, vision=vision_bytes(stored))
    ftype = _file_type(precision, as_gguf=as_gguf, moe=model.shape.moe is not None)
    if ftype is None:
        return _plain(known, precision)
    if layout is None:
        return _gguf_without_layout(known, ftype, ggml_types)
    unchecked = ("weights: the types that this format gives each tensor were not checked",)
    why: tuple[str, ...] = () if ftype in BASE_TYPES else unchecked
    if unlisted := _unlisted(model, layout):
        why += ("weights: parts beside the text model are taken at 16 bits",)
    found = gguf_bytes(model.shape, layout, ftype, ggml_types)
    if model.native_formats[:1] == (KEPT_EXPERTS,):  # what is published as FP4+FP8 is packed anew
        found = found.with_experts(gguf_bytes(model.shape, layout, KEPT_EXPERTS, ggml_types))
    spread = _UNCHECKED_SHARE if why else 0.0
    return _gguf(model, found, why, spread, vision=2 * (model.vision_parameters + unlisted))


def _unlisted(model: Model, layout: Layout) -> int:
    """Count the parameters of a model without exact counts that no list of tensors holds."""
    if model.shape.counts is not None:
        return 0
    beside = model.parameters - model.vision_parameters - layout.elements
    return beside if beside > _UNCHECKED_SHARE * model.parameters else 0


def _file_type(precision: Format, *, as_gguf: bool, moe: bool) -> str | None:
    """Name llama.cpp's file type, or a ggml type to be used for every tensor of the blocks."""
    if precision.kind == "gguf":
        name = precision.name.removesuffix(" (GGUF)")
        return "MXFP4_MOE" if name == "MXFP4" and moe else name
    return _PLAIN_FILE_TYPES.get(precision.name) if as_gguf else None


def _gguf(
    model: Model, found: GgufBytes, why: tuple[str, ...], spread: float, *, vision: int
) -> Weights:
    moe = model.shape.moe
    profile = WeightProfile(
        embedding_bytes=found.embedding.stored,
        output_bytes=found.output.stored + found.norm.stored,
        tied=found.tied,
        layer_bytes=tuple(layer.stored for layer in found.layers),
        expert_bytes=tuple(layer.stored for layer in found.experts),
        experts=moe.experts if moe else 0,
        experts_used=moe.used if moe else 0,
        vision_bytes=vision,
        other_bytes=found.rope.stored,
        lookup_bytes=found.lookup.stored,
        total_bytes=found.stored + vision,
        exact=not why,
    )
    return Weights(
        profile=profile,
        embedding=found.embedding.placed,
        lookup=found.lookup.placed,
        output=found.output.placed + found.norm.placed,
        norm=found.norm.placed,
        rope=found.rope.placed,
        layer_sums=prefix_sums([layer.placed for layer in found.layers]),
        expert_sums=prefix_sums([layer.placed for layer in found.experts]),
        approximate=why,
        spread=spread,
        widest=found.widest,
    )


def _gguf_without_layout(known: _Known, ftype: str, ggml_types: Mapping[str, GgmlType]) -> Weights:
    """Size an architecture without a tensor list by the average of a Llama of its widths."""
    model, split = known.model, known.split
    why = ("weights: no tensor list for this architecture, sized by average",)
    if model.shape.role == "encoder-decoder" and (kind := ggml_types.get(ftype)):
        return _ggml(model, split, kind.bits_per_weight, why)
    layout = gguf_layout(likeness := split.likeness(model.shape))
    assert layout is not None
    alike = gguf_bytes(likeness, layout, ftype, ggml_types)
    elements = sum(layout.block_elements(kind) for kind in layout.kinds)
    per_weight = sum(layer.stored for layer in alike.layers) / elements
    layers, experts = ([round(n * per_weight) for n in s] for s in (split.layers, split.experts))
    alone = GgufBytes(
        embedding=alike.embedding,
        output=alike.output,
        norm=Span(2 * split.other, 2 * split.other),
        rope=Span(0, 0),
        layers=tuple(Span(size, size) for size in layers),
        experts=tuple(Span(size, size) for size in experts),
        tied=alike.tied,
        lookup=table_span(split.lookup, ftype, ggml_types),
    )
    return _gguf(model, alone, why, _SPREAD_SHARE, vision=2 * model.vision_parameters)


def _ggml(model: Model, split: ParameterSplit, bits: float, why: tuple[str, ...]) -> Weights:
    """Size matrices of one type; of what hears, positions in 32 bits, a convolution in 16."""
    sound, wide = model.shape.encoder_positions, model.shape.hidden
    places = wide * (sound + (model.trained_context_tokens or 0)) if sound else 0
    kept = places * (32 / bits - 1) + (3 * wide * wide * (16 / bits - 1) if sound else 0)
    one = _full_width(model, replace(split, other=split.other + round(kept)), bits)
    output = one.output + one.embedding * one.profile.tied
    return replace(one, output=output, approximate=why, spread=_SPREAD_SHARE)


def _plain(known: _Known, precision: Format) -> Weights:
    bits = precision.bits_per_weight
    if bits is None:
        hint = "Choose another precision, or add the figure to knowledge/."
        raise RequestError(f"the bits per weight of {precision.name} are not known", hint=hint)
    if precision.family == "unquantized":
        return _full_width(known.model, known.split, bits)
    return _quantised(known.model, known.split, precision, bits)


def _full_width(model: Model, split: ParameterSplit, bits: float) -> Weights:
    size = bits / 8
    exact = model.shape.counts is not None and model.shape.described
    return _grouped(
        model,
        embedding=round(split.embedding * size),
        output=round(split.output * size),
        lookup=round(split.lookup * size),
        other=round(split.other * size),
        layers=_times(split.layers, size),
        experts=_times(split.experts, size),
        vision=round(split.vision * size),
        approximate=() if exact else ("weights: total known, spread over the layers evenly",),
    )


def _quantised(model: Model, split: ParameterSplit, precision: Format, bits: float) -> Weights:
    family, own = precision.family, (precision.name, "config") == (model.held_format, model.origin)
    if family == "exl3" and model.shape.tied:  # ``lm_head.trellis``, by ``modules/linear.py``
        split = replace(split, output=split.embedding)
        model = replace(model, shape=replace(model.shape, tied=False))
    stated = {} if own else config_of(model, precision)
    usual = () if own else kept_in_full({"ignore": precision.keeps}, model.shape)  # others pack so
    bits = (model.held_bits if own else mean_bits(stated, model.shape)) or bits
    size, full = bits / 8, _PLAIN_BITS / 8
    beside = (precision.beside_experts if any(split.experts) else None) or bits
    tables = (precision.beside_experts or _PLAIN_BITS) / 8
    wide = model.held_wide if own else kept_in_full(stated, model.shape) if stated else usual
    head = family in _HEAD_TOO | _EVERYTHING or (model.held_head if own else packs_head(stated))
    kept = map(max, split.vectors, map(min, wide or (0,) * len(split.layers), split.layers))
    alike = [*zip(split.layers, split.experts, kept, strict=True)]
    known = {one: _layer_bytes(*one, bits=bits, beside=beside) for one in set(alike)}
    sized = _grouped(
        model,
        embedding=round(split.embedding * (size if family in _EVERYTHING else full)),
        output=round(split.output * (size if head else full)),
        lookup=round(split.lookup * (size if family in _EVERYTHING else tables)),
        other=round(split.other * (size if model.shape.role == "encoder-decoder" else full)),
        layers=[known[one] for one in alike],
        experts=_times(split.experts, size),
        vision=round(split.vision * (size if family in _VISION_TOO else full)),
        approximate=("weights: nominal bits on the linear layers, 16 on the rest",),
    )
    total, packed = sized.profile.total_bytes, sum(split.layers) - sum(split.vectors)
    lean = 0.0 if own else (size - (precision.lean_bits or bits) / 8) * packed / total
    return replace(sized, spread=max(sized.spread, sum(usual) * (full - size) / total), lean=lean)


def _layer_bytes(count: int, experts: int, wide: int, *, bits: float, beside: float) -> int:
    """Size a layer of ``count`` weights, ``wide`` of them in 16 bits."""
    packed = min(experts, count - wide)
    return round((packed * bits + (count - wide - packed) * beside + wide * _PLAIN_BITS) / 8)


def _times(counts: Sequence[int], size: float) -> list[int]:
    """Turn counts into bytes; most layers of a model are alike."""
    known = {count: round(count * size) for count in set(counts)}
    return [known[count] for count in counts]


def _grouped(
    model: Model,
    *,
    embedding: int,
    output: int,
    lookup: int,
    other: int,
    layers: Sequence[int],
    experts: Sequence[int],
    vision: int,
    approximate: tuple[str, ...],
) -> Weights:
    moe, tied = model.shape.moe, model.shape.tied
    profile = WeightProfile(
        embedding_bytes=embedding,
        output_bytes=embedding if tied else output,
        tied=tied,
        layer_bytes=tuple(layers),
        expert_bytes=tuple(experts),
        experts=moe.experts if moe else 0,
        experts_used=moe.used if moe else 0,
        vision_bytes=vision,
        other_bytes=other,
        lookup_bytes=lookup,
        total_bytes=embedding + output + lookup + other + sum(layers) + vision,
        exact=not approximate,
    )
    return Weights(
        profile=profile,
        embedding=embedding,
        lookup=lookup,
        output=output + other,
        norm=other,
        rope=0,
        layer_sums=prefix_sums(layers),
        expert_sums=prefix_sums(experts),
        approximate=approximate,
        spread=_UNCHECKED_SHARE if approximate else 0.0,
    )
