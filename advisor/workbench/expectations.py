"""What was seen in a situation against what a case or scenario expects, and how that is written."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from textwrap import wrap

from msgspec import Struct
from msgspec.structs import replace

from advisor.advice.conclusions import Conclusions
from advisor.advice.preparation import Prepared, prepare
from advisor.errors import Problems, Source, UserError
from advisor.knowledge.types import Knowledge
from advisor.knowledge.vocabulary import FactValue, Vocabulary, show
from advisor.memo import Kept
from advisor.rules import Test, holds
from advisor.rules.language.model import Case
from advisor.scenario.settings import request_from
from advisor.workbench.scenario_file import Expected, ScenarioCase, inline, inline_map

Changed = Mapping[str, object]


class Spoken(Struct, frozen=True):
    """One recommendation as far as tests look at it."""

    rule: str
    action: str
    change: Changed


class Seen(Struct, frozen=True):
    """One report as far as tests look at it."""

    verdict: str
    said: Sequence[Spoken]
    notes: Collection[str]
    fired: Mapping[str, Sequence[Changed]]
    """Rule -> the changes of the options it fired for; none for a rule about the scenario."""
    facts: Mapping[str, FactValue]
    offered: Collection[Changed] = ()
    """The changes of everything that was tried."""


def seen_in(advice: Conclusions) -> Seen:
    """Read off what tests look at."""
    changes = {option.key: option.change for option in advice.options}
    changes |= {item.option.key: item.option.change for item in advice.not_recommended}
    fired: dict[str, list[Changed]] = {}
    for rule_id, key in advice.fired:
        own = fired.setdefault(rule_id, [])
        if key:
            own.append(changes[key])
    return Seen(
        advice.state,
        [Spoken(r.rule, r.option.action, r.option.change) for r in advice.recommendations],
        [note.rule for note in advice.notes],
        fired,
        advice.facts,
        list(changes.values()),
    )


def case_problem(rule_id: str, case: Case, seen: Seen) -> str:
    """Say how a case fails, apart from its words; empty when it holds."""
    fired = seen.fired.get(rule_id)
    if case.expect == "silent":
        return _silence_problem(case.change, fired, seen)
    if fired is None:
        return "it stays silent"
    if case.change is not None and not any(contains(change, case.change) for change in fired):
        return f"it fires, but for no option that changes {dict(case.change)}"
    if case.rank is not None:
        ranks = [place for place, item in enumerate(seen.said, 1) if item.rule == rule_id]
        if case.rank not in ranks:
            return f"it is ranked {ranks[0] if ranks else 'nowhere'}, not {case.rank}"
    return ""


def _silence_problem(change: Changed | None, fired: Sequence[Changed] | None, seen: Seen) -> str:
    """Say what breaks the silence: of the whole rule, or about one change that was tried."""
    if change is None:
        return "it fires" if fired is not None else ""
    if any(contains(found, change) for found in fired or ()):
        return f"it fires for an option that changes {dict(change)}"
    if not any(contains(found, change) for found in seen.offered):
        return f"nothing was tried that changes {dict(change)}"
    return ""


def contains(change: Changed, wanted: Changed) -> bool:
    """Whether a change has all the values wanted."""
    return all(str(change.get(key)) == str(value) for key, value in wanted.items())


def scenario_problems(expected: Expected, seen: Seen, vocabulary: Vocabulary) -> Iterator[str]:
    """Say everything in which a scenario is not as expected."""
    if expected.verdict is not None and seen.verdict != expected.verdict:
        yield f"the verdict is {seen.verdict}, not {expected.verdict}"
    first = seen.said[0] if seen.said else None
    if expected.first is not None and (first.action if first else "none") != expected.first:
        said = f"{first.action} {dict(first.change)}" if first else "none"
        yield f"the first recommendation is {said}, not {expected.first}"
    if expected.change is not None and not (first and contains(first.change, expected.change)):
        changed = dict(first.change) if first else "nothing"
        yield f"the first recommendation changes {changed}, not {dict(expected.change)}"
    yield from _actions(expected, seen)
    yield from _notes(expected, seen)
    for rule in expected.fires:
        if rule not in seen.fired:
            yield f"{rule} stays silent"
    for rule in expected.silent:
        if rule in seen.fired:
            yield f"{rule} fires"
    for test in expected.facts:
        if not holds(test, seen.facts):
            yield f"{test.fact} is {_shown(test, seen, vocabulary)}, not {_wanted(test)}"


def _notes(expected: Expected, seen: Seen) -> Iterator[str]:
    if expected.notes is None:
        return
    for note in expected.notes:
        if note not in seen.notes:
            yield f"the note of {note} is missing"
    for note in seen.notes:
        if note not in expected.notes:
            yield f"the note of {note} is there too"


def _actions(expected: Expected, seen: Seen) -> Iterator[str]:
    actions = [item.action for item in seen.said]
    if expected.actions is not None and actions != list(expected.actions):
        yield f"it recommends {', '.join(actions) or 'nothing'}, not {', '.join(expected.actions)}"
    for action, change in expected.changes.items():
        own = next((item.change for item in seen.said if item.action == action), None)
        if own is None:
            yield f"it does not recommend {action}"
        elif not contains(own, change):
            yield f"{action} changes {dict(own)}, not {dict(change)}"


def _shown(test: Test, seen: Seen, vocabulary: Vocabulary) -> str:
    value = seen.facts.get(test.fact)
    return "unknown" if value is None else show(vocabulary.fact(test.fact), value)


def _wanted(test: Test) -> str:
    return test.text.removeprefix("is ") if test.verb == "is" else test.text


_FOR_A_TERMINAL = "Add --"


def refusal(error: UserError) -> str:
    """Say in one line all that is wrong with an input, without what to type on a terminal."""
    errors = error.errors if isinstance(error, Problems) else [error]
    return " ".join(_said(one) for one in errors)


def _said(error: UserError) -> str:
    hint = "" if error.hint.startswith(_FOR_A_TERMINAL) else error.hint
    return f"{error.message.removesuffix('.')}. {hint}".rstrip()


_kept: Kept[tuple[int, str], tuple[Knowledge, Prepared]] = Kept(1_024)


def key_of(given: Mapping[str, object]) -> str:
    """Give the same text for the same request, in whatever order it was written."""
    return json.dumps(dict(given), sort_keys=True, default=str)


def prepared(
    given: Mapping[str, object], knowledge: Knowledge, source: Source | None = None
) -> Prepared:
    """Estimate a request with every what-if, as facts, or give what is kept of the same one.

    Raises:
        UserError: The request is wrong.
    """
    found = kept_of(given, knowledge)
    if found is None:
        found = prepare(request_from(given, source=source), knowledge)
        _kept.put((id(knowledge), key_of(given)), (knowledge, found))
    return found


def kept_of(given: Mapping[str, object], knowledge: Knowledge) -> Prepared | None:
    """Give what is kept of a request; None: nothing, or it is refused."""
    found = _kept.get((id(knowledge), key_of(given)))
    return found[1] if found and found[0] is knowledge else None


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

    ``changed`` gives the place in ``old`` and what to write instead.

    Gives how many were written.
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
        path.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")
    return len(changed)


def _end(lines: Sequence[str], begin: int) -> int:
    """The line after the last of a scenario: what follows is empty or not indented."""
    end = begin
    while end < len(lines) and lines[end].startswith(" "):
        end += 1
    return end
