"""Which rules write a fact, which read it, what hangs on it further down, and how that is said."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from advisor.advice.conclusions import switched_off_rule, user_rule
from advisor.errors import RequestError, did_you_mean
from advisor.knowledge.vocabulary import FactType, FactValue, Vocabulary, show
from advisor.report.figures import aligned
from advisor.rules import Test, all_tests
from advisor.rules.language.model import Rule, RuleSet

_OPTION_GROUPS = ("option", "options")


class FactUse(Struct, frozen=True):
    """One fact and the rules around it."""

    fact: FactType
    concluded_by: Sequence[tuple[Rule, FactValue]]
    read_by: Sequence[tuple[Rule, Sequence[str]]]
    """Rules, each with its conditions on the fact as written."""
    counted_by: Sequence[tuple[Rule, Sequence[str]]]
    """Rules whose score counts it, with the terms."""
    leads_to: Sequence[str]
    """Concluded facts that depend on it, over any number of rules."""
    switched_off: Mapping[str, str]
    """Rule that does not count -> who says so, and why."""


def fact_use(name: str, vocabulary: Vocabulary, ruleset: RuleSet) -> FactUse:
    """Look a fact up.

    Raises:
        KnowledgeError: There is none of this name.
    """
    fact = vocabulary.fact(name)
    rules = (*ruleset.rules, *(item.rule for item in ruleset.disabled))
    return FactUse(
        fact,
        [(rule, rule.conclude[name]) for rule in rules if name in rule.conclude],
        _with_texts(rules, lambda rule: _conditions(all_tests(rule.when), name)),
        _with_texts(rules, lambda rule: _terms(rule, name)),
        _leads_to(name, ruleset),
        {item.rule.id: str(switched_off_rule(item)) for item in ruleset.disabled},
    )


def _with_texts(
    rules: Iterable[Rule], read: Callable[[Rule], Iterator[str]]
) -> list[tuple[Rule, Sequence[str]]]:
    found = ((rule, list(dict.fromkeys(read(rule)))) for rule in rules)
    return [(rule, texts) for rule, texts in found if texts]


def _conditions(tests: Iterable[Test], name: str) -> Iterator[str]:
    return (f"{test.fact} {test.text}" for test in tests if name in {test.fact, test.other})


def _terms(rule: Rule, name: str) -> Iterator[str]:
    if rule.score is None:
        return
    yield from (f"{t.points:+g} {_per(t.text)}" for t in rule.score.add if t.fact == name)
    for term in rule.score.when:
        if any(name in {test.fact, test.other} for test in term.tests):
            yield f"{term.points:+g} if {term.text}"


def _per(text: str) -> str:
    return text.split(maxsplit=1)[-1]


def _leads_to(name: str, ruleset: RuleSet) -> Sequence[str]:
    found: dict[str, None] = {}
    open_ = [name]
    while open_:
        fact = open_.pop(0)
        for rule in ruleset.rules:
            if fact in reads(rule):
                for concluded in rule.conclude:
                    if concluded not in found:
                        found[concluded] = None
                        open_.append(concluded)
    return tuple(found)


def reads(rule: Rule) -> frozenset[str]:
    """Name the facts in a rule's conditions."""
    tests = all_tests(rule.when)
    return frozenset(n for test in tests for n in (test.fact, test.other) if n)


def needs_options(rule: Rule, ruleset: RuleSet) -> bool:
    """Whether a rule can be decided only when the what-ifs are known."""
    makers: dict[str, list[Rule]] = {}
    for other in ruleset.rules:
        for fact in other.conclude:
            makers.setdefault(fact, []).append(other)
    seen: set[str] = set()
    open_ = [rule]
    while open_:
        for fact in reads(open_.pop()):
            if fact.split(".")[0] in _OPTION_GROUPS:
                return True
            if fact not in seen:
                seen.add(fact)
                open_.extend(makers.get(fact, ()))
    return False


def by_group(vocabulary: Vocabulary) -> Mapping[str, Sequence[FactType]]:
    """List the facts by group, in file order."""
    groups: dict[str, list[FactType]] = {}
    for fact in vocabulary.facts.values():
        groups.setdefault(fact.group, []).append(fact)
    return groups


def find_rule(ruleset: RuleSet, name: str) -> Rule:
    """Find one rule.

    Raises:
        RequestError: There is none of this name, or it is a ladder with a rule for each value.
    """
    if name in ruleset.by_id:
        return ruleset.by_id[name]
    other = next(
        (rule for rule in ruleset.user_rules if rule.overlay and name in rule.overlay.names),
        None,
    )
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


_FROM = {
    "input": "stated in the request",
    "knowledge": "from knowledge/",
    "estimate": "computed by the estimator",
    "option": "computed for every what-if",
    "rules": "concluded by rules",
}


def facts_list(vocabulary: Vocabulary) -> str:
    """List every fact by group."""
    lines: list[str] = []
    wide = max(map(len, vocabulary.facts))
    for group, facts in by_group(vocabulary).items():
        lines += ["", group] if lines else [group]
        lines += [f"  {f.name.ljust(wide)}  {kind_of_fact(f)}: {f.help}" for f in facts]
    return "\n".join(lines) + "\n"


def kind_of_fact(fact: FactType) -> str:
    """Say what values a fact takes."""
    if fact.kind == "number":
        return fact.unit or "count"
    if fact.kind == "flag":
        return "yes or no"
    if fact.kind == "text":
        return f"name of {fact.of}" if fact.of else "name"
    return "one of " + ", ".join(fact.values)


def origin_of(fact: FactType) -> str:
    """Say where a fact comes from."""
    return _FROM[fact.origin]


def use_text(use: FactUse) -> str:
    """Write one fact with its rules."""
    return "\n".join(_lines(use)) + "\n"


def _lines(use: FactUse) -> Iterator[str]:
    fact = use.fact
    yield f"{fact.name}: {fact.help}"
    yield f"  {kind_of_fact(fact)}; {origin_of(fact)}"
    if fact.as_sold:
        yield "  a size as sold: GB means GiB here"
    yield ""
    if use.concluded_by or fact.origin == "rules":
        yield "Concluded by"
        yield from _concluded(use, fact)
        yield ""
    yield "Read by"
    yield from _uses(use, use.read_by)
    yield ""
    yield "Counted in the score of"
    yield from _uses(use, use.counted_by)
    yield ""
    yield f"Facts that depend on it: {', '.join(use.leads_to) or 'none'}"


def _concluded(use: FactUse, fact: FactType) -> Iterator[str]:
    made = use.concluded_by
    if not made:
        yield "  no rule"
    rows = [(rule.id, f"{show(fact, value)}  {_place(use, rule)}") for rule, value in made]
    yield from aligned(rows, "  ")


def _uses(use: FactUse, found: Sequence[tuple[Rule, Sequence[str]]]) -> Iterator[str]:
    if not found:
        yield "  no rule"
    rows = [(rule.id, f"{'; '.join(texts)}  {_place(use, rule)}") for rule, texts in found]
    yield from aligned(rows, "  ")


def _place(use: FactUse, rule: Rule) -> str:
    if rule.id in use.switched_off:
        return f"({use.switched_off[rule.id]})"
    if user := user_rule(rule):
        return f"({user})"
    return f"({rule.source.file}:{rule.source.line})" if rule.source else ""


def facts_json(vocabulary: Vocabulary) -> str:
    """Give every fact as data."""
    return json.dumps([_object(f) for f in vocabulary.facts.values()], indent=2) + "\n"


def use_json(use: FactUse) -> str:
    """Give one fact with its rules as data."""
    made = {
        **_object(use.fact),
        "concluded_by": [{**_whose(use, rule), "value": value} for rule, value in use.concluded_by],
        "read_by": [{**_whose(use, rule), "conditions": list(c)} for rule, c in use.read_by],
        "counted_by": [{**_whose(use, rule), "terms": list(t)} for rule, t in use.counted_by],
        "leads_to": list(use.leads_to),
    }
    return json.dumps(made, indent=2) + "\n"


def _whose(use: FactUse, rule: Rule) -> dict[str, object]:
    user = user_rule(rule)
    return {
        "rule": rule.id,
        "yours": str(user) if user else None,
        "switched_off": use.switched_off.get(rule.id),
    }


def _object(fact: FactType) -> dict[str, object]:
    return {
        "fact": fact.name,
        "kind": fact.kind,
        "unit": fact.unit or None,
        "values": list(fact.values) or None,
        "of": fact.of,
        "from": fact.origin,
        "help": fact.help,
    }
