"""The whole comparison of two sides: facts, rules, words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import unified_diff

from msgspec import Struct
from msgspec.structs import replace

from advisor.errors import UserError
from advisor.knowledge.types import Knowledge
from advisor.report.assembly import document
from advisor.report.pages import render_markdown
from advisor.rules.language.model import RuleSet
from advisor.scenario.settings import request_from
from advisor.workbench.bulk import Evaluation, evaluate_all
from advisor.workbench.diff import Change, Difference, Edit, change_between, compare
from advisor.workbench.fact_store import FactStore, Given
from advisor.workbench.fact_store_files import Progress, facts_of, sampled_facts, store_of
from advisor.workbench.layout import request_line
from advisor.workbench.outcomes import Standing, standings
from advisor.workbench.sides import Side

_TABLES = {
    "gpus": "card",
    "models": "model",
    "formats": "format",
    "kv_types": "cache type",
    "frameworks": "framework",
}
_NOT_ANSWERED = Standing("", (), (), ())


class CaseChange(Struct, frozen=True):
    """A request of a case of an edited rule, answered otherwise."""

    rule: str
    change: Change
    answered_before: bool
    """Whether the base can answer it at all."""


class Beside(Struct, frozen=True):
    """What the sample does not show."""

    entries: Sequence[Edit]
    """Entries of knowledge that differ, as ``card GeForce RTX 4090``."""
    fires: Mapping[str, int]
    """Edited rule -> scenarios of the sample in which it fires now."""
    cases: Sequence[CaseChange]
    asked: int
    """Requests of cases that were tried."""


def beside_the_sample(old: Side, new: Side, difference: Difference, after: Evaluation) -> Beside:
    """Look at what a sample may miss.

    Args:
        old: The base.
        new: The present files.
        difference: The outcome on the sample.
        after: The present rules on the sample.
    """
    edited = [e.rule for e in difference.edits if e.what in {"added", "edited"}]
    fires = {rule: after.scenarios(rule).bit_count() for rule in edited if rule in after.fired}
    asked = _requests(new, edited)
    return Beside(
        entries_between(old.advisor.knowledge, new.advisor.knowledge),
        fires,
        _case_changes(old, new, asked),
        len(asked),
    )


def entries_between(old: Knowledge, new: Knowledge) -> Sequence[Edit]:
    """List the entries of knowledge that differ."""
    found = []
    for table, kind in _TABLES.items():
        before, after = getattr(old, table), getattr(new, table)
        for name in dict.fromkeys([*before, *after]):
            if name not in before or name not in after:
                what = "removed" if name in before else "added"
                found.append(Edit(f"{kind} {name}", what))
            elif before[name] != after[name]:
                found.append(Edit(f"{kind} {name}", "edited", _fields(before[name], after[name])))
    return found


def _fields(before: Struct, after: Struct) -> tuple[str, ...]:
    names = before.__struct_fields__
    return tuple(name for name in names if getattr(before, name) != getattr(after, name))


def _requests(new: Side, edited: Sequence[str]) -> Mapping[str, tuple[str, Given]]:
    """Request in words -> the rule whose case asks it, and the request."""
    found: dict[str, tuple[str, Given]] = {}
    for rule_id in edited:
        for case in new.advisor.ruleset.by_id[rule_id].cases:
            if case.expect == "fires":
                found.setdefault(request_line(case.given), (rule_id, dict(case.given)))
    return found


def _case_changes(
    old: Side, new: Side, asked: Mapping[str, tuple[str, Given]]
) -> Sequence[CaseChange]:
    try:
        before, after = (_answers(side, [g for _, g in asked.values()]) for side in (old, new))
    except UserError:
        return ()
    found = []
    for line, standing in after.items():
        rule, given = asked[line]
        known = before.get(line)
        change = change_between(given, known or _NOT_ANSWERED, standing)
        if change:
            found.append(CaseChange(rule, change, known is not None))
    return found


def _answers(side: Side, requests: Sequence[Given]) -> Mapping[str, Standing]:
    if not requests:
        return {}
    store = store_of(requests, side.advisor.knowledge)
    whole = replace(side.advisor.ruleset, disabled=())
    found = standings(evaluate_all(store, whole), range(len(store)))
    return {request_line(store.requests[number]): standing for number, standing in found.items()}


MOST_READ = 200
"""Reports that are written out on both sides."""
_MOST_LINES = 12


class Reworded(Struct, frozen=True):
    """A report whose words differ."""

    request: Given
    lines: Sequence[str]
    """The first lines that differ, as a diff."""


class Prose(Struct, frozen=True):
    """What changed templates do."""

    templates: Sequence[str]
    """Files that differ."""
    concerned: int
    """Reports of the sample that use one of them."""
    read: int
    """Of those, how many were written out."""
    reworded: Sequence[Reworded]


def changed_templates(old: Side, new: Side) -> Sequence[str]:
    """Name the templates that differ."""
    names = sorted(old.templates.keys() | new.templates.keys())
    return [name for name in names if old.templates.get(name) != new.templates.get(name)]


def compare_prose(
    old: Side, new: Side, requests: Sequence[Given], reports: Mapping[int, Standing]
) -> Prose:
    """Write reports out on both sides and compare the words.

    Args:
        old: The base.
        new: What is there now.
        requests: The sample.
        reports: What the new side says in each scenario.
    """
    names = changed_templates(old, new)
    numbers = [n for n, report in reports.items() if _uses(names, report, new.advisor.ruleset)]
    step = max(1, len(numbers) // MOST_READ)
    read = numbers[::step][:MOST_READ]
    reworded = []
    for number in read:
        before, after = _written(old, requests[number]), _written(new, requests[number])
        if before != after:
            lines = [*unified_diff(before, after, "before", "after", n=0, lineterm="")][2:]
            wanted = [line for line in lines if not line.startswith("@@")]
            reworded.append(Reworded(requests[number], wanted[:_MOST_LINES]))
    return Prose(names, len(numbers), len(read), reworded)


def _uses(names: Sequence[str], report: Standing, ruleset: RuleSet) -> bool:
    """Whether a report uses one of these files; a skeleton or macro is used by all."""
    rules = [said.rule for said in report.recommended] + list(report.notes)
    own = {ruleset.by_id[rule].text for rule in rules}
    folders = {"actions", "notes"}
    return any(n.split("/")[0] not in folders or n.split("/")[-1] in own for n in names)


def _written(side: Side, given: Given) -> list[str]:
    advice = side.advisor.advise(request_from(given))
    same = replace(advice.provenance, rules_sha256="", knowledge_sha256="", templates_sha256="")
    doc = document(replace(advice, provenance=same), templates=side.folders.templates)
    return render_markdown(doc, length="full", templates=side.folders.templates).splitlines()


def compare_sides(
    old: Side,
    new: Side,
    sample: int,
    *,
    workers: int | None = None,
    progress: Progress | None = None,
) -> tuple[Difference, Prose | None, Beside]:
    """Compare what both sides say over a sample of the present catalogue.

    Facts are worked out for each knowledge once; where only rules or templates differ, both sides
    share them.

    Raises:
        UserError: The rules of one side cannot be run.
    """
    store = sampled_facts(sample, replace(new.origin, workers=workers), progress=progress)
    after = evaluate_all(store, new.advisor.ruleset)
    own = store
    if old.advisor.knowledge.sha256 != new.advisor.knowledge.sha256:
        own = facts_of(store.requests, replace(old.origin, workers=workers), progress=progress)
    before = _before(old, own, after)
    difference = compare(before, after)
    prose = None
    if changed_templates(old, new):
        same = _same_words_expected(difference, store, before)
        prose = compare_prose(old, new, store.requests, standings(after, same))
    return difference, prose, beside_the_sample(old, new, difference, after)


def _before(old: Side, store: FactStore, after: Evaluation) -> Evaluation:
    try:
        return evaluate_all(store, old.advisor.ruleset, after)
    except UserError as error:
        raise type(error)(f"in the base: {error.message}", source=error.source) from None


def _same_words_expected(difference: Difference, store: FactStore, before: Evaluation) -> list[int]:
    """The scenarios whose reports differ in words at most."""
    if before.store is not store:
        return []
    changed = {id(change.request) for change in difference.changes}
    return [n for n, given in enumerate(store.requests) if id(given) not in changed]
