"""Through what each changed report changed, established by running again."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from advisor.errors import AdvisorError
from advisor.knowledge.types import Knowledge
from advisor.rules.language.model import RuleSet
from advisor.workbench.bulk import Evaluation, evaluate_all
from advisor.workbench.causes import TOGETHER, Cause, mixed_knowledge, mixed_rules
from advisor.workbench.diff import Change, Difference, Group, change_between, identity
from advisor.workbench.fact_store import Given
from advisor.workbench.fact_store_files import store_of
from advisor.workbench.outcomes import Standing, standings

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

    Args:
        difference: What changed.
        old: The base.
        new: What is there now.
        causes: What differs.
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
