"""A rule together with the places that only the checks need."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from advisor.errors import Source
from advisor.rules.conditions import Test, all_tests
from advisor.rules.language.model import Rule


class Draft(Struct, frozen=True):
    """A rule as it was read, before the rules were checked against each other."""

    rule: Rule
    places: Mapping[str, Source] = field(default_factory=dict)
    """Key of the rule -> where it stands."""
    partial: bool = False
    """Whether something in it could not be read, so that what seems missing may be there."""
    replaces: str = ""
    """Name of the built-in rule or ladder whose place it takes."""
    disables: str = ""
    """Name of the built-in rule or ladder to switch off; such a draft holds no rule."""
    reason: str = ""
    """Why it is switched off."""

    text: str = ""
    """Of a partial one, the whole file as it is: what seems to be missing may stand in it."""

    def at(self, key: str) -> Source | None:
        """Where a key stands, or where the rule begins."""
        return self.places.get(key, self.rule.source)


def read_facts(rule: Rule) -> Mapping[str, Source | None]:
    """List the facts that a rule reads, with one place each."""
    found: dict[str, Source | None] = {}
    for test in scored_tests(rule):
        for name in filter(None, (test.fact, test.other)):
            found.setdefault(name, test.source)
    for term in rule.score.add if rule.score else ():
        found.setdefault(term.fact, term.source)
    return found


def scored_tests(rule: Rule) -> tuple[Test, ...]:
    """List the tests of the conditions and of the score."""
    terms = rule.score.when if rule.score else ()
    return (*all_tests(rule.when), *(test for term in terms for test in term.tests))
