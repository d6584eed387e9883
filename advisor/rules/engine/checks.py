"""What is wrong with rules beyond what the parser sees in a single file."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from advisor.errors import RuleFileError, Source
from advisor.rules.engine.kinds import ORDERING, kind_of, of_option
from advisor.rules.language.model import Rule, Test
from advisor.rules.language.normal_form import Branch

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
    if test.verb in {"is known", "is unknown"} or test.other is not None:
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
