"""The whole comparison of two sides: facts, rules, words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from advisor.errors import UserError
from advisor.knowledge.types import Knowledge
from advisor.workbench.attribution import Tried, attributed
from advisor.workbench.bulk import Evaluation, evaluate_all
from advisor.workbench.causes import causes_between, entry_causes
from advisor.workbench.diff import (
    Change,
    Difference,
    Edit,
    change_between,
    compare,
    identity,
)
from advisor.workbench.fact_store import FactStore, Given
from advisor.workbench.fact_store_files import Progress, facts_of, sampled_facts, store_of
from advisor.workbench.layout import request_line
from advisor.workbench.outcomes import Standing, standings
from advisor.workbench.rewording import Prose, compare_prose
from advisor.workbench.sides import Side

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
    for cause in entry_causes(old, new):
        name = next(iter(cause.ids), None)
        before, after = (getattr(side, cause.table) for side in (old, new))
        if name is not None and (name not in before or name not in after):
            found.append(Edit(cause.name, "removed" if name in before else "added"))
        else:
            parts = _fields(before[name], after[name]) if name is not None else ()
            found.append(Edit(cause.name, "edited", parts))
    return found


def _fields(before: object, after: object) -> tuple[str, ...]:
    names = before.__struct_fields__ if isinstance(before, Struct) else ()
    changed = (name for name in names if getattr(before, name) != getattr(after, name))
    return tuple(name for name in changed if name != "sources")


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
    found = compare(before, after)
    causes = causes_between(old, new, found.edits)
    sides = Tried(before, old.advisor.knowledge), Tried(after, new.advisor.knowledge)
    difference = attributed(found, *sides, causes)
    same = _same_words_expected(difference, store, before)
    prose = compare_prose(old, new, store.requests, standings(after, same), causes)
    return difference, prose, beside_the_sample(old, new, difference, after)


def _before(old: Side, store: FactStore, after: Evaluation) -> Evaluation:
    try:
        return evaluate_all(store, old.advisor.ruleset, after)
    except UserError as error:
        raise type(error)(f"in the base: {error.message}", source=error.source) from None


def _same_words_expected(difference: Difference, store: FactStore, before: Evaluation) -> list[int]:
    """The scenarios whose reports differ in words at most."""
    changed = {identity(change.request) for change in difference.changes}
    asked = {identity(given) for given in before.store.requests} - changed
    return [n for n, given in enumerate(store.requests) if identity(given) in asked]
