"""Which reports an edit changes: verdict, first recommendation, set, order, notes, bars."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct

from advisor.rules import same_test
from advisor.rules.language.model import Rule
from advisor.workbench.bulk import Evaluation
from advisor.workbench.columns import Mask, all_rows, gathered, row_numbers
from advisor.workbench.cover import Standing, standings
from advisor.workbench.fact_store import Given

CHANGES = ("verdict", "first", "set", "order", "notes", "barred")
"""What can change in a report, the gravest first."""
FAIL_ON: Mapping[str, tuple[str, ...]] = {
    "verdict": ("verdict",),
    "first": ("verdict", "first"),
    "any": CHANGES,
}


class Edit(Struct, frozen=True):
    """A rule that is not the same on both sides."""

    rule: str
    what: str
    """``added``, ``removed``, ``edited`` or ``words only`` (why, source, cases ...)."""
    parts: tuple[str, ...] = ()
    """For an edited rule: what differs (conditions, score ...)."""


class Change(Struct, frozen=True):
    """A report that differs."""

    request: Given
    kinds: tuple[str, ...]
    before: Standing
    after: Standing


class Group(Struct, frozen=True):
    """The changed reports that one thing has a part in."""

    cause: str
    """``rule fit-is-tight``, ``card GeForce RTX 4090``, ``policy ...``."""
    changes: Sequence[Change]

    @property
    def counts(self) -> Mapping[str, int]:
        """Reports by what changed in them."""
        return counted(self.changes)


class Difference(Struct, frozen=True):
    """Two sides compared over one sample."""

    compared: int
    refused: int
    """Requests of the sample that the base cannot answer (a card it does not know)."""
    edits: Sequence[Edit]
    changes: Sequence[Change]
    groups: Sequence[Group]
    rescored: int
    """Reports in which nothing but scores changed."""
    knowledge_changed: bool = False
    tried: int | None = None
    """Of the changed reports, so many were run again to find the causes; None: causes are sure."""

    @property
    def counts(self) -> Mapping[str, int]:
        """Reports by what changed in them."""
        return counted(self.changes)

    def fails(self, limit: str) -> bool:
        """Whether something changed that ``--fail-on`` names."""
        return any(self.counts.get(kind) for kind in FAIL_ON[limit])


def counted(changes: Iterable[Change]) -> Mapping[str, int]:
    """Count reports by what changed."""
    found = Counter(kind for change in changes for kind in change.kinds)
    return {kind: found[kind] for kind in CHANGES if found[kind]}


def edits_between(old: Mapping[str, Rule], new: Mapping[str, Rule]) -> Sequence[Edit]:
    """List the rules that differ, by id."""
    found = []
    for rule_id in sorted(old.keys() | new.keys()):
        before, after = old.get(rule_id), new.get(rule_id)
        if before is None or after is None:
            found.append(Edit(rule_id, "removed" if after is None else "added"))
            continue
        parts = tuple(name for name, read in _PARTS.items() if read(before) != read(after))
        if parts:
            effective = any(name in _EFFECTIVE for name in parts)
            found.append(Edit(rule_id, "edited" if effective else "words only", parts))
    return found


def _score_form(rule: Rule) -> object:
    if rule.score is None:
        return None
    add = [(t.fact, t.points, t.per_value, t.cap) for t in rule.score.add]
    when = [(tuple(map(same_test, t.tests)), t.points) for t in rule.score.when]
    return (rule.score.base, add, when)


_PARTS: Mapping[str, Callable[[Rule], object]] = {
    "conditions": lambda r: [list(map(same_test, branch)) for branch in r.branches],
    "conclusion": lambda r: dict(r.conclude),
    "action": lambda r: (r.kind, r.action),
    "score": _score_form,
    "supersedes": lambda r: r.supersedes,
    "template": lambda r: r.text,
    "veto text": lambda r: r.veto,
    "note text": lambda r: r.note,
    "why": lambda r: r.why,
    "source": lambda r: r.reference,
    "cases": lambda r: [
        (c.name, dict(c.given), c.expect, c.change, c.rank, c.says) for c in r.cases
    ],
    "status": lambda r: (r.status, r.since, r.replaced_by),
}
_EFFECTIVE = ("conditions", "conclusion", "action", "score", "supersedes")


def compare(old: Evaluation, new: Evaluation) -> Difference:
    """Compare two rule sets, each tried on its own store of the same requests."""
    edits = edits_between(old.ruleset.by_id, new.ruleset.by_id)
    if old.store is new.store:
        return _compared(old, new, edits)
    return _compared_stores(old, new, edits)


def _compared(old: Evaluation, new: Evaluation, edits: Sequence[Edit]) -> Difference:
    """Compare on one store: only scenarios in which some rule fires or scores otherwise."""
    touched = touched_by_rule(old, new, edits)
    everywhere = 0
    for mask in touched.values():
        everywhere |= mask
    store = new.store
    numbers = list(row_numbers(everywhere, len(store)))
    before, after = standings(old, numbers), standings(new, numbers)
    found: dict[int, Change] = {}
    rescored = 0
    for number in numbers:
        change = change_between(store.requests[number], before[number], after[number])
        if change:
            found[number] = change
        elif before[number] != after[number]:
            rescored += 1
    return Difference(len(store), 0, edits, list(found.values()), (), rescored)


def touched_by_rule(old: Evaluation, new: Evaluation, edits: Sequence[Edit]) -> Mapping[str, Mask]:
    """Give the scenarios in which each rule fires or counts otherwise, on one store.

    The empty name stands for what no single rule accounts for.
    """
    store = new.store
    edited = {edit.rule for edit in edits if edit.what != "words only"}
    found: dict[str, Mask] = {}
    for rule_id in {**old.fired, **new.fired}:
        if old.fired.get(rule_id) is new.fired.get(rule_id):
            continue
        before = old.scenarios(rule_id) if rule_id in old.fired else 0
        after = new.scenarios(rule_id) if rule_id in new.fired else 0
        mask = before | after if rule_id in edited else _moved(old, new, rule_id)
        if mask:
            found[rule_id] = mask
    concluded = _concluded_otherwise(old, new)
    if concluded:
        found[""] = concluded
    if [r.id for r in old.ruleset.notes] != [r.id for r in new.ruleset.notes]:
        found[""] = all_rows(len(store))
    return found


def _moved(old: Evaluation, new: Evaluation, rule_id: str) -> Mask:
    """Where a rule that was not edited fires otherwise."""
    before, after = old.fired[rule_id], new.fired[rule_id]
    moved = before.mask ^ after.mask
    return gathered(moved, new.store.starts) if moved and after.per_option else moved


def _concluded_otherwise(old: Evaluation, new: Evaluation) -> Mask:
    """Where a concluded fact differs: scores may count it."""
    found = 0
    if old.concluded is new.concluded:
        return found
    for fact in {**old.concluded, **new.concluded}:
        before, after = old.concluded.get(fact, {}), new.concluded.get(fact, {})
        for value in {**before, **after}:
            found |= before.get(value, 0) ^ after.get(value, 0)
    return found


def _compared_stores(old: Evaluation, new: Evaluation, edits: Sequence[Edit]) -> Difference:
    """Compare where the facts differ too: every scenario that both sides can answer."""
    places = {identity(given): n for n, given in enumerate(old.store.requests)}
    pairs = [
        (places[key], n)
        for n, given in enumerate(new.store.requests)
        if (key := identity(given)) in places
    ]
    before = standings(old, [a for a, _ in pairs])
    after = standings(new, [b for _, b in pairs])
    changes, rescored = [], 0
    for a, b in pairs:
        change = change_between(new.store.requests[b], before[a], after[b])
        if change:
            changes.append(change)
        elif before[a] != after[b]:
            rescored += 1
    refused = len(new.store) - len(pairs)
    return Difference(len(pairs), refused, edits, changes, (), rescored, knowledge_changed=True)


def identity(given: Given) -> str:
    """Name a request, the same in every store."""
    return json.dumps(dict(given), sort_keys=True)


def change_between(request: Given, before: Standing, after: Standing) -> Change | None:
    """Compare what two sides say to one request; None where they say the same."""
    kinds = tuple(kind for kind in CHANGES if _DIFFERS[kind](before, after))
    return Change(request, kinds, before, after) if kinds else None


def _order_differs(before: Standing, after: Standing) -> bool:
    old, new = before.options, after.options
    both = set(old) & set(new)
    return [i for i in old if i in both] != [i for i in new if i in both]


_DIFFERS: Mapping[str, Callable[[Standing, Standing], bool]] = {
    "verdict": lambda b, a: b.verdict != a.verdict,
    "first": lambda b, a: b.options[:1] != a.options[:1],
    "set": lambda b, a: set(b.options) != set(a.options),
    "order": _order_differs,
    "notes": lambda b, a: b.notes != a.notes,
    "barred": lambda b, a: {o for _, o in b.barred} != {o for _, o in a.barred},
}
