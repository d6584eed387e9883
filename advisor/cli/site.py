"""``advisor site``: a static site made from a batch."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import typer

from advisor.bulk.batch.manifest import changed_files, input_files
from advisor.bulk.batch.readback import Batch, open_batch
from advisor.bulk.batch.store import locked
from advisor.bulk.site.catalogue import read_catalogue
from advisor.bulk.site.run import Asked, check_place, make_site, place_for
from advisor.cli.options import cores
from advisor.cli.own_files import takes_folders
from advisor.cli.progress import STOPPED, Steps
from advisor.cli.where import Scheduler, Workers, cluster_of
from advisor.errors import RequestError, raise_problems
from advisor.files import Kind
from advisor.knowledge.layers import OwnFiles, Stack, is_built_in
from advisor.report.templates import template_problems

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
    own: OwnFiles,
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
    raise_problems(template_problems(own.templates))
    batch, address = open_batch(folder), _address(base_url)
    _say_changed(batch, own.rules, own.knowledge)
    out = place_for(folder, output)
    cluster = cluster_of(workers, scheduler)
    asked = Asked(out, address, workers or cores(), cluster, own.templates)
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
