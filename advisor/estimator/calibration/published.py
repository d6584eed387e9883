"""What others measured: published speeds as shown, another person's run, what strangers meet."""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import permutations
from math import exp, log
from statistics import median

from msgspec import Struct
from msgspec.structs import replace

from advisor.estimator.calibration.fits import Fitted, Material
from advisor.estimator.calibration.held_out import (
    Held,
    Spread,
    by_situation,
    fitted_ranges,
    ratios_of,
)
from advisor.estimator.calibration.observations import Observation
from advisor.estimator.calibration.runs import Run, depth_step
from advisor.estimator.calibration.strata import off_by, percentile
from advisor.estimator.speed_fields import Range

MEASURED_FILE = "measured.csv"
_HEADER = (
    "gpu", "model", "precision", "framework", "backend", "gpus", "batch", "cache", "depth_tokens",
    "tok_s", "runs", "source", "date",
)  # fmt: skip
_RECENT = 1.0
"""Years from which on a build is another one; measurements of half a year before say the same."""
_SAME_BYTES = log(1.04)
_ENOUGH = 30
_LEAST, _MOST = 0.78, 0.82
_NEAR = 0.3
_INTRO = """\
## Another machine, and a card nobody measured

One stream in the llama.cpp family. For *another machine* everything of one source was held out and
its card stayed with others; for *a card nobody measured* the whole card. *Covered* is the share of
runs inside the 80 % range that `advise` shows for them. It was taken from these very errors, each
card or machine weighing by the power 2/3 of its runs; *by the others* is the share inside the range
that the other cards or machines alone would have given, which is what a new one meets: the last
column judges by it, and 78 to 82 % of 30 runs or more count as a range of 80 %.
"""


def measured_text(observations: Iterable[Observation], runs: Iterable[Run]) -> str:
    """Write one line per measured configuration: median of comparable builds, all sources.

    A configuration that nobody measured with a build comparable to the newest of its engine has no
    line: its runs are in the fit, and the model goes before them. ``observations`` say what was
    really asked for.
    """
    exact = {one.row for one in observations if one.exact}
    newest: dict[str, str] = {}
    groups: dict[tuple[str, ...], list[Run]] = defaultdict(list)
    for run in runs:
        engine = engine_of(run)
        newest[engine] = max(newest.get(engine, ""), run.date)
        if exact & set(run.rows) and _is_plain(run):
            groups[_key(run)].append(run)
    kept = {key: found for key, found in groups.items() if _is_current(found, newest)}
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_HEADER)
    writer.writerows(sorted(_line(key, found) for key, found in kept.items()))
    return text.getvalue()


def _is_current(runs: Sequence[Run], newest: Mapping[str, str]) -> bool:
    return any(_comparable(run, run.date, newest[engine_of(run)]) for run in runs)


def engine_of(run: Run) -> str:
    """Name the engine; all of the llama.cpp family are one."""
    return "" if run.family else run.scenario.framework.name


def _comparable(run: Run, one: str, other: str) -> bool:
    """Say whether builds of two dates read the run's model alike.

    llama.cpp reads dense models as it did in 2024, experts by kernels that came since.
    """
    unchanged = run.family and not run.moe
    return unchanged or abs(_year(one) - _year(other)) < _RECENT


def _is_plain(run: Run) -> bool:
    scenario = run.scenario
    return run.metric == "decode" and not run.split and scenario.kv_cache_k.name == "f16"


def _key(run: Run) -> tuple[str, ...]:
    scenario = run.scenario
    gpu, backend = run.card
    return (
        gpu, scenario.model.name, scenario.precision.name, scenario.framework.name, backend,
        str(scenario.gpus), str(scenario.batch), scenario.kv_cache_k.name,
        str(depth_step(scenario.depth_tokens)),
    )  # fmt: skip


def _line(key: tuple[str, ...], runs: list[Run]) -> tuple[str, ...]:
    newest = max(run.date for run in runs)
    recent = [run for run in runs if _year(run.date) > _year(newest) - _RECENT]
    depth = median(run.scenario.depth_tokens for run in recent)
    tok_s = median(run.tok_s for run in recent)
    sources = " and ".join(sorted({run.source.partition(": ")[0] for run in recent}))
    count = sum(len(run.rows) for run in recent)
    return (*key[:-1], str(round(depth)), f"{tok_s:.4g}", str(count), sources, newest[:7])


def _year(date: str) -> float:
    """Read a date as years; a month weighs a twelfth, none stated the middle."""
    month = int(date[5:7]) if len(date) >= len("2026-01") else 6
    return int(date[:4] or 0) + month / 12


def pairs_of_sources(material: Material, fitted: Fitted) -> Iterator[Held]:
    """Predict every run by another source's run of a like configuration, as a published one would.

    Like are runs of one card with as many layers, formats of one group, equal depth and within 4 %
    of the bytes per token, which the model makes up for; builds are comparable.
    """
    alike: dict[tuple[object, ...], list[Run]] = defaultdict(list)
    for run in material.single:
        scenario = run.scenario
        group = material.group_of(scenario.precision.name)
        key = (run.card, scenario.model.shape.layers, group, depth_step(scenario.depth_tokens))
        alike[*key, run.moe, scenario.kv_cache_k.name].append(run)
    for runs in alike.values():
        for known, asked in permutations(runs, 2):
            apart = abs(log(known.reads.step_bytes(1) / asked.reads.step_bytes(1)))
            same = apart < _SAME_BYTES and _comparable(known, known.date, asked.date)
            if same and known.source != asked.source:
                speed = known.tok_s * fitted.decode.seconds(known) / fitted.decode.seconds(asked)
                group = "\0".join((*known.card, *sorted((known.source, asked.source))))
                yield Held(asked, speed, "source", group, "measured")


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
                yield _stranger(f"{title}, {kind}", rows)


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


def _stranger(name: str, rows: Sequence[_Asked]) -> Stranger:
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
