"""Where the bytes of a stored model lie, by what the product groups them with."""

from __future__ import annotations

from advisor.estimator.gguf_weights import stored_bytes, vision_bytes
from advisor.models.stored_tensors import StoredModel
from advisor.scenario.figures import WeightProfile


def stored_profile(model: StoredModel) -> WeightProfile:
    """Say where the weight bytes of a stored model lie; every figure is the files' own."""
    found = stored_bytes(model)
    moe = model.shape.moe
    vision = vision_bytes(model)
    return WeightProfile(
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
        exact=True,
    )
