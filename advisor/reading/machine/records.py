"""What was read of a machine; None or an empty text: its tools do not say."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct


class Card(Struct, frozen=True, kw_only=True):
    """A card as the tools of its maker show it."""

    vendor: str
    name: str
    """As it was printed, or its numbers on the bus where no name was found."""
    source: str
    """The tool or file that showed it."""
    told_too: tuple[str, ...] = ()
    """Other names of it; the first tells more than the printed one."""
    one_of: tuple[str, ...] = ()
    """Names of the cards that its chip is sold in, where no name tells which."""
    memory_bytes: int | None = None
    """Of one that shares the memory of its machine: all of that memory."""
    free_bytes: int | None = None
    driver: str = ""
    compute: str = ""
    """CUDA 12.4, ROCm 6.2.0 ..."""
    power_limit_w: float | None = None
    power_default_w: float | None = None
    ecc: bool | None = None
    slices: tuple[str, ...] = ()
    """Profiles of its MIG slices: 3g.20gb."""
    used_by: tuple[str, ...] = ()
    """Programs that compute on it."""
    shares_memory: bool = False
    integrated: bool = False
    """A part of the processor."""


class Ram(Struct, frozen=True, kw_only=True):
    """System RAM."""

    total_bytes: int
    """What programs can have: less than is installed, as a part is kept from the system."""
    free_bytes: int | None = None
    type: str = ""
    """DDR5, LPDDR5X ..."""
    rate: int | None = None
    """MT/s that it runs at."""
    sticks: int | None = None
    source: str = ""
    """Where type and rate were read."""


class Found(Struct, frozen=True):
    """What one reader gives: cards, and sentences on what could not be read."""

    cards: tuple[Card, ...] = ()
    unread: tuple[str, ...] = ()


class Machine(Struct, frozen=True, kw_only=True):
    """All that was read."""

    system: str
    """Linux 6.8.0-45-generic, macOS 15.1 ..."""
    kind: str = ""
    """WSL 2, Jetson, container; empty for a plain computer."""
    product: str = ""
    cpu: str = ""
    sockets: int = 1
    ram: Ram | None = None
    cards: tuple[Card, ...] = ()
    unread: tuple[str, ...] = ()
    """What of the cards could not be read, in sentences."""
    ram_unread: tuple[str, ...] = ()
    """The same of the memory."""
    seen_alone: Mapping[str, str] = {}
    """Variables that hide cards from programs: ``CUDA_VISIBLE_DEVICES`` and its value."""
