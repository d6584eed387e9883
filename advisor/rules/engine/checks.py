"""What is wrong with rules beyond what the parser sees in a single file."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping

from advisor.errors import RuleFileError, Source, raise_problems
from advisor.rules.conditions import KNOWING, ORDERING, Branch, Kind, Test, kind_of, of_option
from advisor.rules.language.model import Rule

MAX_TEXT_BYTES = 1000
SMALLEST_LITERAL = 1e-4
LARGEST_LITERAL = 1e16


def repeated_ids(rules: Iterable[Rule]) -> Iterator[RuleFileError]:
    """Find rules that share an id."""
    seen: dict[str, Rule] = {}
    for rule in rules:
        if rule.id in seen:
            first = seen[rule.id].source
            where = f" (first at {first})" if first else ""
            yield RuleFileError(
                f"rule '{rule.id}' is defined twice{where}.",
                source=rule.source,
                hint="Give one of them another id.",
                lint="duplicate-rule",
            )
        seen.setdefault(rule.id, rule)


def rule_problems(
    rule: Rule, flat: tuple[Branch, ...], concluded: Collection[str]
) -> Iterator[RuleFileError]:
    """Find conditions and conclusions that no engine can run soundly.

    Args:
        rule: The rule.
        flat: Its branches.
        concluded: Every fact that any rule concludes.
    """
    for fact, value in rule.conclude.items():
        if of_option(fact):
            message = f"rule '{rule.id}' concludes '{fact}', which belongs to a single option."
            yield RuleFileError(message, source=rule.source, hint="Conclude a scenario fact.")
        yield from _value_problems(f"rule '{rule.id}', '{fact}'", value, rule.source)
    seen: set[int] = set()
    for test in (test for branch in flat for test in branch):
        if id(test) not in seen:
            seen.add(id(test))
            yield from _test_problems(rule, test, concluded)


def _test_problems(rule: Rule, test: Test, concluded: Collection[str]) -> Iterator[RuleFileError]:
    source = test.source or rule.source
    where = f"rule '{rule.id}', '{test.fact}'"
    if test.verb == "is unknown" and test.fact in concluded:
        yield RuleFileError(
            f"{where}: rules conclude this fact, so nothing may depend on its absence.",
            source=source,
            hint="Test the facts it is concluded from.",
        )
    if test.verb in KNOWING or test.other is not None:
        return
    values = test.value if isinstance(test.value, tuple) else (test.value,)
    for value in values:
        yield from _value_problems(where, value, source)
    if test.verb in ORDERING and kind_of(test.value) != "number":
        message = f"{where}: '{test.verb}' compares numbers, not {test.value!r}."
        yield RuleFileError(message, source=source, hint="Write 'is' or 'one of'.")


def _value_problems(where: str, value: object, source: Source | None) -> Iterator[RuleFileError]:
    if kind_of(value) is None:
        yield RuleFileError(f"{where} has no value to compare with.", source=source)
    elif isinstance(value, str):
        if len(value.encode("utf-8", "surrogatepass")) > MAX_TEXT_BYTES:
            message = f"{where}: the text is longer than {MAX_TEXT_BYTES} bytes."
            yield RuleFileError(message, source=source, hint="Write the name alone.")
    elif not isinstance(value, bool):
        yield from _number_problems(where, value, source)


def _number_problems(where: str, value: object, source: Source | None) -> Iterator[RuleFileError]:
    assert isinstance(value, int | float)
    size = abs(value)
    if size != 0 and not SMALLEST_LITERAL <= size < LARGEST_LITERAL:
        message = (
            f"{where}: {value!r} (in base units) is outside "
            f"{SMALLEST_LITERAL:g} to {LARGEST_LITERAL:g}."
        )
        yield RuleFileError(message, source=source, hint="Check the unit.")
    elif float(value) != value:
        message = f"{where}: {value!r} has more digits than can be compared exactly."
        yield RuleFileError(message, source=source, hint="Write fewer digits.")


def infer_kinds(
    rules: Iterable[Rule], flat: Mapping[str, tuple[Branch, ...]]
) -> Mapping[str, Kind]:
    """Find out from the rules what every fact they name is.

    Args:
        rules: The rules.
        flat: Their branches, by rule id.

    Raises:
        RuleFileError: Rules take one fact for different kinds.
    """
    seen: dict[str, dict[Kind, Rule]] = defaultdict(dict)
    equal: set[tuple[str, str]] = set()
    for rule in rules:
        for fact, value in rule.conclude.items():
            _note_kind(seen, fact, kind_of(value), rule)
        for test in (test for branch in flat[rule.id] for test in branch):
            seen.setdefault(test.fact, {})
            if test.other is None:
                listed = test.value if isinstance(test.value, tuple) else (test.value,)
                _note_kind(seen, test.fact, kind_of(next(iter(listed), "")), rule)
                continue
            seen.setdefault(test.other, {})
            if test.verb in ORDERING:
                _note_kind(seen, test.fact, "number", rule)
                _note_kind(seen, test.other, "number", rule)
            else:
                equal |= {(test.fact, test.other), (test.other, test.fact)}
    _spread(seen, equal)
    raise_problems(list(_kind_problems(seen)))
    return {fact: next(iter(seen[fact]), "any") for fact in sorted(seen)}


def _note_kind(seen: dict[str, dict[Kind, Rule]], fact: str, kind: Kind | None, rule: Rule) -> None:
    if kind is not None:
        seen[fact].setdefault(kind, rule)


def _spread(seen: dict[str, dict[Kind, Rule]], equal: set[tuple[str, str]]) -> None:
    changed = True
    while changed:
        changed = False
        for left, right in sorted(equal):
            for kind, rule in seen[left].items():
                if kind not in seen[right]:
                    seen[right][kind] = rule
                    changed = True


def _kind_problems(seen: Mapping[str, Mapping[Kind, Rule]]) -> Iterator[RuleFileError]:
    for fact, users in sorted(seen.items()):
        if len(users) > 1:
            (one, first), (two, second) = sorted(users.items())[:2]
            yield RuleFileError(
                f"'{fact}' is a {one} in rule '{first.id}' and a {two} in rule '{second.id}'.",
                source=second.source,
                hint="A fact has one kind.",
            )
