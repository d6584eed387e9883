"""Scenario files: situations with the report that is expected; how a request is written."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import cast

from msgspec import Struct, field

from advisor.errors import RuleFileError, Source, UserError, correction, guess, raise_problems
from advisor.files import data_dir, read_tree
from advisor.knowledge.layers import Stack, stack
from advisor.knowledge.vocabulary import ACTION_FACT, Vocabulary
from advisor.knowledge.yaml_fields import Collector, Fields, listed
from advisor.rules import Test
from advisor.rules.language import SCENARIOS
from advisor.rules.language.conditions import read_condition, split_verb
from advisor.rules.language.context import Reading
from advisor.rules.language.model import RuleSet
from advisor.scenario.settings import KEYS, SETTINGS
from advisor.yamlfile import Node

FOLDER = SCENARIOS.rstrip("/")
"""Below rules/."""

_EXPECTS = ("verdict", "first", "change", "actions", "changes", "notes", "fires", "silent", "facts")
_VERDICT = "fit.state"


class Expected(Struct, frozen=True):
    """What a report must say; None and empty: not looked at."""

    verdict: str | None = None
    first: str | None = None
    """Action of the first recommendation; ``none``: there is no recommendation."""
    change: Mapping[str, object] | None = None
    """Part of the first recommendation's change."""
    actions: tuple[str, ...] | None = None
    """Every action recommended, in order."""
    changes: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    """Action -> part of its change."""
    notes: tuple[str, ...] | None = None
    """Rules whose notes are in the report, all of them, in any order."""
    fires: tuple[str, ...] = ()
    """Rules that must fire, whether they are said or not."""
    silent: tuple[str, ...] = ()
    """Rules that must not fire."""
    facts: tuple[Test, ...] = ()


class ScenarioCase(Struct, frozen=True):
    """One situation."""

    name: str
    given: Mapping[str, object]
    expected: Expected
    source: Source | None = None


def scenario_folder(rules: Stack) -> Path:
    """Name the folder in which the scenario files of rules lie: of several folders the last's."""
    return (stack(rules) or (data_dir("rules"),))[-1] / FOLDER


def load_scenarios(
    folder: Path, vocabulary: Vocabulary, ruleset: RuleSet, names: Mapping[str, Collection[str]]
) -> Sequence[ScenarioCase]:
    """Read every ``*.yaml`` below a folder; a folder that does not exist has none.

    Raises:
        RuleFileError: A file is wrong; several problems come as ``Problems``.
    """
    found, errors = scenarios_as_far(folder, vocabulary, ruleset.by_id, names)
    raise_problems(errors)
    return found


def scenarios_as_far(
    folder: Path,
    vocabulary: Vocabulary,
    rules: Collection[str],
    names: Mapping[str, Collection[str]],
) -> tuple[Sequence[ScenarioCase], Sequence[UserError]]:
    """Read scenario files as far as it goes.

    Returns:
        The scenarios in which nothing is wrong, and what is wrong with the others.
    """
    if not folder.is_dir():
        return (), ()
    problems = Collector(RuleFileError)
    reader = _Reader(Reading(vocabulary, problems, None, names), rules)
    shown = folder.name if folder.name != FOLDER else f"{folder.parent.name}/{FOLDER}"
    found = [
        scenario
        for name, content in read_tree(folder, [".yaml"]).items()
        for scenario in reader.read(content, f"{shown}/{name}")
    ]
    return found, problems.errors


class _Reader(Struct):
    reading: Reading
    rules: Collection[str]
    names: dict[str, Source] = field(default_factory=dict)

    def read(self, content: bytes, shown: str) -> Sequence[ScenarioCase]:
        """Read one file; what is wrong is noted and left out."""
        found = []
        for node in self.reading.problems.entries(content, shown, "- scenario: NAME"):
            block = Fields.of(node, "a scenario", self.reading.problems)
            scenario = self._scenario(block) if block else None
            if scenario:
                found.append(scenario)
        return found

    def _scenario(self, block: Fields) -> ScenarioCase | None:
        problems = block.problems
        before = len(problems.errors)
        block.only(("scenario", "given", "expect"))
        for key in ("scenario", "given", "expect"):
            block.require(key)
        name = block.text("scenario") or ""
        if name in self.names:
            message = f"two scenarios are called '{name}' (first at {self.names[name]})."
            hint = "Give each its own name."
            problems.add(message, block.at("scenario"), hint, lint="duplicate-case")
        self.names.setdefault(name, block.source)
        given = self._given(block)
        expected = self._expected(block)
        if len(problems.errors) > before or given is None or expected is None:
            return None
        return ScenarioCase(name, given, expected, block.source)

    def _given(self, block: Fields) -> Mapping[str, object] | None:
        return _plain_map(block, "given", KEYS, "input")

    def _expected(self, block: Fields) -> Expected | None:
        node = block.node("expect")
        inner = Fields.of(node, "'expect'", block.problems) if node else None
        if inner is None:
            return None
        inner.only(_EXPECTS)
        if not inner.values:
            hint = f"Say at least one of {listed(_EXPECTS)}."
            message = "'expect' is empty."
            block.problems.add(message, block.at("expect"), hint, lint="empty-value")
        actions = inner.words("actions") if "actions" in inner else None
        for action in actions or ():
            self._known(action, self._actions(), "action", inner.at("actions"))
        return Expected(
            verdict=inner.choice("verdict", self._values(_VERDICT)),
            first=inner.choice("first", (*self._actions(), "none")),
            change=_plain_map(inner, "change", KEYS, "input"),
            actions=actions,
            changes=self._changes(inner),
            notes=self._rules(inner, "notes") if "notes" in inner else None,
            fires=self._rules(inner, "fires"),
            silent=self._rules(inner, "silent"),
            facts=self._facts(inner),
        )

    def _values(self, fact: str) -> Sequence[str]:
        found = self.reading.vocabulary.facts.get(fact)
        return found.values if found else ()

    def _actions(self) -> Sequence[str]:
        return self._values(ACTION_FACT)

    def _known(self, name: str, known: Collection[str], what: str, source: Source) -> None:
        if name not in known:
            hint = guess(name, known)
            message = f"unknown {what} '{name}'."
            lint = "unknown-rule" if what == "rule" else "unknown-word"
            self.reading.problems.add(message, source, hint, lint=lint)

    def _rules(self, inner: Fields, key: str) -> tuple[str, ...]:
        names = inner.words(key)
        for name in names:
            self._known(name, self.rules, "rule", inner.at(key))
        return names

    def _changes(self, inner: Fields) -> Mapping[str, Mapping[str, object]]:
        node = inner.node("changes")
        block = Fields.of(node, "'changes'", inner.problems) if node else None
        found = {}
        for action in block.values if block else ():
            assert block is not None
            self._known(action, self._actions(), "action", block.at(action))
            change = _plain_map(block, action, KEYS, "input")
            if change is not None:
                found[action] = change
        return found

    def _facts(self, inner: Fields) -> tuple[Test, ...]:
        node = inner.node("facts")
        block = Fields.of(node, "'facts'", inner.problems) if node else None
        found: list[Test] = []
        for name, value in block.values.items() if block else ():
            assert block is not None
            fact = self.reading.fact(name, block.at(name))
            if fact is not None:
                found += read_condition(fact, _with_verb(value), self.reading)
        return tuple(found)


def _with_verb(node: Node) -> Node:
    """Read a bare value as ``is VALUE``."""
    text = " ".join(node.text.split())
    if not text or isinstance(node.value, list | Mapping) or split_verb(text):
        return node
    said = f"is {'yes' if node.value else 'no'}" if isinstance(node.value, bool) else f"is {text}"
    return Node(said, node.source, said)


def _plain_map(
    block: Fields, key: str, known: Collection[str], what: str
) -> Mapping[str, object] | None:
    node = block.node(key)
    inner = Fields.of(node, f"'{key}'", block.problems) if node else None
    if node is None or inner is None:
        return None
    if not inner.values:
        hint = f"State at least one {what}."
        block.problems.add(f"'{key}' is empty.", block.at(key), hint, lint="empty-value")
    for name, value in inner.values.items():
        if name not in known:
            hint = guess(name, known) or f"Known: {', '.join(known)}."
            edit = correction(name, hint)
            message = f"unknown {what} '{name}'."
            block.problems.add(message, inner.at(name), hint, lint="unknown-input", edit=edit)
        elif isinstance(value.value, list | Mapping) or value.value is None:
            message = f"the {what} '{name}' has no plain value."
            block.problems.add(message, inner.at(name), lint="wrong-shape")
    return cast("Mapping[str, object]", node.plain())


def request_line(given: Mapping[str, object]) -> str:
    """Write a request as flags of ``advisor advise``, ready to paste."""
    return " ".join(_flag(key, value) for key, value in given.items())


def _flag(key: str, value: object) -> str:
    setting = SETTINGS[key]
    name, unit = f"--{setting.typed_name.replace('_', '-')}", setting.unit.replace("GiB", "GB")
    if isinstance(value, bool):
        return f"{name} {'on' if value else 'off'}"
    text = f"{value:g}{unit}" if isinstance(value, float) else f"{value}{unit}"
    return f'{name} "{text}"' if not _plain(text) else f"{name} {text}"


def _plain(text: str) -> bool:
    return all(c.isalnum() or c in "-_.:/" for c in text)


def inline_map(given: Mapping[str, object]) -> str:
    """Write a mapping as YAML on one line: ``{gpu: RTX 4090, context: 4096}``."""
    return "{" + ", ".join(f"{key}: {inline(value)}" for key, value in given.items()) + "}"


def inline(value: object) -> str:
    """Write one value as YAML, in quotes where it needs them."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:g}"
    text = str(value)
    if not isinstance(value, str) or (_bare(text) and not _looks_typed(text)):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _bare(text: str) -> bool:
    inside = all(c.isalnum() or c in " -_./+" for c in text)
    return inside and text[:1].isalnum() and text == text.strip()


def _looks_typed(text: str) -> bool:
    if text.casefold() in {"yes", "no", "true", "false", "on", "off", "null", "none"}:
        return True
    try:
        float(text.replace("_", ""))
    except ValueError:
        return False
    return True
