"""The cards and the RAM of a machine as a request names them, through the one reader of names.

Tools name a card and the memory that programs can have of it: 24,564 MiB of 24 GB, with ECC
15,360 MiB of 16 GB. So a size as sold is tried from what was read up to a tenth above it; of one
that shares the memory of its machine a quarter, as the system keeps a part for itself.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, islice

from msgspec import Struct
from msgspec.structs import replace

from advisor.errors import RequestError, UserError, did_you_mean
from advisor.knowledge.catalogue import Cards, put_together, sizes_of
from advisor.knowledge.types import Gpu, Knowledge
from advisor.reading import find_cards
from advisor.reading.known import listed
from advisor.reading.machine.probe import Card, Machine
from advisor.reading.ram import RamKind, find_cpu, ram_types, read_ram
from advisor.units import GIB, counted

_ABOVE = 1.1
_ABOVE_SHARED = 1.25
_ROUNDING = 0.1
"""GiB by which a tool may show more than is sold."""
_SLICE = re.compile(r"(?:\d+c\.)?(\d+)g\.(\d+)gb(\+.*)?")
_SHARES = 7
"""Compute slices of a card that can be cut; an A30, with a quarter of the memory each, has 4."""
_SHARES_A30 = 4
_BY_COMPUTE = (
    "cores", "multiprocessors", "tensor_cores", "fp16_tensor_tflops", "fp16_tensor_tflops_fp32acc",
    "fp16_shader_tflops", "fp32_tflops", "int8_tops", "fp8_tflops", "fp4_tflops",
)  # fmt: skip


class Known(Struct, frozen=True):
    """A card of this machine, and what the catalogue has of it."""

    card: Card
    gpu: Gpu | None
    lines: tuple[str, ...] = ()
    """What was assumed, or why it is not known."""


def known_cards(machine: Machine, knowledge: Knowledge) -> Sequence[Known]:
    """Find every card of a machine in the catalogue, each slice of a cut one beside it."""
    return [_known(_with_processor(card, machine), knowledge) for card in machine.cards]


def local_cards(machine: Machine, knowledge: Knowledge) -> Cards:
    """Put the cards of a machine together as a request would name them.

    Graphics of the processor beside a card, cards that are not known, and those of a second maker
    are left out, and that is said.

    Raises:
        RequestError: It has no card, or none that is known.
        UserError: These do not work together.
    """
    each = known_cards(machine, knowledge)
    if not each:
        raise _none_found(machine)
    known = [one for one in each if one.gpu]
    if not known:
        raise _none_known(each, knowledge)
    kept = _kept(known)
    gpus = [one.gpu for one in kept if one.gpu]
    cards = put_together(knowledge, [(1, gpu) for gpu in gpus], counted=False)
    told = [line for one in kept for line in one.lines]
    lines = (_has(gpus, kept), *dict.fromkeys(told), *_left_out(each, kept))
    return replace(cards, counted=bool(cards.each), read_as=lines)


def _kept(known: Sequence[Known]) -> Sequence[Known]:
    """Keep cards before graphics of the processor, of the maker with most memory, and whole ones.

    Where all are cut, the largest slice stays.
    """
    apart = [one for one in known if not one.card.integrated] or known[:1]
    total = {one.card.vendor: 0 for one in apart}
    for one in apart:
        total[one.card.vendor] += (one.gpu and one.gpu.vram_bytes) or 0
    maker = max(total, key=lambda name: total[name])
    of_one = [one for one in apart if one.card.vendor == maker]
    whole = [one for one in of_one if one.gpu and not one.gpu.slice_of]
    return whole or [max(of_one, key=lambda one: (one.gpu and one.gpu.vram_bytes) or 0)]


def _has(gpus: Sequence[Gpu], kept: Sequence[Known]) -> str:
    runs = ((gpu, len(list(run))) for gpu, run in groupby(gpus))
    named = [f"{n}x {_with_size(gpu)}" for gpu, n in runs]
    return f"This machine has {' and '.join(named)}, as {kept[0].card.source} says."


def _with_size(gpu: Gpu) -> str:
    size = f"{gpu.vram_bytes / GIB:g} GB" if gpu.vram_bytes else ""
    return gpu.name if not size or size in gpu.name else f"{gpu.name} with {size}"


def _left_out(each: Sequence[Known], kept: Sequence[Known]) -> Iterator[str]:
    for one in each:
        if any(one is other for other in kept):
            continue
        why = "which is not in the catalogue" if one.gpu is None else "of another maker"
        if one.gpu and one.card.integrated:
            why = "the graphics of the processor"
        elif one.gpu and one.gpu.slice_of:
            why = "which is cut into MIG slices"
        yield f"Left out: {one.card.name}, {why}."


def _with_processor(card: Card, machine: Machine) -> Card:
    """Give graphics of a processor its name as one more, and the memory that it shares."""
    if not card.integrated or card.shares_memory or machine.ram is None:
        return card
    return replace(
        card,
        told_too=(*(card.told_too or (card.name,)), *filter(None, (machine.cpu,))),
        memory_bytes=machine.ram.total_bytes + (card.memory_bytes or 0),
        free_bytes=machine.ram.free_bytes,
        shares_memory=True,
    )


def _known(card: Card, knowledge: Knowledge) -> Known:
    for name in (*card.told_too[:1], card.name, *card.told_too[1:]):
        if found := _read(name, card, knowledge):
            return _sliced(found, card)
    several = [found for name in card.one_of if (found := _read(name, card, knowledge))]
    exact = [found for found in several if not found.lines] or several
    names = list(dict.fromkeys(found.gpu.name for found in exact if found.gpu))
    if not exact:
        return Known(card, None)
    line = f"{card.name} is taken for the {names[0]}; it could also be {listed(names[1:])}."
    return Known(card, exact[0].gpu, (*exact[0].lines, line)) if names[1:] else exact[0]


def _read(name: str, card: Card, knowledge: Knowledge) -> Known | None:
    """Read one name of a card, with the memory that was read of it."""
    size = card.memory_bytes
    if size is not None and (cards := _of_size(name, card, size, knowledge)):
        return Known(card, cards.gpu)
    cards = _named(name, knowledge)
    if cards is None:
        return None
    gpu = cards.gpu
    if size is None or not gpu.vram_bytes:
        return Known(card, gpu, cards.read_as)
    shown = f"{card.source} shows {size / GIB:.1f} GiB on the {gpu.name}"
    if abs(2 * size / gpu.vram_bytes - 1) < _ROUNDING:
        half = _part_of(gpu, f"{gpu.name} (one half)", gpu.vram_bytes // 2, 0.5, 0.5)
        line = f"{shown}, so this is one of its two halves, with half of its bandwidth and compute."
        return Known(card, half, (line,))
    sold = max(1, round(size / GIB + 2 * _ROUNDING)) * GIB
    line = f"{shown}, which the catalogue does not have; it is sized with {sold / GIB:g} GB."
    return Known(card, replace(gpu, vram_bytes=sold), (line,))


def _of_size(name: str, card: Card, size: int, knowledge: Knowledge) -> Cards | None:
    """Find a card by its name and a size that it is sold with; of no known size: by the first."""
    read = size / GIB
    above = _ABOVE_SHARED if card.shares_memory else _ABOVE
    for sold in range(max(1, math.ceil(read - _ROUNDING)), math.ceil(read * above) + 1):
        if cards := _named(f"{name}:{sold}GB", knowledge):
            known = knowledge.gpus.get(cards.gpu.name)
            sizes = sizes_of(known) if known else ()
            if not sizes or sold * GIB in sizes:
                return cards
    return None


def _named(text: str, knowledge: Knowledge) -> Cards | None:
    try:
        return find_cards(knowledge, text)
    except UserError:
        return None


# ---- a card that is cut


def _sliced(known: Known, card: Card) -> Known:
    """Give the largest MIG slice of a card: a program computes on one."""
    parts = [found for profile in card.slices if (found := _SLICE.fullmatch(profile))]
    gpu = known.gpu
    if not parts or gpu is None or not gpu.vram_bytes:
        return known
    part = max(parts, key=lambda one: (int(one[2]), int(one[1])))
    memory, shares = int(part[2]) * GIB, _SHARES_A30 if "A30" in gpu.name.split() else _SHARES
    read, computed = min(1.0, memory / gpu.vram_bytes), min(1.0, int(part[1]) / shares)
    cut = _part_of(gpu, f"{gpu.name} MIG {part[0]}", memory, read, computed)
    line = (
        f"The {gpu.name} is cut into {counted(len(card.slices), 'MIG slice')}; a program has one "
        f"of them. The largest, {part[0]}, has {read:.0%} of its memory and bandwidth and "
        f"{computed:.0%} of its compute."
    )
    return Known(card, replace(cut, slice_of=gpu.name), (*known.lines, line))


def _part_of(gpu: Gpu, name: str, memory: int, read: float, computed: float) -> Gpu:
    """Give a part of a card: this memory, a share of the bandwidth, and one of the compute."""
    figures = {figure: _share(getattr(gpu, figure), computed) for figure in _BY_COMPUTE}
    return replace(
        gpu,
        name=name,
        vram_bytes=memory,
        bandwidth_bytes_s=_share(gpu.bandwidth_bytes_s, read),
        **figures,
    )


def _share(value: float | None, part: float) -> float | None:
    if value is None:
        return None
    return int(value * part) if isinstance(value, int) else value * part


# ---- nothing that is known


def _none_found(machine: Machine) -> RequestError:
    told = " ".join(machine.unread)
    return RequestError(
        "no GPU was found on this machine" + (f": {told}".rstrip(".") if told else ""),
        hint="'advisor doctor' shows what was read. Name the card (--gpu NAME), or size the "
        "processor alone (--gpu cpu).",
    )


def _none_known(each: Sequence[Known], knowledge: Knowledge) -> RequestError:
    shown = [
        f"{one.card.name}"
        + (f" with {one.card.memory_bytes / GIB:.1f} GiB" if one.card.memory_bytes else "")
        for one in each
    ]
    nearest = did_you_mean(each[0].card.name, knowledge.gpus)
    return RequestError(
        f"this machine has {' and '.join(shown)} ({each[0].card.source}), which is not in the "
        "catalogue",
        hint=f"{nearest} Name a card like it (--gpu NAME:SIZE), or add a record to gpus/ of your "
        "knowledge folder ('advisor init' makes one).".strip(),
    )


def ram_read(machine: Machine) -> Mapping[str, str]:
    """Give ``ram_type`` and ``cpu`` as far as they are known and go together.

    Firmware has no word for LPDDR5X and LPDDR4X: a rate that the plain type has not is one of X.
    """
    told: dict[str, str] = {}
    ram = machine.ram
    if ram and ram.type in ram_types():
        soldered = ram.type.startswith("LP")  # its packages are narrower than a channel
        sticks = None if soldered else ram.sticks
        kinds = (RamKind(type_, ram.rate, None, sticks) for type_ in (ram.type, f"{ram.type}X"))
        texts = (text for kind in kinds if _is_understood(text := str(kind)))
        told.update(("ram_type", text) for text in islice(texts, 1))
    try:
        cpu, _ = find_cpu(machine.cpu)
    except RequestError:
        return told
    if "ram_type" not in told or (ram and cpu.rate(ram.type)):
        told["cpu"] = f"2x {cpu.name}" if machine.sockets > 1 else cpu.name
    return told


def _is_understood(text: str) -> bool:
    try:
        return read_ram(text)[1] is not None
    except RequestError:
        return False
