"""Pictures of facts and rules: around one rule, of a topic, and of everything."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from advisor.rulefile.model import Rule
from advisor.workbench.dependencies import reads
from advisor.workbench.rulebook.blocks import Node, Picture
from advisor.workbench.rulebook.material import Material, Topic, topic_title

_MOST = 14
"""Boxes of one kind beside a rule; the rest become one box."""
_LEGEND = (
    "Round boxes are facts, darker where rules conclude them; square ones are rules that conclude "
    "(blue), recommend (green), bar (red) or remark (yellow). Arrows go from what is read to what "
    "reads it."
)


def around(material: Material, rule: Rule) -> Picture:
    """Draw what a rule reads, what makes that, what it concludes and who reads that."""
    read = sorted(reads(rule))
    concluded = sorted(rule.conclude)
    makers = [made for made in material.rules if set(made.conclude) & set(read)]
    readers = [other for other in material.rules if reads(other) & set(concluded)]
    before, makers_left = _at_most(makers, "rules before")
    after, readers_left = _at_most(readers, "rules after")
    arrows = [(name, rule.id) for name in read] + [(rule.id, name) for name in concluded]
    arrows += [(m.id, name) for m in makers[: len(before)] for name in m.conclude if name in read]
    arrows += [(n, r.id) for r in readers[: len(after)] for n in concluded if n in reads(r)]
    columns = (
        [*(_rule(material, r) for r in before), *makers_left],
        [_fact(material, name) for name in read],
        [_rule(material, rule)],
        [_fact(material, name) for name in concluded],
        [*(_rule(material, r) for r in after), *readers_left],
    )
    described = (
        f"{rule.id} reads {len(read)} facts"
        + (f" and concludes {', '.join(concluded)}" if concluded else "")
        + (f"; {len(readers)} rules read that" if readers else "")
        + "."
    )
    return Picture(f"rule-{rule.id}", f"Around {rule.id}", described, columns, arrows, rule.id)


def _at_most(rules: Sequence[Rule], what: str) -> tuple[Sequence[Rule], list[Node]]:
    if len(rules) <= _MOST:
        return rules, []
    kept = rules[: _MOST - 1]
    names = ", ".join(rule.id for rule in rules[len(kept) :])
    return kept, [Node(f"{len(rules) - len(kept)} more {what}", "more", help=names)]


def of_topic(material: Material, topic: Topic) -> Picture:
    """Draw the rules of a topic with the facts they read and conclude."""
    concluded = sorted({name for rule in topic.rules for name in rule.conclude})
    read = sorted({name for rule in topic.rules for name in reads(rule)} - set(concluded))
    columns = (
        [_fact(material, name) for name in read],
        [_rule(material, rule) for rule in topic.rules],
        [_fact(material, name) for name in concluded],
    )
    title = f"Facts and rules: {topic_title(topic.name)}"
    described = f"{len(topic.rules)} rules read {len(read)} facts. {_LEGEND}"
    return Picture(
        f"topic-{topic.name}", title, described, columns, _arrows(topic.rules, backward=False)
    )


def of_all(material: Material) -> Picture:
    """Draw every rule and every fact that a rule reads or concludes."""
    level = _levels(material.rules)
    tallest = max(level.values(), default=0)
    columns: list[list[Node]] = [[] for _ in range(tallest + 1)]
    for name in material.advisor.vocabulary.facts:
        if name in level:
            columns[level[name]].append(_fact(material, name))
    for rule in material.rules:
        columns[level[rule.id]].append(_rule(material, rule))
    facts = len(level) - len(material.rules)
    described = f"{len(material.rules)} rules and {facts} facts. {_LEGEND}"
    return Picture("all", "All facts and rules", described, columns, _arrows(material.rules))


def _arrows(rules: Iterable[Rule], *, backward: bool = True) -> list[tuple[str, str]]:
    """Pair facts with the rules that read them, and rules with what they conclude."""
    rules = list(rules)
    own = {name for rule in rules for name in rule.conclude}
    found = [
        (name, rule.id)
        for rule in rules
        for name in sorted(reads(rule))
        if backward or name not in own
    ]
    return found + [(rule.id, name) for rule in rules for name in sorted(rule.conclude)]


def _levels(rules: Sequence[Rule]) -> dict[str, int]:
    """Number the columns: a rule stands behind all it reads, a fact behind all that conclude it.

    Conclusions never go round in a circle (the check of rules refuses that), so this ends.
    """
    level = {name: 0 for rule in rules for name in (*reads(rule), *rule.conclude)}
    changed = True
    while changed:
        changed = False
        for rule in rules:
            own = 1 + max((level[name] for name in reads(rule)), default=0)
            changed |= level.get(rule.id) != own
            level[rule.id] = own
            for name in rule.conclude:
                changed |= level[name] <= own
                level[name] = max(level[name], own + 1)
    return level


def _rule(material: Material, rule: Rule) -> Node:
    known = rule.id in material.topic_of
    return Node(rule.id, rule.kind, f"rules/{rule.id}" if known else "", "", rule.why)


def _fact(material: Material, name: str) -> Node:
    fact = material.fact(name)
    kind = "concluded" if fact.origin == "rules" else "fact"
    return Node(name, kind, f"facts/{fact.group}", name, fact.help)
