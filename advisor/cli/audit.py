"""``advisor audit``: check what was published, and say what was found."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from math import isnan
from pathlib import Path
from typing import Annotated

import typer
from msgspec import Struct
from msgspec.structs import replace

from advisor.advice.pipeline import Advisor
from advisor.bulk.audit.finding import HEADINGS, Findings
from advisor.bulk.audit.pages import check_site
from advisor.bulk.audit.run import Likeness, Now, Result, Setup
from advisor.bulk.audit.run import audit as run_audit
from advisor.bulk.batch.manifest import made_by
from advisor.bulk.batch.readback import Batch, open_batch
from advisor.bulk.batch.spread import mark_of
from advisor.bulk.batch.store import MANIFEST, SITE_MANIFEST
from advisor.bulk.batch.worker import Cluster, Local
from advisor.cli.batch import inputs_of
from advisor.cli.options import (
    Format,
    cores,
)
from advisor.cli.own_files import takes_own_files
from advisor.cli.progress import STOPPED, Steps
from advisor.cli.where import Scheduler, Workers, cluster_of
from advisor.knowledge.layers import OwnFiles
from advisor.units import counted

_FOUND = 1
_SIMILAR = 0.9


def _number(value: float) -> float:
    """Refuse NaN, which is within any bounds."""
    if isnan(value):
        raise typer.BadParameter("nan is not a number.")
    return value


@takes_own_files()
def audit(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A batch or a site.")],
    sample: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Check the contents of N reports, spread evenly."),
    ] = None,
    workers: Workers = None,
    scheduler: Scheduler = None,
    similar: Annotated[
        float,
        typer.Option(
            min=0.1, max=1.0, callback=_number, help="Texts that overlap so much are told as alike."
        ),
    ] = _SIMILAR,
    form: Annotated[
        Format, typer.Option("--format", help="How findings are printed.")
    ] = Format.text,
    *,
    own: OwnFiles,
) -> None:
    """Check a batch: every report against itself, its formats and a fresh answer.

    Looks for figures and sentences that a fresh computation does not confirm,
    contradictions, files that are missing, damaged or foreign, broken links,
    different scenarios with the same text, and reports made from rules or
    knowledge that have changed, with the names of the changed files.

    A folder made by 'advisor site' is checked for links, damage and size.
    Exits 0 when nothing is wrong, 1 when something is.

    Example: advisor audit reports
    """
    how = _How(sample, workers, cluster_of(workers, scheduler), similar, form is Format.json)
    try:
        clean = _told(folder, own, how)
    except KeyboardInterrupt:
        sys.stderr.write("stopped before everything was checked, so nothing is told.\n")
        raise typer.Exit(STOPPED) from None
    if not clean:
        raise typer.Exit(_FOUND)


class _How(Struct, frozen=True):
    """How an audit is asked for."""

    sample: int | None
    workers: int | None
    cluster: Cluster | None
    threshold: float
    json_form: bool


def _told(folder: Path, own: OwnFiles, how: _How) -> bool:
    """Audit a site or a batch and print what was found; gives whether it is clean."""
    if (folder / SITE_MANIFEST).is_file() and not (folder / MANIFEST).exists():
        return told_site(folder, json_form=how.json_form)
    batch, setup, now = _prepared(folder, own)
    if how.cluster:
        setup = replace(setup, mark=mark_of(setup.folder, setup.own))
    return told_batch(batch, setup, now, how)


def _prepared(folder: Path, own: OwnFiles) -> tuple[Batch, Setup, Now]:
    batch = open_batch(folder)
    advisor = Advisor.with_files(own)
    setup = Setup(
        root=str(folder.resolve()),
        formats=batch.formats,
        length=batch.manifest["length"],
        fresh=True,
        own=own.whole(),
    )
    return batch, setup, Now(made_by(advisor, ()), inputs_of(own))


_SHOWN = 10
_SHOWN_GROUPS, _SHOWN_MEMBERS = 5, 3


def told_batch(batch: Batch, setup: Setup, now: Now, how: _How) -> bool:
    """Audit an output folder and print what was found; gives whether it is clean."""
    steps = Steps()
    place = how.cluster or Local(how.workers or max(min(cores(), batch.shards), 1))
    with steps.shown():
        result = run_audit(
            batch, setup, now,
            sample=how.sample, place=place, threshold=how.threshold, tell=steps.tell,
        )  # fmt: skip
    _print(_as_data(result) if how.json_form else None, _lines(result, how.threshold))
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
