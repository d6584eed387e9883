"""``advisor rules``: check, format, explain and describe rule files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer
from msgspec.structs import replace

from advisor.advice import Advisor
from advisor.cli.options import (
    Asked,
    FindingsFormat,
    Format,
    KnowledgeFolder,
    RulesFolder,
    Workers,
    takes_request,
)
from advisor.cli.report_output import progress_line, takes_folders
from advisor.errors import UserError, raise_problems, visible
from advisor.knowledge.layers import Stack, UserFiles
from advisor.remedies import rule_vocabulary
from advisor.rules.language.schema import rules_schema
from advisor.units import counted
from advisor.workbench.bulk import evaluate_all
from advisor.workbench.cover import cover as measure
from advisor.workbench.cover_views import cover_json
from advisor.workbench.dependencies import (
    FactUse,
    fact_use,
    facts_json,
    facts_list,
    find_any_rule,
    use_json,
    use_text,
)
from advisor.workbench.explanation import explanation
from advisor.workbench.fact_store_files import Origin, sampled_facts
from advisor.workbench.lint import Asked as Checking
from advisor.workbench.lint import Checked, Means, asked_for, check_all, each_layer
from advisor.workbench.lint.corrections import corrected, differences, reformatted, replace_files
from advisor.workbench.lint.problem import WRITERS, page, totals
from advisor.workbench.nearest import smallest_changes
from advisor.workbench.rulebook import Sources, make_book, write_book
from advisor.workbench.rulebook.material import Measured, read_cover, read_cover_file


@takes_request
@takes_folders
def explain(
    rule: Annotated[str, typer.Argument(help="Name of the rule.")],
    asked: Asked,
    *,
    user: UserFiles,
    search: Annotated[
        bool, typer.Option(help="Look for the smallest change that makes a silent rule fire.")
    ] = True,
) -> None:
    """Say whether a rule fires here; if not, what failed by how much, and what makes it fire.

    Example: advisor rules explain quantize-to-fit --gpu T4 --model phi-3-mini
    """
    advisor = Advisor.with_files(user)
    try:
        found = find_any_rule(advisor.ruleset, rule)
    except UserError as error:
        replace(asked, wrong=[*asked.wrong, error]).checked(advisor.knowledge)
        raise
    request = asked.checked(advisor.knowledge)
    advice = advisor.advise(request)
    counts = found.id in advisor.ruleset.by_id
    silent = counts and found.id not in {rule_id for rule_id, _ in advice.fired}
    changes = smallest_changes(advisor, request, found) if silent and search else None
    typer.echo(explanation(advisor, advice, found, changes), nl=False)


@takes_folders
def facts(
    fact: Annotated[str | None, typer.Argument(help="Name of a fact. [default: all]")] = None,
    format_: Annotated[Format, typer.Option("--format", help="How it is written.")] = "text",
    *,
    user: UserFiles,
) -> None:
    """Show a fact: unit or values, origin, what concludes it, what depends on it; or list all.

    Example: advisor rules facts fit.gap
    """
    vocabulary = rule_vocabulary(user.knowledge)
    as_json = format_ == "json"
    if fact is None:
        text = facts_json(vocabulary) if as_json else facts_list(vocabulary)
        typer.echo(text, nl=False)
        return
    vocabulary.fact(fact)
    advisor = Advisor.with_files(user)
    use: FactUse = fact_use(fact, vocabulary, advisor.ruleset)
    typer.echo(use_json(use) if as_json else use_text(use), nl=False)


_SAMPLE = 400
BookFormat = Literal["html", "md"]


@takes_folders
def docs(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write into.")] = Path(
        "rulebook"
    ),
    format_: Annotated[
        BookFormat, typer.Option("--format", help="Static pages, or Markdown.")
    ] = "html",
    cover: Annotated[
        Path | None,
        typer.Option(help="What 'rules cover --format json' wrote. [default: measured now]"),
    ] = None,
    sample: Annotated[
        int,
        typer.Option(help="Scenarios to measure how often rules fire; 0: none.", min=0),
    ] = _SAMPLE,
    *,
    user: UserFiles,
    workers: Workers = None,
) -> None:
    """Write a rulebook: a page per rule, the facts, and pictures of what depends on what.

    The pages need no network and no other files, so they can be opened from a folder or served
    from anywhere. The same rules give the same bytes.

    Example: advisor rules docs -o rulebook
    """
    advisor = Advisor.with_files(user)
    measured = (
        read_cover_file(cover) if cover else _measured(advisor, sample, user.knowledge, workers)
    )
    pages = make_book(advisor, Sources(user.rules, user.templates), measured)
    write_book(pages, output, format_)
    typer.echo(f"{len(pages)} pages in {output}, beginning with index.{format_}")


def _measured(
    advisor: Advisor, sample: int, knowledge: Stack, workers: int | None
) -> Measured | None:
    if not sample:
        return None
    store = sampled_facts(sample, Origin(knowledge, workers=workers), progress=progress_line())
    return read_cover(cover_json(measure(evaluate_all(store, advisor.ruleset))))


def schema(knowledge: KnowledgeFolder = None) -> None:
    """Print the JSON Schema that editors use for completion, facts of your own included.

    Example: advisor rules schema > rules.schema.json
    """
    typer.echo(json.dumps(rules_schema(rule_vocabulary(knowledge)), indent=2))


Paths = Annotated[
    list[Path] | None,
    typer.Argument(help="Folders or files of rules. (default: --rules, or the built-in rules)"),
]


@takes_folders
def check(
    paths: Paths = None,
    format_: Annotated[
        FindingsFormat, typer.Option("--format", help="How findings are written.")
    ] = "text",
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
    user: UserFiles,
) -> None:
    """Check rules: syntax, names, units, limits, cases and what never matters; all at once.

    Each finding has a place, a kind in brackets and what to do. Nothing is asked of the network.

    Example: advisor rules check house/rules --fix
    """
    if explain is not None:
        typer.echo(page(explain), nl=False)
        return
    asked = asked_for(paths or [], user.rules)
    means = Means(
        user.knowledge, user.templates, 0 if quick else sample, not quick, workers, progress_line()
    )
    if fix or diff:
        _correct(each_layer(asked), means, write=not diff)
    checked = check_all(asked, means)
    if not diff:
        text = format_ == "text"
        fixable = _fixable(asked, means, checked) if text and not fix else 0
        typer.echo(_shown(checked, format_, fixable), nl=False)
    if checked.elsewhere or any(one.is_error or strict for one in checked.problems):
        raise typer.Exit(1)


def _correct(asked: Sequence[Checking], means: Means, *, write: bool) -> None:
    found = corrected(asked, means)
    typer.echo(visible(differences(found.files)), nl=False, err=write)
    if write:
        replace_files(found.files)
        for change in found.changes:
            typer.echo(visible(change), err=True)
        what = f"{counted(len(found.changes), 'mistake')} in {counted(len(found.files), 'file')}"
        typer.echo(f"{what if found.changes else 'nothing'} corrected", err=True)


def _fixable(asked: Sequence[Checking], means: Means, checked: Checked) -> int:
    """Count what ``--fix`` would correct, by trying it."""
    if all(one.edit is None for one in checked.problems):
        return 0
    return len(corrected(each_layer(asked), means).changes)


def _shown(checked: Checked, form: FindingsFormat, fixable: int) -> str:
    text = WRITERS[form](checked.problems)
    return text + _summary(checked, fixable) if form == "text" else text


def _summary(checked: Checked, fixable: int) -> str:
    looked = f"{counted(checked.rules, 'rule')} in {counted(checked.files, 'file')}"
    if checked.scenarios:
        looked += f", tried on {counted(checked.scenarios, 'scenario')}"
    said = totals(checked.problems)
    lines = [f"{looked}: {said}" if checked.rules else said]
    lines += [checked.provenance] if checked.provenance else []
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
