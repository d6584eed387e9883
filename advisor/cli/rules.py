"""``advisor rules``: check, test, explain and describe rule files."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from msgspec.structs import replace

from advisor.advice.pipeline import Advisor
from advisor.cli.options import (
    Asked,
    Format,
    KnowledgeFolder,
    Workers,
    takes_request,
)
from advisor.cli.own_files import takes_folders
from advisor.cli.progress import progress_line
from advisor.errors import UserError
from advisor.knowledge.layers import OwnFiles, Stack
from advisor.remedies.registry import rule_vocabulary
from advisor.rules.language.schema import rules_schema
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
from advisor.workbench.nearest import smallest_changes
from advisor.workbench.rulebook.book import Sources, make_book, write_book
from advisor.workbench.rulebook.material import Measured, read_cover, read_cover_file


@takes_request
@takes_folders
def explain(
    rule: Annotated[str, typer.Argument(help="Name of the rule.")],
    asked: Asked,
    *,
    own: OwnFiles,
    search: Annotated[
        bool, typer.Option(help="Look for the smallest change that makes a silent rule fire.")
    ] = True,
) -> None:
    """Say whether a rule fires here; if not, what failed by how much, and what makes it fire.

    Example: advisor rules explain quantize-to-fit --gpu T4 --model phi-3-mini
    """
    advisor = Advisor.with_files(own)
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
    format_: Annotated[Format, typer.Option("--format", help="How it is written.")] = Format.text,
    *,
    own: OwnFiles,
) -> None:
    """Show a fact: unit or values, origin, what concludes it, what depends on it; or list all.

    Example: advisor rules facts fit.gap
    """
    vocabulary = rule_vocabulary(own.knowledge)
    as_json = format_ is Format.json
    if fact is None:
        text = facts_json(vocabulary) if as_json else facts_list(vocabulary)
        typer.echo(text, nl=False)
        return
    vocabulary.fact(fact)
    advisor = Advisor.with_files(own)
    use: FactUse = fact_use(fact, vocabulary, advisor.ruleset)
    typer.echo(use_json(use) if as_json else use_text(use), nl=False)


_SAMPLE = 400


class BookFormat(StrEnum):
    """How the rulebook is written."""

    html = "html"
    md = "md"


@takes_folders
def docs(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write into.")] = Path(
        "rulebook"
    ),
    format_: Annotated[
        BookFormat, typer.Option("--format", help="Static pages, or Markdown.")
    ] = BookFormat.html,
    cover: Annotated[
        Path | None,
        typer.Option(help="What 'rules cover --format json' wrote. [default: measured now]"),
    ] = None,
    sample: Annotated[
        int,
        typer.Option(help="Scenarios to measure how often rules fire; 0: none.", min=0),
    ] = _SAMPLE,
    *,
    own: OwnFiles,
    workers: Workers = None,
) -> None:
    """Write a rulebook: a page per rule, the facts, and pictures of what depends on what.

    The pages need no network and no other files, so they can be opened from a folder or served
    from anywhere. The same rules give the same bytes.

    Example: advisor rules docs -o rulebook
    """
    advisor = Advisor.with_files(own)
    measured = (
        read_cover_file(cover) if cover else _measured(advisor, sample, own.knowledge, workers)
    )
    pages = make_book(advisor, Sources(own.rules, own.templates), measured)
    write_book(pages, output, format_.value)
    typer.echo(f"{len(pages)} pages in {output}, beginning with index.{format_.value}")


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
