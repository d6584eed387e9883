"""``advisor site``: a static site made from a batch."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import typer

from advisor.bulk.batch.readback import open_batch
from advisor.bulk.batch.store import locked
from advisor.bulk.site.catalogue import read_catalogue
from advisor.bulk.site.run import Asked, check_place, make_site, place_for
from advisor.cli.options import TemplatesFolder
from advisor.cli.progress import STOPPED, Steps
from advisor.errors import RequestError, raise_problems
from advisor.report.templates import template_problems

Output = Annotated[
    Path | None,
    typer.Option(
        "--output", "--out", metavar="OUT", help="Folder of the site; DIR/site if left out."
    ),
]


def site(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The --out folder of a batch.")],
    output: Output = None,
    base_url: Annotated[
        str, typer.Option(metavar="URL", help="Where it will stand; for canonical links, sitemap.")
    ] = "",
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes; one for each core if left out.")
    ] = None,
    templates: TemplatesFolder = None,
) -> None:
    """Make a site that people can browse from a batch of reports.

    It has a search, a matrix of cards and models, a page for each card, model
    and pair, every report, and comparisons of two cards. It needs no server:
    open index.html from the disk, or copy the folder to any web server.

    The batch must hold JSON Lines. Made again into the same folder, the site
    is replaced page by page and what is no longer part of it is removed.
    """
    if templates and templates.is_dir():
        raise_problems(template_problems(templates))
    batch, address = open_batch(folder), _address(base_url)
    out = place_for(folder, output)
    asked = Asked(out, address, workers or _cores(), templates)
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


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
