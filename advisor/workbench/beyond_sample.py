"""What an edit changes beyond the sample: entries of knowledge, and requests of its own cases.

A sample of the catalogue may not meet a new rule at all: one about a card of the user's is met only
where somebody asks for that card, and the other side has no answer there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from advisor.errors import UserError
from advisor.knowledge.types import Knowledge
from advisor.workbench.bulk import Evaluation, evaluate_all
from advisor.workbench.diff import Change, Difference, Edit, change_between
from advisor.workbench.fact_store_files import store_of
from advisor.workbench.layout import request_line
from advisor.workbench.outcomes import Standing, standings
from advisor.workbench.sample import Given
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
