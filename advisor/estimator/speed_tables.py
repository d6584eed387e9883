"""The calibration as frozen records: what the speed model knows of cards and engines.

``calibration.yaml`` is decided by people, ``calibration-fitted.yaml`` by ``advisor calibrate``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from advisor.estimator.speed_fields import (
    SITUATIONS,
    ByHead,
    Curve,
    Exchange,
    Fields,
    Match,
    Offload,
    Range,
    read_by_head,
    read_links,
    read_match,
    read_offload,
)
from advisor.estimator.speed_prefill import PrefillTables, read_prefill

_POLICY, _FITTED = "calibration.yaml", "calibration-fitted.yaml"
_PER_LAYER_S = 1e-3 / 32
"""Overheads of the files are milliseconds per 32 layers."""


class Backend(Struct, frozen=True):
    """A llama.cpp backend: factors on the family's own figures."""

    efficiency: float
    overhead: float
    expert_overhead: float
    recurrent_overhead: float
    cache: float
    sixteen_bit_experts: float
    """How well it reads experts in 16 bits, against other weights in them."""
    latent_cache: float
    """How well a cache of latent vectors is read, against one of keys and values."""
    unpacked: float
    """What unpacking a cache of few bits takes, in reads of the same in 16 bits."""
    unpacked_by_head_s: float
    """What it takes for every value, head that reads it and shading unit, where none share."""


class Architecture(Struct, frozen=True):
    """What a generation reaches of its bandwidth, and on how many measured cards that rests."""

    efficiency: float
    overhead: float
    backends: Mapping[str, float]
    cards: Mapping[str, int]


class FamilySpeed(Struct, frozen=True):
    """The llama.cpp family; overheads are seconds per layer and token."""

    efficiency: float
    most_efficiency: float
    overhead_s: float
    expert_overhead_s: float
    recurrent_overhead_s: float
    serving_s: float
    cache: float
    """How well the cache is read, against the weights."""
    backends: Mapping[str, Backend]
    architectures: Mapping[str, Architecture]
    formats: Mapping[str, float]
    """By group of formats."""
    format_groups: tuple[tuple[str, str], ...]
    """Beginnings of names with the group of each."""
    offsets: Mapping[tuple[str, str], float]
    """Factor of a measured card, by card and backend."""
    cache_types: Mapping[str, float]
    """What unpacking one takes by head, against others."""
    cache_generations: Mapping[str, float]
    """The same by architecture."""


class EngineSpeed(Struct, frozen=True):
    """An engine outside the llama.cpp family."""

    efficiency: Mapping[int, float]
    """Share of the bandwidth by stored bits (16, 8, 4)."""
    overhead_s: float
    """Per layer and token."""
    expert_overhead_s: float
    cache: float
    overlapped: bool
    """The host works while the card reads: the longer of the two counts."""
    overhead_by_family_s: Mapping[str, float]
    """Per layer and token, for families and stored bits (``bnb_8``) that differ."""
    cards: int
    """Measured cards behind it."""
    offsets: Mapping[str, float]
    """Factor of a measured card, by name."""


class BatchTable(Struct, frozen=True):
    """What a further stream adds to a step besides the cache it reads."""

    arithmetic: float
    """Share of the prefill throughput that one token per stream reaches."""
    expert_arithmetic: float
    most_gain: float
    """Limit of aggregate over one stream where the card's arithmetic is unknown."""
    cache_share: float | None
    """Share of the bandwidth at which further streams' caches are read; None: as the first's."""


class Tables(Struct, frozen=True):
    """All of it."""

    family: FamilySpeed
    by_head: ByHead
    matches: tuple[Match, ...]
    engines: Mapping[str, EngineSpeed | None]
    """By framework name; None: like the leader."""
    kernels_s: Mapping[str, float]
    """Least time per layer and token of a format's own kernels, by family and stored bits."""
    prefill: PrefillTables
    leader: str
    """The framework that others are like."""
    batch_family: BatchTable
    batch_backends: Mapping[str, tuple[float, float]]
    """What a backend reaches of the family's shares: dense matrices, experts."""
    batch_other: BatchTable
    packed_experts: Mapping[str, float]
    """By backend: what a read of experts of 4 bits takes more, in reads at the full bandwidth."""
    offload: Offload
    layer_split: Curve
    micro_batches_power: float
    """Of what a prompt gains from micro-batches overlapping over the cards."""
    exchange: Exchange
    ranges: Mapping[str, Range]
    """80 % ranges by situation, factors on the figure."""
    speculation: Mapping[str, Range]
    """Slowest and fastest of the pairs with and without drafts, as factors on the plain speed."""
    small_gib: float
    deep_tokens: float
    measured_depth_tokens: int


class Policy(Struct, frozen=True):
    """What people decided and the fits build on."""

    matches: tuple[Match, ...]
    lines: Mapping[str, str]
    """Architecture -> the line that it is drawn to, empty for one that stands alone."""
    falls: float
    exchange: Exchange
    """Without what is fitted."""
    layer_split: Curve
    micro_batches_power: float
    engine_prefill: PrefillTables
    """Without anything fitted: what engines outside the llama.cpp family reach."""
    ranges: Mapping[str, Range]
    small_gib: float
    deep_tokens: float
    leader: str
    overlapped: frozenset[str]
    """Engines that prepare layers while the card reads."""
    own_pace: Mapping[str, str]
    """Programs of the llama.cpp family -> the date until which they had an engine of their own."""
    since: Mapping[str, str]
    """Engines whose earlier runs, by date, are not fitted."""
    older_prompts: Mapping[tuple[str, str | None], str]
    """By architecture and backend: earlier builds read prompts with other kernels."""
    older_experts: Mapping[tuple[str, str | None], str]
    """By format and backend: earlier builds launched experts with other kernels."""
    cache_share: float
    """Share of the bandwidth at which the caches of further streams are read."""
    by_head: ByHead
    packed_experts: tuple[str, ...]
    """Back ends on which servers read experts of 4 bits by slower kernels."""
    engine_bars: Mapping[str, float | None]
    """Engines with a line of their own among the held-out runs -> the median error allowed."""


def read_policy(calibration: Mapping[str, object]) -> Policy:
    """Check and convert calibration.yaml alone.

    Raises:
        KnowledgeError: A group or figure is missing or of the wrong kind.
    """
    policy = Fields(calibration, "", _POLICY)
    cards, limits = policy.group("multi_gpu"), policy.group("limits")
    engines = policy.group("engines").groups()
    return Policy(
        matches=tuple(map(read_match, policy.lines("architecture_of"))),
        lines={
            match.text("is"): match.text("line", "") for match in policy.lines("architecture_of")
        },
        falls=policy.group("prefill").number("falls"),
        exchange=Exchange(read_links(cards), {}),
        layer_split=cards.curve("layer_split_factor"),
        micro_batches_power=cards.number("micro_batches_power"),
        engine_prefill=read_prefill(policy.group("prefill"), None),
        ranges={
            key: policy.group("ranges").range_factors(key)
            for key in policy.group("ranges").found
            if key != "source"
        },
        small_gib=limits.number("small_gib"),
        deep_tokens=limits.number("deep_tokens"),
        leader=_leader(policy),
        overlapped=frozenset(n for n, line in engines.items() if line.flag("overlapped")),
        own_pace={
            n: line.text("own_pace_until")
            for n, line in engines.items()
            if "own_pace_until" in line.found
        },
        since={n: line.text("since") for n, line in engines.items() if "since" in line.found},
        older_prompts={
            (line.text("architecture"), line.text("backend")): line.text("before")
            for line in policy.group("prefill").lines("older")
        },
        older_experts={
            (line.text("format"), line.text("backend")): line.text("before")
            for line in policy.group("decode").lines("older_experts")
        },
        cache_share=policy.group("batch").group("cache_share").number("other"),
        by_head=read_by_head(policy.group("decode")),
        packed_experts=policy.group("batch").texts("packed_experts"),
        engine_bars={
            name: float(bar) if isinstance(bar, int | float) else None
            for name, bar in limits.group("engine_bars").found.items()
        },
    )


def _leader(policy: Fields) -> str:
    engines = policy.group("engines").groups().values()
    leader = next(line.text("like") for line in engines if "like" in line.found)
    for line in engines:
        line.only("like", leader)
    return leader


def read_tables(calibration: Mapping[str, object]) -> Tables:
    """Check and convert the plain data of the calibration files.

    Raises:
        KnowledgeError: A group or figure is missing or of the wrong kind.
    """
    policy = Fields(calibration, "", _POLICY)
    fitted = Fields(calibration.get("fitted"), "", _FITTED)
    cards = policy.group("multi_gpu")
    batch, limits = fitted.group("batch"), policy.group("limits")
    return Tables(
        family=_family(policy, fitted.group("decode")),
        by_head=read_by_head(policy.group("decode")),
        matches=tuple(map(read_match, policy.lines("architecture_of"))),
        engines=_engines(policy.group("engines"), fitted.group("engines")),
        kernels_s={
            key: ms * _PER_LAYER_S
            for key, ms in policy.group("kernels").group("overhead_ms").numbers().items()
        },
        prefill=read_prefill(policy.group("prefill"), fitted.group("prefill")),
        leader=(leader := _leader(policy)),
        batch_family=_batch(batch.group(leader), policy.group("batch"), leader),
        batch_backends={
            name: (line.number("arithmetic"), line.number("expert_arithmetic"))
            for name, line in batch.group("backends").groups().items()
        },
        batch_other=_batch(batch.group("other"), policy.group("batch"), "other"),
        packed_experts=batch.group("packed_experts").numbers(),
        offload=read_offload(fitted.group("offload")),
        layer_split=cards.curve("layer_split_factor"),
        micro_batches_power=cards.number("micro_batches_power"),
        exchange=Exchange(
            read_links(cards),
            {int(n): us * 1e-6 for n, us in batch.group("exchange_us_per_layer").numbers().items()},
        ),
        ranges=_ranges(policy.group("ranges"), fitted.group("ranges")),
        speculation={
            name: (pairs.number("low"), pairs.number("high"))
            for name, pairs in fitted.group("speculation").groups().items()
        },
        small_gib=limits.number("small_gib"),
        deep_tokens=limits.number("deep_tokens"),
        measured_depth_tokens=int(limits.number("measured_depth_tokens")),
    )


def _family(policy: Fields, decode: Fields) -> FamilySpeed:
    offsets = {
        (line.text("gpu"), line.text("backend")): line.number("factor")
        for line in decode.lines("cards")
    }
    return FamilySpeed(
        efficiency=decode.number("efficiency"),
        most_efficiency=policy.group("limits").number("most_efficiency"),
        overhead_s=decode.number("overhead_ms") * _PER_LAYER_S,
        expert_overhead_s=decode.number("expert_overhead_ms") * _PER_LAYER_S,
        recurrent_overhead_s=decode.number("recurrent_overhead_ms") * _PER_LAYER_S,
        serving_s=decode.number("serving_ms") * 1e-3,
        cache=decode.number("cache"),
        backends={name: _backend(line) for name, line in decode.group("backends").groups().items()},
        architectures={
            name: _architecture(line)
            for name, line in decode.group("architectures").groups().items()
        },
        formats=decode.group("formats").numbers(),
        format_groups=tuple(_format_groups(policy)),
        offsets=offsets,
        cache_types=decode.group("cache_types").numbers(),
        cache_generations=decode.group("cache_generations").numbers(),
    )


def format_group(policy: Mapping[str, object], name: str) -> str | None:
    """Name the group of formats that a format's speed is fitted with; None for none."""
    return group_in(_format_groups(Fields(policy, "", _POLICY)), name)


def group_in(groups: Iterable[tuple[str, str]], name: str) -> str | None:
    """Name the first group whose beginning a format's name has."""
    return next((group for begins, group in groups if name.startswith(begins)), None)


def _format_groups(policy: Fields) -> Iterable[tuple[str, str]]:
    return ((line.text("begins"), line.text("group")) for line in policy.lines("format_groups"))


_OF_BACKEND = (
    "efficiency", "overhead", "expert_overhead", "recurrent_overhead", "cache",
    "sixteen_bit_experts", "latent_cache", "unpacked",
)  # fmt: skip


def _backend(line: Fields) -> Backend:
    by_head = line.number("unpacked_by_head_ns") * 1e-9
    return Backend(unpacked_by_head_s=by_head, **{name: line.number(name) for name in _OF_BACKEND})


def _architecture(line: Fields) -> Architecture:
    backends = line.group("backends").groups()
    return Architecture(
        line.number("efficiency"),
        line.number("overhead"),
        {name: found.number("efficiency") for name, found in backends.items()},
        {name: int(found.number("cards")) for name, found in backends.items()},
    )


def _engines(policy: Fields, fitted: Fields) -> Mapping[str, EngineSpeed | None]:
    found = fitted.groups()
    return {
        name: None if "like" in line.found else _engine(line, found.get(name))
        for name, line in policy.groups().items()
    }


def _engine(policy: Fields, fitted: Fields | None) -> EngineSpeed:
    """Read an engine: fitted where measurements are carried, else as stated by hand.

    What is stated was drawn from several cards, so the runs of one alone do not replace it: its
    own ways would count as the engine's.
    """
    alone = fitted is not None and fitted.number("cards") == 1
    line = policy if fitted is None or (alone and "cards" in policy.found) else fitted
    by_family = "overhead_by_family_ms"
    own = line.group(by_family).numbers() if by_family in line.found else {}
    return EngineSpeed(
        efficiency={
            bits: line.number(f"efficiency_{bits}")
            for bits in (16, 8, 4)
            if f"efficiency_{bits}" in line.found
        },
        overhead_s=line.number("overhead_ms") * _PER_LAYER_S,
        expert_overhead_s=line.number("expert_overhead_ms") * _PER_LAYER_S,
        cache=line.number("cache"),
        overlapped=policy.flag("overlapped"),
        overhead_by_family_s={key: value * _PER_LAYER_S for key, value in own.items()},
        cards=int(line.number("cards")),
        offsets=line.group("offsets").numbers() if "offsets" in line.found else {},
    )


def _batch(fitted: Fields, policy: Fields, name: str) -> BatchTable:
    shares = policy.group("cache_share")
    return BatchTable(
        fitted.number("arithmetic"),
        fitted.number("expert_arithmetic"),
        policy.group("most_gain").number(name),
        shares.number(name) if name in shares.found else None,
    )


def _ranges(policy: Fields, fitted: Fields) -> Mapping[str, Range]:
    """Take the fitted range of a situation, else the one chosen by judgement."""
    names = {*policy.found, *SITUATIONS - fitted.found.keys()} - {"source"}
    found = {key: policy.range_factors(key) for key in sorted(names)}
    return found | {key: fitted.range_factors(key) for key in fitted.found if key != "source"}
