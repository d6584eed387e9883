"""Whose rules and knowledge an answer rests on, where the user has files of their own."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, cast

from advisor.knowledge.provenance import SwitchedOff, UserEntry, user_record

if TYPE_CHECKING:
    from advisor.errors import Source
    from advisor.knowledge.types import Knowledge
    from advisor.rules.language.model import Disabled, Rule, RuleSet
    from advisor.scenario.scenario import Scenario

_EVERYWHERE = "policy"
"""Numbers that every answer rests on."""


def user_rule(rule: Rule) -> UserEntry | None:
    """Say that a rule is the user's; None for a built-in one."""
    if rule.own is None:
        return None
    return UserEntry(
        "rule", rule.id, _place(rule.source), rule.own.replaces or None, _place(rule.own.at) or None
    )


def _place(source: Source | None) -> str:
    return f"{source.file}:{source.line}" if source and source.line else str(source or "")


def user_entries(
    ruleset: RuleSet, knowledge: Knowledge, fired: Collection[str], scenarios: Collection[Scenario]
) -> tuple[UserEntry, ...]:
    """List what of the user's an answer rests on.

    Args:
        ruleset: The rules.
        knowledge: What is known.
        fired: Ids of the rules that fired.
        scenarios: The situation and those that are recommended.
    """
    found = (user_rule(rule) for rule in ruleset.rules if rule.own and rule.id in fired)
    rules = tuple(entry for entry in found if entry is not None)
    return (*rules, *user_records(knowledge, scenarios))


def user_records(knowledge: Knowledge, scenarios: Collection[Scenario]) -> tuple[UserEntry, ...]:
    """List the user's entries of knowledge that some situations rest on."""
    if not knowledge.user_entries:
        return ()
    records = dict.fromkeys(r for scenario in scenarios for r in _records(scenario))
    numbers = cast("Mapping[str, object]", knowledge.user_entries.get(_EVERYWHERE) or {})
    records |= dict.fromkeys((_EVERYWHERE, name) for name in numbers)
    found = (user_record(knowledge, kind, name) for kind, name in records)
    return tuple(entry for entry in found if entry is not None)


def _records(scenario: Scenario) -> Iterator[tuple[str, str]]:
    for card in scenario.cards or ([scenario.gpu] if scenario.gpu else []):
        yield "gpu", card.name
    yield "model", scenario.model.name
    if scenario.draft_model:
        yield "model", scenario.draft_model.name
    yield "format", scenario.precision.name
    yield "kv_type", scenario.kv_cache_k.name
    yield "kv_type", scenario.kv_cache_v.name
    yield "framework", scenario.framework.name


def switched_off(ruleset: RuleSet) -> tuple[SwitchedOff, ...]:
    """List the built-in rules that the user disabled."""
    return tuple(map(switched_off_rule, ruleset.disabled))


def switched_off_rule(item: Disabled) -> SwitchedOff:
    """Say of one rule where and why it was disabled."""
    return SwitchedOff(item.rule.id, _place(item.source), item.reason)


def provenance_line(ruleset: RuleSet) -> str:
    """Count what is the user's; empty where nothing is."""
    counts = {
        "added": sum(not rule.own.replaces for rule in ruleset.own if rule.own),
        "in the place of built-in ones": sum(bool(r.own and r.own.replaces) for r in ruleset.own),
        "switched off": len(ruleset.disabled),
    }
    said = [f"{number} {what}" for what, number in counts.items() if number]
    return f"yours: {', '.join(said)}" if said else ""
