"""Pictures of facts and rules: around one rule, of a topic, of conclusions and of advice."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from html import escape

from advisor.rules.language.model import Rule
from advisor.units import counted
from advisor.workbench.dependencies import reads
from advisor.workbench.rulebook.blocks import PICTURES, Address, Node, NodeKind, Picture, style_in
from advisor.workbench.rulebook.material import Material, Topic, topic_title

_MOST = 14
"""Boxes of one kind beside a rule; the rest become one box."""
_LEGEND = (
    "Round boxes are facts, darker where rules conclude them; square ones are rules that conclude "
    "(blue), recommend (green), bar (red) or remark (yellow). Arrows go from what is read to what "
    "reads it; what counts in scores alone is left out."
)


def around(material: Material, rule: Rule) -> Picture:
    """Draw what a rule reads, what makes that, what it concludes and who reads that."""
    read, concluded = material.facts_read(rule), sorted(rule.conclude)
    makers = [made for made in material.rules if set(made.conclude) & set(read)]
    readers = material.readers(rule)
    before, makers_left = _at_most(makers, "rules before")
    after, readers_left = _at_most(readers, "rules after")
    arrows = [(name, rule.id) for name in read] + [(rule.id, name) for name in concluded]
    arrows += [(made.id, name) for made in before for name in made.conclude if name in read]
    arrows += [(n, r.id) for r in after for n in concluded if n in material.facts_read(r)]
    decides = {(name, r.id) for r in (rule, *after) for name in reads(r)}
    columns = (
        [*(_rule(material, r) for r in before), *makers_left],
        [_fact(material, name) for name in read],
        [_rule(material, rule)],
        [_fact(material, name) for name in concluded],
        [*(_rule(material, r) for r in after), *readers_left],
    )
    into = {a for a in arrows if a[1] in {rule.id, *(r.id for r in after)}}
    described = _around_in_words(rule, len(read), len(readers))
    return Picture(
        f"rule-{rule.id}",
        f"Around {rule.id}",
        described,
        columns,
        arrows,
        frozenset(into - decides),
        rule.id,
    )


def _around_in_words(rule: Rule, read: int, readers: int) -> str:
    said = f"{rule.id} reads {counted(read, 'fact')}"
    if rule.conclude:
        said += f" and concludes {', '.join(sorted(rule.conclude))}"
        said += f", which {counted(readers, 'rule')} read{'s' if readers == 1 else ''}"
    return f"{said}. Broken arrows are facts that count in a score and decide nothing."


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
    described = f"{counted(len(topic.rules), 'rule')}, {counted(len(read), 'fact')} read. {_LEGEND}"
    return Picture(f"topic-{topic.name}", title, described, columns, _arrows(topic.rules))


def of_conclusions(material: Material) -> Picture:
    """Draw how facts are concluded: a box for each ladder or rule, one for each group of facts.

    Groups of given facts stand on the left; whatever is concluded stands behind all it needs.
    """
    rules = [rule for rule in material.rules if rule.conclude]
    level = _levels(rules)
    boxes = {_entry(rule): rule for rule in rules}
    own = {name for rule in rules for name in rule.conclude}
    columns: list[list[Node]] = [[] for _ in range(max(level.values(), default=0) + 1)]
    groups = {name.partition(".")[0] for rule in rules for name in reads(rule) - own}
    columns[0] = [_group(material, group) for group in _in_order(material, groups)]
    for entry, rule in boxes.items():
        columns[max(level[r.id] for r in rules if _entry(r) == entry)].append(
            _entry_box(material, entry, rule)
        )
    for name in material.advisor.vocabulary.facts:
        if name in own:
            columns[level[name]].append(_fact(material, name))
    arrows = {(_source(name, own), _entry(rule)) for rule in rules for name in reads(rule)}
    arrows |= {(_entry(rule), name) for rule in rules for name in rule.conclude}
    described = (
        f"{len(boxes)} ladders and rules conclude "
        f"{counted(len(own), 'fact')}. On the left are groups of given facts. {_LEGEND}"
    )
    return Picture("conclusions", "How facts are concluded", described, columns, sorted(arrows))


def of_advice(material: Material) -> Picture:
    """Draw what advice rests on: a box for each file of rules, facts by group."""
    concluded = {name for rule in material.rules for name in rule.conclude}
    advising = {
        topic.name: [rule for rule in topic.rules if not rule.conclude] for topic in material.topics
    }
    read = {
        name: {fact for rule in rules for fact in reads(rule)}
        for name, rules in advising.items()
        if rules
    }
    groups = {fact.partition(".")[0] for facts in read.values() for fact in facts - concluded}
    shown = {fact for facts in read.values() for fact in facts & concluded}
    columns = (
        [_group(material, group) for group in _in_order(material, groups)],
        [_topic(name, advising[name]) for name in read],
        [_fact(material, name) for name in sorted(shown)],
    )
    arrows = {
        (_source(fact, concluded), _topic_name(name))
        if fact not in concluded
        else (_topic_name(name), fact)
        for name, facts in read.items()
        for fact in facts
    }
    described = (
        f"{counted(len(read), 'file')} of rules that recommend, bar or remark, between the groups "
        "of given facts that they read (left) and the concluded facts that they read (right)."
    )
    return Picture("advice", "What advice rests on", described, columns, sorted(arrows))


def _entry(rule: Rule) -> str:
    return rule.ladder or rule.id


def _entry_box(material: Material, entry: str, rule: Rule) -> Node:
    topic = material.topic_of.get(rule.id)
    page = "" if topic is None else f"rules/{rule.id}"
    return Node(entry, rule.kind, page, "", rule.why)


def _source(name: str, own: Collection[str]) -> str:
    return name if name in own else _group_name(name.partition(".")[0])


def _group_name(group: str) -> str:
    return f"{group}.*"


def _in_order(material: Material, groups: Collection[str]) -> Sequence[str]:
    return [group for group in material.advisor.vocabulary.groups if group in groups]


def _group(material: Material, group: str) -> Node:
    facts = [f.name for f in material.advisor.vocabulary.facts.values() if f.group == group]
    return Node(_group_name(group), "fact", f"facts/{group}", "", ", ".join(facts))


def _topic_name(name: str) -> str:
    return topic_title(name)


def _topic(name: str, rules: Sequence[Rule]) -> Node:
    kinds = [rule.kind for rule in rules]
    most = max(dict.fromkeys(kinds), key=kinds.count)
    said = f"{counted(len(rules), 'rule')}: {', '.join(rule.id for rule in rules)}"
    return Node(_topic_name(name), most, f"topics/{name}", "", said)


def _arrows(rules: Sequence[Rule]) -> list[tuple[str, str]]:
    """Pair facts with the rules that read them, and rules with what they conclude."""
    own = {name for rule in rules for name in rule.conclude}
    found = [(name, rule.id) for rule in rules for name in sorted(reads(rule)) if name not in own]
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
    kind: NodeKind = "concluded" if fact.origin == "rules" else "fact"
    return Node(name, kind, f"facts/{fact.group}", name, fact.help)


_LETTER, _HEIGHT, _STEP, _MARGIN, _PAD = 6.7, 20, 26, 12, 9
_GAP, _WIDEST_GAP = 80, 240
_SWEEPS = 12


def svg(picture: Picture, address: Address | None = None, *, style: bool = True) -> str:
    """Draw a picture.

    Without ``address`` boxes lead nowhere; a page that has the colours does without ``style``.
    """
    columns = _ordered(picture)
    boxes, width, height = _placed(columns)
    name = escape(picture.name, quote=True)
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="graph" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" role="img" '
        f'aria-labelledby="{name}-title {name}-desc">'
    )
    shown = [
        opening,
        f'<title id="{name}-title">{escape(picture.title)}</title>',
        f'<desc id="{name}-desc">{escape(picture.description)}</desc>',
        *([f"<style>\n{style_in(PICTURES)}</style>"] if style else []),
        *_drawn(picture, boxes, address),
        "</svg>",
    ]
    return "\n".join(shown) + "\n"


def _ordered(picture: Picture) -> list[list[Node]]:
    columns = [list(column) for column in picture.columns if column]
    beside: dict[str, list[str]] = defaultdict(list)
    for start, end in picture.arrows:
        beside[start].append(end)
        beside[end].append(start)
    for sweep in range(_SWEEPS):
        forward = sweep % 2 == 0
        order = range(1, len(columns)) if forward else range(len(columns) - 2, -1, -1)
        for number in order:
            passed = columns[:number] if forward else columns[number + 1 :]
            places = {
                node.name: (at + 0.5) / len(column)
                for column in passed
                for at, node in enumerate(column)
            }
            columns[number] = _sorted(columns[number], beside, places)
    return columns


def _sorted(
    column: list[Node], beside: Mapping[str, list[str]], places: Mapping[str, float]
) -> list[Node]:
    def mean(at: int) -> float:
        near = [places[name] for name in beside[column[at].name] if name in places]
        return sum(near) / len(near) if near else (at + 0.5) / len(column)

    means = [mean(at) for at in range(len(column))]
    return [column[at] for at in sorted(range(len(column)), key=lambda at: (means[at], at))]


_Box = tuple[Node, float, float, float]
"""With left edge, upper edge and width."""


def _placed(columns: Sequence[Sequence[Node]]) -> tuple[dict[str, _Box], int, int]:
    tallest = max((len(column) for column in columns), default=0)
    boxes: dict[str, _Box] = {}
    left, gap = float(_MARGIN), min(_GAP + 2 * tallest, _WIDEST_GAP)
    for column in columns:
        wide = max(len(node.name) for node in column) * _LETTER + 2 * _PAD
        step = _STEP * min(max(tallest / len(column), 1.0), 2.0)
        top = _MARGIN + (tallest * _STEP - len(column) * step) / 2
        for at, node in enumerate(column):
            boxes[node.name] = (node, left, top + at * step + (step - _HEIGHT) / 2, wide)
        left += wide + gap
    return boxes, round(left - gap + _MARGIN), tallest * _STEP + 2 * _MARGIN


def _drawn(picture: Picture, boxes: Mapping[str, _Box], address: Address | None) -> Iterator[str]:
    """Draw each rule in one group with its arrows, so that they light up together, then facts.

    Rules further to the right come first: their arrows then pass below what stands before them.
    """
    facts = {"fact", "concluded"}
    arrows: dict[str, list[str]] = defaultdict(list)
    for start, end in picture.arrows:
        if start in boxes and end in boxes:
            owner = end if boxes[start][0].kind in facts else start
            dashed = (start, end) in picture.dashed
            arrows[owner].append(_arrow(boxes[start], boxes[end], dashed=dashed))
    for name, box in reversed(list(boxes.items())):
        if box[0].kind not in facts:
            yield "<g>"
            yield from arrows.pop(name, ())
            yield _box(box, picture, address)
            yield "</g>"
    yield from (path for paths in arrows.values() for path in paths)
    for box in boxes.values():
        if box[0].kind in facts:
            yield _box(box, picture, address)


def _arrow(start: _Box, end: _Box, *, dashed: bool) -> str:
    x1, y1 = start[1] + start[3], start[2] + _HEIGHT / 2
    x2, y2 = end[1], end[2] + _HEIGHT / 2
    bend = max((x2 - x1) / 2, 30)
    points = ((x1, y1), (x1 + bend, y1), (x2 - bend, y2), (x2, y2))
    start_at, *curve = (f"{x:.0f} {y:.0f}" for x, y in points)
    kind = ' class="counted"' if dashed else ""
    return f'<path{kind} d="M{start_at}C{" ".join(curve)}"/>'


def _box(box: _Box, picture: Picture, address: Address | None) -> str:
    node, x, y, wide = box
    marked = " centre" if node.name == picture.centre else ""
    drawn = (
        f'<g class="{node.kind}{marked}"><title>{escape(node.help or node.name)}</title>'
        f'<rect x="{x:.0f}" y="{y:.0f}" width="{wide:.0f}" height="{_HEIGHT}" '
        f'rx="{_radius(node)}"/>'
        f'<text x="{x + _PAD:.0f}" y="{y + 14:.0f}">{escape(node.name)}</text></g>'
    )
    if not address or not node.page:
        return drawn
    return f'<a href="{escape(address(node.page, node.anchor), quote=True)}">{drawn}</a>'


def _radius(node: Node) -> int:
    """Facts are round, rules have corners."""
    return _HEIGHT // 2 if node.kind in {"fact", "concluded"} else 3
