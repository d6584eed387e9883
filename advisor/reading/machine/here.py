"""All readers together: what this machine has, read once."""

from __future__ import annotations

import platform
from functools import cache

from msgspec.structs import replace

from advisor.errors import visible
from advisor.reading.machine.amd import amd_cards
from advisor.reading.machine.apple import mac_cards, mac_product
from advisor.reading.machine.host import kind_of, memory, processor, product_of
from advisor.reading.machine.intel import intel_cards
from advisor.reading.machine.nvidia import board_name, jetson_card, nvidia_cards
from advisor.reading.machine.probe import Probe
from advisor.reading.machine.records import Card, Found, Machine, Ram
from advisor.reading.machine.windows import windows_cards

_MOST_BYTES = 2**43
"""8 TiB; what is above was misread."""
_HIDING = (
    "CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "ZE_AFFINITY_MASK",
    "GGML_VK_VISIBLE_DEVICES",
)  # fmt: skip


@cache
def this_machine() -> Machine:
    """Read this machine, once for a program: its tools take a second."""
    return read_machine(Probe())


def read_machine(probe: Probe, system: str = "") -> Machine:
    """Read a machine.

    Args:
        probe: How it is asked.
        system: Its name and version; empty: those of this one.
    """
    answers = cache(probe.run)
    probe = replace(probe, run=lambda command: answers(tuple(command)))  # each tool is asked once
    ram, no_ram = memory(probe)
    board = board_name(probe)
    found = _cards(probe, board, ram)
    cpu, sockets = processor(probe)
    mac = probe.system == "darwin"
    return Machine(
        system=system or f"{platform.system()} {platform.release()}",
        kind="Jetson" if board else kind_of(probe),
        product=visible(board or (mac_product(probe) if mac else product_of(probe))),
        cpu=visible(cpu),
        sockets=sockets,
        ram=ram,
        cards=tuple(_completed(card, ram) for card in found.cards),
        unread=tuple(map(visible, found.unread)),
        ram_unread=tuple(map(visible, no_ram)),
        seen_alone={
            name: value for name in _HIDING if (value := probe.environ.get(name)) is not None
        },
    )


def _cards(probe: Probe, board: str, ram: Ram | None) -> Found:
    if probe.system == "darwin":
        return mac_cards(probe)
    if board:
        return Found((jetson_card(probe, board, ram),))
    readers = (nvidia_cards, amd_cards, intel_cards, windows_cards)
    each = [read(probe) for read in readers]
    cards = tuple(card for found in each for card in found.cards)
    return Found(cards, tuple(line for found in each for line in found.unread))


def _completed(card: Card, ram: Ram | None) -> Card:
    """Give a card that shares the memory of its machine all of that; drop what no card can have."""
    total, free = (
        size if size is not None and 0 <= size <= _MOST_BYTES else None
        for size in (card.memory_bytes, card.free_bytes)
    )
    card = replace(card, name=visible(card.name), memory_bytes=total or None, free_bytes=free)
    if not card.shares_memory or card.memory_bytes or ram is None:
        return card
    return replace(card, memory_bytes=ram.total_bytes, free_bytes=ram.free_bytes)
