"""Which repository holds a model in a format, and what its files are cut into."""

from __future__ import annotations

from collections.abc import Mapping

from advisor.knowledge.types import Format, Framework
from advisor.models.stored_tensors import Model

_HELD = ("fp8", "mxfp4", "nvfp4", "int4-experts", "packed")
_FEED_FORWARD = frozenset(
    {"mlp", "gate_proj", "up_proj", "down_proj", "gate_up_proj", "shared_expert", "shared_experts"}
)
"""Modules of a config's list of what is not quantised that leave open which widths are."""


def holds_family(model: Model) -> str:
    """The family of the format in the model's repository, as far as it is stated."""
    text = (model.native_dtype or "").casefold()
    return next((family for family in _HELD if family in text), "unquantized")


def as_held(model: Model, precision: Format) -> bool:
    """Whether the model's own files are in this very format."""
    if model.held_format:
        return precision.name == model.held_format
    return holds_family(model) == precision.family


def repository_of(model: Model, precision: Format) -> str | None:
    """The repository that holds the weights in this very format, where one is known."""
    if as_held(model, precision) or model.hf_id is None:
        return model.hf_id
    if model.held_format or precision.kind == "gguf" or precision.family == "bnb":
        return None
    from advisor.reading.published import packings_of  # noqa: PLC0415  formats of servers

    return packings_of(model.hf_id).get(precision.name)


def cut_width(framework: Framework, precision: Format, model: Model, cards: int) -> int | None:
    """Give a feed-forward width of which no card can hold whole blocks, where the server needs it.

    Blocks are rows and columns that share a scale; only files known to hold such are cut, so None
    where every share is whole, and where nothing tells.
    """
    limit, block = framework.format_limits.get(precision.family), precision.block
    if cards == 1 or not limit or not block:
        return None
    widths = _widths(model)
    cut = (widths[part] for part in limit.whole_blocks if widths[part] % (cards * block))
    width = next(cut, None)
    return width if width and _in_blocks(precision, model) else None


def _widths(model: Model) -> Mapping[str, int]:
    """Widths that every card takes a share of, by part; 0 for a part that the model lacks."""
    shape = model.shape
    return {
        "dense": shape.intermediate if "D" in shape.ffn_kinds else 0,
        "shared": shape.moe.shared_width if shape.moe else 0,
    }


def _in_blocks(precision: Format, model: Model) -> bool:
    """Whether the files hold all feed-forward weights in the format's blocks: stated, or known."""
    stated = model.shape.quantization
    if stated and as_held(model, precision):
        kept = stated.get("modules_to_not_convert") or ()
        names = {str(name).rpartition(".")[2] for name in kept} if isinstance(kept, list) else set()
        whole = stated.get("weight_block_size") == [precision.block] * 2
        return whole and not names & _FEED_FORWARD
    if model.origin == "config":
        return False
    publisher = (repository_of(model, precision) or "").partition("/")[0]
    return publisher in precision.block_publishers
