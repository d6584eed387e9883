"""``advisor rules explain`` and ``facts``: one rule in one situation, one fact among all rules."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec.structs import replace

from advisor.cli.folders import KnowledgeFolder, RulesFolder, TemplatesFolder
from advisor.cli.request_flags import Asked, takes_request
from advisor.errors import UserError

if TYPE_CHECKING:
    from advisor.workbench.dependencies import FactUse


class Format(StrEnum):
    """How it is written."""

    text = "text"
    json = "json"


@takes_request
def explain(
    rule: Annotated[str, typer.Argument(help="Name of the rule.")],
    asked: Asked,
    rules: RulesFolder = None,
    templates: TemplatesFolder = None,
    knowledge: KnowledgeFolder = None,
    search: Annotated[
        bool, typer.Option(help="Look for the smallest change that makes a silent rule fire.")
    ] = True,
) -> None:
    """Say whether a rule fires here; if not, what failed by how much, and what makes it fire."""
    from advisor.advice.pipeline import Advisor  # noqa: PLC0415
    from advisor.workbench.explanation import explanation  # noqa: PLC0415
    from advisor.workbench.nearest import smallest_changes  # noqa: PLC0415
    from advisor.workbench.rule_names import find_any_rule  # noqa: PLC0415

    advisor = Advisor.load(rules=rules, templates=templates, knowledge=knowledge)
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


def facts(
    fact: Annotated[str | None, typer.Argument(help="Name of a fact. [default: all]")] = None,
    format_: Annotated[Format, typer.Option("--format", help="How it is written.")] = Format.text,
    rules: RulesFolder = None,
    templates: TemplatesFolder = None,
    knowledge: KnowledgeFolder = None,
) -> None:
    """Show a fact: unit or values, origin, what concludes it, what depends on it; or list all."""
    from advisor.remedies.registry import rule_vocabulary  # noqa: PLC0415
    from advisor.workbench.fact_views import facts_json, facts_list, use_json, use_text  # noqa: PLC0415

    vocabulary = rule_vocabulary(knowledge)
    as_json = format_ is Format.json
    if fact is None:
        text = facts_json(vocabulary) if as_json else facts_list(vocabulary)
        typer.echo(text, nl=False)
        return
    from advisor.advice.pipeline import Advisor  # noqa: PLC0415
    from advisor.workbench.dependencies import fact_use  # noqa: PLC0415

    vocabulary.fact(fact)
    advisor = Advisor.load(rules=rules, templates=templates, knowledge=knowledge)
    use: FactUse = fact_use(fact, vocabulary, advisor.ruleset)
    typer.echo(use_json(use) if as_json else use_text(use), nl=False)
