"""What differs between two sides, one thing at a time, and sides in which one thing is exchanged.

A cause of a change is established by running again: with it left out the report is as without
the change, or with it alone the report of the base changes. What merely differs in the same
report is none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from advisor.knowledge.layers import stack
from advisor.knowledge.types import Knowledge
from advisor.report.figures import words_of
from advisor.report.word_file import FILE as WORDS
from advisor.rules.engine import make_engine
from advisor.rules.language.model import Rule, RuleSet
from advisor.workbench.diff import Edit
from advisor.workbench.sides import Side

_TABLES = {
    "gpus": "card",
    "models": "model",
    "formats": "format",
    "kv_types": "cache type",
    "frameworks": "framework",
    "ggml_types": "tensor type",
    "policy": "policy",
}
_WHOLE = {"calibration": "speed parameters", "second_cards": "list of second cards"}
"""Fields of the knowledge that count as one entry."""
_GROUPS = ("cards", "families", "kin", "sized")
"""Parts of the index that are worked out from the records where they are missing."""
_WORDED = frozenset({"template", "veto text", "note text"})
"""Parts of a rule that reports say."""
TOGETHER = "together"
"""What names changes that no single cause accounts for."""


class Cause(Struct, frozen=True):
    """One thing that differs between two sides."""

    what: Literal["rule", "knowledge", "text", "word"]
    name: str
    """As messages name it: ``rule fit-is-tight``, ``card GeForce RTX 4090``, ``text notes/x``."""
    ids: frozenset[str] = frozenset()
    """Of a rule: the ids that stand for it on either side; else the key of the entry."""
    table: str = ""
    """Of an entry of knowledge: the field that holds it."""
    worded: bool = False
    """Whether it can change nothing but words."""

    @property
    def reworded(self) -> bool:
        """Whether it is a rule that says something else."""
        return self.what == "rule" and self.worded


def causes_between(old: Side, new: Side, edits: Sequence[Edit]) -> Sequence[Cause]:
    """List everything that differs and can change a report; provenance is none of it."""
    return [
        *_rules(old.advisor.ruleset, new.advisor.ruleset, edits),
        *entry_causes(old.advisor.knowledge, new.advisor.knowledge),
        *_texts(old, new),
    ]


def _rules(old: RuleSet, new: RuleSet, edits: Sequence[Edit]) -> Iterator[Cause]:
    """Take the rows of a ladder together, and a rule with the one whose place it takes."""
    found: dict[str, set[str]] = {}
    worded: dict[str, bool] = {}
    known = {edit.rule for edit in edits if edit.what != "words only" or _WORDED & {*edit.parts}}
    replaced = {name: rule for rule in new.rules for name in [_replaces(rule)] if name}
    for edit in edits:
        rule = new.by_id.get(edit.rule) or old.by_id[edit.rule]
        heir = (
            replaced.get(rule.id) or replaced.get(rule.ladder or "")
            if edit.what == "removed"
            else None
        )
        name = _entry(heir or rule)
        if edit.rule in known:
            found.setdefault(name, set()).add(edit.rule)
            worded[name] = worded.get(name, True) and edit.what == "words only"
    for name, ids in found.items():
        yield Cause("rule", f"rule {name}", frozenset(ids), worded=worded[name])


def _replaces(rule: Rule) -> str:
    return rule.overlay.replaces if rule.overlay else ""


def _entry(rule: Rule) -> str:
    return rule.ladder or rule.id


def entry_causes(old: Knowledge, new: Knowledge) -> Iterator[Cause]:
    """List the entries of knowledge that differ in more than their sources."""
    for table, kind in _TABLES.items():
        before, after = getattr(old, table), getattr(new, table)
        for name in dict.fromkeys([*before, *after]):
            if bare(before.get(name)) != bare(after.get(name)):
                yield Cause("knowledge", f"{kind} {name}", frozenset({name}), table)
    for table, said in _WHOLE.items():
        if getattr(old, table) != getattr(new, table):
            yield Cause("knowledge", said, table=table)


def bare(record: object) -> object:
    """Give a record without the sources of its figures."""
    if isinstance(record, Struct) and "sources" in record.__struct_fields__:
        return replace(record, sources={})
    return record


def _texts(old: Side, new: Side) -> Iterator[Cause]:
    for name in changed_templates(old, new):
        if not name.endswith(WORDS):
            yield Cause("text", f"text {name}", frozenset({name}), worded=True)
    before, after = (words_of(side.folders.templates) for side in (old, new))
    for name in dict.fromkeys([*before, *after]):
        if before.get(name) != after.get(name):
            yield Cause("word", f"word {name}", frozenset({name}), worded=True)


def changed_templates(old: Side, new: Side) -> Sequence[str]:
    """Name the templates that differ."""
    names = sorted(old.templates.keys() | new.templates.keys())
    return [name for name in names if old.templates.get(name) != new.templates.get(name)]


def mixed(base: Side, other: Side, cause: Cause, scratch: Path) -> Side | None:
    """Give a side with one thing as it is on the other; None where that cannot be made.

    Args:
        base: The side.
        other: Where the one thing is taken from.
        cause: Which it is.
        scratch: An empty folder, for texts.
    """
    made, theirs = base.advisor, other.advisor
    if cause.what == "rule":
        rules = mixed_rules(made.ruleset, theirs.ruleset, cause.ids)
        engine = make_engine(rules, prefer="reference")
        return replace(base, advisor=replace(made, ruleset=rules, engine=engine))
    if cause.what == "knowledge":
        known = mixed_knowledge(made.knowledge, theirs.knowledge, cause)
        return replace(base, advisor=replace(made, knowledge=known))
    (name,) = cause.ids
    text = other.templates.get(name, b"").decode()
    if cause.what == "word":
        text = f"{name} = {words_of(other.folders.templates).get(name, '')}\n"
        name = WORDS
    if not text.strip():
        return None
    (scratch / name).parent.mkdir(parents=True, exist_ok=True)
    (scratch / name).write_text(text, encoding="utf-8")
    own = (*stack(base.folders.templates), scratch)
    return replace(base, folders=replace(base.folders, templates=own))


def mixed_rules(base: RuleSet, other: RuleSet, ids: Iterable[str]) -> RuleSet:
    """Give rules with some of them as the other set has them, where they stand there."""
    wanted = set(ids)
    kept = [rule for rule in base.rules if rule.id not in wanted]
    taken = [rule for rule in other.rules if rule.id in wanted]
    there = [rule.id for rule in other.rules]
    last = max((there.index(rule.id) for rule in taken), default=-1)
    following = set(there[last + 1 :])
    at = next((n for n, rule in enumerate(kept) if rule.id in following), len(kept))
    return RuleSet((*kept[:at], *taken, *kept[at:]), f"{base.sha256} {sorted(wanted)}")


def mixed_knowledge(base: Knowledge, other: Knowledge, cause: Cause) -> Knowledge:
    """Give knowledge with one entry as the other has it."""
    theirs = getattr(other, cause.table)
    for name in cause.ids:
        table = dict(getattr(base, cause.table))
        table.pop(name, None)
        theirs = {**table, **({name: theirs[name]} if name in theirs else {})}
    index = {key: value for key, value in base.index.items() if key not in _GROUPS}
    sha256 = f"{base.sha256} with {cause.name} of {other.sha256}"
    return replace(base, **{cause.table: theirs}, index=index, sha256=sha256)
