"""What power limits and laptops did to the carried measurements; nothing is fitted to either.

A pair is one configuration of one source at two power limits, all else equal as far as the row
says. Laptops are judged by how far they are off when their card is held out whole.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from statistics import median

from msgspec import Struct

from advisor.calibration.dataset import Row, conditions_of, speed_rows
from advisor.calibration.held_out import Held

_SAME = (
    "gpu", "n_gpu", "model", "quant", "framework", "framework_version", "backend",
    "prompt_tokens", "gen_tokens", "context_depth", "batch", "metric",
)  # fmt: skip
_INTRO = """\
No power term is fitted. One card was measured at several limits, with one engine and one model, and
one that shares its memory with the processor at two. The former loses little down to an edge and
much at once below it; a term would need the place of that edge, which one card does not tell for
others. Where cards wait for each other, a limit costs next to nothing. Nearly all vLLM runs on an
RTX 3090 that are fitted are from 220 W: without a limit that card is faster than its estimates by
what the table shows.
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
