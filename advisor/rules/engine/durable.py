"""durable-rules, driven through its C module: the forward-chaining engine.

The only module that imports ``durable_rules_engine``. The engine has memory and logic faults
outside a narrow use, listed in docs/decisions/0001-engine.md; ``network`` and ``properties``
write nothing but that use, and this module runs it: one session, deleted after every run; a rule
that fires in every run, because deleting a session in which nothing fired frees an
uninitialised pointer; no host, no timers, no callbacks.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
import threading
import weakref
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import count
from typing import Protocol, cast

from advisor.errors import EngineError
from advisor.knowledge.vocabulary import FactValue
from advisor.rules.engine.base import OptionFacts, Outcome, Writer, check_keys, option_fact, settle
from advisor.rules.engine.compiler import CompiledRule, CompiledRules
from advisor.rules.engine.network import (
    UNIT,
    WARM,
    EngineRule,
    chunked,
    engine_rules,
    named_values,
    rules_for,
    ruleset_text,
    telling_fact,
)
from advisor.rules.engine.properties import FactText, Names

_DUPLICATE = 2
_WARM_FACT = f'{{"id":"{WARM}","sid":"0","{WARM}":1}}'
_WARM_START = f'{{"{WARM}"'
_numbers = count()
MOST_KEPT = 2_048
"""What-ifs of one kind whose rules are kept; all are dropped together when there are more."""
_OTHER = "\0"
"""Stands for every kind of what-if that no rule names."""
_SCENARIO = ""
"""Stands for the scenario where the text of a what-if could."""


class _CModule(Protocol):
    error: type[Exception]

    def create_ruleset(self, name: str, rules: str) -> int: ...
    def delete_ruleset(self, handle: int) -> None: ...
    def assert_fact(self, handle: int, fact: str) -> tuple[int, int]: ...
    def assert_facts(self, handle: int, facts: str) -> tuple[int, int]: ...
    def start_action_for_state(self, handle: int, state: int) -> tuple[str, str] | None: ...
    def complete_and_start_action(self, handle: int, state: int) -> str | None: ...
    def delete_state(self, handle: int, sid: str) -> None: ...


def available() -> bool:
    """Whether the C module can be imported here."""
    try:
        _c_module()
    except (ImportError, OSError):
        return False
    return True


def _c_module() -> _CModule:
    """Import the C module, binding its symbols lazily.

    It names a function that Python 3.13 no longer has, and never calls it here.
    """
    if not hasattr(sys, "setdlopenflags"):
        return cast("_CModule", importlib.import_module("durable_rules_engine"))
    flags = sys.getdlopenflags()
    sys.setdlopenflags(os.RTLD_LAZY)
    try:
        return cast("_CModule", importlib.import_module("durable_rules_engine"))
    finally:
        sys.setdlopenflags(flags)


class DurableEngine:
    """Forward chaining in the C engine, see ``base.Engine``; safe to share between threads.

    Rules on the scenario run first, then those on what-ifs, each kind of what-if with the rules
    that may hold of it. What-ifs never meet each other, and values that no rule can tell apart are
    written alike. So what held of a what-if holds of the next one with the same text, beside the
    same text of the scenario. Only where a rule concludes something from a what-if do all rules
    run together, every time.

    Args:
        compiled: The rules; they are split over several rule sets where the engine's limits ask
            for it, in order of dependency, so that one pass over the sets reaches the fixed point.

    Raises:
        RuleFileError: One rule alone is beyond the engine's limits.
        ImportError: The C module cannot be imported, see ``available``.
    """

    name = "durable-rules"

    def __init__(self, compiled: CompiledRules) -> None:
        names = Names()
        rules = engine_rules(compiled, names)
        module = _c_module()
        apart = not any(rule.per_option and rule.conclusions for rule in compiled.rules)
        first = [r for r in rules if apart and not r.rule.per_option]
        second = [r for r in rules if not apart or r.rule.per_option]
        self._compiled = compiled
        make = partial(_Stage, module, compiled, names)
        self._scenario = make(first)
        self._whatifs = _Kinds(partial(make, keeps=apart), second, apart=apart)
        self._lock = threading.Lock()

    def run(self, facts: Mapping[str, FactValue], options: Sequence[OptionFacts]) -> Outcome:
        """Fire every rule that holds, see ``base.Engine``."""
        self._compiled.check_names(facts)
        check_keys(options)
        with self._lock:
            first, _ = self._scenario.held(*self._scenario.writer.scenario(facts))
            known = _concluded_by(first)
            fired = {(rule.id, "") for rule in first}
            for stage, those in self._whatifs.apart(options):
                fired.update(_fired(stage, facts, known, those))
        return settle(self._compiled, fired)


def _concluded_by(rules: Iterable[CompiledRule]) -> Mapping[str, FactValue]:
    values: dict[str, FactValue] = {}
    for rule in rules:
        for fact, value in rule.conclusions:
            values.setdefault(fact, value)
    return values


def _fired(
    stage: _Stage,
    facts: Mapping[str, FactValue],
    known: Mapping[str, FactValue],
    options: Sequence[OptionFacts],
) -> Iterator[tuple[str, str]]:
    """Rule and option of everything that fires for what-ifs of one kind."""
    keys: dict[str, list[str]] = {}
    for option, text in zip(options, stage.writer.options(options), strict=True):
        keys.setdefault(text, []).append(option.key)
    given, key = stage.writer.scenario(facts)
    concluded = stage.concluded(known)
    alone, each = stage.held((*given, *concluded), (key, *concluded), [*keys])
    yield from ((rule.id, "") for rule in alone)
    for rules, alike in zip(each, keys.values(), strict=True):
        yield from ((rule.id, key) for rule in rules for key in alike)


class _Kinds:
    """The rules on what-ifs, by the kind of what-if; each kind's are made ready when it is met."""

    def __init__(
        self,
        make: Callable[[Sequence[EngineRule]], _Stage],
        rules: Sequence[EngineRule],
        *,
        apart: bool,
    ) -> None:
        chunked(rules)  # what no rule set can hold is told now, not when its kind is first met
        self._fact = telling_fact(rules) if apart else None
        self._named = named_values(rules, self._fact) if self._fact else frozenset()
        self._rules = rules
        self._make = make
        self.stages: dict[FactValue | None, _Stage] = {}

    def apart(
        self, options: Sequence[OptionFacts]
    ) -> Iterable[tuple[_Stage, Sequence[OptionFacts]]]:
        """What-ifs with the rules for them; without a fact that tells them apart, all in one."""
        if self._fact is None:
            return [(self._of(None), options)]
        kinds: dict[FactValue | None, list[OptionFacts]] = {}
        for option in options:
            kinds.setdefault(option.values.get(self._fact), []).append(option)
        return [(self._of(value), those) for value, those in kinds.items()]

    def _of(self, value: FactValue | None) -> _Stage:
        kind = value if value is None or value in self._named else _OTHER
        found = self.stages.get(kind)
        if found is None:
            fact, rules = self._fact, self._rules
            found = self._make(rules_for(rules, fact, kind) if fact else rules)
            self.stages[kind] = found
        return found


_Held = tuple[CompiledRule, ...]
"""The rules that hold of one text, by id."""


class _Stage:
    """Rules that are read together, on scenarios or on what-ifs, with what held before."""

    def __init__(
        self,
        module: _CModule,
        compiled: CompiledRules,
        names: Names,
        rules: Sequence[EngineRule],
        *,
        keeps: bool = True,
    ) -> None:
        ours = {rule.rule.id: rule.rule for rule in rules}
        self.writer = Writer(compiled, names, [t for rule in ours.values() for t in rule.tests])
        self._conclusions = _conclusions(compiled, self.writer.texts)
        self._sets = [_RuleSet(module, part, self._conclusions) for part in chunked(rules)]
        self._most = MOST_KEPT if keeps else 0
        self._kept: dict[Hashable, dict[str, _Held]] = {}
        self._size = 0

    def concluded(self, known: Mapping[str, FactValue]) -> list[str]:
        """Write what was concluded, as far as a rule of this stage reads it."""
        found = (self._conclusions.get(pair) for pair in known.items())
        return sorted(text for text in found if text)

    def held(
        self, given: Sequence[str], key: Hashable, texts: Sequence[str] = ()
    ) -> tuple[_Held, Sequence[_Held]]:
        """Say which rules hold of a scenario and, beside it, of every what-if.

        Args:
            given: The facts of the scenario.
            key: The same for all of which the same rules hold.
            texts: What-ifs.
        """
        known = self._known(key)
        new = [text for text in texts if text not in known]
        if new or _SCENARIO not in known:
            *each, alone = self._run(given, new)
            known.update(zip(new, each, strict=True))
            known[_SCENARIO] = alone
            self._size += 1 + len(new)
        return known[_SCENARIO], [known[text] for text in texts]

    def _known(self, key: Hashable) -> dict[str, _Held]:
        if self._size > self._most:
            self._kept.clear()
            self._size = 0
        return self._kept.setdefault(key, {}) if self._most else {}

    def _run(self, given: Sequence[str], texts: Sequence[str]) -> list[_Held]:
        """Fire all rules; the last is what holds of the scenario."""
        batch = [*given, *(option_fact(place, text) for place, text in enumerate(texts))]
        fired: list[dict[str, CompiledRule]] = [{} for _ in (*texts, _SCENARIO)]
        concluded: dict[str, str] = {}
        for rules in self._sets:
            rules.run(batch, fired, concluded)
        return [tuple(rules[id_] for id_ in sorted(rules)) for rules in fired]


def _conclusions(
    compiled: CompiledRules, texts: Mapping[str, FactText]
) -> Mapping[tuple[str, FactValue], str]:
    """Write every fact that some rule may conclude and some rule reads."""
    pairs = {pair for rule in compiled.rules for pair in rule.conclusions if pair[0] in texts}
    order = sorted(pairs, key=lambda pair: (pair[0], str(pair[1])))
    return {
        (fact, value): f'{{"id":"c{index}","sid":"0",{texts[fact].text(value)}"{UNIT}":1}}'
        for index, (fact, value) in enumerate(order)
    }


class _RuleSet:
    """One rule set inside the C module."""

    def __init__(
        self,
        module: _CModule,
        rules: Iterable[EngineRule],
        conclusions: Mapping[tuple[str, FactValue], str],
    ) -> None:
        self._module = module
        by_name = {f"r{index}": rule for index, rule in enumerate(rules)}
        self._rules: dict[str, CompiledRule] = {name: r.rule for name, r in by_name.items()}
        self._conclusions = conclusions
        self._per_option = sum(rule.per_option for rule in self._rules.values())
        name = f"advisor-{os.getpid()}-{next(_numbers)}"
        self._handle = module.create_ruleset(name, ruleset_text(by_name))
        self._begin()
        weakref.finalize(self, module.delete_ruleset, self._handle).atexit = False

    def _begin(self) -> None:
        """Fire once; where that is interrupted, nothing is deleted, as nothing may have fired."""
        try:
            self._fire([_WARM_FACT], [{}], {})
        except self._module.error as error:
            raise EngineError(f"durable-rules failed: {error}") from error
        self._forget()

    def run(
        self,
        batch: Sequence[str],
        fired: Sequence[dict[str, CompiledRule]],
        concluded: dict[str, str],
    ) -> None:
        """Assert a scenario and fire to the fixed point.

        Args:
            batch: Facts as JSON.
            fired: For every what-if, by the number in its id, the rules that fire, by their id;
                those that read no what-if are added to the last.
            concluded: Facts that earlier rule sets concluded, and then these, as JSON.
        """
        try:
            self._fire([*batch, *concluded.values(), _WARM_FACT], fired, concluded)
        except self._module.error as error:
            raise EngineError(f"durable-rules failed: {error}") from error
        finally:
            self._forget()

    def _fire(
        self,
        batch: Sequence[str],
        fired: Sequence[dict[str, CompiledRule]],
        concluded: dict[str, str],
    ) -> None:
        module, handle = self._module, self._handle
        code, state = module.assert_facts(handle, f"[{','.join(batch)}]")
        if code == _DUPLICATE:
            raise EngineError("durable-rules met a fact twice")
        started = module.start_action_for_state(handle, state)
        message = started[1] if started else None
        most = 1 + len(self._rules) + self._per_option * len(fired)
        complete = False
        while message is not None:
            most -= 1
            if most < 0:
                raise EngineError("durable-rules fires without end")
            if message.startswith(_WARM_START):
                complete = True
            else:
                self._note(message, fired, concluded)
            message = module.complete_and_start_action(handle, state)
        if not complete:
            raise EngineError("durable-rules did not read every fact")

    def _note(
        self,
        message: str,
        fired: Sequence[dict[str, CompiledRule]],
        concluded: dict[str, str],
    ) -> None:
        """Record a firing and assert what it concludes for the first time."""
        rule = self._rules[message[2 : message.index('"', 2)]]
        place = -1
        if rule.per_option:
            start = message.index('"id":"p') + 7
            place = int(message[start : message.index('"', start)])
        fired[place][rule.id] = rule
        for fact, value in rule.conclusions:
            text = self._conclusions.get((fact, value))
            if text is not None and fact not in concluded:
                concluded[fact] = text
                self._module.assert_fact(self._handle, text)

    def _forget(self) -> None:
        with contextlib.suppress(self._module.error):
            self._module.delete_state(self._handle, "0")
