"""What ``advisor audit`` prints."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from advisor.bulk.audit.finding import HEADINGS, Findings
from advisor.bulk.audit.pages import check_site
from advisor.bulk.audit.run import Likeness, Now, Result, Setup, audit
from advisor.bulk.batch.readback import Batch
from advisor.cli.progress import Steps
from advisor.units import counted

_SHOWN = 10
_SHOWN_GROUPS, _SHOWN_MEMBERS = 5, 3


def told_batch(
    batch: Batch,
    setup: Setup,
    now: Now,
    *,
    sample: int | None,
    workers: int | None,
    threshold: float,
    json_form: bool,
) -> bool:
    """Audit an output folder and print what was found; gives whether it is clean."""
    steps = Steps()
    with steps.shown():
        result = audit(
            batch, setup, now,
            sample=sample, workers=workers or _cores(batch), threshold=threshold, tell=steps.tell,
        )  # fmt: skip
    _print(_as_data(result) if json_form else None, _lines(result, threshold))
    return not result.findings.counts


def told_site(root: Path, *, json_form: bool) -> bool:
    """Audit a site by itself and print what was found; gives whether it is clean."""
    steps = Steps()
    with steps.shown():
        found, pages = check_site(root, lambda done, of: steps.tell("pages", done, of))
    findings = Findings()
    findings.add(found)
    data = {"schema_version": 1, "pages": pages, **_found_data(findings)}
    head = f"{counted(pages, 'page')} checked"
    _print(data if json_form else None, [head, *_found_lines(findings)])
    return not findings.counts


def _cores(batch: Batch) -> int:
    """No more processes than shards."""
    found = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return max(min(found or 1, batch.shards), 1)


def _print(data: Mapping[str, object] | None, lines: Iterator[str] | list[str]) -> None:
    if data is not None:
        sys.stdout.write(f"{json.dumps(data, indent=2, ensure_ascii=False)}\n")
    else:
        sys.stdout.writelines(f"{line}\n" for line in lines)


def _lines(result: Result, threshold: float) -> Iterator[str]:
    there = max(result.reports - result.failed, 0)
    of = "" if result.checked == there else f" of {there:,}"
    yield f"{result.checked:,}{of} {'report' if there == 1 else 'reports'} checked"
    if result.failed:
        said = "scenario has" if result.failed == 1 else "scenarios have"
        yield f"{result.failed:,} {said} no report: see errors.jsonl"
    if result.pages:
        yield f"{counted(result.pages, 'page')} of its site checked"
    yield from sorted(result.unread)
    if result.likeness:
        yield from _alike_lines(result.likeness, threshold)
    yield from _found_lines(result.findings)


def _alike_lines(likeness: Likeness, threshold: float) -> Iterator[str]:
    if likeness.common is not None:
        yield (
            f"{likeness.common:.0%} of an average report stands in more than half of all "
            f"({counted(likeness.counted, 'text')} compared)"
        )
    groups = likeness.groups
    if not groups:
        yield f"no two texts overlap by {threshold:.0%}"
        return
    yield f"texts that overlap by {threshold:.0%} or more, in {counted(len(groups), 'group')}:"
    for group in groups[:_SHOWN_GROUPS]:
        more = f" and {len(group) - _SHOWN_MEMBERS:,} more" if group[_SHOWN_MEMBERS:] else ""
        yield f"  {len(group):,}: {', '.join(group[:_SHOWN_MEMBERS])}{more}"
    for pair in likeness.pairs[:1]:
        yield f"  closest: {pair.one} and {pair.other}, {pair.overlap:.1%}"


def _found_lines(findings: Findings) -> Iterator[str]:
    if not findings.counts:
        yield "nothing is wrong"
        return
    for kind, heading in HEADINGS.items():
        if not findings.counts[kind]:
            continue
        yield ""
        yield f"{heading} ({findings.counts[kind]:,}):"
        found = findings.of(kind)
        yield from (f"  {one.where}: {one.message}" for one in found[:_SHOWN])
        if findings.counts[kind] > _SHOWN:
            yield f"  and {findings.counts[kind] - _SHOWN:,} more (--format json lists them)"
    yield ""
    yield f"{counted(findings.counts.total(), 'finding')}"


def _found_data(findings: Findings) -> Mapping[str, object]:
    return {
        "clean": not findings.counts,
        "counts": {kind: findings.counts[kind] for kind in HEADINGS if findings.counts[kind]},
        "findings": [
            {"kind": one.kind, "where": one.where, "message": one.message}
            for kind in HEADINGS
            for one in findings.of(kind)
        ],
    }


def _as_data(result: Result) -> Mapping[str, object]:
    alike = result.likeness
    return {
        "schema_version": 1,
        "reports": result.reports,
        "checked": result.checked,
        "failed": result.failed,
        "site_pages": result.pages,
        "not_checked": sorted(result.unread),
        "alike": alike
        and {
            "compared": alike.compared,
            "counted": alike.counted,
            "common_share": alike.common and round(alike.common, 4),
            "repeated": {text: round(share, 4) for text, share in alike.repeated.items()},
            "groups": alike.groups,
            "pairs": [
                {"one": pair.one, "other": pair.other, "overlap": round(pair.overlap, 4)}
                for pair in alike.pairs
            ],
        },
        **_found_data(result.findings),
    }
