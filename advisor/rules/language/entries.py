"""Entries of a rule file -> rules, as far as one entry can be read by itself."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Literal, cast, get_args

from msgspec.structs import replace

from advisor.errors import Source
from advisor.knowledge.yaml_fields import Fields
from advisor.rules.conditions import When
from advisor.rules.language.conditions import read_when
from advisor.rules.language.context import Reading
from advisor.rules.language.effects import EFFECTS, read_cases, read_effect
from advisor.rules.language.ladders import read_ladder
from advisor.rules.language.model import Draft, Rule

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
        cases=tuple(case for case, _ in read_cases(fields, reading)),
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
