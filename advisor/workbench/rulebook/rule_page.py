"""The page of one rule."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from advisor.knowledge.vocabulary import FactType, show
from advisor.rules import Test, When
from advisor.rules.language.model import Case, Rule, Score, text_of
from advisor.units import counted
from advisor.workbench.cover_views import share
from advisor.workbench.dependencies import FactUse, by_group, kind_of_fact, origin_of
from advisor.workbench.rulebook.blocks import (
    Block,
    Bullets,
    Code,
    Heading,
    Inline,
    Item,
    Line,
    Link,
    Listing,
    Page,
    Para,
    Table,
)
from advisor.workbench.rulebook.material import (
    Material,
    condition,
    fact_link,
    rule_link,
    topic_link,
    topic_title,
)
from advisor.workbench.rulebook.pictures import around, of_advice, of_conclusions, of_topic
from advisor.workbench.scenario_file import request_line

_DOES = {"veto": "bars a what-if", "note": "makes a remark"}


def rule_page(material: Material, rule: Rule) -> Page:
    """Write everything about one rule."""
    return Page(f"rules/{rule.id}", rule.id, list(_blocks(material, rule)))


def _blocks(material: Material, rule: Rule) -> Iterator[Block]:
    yield Para([rule.why])
    yield Table(("", ""), list(_identity(material, rule)))
    yield Heading("When it fires")
    tried = "for every what-if" if rule.per_option else "once for every request"
    yield Para([f"It is tried {tried}, and fires when all of this holds:"])
    yield Bullets(list(_when(material, rule.when)))
    yield Heading("What it does")
    yield from _effect(material, rule)
    yield from _text(material, rule)
    yield Heading("How often it counts")
    yield from _coverage(material, rule)
    yield Heading("Cases")
    yield from _cases(rule)
    yield Heading("What it uses, and what uses it")
    yield from _around(material, rule)
    yield around(material, rule)


def _identity(material: Material, rule: Rule) -> Iterator[Sequence[Line]]:
    yield ["Topic"], [topic_link(material.topic_of[rule.id])]
    if rule.source:
        yield ["Written in"], [Code(f"{rule.source.file}:{rule.source.line}")]
    if rule.ladder:
        yield ["Ladder"], [Code(rule.ladder)]
    yield ["Status"], [rule.status + (f", since {rule.since}" if rule.since else "")]
    if rule.replaced_by:
        yield ["Replaced by"], [rule_link(rule.replaced_by)]
    yield ["Source of its numbers"], [rule.reference or "it has none that need one"]


def _when(material: Material, when: When) -> Iterator[Item]:
    for test in when.tests:
        yield Item(_test(material, test))
    for blocks in when.any:
        yield Item(["at least one of these:"], [_block(material, block) for block in blocks])
    for block in when.none:
        yield Item(["not all of this:"], list(_when(material, block)))


def _block(material: Material, block: When) -> Item:
    items = list(_when(material, block))
    return items[0] if len(items) == 1 else Item(["all of this:"], items)


def _test(material: Material, test: Test) -> Line:
    said = condition(test)
    if test.other:
        words: list[Inline] = [f" {said.removesuffix(test.other)}", fact_link(test.other)]
    else:
        words = [f" {said}"]
    return [fact_link(test.fact), *words, f" ({material.fact(test.fact).help.rstrip('.')})"]


def _effect(material: Material, rule: Rule) -> Iterator[Block]:
    if rule.conclude:
        shown = ((name, show(material.fact(name), v)) for name, v in rule.conclude.items())
        items = [Item(["It concludes ", fact_link(n), f" is {v}."]) for n, v in shown]
        yield Bullets(items)
    elif rule.action:
        yield Para(["It recommends the action ", Code(rule.action), "."])
    elif rule.veto:
        yield Para(["It bars the what-if, and says why: ", rule.veto])
    elif rule.note:
        yield Para(["It remarks: ", rule.note])
    else:
        yield Para(["It makes the remark whose text stands below."])
    if rule.score:
        yield from _score(rule.score)


def _score(score: Score) -> Iterator[Block]:
    if not (score.add or score.when):
        yield Para([f"Its score is {score.base:g}."])
        return
    rows: list[Sequence[Line]] = [([f"{score.base:g}"], ["to begin with"], [""])]
    for per in score.add:
        amount = per.text.split(maxsplit=1)
        of: Line = [amount[1] if len(amount) > 1 else "each", " of ", fact_link(per.fact)]
        rows.append(([f"{per.points:+g}"], of, [f"{per.cap:g}" if per.cap else ""]))
    for term in score.when:
        said: list[Inline] = ["if "]
        for at, test in enumerate(term.tests):
            said += [" and " if at else "", fact_link(test.fact), f" {condition(test)}"]
        rows.append(([f"{term.points:+g}"], said, [""]))
    yield Para(["Recommendations are ordered by their score, which is the sum of these:"])
    yield Table(("points", "for", "at most"), rows, figures=(0, 2))


def _text(material: Material, rule: Rule) -> Iterator[Block]:
    name = text_of(rule)
    if name not in material.templates:
        return
    source = material.templates[name]
    yield Heading("Its text")
    yield Para(["The template ", Code(f"templates/{name}"), ":"])
    yield Listing(source)
    known = material.advisor.vocabulary.named_in("actions")
    inside = _words(source)
    used = [word for word in known if word in inside]
    if used:
        rows: list[Sequence[Line]] = [([Code(word)], [known[word].help]) for word in used]
        yield Table(("placeholder", "holds"), rows)
    example = material.examples.get(rule.id)
    if example:
        yield Para(["For ", Code(f"advisor advise {example.request}"), " it says:"])
        yield Listing("\n\n".join(filter(None, (example.title, example.text))))


def _words(source: str) -> frozenset[str]:
    """Collect the words inside the tags of a template."""
    tags = re.findall(r"\{[{%](.*?)[%}]\}", source, re.DOTALL)
    return frozenset(re.findall(r"[\w.]+", " ".join(tags)))


def _coverage(material: Material, rule: Rule) -> Iterator[Block]:
    measured = material.measured
    found = measured.rules.get(rule.id) if measured else None
    if measured is None or found is None:
        yield Para(["Not measured."])
        return
    total = measured.scenarios
    parts = [f"It fires in {share(found.fires, total)} of {total:,} scenarios of the catalogue"]
    if not rule.conclude:
        parts.append(f"is in the report in {share(found.said, total)}")
    if rule.action:
        parts.append(f"comes first in {share(found.first, total)}")
    yield Para([", ".join(parts) + "."])
    if found.by_verdict:
        shown = (f"{verdict}: {100 * part:.1f} %" for verdict, part in found.by_verdict.items())
        yield Para([f"By verdict: {', '.join(shown)}."])
    if found.conditions:
        rows: list[Sequence[Line]] = []
        for at in found.conditions:
            of = measured.options if at.of == "options" else total
            shares = ([share(at.passes, of)], [share(at.fails, of)], [f"{at.decides:,}"])
            rows.append(([Code(at.text)], *shares))
        head = ("condition", "passes", "fails", "alone decides")
        yield Table(head, rows, figures=(1, 2, 3))


def _cases(rule: Rule) -> Iterator[Block]:
    if not rule.cases:
        yield Para(["It has none."])
        return
    rows: list[Sequence[Line]] = [
        ([case.name], [Code(request_line(case.given))], _expected(case)) for case in rule.cases
    ]
    yield Table(("case", "request", "expects"), rows)


def _expected(case: Case) -> Line:
    parts = ["it fires" if case.expect == "fires" else "it is silent"]
    if case.change:
        parts.append(
            ("with " if case.expect == "fires" else "about ")
            + ", ".join(f"{key} {value}" for key, value in case.change.items())
        )
    if case.rank:
        parts.append(f"as number {case.rank}")
    if case.says:
        parts.append(f"and says '{case.says}'")
    return [" ".join(parts)]


def _around(material: Material, rule: Rule) -> Iterator[Block]:
    items = [Item(["It reads:"], [_read(material, name) for name in material.facts_read(rule)])]
    if rule.conclude:
        items.append(
            _listed("What it concludes is read or counted by:", material.readers(rule), "nobody")
        )
    if rule.action or rule.supersedes:
        own = [material.advisor.ruleset.by_id[name] for name in rule.supersedes]
        items.append(_listed("It supersedes:", own, "no rule"))
        items.append(_listed("It is superseded by:", material.superseded_by(rule), "no rule"))
    if rule.action:
        items.append(_listed("What it recommends may be barred by:", material.vetoes(rule), "none"))
    if rule.veto:
        items.append(_listed("It may bar what these recommend:", material.vetoes(rule), "none"))
    yield Bullets(items)


def _read(material: Material, name: str) -> Item:
    makers = [made for made, _ in material.uses[name].concluded_by]
    if not makers:
        return Item([fact_link(name)])
    return Item([fact_link(name), ", concluded by ", *_commas(makers)])


def _listed(title: str, rules: Sequence[Rule], nothing: str) -> Item:
    return Item([f"{title} ", *(_commas(rules) if rules else [nothing])])


def _commas(rules: Iterable[Rule]) -> list[Inline]:
    found: list[Inline] = []
    for rule in rules:
        found += [", ", rule_link(rule)] if found else [rule_link(rule)]
    return found


def does(rule: Rule) -> Line:
    """Say in a few words what a rule does."""
    if rule.conclude:
        found: list[Inline] = []
        for name, value in rule.conclude.items():
            word = ("yes" if value else "no") if isinstance(value, bool) else f"{value}"
            found += [", " if found else "", fact_link(name), f" is {word}"]
        return found
    return [f"recommends {rule.action}" if rule.action else _DOES[rule.kind]]


def index_page(material: Material) -> Page:
    """List every rule by topic."""
    return Page("index", "Rulebook", list(_index(material)))


def _index(material: Material) -> Iterator[Block]:
    facts = material.advisor.vocabulary.facts
    rules, topics = material.rules, material.topics
    begin = f"{counted(len(rules), 'rule')} in {counted(len(topics), 'file')} read and conclude "
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
