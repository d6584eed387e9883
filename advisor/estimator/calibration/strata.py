"""The strata that accuracy is reported by, and what each is measured against."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import combinations
from math import expm1
from statistics import median

from msgspec import Struct

from advisor.estimator.calibration.dataset import Row, conditions_of, speed_rows
from advisor.estimator.calibration.held_out import Held, Spread, spread_of
from advisor.estimator.calibration.runs import Run, sized
from advisor.estimator.speed_prefill import work_of
from advisor.estimator.speed_tables import Policy

_NEAR = 0.3
_LEAST_CARDS = 3


class Stratum(Struct, frozen=True):
    """A kind of prediction, and the bar it is held to."""

    name: str
    takes: Callable[[Held], bool]
    median_bar: float | None = None
    p90_bar: float | None = None
    near_bar: float | None = None
    """Share within 30 %, at least."""


class Result(Struct, frozen=True):
    """How a stratum came out; errors as shares of the measured speed."""

    stratum: Stratum
    held: Sequence[Held]
    cards: int
    median: float
    p90: float
    near: float
    spread: Spread
    flat_median: float
    flat_p90: float
    flat_near: float

    @property
    def met(self) -> bool | None:
        """Whether the bar is met; None without one."""
        stratum = self.stratum
        pairs = [
            (stratum.median_bar, self.median), (stratum.p90_bar, self.p90),
            (-stratum.near_bar if stratum.near_bar else None, -self.near),
        ]  # fmt: skip
        checks = [value <= bar for bar, value in pairs if bar is not None]
        return all(checks) if checks else None

    @property
    def low_confidence(self) -> bool:
        """Whether fewer than three cards stand behind it."""
        return self.cards < _LEAST_CARDS


def _single(held: Held, out: str) -> bool:
    return held.kind == "decode" and held.held_out == out and (held.known or out != "configuration")


def _dense(held: Held) -> bool:
    return not held.run.moe and not held.run.deep


def _engine(held: Held, name: str) -> bool:
    is_engine = held.run.scenario.framework.name == name
    alone = held.kind == "engine" or (held.kind == "batch" and held.run.scenario.batch == 1)
    return alone and held.held_out == "configuration" and is_engine


def _streams(held: Held) -> bool:
    return held.kind == "batch" and not held.run.family and held.run.scenario.batch > 1


def _in_ram(held: Held, kind: str, model: str, out: str = "configuration") -> bool:
    return held.kind == kind and held.held_out == out and held.run.moe == (model == "experts")


_ONE_STREAM = (
    Stratum(
        "dense, one card, known card",
        lambda h: _single(h, "configuration") and _dense(h), 0.065, 0.25, 0.92,
    ),
    Stratum(
        "the same, raw tool output only",
        lambda h: _single(h, "configuration") and _dense(h) and h.run.raw, 0.065,
    ),
    Stratum(
        "dense, card left out", lambda h: _single(h, "card") and _dense(h), 0.13, None, 0.83
    ),
    Stratum(
        "dense, source left out",
        lambda h: _single(h, "source") and _dense(h) and h.known,
    ),
    Stratum(
        "mixture of experts, known card",
        lambda h: _single(h, "configuration") and h.run.moe and not h.run.deep, 0.12,
    ),
    Stratum(
        "mixture of experts, card left out",
        lambda h: _single(h, "card") and h.run.moe and not h.run.deep, 0.24,
    ),
    Stratum(
        "1,024 tokens deep and more, known card",
        lambda h: _single(h, "configuration") and h.run.deep,
    ),
    Stratum("dense layers in system RAM", lambda h: _in_ram(h, "offload", "dense"), 0.25),
    Stratum("experts in system RAM", lambda h: _in_ram(h, "offload", "experts"), 0.25),
    Stratum(
        "experts in system RAM, machine left out",
        lambda h: _in_ram(h, "offload", "experts", "source"), 0.25,
    ),
)  # fmt: skip
_SEVERAL = (
    Stratum(
        "vLLM, 2 to 64 streams",
        lambda h: _streams(h) and h.held_out == "configuration" and h.run.scenario.batch <= 64, 0.2,  # noqa: PLR2004
    ),
    Stratum(
        "the same, one card, model left out",
        lambda h: _streams(h) and h.held_out == "model" and h.run.scenario.gpus == 1,
    ),
    Stratum(
        "the same, tensor parallel, model left out",
        lambda h: _streams(h) and h.held_out == "model" and h.run.scenario.gpus > 1,
    ),
    Stratum("llama.cpp, 2 to 32 streams", lambda h: h.kind == "batch" and h.run.family),
    Stratum(
        "prefill, known card",
        lambda h: h.kind == "prefill" and h.held_out == "configuration" and h.known, 0.12,
    ),
    Stratum("prefill, card left out", lambda h: h.kind == "prefill" and h.held_out == "card", 0.18),
    Stratum("prefill, layers in system RAM", lambda h: _in_ram(h, "prompt offload", "dense")),
    Stratum("prefill, experts in system RAM", lambda h: _in_ram(h, "prompt offload", "experts")),
    Stratum(
        "prefill, experts in system RAM, machine left out",
        lambda h: _in_ram(h, "prompt offload", "experts", "source"),
    ),
    Stratum("prefill, several cards by layer", lambda h: h.kind == "prefill cards", 0.22),
    Stratum("several cards, split by layer", lambda h: h.kind == "layer split"),
    Stratum("several cards, tensor parallel", lambda h: h.kind == "tensor parallel"),
)  # fmt: skip


def strata_of(policy: Policy) -> Sequence[Stratum]:
    """List the strata in the order of docs/speed-accuracy.md."""
    engines = [
        Stratum(f"{name}, one stream", partial(_engine, name=name), bar)
        for name, bar in policy.engine_bars.items()
    ]
    return (*_ONE_STREAM, *engines, *_SEVERAL)


def results_of(held: Sequence[Held], policy: Policy) -> Sequence[Result]:
    """Measure every stratum that has predictions."""
    flat = _Flat.of(held, policy.falls)
    found = []
    for stratum in strata_of(policy):
        rows = [one for one in held if stratum.takes(one)]
        if rows:
            found.append(_result(stratum, rows, flat))
    return found


def noise_floor(runs: Sequence[Run]) -> Sequence[float]:
    """Give how far apart two sources are on one configuration: ratios above 1, sorted."""
    groups: dict[tuple[object, ...], list[Run]] = {}
    for run in runs:
        if not run.deep:
            groups.setdefault(run.configuration, []).append(run)
    ratios = [
        max(one.tok_s, other.tok_s) / min(one.tok_s, other.tok_s)
        for rows in groups.values()
        for one, other in combinations(rows, 2)
        if one.source != other.source
    ]
    return sorted(ratios)


def off_by(held: Held) -> float:
    """Give the error as a share of the measured speed."""
    return abs(expm1(held.error))


def percentile(values: Sequence[float], share: float) -> float:
    """Give the value below which a share of the values lies."""
    ordered = sorted(values)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)]


def _result(stratum: Stratum, held: Sequence[Held], flat: _Flat) -> Result:
    errors = [off_by(one) for one in held]
    flat_errors = [abs(flat.tok_s(one.run) / one.run.tok_s - 1) for one in held]
    return Result(
        stratum=stratum,
        held=held,
        cards=len({one.run.card[0] for one in held}),
        median=median(errors),
        p90=percentile(errors, 0.9),
        near=_share(errors),
        spread=spread_of(held),
        flat_median=median(flat_errors),
        flat_p90=percentile(flat_errors, 0.9),
        flat_near=_share(flat_errors),
    )


def _share(errors: Sequence[float]) -> float:
    return sum(error <= _NEAR for error in errors) / len(errors)


class _Flat(Struct, frozen=True):
    """The model that most calculators use: one efficiency for every card.

    One number for decoding and one for prefill, the medians of these very runs, so nothing is
    held out of it.
    """

    efficiency: float
    share: float
    falls: float

    @classmethod
    def of(cls, held: Sequence[Held], falls: float) -> _Flat:
        decode = [h.run for h in held if h.kind == "decode" and h.held_out == "configuration"]
        prefill = [h.run for h in held if h.kind == "prefill" and h.held_out == "configuration"]
        unit = cls(1.0, 1.0, falls)
        return cls(
            median(run.tok_s / unit.tok_s(run) for run in decode),
            median(run.tok_s / unit.tok_s(run) for run in prefill),
            falls,
        )

    def tok_s(self, run: Run) -> float:
        scenario, reads = run.scenario, run.reads
        gpu, streams = scenario.gpu, scenario.batch
        assert gpu
        assert gpu.bandwidth_bytes_s
        if run.metric == "prefill":
            work = work_of(scenario.model)
            size = sized(gpu, self.falls)[1] * 1e12 * self.share
            return size / (2 * (work.dense + work.experts))
        read = reads.gpu_bytes + reads.touched(streams) * reads.gpu_expert_bytes
        read += streams * reads.gpu_cache_bytes
        at_once = scenario.gpus if run.tensor else 1
        seconds = read / (gpu.bandwidth_bytes_s * at_once)
        if run.split and scenario.ram_bandwidth_bytes_s:
            host = reads.host_bytes + reads.touched(1) * reads.host_expert_bytes
            seconds += (host + reads.host_cache_bytes) / scenario.ram_bandwidth_bytes_s
        return streams * self.efficiency / seconds


_SAME = (
    "gpu", "n_gpu", "model", "quant", "framework", "framework_version", "backend",
    "prompt_tokens", "gen_tokens", "context_depth", "batch", "metric",
)  # fmt: skip
_INTRO = """\
No power term is told. One card was measured at several limits, with one engine and one model, and
one that shares its memory with the processor at two. The former loses little down to an edge and
much at once below it; a term would need the place of that edge, which one card does not tell for
others. Where cards wait for each other, a limit costs next to nothing. Nearly all vLLM runs on one
RTX 3090 that are fitted are from 220 W: runs of servers on one card below two thirds of its power
have a factor of their own in the fit, which is not told, so estimates are those of the full power.
"""
_LAPTOPS = """
These are too few for a term, and their power limits are not stated. Laptops nobody measured keep
the wider range of calibration.yaml (`laptop`).
"""
_OTHER_NOTES = re.compile(r"(?:objective|spec|tp|pp|inst|kv|n_ctx)=[\w.-]+")
_LINE = re.compile(r"#.*")


class Limited(Struct, frozen=True):
    """Speeds at one power limit over those at the highest one."""

    card: str
    how: str
    watts: int
    highest_watts: int
    shares: Sequence[float]

    @property
    def middle(self) -> float:
        """The median."""
        return median(self.shares)


class Laptop(Struct, frozen=True):
    """One laptop card when it was held out."""

    card: str
    kind: str
    ratios: Sequence[float]
    """Measured over predicted."""


def power_pairs() -> Sequence[Limited]:
    """Compare equal runs at different power limits, with the highest a card was measured at."""
    series: dict[tuple[str, ...], dict[int, float]] = defaultdict(dict)
    for row in speed_rows():
        watts = conditions_of(row).power_w
        if watts:
            series[_key(row)].setdefault(watts, float(row["value"]))
    found: dict[tuple[str, str, int, int], list[float]] = defaultdict(list)
    for key, speeds in series.items():
        highest = max(speeds)
        for watts, speed in speeds.items():
            if watts < highest:
                found[key[0], key[1], watts, highest].append(speed / speeds[highest])
    most = {card: max(w for c, _, _, w in found if c == card) for card, _, _, _ in found}
    return [
        Limited(*key, shares) for key, shares in sorted(found.items()) if key[3] == most[key[0]]
    ]


def _key(row: Row) -> tuple[str, ...]:
    notes = " ".join(_OTHER_NOTES.findall(row["note"]))
    same = (row[name] for name in _SAME)
    return (row["gpu"], _how(row), _LINE.sub("", row["source"]), notes, *same)


def _how(row: Row) -> str:
    conditions = conditions_of(row)
    if row["metric"] == "prefill_tok_s":
        return "reading a prompt"
    streams = "one stream" if row["batch"] in {"", "1"} else "several streams"
    if int(row["n_gpu"] or 1) == 1 or conditions.instances > 1:
        return f"{streams} on each card"
    return f"{streams} over {row['n_gpu']} cards"


def laptops(held: Sequence[Held]) -> Sequence[Laptop]:
    """Give measured over predicted of every laptop card that was held out whole."""
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    for one in held:
        gpu = one.run.scenario.gpu
        if gpu and gpu.segment == "mobile" and one.held_out == "card":
            found[gpu.name, one.kind].append(one.run.tok_s / one.predicted)
    return [Laptop(*key, ratios) for key, ratios in sorted(found.items())]


def power_section(held: Sequence[Held]) -> Iterator[str]:
    """Write the section of the accuracy page."""
    yield "## Power limits and laptops\n"
    yield _INTRO
    yield "| card | what | limit | over | pairs | median | least | most |"
    yield "|---|---|---:|---:|---:|---:|---:|---:|"
    for one in power_pairs():
        yield (
            f"| {one.card} | {one.how} | {one.watts} W | {one.highest_watts} W |"
            f" {len(one.shares)} | {one.middle:.2f} | {min(one.shares):.2f} |"
            f" {max(one.shares):.2f} |"
        )
    yield "\nSpeed as a factor on that at the higher limit, all else equal.\n"
    yield from _laptop_lines(laptops(held))


def _laptop_lines(found: Sequence[Laptop]) -> Iterator[str]:
    yield "| laptop card, held out | figure | runs | measured over predicted | least | most |"
    yield "|---|---|---:|---:|---:|---:|"
    for one in found:
        yield (
            f"| {one.card} | {one.kind} | {len(one.ratios)} | {median(one.ratios):.2f}"
            f" | {min(one.ratios):.2f} | {max(one.ratios):.2f} |"
        )
    yield _LAPTOPS
