"""What differs between two sides, one thing at a time, and sides in which one thing is exchanged.

A cause of a change is established by running again: with it left out the report is as without
the change, or with it alone the report of the base changes. What merely differs in the same
report is none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import unified_diff
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from msgspec import Struct, field
from msgspec.structs import replace

from advisor.advice.document import Advice
from advisor.errors import UserError
from advisor.knowledge.layers import stack
from advisor.knowledge.types import Knowledge
from advisor.report import render_text
from advisor.report.assembly import document
from advisor.report.figures import words_of
from advisor.report.pages import render_markdown
from advisor.report.word_file import FILE as WORDS
from advisor.rules.engine import make_engine
from advisor.rules.language.model import Rule, RuleSet
from advisor.scenario.settings import request_from
from advisor.workbench.cover import Standing
from advisor.workbench.diff import Edit
from advisor.workbench.fact_store import Given
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

    ``scratch`` is an empty folder, for texts.
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
    templates = (*stack(base.folders.templates), scratch)
    return replace(base, folders=replace(base.folders, templates=templates))


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


MOST_READ = 200
"""Reports that are written out on both sides."""
_MOST_FIGURES = 30
"""The same where it is not texts that differ, so that any report may."""
_MOST_TRIED = 6
"""Reports that are written again with one change left out."""
_MOST_LINES = 12
_WIDE = 1_000
"""Characters of a line of text, so that a word does not move others."""
Pages = tuple[list[str], list[str]]


class Reworded(Struct, frozen=True):
    """A report whose words differ."""

    request: Given
    lines: Sequence[str]
    """The first lines that differ, as a diff."""
    causes: Sequence[str] = ()
    """Through what, as far as it was tried."""


class Prose(Struct, frozen=True):
    """What changed texts, words, rules and entries do to the words of reports."""

    templates: Sequence[str]
    """Files that differ."""
    concerned: int
    """Reports of the sample whose words may differ."""
    read: int
    """Of those, how many were written out."""
    reworded: Sequence[Reworded]

    @property
    def causes(self) -> Mapping[str, int]:
        """Cause -> reports in which it was established."""
        found = Counter(cause for item in self.reworded for cause in item.causes)
        return dict(found.most_common())

    @property
    def tried(self) -> int:
        """Of the reports that read otherwise, in how many causes were looked for."""
        return sum(bool(item.causes) for item in self.reworded)


def compare_prose(
    old: Side,
    new: Side,
    requests: Sequence[Given],
    reports: Mapping[int, Standing],
    causes: Sequence[Cause],
) -> Prose | None:
    """Write reports out on both sides and compare the words; None where they cannot differ.

    ``reports`` holds what the new side says in each scenario that is decided the same.
    """
    anywhere = [one for one in causes if one.what in {"word", "knowledge"} or one.reworded]
    names = changed_templates(old, new)
    if not names and not anywhere:
        return None
    rules = new.advisor.ruleset
    numbers = [n for n, report in reports.items() if anywhere or _uses(names, report, rules)]
    most = MOST_READ if names else _MOST_FIGURES
    read = numbers[:: max(1, len(numbers) // most)][:most]
    with TemporaryDirectory(prefix="advisor-words-") as scratch:
        trial = _Trial(old, new, causes, Path(scratch))
        found = [one for number in read for one in trial.reworded(requests[number])]
    return Prose(names, len(numbers), len(read), found)


def _uses(names: Sequence[str], report: Standing, ruleset: RuleSet) -> bool:
    """Whether a report uses one of these files; a skeleton or macro is used by all."""
    rules = [said.rule for said in report.recommended] + list(report.notes)
    own = {ruleset.by_id[rule].text for rule in rules}
    folders = {"actions", "notes"}
    return any(n.split("/")[0] not in folders or n.split("/")[-1] in own for n in names)


class _Trial(Struct):
    """Two sides, and what differs between them."""

    old: Side
    new: Side
    causes: Sequence[Cause]
    scratch: Path
    made: dict[str, Side | None] = field(default_factory=dict)
    tried: int = 0

    def reworded(self, given: Given) -> Iterator[Reworded]:
        """Compare the words of one report."""
        before, after = written(self.old, given), written(self.new, given)
        if before != after:
            pages = next(both for both in zip(before, after, strict=True) if both[0] != both[1])
            lines = [*unified_diff(*pages, "before", "after", n=0, lineterm="")][2:]
            wanted = [line for line in lines if not line.startswith("@@")]
            yield Reworded(given, wanted[:_MOST_LINES], self._through(given, before, after))

    def _through(self, given: Given, before: Pages, after: Pages) -> Sequence[str]:
        if len(self.causes) == 1:
            return [self.causes[0].name]
        self.tried += 1
        if self.tried > _MOST_TRIED:
            return ()
        left_out = self._each(self.new, self.old, given, after)
        return left_out or self._each(self.old, self.new, given, before) or [TOGETHER]

    def _each(self, base: Side, other: Side, given: Given, said: Pages) -> Sequence[str]:
        """Name the causes without which, or with which, these words would be others."""
        found = []
        for cause in self.causes:
            side = self._mixed(base, other, cause)
            pages = _written_or_none(side, given) if side else None
            if pages is not None and pages != said:
                found.append(cause.name)
        return found

    def _mixed(self, base: Side, other: Side, cause: Cause) -> Side | None:
        """Exchange one thing, once for all reports."""
        key = f"{cause.name} {'old' if base is self.old else 'new'}"
        if key not in self.made:
            folder = self.scratch / str(len(self.made))
            self.made[key] = mixed(base, other, cause, folder)
        return self.made[key]


def _written_or_none(side: Side, given: Given) -> Pages | None:
    try:
        return written(side, given)
    except (UserError, KeyError):
        return None


def written(side: Side, given: Given) -> Pages:
    """Write a report, as a page and as text, without what it says of where it comes from."""
    advice = side.advisor.advise(request_from(given))
    templates = side.folders.templates
    doc = anonymous(document(advice, templates=templates))
    page = render_markdown(doc, length="full", templates=templates)
    text = render_text(doc, width=_WIDE, length="full", templates=templates)
    return page.splitlines(), text.splitlines()


def anonymous(doc: Advice) -> Advice:
    """Take out whose the rules, texts and entries are that a report rests on."""
    made = replace(doc.provenance, rules_sha256="", knowledge_sha256="", templates_sha256="")
    return replace(
        doc,
        provenance=replace(made, yours=(), switched_off=()),
        recommendations=[replace(one, yours=None) for one in doc.recommendations],
        notes=[replace(one, yours=None) for one in doc.notes],
        not_recommended=[replace(one, yours=None) for one in doc.not_recommended],
    )
