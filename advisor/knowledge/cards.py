"""The cards of one machine, put together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from advisor.errors import RequestError
from advisor.knowledge.types import Gpu, Knowledge

MOST_CARDS = 64
TOGETHER = " + "
"""Between unequal cards in one machine, as names are written."""
_LEAST = (
    "compute_capability", "vram_bytes", "bandwidth_bytes_s", "cores", "multiprocessors",
    "tensor_cores", "fp16_tensor_tflops", "fp16_tensor_tflops_fp32acc", "fp16_shader_tflops",
    "int8_tops", "fp8_tflops", "fp4_tflops", "pcie_gen", "pcie_lanes", "nvlink_bytes_s", "released",
)  # fmt: skip
_T = TypeVar("_T", int, float, str)


class Cards(Struct, frozen=True):
    """The cards a request names."""

    gpu: Gpu
    """The card; of unequal ones a record of the least that all of them offer."""
    count: int
    each: tuple[Gpu, ...]
    """Every card in the order given where they are unequal; empty for equal ones."""
    counted: bool
    """Whether the text itself says how many there are."""
    others: tuple[Gpu, ...] = ()
    """What the name of the card could have meant too."""
    read_as: tuple[str, ...] = ()
    """Lines that say what a name was taken for, where it is none of the catalogue."""


def put_together(
    knowledge: Knowledge,
    found: Sequence[tuple[int, Gpu]],
    *,
    counted: bool,
    others: tuple[Gpu, ...] = (),
    read_as: tuple[str, ...] = (),
) -> Cards:
    """Put cards into one machine.

    Args:
        knowledge: The cards that are known.
        found: How many of each, in order.
        counted: See ``Cards``.
        others: See ``Cards``.
        read_as: See ``Cards``.

    Raises:
        UserError: These do not work together.
    """
    each = tuple(gpu for count, gpu in found for _ in range(count))
    first = each[0]
    check_beside(each)
    if all((gpu.name, gpu.vram_bytes) == (first.name, first.vram_bytes) for gpu in each):
        return Cards(first, len(each), (), counted, others, read_as)
    _check_together(each)
    return Cards(_least_of(knowledge, each), len(each), each, counted, others, read_as)


def check_beside(each: Sequence[Gpu]) -> None:
    """Refuse several cards of which one is a part of its machine.

    Raises:
        RequestError: One of them cannot have another beside it.
    """
    alone = next((gpu for gpu in each if gpu.stands_alone), None)
    if alone is None or len(each) == 1:
        return
    hint = "Give one, or one machine with more memory."
    if alone.segment == "mobile":
        hint = "Give one, or one card with more memory."
    raise RequestError(
        f"{alone.name} is a part of its machine: no other card can be put beside it", hint=hint
    )


def _check_together(each: Sequence[Gpu]) -> None:
    makers = sorted({gpu.vendor for gpu in each})
    if len(makers) > 1:
        raise RequestError(
            f"cards of {' and '.join(makers)} together cannot be sized: no back end is known to "
            "hold the same figures on both",
            hint="Name cards of one maker.",
        )
    for gpu in each:
        if gpu.vram_bytes is None:
            raise RequestError(
                f"how much memory {gpu.name} has is not known", hint="Write NAME:SIZE."
            )


def _least_of(knowledge: Knowledge, each: Sequence[Gpu]) -> Gpu:
    """Make a record of what every card offers: of each figure the least, unknown if one is.

    The segment and the type of memory are those of the smallest card, the generation is that of
    the card with the lowest compute capability. The board power is the highest, since that card
    must be cooled.
    """
    smallest = min(each, key=lambda gpu: (gpu.vram_bytes or 0, gpu.bandwidth_bytes_s or 0.0))
    barred = [name for framework in knowledge.frameworks.values() for name in framework.not_on]
    by_age = sorted(each, key=lambda gpu: (gpu.compute_capability or 0.0, gpu.released or ""))
    kept = max(by_age, key=lambda gpu: barred.count(gpu.architecture))
    power = [gpu.tdp_w for gpu in each]
    least = {name: _least([getattr(gpu, name) for gpu in each]) for name in _LEAST}
    return replace(
        smallest,
        name=_spelled(each),
        aliases=(),
        segment="mobile" if any(gpu.segment == "mobile" for gpu in each) else smallest.segment,
        architecture=kept.architecture,
        bus_width_bits=None,
        bf16=_all_of([gpu.bf16 for gpu in each]),
        tdp_w=None if None in power else max(p for p in power if p is not None),
        launch_price_usd=None,
        disputed={field: values for gpu in each for field, values in gpu.disputed.items()},
        sources={},
        **least,
    )


def _least(values: Iterable[_T | None]) -> _T | None:
    known = list(values)
    return None if None in known else min(value for value in known if value is not None)


def _all_of(values: Sequence[bool | None]) -> bool | None:
    if False in values:
        return False
    return None if None in values else True


def _spelled(each: Sequence[Gpu]) -> str:
    runs = ((name, len(list(run))) for name, run in groupby(gpu.name for gpu in each))
    return TOGETHER.join(f"{count}x {name}" if count > 1 else name for name, count in runs)
