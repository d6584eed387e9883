"""Finding rules by the names that experts type."""

from __future__ import annotations

from advisor.errors import RequestError
from advisor.rulefile.model import Rule, RuleSet
from advisor.suggest import did_you_mean


def find_rule(ruleset: RuleSet, name: str) -> Rule:
    """Find one rule.

    Raises:
        RequestError: There is none of this name, or it is a ladder with a rule for each value.
    """
    if name in ruleset.by_id:
        return ruleset.by_id[name]
    steps = [rule.id for rule in ruleset.rules if rule.ladder == name]
    if steps:
        raise RequestError(f"'{name}' is a ladder", hint=f"Name one of {', '.join(steps)}.")
    raise RequestError(f"unknown rule '{name}'", hint=did_you_mean(name, ruleset.by_id))


def find_rules(ruleset: RuleSet, names: list[str]) -> frozenset[str]:
    """Find rules by their names or their ladder's, and give their ids.

    Raises:
        RequestError: One of the names is unknown.
    """
    found: set[str] = set()
    for name in names:
        own = {rule.id for rule in ruleset.rules if name in {rule.id, rule.ladder}}
        if not own:
            known = {rule.ladder or rule.id for rule in ruleset.rules} | set(ruleset.by_id)
            raise RequestError(f"unknown rule '{name}'", hint=did_you_mean(name, known))
        found |= own
    return frozenset(found)
