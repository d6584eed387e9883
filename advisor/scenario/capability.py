"""The capability table, asked: what a runtime does on this card, with this model."""

from __future__ import annotations

from advisor.knowledge.capabilities import About, Capability
from advisor.knowledge.types import Framework, Gpu
from advisor.models.shape import Shape

DTYPES = ("float16", "bfloat16")
"""Types that a model of 16 bits or fewer is computed in."""


def asked(
    framework: Framework,
    about: About,
    what: str,
    gpu: Gpu | None,
    shape: Shape | None,
    *,
    backend: str | None = None,
) -> Capability | None:
    """Find the row that answers a question; None: only the lists of frameworks.yaml say anything.

    Args:
        framework: The runtime.
        about: The kind of question.
        what: The name in question, as in ``of`` of the rows.
        gpu: The card; without one no row about cards holds.
        shape: The model's architecture; without one no row about models holds.
        backend: CUDA, ROCm ...; None: the one that is usual for the card.
    """
    for row in framework.capabilities:
        named = row.about == about and (not row.of or what in row.of)
        if named and _holds_card(row, gpu, backend) and _holds_model(row, shape):
            return row
    return None


def refusal(
    framework: Framework, about: About, what: str, gpu: Gpu | None, shape: Shape | None
) -> str:
    """Say in one clause why the runtime refuses; empty where it does not."""
    row = asked(framework, about, what, gpu, shape)
    return row.why if row and row.answer == "refused" else ""


def dtypes(framework: Framework, gpu: Gpu | None, shape: Shape) -> tuple[str, ...]:
    """List the 16-bit types that the runtime computes this model in on this card."""
    return tuple(d for d in DTYPES if not refusal(framework, "dtype", d, gpu, shape))


def _holds_card(row: Capability, gpu: Gpu | None, backend: str | None) -> bool:
    if gpu is None:
        return not (row.vendors or row.architectures or row.backends)
    if row.vendors and gpu.vendor not in row.vendors:
        return False
    if row.architectures and gpu.architecture not in row.architectures:
        return False
    if row.backends and backend is not None and backend not in row.backends:
        return False
    return _within(row, gpu.compute_capability)


def _within(row: Capability, capability: float | None) -> bool:
    """Whether a compute capability lies in the range of a row; an unknown one lies in none."""
    low, high = row.from_capability, row.below_capability
    if low is None and high is None:
        return True
    return capability is not None and (low or 0) <= capability < (high or float("inf"))


def _holds_model(row: Capability, shape: Shape | None) -> bool:
    if shape is None:
        return not (
            row.attention or row.other_head_sizes or row.model_types or row.other_model_types
            or row.experts
        )  # fmt: skip
    kinds = {shape.model_type, shape.outer_type} - {""}
    if row.attention and ("mla" if shape.mla else "heads") not in row.attention:
        return False
    if row.other_head_sizes and str(shape.head_dim) in row.other_head_sizes:
        return False
    if row.model_types and not kinds & set(row.model_types):
        return False
    if row.other_model_types and kinds & set(row.other_model_types):
        return False
    return not row.experts or shape.moe is not None
