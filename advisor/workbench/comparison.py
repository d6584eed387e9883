"""The whole comparison of two sides: facts, rules, words; and through what each report changed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from advisor.errors import AdvisorError, UserError
from advisor.knowledge.types import Knowledge
from advisor.rules.language.model import RuleSet
from advisor.workbench.bulk import Evaluation, evaluate_all
from advisor.workbench.causes import (
    TOGETHER,
    Cause,
    Prose,
    causes_between,
    compare_prose,
    entry_causes,
    mixed_knowledge,
    mixed_rules,
)
from advisor.workbench.cover import Standing, standings
from advisor.workbench.diff import (
    Change,
    Difference,
    Edit,
    Group,
    change_between,
    compare,
    identity,
)
from advisor.workbench.fact_store import FactStore, Given
from advisor.workbench.fact_store_files import Progress, facts_of, sampled_facts, store_of
from advisor.workbench.scenario_file import request_line
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
    """Look at what a sample may miss."""
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


_MOST_RULES = 1_500
"""Changed reports that are decided again for each rule, from facts that are there."""
_MOST_ENTRIES = 40
"""The same where an entry of knowledge differs too: facts are worked out again."""
_MOST_CAUSES = 60

Said = Mapping[str, Standing]
"""What is said to each request, by its identity."""


class Tried(Struct, frozen=True):
    """One side as it was tried."""

    evaluation: Evaluation
    knowledge: Knowledge | None = None
    """What its facts come from; needed where knowledge differs."""

    def said(self, requests: Sequence[Given], rules: RuleSet | None = None) -> Said:
        """Say what it answers, with its own rules or others."""
        tried = self.evaluation
        if rules is not None:
            tried = evaluate_all(tried.store, rules, tried)
        places = {identity(given): n for n, given in enumerate(tried.store.requests)}
        wanted = [places[key] for key in map(identity, requests) if key in places]
        found = standings(tried, wanted)
        return {identity(tried.store.requests[n]): report for n, report in found.items()}

    def said_knowing(self, requests: Sequence[Given], knowledge: Knowledge) -> Said:
        """Say what its rules answer with other knowledge."""
        store = store_of(requests, knowledge)
        found = standings(evaluate_all(store, self.evaluation.ruleset), range(len(store)))
        return {identity(store.requests[n]): report for n, report in found.items()}

    def with_one_of(self, other: Tried, cause: Cause, requests: Sequence[Given]) -> Said:
        """Say what it answers with one thing as it is on the other side; nothing if that fails."""
        try:
            if cause.what == "rule":
                own, theirs = self.evaluation.ruleset, other.evaluation.ruleset
                return self.said(requests, mixed_rules(own, theirs, cause.ids))
            if self.knowledge is not None and other.knowledge is not None:
                known = mixed_knowledge(self.knowledge, other.knowledge, cause)
                return self.said_knowing(requests, known)
        except (AdvisorError, KeyError):  # rules that contradict each other, a name that is gone
            return {}
        return {}


def attributed(
    difference: Difference,
    old: Tried,
    new: Tried,
    causes: Iterable[Cause],
) -> Difference:
    """Group the changed reports by what changed them.

    A change is left out first; where no single one makes a difference, each is tried alone on
    the base. What neither shows is grouped as ``together``.
    """
    wanted = [c for c in causes if c.what == "knowledge" or (c.what == "rule" and not c.worded)]
    if not difference.changes or not wanted:
        return difference
    if len(wanted) == 1:
        return replace(difference, groups=[Group(wanted[0].name, difference.changes)])
    most = _MOST_ENTRIES if any(c.what == "knowledge" for c in wanted) else _MOST_RULES
    changes = difference.changes[:: max(1, -(-len(difference.changes) // most))]
    found: dict[str, list[Change]] = defaultdict(list)
    _try(changes, new, lambda c, asked: new.with_one_of(old, c, asked), wanted, found)
    left = _without(changes, found)
    _try(left, old, lambda c, asked: old.with_one_of(new, c, asked), wanted, found)
    if rest := _without(left, found):
        found[TOGETHER] = rest
    groups = [Group(name, own) for name, own in sorted(found.items())]
    return replace(difference, groups=groups, tried=len(changes))


def _without(changes: Sequence[Change], found: Mapping[str, Sequence[Change]]) -> list[Change]:
    done = {id(change) for own in found.values() for change in own}
    return [change for change in changes if id(change) not in done]


def _try(
    changes: Sequence[Change],
    side: Tried,
    again: Callable[[Cause, Sequence[Given]], Said],
    causes: Sequence[Cause],
    found: dict[str, list[Change]],
) -> None:
    """Note for each cause the changes in which the side says something else with it exchanged."""
    asked = [change.request for change in changes]
    said = side.said(asked)
    for cause in causes[:_MOST_CAUSES] if asked else ():
        other = again(cause, asked)
        for change in changes:
            key = identity(change.request)
            if key in other and key in said:
                seen = change_between(change.request, said[key], other[key])
                if seen and {*seen.kinds} & {*change.kinds}:
                    found[cause.name].append(change)
