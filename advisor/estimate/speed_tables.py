"""knowledge/calibration.yaml as frozen records: what the speed model knows of cards and engines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from advisor.errors import KnowledgeError, Source
from advisor.estimate.speed_prefill import PrefillTables
from advisor.knowledge.types import Gpu

_FILE = "calibration.yaml"


@dataclass(frozen=True, slots=True)
class Curve:
    """A figure by count, from 1 on, flat beyond the last."""

    values: tuple[float, ...]

    def at(self, count: int) -> float:
        """Give the figure at ``count``, at least 1."""
        return self.values[min(count, len(self.values)) - 1]


def _curve(points: Sequence[tuple[int, float]]) -> Curve:
    """Fill in every count between points, straight."""
    values: list[float] = []
    for (left, low), (right, high) in pairwise(points):
        slope = (high - low) / (right - left)
        values += [low + (n - left) * slope for n in range(left, right)]
    return Curve((*values, points[-1][1]))


@dataclass(frozen=True, slots=True)
class Backend:
    """A llama.cpp backend; overheads are seconds per layer and token."""

    factor: float
    overhead_s: float
    moe_overhead_s: float | None


@dataclass(frozen=True, slots=True)
class Architecture:
    """What a generation reaches of its bandwidth, and how many of its cards were measured."""

    factor: float
    measured: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Match:
    """A card belongs to architecture ``to`` when every stated part fits."""

    to: str
    name: str
    architecture: str
    memory: str

    def fits(self, gpu: Gpu) -> bool:
        """Say whether the card has all that this line asks for."""
        return (
            self.name in gpu.name
            and gpu.architecture.startswith(self.architecture)
            and (gpu.vram_type or "").startswith(self.memory)
        )


@dataclass(frozen=True, slots=True)
class EngineSpeed:
    """An engine outside the llama.cpp family."""

    efficiency: Mapping[int, float]
    """Share of the bandwidth by stored bits (16, 8, 4)."""
    overhead_s: float
    """Per layer and token."""
    overlapped: bool
    """The host works while the card reads: the longer of the two counts."""
    overhead_by_family_s: Mapping[str, float]
    """Per layer and token, for families and stored bits (``bnb_8``) that differ."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A published decode speed of one stream."""

    tok_s: float
    source: str


@dataclass(frozen=True, slots=True)
class Tables:
    """The whole file."""

    base_efficiency: float
    most_efficiency: float
    backends: Mapping[str, Backend]
    matches: tuple[Match, ...]
    architectures: Mapping[str, Architecture]
    formats: tuple[tuple[str, float], ...]
    offsets: Mapping[tuple[str, str], float]
    engines: Mapping[str, EngineSpeed | None]
    """By framework name; None: the llama.cpp family."""
    kernels_s: Mapping[str, float]
    """Least time per layer and token that a format's own kernels take in every one of those
    engines, by family and stored bits."""
    prefill: PrefillTables
    batch_llamacpp: Curve
    batch_other: Curve
    ram_efficiency: float
    ram_efficiency_experts: float
    layer_split: Curve
    nvlink_s: Curve
    """Exchange time per layer and token by cards."""
    pcie_s: Curve
    nvlink_prefill: Curve
    """Prefill over one card's, by cards in tensor parallel."""
    pcie_prefill: Curve
    measured: Mapping[tuple[str, str, str, str], Measured]
    """By card, model, format and backend, under llama.cpp."""
    measured_depth_tokens: int
    ranges: Mapping[str, float]
    """Range factors and their limits, by the names of the group ``intervals``."""


class _Group:
    """A mapping of the file with typed access; complaints name the place."""

    def __init__(self, found: object, where: str) -> None:
        if not isinstance(found, Mapping):
            raise _wrong(where, "a mapping")
        self.found: Mapping[str, object] = found
        self.where = where

    def group(self, key: str) -> _Group:
        return _Group(self.found.get(key), f"{self.where}.{key}" if self.where else key)

    def groups(self, but: Sequence[str] = ("source",)) -> Mapping[str, _Group]:
        return {key: self.group(key) for key in self.found if key not in but}

    def lines(self, key: str) -> list[_Group]:
        found = self.found.get(key)
        if not isinstance(found, Sequence) or isinstance(found, str):
            raise _wrong(f"{self.where}.{key}", "a list")
        return [_Group(line, f"{self.where}.{key}[{i}]") for i, line in enumerate(found)]

    def number(self, key: str) -> float:
        found = self.found.get(key)
        if isinstance(found, bool) or not isinstance(found, int | float) or found < 0:
            raise _wrong(f"{self.where}.{key}", "a number that is not negative")
        return float(found)

    def text(self, key: str, default: str | None = None) -> str:
        found = self.found.get(key, default)
        if not isinstance(found, str):
            raise _wrong(f"{self.where}.{key}", "a text")
        return found

    def flag(self, key: str) -> bool:
        found = self.found.get(key, False)
        if not isinstance(found, bool):
            raise _wrong(f"{self.where}.{key}", "yes or no (true or false)")
        return found

    def numbers(self, but: Sequence[str] = ("source",)) -> Mapping[str, float]:
        return {key: self.number(key) for key in self.found if key not in but}

    def curve(self, key: str, scale: float = 1.0) -> Curve:
        found = self.group(key)
        try:
            points = sorted((int(count), found.number(count) * scale) for count in found.found)
        except ValueError:
            raise _wrong(found.where, "a mapping of counts to numbers") from None
        if not points or points[0][0] != 1:
            raise _wrong(found.where, "a mapping of counts to numbers that starts at 1")
        return _curve(points)


def _wrong(where: str, wanted: str) -> KnowledgeError:
    return KnowledgeError(
        f"'{where}' must be {wanted}",
        source=Source(_FILE),
        hint="Compare with the built-in calibration.yaml.",
    )


def read_tables(calibration: Mapping[str, object]) -> Tables:
    """Check and convert the plain data of calibration.yaml.

    Raises:
        KnowledgeError: A group or figure is missing or of the wrong kind.
    """
    root = _Group(calibration, "")
    decode, batch = root.group("decode"), root.group("batch")
    cards, offload = root.group("multi_gpu"), root.group("offload")
    per_layer_ms = 1e-3 / decode.number("overhead_layers")
    return Tables(
        base_efficiency=decode.number("base_efficiency"),
        most_efficiency=decode.number("most_efficiency"),
        backends=_backends(root.group("backends"), per_layer_ms),
        matches=tuple(map(_match, root.lines("architecture_of"))),
        architectures=_architectures(root.group("architectures")),
        formats=_formats(root.group("formats")),
        offsets=_offsets(root.group("cards")),
        engines=_engines(root.group("engines"), per_layer_ms),
        kernels_s={
            key: ms * per_layer_ms
            for key, ms in root.group("kernels").group("overhead_ms").numbers().items()
        },
        prefill=_prefill(root.group("prefill")),
        batch_llamacpp=batch.curve("llama.cpp"),
        batch_other=batch.curve("other"),
        ram_efficiency=offload.number("ram_efficiency"),
        ram_efficiency_experts=offload.number("ram_efficiency_experts"),
        layer_split=cards.curve("layer_split_factor"),
        nvlink_s=cards.curve("nvlink_us_per_layer", 1e-6),
        pcie_s=cards.curve("pcie_us_per_layer", 1e-6),
        nvlink_prefill=cards.curve("nvlink_prefill_gain"),
        pcie_prefill=cards.curve("pcie_prefill_gain"),
        measured=_measured(root.group("measured")),
        measured_depth_tokens=int(root.group("measured").number("most_depth_tokens")),
        ranges=root.group("intervals").numbers(),
    )


def _backends(group: _Group, per_layer_ms: float) -> Mapping[str, Backend]:
    return {
        name: Backend(
            line.number("factor"),
            line.number("overhead_ms") * per_layer_ms,
            None
            if line.found.get("moe_overhead_ms") is None
            else line.number("moe_overhead_ms") * per_layer_ms,
        )
        for name, line in group.groups().items()
    }


def _match(line: _Group) -> Match:
    return Match(
        line.text("is"),
        line.text("name", ""),
        line.text("architecture", ""),
        line.text("memory", ""),
    )


def _architectures(group: _Group) -> Mapping[str, Architecture]:
    return {
        name: Architecture(
            line.number("factor"),
            {backend: int(n) for backend, n in line.group("measured").numbers().items()},
        )
        for name, line in group.groups().items()
    }


def _formats(group: _Group) -> tuple[tuple[str, float], ...]:
    return tuple((line.text("begins"), line.number("factor")) for line in group.lines("factors"))


def _offsets(group: _Group) -> Mapping[tuple[str, str], float]:
    return {
        (line.text("gpu"), line.text("backend")): line.number("factor")
        for line in group.lines("offsets")
    }


def _prefill(group: _Group) -> PrefillTables:
    units, own = group.group("units").groups(), group.group("architectures").groups()
    return PrefillTables(
        prompt_tokens=int(group.number("prompt_tokens")),
        units={(b, u): n for b, line in units.items() for u, n in line.numbers().items()},
        architectures={(a, b): n for a, line in own.items() for b, n in line.numbers().items()},
        falls=group.number("falls"),
        sixteen_bit=group.group("sixteen_bit").numbers(),
        cards={
            (line.text("gpu"), line.text("backend")): line.number("tflops")
            for line in group.lines("cards")
        },
        engines=group.number("engines"),
        experts=group.number("experts"),
    )


def _measured(group: _Group) -> Mapping[tuple[str, str, str, str], Measured]:
    repositories = group.group("repositories")
    return {
        (line.text("gpu"), line.text("model"), line.text("format"), line.text("backend")): Measured(
            line.number("tok_s"),
            f"{repositories.text(line.text('by'))}, {line.text('date')}",
        )
        for line in group.lines("decode")
    }


def _engines(group: _Group, per_layer_ms: float) -> Mapping[str, EngineSpeed | None]:
    return {
        name: None if "like" in line.found else _engine(line, per_layer_ms)
        for name, line in group.groups().items()
    }


def _engine(line: _Group, per_layer_ms: float) -> EngineSpeed:
    own = line.group("overhead_by_family_ms").numbers() if _has_families(line) else {}
    return EngineSpeed(
        efficiency={
            bits: line.number(f"efficiency_{bits}")
            for bits in (16, 8, 4)
            if f"efficiency_{bits}" in line.found
        },
        overhead_s=line.number("overhead_ms") * per_layer_ms,
        overlapped=line.flag("overlapped"),
        overhead_by_family_s={key: value * per_layer_ms for key, value in own.items()},
    )


def _has_families(line: _Group) -> bool:
    return "overhead_by_family_ms" in line.found
