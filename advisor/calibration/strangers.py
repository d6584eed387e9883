"""What a stranger meets: another machine of a known card, or a card that nobody measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import exp
from statistics import median

from msgspec import Struct
from msgspec.structs import replace

from advisor.calibration.fits import Material
from advisor.calibration.held_out import Held, Spread, by_situation, fitted_ranges, ratios_of
from advisor.calibration.strata import off_by, percentile
from advisor.estimator.speed_fields import Range

_ENOUGH = 30
_LEAST, _MOST = 0.78, 0.82
_NEAR = 0.3
_INTRO = """\
## Another machine, and a card nobody measured

One stream in the llama.cpp family. For *another machine* everything of one source was held out and
its card stayed with others; for *a card nobody measured* the whole card. *Covered* is the share of
runs inside the 80 % range that `advise` shows for them. It was taken from these very errors, each
card or machine weighing by the root of its runs; *by the others* is the share inside the range that
the other cards or machines alone would have given, which is what a new one meets: the last column
judges by it, and 78 to 82 % of 30 runs or more count as a range of 80 %.
"""


class Stranger(Struct, frozen=True):
    """One line: errors as shares of the measured speed."""

    name: str
    runs: int
    groups: int
    median: float
    p90: float
    near: float
    covered: float
    by_others: float

    @property
    def says(self) -> str:
        """What keeps the shown range from being one of 80 %."""
        if self.runs < _ENOUGH:
            return "fewer than 30 runs"
        if self.by_others < _LEAST:
            return "**narrower than 80 %**"
        return "wider than 80 %" if self.by_others > _MOST else "80 %"


class _Asked(Struct, frozen=True):
    """A run, the range that is shown for it, and the one that the other groups alone would give."""

    held: Held
    shown: Range
    by_others: Range

    def covered(self, ends: Range) -> bool:
        return ends[0] <= exp(-self.held.error) <= ends[1]


def strangers(
    held: Sequence[Held], spreads: Mapping[str, Spread], material: Material
) -> Iterator[Stranger]:
    """Give the lines in the order of the page."""
    asked = list(_asked(held, spreads, material))
    for title, out in (("another machine", "source"), ("a card nobody measured", "card")):
        for kind, moe in (("dense", False), ("mixture of experts", True)):
            rows = [one for one in asked if one.held.held_out == out and one.held.run.moe == moe]
            if rows:
                yield _line(f"{title}, {kind}", rows)


def _asked(
    held: Sequence[Held], spreads: Mapping[str, Spread], material: Material
) -> Iterator[_Asked]:
    stated = material.policy.ranges
    shown = dict(stated) | dict(fitted_ranges(spreads, stated))
    strange = [one for one in held if one.kind == "decode"]
    for name, rows in by_situation(strange, material).items():
        ratios = ratios_of(rows)
        others = dict[str, Range]()
        for group in ratios.groups:
            low, high = ratios.ends(spreads[name].tail, but=group)
            without = {**spreads, name: replace(spreads[name], low=low, high=high)}
            others[group] = fitted_ranges(without, stated).get(name, shown[name])
        for one in rows:
            yield _Asked(one, shown[name], others[one.group])


def _line(name: str, rows: Sequence[_Asked]) -> Stranger:
    errors = [off_by(one.held) for one in rows]
    return Stranger(
        name, len(rows), len({one.held.group for one in rows}), median(errors),
        percentile(errors, 0.9), sum(error <= _NEAR for error in errors) / len(rows),
        sum(one.covered(one.shown) for one in rows) / len(rows),
        sum(one.covered(one.by_others) for one in rows) / len(rows),
    )  # fmt: skip


def section(lines: Sequence[Stranger]) -> Iterator[str]:
    """Write the section that leads the accuracy page."""
    yield _INTRO
    yield (
        "| who asks | runs | held out | median | P90 | within 30 % | covered | by the others |"
        " the range is of |"
    )
    yield "|---|---:|---:|---:|---:|---:|---:|---:|---|"
    for one in lines:
        shares = (one.median, one.p90, one.near, one.covered, one.by_others)
        cells = " | ".join(f"{100 * share:.1f} %" for share in shares)
        yield f"| {one.name} | {one.runs} | {one.groups} | {cells} | {one.says} |"
    yield ""
