"""``advisor templates``: check texts, and see what they say."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from advisor.cli.options import KnowledgeFolder, RulesFolder, TemplatesFolder
from advisor.cli.request_flags import Asked, takes_request
from advisor.cli.rules_sample import Output

templates_app = typer.Typer(
    name="templates", help="Check the texts of reports and see what they say.", no_args_is_help=True
)


class FindingsFormat(StrEnum):
    """How findings are written."""

    text = "text"
    json = "json"
    sarif = "sarif"
    github = "github"


@templates_app.command()
def check(
    folder: Annotated[
        Path | None, typer.Argument(help="Folder of templates. (default: the built-in ones)")
    ] = None,
    rules: RulesFolder = None,
    knowledge: KnowledgeFolder = None,
    format_: Annotated[
        FindingsFormat, typer.Option("--format", help="How findings are written.")
    ] = FindingsFormat.text,
    output: Output = None,
    fix: Annotated[
        bool,
        typer.Option("--fix", help="Write today's names of facts for those of before; shows it."),
    ] = False,
) -> None:
    """Check templates: placeholders, syntax, units, titles, texts missing or named by no rule.

    A folder lies over the built-in templates. Every problem of every file at once; exit code 1
    when there is one.
    """
    from advisor.cli.report_output import write  # noqa: PLC0415
    from advisor.workbench.lint import problem  # noqa: PLC0415
    from advisor.workbench.lint.templates import check_templates  # noqa: PLC0415

    if fix:
        _rename(folder)
    checked = check_templates(folder, rules=rules, knowledge=knowledge)
    text = getattr(problem, f"as_{format_.value}")(checked.problems)
    if format_ is FindingsFormat.text:
        text += _summary(checked.files, len(checked.problems))
    write(text, output)
    if any(found.is_error for found in checked.problems):
        raise typer.Exit(1)


def _rename(folder: Path | None) -> None:
    from advisor.files import data_dir  # noqa: PLC0415
    from advisor.workbench.lint.corrections import (  # noqa: PLC0415
        differences,
        renamed_texts,
        replace_files,
    )

    changed = renamed_texts(folder or data_dir("templates"))
    typer.echo(differences(changed), nl=False, err=True)
    replace_files(changed)


def _summary(files: int, problems: int) -> str:
    templates = f"{files} template{'' if files == 1 else 's'}"
    if not problems:
        return f"{templates}: no problem found\n"
    return f"{templates}: {problems} problem{'' if problems == 1 else 's'}\n"


class PreviewFormat(StrEnum):
    """How a preview is written."""

    text = "text"
    json = "json"


class ReportLength(StrEnum):
    """The report a text is for."""

    short = "short"
    standard = "standard"
    full = "full"


@takes_request
def preview(
    action: Annotated[str, typer.Argument(help="An action, a rule, or a text without .md.j2.")],
    asked: Asked,
    length: Annotated[
        ReportLength, typer.Option(help="The report that the text is for.")
    ] = ReportLength.standard,
    all_variants: Annotated[
        bool,
        typer.Option("--all-variants", help="Every what-if of the action, in every wording."),
    ] = False,
    templates: TemplatesFolder = None,
    rules: RulesFolder = None,
    knowledge: KnowledgeFolder = None,
    format_: Annotated[
        PreviewFormat, typer.Option("--format", help="How it is written.")
    ] = PreviewFormat.text,
) -> None:
    """Show what a text says for a request, with the placeholders it uses and their values."""
    from advisor.advice.pipeline import Advisor  # noqa: PLC0415
    from advisor.workbench.preview import preview as previewed  # noqa: PLC0415
    from advisor.workbench.preview_views import preview_json, preview_text  # noqa: PLC0415

    advisor = Advisor.load(rules=rules, templates=templates, knowledge=knowledge)
    shown = previewed(
        advisor,
        advisor.advise(asked.checked(advisor.knowledge)),
        action,
        length=length.value,
        templates=templates,
        every=all_variants,
    )
    as_json = format_ is PreviewFormat.json
    typer.echo(preview_json(shown) if as_json else preview_text(shown), nl=False)


templates_app.command()(preview)
