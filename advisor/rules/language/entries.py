"""Entries of a rule file -> rules, as far as one entry can be read by itself.

A ladder, a table over one or two numbers, becomes one ``conclude`` rule for each value.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise, product, zip_longest
from typing import Literal, cast, get_args

from msgspec import Struct
from msgspec.structs import replace

from advisor.errors import Source
from advisor.knowledge.vocabulary import FactType
from advisor.knowledge.yaml_fields import Fields
from advisor.rules import Test, When
from advisor.rules.language.conditions import read_when
from advisor.rules.language.context import Reading
from advisor.rules.language.effects import (
    EFFECTS,
    concludable,
    read_cases,
    read_conclusion,
    read_effect,
)
from advisor.rules.language.model import Case, Draft, Rule, as_stored
from advisor.yamlfile import Node

Status = Literal["experimental", "stable", "deprecated"]
ABOUT_KEYS = ("why", "source", "status", "since", "replaced_by")
RULE_KEYS = ("rule", "replaces", *ABOUT_KEYS, "when", *EFFECTS, "cases")
LADDER_KEYS = ("ladder", "replaces", *ABOUT_KEYS, "when", "over", "conclude", "rows", "cases")
DISABLE_KEYS = ("disable", "reason")
_ID = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")


def read_rules(content: bytes, shown: str, reading: Reading) -> Sequence[Draft]:
    """Read one rule file; what is wrong is noted, and as much as possible is read.

    Returns:
        One draft per rule; a broken file or ladder gives one that is partial.
    """
    before = len(reading.problems.errors)
    entries = reading.problems.entries(content, shown, "- rule: NAME")
    ill_written = reading.problems.errors[before:]
    drafts: list[Draft] = []
    ends = [node.source.line for node in entries[1:]]
    for node, end in zip_longest(entries, ends):
        fields = Fields.of(node, "a rule", reading.problems)
        if fields is not None:
            doubled = any(_within(node.source, bad.source, end) for bad in ill_written)
            drafts.extend(_entry(fields, reading, doubled=doubled))
    if ill_written or not entries:
        drafts.append(Draft(Rule("", "", When(())), partial=True))
    text = content.decode(errors="replace")
    return [replace(draft, text=text) if draft.partial else draft for draft in drafts]


def _within(begin: Source, place: Source | None, end: int | None) -> bool:
    """Whether a place lies in the entry that begins here, above the line of the next one."""
    return place is not None and begin.line <= place.line and (end is None or place.line < end)


def _entry(fields: Fields, reading: Reading, *, doubled: bool) -> Sequence[Draft]:
    before = len(reading.problems.errors)
    if "disable" in fields and "rule" not in fields:
        return [_disabling(fields)]
    if "ladder" in fields and "rule" not in fields:
        fields.only(LADDER_KEYS)
        about = _about(fields, "ladder", reading)
        rules = read_ladder(about, fields, reading)
    else:
        fields.only(RULE_KEYS)
        rules = [_rule(fields, reading)]
    replaces = fields.text("replaces") or ""
    partial = doubled or len(reading.problems.errors) > before
    return [Draft(rule, _places(fields), partial, replaces) for rule in rules]


def _disabling(fields: Fields) -> Draft:
    fields.only(DISABLE_KEYS)
    fields.require("reason", "Say in one sentence why the rule is switched off.")
    nothing = Rule("", "", When(()), source=fields.source)
    return Draft(
        nothing,
        _places(fields),
        disables=fields.text("disable") or "",
        reason=fields.text("reason") or "",
    )


def _rule(fields: Fields, reading: Reading) -> Rule:
    when = fields.require("when", "Name the facts that must hold.")
    rule = replace(
        _about(fields, "rule", reading),
        when=read_when(when, reading) if when else When(()),
        stored_cases=as_stored([case for case, _ in read_cases(fields, reading)]),
    )
    return read_effect(rule, fields, reading)


def _about(fields: Fields, kind: str, reading: Reading) -> Rule:
    fields.require(kind, "Begin every entry with '- rule: NAME'.")
    fields.require("why", "Say in one sentence why the rule holds.")
    rule_id = fields.text(kind) or ""
    if rule_id and not _ID.fullmatch(rule_id):
        hint = "Use small letters, digits and hyphens."
        message = f"'{rule_id}' is not a rule name."
        reading.problems.add(message, fields.values[kind].source, hint, lint="bad-rule-name")
    return Rule(
        id=rule_id,
        why=fields.text("why") or "",
        when=When(()),
        status=cast("Status", fields.choice("status", get_args(Status)) or "stable"),
        since=fields.text("since"),
        replaced_by=fields.text("replaced_by"),
        reference=fields.text("source"),
        source=fields.source,
    )


def _places(fields: Fields) -> Mapping[str, Source]:
    places = {key: node.source for key, node in fields.values.items()}
    recommend = fields.node("recommend")
    if recommend is not None and isinstance(recommend.value, Mapping):
        places |= {key: node.source for key, node in recommend.value.items()}
    return places | {"recommend": fields.at("recommend"), "veto": fields.at("veto")}


_MOST_FACTS = 2
_BOUNDS = ("from", "to")


class _Range(Struct, frozen=True):
    """From ``low`` (included) to ``high`` (not included), as written and in base units."""

    low: float = -math.inf
    high: float = math.inf
    low_text: str = ""
    high_text: str = ""
    source: Source | None = None

    def holds(self, cell: tuple[float, float]) -> bool:
        """Whether all of a cell that no bound cuts lies inside."""
        return self.low <= cell[0] and cell[1] <= self.high

    def tests(self, fact: str) -> tuple[Test, ...]:
        """Give the conditions that say this range."""
        low = Test(fact, "at least", self.low, None, f"at least {self.low_text}", self.source)
        high = Test(fact, "below", self.high, None, f"below {self.high_text}", self.source)
        return (*([low] if self.low_text else []), *([high] if self.high_text else []))


class _Row(Struct, frozen=True):
    ranges: tuple[_Range, ...]
    text: str
    value: float | str | bool | None
    """None where it is wrong: the row still covers its ranges."""
    source: Source

    def holds(self, cell: Sequence[tuple[float, float]]) -> bool:
        """Whether the row covers a cell of the table."""
        return all(axis.holds(ends) for axis, ends in zip(self.ranges, cell, strict=True))

    def tests(self, over: Sequence[FactType]) -> tuple[Test, ...]:
        """Give the conditions of this row."""
        pairs = zip(over, self.ranges, strict=True)
        return tuple(test for fact, found in pairs for test in found.tests(fact.name))


class _Table(Struct, frozen=True):
    over: tuple[FactType, ...]
    rows: tuple[_Row, ...]
    concluded: str
    covers: bool
    """Whether the ranges of all rows could be read."""

    @property
    def says(self) -> bool:
        """Whether the values of all rows could be read."""
        return bool(self.rows) and self.covers and all(row.value is not None for row in self.rows)


def read_ladder(about: Rule, fields: Fields, reading: Reading) -> Sequence[Rule]:
    """Expand one ladder; one with a mistake gives a single rule that concludes nothing."""
    before = len(reading.problems.errors)
    for key in ("over", "conclude", "rows", "cases"):
        fields.require(key)
    table = _table(fields, reading)
    when = read_when(fields.values["when"], reading) if "when" in fields else When(())
    texts = tuple(dict.fromkeys(row.text for row in table.rows))
    cases = read_cases(fields, reading, (*texts, "silent") if table.says else None)
    if table.covers and table.rows:
        _check_cover(table, fields, reading)
    if table.says and "cases" in fields:
        _check_cases(texts, cases, fields, reading)
    if len(reading.problems.errors) > before:
        return [replace(about, ladder=about.id)]
    return [_ladder_rule(replace(about, when=when), text, table, cases) for text in texts]


def _table(fields: Fields, reading: Reading) -> _Table:
    over = _over(fields, reading)
    concluded = fields.text("conclude") or ""
    if not concluded or not _is_concludable(concluded, fields, reading):
        concluded = ""
    nodes = _row_nodes(fields, reading)
    rows = [_row(node, over, concluded, reading) for node in nodes]
    read = tuple(row for row in rows if row is not None)
    return _Table(over, read, concluded, covers=bool(over) and len(read) == len(rows))


def _is_concludable(concluded: str, fields: Fields, reading: Reading) -> bool:
    keys = {concluded: fields.values["conclude"].source}
    return concludable(concluded, replace(fields, keys=keys), reading)


def _over(fields: Fields, reading: Reading) -> tuple[FactType, ...]:
    node = fields.node("over")
    if node is None:
        return ()
    items = node.value if isinstance(node.value, list) else [node]
    found = []
    for item in items:
        fact = reading.fact(item.text, item.source)
        if fact is not None and fact.kind != "number":
            hint = "A ladder goes over numbers; write rules for names."
            message = f"{fact.name} is not a number."
            reading.problems.add(message, item.source, hint, lint="wrong-ladder")
        found.append(fact)
    if not 1 <= len({item.text for item in items}) == len(items) <= _MOST_FACTS:
        message = "a ladder goes over one fact or two different ones."
        reading.problems.add(message, node.source, lint="wrong-ladder")
        return ()
    known = tuple(fact for fact in found if fact is not None and fact.kind == "number")
    return known if len(known) == len(items) else ()


def _row_nodes(fields: Fields, reading: Reading) -> Sequence[Node]:
    node = fields.values.get("rows")
    if node is None:
        return ()
    if not isinstance(node.value, list) or not node.value:
        hint = "Write each row as '- {from: ..., to: ..., value: ...}'."
        message = "'rows' must be a list."
        reading.problems.add(message, fields.at("rows"), hint, lint="wrong-shape")
        return ()
    return node.value


def _row(node: Node, over: Sequence[FactType], concluded: str, reading: Reading) -> _Row | None:
    """Read a row: its value even where its ranges are wrong, and the other way round."""
    fields = Fields.of(node, "a row", reading.problems)
    if fields is None:
        return None
    value_node = fields.require("value")
    value = None
    if value_node is not None and concluded:
        value = read_conclusion(concluded, value_node, replace(fields, keys={}), reading)
    ranges = _ranges(fields, over, reading) if over else None
    if ranges is None:
        return None
    return _Row(ranges, value_node.text.strip() if value_node else "", value, fields.source)


def _ranges(
    fields: Fields, over: Sequence[FactType], reading: Reading
) -> tuple[_Range, ...] | None:
    if len(over) == 1:
        fields.only((*_BOUNDS, "value"))
        found = [_range(fields, over[0], reading)]
    else:
        fields.only((*(fact.name for fact in over), "value"))
        found = [_named_range(fields, fact, reading) for fact in over]
    known = tuple(one for one in found if one is not None)
    return known if len(known) == len(found) else None


def _named_range(fields: Fields, fact: FactType, reading: Reading) -> _Range | None:
    node = fields.node(fact.name)
    if node is None:
        return _Range(source=fields.source)
    inner = Fields.of(node, f"the range of {fact.name}", reading.problems)
    if inner is None:
        return None
    inner.only(_BOUNDS)
    return _range(inner, fact, reading)


def _range(fields: Fields, fact: FactType, reading: Reading) -> _Range | None:
    texts = {key: fields.text(key) or "" for key in _BOUNDS}
    ends = {"from": -math.inf, "to": math.inf}
    for key in _BOUNDS:
        if key in fields:
            value = reading.number(fact, texts[key], fields.values[key].source)
            ends[key] = math.nan if value is None else value
    if math.isnan(ends["from"]) or math.isnan(ends["to"]):
        return None
    if ends["from"] >= ends["to"]:
        hint = "'from' is included and 'to' is not, so 'from' must be smaller."
        message = "the row covers nothing."
        reading.problems.add(message, fields.source, hint, lint="wrong-ladder")
        return None
    return _Range(ends["from"], ends["to"], texts["from"], texts["to"], fields.source)


def _check_cover(table: _Table, fields: Fields, reading: Reading) -> None:
    """Every cell between two neighbouring bounds must belong to exactly one row."""
    axes = []
    for ranges in zip(*(row.ranges for row in table.rows), strict=True):
        bounds = {end for found in ranges for end in (found.low, found.high)}
        axes.append(list(pairwise(sorted(bounds))))
    for cell in product(*axes):
        inside = [row for row in table.rows if row.holds(cell)]
        if len(inside) > 1:
            hint = "'from' is included, 'to' is not."
            message = f"two rows overlap: {_shown(cell, table)}."
            reading.problems.add(message, inside[1].source, hint, lint="ladder-overlap")
            return
        if not inside:
            message = f"no row covers {_shown(cell, table)}."
            hint = "Add a row, or move a bound."
            reading.problems.add(message, fields.at("rows"), hint, lint="ladder-gap")
            return


def _shown(cell: Sequence[tuple[float, float]], table: _Table) -> str:
    parts = []
    for axis, (low, high) in enumerate(cell):
        ranges = [row.ranges[axis] for row in table.rows]
        texts = {r.low: r.low_text for r in ranges} | {r.high: r.high_text for r in ranges}
        start = f" from {texts[low]}" if texts[low] else ""
        end = f" to {texts[high]}" if texts[high] else ""
        parts.append(f"{table.over[axis].name}{start}{end}")
    return " with ".join(parts)


def _check_cases(
    texts: Sequence[str],
    cases: Sequence[tuple[Case, str]],
    fields: Fields,
    reading: Reading,
) -> None:
    expected = {expect for _, expect in cases}
    missing = [text for text in texts if text not in expected]
    if missing:
        message = f"no case of the ladder expects {' or '.join(missing)}."
        hint = "Add a case for every value."
        reading.problems.add(message, fields.at("cases"), hint, lint="missing-case")


def _ladder_rule(about: Rule, text: str, table: _Table, cases: Sequence[tuple[Case, str]]) -> Rule:
    """Give the rule for one value; ``about`` already holds the ladder's own conditions."""
    rows = [row for row in table.rows if row.text == text]
    blocks = [When(row.tests(table.over)) for row in rows]
    when = about.when
    if len(blocks) == 1:
        when = replace(when, tests=(*when.tests, *blocks[0].tests))
    else:
        when = replace(when, any=(*when.any, tuple(blocks)))
    value = rows[0].value
    assert value is not None
    return replace(
        about,
        id=f"{about.id}-{_slug(text)}",
        when=when,
        conclude={table.concluded: value},
        stored_cases=as_stored([_for_value(case, expect, text) for case, expect in cases]),
        ladder=about.id,
    )


def _for_value(case: Case, expect: str, text: str) -> Case:
    return replace(case, expect="fires" if expect == text else "silent")


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.casefold()).strip("-") or "value"
