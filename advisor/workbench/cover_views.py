"""Coverage as text, as JSON and as a page with a heat map."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

from advisor.report.figures import aligned
from advisor.units import counted
from advisor.workbench.cover import Coverage, RuleCover, Threshold
from advisor.workbench.scenario_file import request_line


def share(part: int, whole: int) -> str:
    """Write a share: ``12.3 %``, and never 0 or 100 unless it is none or all."""
    if not whole:
        return "-"
    value = 100 * part / whole
    if part and value < 0.1:  # noqa: PLR2004
        return "<0.1 %"
    if part < whole and value > 99.9:  # noqa: PLR2004
        return ">99.9 %"
    return f"{value:.1f} %"


def table(rows: Sequence[Sequence[str]], indent: str = "") -> Iterator[str]:
    """Lay rows out in columns; those of numbers are set to the right."""
    if not rows:
        return
    right = {i for i in range(len(rows[0])) if _numeric([row[i] for row in rows[1:]])}
    yield from aligned(rows, indent, right=right)


def _numeric(cells: Sequence[str]) -> bool:
    return bool(cells) and all(c[:1].isdigit() or c[:1] in "-<>" for c in cells if c)


def cover_text(coverage: Coverage, *, thresholds: bool = False) -> str:
    """Write coverage for a terminal; ``thresholds`` adds a line for every numeric condition."""
    lines = [*_text(coverage), *(_conditions(coverage) if thresholds else ())]
    return "\n".join(lines) + "\n"


def _text(coverage: Coverage) -> Iterator[str]:
    total = coverage.scenarios
    yield (
        f"{counted(len(coverage.rules), 'rule')} over {counted(total, 'scenario')} of the catalogue"
        f", {coverage.options:,} what-ifs"
    )
    yield ""
    head = ("rule", "does", "fires", "said", "first")
    yield from table([head, *(_row(cover, total) for cover in coverage.rules)])
    yield ""
    yield from _list("Never fires", coverage.never)
    yield from _list("Always fires", coverage.always)
    yield from _list("Always together", [", ".join(ids) for ids in coverage.together])
    yield from _silences(coverage)
    yield from _uncrossed(coverage)


def _row(cover: RuleCover, total: int) -> tuple[str, ...]:
    said = "" if cover.rule.conclude else share(cover.said, total)
    first = share(cover.first, total) if cover.rule.action else ""
    return (cover.rule.id, cover.rule.kind, share(cover.fires, total), said, first)


def _list(title: str, items: Sequence[str]) -> Iterator[str]:
    yield f"{title}: {len(items) or 'none'}"
    yield from (f"  {item}" for item in items)


def _silences(coverage: Coverage) -> Iterator[str]:
    yield ""
    yield "Scenarios without any recommendation"
    for silence in coverage.silences:
        part = share(silence.count, silence.of)
        verdict = silence.verdict or "NO VERDICT, so no answer at all"
        yield f"  {verdict}: {silence.count:,} of {silence.of:,} ({part})"
        if silence.verdict != "fits":
            yield from (f"      advisor advise {request_line(g)}" for g in silence.examples)


def _uncrossed(coverage: Coverage) -> Iterator[str]:
    idle = [t for t in coverage.thresholds if not t.crossed]
    yield ""
    yield f"Thresholds that the sample never crosses: {len(idle) or 'none'}"
    yield from (f"  {_condition(t)}: {_side(t)}" for t in idle)
    blind = [t for t in coverage.thresholds if t.crossed and not t.decides]
    yield ""
    yield f"Thresholds that never decide, as another condition fails first: {len(blind) or 'none'}"
    yield from (f"  {_condition(t)}" for t in blind)


def _conditions(coverage: Coverage) -> Iterator[str]:
    yield ""
    yield "Numeric conditions (of scenarios, or of what-ifs for option facts)"
    rows: list[tuple[str, ...]] = [("condition", "passes", "fails", "unknown", "decides")]
    for t in coverage.thresholds:
        of = coverage.options if t.per_option else coverage.scenarios
        shares = (share(n, of) for n in (t.passes, t.fails, t.unknown))
        rows.append((_condition(t), *shares, f"{t.decides:,}"))
    yield from table(rows, "  ")


def _condition(threshold: Threshold) -> str:
    return f"{threshold.rule.id}: {threshold.test.fact} {threshold.test.text}"


def _side(threshold: Threshold) -> str:
    if not threshold.passes and not threshold.fails:
        return "the fact is never known"
    return "always passes where it is known" if threshold.passes else "never passes"


def cover_json(coverage: Coverage) -> str:
    """Write coverage for programs."""
    total = coverage.scenarios
    return (
        json.dumps(
            {
                "schema_version": 1,
                "scenarios": total,
                "options": coverage.options,
                "rules": [_rule_object(r, total) for r in coverage.rules],
                "never": list(coverage.never),
                "always": list(coverage.always),
                "together": [list(ids) for ids in coverage.together],
                "without_advice": [
                    {
                        "verdict": s.verdict or None,
                        "scenarios": s.count,
                        "of": s.of,
                        "examples": [dict(g) for g in s.examples],
                    }
                    for s in coverage.silences
                ],
                "thresholds": [_threshold_object(t) for t in coverage.thresholds],
            },
            indent=2,
        )
        + "\n"
    )


def _rule_object(cover: RuleCover, total: int) -> dict[str, object]:
    heat: dict[str, dict[str, float]] = {}
    for (axis, group), value in cover.heat.items():
        heat.setdefault(axis, {})[group] = round(value, 4)
    return {
        "rule": cover.rule.id,
        "kind": cover.rule.kind,
        "fires": cover.fires,
        "share": round(cover.fires / total, 6) if total else 0.0,
        "said": cover.said,
        "first": cover.first,
        "by": heat,
    }


def _threshold_object(threshold: Threshold) -> dict[str, object]:
    return {
        "rule": threshold.rule.id,
        "fact": threshold.test.fact,
        "condition": threshold.test.text,
        "at": str(threshold.test.source) if threshold.test.source else None,
        "of": "options" if threshold.per_option else "scenarios",
        "passes": threshold.passes,
        "fails": threshold.fails,
        "unknown": threshold.unknown,
        "decides": threshold.decides,
        "crossed": threshold.crossed,
    }


_STYLE = Path(__file__).with_name("cover.css")


def cover_html(coverage: Coverage) -> str:
    """Write one page that needs nothing else: the heat map, and the lists of the text."""
    groups = list(coverage.groups)
    axes = [axis for i, (axis, _) in enumerate(groups) if i == 0 or groups[i - 1][0] != axis]
    spans = [sum(own == axis for own, _ in groups) for axis in axes]
    top = "".join(
        f'<th class="axis" colspan="{span}">{escape(axis)}</th>'
        for axis, span in zip(axes, spans, strict=True)
    )
    names = "".join(
        f'<th class="turn">{escape(group)} ({coverage.groups[axis, group]:,})</th>'
        for axis, group in groups
    )
    rows = "".join(_html_row(cover, coverage) for cover in coverage.rules)
    text = "\n".join([*_text(coverage), *_conditions(coverage)])
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>Rule coverage</title><style>\n{_STYLE.read_text('utf-8')}</style></head><body>"
        f"<h1>Rule coverage</h1><p>{counted(len(coverage.rules), 'rule')} over "
        f"{counted(coverage.scenarios, 'scenario')}. A cell is the share of its column's scenarios "
        "in which the rule fires; darker is more.</p>"
        f'<table><thead><tr><th></th><th></th>{top}</tr><tr><th class="name">rule</th>'
        f"<th>all</th>{names}</tr></thead><tbody>{rows}</tbody></table>"
        f"<h2>In full</h2><pre>{escape(text)}</pre></body></html>\n"
    )


def _html_row(cover: RuleCover, coverage: Coverage) -> str:
    whole = cover.fires / coverage.scenarios if coverage.scenarios else 0.0
    cells = "".join(_cell(value) for value in (whole, *cover.heat.values()))
    tone = "" if cover.fires else " none"
    return (
        f'<tr><th class="name{tone}" title="{escape(cover.rule.why, quote=True)}">'
        f"{escape(cover.rule.id)}</th>{cells}</tr>"
    )


def _cell(value: float) -> str:
    if not value:
        return "<td></td>"
    dark = " color:#fff;" if value > 0.55 else " color:#1b1b1b;"  # noqa: PLR2004
    light = 95 - 60 * value
    return f'<td style="background:hsl(212 60% {light:.0f}%);{dark}">{100 * value:.0f}</td>'
