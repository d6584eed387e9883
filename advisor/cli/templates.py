"""``advisor templates`` and ``check``: texts checked and seen, and a whole folder of one's own."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from textwrap import wrap
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
from advisor.cli.report_output import progress_line, takes_folders, write
from advisor.cli.user_settings import FILE, KINDS, house_folders
from advisor.errors import RequestError, visible
from advisor.files import data_dir
from advisor.knowledge.layers import Stack, UserFiles, stack
from advisor.units import counted
from advisor.workbench.house import House, Looked, check_house
from advisor.workbench.lint.corrections import differences, replace_files
from advisor.workbench.lint.problem import WRITERS, totals
from advisor.workbench.lint.templates import check_templates, renamed_texts
from advisor.workbench.preview import Preview, Variant
from advisor.workbench.preview import preview as previewed
from advisor.workbench.scenario_file import request_line


@takes_folders
def check(
    folder: Annotated[
        Path | None, typer.Argument(help="Folder of templates. (default: --templates, or built-in)")
    ] = None,
    *,
    user: UserFiles,
    format_: Annotated[
        FindingsFormat, typer.Option("--format", help="How findings are written.")
    ] = "text",
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
    folders = [folder] if folder else user.templates
    if fix:
        _rename(folders)
    checked = check_templates(folders, rules=user.rules, knowledge=user.knowledge)
    text = WRITERS[format_](checked.problems)
    if format_ == "text":
        text += _summary(checked.files, len(checked.problems))
    write(text, output)
    if any(found.is_error for found in checked.problems):
        raise typer.Exit(1)


def _rename(folders: Stack) -> None:
    users = stack(folders) or (data_dir("templates"),)
    changed = [file for folder in users for file in renamed_texts(folder)]
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
    length: Annotated[Length, typer.Option(help="The report that the text is for.")] = "standard",
    all_variants: Annotated[
        bool,
        typer.Option("--all-variants", help="Every what-if of the action, in every wording."),
    ] = False,
    templates: TemplatesFolder = None,
    rules: RulesFolder = None,
    knowledge: KnowledgeFolder = None,
    format_: Annotated[Format, typer.Option("--format", help="How it is written.")] = "text",
) -> None:
    """Show what a text says for a request, with the placeholders it uses and their values.

    Example: advisor templates preview quantize --gpu T4 --model phi-3-medium
    """
    advisor = Advisor.load(rules=rules, templates=templates, knowledge=knowledge)
    shown = previewed(
        advisor,
        advisor.advise(asked.checked(advisor.knowledge)),
        action,
        length=length,
        templates=templates,
        every=all_variants,
    )
    as_json = format_ == "json"
    typer.echo(preview_json(shown) if as_json else preview_text(shown), nl=False)


_WIDTH = 88
_EMPTY = "(empty)"
_INDENT = "    "


def preview_text(shown: Preview) -> str:
    """Write a preview for a terminal."""
    return "\n".join(_lines(shown)) + "\n"


def _lines(shown: Preview) -> Iterator[str]:
    yield f"for {request_line(shown.asked)}"
    groups = [
        list(own)
        for _, own in groupby(shown.variants, key=lambda v: (v.template, v.rule, v.subject))
    ]
    if len(groups) > 1:
        yield f"{counted(len(groups), 'what-if')}, {counted(len(shown.variants), 'text')}"
    for group in groups:
        yield ""
        yield from _group(group)
    if shown.unreached:
        yield ""
    for template, lines in shown.unreached.items():
        yield f"not reached in {template}: {_spans(lines)}"


def _group(variants: Sequence[Variant]) -> Iterator[str]:
    """Write the wordings of one text, then the placeholders of all of them."""
    first = variants[0]
    yield f"{first.template}, by rule {first.rule}"
    if first.subject:
        yield f"what-if {first.subject}"
    yield first.fate
    for number, variant in enumerate(variants):
        yield ""
        if number:
            yield "  or, in other words:"
        for text in filter(None, (variant.title, variant.text)):
            yield from wrap(text, _WIDTH, initial_indent=_INDENT, subsequent_indent=_INDENT)
        if not variant.text:
            yield f"{_INDENT}(no text: the remark is left out)"
    yield ""
    yield from _placeholders(variants)


def _placeholders(variants: Sequence[Variant]) -> Iterator[str]:
    printed = {name: value for v in variants for name, value in v.use.printed.items()}
    asked = {name: value for v in variants for name, value in v.use.asked.items()}
    only_asked = {name: value for name, value in asked.items() if name not in printed}
    wide = max(map(len, (*printed, *only_asked)), default=0)
    yield from (f"  {name.ljust(wide)}  {value or _EMPTY}" for name, value in printed.items())
    if only_asked:
        yield "  asked about, not written:"
    yield from (f"  {name.ljust(wide)}  {value or _EMPTY}" for name, value in only_asked.items())


def _spans(numbers: Sequence[int]) -> str:
    """Write ``line 3`` or ``lines 3, 5 to 7``."""
    spans: list[list[int]] = []
    for number in numbers:
        if spans and spans[-1][-1] == number - 1:
            spans[-1].append(number)
        else:
            spans.append([number])
    written = [f"{s[0]} to {s[-1]}" if len(s) > 1 else f"{s[0]}" for s in spans]
    return f"line{'s' if len(numbers) > 1 else ''} {', '.join(written)}"


def preview_json(shown: Preview) -> str:
    """Write a preview for programs."""
    made = {
        "schema_version": 1,
        "request": dict(shown.asked),
        "texts": [
            {
                "template": variant.template,
                "rule": variant.rule,
                "what_if": variant.subject or None,
                "fate": variant.fate,
                "title": variant.title or None,
                "text": variant.text,
                "written": dict(variant.use.printed),
                "asked": dict(variant.use.asked),
            }
            for variant in shown.variants
        ],
        "not_reached": {name: list(lines) for name, lines in shown.unreached.items()},
    }
    return json.dumps(made, indent=2, ensure_ascii=False) + "\n"


_SAMPLE = 400


@takes_folders
def check_house_folder(
    folder: Annotated[
        Path | None,
        typer.Argument(help="Folder with rules/, templates/ and knowledge/, or an advisor.toml."),
    ] = None,
    *,
    user: UserFiles,
    sample: Annotated[
        int, typer.Option(help="Scenarios of the catalogue to try rules on.", min=0, max=1_000_000)
    ] = _SAMPLE,
    format_: Annotated[
        FindingsFormat, typer.Option("--format", help="How findings are written.")
    ] = "text",
    output: Output = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit 1 on warnings too.")] = False,
) -> None:
    """Check rules, texts, words, knowledge, facts and policy; then write every kind of report.

    Every action, note and verdict in every format and length: without a finding, each of them
    was written. Every problem of every file at once; exit code 1 when there is one.

    Example: advisor check house
    """
    house = _house(folder) if folder else House(*user.folders)
    looked = check_house(house, sample=sample, progress=progress_line())
    text = WRITERS[format_](looked.problems)
    write(text + (_house_summary(looked) if format_ == "text" else ""), output)
    if any(found.is_error or strict for found in looked.problems):
        raise typer.Exit(1)


def _house(folder: Path) -> House:
    """Find the parts of a house: those that its advisor.toml names, else those that it has.

    Raises:
        UserError: There are none, or advisor.toml is wrong.
    """
    if not folder.is_dir():
        raise RequestError(f"{folder} is not a folder", hint="Name a folder of your own files.")
    named = house_folders(folder)
    found = named or {kind: (folder / kind,) for kind in KINDS if (folder / kind).is_dir()}
    if not found:
        hint = f"It has {', '.join(f'{kind}/' for kind in KINDS)} or a file {FILE}."
        raise RequestError(f"{folder} holds nothing to check", hint=hint)
    return House(**found)


def _house_summary(looked: Looked) -> str:
    said = totals(looked.problems)
    if not looked.reports:
        return f"{said}; no report was written, as files are wrong\n"
    wrote = f"{counted(looked.reports, 'situation')}, each in every format and length"
    return f"{wrote}, and {counted(looked.texts, 'wording')} of texts written: {said}\n"
