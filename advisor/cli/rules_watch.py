"""``advisor rules test --watch``: at every save, what the edit concerns."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from advisor.cli.case_results import placed, text_of
from advisor.errors import UserError

if TYPE_CHECKING:
    from advisor.rules.language.file_places import Places
    from advisor.workbench.cases import CaseResult
    from advisor.workbench.watch import Concerned, Session, Stamp

_LOOK_EVERY_S = 0.2


def watch_files(session: Session, only: frozenset[str] | None, seen: Stamp, places: Places) -> None:
    """Run tests again at every save, until Ctrl-C."""
    from advisor.workbench.watch import until_changed  # noqa: PLC0415

    typer.echo("watching rules, templates and knowledge; Ctrl-C ends it")
    while True:
        seen = until_changed(session.folders, seen, lambda: time.sleep(_LOOK_EVERY_S))
        begun = time.perf_counter()
        try:
            concerned = session.reload()
        except UserError as error:
            for line in str(places.error(error)).splitlines():
                typer.echo(f"error: {line}")
            continue
        rerun(session, concerned, only, places)
        rules = concerned.rules if only is None else concerned.rules & only
        typer.echo(f"({len(rules)} rules concerned, {time.perf_counter() - begun:.2f} s)")
        _later(session, concerned, only, places, seen)


def rerun(
    session: Session, concerned: Concerned, only: frozenset[str] | None, places: Places
) -> None:
    """Run at once what an edit concerns most, and write the outcome."""
    if concerned.texts:
        for line in _template_problems(session.runner.templates, session.rules, session.knowledge):
            typer.echo(line)
    wanted = concerned.rules if only is None else concerned.rules & only
    found = session.run(wanted, concerned.scenarios if only is None else ())
    typer.echo(text_of(placed(found, places)), nl=False)


def _template_problems(
    templates: Path | None, rules: Path | None, knowledge: Path | None
) -> Iterator[str]:
    """What is wrong with the texts; a rule that asks for words would only show one of them."""
    from advisor.workbench.lint.output import as_text  # noqa: PLC0415
    from advisor.workbench.lint.templates import check_templates  # noqa: PLC0415

    checked = check_templates(templates, rules=rules, knowledge=knowledge)
    many = f"{checked.files} template{'s' * (checked.files != 1)}"
    yield from as_text(checked.problems).splitlines()
    yield f"{many}: {len(checked.problems) or 'no'} problem{'s' * (len(checked.problems) > 1)}"


def _later(
    session: Session,
    concerned: Concerned,
    only: frozenset[str] | None,
    places: Places,
    seen: Stamp,
) -> None:
    """Run the rest, whose facts must be worked out again, until the next save."""
    from advisor.workbench.watch import stamp  # noqa: PLC0415

    rest = concerned.later if only is None else concerned.later & only
    if not rest:
        return
    typer.echo("the other cases, as facts may differ ...")
    found: list[CaseResult] = []
    looked = time.perf_counter()
    for result in session.run(rest, ()):
        found.append(result)
        if time.perf_counter() - looked > _LOOK_EVERY_S:
            if stamp(session.folders) != seen:
                return
            looked = time.perf_counter()
    typer.echo(text_of(placed(found, places)), nl=False)
