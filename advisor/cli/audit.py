"""``advisor audit``: check what was published, and say what was found."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from math import isnan
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import typer
from msgspec import Struct
from msgspec.structs import replace

from advisor.advice import Advisor
from advisor.bulk.audit import Likeness, Now, Result, Setup
from advisor.bulk.audit import audit as run_audit
from advisor.bulk.audit.pages import HEADINGS, Findings, check_site
from advisor.bulk.batch import mark_of
from advisor.bulk.batch.manifest import Batch, changed_files, input_files, made_by, open_batch
from advisor.bulk.batch.store import MANIFEST, SITE_MANIFEST, locked
from advisor.bulk.batch.worker import Cluster, Local
from advisor.bulk.site import Asked, check_place, make_site, place_for
from advisor.bulk.site.catalogue import read_catalogue
from advisor.cli.batch import Scheduler, Workers, cluster_of, inputs_of
from advisor.cli.options import Format, cores
from advisor.cli.report_output import STOPPED, Steps, takes_folders, takes_user_files
from advisor.errors import RequestError, raise_problems
from advisor.files import Kind
from advisor.knowledge.layers import Stack, UserFiles, is_built_in
from advisor.report.templates import template_problems
from advisor.units import counted

_FOUND = 1
_SIMILAR = 0.9


def _number(value: float) -> float:
    """Refuse NaN, which is within any bounds."""
    if isnan(value):
        raise typer.BadParameter("nan is not a number.")
    return value


@takes_user_files()
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
    form: Annotated[Format, typer.Option("--format", help="How findings are printed.")] = "text",
    *,
    user: UserFiles,
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
    how = _How(sample, workers, cluster_of(workers, scheduler), similar, form == "json")
    try:
        clean = _told(folder, user, how)
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


def _told(folder: Path, user: UserFiles, how: _How) -> bool:
    """Audit a site or a batch and print what was found; gives whether it is clean."""
    if (folder / SITE_MANIFEST).is_file() and not (folder / MANIFEST).exists():
        return told_site(folder, json_form=how.json_form)
    batch, setup, now = _prepared(folder, user)
    if how.cluster:
        setup = replace(setup, mark=mark_of(setup.folder, setup.user))
    return told_batch(batch, setup, now, how)


def _prepared(folder: Path, user: UserFiles) -> tuple[Batch, Setup, Now]:
    batch = open_batch(folder)
    advisor = Advisor.with_files(user)
    setup = Setup(
        root=str(folder.resolve()),
        formats=batch.formats,
        length=batch.manifest["length"],
        fresh=True,
        user=user.whole(),
    )
    return batch, setup, Now(made_by(advisor, ()), inputs_of(user))


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


Output = Annotated[
    Path | None,
    typer.Option(
        "--output", "--out", metavar="OUT", help="Folder of the site; DIR/site if left out."
    ),
]


@takes_folders
def site(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The --out folder of a batch.")],
    output: Output = None,
    base_url: Annotated[
        str, typer.Option(metavar="URL", help="Where it will stand; for canonical links, sitemap.")
    ] = "",
    workers: Workers = None,
    scheduler: Scheduler = None,
    *,
    user: UserFiles,
) -> None:
    """Make a site that people can browse from a batch of reports.

    It has a search, a matrix of cards and models, a page for each card, model
    and pair, every report, and comparisons of two cards. It needs no server:
    open index.html from the disk, or copy the folder to any web server.

    Reports stay as the batch wrote them: where the rules or the knowledge that you name are
    others than those they were made from, one line says so.

    The batch must hold JSON Lines. Made again into the same folder, the site
    is replaced page by page and what is no longer part of it is removed.

    Example: advisor site reports
    """
    raise_problems(template_problems(user.templates))
    batch, address = open_batch(folder), _address(base_url)
    _say_changed(batch, user.rules, user.knowledge)
    out = place_for(folder, output)
    cluster = cluster_of(workers, scheduler)
    asked = Asked(out, address, workers or cores(), cluster, user.templates)
    steps, catalogue = Steps(), read_catalogue(batch)
    try:
        check_place(out, batch.root)
        with locked(out), steps.shown():
            made = make_site(batch, catalogue, asked, steps.tell)
    except OSError as bad:
        hint = "Once this is mended, run the same command again."
        raise RequestError(f"cannot write into '{out}': {bad.strerror or bad}", hint=hint) from None
    except KeyboardInterrupt:
        sys.stderr.write("stopped: the site is not complete. Run the same command again.\n")
        raise typer.Exit(STOPPED) from None
    summary = {
        "out": str(out), "pages": made.pages, "reports": made.reports, "files": made.files,
        "largest_page_bytes": made.largest_page_bytes,
    }  # fmt: skip
    sys.stdout.write(f"{json.dumps(summary, ensure_ascii=False)}\n")


def _say_changed(batch: Batch, rules: Stack, knowledge: Stack) -> None:
    """Say where the batch was made from other files than those that are named now."""
    then = batch.manifest.get("inputs")
    named: Mapping[Kind, Stack] = {"rules": rules, "knowledge": knowledge}
    if not isinstance(then, dict) or not any(named.values()):
        return
    now = {name: mark for name, mark in input_files(named).items() if _is_of(name, named)}
    before = {name: mark for name, mark in then.items() if _is_of(name, named)}
    changed = [*changed_files(before, now)]
    if changed:
        more = f" and {len(changed) - 1} more" if changed[1:] else ""
        sys.stderr.write(
            f"note: the reports were made from other files ({changed[0]}{more}) and stay as they "
            "are. Make the batch again to change them.\n"
        )


def _is_of(name: str, named: Mapping[Kind, Stack]) -> bool:
    """Whether a file that reports were made from is of a kind that is named."""
    built_in = is_built_in(name) or name.startswith("own/")
    own = name.removeprefix("own/")
    return not built_in or any(f and own.startswith(f"{kind}/") for kind, f in named.items())


def _address(text: str) -> str:
    """Check the address and end it with a slash."""
    if not text:
        return ""
    try:
        parts = urlsplit(text)
    except ValueError:
        parts = urlsplit("")
    plain = parts.scheme in {"http", "https"} and parts.netloc
    if not plain or parts.query or parts.fragment or any(c in text for c in " \"'<>\\"):
        hint = "Write for example https://example.org/gpus/."
        raise RequestError(f"--base-url: '{text}' is not the address of a folder", hint=hint)
    return text if text.endswith("/") else f"{text}/"
