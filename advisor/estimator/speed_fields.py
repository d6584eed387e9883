"""Typed access to the plain data of the calibration files, and what several cards exchange in it.

Complaints name the place. Where every layer is split, the cards of a machine sum its results twice,
after attention and after its feed-forward part. One sum of ``n`` tokens takes

    start + per byte x (n x hidden width x 2 bytes)

with both figures by number of cards and by what joins them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import exp, hypot, inf, log
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from advisor.errors import KnowledgeError, Source
from advisor.units import MIB

if TYPE_CHECKING:
    from advisor.knowledge.types import Gpu
    from advisor.models.shape import Shape


Range = tuple[float, float]


def joined_range(one: Range, other: Range) -> Range:
    """Join two ranges, taken as independent."""
    below, above = (hypot(log(one[end]), log(other[end])) for end in (0, 1))
    return exp(-below), exp(above)


class Curve(Struct, frozen=True):
    """A figure by count, from 1 on, flat beyond the last."""

    values: tuple[float, ...]

    def at(self, count: int) -> float:
        """Give the figure at ``count``, at least 1."""
        return self.values[min(count, len(self.values)) - 1]


class Fields:
    """A mapping of a calibration file."""

    def __init__(self, found: object, where: str, file: str) -> None:
        """Hold the mapping.

        ``where`` is the dotted path of keys, empty for the whole file.

        Raises:
            KnowledgeError: It is no mapping.
        """
        self.where, self.file = where, file
        if not isinstance(found, Mapping):
            raise self.wrong(where or "the file", "a mapping")
        self.found: Mapping[str, object] = found

    def group(self, key: str) -> Fields:
        """Give the mapping under a key."""
        return Fields(self.found.get(key), self._below(key), self.file)

    def groups(self, but: Sequence[str] = ("source",)) -> Mapping[str, Fields]:
        """Give every mapping below."""
        return {key: self.group(key) for key in self.found if key not in but}

    def lines(self, key: str) -> list[Fields]:
        """Give a list of mappings."""
        found = self.found.get(key)
        if not isinstance(found, Sequence) or isinstance(found, str):
            raise self.wrong(self._below(key), "a list")
        return [Fields(line, f"{self._below(key)}[{i}]", self.file) for i, line in enumerate(found)]

    def number(self, key: str) -> float:
        """Give a number that is not negative."""
        return self._number(key, self.found.get(key))

    def text(self, key: str, default: str | None = None) -> str:
        """Give a text."""
        found = self.found.get(key, default)
        if not isinstance(found, str):
            raise self.wrong(self._below(key), "a text")
        return found

    def only(self, key: str, text: str) -> None:
        """Hold a text, where it is there, to the one that it may be."""
        if self.text(key, text) != text:
            raise self.wrong(self._below(key), f"'{text}', the only one that it may be")

    def texts(self, key: str) -> tuple[str, ...]:
        """Give a list of texts, empty where absent."""
        found = self.found.get(key, ())
        if isinstance(found, str) or not isinstance(found, Sequence):
            raise self.wrong(self._below(key), "a list of texts")
        return tuple(str(one) for one in found)

    def flag(self, key: str) -> bool:
        """Give yes or no, no where absent."""
        found = self.found.get(key, False)
        if not isinstance(found, bool):
            raise self.wrong(self._below(key), "yes or no (true or false)")
        return found

    def numbers(self, but: Sequence[str] = ("source",)) -> Mapping[str, float]:
        """Give every number below by its key."""
        return {key: self.number(key) for key in self.found if key not in but}

    def range_factors(self, key: str) -> tuple[float, float]:
        """Give a range as factors on a figure: ``[low, high]``, or ``k`` for ``[1 / k, k]``."""
        found = self.found.get(key)
        if isinstance(found, Sequence) and not isinstance(found, str) and len(found) == 2:  # noqa: PLR2004
            low, high = (self._number(key, end) for end in found)
        else:
            high = self.number(key)
            low = 1 / high if high else 0.0
        if not 0 < low <= 1 <= high:
            raise self.wrong(
                self._below(key), "a range around 1: [low, high], or one factor above 1"
            )
        return low, high

    def curve(self, key: str, scale: float = 1.0) -> Curve:
        """Give a curve over counts from 1 on, straight between the stated ones."""
        found = self.group(key)
        try:
            points = sorted((int(count), found.number(count) * scale) for count in found.found)
        except ValueError:
            raise self.wrong(found.where, "a mapping of counts to numbers") from None
        if not points or points[0][0] != 1:
            raise self.wrong(found.where, "a mapping of counts to numbers that starts at 1")
        return _curve(points)

    def wrong(self, where: str, wanted: str) -> KnowledgeError:
        """Say what should stand at a place."""
        return KnowledgeError(
            f"'{where}' must be {wanted}",
            source=Source(self.file),
            hint=f"Compare with the built-in {self.file}.",
        )

    def _below(self, key: str) -> str:
        return f"{self.where}.{key}" if self.where else key

    def _number(self, key: str, found: object) -> float:
        if isinstance(found, bool) or not isinstance(found, int | float) or found < 0:
            raise self.wrong(self._below(key), "a number that is not negative")
        return float(found)


def _curve(points: Sequence[tuple[int, float]]) -> Curve:
    values: list[float] = []
    for (left, low), (right, high) in pairwise(points):
        slope = (high - low) / (right - left)
        values += [low + (n - left) * slope for n in range(left, right)]
    return Curve((*values, points[-1][1]))


SITUATIONS = frozenset({
    "own", "measured", "near", "near_small", "modelled", "modelled_small", "alone",
    "unmeasured_card", "unmeasured_format", "moe_near", "moe_unseen", "experts_estimated",
    "deep", "packed_cache", "packed_cache_unmeasured", "laptop", "offload", "offload_experts",
    "batch", "batch_unmeasured",
    "batch_tensor_parallel", "layer_split", "tensor_parallel", "other_engine", "prefill_card",
    "prefill", "prefill_unmeasured", "prefill_engine", "prefill_experts", "prefill_offload",
    "prefill_cards", "prefill_tensor",
})  # fmt: skip
"""What ranges are looked up by: a file that leaves one out is refused before a report needs it."""


_SUMS: Final = 2
_BYTES: Final = 2
_LANES: Final = 16
FITTED_WIDTH: Final = 5120
"""Hidden width of the models whose exchange was fitted."""


class Link(Struct, frozen=True):
    """What joins the cards of a machine, as a line of ``multi_gpu.links`` tells it."""

    fabric: bool
    """Whether it is for cards whose entry states a link of their own."""
    architectures: frozenset[str]
    """Empty: of any."""
    pcie_gen: int
    """0: of any."""
    segments: frozenset[str]
    start_s: Curve
    byte_s: Curve | None
    """None: fitted, as ``Exchange.fitted_s``."""
    prompt_gain: Curve | None
    """Prompts over one card's, measured; None: arithmetic shared out, and the exchange."""

    def joins(self, gpu: Gpu) -> bool:
        """Whether cards of this kind are joined so."""
        return (
            (not self.fabric or gpu.nvlink_bytes_s is not None)
            and (not self.architectures or gpu.architecture in self.architectures)
            and (not self.pcie_gen or gpu.pcie_gen == self.pcie_gen)
            and (not self.segments or gpu.segment in self.segments)
        )


class Exchange(Struct, frozen=True):
    """The links in their order, and what was fitted for those without a measured time."""

    links: tuple[Link, ...]
    fitted_s: Mapping[int, float]
    """Seconds of a further token per layer of ``FITTED_WIDTH``, by cards."""

    def link(self, gpu: Gpu) -> Link:
        """Give the first line that fits; the last fits all."""
        return next(one for one in self.links if one.joins(gpu))

    def start_s(self, gpu: Gpu, shape: Shape, cards: int) -> float:
        """Time the exchange of one pass of all layers, without what it moves."""
        return self.link(gpu).start_s.at(cards) * _SUMS * shape.layers

    def token_s(self, gpu: Gpu, shape: Shape, cards: int) -> float:
        """Time what each token of a pass adds."""
        per_byte = self.link(gpu).byte_s
        if per_byte is None:
            known = [n for n in self.fitted_s if n <= cards]
            fitted = self.fitted_s[max(known)] if known else 0.0
            return fitted * shape.layers * shape.hidden / FITTED_WIDTH
        narrow = _LANES / gpu.pcie_lanes if self.link(gpu).pcie_gen and gpu.pcie_lanes else 1.0
        moved = _SUMS * shape.layers * shape.hidden * _BYTES
        return per_byte.at(cards) * moved * narrow


def read_links(cards: Fields) -> tuple[Link, ...]:
    """Read ``multi_gpu.links``.

    Raises:
        KnowledgeError: A figure is missing or of the wrong kind.
    """
    return tuple(
        Link(
            fabric=line.flag("fabric"),
            architectures=frozenset(line.texts("architectures")),
            pcie_gen=int(line.number("pcie_gen")) if "pcie_gen" in line.found else 0,
            segments=frozenset(line.texts("segments")),
            start_s=line.curve("start_us", 1e-6),
            byte_s=line.curve("us_per_mib", 1e-6 / MIB) if "us_per_mib" in line.found else None,
            prompt_gain=line.curve("prompt_gain") if "prompt_gain" in line.found else None,
        )
        for line in cards.lines("links")
    )


class Match(Struct, frozen=True):
    """A card belongs to architecture ``to`` when every stated part fits."""

    to: str
    name: str
    architecture: str
    memory: str
    most_cores: float

    def fits(self, gpu: Gpu) -> bool:
        """Say whether the card has all that this line asks for."""
        return (
            self.name in gpu.name
            and gpu.architecture.startswith(self.architecture)
            and (gpu.vram_type or "").startswith(self.memory)
            and (gpu.cores or 0) <= self.most_cores
        )


def read_match(line: Fields) -> Match:
    """Read a line of ``architecture_of``."""
    name, architecture, memory = (line.text(key, "") for key in ("name", "architecture", "memory"))
    most_cores = line.number("most_cores") if "most_cores" in line.found else inf
    return Match(line.text("is"), name, architecture, memory, most_cores)


class Offload(Struct, frozen=True):
    """Weights in system RAM: shares of its bandwidth, and what the processor does besides."""

    ram_efficiency: float
    ram_efficiency_beside_experts: float
    """Whole layers of a mixture of experts, experts aside."""
    ram_efficiency_experts: float
    hand_over_s: float
    """Per layer whose experts lie there, and token."""
    unpack_s: float
    """Per byte, however fast it is read."""
    unpack_by_table: float
    """How many times that of formats which are looked up in tables."""

    def unpacking_s(self, precision: str) -> float:
        """Time what the processor takes to unpack a byte of a format."""
        return self.unpack_s * (self.unpack_by_table if is_looked_up(precision) else 1.0)


def is_looked_up(precision: str) -> bool:
    """Say whether a format's weights stand in tables, which a processor reads one by one."""
    return precision.startswith("IQ")


def read_offload(fields: Fields) -> Offload:
    """Check and convert the group ``offload``."""
    return Offload(
        fields.number("ram_efficiency"),
        fields.number("ram_efficiency_beside_experts"),
        fields.number("ram_efficiency_experts"),
        fields.number("hand_over_us") * 1e-6,
        fields.number("unpack_us_per_mb") * 1e-12,
        fields.number("unpack_by_table"),
    )


class ByHead(Struct, frozen=True):
    """Where the llama.cpp family unpacks a cache of few bits again for every head that reads it."""

    backends: tuple[str, ...]
    most_width: int
    """Of a head."""
    width_step: int
    not_on: tuple[str, ...]
    """Generations, by the beginning of their name."""
    measured: tuple[str, ...]
    """Back ends on which such caches were measured, unpacked so or otherwise."""

    def holds(self, gpu: Gpu, backend: str | None, shape: Shape) -> bool:
        """Say whether each head unpacks for itself."""
        width = shape.head_dim
        of_kernel = width <= self.most_width and width % self.width_step == 0 and not shape.mla
        return (
            of_kernel and backend in self.backends and not gpu.architecture.startswith(self.not_on)
        )


def read_by_head(decode: Fields) -> ByHead:
    """Read which kernels do so."""
    found = decode.group("unpacked_by_head")
    most, step = int(found.number("most_width")), int(found.number("width_step"))
    backends, not_on, measured = map(found.texts, ("backends", "not_on", "measured"))
    return ByHead(backends, most, step, not_on, measured)
