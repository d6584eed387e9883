"""Finding rules by the names that experts type."""

from __future__ import annotations

from advisor.advice.provenance import switched_off_rule
from advisor.errors import RequestError
from advisor.rules.language.model import Rule, RuleSet
from advisor.suggest import did_you_mean


def find_rule(ruleset: RuleSet, name: str) -> Rule:
    """Find one rule.

    Raises:
        RequestError: There is none of this name, or it is a ladder with a rule for each value.
    """
    if name in ruleset.by_id:
        return ruleset.by_id[name]
    other = next((rule for rule in ruleset.own if rule.own and rule.own.replaces == name), None)
    if other is not None:
        raise RequestError(
            f"'{name}' is replaced by your '{other.id}' ({other.source})",
            hint=f"Name '{other.id}'.",
        )
    steps = [rule.id for rule in ruleset.rules if rule.ladder == name]
    if steps:
        raise RequestError(f"'{name}' is a ladder", hint=f"Name one of {', '.join(steps)}.")
    raise RequestError(f"unknown rule '{name}'", hint=did_you_mean(name, ruleset.by_id))


def find_any_rule(ruleset: RuleSet, name: str) -> Rule:
    """Find one rule, one that is switched off included.

    Raises:
        RequestError: As for ``find_rule``.
    """
    off = (item.rule for item in ruleset.disabled if item.rule.id == name)
    return next(off, None) or find_rule(ruleset, name)


def find_rules(ruleset: RuleSet, names: list[str]) -> frozenset[str]:
    """Find rules by their names or their ladder's, and give their ids.

    Raises:
        RequestError: One of the names is unknown.
    """
    found: set[str] = set()
    for name in names:
        own = {rule.id for rule in ruleset.rules if name in {rule.id, rule.ladder}}
        if not own:
            if off := next((d for d in ruleset.disabled if name == d.rule.id), None):
                why = switched_off_rule(off)
                raise RequestError(f"'{name}' is {why}", hint="It has no part in anything.")
            known = {rule.ladder or rule.id for rule in ruleset.rules} | set(ruleset.by_id)
            raise RequestError(f"unknown rule '{name}'", hint=did_you_mean(name, known))
        found |= own
    return frozenset(found)
