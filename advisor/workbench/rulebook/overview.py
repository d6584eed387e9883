"""The pages that lead to the others: the index, topics, facts and the whole picture."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from advisor.knowledge.vocabulary import FactType, show
from advisor.rules.language.model import Rule
from advisor.workbench.dependencies import FactUse, by_group
from advisor.workbench.fact_views import kind_of_fact, origin_of
from advisor.workbench.layout import count, share
from advisor.workbench.rulebook.blocks import (
    Block,
    Bullets,
    Heading,
    Inline,
    Item,
    Line,
    Link,
    Page,
    Para,
    Table,
)
from advisor.workbench.rulebook.material import (
    Material,
    fact_link,
    rule_link,
    topic_link,
    topic_title,
)
from advisor.workbench.rulebook.pictures import of_advice, of_conclusions, of_topic
from advisor.workbench.rulebook.rule_page import does


def index_page(material: Material) -> Page:
    """List every rule by topic."""
    return Page("index", "Rulebook", list(_index(material)))


def _index(material: Material) -> Iterator[Block]:
    facts = material.advisor.vocabulary.facts
    rules, topics = material.rules, material.topics
    begin = f"{count(len(rules), 'rule')} in {count(len(topics), 'file')} read and conclude "
    each = (
        ". Each rule has a page with its conditions in words, its text, its cases and what depends "
        "on it. The "
    )
    ways = (Link(f"{len(facts)} facts", "facts/index"), Link("picture", "picture"))
    yield Para([begin, ways[0], each, ways[1], " shows how they hang together."])
    yield Para([_sample(material)])
    for topic in topics:
        yield Heading(topic_title(topic.name), anchor=topic.name)
        more: Line = ["Page of the topic: ", topic_link(topic), "."]
        yield Para([topic.about, " ", *more] if topic.about else more)
        yield _rules(material, topic.rules)


def _sample(material: Material) -> str:
    if material.measured is None:
        return "How often rules fire was not measured for this book."
    return (
        f"How often a rule fires was measured on {material.measured.scenarios:,} scenarios spread "
        "evenly over the catalogue of cards, models, formats and settings. They are not what "
        "people ask: shares say how rules cover the ground."
    )


def _rules(material: Material, rules: Sequence[Rule]) -> Table:
    rows: list[Sequence[Line]] = [
        ([rule_link(rule)], does(rule), [rule.why], [_fires(material, rule)]) for rule in rules
    ]
    return Table(("rule", "does", "why", "fires"), rows, figures=(3,))


def _fires(material: Material, rule: Rule) -> str:
    found = material.measured.rules.get(rule.id) if material.measured else None
    return share(found.fires, material.measured.scenarios) if found and material.measured else ""


def topic_pages(material: Material) -> Iterator[Page]:
    """Write a page for each rule file, with its picture."""
    for topic in material.topics:
        blocks: list[Block] = [Para([topic.about])] if topic.about else []
        blocks += [_rules(material, topic.rules), of_topic(material, topic)]
        yield Page(f"topics/{topic.name}", topic_title(topic.name), blocks, wide=True)


def picture_page(material: Material) -> Page:
    """Show how facts are concluded and what advice rests on; single rules have their own page."""
    topics: list[Inline] = []
    for topic in material.topics:
        topics += [", " if topics else "", topic_link(topic)]
    said = Para(["Each rule has a picture on its own page. The rules of one file: ", *topics, "."])
    hover = Para(["A box that is pointed at lights up its arrows; a click opens its page."])
    blocks: list[Block] = [said, hover]
    for picture in (of_conclusions(material), of_advice(material)):
        blocks += [Heading(picture.title, anchor=picture.name), picture]
    return Page("picture", "Facts and rules", blocks, wide=True)


def fact_pages(material: Material) -> Iterator[Page]:
    """Write the reference of facts: an index, and a page for each group."""
    groups = by_group(material.advisor.vocabulary)
    yield Page("facts/index", "Facts", list(_fact_index(groups, material)))
    for group, facts in groups.items():
        blocks = [block for fact in facts for block in _fact(material.uses[fact.name])]
        yield Page(f"facts/{group}", f"Facts: {group}", blocks)


def _fact_index(groups: Mapping[str, Sequence[FactType]], material: Material) -> Iterator[Block]:
    yield Para(["Everything that rules may read or conclude. A fact that is unknown is absent."])
    for group, facts in groups.items():
        yield Heading(group, anchor=group)
        rows: list[Sequence[Line]] = []
        for fact in facts:
            use = material.uses[fact.name]
            used = len({r.id for r, _ in (*use.read_by, *use.counted_by)})
            rows.append(
                ([fact_link(fact.name)], [kind_of_fact(fact)], [fact.help], [f"{used or ''}"])
            )
        yield Table(("fact", "unit or values", "is", "rules"), rows, figures=(3,))


def _fact(use: FactUse) -> Iterator[Block]:
    fact = use.fact
    yield Heading(fact.name, anchor=fact.name)
    yield Para([fact.help])
    sold = "; a size as sold, where GB means GiB" if fact.as_sold else ""
    yield Para([f"{kind_of_fact(fact)}; {origin_of(fact)}{sold}."])
    items = []
    if use.concluded_by or fact.origin == "rules":
        made = [(r, show(fact, value)) for r, value in use.concluded_by]
        items.append(Item(["Concluded by:"], [Item([rule_link(r), f" as {v}"]) for r, v in made]))
    for title, found in (("Read by:", use.read_by), ("Counted in the score of:", use.counted_by)):
        if found:
            below = [Item([rule_link(r), f": {'; '.join(texts)}"]) for r, texts in found]
            items.append(Item([title], below))
    if use.leads_to:
        links: list[Inline] = []
        for name in use.leads_to:
            links += [", " if links else "", fact_link(name)]
        items.append(Item(["Facts that depend on it: ", *links]))
    yield Bullets(items) if items else Para(["No rule uses it."])
