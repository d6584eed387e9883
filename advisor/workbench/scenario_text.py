"""Scenarios as YAML, and scenario files brought up to date with what is seen now."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from textwrap import wrap

from msgspec.structs import replace

from advisor.knowledge.vocabulary import Vocabulary, show
from advisor.rules.conditions import Test
from advisor.workbench.expectations import Seen
from advisor.workbench.layout import inline, inline_map
from advisor.workbench.scenario_file import Expected, ScenarioCase

_WIDTH = 100


def scenario_lines(scenario: ScenarioCase) -> Sequence[str]:
    """Write one scenario."""
    return [
        f"- scenario: {inline(scenario.name)}",
        f"  given: {inline_map(scenario.given)}",
        "  expect:",
        *(f"    {line}" for line in _expected(scenario.expected)),
    ]


def _expected(expected: Expected) -> Iterator[str]:
    for key in ("verdict", "first"):
        value = getattr(expected, key)
        if value is not None:
            yield f"{key}: {value}"
    if expected.change is not None:
        yield f"change: {inline_map(expected.change)}"
    if expected.actions is not None:
        yield from _list("actions", expected.actions)
    if expected.changes:
        yield "changes:"
        yield from (f"  {action}: {inline_map(c)}" for action, c in expected.changes.items())
    for key in ("notes", "fires", "silent"):
        names = getattr(expected, key)
        if names or (key == "notes" and names is not None):
            yield from _list(key, names)
    if expected.facts:
        yield "facts:"
        yield from (f"  {test.fact}: {_condition(test)}" for test in expected.facts)


def _list(key: str, names: Sequence[str]) -> Iterator[str]:
    text = f"{key}: [{', '.join(names)}]"
    yield from wrap(text, _WIDTH - 4, subsequent_indent="  ", break_on_hyphens=False)


def _condition(test: Test) -> str:
    text = test.text or f"is {test.value}"
    return text.removeprefix("is ") if test.verb == "is" else inline(text)


def brought_up_to_date(scenario: ScenarioCase, seen: Seen, vocabulary: Vocabulary) -> ScenarioCase:
    """Expect what is seen now, of what was expected before; nothing new is looked at."""
    old = scenario.expected
    said = {item.action: item.change for item in seen.said}
    first = seen.said[0] if seen.said else None
    wanted = said if old.actions is not None and old.changes else old.changes
    expected = replace(
        old,
        verdict=old.verdict and seen.verdict,
        first=old.first and (first.action if first else "none"),
        change=None if old.change is None or first is None else dict(first.change),
        actions=None if old.actions is None else tuple(item.action for item in seen.said),
        changes={a: said[a] for a in wanted if a in said},
        notes=None if old.notes is None else tuple(seen.notes),
        fires=tuple(rule for rule in old.fires if rule in seen.fired),
        silent=tuple(rule for rule in old.silent if rule not in seen.fired),
        facts=tuple(_now(test, seen, vocabulary) for test in old.facts if test.fact in seen.facts),
    )
    return replace(scenario, expected=expected)


def _now(test: Test, seen: Seen, vocabulary: Vocabulary) -> Test:
    """Another value for ``is``; a condition with another verb is for its author to change."""
    if test.verb != "is":
        return test
    value = seen.facts[test.fact]
    text = f"is {show(vocabulary.fact(test.fact), value)}"
    return replace(test, value=value, text=text)


def rewrite(folder: Path, changed: Mapping[int, ScenarioCase], old: Sequence[ScenarioCase]) -> int:
    """Write changed scenarios in the place of the old ones; the rest of the files stays.

    Args:
        folder: Of the scenario files.
        changed: Place in ``old`` -> what to write instead.
        old: As they were read.

    Returns:
        How many were written.
    """
    by_file: dict[str, list[tuple[int, ScenarioCase]]] = {}
    for number, scenario in changed.items():
        source = old[number].source
        assert source is not None
        name = source.file.removeprefix(f"{folder.parent.name}/").removeprefix(f"{folder.name}/")
        by_file.setdefault(name, []).append((source.line, scenario))
    for name, scenarios in by_file.items():
        path = folder / name
        lines = path.read_text(encoding="utf-8").splitlines()
        for line, scenario in sorted(scenarios, key=lambda pair: -pair[0]):
            lines[line - 1 : _end(lines, line)] = scenario_lines(scenario)
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return len(changed)


def _end(lines: Sequence[str], begin: int) -> int:
    """The line after the last of a scenario: what follows is empty or not indented."""
    end = begin
    while end < len(lines) and lines[end].startswith(" "):
        end += 1
    return end
