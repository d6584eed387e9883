"""``--gpu local``: the cards of this machine, and its system RAM where the user states none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec.structs import replace

from advisor.knowledge.cards import Cards
from advisor.knowledge.reach import check_machine
from advisor.knowledge.types import Knowledge
from advisor.scenario.settings import Request
from advisor.units import GIB

if TYPE_CHECKING:
    from advisor.reading.machine.records import Machine

WORD = "local"


def asks_here(request: Request) -> bool:
    """Whether a request is about the machine that it is made on."""
    return (request.gpu or "").strip().casefold() == WORD


def cards_here(knowledge: Knowledge) -> Cards:
    """Give the cards of this machine.

    Raises:
        UserError: It has none, none that is known, they do not work together, or it may not be
            asked for this request.
    """
    from advisor.reading.machine.mapped import local_cards  # noqa: PLC0415 - where it is asked

    return local_cards(_machine(), knowledge)


def _machine() -> Machine:
    check_machine()
    from advisor.reading.machine import here  # noqa: PLC0415 - where it is asked

    return here.this_machine()


def with_ram_here(request: Request) -> Request:
    """State the RAM of this machine in a request about it that states none."""
    if not asks_here(request):
        return request
    machine = _machine()
    if machine.ram is None or _all_shared(machine):
        return request
    stated = (request.ram_type, request.ram_bandwidth_gb_s, request.cpu)
    size = request.ram_gib or round(machine.ram.total_bytes / GIB, 1)
    if any(stated):
        return replace(request, ram_gib=size)
    from advisor.reading.machine.mapped import ram_read  # noqa: PLC0415 - where it is asked

    return replace(request, ram_gib=size, **ram_read(machine))


def _all_shared(machine: Machine) -> bool:
    """Whether the cards have no memory but the machine's, so that there is no RAM beside it."""
    return all(card.shares_memory or card.integrated for card in machine.cards)


def said_here(request: Request, cards: Cards | None, knowledge: Knowledge) -> Iterator[str]:
    """Say which RAM was taken from this machine, and what other programs hold of its cards."""
    if cards is None or not asks_here(request):
        return
    machine = _machine()
    ram = machine.ram
    if ram and request.ram_gib == round(ram.total_bytes / GIB, 1):
        source = f", its type by {ram.source}" if ram.source and request.ram_type else ""
        yield f"System RAM is that of this machine: {request.ram_gib:g} GiB{source}."
    least = knowledge.policy["reserve_consumer_bytes"]
    for card in machine.cards if not request.reserve_gib else ():
        held = (card.memory_bytes or 0) - (card.free_bytes or 0)
        if card.free_bytes is not None and not card.shares_memory and held > least:
            yield (
                f"Other programs hold {held / GIB:.1f} GiB of the {card.name} now, which is not "
                f"counted; --reserve {held / GIB:.1f}GB counts it."
            )
