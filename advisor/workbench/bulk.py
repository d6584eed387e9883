"""Every rule on every scenario of a fact store, by masks instead of one scenario at a time.

The same semantics as the engines: ``tests/workbench`` holds the three against each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from operator import and_, or_

from msgspec import Struct, field
from msgspec.structs import replace

from advisor.errors import RuleFileError
from advisor.knowledge.vocabulary import FactValue
from advisor.rules import Test, answer, compare, of_option, same_test
from advisor.rules.engine.compiler import compile_rules
from advisor.rules.language.model import Rule, RuleSet
from advisor.workbench.columns import Mask, all_rows, gathered, mask_of, row_numbers, spread
from advisor.workbench.fact_store import FactStore

MOST_KEPT = 600
"""Masks of tests that a store keeps."""

Concluded = Mapping[FactValue, Mask]
"""The values that rules give a fact, each with its scenarios."""


_Asks = tuple[tuple[tuple[tuple[object, ...], ...], ...], tuple[object, ...]]
"""What the tests of every branch ask, and what a rule concludes."""


class Fired(Struct, frozen=True):
    """Where one rule holds: option rows for a rule about options, else scenarios."""

    rule: Rule
    per_option: bool
    mask: Mask
    asks: _Asks
    """What the rule asks and concludes, for telling whether an edit changed it."""


class Evaluation(Struct, frozen=True):
    """A rule set on a fact store."""

    store: FactStore
    ruleset: RuleSet
    order: tuple[str, ...]
    """Rule ids, each after those it depends on."""
    fired: Mapping[str, Fired] = field(default_factory=dict)
    concluded: Mapping[str, Concluded] = field(default_factory=dict)

    def scenarios(self, rule_id: str) -> Mask:
        """Give the scenarios in which a rule holds, for any option or as such."""
        found = self.fired[rule_id]
        return gathered(found.mask, self.store.starts) if found.per_option else found.mask

    def conclusion(self, fact: str, scenario: int) -> FactValue | None:
        """Give the value that rules concluded in one scenario."""
        for value, mask in self.concluded.get(fact, {}).items():
            if mask >> (8 * scenario) & 1:
                return value
        return None


def evaluate_all(
    store: FactStore, ruleset: RuleSet, before: Evaluation | None = None
) -> Evaluation:
    """Try every rule on every scenario.

    What did not change since ``before``, another rule set on the same store, is taken over.

    Raises:
        RuleFileError: The rules cannot be run, or contradict each other somewhere.
    """
    compiled = compile_rules(ruleset)
    order = tuple(rule.id for rule in compiled.rules)
    return _run(store, ruleset, order, before)


def with_rule(before: Evaluation, rule: Rule) -> Evaluation:
    """Try an edited rule in the place of the one with its id; the rest is taken over.

    Raises:
        RuleFileError: The rules contradict each other somewhere.
    """
    rules = tuple(rule if known.id == rule.id else known for known in before.ruleset.rules)
    ruleset = RuleSet(rules, "")
    if rule.conclude or before.ruleset.by_id[rule.id].conclude:
        return _run(before.store, ruleset, before.order, before)
    found = _fired(before.store, rule, before.concluded, _asks(rule))
    fired = {**before.fired, rule.id: found}
    return Evaluation(before.store, ruleset, before.order, fired, before.concluded)


def _run(
    store: FactStore, ruleset: RuleSet, order: tuple[str, ...], before: Evaluation | None
) -> Evaluation:
    fired: dict[str, Fired] = {}
    concluded: dict[str, dict[FactValue, Mask]] = {}
    known = before if before is not None and before.store is store else None
    changed = _Changed(known, concluded)
    for rule_id in order:
        rule = ruleset.by_id[rule_id]
        old = known.fired.get(rule_id) if known else None
        asks = old.asks if old and old.rule is rule else _asks(rule)
        if old and old.asks == asks and not changed.any_of(rule):
            fired[rule_id] = old if old.rule is rule else replace(old, rule=rule)
        else:
            fired[rule_id] = _fired(store, rule, concluded, asks)
        _conclude(fired[rule_id], store, concluded, fired)
    return Evaluation(store, ruleset, order, fired, concluded)


def _fired(store: FactStore, rule: Rule, concluded: Mapping[str, Concluded], asks: _Asks) -> Fired:
    option = rule.per_option
    masks = (branch_mask(store, b, concluded, option=option) for b in rule.branches)
    mask = reduce(or_, masks, 0)
    if option and not rule.veto:
        mask ^= mask & cannot_run(store)
    return Fired(rule, option, mask, asks)


def cannot_run(store: FactStore) -> Mask:
    """Give the options that cannot run at all: only vetoes are tried on them."""
    return passing(store, _CANNOT_RUN, {})


_CANNOT_RUN = Test("option.runs", "is", value=False)


class _Changed(Struct):
    """Which concluded facts differ from those of an earlier evaluation."""

    before: Evaluation | None
    now: Mapping[str, Concluded]
    known: dict[str, bool] = field(default_factory=dict)

    def any_of(self, rule: Rule) -> bool:
        """Whether a rule reads one of them."""
        return any(self._differs(fact) for fact in _read(rule))

    def _differs(self, fact: str) -> bool:
        if fact not in self.known:
            assert self.before is not None
            old = self.before.concluded.get(fact, {})
            self.known[fact] = dict(old) != dict(self.now.get(fact, {}))
        return self.known[fact]


def _read(rule: Rule) -> set[str]:
    return {n for b in rule.branches for t in b for n in (t.fact, t.other) if n}


def _conclude(
    found: Fired,
    store: FactStore,
    concluded: dict[str, dict[FactValue, Mask]],
    before: Mapping[str, Fired],
) -> None:
    rule = found.rule
    if not rule.conclude or not found.mask:
        return
    mask = gathered(found.mask, store.starts) if found.per_option else found.mask
    for fact, value in rule.conclude.items():
        given = float(value) if isinstance(value, int) and not isinstance(value, bool) else value
        values = concluded.setdefault(fact, {})
        for other, own in values.items():
            if other != given and own & mask:
                other_rule = _maker(fact, other, store, own & mask, before)
                _contradiction(fact, (rule, other_rule), store, own & mask)
        values[given] = values.get(given, 0) | mask


def _maker(
    fact: str, value: FactValue, store: FactStore, where: Mask, before: Mapping[str, Fired]
) -> Rule:
    """Find a rule that concluded a value in some of these scenarios."""
    for found in before.values():
        own = gathered(found.mask, store.starts) if found.per_option else found.mask
        if own & where and found.rule.conclude.get(fact) == value:
            return found.rule
    raise AssertionError(fact)


def _contradiction(fact: str, rules: tuple[Rule, Rule], store: FactStore, both: Mask) -> None:
    """Blame the user's rule where only one of the two is; built-in rules agree by themselves."""
    one, two = sorted(rules, key=lambda rule: rule.overlay is None)
    first = next(row_numbers(both, len(store)))
    given = ", ".join(f"{key} {value}" for key, value in store.requests[first].items())
    raise RuleFileError(
        f"rule '{one.id}' concludes {fact} {one.conclude[fact]!r} where '{two.id}' "
        f"(at {two.source}) concludes {two.conclude[fact]!r}, for example with {given}.",
        source=one.source,
        hint="Make their conditions exclude each other.",
        lint="contradictory-conclude",
    )


def _asks(rule: Rule) -> _Asks:
    tests = tuple(tuple(map(same_test, branch)) for branch in rule.branches)
    return tests, tuple(rule.conclude.items())


def rule_mask(store: FactStore, rule: Rule, concluded: Mapping[str, Concluded]) -> Mask:
    """Give the rows in which a rule holds."""
    return _fired(store, rule, concluded, ((), ())).mask


def shown_mask(evaluation: Evaluation, rule: Rule, mask: Mask) -> Mask:
    """Give the rows for which a report names a rule that holds in the rows of a mask.

    Of several vetoes on what cannot run at all, only the first in the files is named.
    """
    blocked = mask & cannot_run(evaluation.store) if rule.veto else 0
    left = blocked
    for earlier in evaluation.ruleset.rules:
        if earlier.id == rule.id or not left:
            break
        if earlier.veto:
            left ^= left & evaluation.fired[earlier.id].mask
    return (mask ^ blocked) | left


def branch_mask(
    store: FactStore, branch: Iterable[Test], concluded: Mapping[str, Concluded], *, option: bool
) -> Mask:
    """Give the rows in which all of some tests hold."""
    own = [t for t in branch if not is_option_test(t)]
    scenario = reduce(and_, (passing(store, t, concluded) for t in own), all_rows(len(store)))
    if not option or not scenario:
        return scenario
    wide = spread(scenario, store.starts) if own else all_rows(store.rows)
    more = (passing(store, t, concluded) for t in branch if is_option_test(t))
    return reduce(and_, more, wide)


def is_option_test(test: Test) -> bool:
    """Whether a test is about a single option."""
    return of_option(test.fact) or (test.other is not None and of_option(test.other))


def passing(store: FactStore, test: Test, concluded: Mapping[str, Concluded]) -> Mask:
    """Give the rows in which one test holds; of options if it names one, else of scenarios."""
    if test.other is not None:
        return _compared(store, test, concluded)
    if test.fact in concluded:
        says, values = answer(test), concluded[test.fact].items()
        return reduce(or_, (mask for value, mask in values if says(value)), 0)
    key = same_test(test)
    found = store.kept.get(key)
    if found is None:
        if len(store.kept) >= MOST_KEPT:
            store.kept.clear()
        found = store.kept[key] = _literal(store, test)
    return found


def _literal(store: FactStore, test: Test) -> Mask:
    column = store.columns.get(test.fact)
    if column is not None:
        return column.passing(test)
    unknown = test.verb == "is unknown"
    return all_rows(store.height(option=of_option(test.fact))) if unknown else 0


def _compared(store: FactStore, test: Test, concluded: Mapping[str, Concluded]) -> Mask:
    """Compare two facts row by row."""
    assert test.other is not None
    option = is_option_test(test)
    left = _values(store, test.fact, concluded, option=option)
    right = _values(store, test.other, concluded, option=option)
    pairs = zip(left, right, strict=True)
    return mask_of(
        bytes(a is not None and b is not None and compare(test.verb, a, b) for a, b in pairs)
    )


def _values(
    store: FactStore, fact: str, concluded: Mapping[str, Concluded], *, option: bool
) -> Sequence[FactValue | None]:
    """Give a fact in every row, a scenario's repeated for each of its options if need be."""
    if of_option(fact):
        return _column_values(store, fact, store.rows)
    if fact in concluded:
        own: list[FactValue | None] = [None] * len(store)
        for value, mask in concluded[fact].items():
            for row in row_numbers(mask, len(store)):
                own[row] = value
    else:
        own = _column_values(store, fact, len(store))
    if not option:
        return own
    starts = store.starts
    return [v for i, v in enumerate(own) for _ in range(starts[i + 1] - starts[i])]


def _column_values(store: FactStore, fact: str, rows: int) -> list[FactValue | None]:
    column = store.columns.get(fact)
    return [None] * rows if column is None else [column.value(row) for row in range(rows)]
