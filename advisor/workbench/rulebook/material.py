"""Everything the pages are made of, put together once."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from advisor.advice import Advisor
from advisor.errors import RequestError
from advisor.knowledge.vocabulary import ACTION_FACT, FactType
from advisor.rules import Test, all_tests
from advisor.rules.language.model import Rule
from advisor.workbench.dependencies import FactUse
from advisor.workbench.rulebook.blocks import Link


class Condition(Struct, frozen=True):
    """How often a numeric condition passes and decides."""

    text: str
    passes: int
    fails: int
    decides: int
    of: str
    """``scenarios`` or ``options``."""


class RuleShare(Struct, frozen=True):
    """How often one rule counts."""

    fires: int
    said: int
    first: int
    by_verdict: Mapping[str, float]
    """Verdict -> share of its scenarios in which the rule fires."""
    conditions: Sequence[Condition]


class Measured(Struct, frozen=True):
    """Coverage of a rule set over a sample."""

    scenarios: int
    options: int
    rules: Mapping[str, RuleShare]
    """By rule; rules that were added since are missing."""


def read_cover_file(path: Path) -> Measured:
    """Read a file that ``advisor rules cover --format json`` wrote.

    Raises:
        RequestError: It cannot be read, or is something else.
    """
    try:
        return read_cover(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as bad:
        why = bad.strerror if isinstance(bad, OSError) else "it is not UTF-8"
        raise RequestError(f"{path} cannot be read: {why}") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        hint = "Write one with 'advisor rules cover --format json -o cover.json'."
        raise RequestError(f"{path} is no coverage", hint=hint) from None


def read_cover(text: str) -> Measured:
    """Read coverage from JSON.

    Raises:
        ValueError: It is no JSON; KeyError and TypeError where a part is missing.
    """
    made: dict[str, Any] = json.loads(text)
    conditions: dict[str, list[Condition]] = {}
    for found in made["thresholds"]:
        shown = f"{found['fact']} {found['condition']}"
        counts = (int(found["passes"]), int(found["fails"]), int(found["decides"]))
        condition = Condition(shown, *counts, str(found["of"]))
        conditions.setdefault(str(found["rule"]), []).append(condition)
    rules = {
        str(rule["rule"]): RuleShare(
            int(rule["fires"]),
            int(rule["said"]),
            int(rule["first"]),
            {str(name): float(value) for name, value in rule["by"].get("verdict", {}).items()},
            conditions.get(str(rule["rule"]), ()),
        )
        for rule in made["rules"]
    }
    return Measured(int(made["scenarios"]), int(made["options"]), rules)


class Example(Struct, frozen=True):
    """What a rule's text says in one of its own cases."""

    request: str
    """As flags of ``advisor advise``."""
    title: str
    text: str


class Topic(Struct, frozen=True):
    """A rule file."""

    name: str
    """The file without folder and ending."""
    about: str
    """The comment at its head."""
    rules: Sequence[Rule]


class Material(Struct, frozen=True):
    """Rules, facts and what is known about them."""

    advisor: Advisor
    topics: Sequence[Topic]
    templates: Mapping[str, str]
    """Text of each template that a rule names, as ``actions/quantize.md.j2``."""
    examples: Mapping[str, Example]
    """By rule."""
    measured: Measured | None
    uses: Mapping[str, FactUse]
    """What is around each fact, by its name."""
    topic_of: Mapping[str, Topic]
    """By rule."""

    @property
    def rules(self) -> Sequence[Rule]:
        """All rules, in file and definition order."""
        return self.advisor.ruleset.rules

    def fact(self, name: str) -> FactType:
        """Find a fact."""
        return self.advisor.vocabulary.facts[name]

    def facts_read(self, rule: Rule) -> Sequence[str]:
        """Name the facts of a rule's conditions, then those of its score alone, in order."""
        found = dict.fromkeys(n for t in all_tests(rule.when) for n in (t.fact, t.other) if n)
        if rule.score:
            found |= dict.fromkeys(term.fact for term in rule.score.add)
            tests = (test for term in rule.score.when for test in term.tests)
            found |= dict.fromkeys(n for t in tests for n in (t.fact, t.other) if n)
        return tuple(found)

    def readers(self, rule: Rule) -> Sequence[Rule]:
        """List the rules that read or count what a rule concludes."""
        return [r for r in self.rules if set(rule.conclude) & set(self.facts_read(r))]

    def superseded_by(self, rule: Rule) -> Sequence[Rule]:
        """List the rules that make a recommendation needless."""
        return [other for other in self.rules if rule.id in other.supersedes]

    def vetoes(self, rule: Rule) -> Sequence[Rule]:
        """List the rules that may bar what a rule recommends, or the rules that a veto may bar."""
        if not (rule.action or rule.veto):
            return ()
        others = (r for r in self.rules if (r.veto if rule.action else r.action))
        return [other for other in others if _meet(actions_of(rule), actions_of(other))]


def _meet(one: frozenset[str] | None, other: frozenset[str] | None) -> bool:
    return one is None or other is None or bool(one & other)


def actions_of(rule: Rule) -> frozenset[str] | None:
    """Name the actions that a rule can be about; None when it names none."""
    if rule.action:
        return frozenset({rule.action})
    for test in rule.when.tests:
        if test.fact == ACTION_FACT and test.verb in {"is", "one of"}:
            return frozenset(test.value if isinstance(test.value, tuple) else (str(test.value),))
    return None


def rule_link(rule: Rule | str) -> Link:
    """Link to a rule's page."""
    name = rule if isinstance(rule, str) else rule.id
    return Link(name, f"rules/{name}", code=True)


def fact_link(name: str) -> Link:
    """Link to a fact in the reference."""
    return Link(name, f"facts/{name.partition('.')[0]}", name, code=True)


def topic_link(topic: Topic) -> Link:
    """Link to a topic's page."""
    return Link(topic_title(topic.name), f"topics/{topic.name}")


def topic_title(name: str) -> str:
    """Write a file's name as a title: ``recommend-format`` is ``Recommend: format``."""
    first, _, rest = name.replace("_", "-").partition("-")
    return f"{first.capitalize()} {rest.replace('-', ' ')}".strip()


def condition(test: Test) -> str:
    """Write a condition without its fact: ``is at most 5 %``."""
    return test.text if test.text.startswith("is") else f"is {test.text}"
