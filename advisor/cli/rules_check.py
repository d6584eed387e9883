"""``advisor rules check`` and ``format``: what is wrong with rule files, and their form."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from advisor.cli.options import (
    FindingsFormat,
    RulesFolder,
    Workers,
)
from advisor.cli.own_files import takes_folders
from advisor.cli.progress import progress_line
from advisor.errors import raise_problems, visible
from advisor.knowledge.layers import OwnFiles
from advisor.units import counted
from advisor.workbench.lint.check import Asked, Checked, Means, asked_for, check_all, each_layer
from advisor.workbench.lint.corrections import corrected, differences, reformatted, replace_files
from advisor.workbench.lint.problem import as_github, as_json, as_sarif, as_text, page

_SAMPLE = 400
Paths = Annotated[
    list[Path] | None,
    typer.Argument(help="Folders or files of rules. (default: --rules, or the built-in rules)"),
]


@takes_folders
def check(
    paths: Paths = None,
    format_: Annotated[
        FindingsFormat, typer.Option("--format", help="How findings are written.")
    ] = FindingsFormat.text,
    fix: Annotated[
        bool, typer.Option("--fix", help="Correct what can only be meant one way; shows the edits.")
    ] = False,
    diff: Annotated[
        bool, typer.Option("--diff", help="Show what --fix would edit, and write nothing.")
    ] = False,
    explain: Annotated[
        str | None, typer.Option(help="Print the page of one kind of problem, by its id.")
    ] = None,
    quick: Annotated[
        bool,
        typer.Option("--quick", help="Only what needs no scenario: for editors and commit hooks."),
    ] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Exit 1 on warnings too.")] = False,
    sample: Annotated[
        int, typer.Option(help="Scenarios of the catalogue to try rules on.", min=0, max=1_000_000)
    ] = _SAMPLE,
    workers: Workers = None,
    *,
    own: OwnFiles,
) -> None:
    """Check rules: syntax, names, units, limits, cases and what never matters; all at once.

    Each finding has a place, a kind in brackets and what to do. Nothing is asked of the network.

    Example: advisor rules check house/rules --fix
    """
    if explain is not None:
        typer.echo(page(explain), nl=False)
        return
    asked = asked_for(paths or [], own.rules)
    means = Means(
        own.knowledge, own.templates, 0 if quick else sample, not quick, workers, progress_line()
    )
    if fix or diff:
        _correct(each_layer(asked), means, write=not diff)
    checked = check_all(asked, means)
    if not diff:
        text = format_ is FindingsFormat.text
        fixable = _fixable(asked, means, checked) if text and not fix else 0
        typer.echo(_shown(checked, format_, fixable), nl=False)
    if checked.elsewhere or any(one.is_error or strict for one in checked.problems):
        raise typer.Exit(1)


def _correct(asked: Sequence[Asked], means: Means, *, write: bool) -> None:
    found = corrected(asked, means)
    typer.echo(visible(differences(found.files)), nl=False, err=write)
    if write:
        replace_files(found.files)
        for change in found.changes:
            typer.echo(visible(change), err=True)
        what = f"{counted(len(found.changes), 'mistake')} in {counted(len(found.files), 'file')}"
        typer.echo(f"{what if found.changes else 'nothing'} corrected", err=True)


def _fixable(asked: Sequence[Asked], means: Means, checked: Checked) -> int:
    """Count what ``--fix`` would correct, by trying it."""
    if all(one.edit is None for one in checked.problems):
        return 0
    return len(corrected(each_layer(asked), means).changes)


def _shown(checked: Checked, form: FindingsFormat, fixable: int) -> str:
    if form is FindingsFormat.json:
        return as_json(checked.problems)
    if form is FindingsFormat.sarif:
        return as_sarif(checked.problems)
    if form is FindingsFormat.github:
        return as_github(checked.problems)
    return as_text(checked.problems) + _summary(checked, fixable)


def _summary(checked: Checked, fixable: int) -> str:
    errors = sum(one.is_error for one in checked.problems)
    warnings = len(checked.problems) - errors
    looked = f"{counted(checked.rules, 'rule')} in {counted(checked.files, 'file')}"
    if checked.scenarios:
        looked += f", tried on {counted(checked.scenarios, 'scenario')}"
    counts = ((errors, "error"), (warnings, "warning"))
    said = " and ".join(counted(n, word) for n, word in counts if n) or "no problem found"
    lines = [f"{looked}: {said}" if checked.rules else said]
    lines += [checked.own] if checked.own else []
    if checked.elsewhere:
        errors_there = counted(checked.elsewhere, "error")
        lines.append(f"not tried: {errors_there} in files that were not named")
    if fixable:
        lines.append(f"--diff shows how {fixable} of them can be corrected, --fix does it")
    return "\n".join(lines) + "\n"


def format_(
    paths: Paths = None,
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; exit 1 when a file would change.")
    ] = False,
    diff: Annotated[bool, typer.Option("--diff", help="Write nothing; show the edits.")] = False,
    rules: RulesFolder = None,
) -> None:
    """Write rule files in the canonical form: order of keys, indentation, spacing.

    Comments, values and the order of conditions stay. A file that is not YAML is named and left
    alone. Scenario files are written by 'advisor rules test --accept' and are not touched.

    Example: advisor rules format house/rules --diff
    """
    edited, same, errors = reformatted(paths or rules or [])
    if diff:
        typer.echo(visible(differences(edited)), nl=False)
    elif check:
        typer.echo("".join(f"would reformat {file.shown}\n" for file in edited), nl=False)
    else:
        replace_files(edited)
    told = "would change" if check or diff else "reformatted"
    typer.echo(f"{counted(len(edited), 'file')} {told}, {same} unchanged", err=diff)
    raise_problems(errors)
    if check and edited:
        raise typer.Exit(1)
