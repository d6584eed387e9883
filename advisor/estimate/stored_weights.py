"""Weight bytes of a model from its own files, tensor by tensor."""

from __future__ import annotations

from advisor.estimate.gguf_weights import ALIGNMENT, NOTHING, GgufBytes, Span
from advisor.memo import by_identity
from advisor.models.stored_tensors import Part, StoredModel, StoredTensor, place_of


def vision_bytes(model: StoredModel) -> int:
    """Size the image or audio tower with its projector."""
    return sum(tensor.n_bytes for tensor in model.vision_tensors)


@by_identity
def stored_bytes(model: StoredModel) -> GgufBytes:
    """Group the text model's bytes as placement needs them.

    ``placed`` counts what llama.cpp adds to align every tensor of a GGUF file; ``rope`` holds
    everything outside layers, embedding, output and final norm. Tensors that no runtime loads
    (multi-token prediction, buffers) are left out.
    """
    shape = model.shape
    outside: dict[Part, Span] = {}
    layers, experts = [NOTHING] * shape.layers, [NOTHING] * shape.layers
    for tensor in model.tensors:
        span = _span(tensor, aligned=model.kind == "gguf")
        place = place_of(tensor.name, shape.layers)
        if place.part == "layer":
            layers[place.layer] += span
            experts[place.layer] += span if place.expert else NOTHING
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
    )


def _span(tensor: StoredTensor, *, aligned: bool) -> Span:
    size = tensor.n_bytes
    return Span(size, -(-size // ALIGNMENT) * ALIGNMENT if aligned else size)
