"""The computer around the cards: ``--gpu local``, and how fast its system RAM is read.

RAM is read as stated, by its type and processor, or as such machines have it. Bandwidth is the
peak, transfers x 8 bytes x channels; the share of it that is reached is the speed model's
(knowledge/calibration-fitted.yaml).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from math import sqrt
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from advisor.errors import RequestError, UserError
from advisor.knowledge.catalogue import ALONE, PROCESSOR, Cards, sizes_of
from advisor.knowledge.index import gpu_core, gpu_words
from advisor.knowledge.layers import check_machine
from advisor.knowledge.types import Knowledge
from advisor.reading import find_cards
from advisor.reading.known import names_processor
from advisor.scenario import raised
from advisor.scenario.setting_kinds import quantities
from advisor.scenario.settings import WITH_UNITS, Request
from advisor.units import GB, GIB, counted

if TYPE_CHECKING:
    from advisor.knowledge.types import Gpu
    from advisor.reading.machine.probe import Machine
    from advisor.reading.ram import Cpu, RamKind, RamType
    from advisor.scenario import Scenario

_MT = 8e6  # bytes/s of one channel per MT/s
_SLOTS = 4  # boards with two channels have no more
_SERVERS = frozenset({"datacenter"})
_MAY_BE_CPU = re.compile(
    r"ryzen|threadripper|epyc|xeon|core|\bi[3579]\b|\be[357]-|\bn\d{2,3}\b|\d{4}(?:x|k|g)"
    r"|pi\b|pi ?[45]",
    re.IGNORECASE,
)
"""What the name of a processor has; whether it is one, its list says."""
_XEON_UNSAID = re.compile(r"^(?=e[357]-\d{4})", re.IGNORECASE)


class Range(Struct, frozen=True):
    """A number that is known within ends; of one that is known they are equal."""

    least: float
    most: float
    usual: float | None = None

    @property
    def middle(self) -> float:
        """The usual one, else the geometric mean."""
        return self.usual or sqrt(self.least * self.most)

    def __mul__(self, other: Range) -> Range:
        """Multiply end by end."""
        usual = self.middle * other.middle if self.usual or other.usual else None
        return Range(self.least * other.least, self.most * other.most, usual)


class RamPace(Struct, frozen=True):
    """The bandwidth of system RAM, bytes/s."""

    bandwidth: Range
    said: str = ""
    """How it was read, where it was not stated as a bandwidth; empty too where it is assumed."""
    assumed: bool = False
    """Whether nothing at all was said of it."""
    of_board: bool = False
    """Whether the processor is that of a small board, which has no sockets for memory."""

    @property
    def ends(self) -> tuple[float, float] | None:
        """The least and the most it may be, bytes/s; None where it is known."""
        least, most = self.bandwidth.least, self.bandwidth.most
        return (least, most) if least < most else None


def ram_pace(request: Request, gpu: Gpu | None, knowledge: Knowledge) -> RamPace | None:
    """Say how fast the RAM beside a card is read; None where nothing was stated and none matters.

    Raises:
        RequestError: The processor or the memory is unknown, or they do not go together.
    """
    if request.ram_bandwidth_gb_s:
        exact = request.ram_bandwidth_gb_s * GB
        return RamPace(Range(exact, exact))
    if request.cpu or request.ram_type:
        return _told(request, gpu, knowledge.policy)
    if gpu is None or (gpu.unified_memory and gpu.vendor != ALONE):
        return None
    rates = _usual_rates(gpu, knowledge.policy)
    channels = _usual_channels(gpu, request.ram_gib, knowledge.policy)
    return RamPace(rates * channels * _exact(_MT), assumed=True)


def pace_fields(pace: RamPace | None) -> dict[str, Any]:
    """Give a pace as the fields that a scenario has of it."""
    return {
        "ram_bandwidth_bytes_s": round(pace.bandwidth.middle) if pace else None,
        "ram_bandwidth_ends": pace.ends if pace else None,
        "ram_assumed": bool(pace and pace.assumed),
    }


def beside_its_card(scenario: Scenario, request: Request, knowledge: Knowledge) -> Scenario:
    """Give a request's scenario on another card the RAM that is usual beside that one."""
    return replace(scenario, **pace_fields(ram_pace(request, scenario.gpu, knowledge)))


def said_of(pace: RamPace | None) -> tuple[str, ...]:
    """Say in a sentence how RAM was read; nothing where its bandwidth was stated, or nothing."""
    return (pace.said,) if pace and pace.said else ()


def _exact(value: float) -> Range:
    return Range(value, value, value)


def _told(request: Request, gpu: Gpu | None, policy: Mapping[str, float]) -> RamPace:
    from advisor.reading import ram  # noqa: PLC0415  read where memory or processor is named

    kind = ram.kind_in(request.ram_type) if request.ram_type else ram.RamKind()
    cpu, sockets = ram.find_cpu(request.cpu) if request.cpu else (None, 1)
    if cpu:
        _refuse_unlike(kind, cpu, sockets)
    there = _usual_channels(gpu, request.ram_gib, policy)
    channels = _channels(kind, cpu, sockets, there)
    rates = _rates(kind, cpu, ram.ram_types()) or _usual_rates(gpu, policy)
    bandwidth = rates * channels * _exact(_MT)
    said = _said(kind, cpu, rates, channels, bandwidth)
    return RamPace(bandwidth, said, of_board=cpu is not None and cpu.kind == "board")


def _refuse_unlike(kind: RamKind, cpu: Cpu, sockets: int) -> None:
    if kind.type and not cpu.rate(kind.type):
        takes = " or ".join(cpu.memory)
        raise RequestError(f"{cpu.name} takes {takes}, not {kind.type}", hint=f"Write {takes}.")
    if kind.channels and kind.channels > cpu.channels * sockets:
        has = counted(int(cpu.channels * sockets), "channel")
        raise RequestError(f"{cpu.name} has {has}, not {kind.channels}", hint="Leave them out.")


def _channels(kind: RamKind, cpu: Cpu | None, sockets: int, there: Range) -> Range:
    """Give the channels that are filled: as stated, else by the sticks, else all there are.

    A program on two processors reads at least what is beside one of them, at most what is beside
    both.
    """
    if kind.channels:
        return _exact(kind.channels)
    if cpu:
        there = Range(cpu.channels, cpu.channels * sockets, cpu.channels)
    elif kind.sticks and kind.sticks > _SLOTS:
        there = _exact(kind.sticks)
    filled = kind.sticks or there.most
    return Range(min(filled, there.least), min(filled, there.most), min(filled, there.middle))


def _rates(kind: RamKind, cpu: Cpu | None, known: Mapping[str, RamType]) -> Range | None:
    """Give MT/s: as stated, but on locked processors no faster than they take; None: unstated."""
    most = cpu.rate(kind.type) if cpu and kind.type else None
    if kind.rate:
        locked = most if cpu and not cpu.overclocks else None
        return _exact(min(kind.rate, locked or kind.rate))
    if not cpu and not kind.type:
        return None
    taken = {kind.type: most} if kind.type else dict(cpu.memory) if cpu else {}
    ends = []
    for name, rate in taken.items():
        one = known[name or ""]
        free = one.usual_fastest if not cpu or cpu.overclocks else 0
        ends.append((min(one.usual_slowest, rate or one.usual_slowest), max(rate or 0, free)))
    usual = next(iter(taken.values())) if len(taken) == 1 else None
    return Range(min(low for low, _ in ends), max(high for _, high in ends), usual)


def _usual_rates(gpu: Gpu | None, policy: Mapping[str, float]) -> Range:
    laptop = gpu is not None and gpu.segment == "mobile"
    fastest = "ram_laptop_fastest_mt_s" if laptop else "ram_fastest_mt_s"
    return Range(policy["ram_slowest_mt_s"], policy[fastest])


def _usual_channels(gpu: Gpu | None, gib: float | None, policy: Mapping[str, float]) -> Range:
    """Give the channels of machines with such a card; where RAM is stated, what it can fill."""
    desktop, workstation = policy["ram_desktop_channels"], policy["ram_workstation_most_channels"]
    segment, stated = gpu.segment if gpu else "consumer", (gib or 0) * GIB
    if segment in _SERVERS or stated > policy["ram_desktop_usual_bytes"]:
        fewest, every = policy["ram_server_least_channels"], policy["ram_server_most_channels"]
        filled = stated // policy["ram_server_module_bytes"] if gib else every
        # with less than fills a server it may be a desktop, with more than one takes it is none
        larger = workstation if stated > policy["ram_desktop_most_bytes"] else desktop
        least = fewest if segment in _SERVERS and filled >= fewest else larger
        return Range(least, min(every, max(filled, desktop)))
    return Range(desktop, workstation if segment == "workstation" else desktop)


def _said(kind: RamKind, cpu: Cpu | None, rates: Range, channels: Range, bandwidth: Range) -> str:
    types = kind.type or (" or ".join(cpu.memory) if cpu else "memory")
    beside = f" beside {cpu.name}" if cpu else ""
    return (
        f"RAM is read as {types} at {_span(rates)} MT/s in {_span(channels)} "
        f"channel{'s' * (channels.most != 1)}{beside}: {_span(bandwidth, GB)} GB/s."
    )


def _span(found: Range, unit: float = 1.0) -> str:
    ends = [end / unit for end in (found.least, found.most)]
    low, high = (f"{end:,.0f}" if end >= 1 else f"{end:g}" for end in ends)
    return low if low == high else f"{low} to {high}"


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
    from advisor.reading.machine import mapped  # noqa: PLC0415 - where it is asked

    return mapped.local_cards(_machine(), knowledge)


def _machine() -> Machine:
    check_machine()
    from advisor.reading import machine  # noqa: PLC0415 - where it is asked

    return machine.this_machine()


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


def with_processor(request: Request, knowledge: Knowledge) -> Request:
    """State the processor and the RAM of a request that names them where a card should stand."""
    request = _of_its_maker(request, knowledge)
    try:
        find_cards(knowledge, text := request.gpu or "")
    except UserError:
        return _read_as_processor(request, text) if _MAY_BE_CPU.search(text) else request
    return request


def _read_as_processor(request: Request, text: str) -> Request:
    from advisor.reading.sentence_names import processor_said  # noqa: PLC0415 - where no card is

    said = processor_said(_XEON_UNSAID.sub("Xeon ", text.replace('"', " ")))
    if said is None:
        return request
    ram = quantities(WITH_UNITS["ram"], str(said["ram"])) if "ram" in said else {}
    named = {"cpu": said["cpu"], "ram_type": said.get("ram_type"), **ram}
    unsaid = {k: v for k, v in named.items() if v and getattr(request, k) is None}
    return replace(request, gpu=PROCESSOR.name, **unsaid)


_MEMORY_ALONE = re.compile(r"(\d{1,3}\s*gi?b)(?:\s+(?:v?ram|gpu|card|memory))*", re.IGNORECASE)


def _of_its_maker(request: Request, knowledge: Knowledge) -> Request:
    """Name the back end, or a Mac for MLX, beside memory that is all that is said of a card."""
    mac = "mlx" in (request.framework or "").casefold() and not request.backend
    asked = request.backend or mac
    if asked and (alone := _MEMORY_ALONE.fullmatch((request.gpu or "").strip())):
        with suppress(UserError):
            find_cards(knowledge, text := f"{alone[mac]} {'Mac' if mac else request.backend}")
            return replace(request, gpu=text)
    return request


def as_machine(request: Request, knowledge: Knowledge) -> Request:
    """State the processor and the RAM that a request names, or those of this machine."""
    request = with_processor(with_ram_here(request), knowledge)
    if request.gpu_layers is request.cpu_experts is None or not names_processor(request.gpu or ""):
        return request
    return replace(request, gpu_layers=None, cpu_experts=None)


def either_of(request: Request, cards: Cards) -> Cards:
    """Give so many of the smaller card where two are named for one: four ``MI50/MI60``."""
    text = request.gpu or ""
    if "/" not in text or not cards.each or request.gpus in {None, cards.count}:
        return cards
    said = text.casefold().replace(" ", "")
    sized = [gpu for gpu in cards.each if f"{(gpu.vram_bytes or 0) / GIB:g}gb" in said]
    one = min(sized or cards.each, key=lambda g: (g.vram_bytes or 0, g.bandwidth_bytes_s or 0))
    line = f"'{text}' is read as {request.gpus}x {one.name}, the smaller of those it names."
    return Cards(one, request.gpus or 1, (), counted=True, read_as=(line,))


def with_its_ram(cards: Cards, request: Request, knowledge: Knowledge) -> Cards:
    """Give a processor, its graphics or a machine of one memory that of the computer."""
    if cards.gpu.vendor == ALONE:
        return _in_its_ram(cards, request, knowledge)
    ram, stated = request.ram_gib, "gb" in (request.gpu or "").casefold()
    if not ram or stated or asks_here(request):
        return cards
    listed = knowledge.gpus.get(cards.gpu.name)
    if not (listed and listed.unified_memory):
        return cards
    if sizes_of(listed):
        several = listed.vram_sizes or cards.read_as or listed.segment == "mobile"
        assumed = several and request.gpu != listed.name  # remedies name the machine that they mean
        return _of_that_memory(cards, f"{request.gpu} {ram:g} GB", knowledge) if assumed else cards
    line = f"{cards.gpu.name} is taken with the {ram:g} GB of the computer."
    return replace(cards, gpu=replace(cards.gpu, vram_bytes=int(ram * GIB)), read_as=(line,))


def _of_that_memory(cards: Cards, text: str, knowledge: Knowledge) -> Cards:
    """Give the machine that has the memory of the computer, where its own was assumed."""
    with suppress(UserError):
        found = find_cards(knowledge, text)
        unsaid = {w for w in gpu_core(found.gpu.name) if w.isalpha()} - {*gpu_words(text)}
        return cards if unsaid and found.gpu.name != cards.gpu.name else found
    return cards


def _in_its_ram(cards: Cards, request: Request, knowledge: Knowledge) -> Cards:
    """Give a processor the RAM of its computer, as large and as fast as is said or usual."""
    said = round(request.ram_gib * GIB) if request.ram_gib else cards.gpu.vram_bytes
    pace = ram_pace(request, cards.gpu, knowledge)
    usual = "usual_board_ram_bytes" if pace and pace.of_board else "usual_ram_bytes"
    size, told = said or int(knowledge.policy[usual]), cards.read_as
    if not said:
        told += (f"How much system RAM there is was not stated: {size / GIB:g} GiB are taken.",)
    bandwidth = pace.bandwidth.middle if pace else None
    gpu = replace(cards.gpu, vram_bytes=size, bandwidth_bytes_s=bandwidth)
    return replace(cards, gpu=gpu, read_as=told)


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


def raised_said(scenario: Scenario, setting: str) -> str:
    """Say so, where this setting is the one that tells it."""
    share = raised(scenario)
    told = share is not None and setting == "gpu_memory_utilization"
    return f"The GPU may use {100 * (share or 0):.4g} % of the memory, as stated." if told else ""
