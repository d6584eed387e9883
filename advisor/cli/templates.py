"""``advisor templates``: check texts, and see what they say."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from advisor.advice import Advisor
from advisor.cli.options import (
    Asked,
    FindingsFormat,
    Format,
    KnowledgeFolder,
    Length,
    Output,
    RulesFolder,
    TemplatesFolder,
    takes_request,
)
from advisor.cli.report_output import takes_folders, write
from advisor.errors import visible
from advisor.files import data_dir
from advisor.knowledge.layers import OwnFiles, Stack, stack
from advisor.workbench.lint.corrections import differences, renamed_texts, replace_files
from advisor.workbench.lint.problem import WRITERS
from advisor.workbench.lint.templates import check_templates
from advisor.workbench.preview import preview as previewed
from advisor.workbench.preview_views import preview_json, preview_text


@takes_folders
def check(
    folder: Annotated[
        Path | None, typer.Argument(help="Folder of templates. (default: --templates, or built-in)")
    ] = None,
    *,
    own: OwnFiles,
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

    Example: advisor templates check house/templates
    """
    folders = [folder] if folder else own.templates
    if fix:
        _rename(folders)
    checked = check_templates(folders, rules=own.rules, knowledge=own.knowledge)
    text = WRITERS[format_.value](checked.problems)
    if format_ is FindingsFormat.text:
        text += _summary(checked.files, len(checked.problems))
    write(text, output)
    if any(found.is_error for found in checked.problems):
        raise typer.Exit(1)


def _rename(folders: Stack) -> None:
    own = stack(folders) or (data_dir("templates"),)
    changed = [file for folder in own for file in renamed_texts(folder)]
    typer.echo(visible(differences(changed)), nl=False, err=True)
    replace_files(changed)


def _summary(files: int, problems: int) -> str:
    templates = f"{files} template{'' if files == 1 else 's'}"
    if not problems:
        return f"{templates}: no problem found\n"
    return f"{templates}: {problems} problem{'' if problems == 1 else 's'}\n"


@takes_request
def preview(
    action: Annotated[str, typer.Argument(help="An action, a rule, or a text without .md.j2.")],
    asked: Asked,
    length: Annotated[
        Length, typer.Option(help="The report that the text is for.")
    ] = Length.standard,
    all_variants: Annotated[
        bool,
        typer.Option("--all-variants", help="Every what-if of the action, in every wording."),
    ] = False,
    templates: TemplatesFolder = None,
    rules: RulesFolder = None,
    knowledge: KnowledgeFolder = None,
    format_: Annotated[Format, typer.Option("--format", help="How it is written.")] = Format.text,
) -> None:
    """Show what a text says for a request, with the placeholders it uses and their values.

    Example: advisor templates preview quantize --gpu T4 --model phi-3-medium
    """
    advisor = Advisor.load(rules=rules, templates=templates, knowledge=knowledge)
    shown = previewed(
        advisor,
        advisor.advise(asked.checked(advisor.knowledge)),
        action,
        length=length.value,
        templates=templates,
        every=all_variants,
    )
    as_json = format_ is Format.json
    typer.echo(preview_json(shown) if as_json else preview_text(shown), nl=False)
