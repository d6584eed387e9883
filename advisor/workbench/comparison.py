"""The whole comparison of two sides: facts, rules, words."""

from __future__ import annotations

from msgspec.structs import replace

from advisor.errors import UserError
from advisor.workbench.beyond_sample import Beside, beside_the_sample
from advisor.workbench.bulk import Evaluation, evaluate_all
from advisor.workbench.diff import Difference, compare
from advisor.workbench.fact_store import FactStore
from advisor.workbench.fact_store_files import Progress, facts_of, sampled_facts
from advisor.workbench.outcomes import standings
from advisor.workbench.prose import Prose, changed_templates, compare_prose
from advisor.workbench.sides import Side


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
