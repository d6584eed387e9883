"""What can be wrong with rules that were read without a mistake, alone and together."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from advisor.errors import RuleFileError, Source, correction, guess
from advisor.knowledge.vocabulary import ACTION_FACT
from advisor.rules import Branch, Test
from advisor.rules.language.context import Reading
from advisor.rules.language.model import Draft, Rule, read_facts, scored_tests

_NAMED = re.compile(r"\b(?:rule|ladder):\s*[\"']?([a-z0-9-]+)")
MAX_GROUPS = 8
MAX_TESTS_PER_GROUP = 20


def check(drafts: Sequence[Draft], reading: Reading) -> None:
    """Note every problem of every rule, then those between rules.

    What is partial may hold what seems to be missing, so nothing missing is noted then.
    """
    for draft in drafts:
        if not draft.partial:
            _about_option(draft, reading)
        if draft.rule.id and not _is_broken_ladder(draft):
            for one in (_action, _source, _cases, _limits, _deprecated):
                one(draft, reading)
    _ids(drafts, reading)
    _references(drafts, reading)
    _never_concluded(drafts, reading)
    _supersedes_cycle(drafts, reading)
    _conclusion_cycle(drafts, reading)


def _is_broken_ladder(draft: Draft) -> bool:
    return draft.rule.ladder is not None and not draft.rule.conclude


def _about_option(draft: Draft, reading: Reading) -> None:
    rule = draft.rule
    key = "recommend" if rule.action else "veto" if rule.veto else ""
    if key and not rule.per_option:
        hint = "Name an option.* fact in 'when', for example 'option.family: is quantize'."
        message = f"'{key}' is about a what-if, and none is named."
        reading.problems.add(message, draft.at(key), hint, lint="no-option-named")


def _action(draft: Draft, reading: Reading) -> None:
    rule = draft.rule
    families = [test for test in rule.when.tests if test.fact == ACTION_FACT]
    for test in families:
        names = test.value if isinstance(test.value, tuple) else (test.value,)
        if rule.action and test.verb in {"is", "one of"} and rule.action not in names:
            message = f"the action '{rule.action}' can never meet '{ACTION_FACT}: {test.text}'."
            hint = "Make the two agree."
            reading.problems.add(message, draft.at("action"), hint, lint="action-never-meets")


def _source(draft: Draft, reading: Reading) -> None:
    rule = draft.rule
    figures = rule.score is not None or any(_is_figure(test) for test in scored_tests(rule))
    if figures and not rule.reference:
        hint = "Say in 'source:' where it comes from."
        message = f"rule '{rule.id}' has a number without a source."
        reading.problems.add(message, rule.source, hint, lint="number-without-source")


def _is_figure(test: Test) -> bool:
    """Whether a test holds a number that somebody must have chosen; 0 is none."""
    return isinstance(test.value, float) and test.value != 0


def _cases(draft: Draft, reading: Reading) -> None:
    rule = draft.rule
    if draft.partial and not rule.cases and "cases" in draft.places:
        return  # they are there and could not be read
    if rule.ladder and "silent" in {case.expect for case in rule.cases}:
        return
    for expect in ("fires", "silent"):
        if expect not in {case.expect for case in rule.cases}:
            message = f"rule '{rule.ladder or rule.id}' has no case with 'expect: {expect}'."
            lint = "missing-case" if expect == "fires" else "missing-silent-case"
            hint = "Add one under 'cases'."
            reading.problems.add(message, draft.at("cases"), hint, lint=lint)
    for case in rule.cases:
        if case.rank is not None and not rule.action:
            message = "only a recommendation has a rank."
            reading.problems.add(message, case.source, lint="wrong-case")
        if case.change is not None and not (rule.action or rule.veto):
            message = "only a recommendation or a veto has a change."
            reading.problems.add(message, case.source, lint="wrong-case")


def _limits(draft: Draft, reading: Reading) -> None:
    try:
        ways = draft.rule.branches
    except RuleFileError as bad:
        reading.problems.take(bad)
        return
    for way in ways:
        message = _too_much(way)
        if message:
            place = draft.at("when")
            reading.problems.add(message, place, "Split the rule.", lint="engine-limits")
            return


def _too_much(way: Branch) -> str:
    counts = Counter(test.fact.partition(".")[0] for test in way)
    others = {test.other.partition(".")[0] for test in way if test.other}
    if len(others | set(counts)) > MAX_GROUPS:
        return f"the rule names facts of more than {MAX_GROUPS} groups."
    group, tests = counts.most_common(1)[0] if counts else ("", 0)
    if tests > MAX_TESTS_PER_GROUP:
        return f"the rule has more than {MAX_TESTS_PER_GROUP} tests on {group} facts."
    return ""


def _deprecated(draft: Draft, reading: Reading) -> None:
    rule = draft.rule
    if rule.status == "deprecated" and not rule.replaced_by:
        message = f"rule '{rule.id}' is deprecated without a replacement."
        hint = "Name the better rule in 'replaced_by', or delete this one."
        lint = "deprecated-without-replacement"
        reading.problems.add(message, draft.at("status"), hint, lint=lint)


def _ids(drafts: Sequence[Draft], reading: Reading) -> None:
    first: dict[str, Rule] = {}
    for draft in drafts:
        rule = draft.rule
        if not rule.id:
            continue
        other = first.setdefault(rule.id, rule)
        if other is not rule:
            message = f"the rule name '{rule.id}' is used twice (first at {other.source})."
            hint = "Rename or delete one of them."
            reading.problems.add(message, rule.source, hint, lint="duplicate-rule")


def _references(drafts: Sequence[Draft], reading: Reading) -> None:
    names = known_names(drafts)
    advising = {draft.rule.id for draft in drafts if draft.rule.action}
    for draft in drafts:
        for name in draft.rule.supersedes:
            if not _refer(name, "supersedes", draft, names, reading) or name in advising:
                continue
            hint = "Only recommendations can be superseded."
            message = f"rule '{name}' recommends nothing."
            reading.problems.add(message, draft.at("supersedes"), hint, lint="wrong-reference")
        if draft.rule.replaced_by:
            _refer(draft.rule.replaced_by, "replaced_by", draft, names, reading)


def known_names(drafts: Sequence[Draft]) -> _Names:
    """Give the names of rules, those that may stand in what could not be read included."""
    return _Names(frozenset(draft.rule.id for draft in drafts) - {""}, _unread(drafts))


class _Names(Struct, frozen=True):
    """The rules that were read, and files in which something could not be read."""

    read: frozenset[str]
    unread: Collection[str]

    def __contains__(self, name: object) -> bool:
        """Whether there is such a rule, or may be."""
        return name in self.read or self.may_hold(str(name))

    def __iter__(self) -> Iterator[str]:
        """Give the names that were read."""
        return iter(self.read)

    def __len__(self) -> int:
        """Count them."""
        return len(self.read)

    def may_hold(self, rule: str) -> bool:
        """Whether such a file seems to hold a rule, or the ladder that it comes from."""
        names = {name for text in self.unread for name in _NAMED.findall(text)}
        return any(rule == name or rule.startswith(f"{name}-") for name in names)


def _unread(drafts: Sequence[Draft]) -> Collection[str]:
    return {draft.text for draft in drafts if draft.partial}


def _refer(name: str, key: str, draft: Draft, names: _Names, reading: Reading) -> bool:
    if name == draft.rule.id:
        message = f"rule '{name}' names itself in '{key}'."
        reading.problems.add(message, draft.at(key), "Delete it.", lint="wrong-reference")
        return False
    if name not in names:
        message = f"unknown rule '{name}' in '{key}'."
        hint = guess(name, names.read)
        edit = correction(name, hint)
        reading.problems.add(message, draft.at(key), hint, lint="unknown-rule", edit=edit)
    return name in names.read


def _never_concluded(drafts: Sequence[Draft], reading: Reading) -> None:
    concluded = {name for draft in drafts for name in draft.rule.conclude}
    facts = reading.vocabulary.facts
    unread = [text.partition("conclude")[2] for text in _unread(drafts)]
    replaced = any(draft.partial and draft.replaces for draft in drafts)
    wrong = {draft.rule.source.file for draft in drafts if draft.partial and draft.rule.source}
    for draft in drafts:
        if replaced and not (draft.rule.source and draft.rule.source.file in wrong):
            continue  # what is to take the place of a rule may conclude it once it is right
        for name, place in read_facts(draft.rule).items():
            if facts[name].origin == "rules" and not (
                name in concluded or any(name in text for text in unread)
            ):
                hint = "Add a rule or ladder that concludes it."
                message = f"no rule concludes {name}."
                reading.problems.add(message, place, hint, lint="fact-never-concluded")


def _supersedes_cycle(drafts: Sequence[Draft], reading: Reading) -> None:
    places = {draft.rule.id: draft.at("supersedes") for draft in drafts}
    graph = {draft.rule.id: draft.rule.supersedes for draft in drafts}
    for cycle in _cycles(graph):
        if len(cycle) > 1:
            message = f"rules supersede each other: {_round(cycle)}."
            hint = "Delete one of these."
            reading.problems.add(message, places[cycle[0]], hint, lint="supersedes-cycle")


def _conclusion_cycle(drafts: Sequence[Draft], reading: Reading) -> None:
    graph: dict[str, list[str]] = {}
    places: dict[tuple[str, str], Source | None] = {}
    for draft in drafts:
        for concluded in draft.rule.conclude:
            for name, place in read_facts(draft.rule).items():
                graph.setdefault(concluded, []).append(name)
                places.setdefault((concluded, name), place)
    for cycle in _cycles(graph):
        following = cycle[1 % len(cycle)]
        message = f"conclusions go round in a circle: {_round(cycle)}."
        hint = "Take one of these facts out of a 'when'."
        place = places[cycle[0], following]
        reading.problems.add(message, place, hint, lint="conclusion-cycle")


def _round(cycle: Sequence[str]) -> str:
    return " -> ".join((*cycle, cycle[0]))


def _cycles(graph: Mapping[str, Iterable[str]]) -> Iterator[Sequence[str]]:
    """Give one cycle for every group of nodes that reach each other, smallest name first."""
    seen: set[str] = set()
    for start in sorted(graph):
        if start in seen:
            continue
        path = _path_back(start, lambda name: graph.get(name, ()))
        if path:
            seen.update(path)
            yield path


def _path_back(start: str, after: Callable[[str], Iterable[str]]) -> Sequence[str]:
    """Find the shortest way from ``start`` back to itself; empty when there is none."""
    came_from: dict[str, str] = {}
    waiting = [start]
    for name in waiting:
        for following in after(name):
            if following == start:
                path = [name]
                while path[-1] != start:
                    path.append(came_from[path[-1]])
                return path[::-1]
            if following not in came_from:
                came_from[following] = name
                waiting.append(following)
    return ()
