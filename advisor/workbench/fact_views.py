"""Facts as text and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from advisor.advice.conclusions import user_rule
from advisor.knowledge.vocabulary import FactType, Vocabulary, show
from advisor.report.figures import aligned
from advisor.rules.language.model import Rule
from advisor.workbench.dependencies import FactUse, by_group

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
    if own := user_rule(rule):
        return f"({own})"
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
    own = user_rule(rule)
    return {
        "rule": rule.id,
        "yours": str(own) if own else None,
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
