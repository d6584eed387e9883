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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count
from operator import getitem
from types import NoneType
from typing import Protocol, cast

from advisor.engine.base import FactValue, OptionFacts, Outcome
from advisor.engine.compile import CompiledRule, CompiledRules, group_of
from advisor.engine.kinds import of_option
from advisor.engine.network import (
    PRESENT_OPTION,
    UNIT,
    WARM,
    EngineRule,
    chunked,
    engine_rules,
    ruleset_text,
)
from advisor.engine.outcome import check_keys, settle
from advisor.engine.properties import FactText, Names, fact_texts
from advisor.errors import EngineError

_DUPLICATE = 2
_WARM_FACT = f'{{"id":"{WARM}","sid":"0","{WARM}":1}}'
_WARM_START = f'{{"{WARM}"'
_numbers = count()


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
        texts = fact_texts(compiled, names)
        conclusions = _conclusions(compiled, texts)
        module = _c_module()
        self._compiled = compiled
        self._writer = _Writer(compiled, texts)
        self._sets = [_RuleSet(module, part, conclusions) for part in chunked(rules)]
        self._lock = threading.Lock()

    def run(self, facts: Mapping[str, FactValue], options: Sequence[OptionFacts]) -> Outcome:
        """Fire every rule that holds, see ``base.Engine``."""
        self._compiled.check_names(facts)
        check_keys(options)
        batch = [*self._writer.scenario(facts), *self._writer.options(options)]
        keys = [option.key for option in options]
        fired: set[tuple[str, str]] = set()
        concluded: dict[str, str] = {}
        with self._lock:
            for rules in self._sets:
                rules.run(batch, keys, fired, concluded)
        return settle(self._compiled, fired)


class _Writer:
    """Writes facts as JSON: one per scenario group and one per option, only what rules read."""

    def __init__(self, compiled: CompiledRules, texts: Mapping[str, FactText]) -> None:
        read = {fact: text for fact, text in texts.items() if fact not in compiled.levels}
        self._scenario = {f: (group_of(f, ()), t) for f, t in read.items() if not of_option(f)}
        option = {fact: text for fact, text in read.items() if of_option(fact)}
        self._option, self._texts = tuple(option), tuple(option.values())
        self._pieces = [text.pieces for text in self._texts]
        self._exact = [text.exact for text in self._texts]
        self._as_expected: set[tuple[type, ...]] = set()
        """Classes of all values of an option, where each may be looked up."""
        self._groups = sorted({group for group, _ in self._scenario.values()})
        self._unknown_scenario = [
            (fact, group, text.unknown)
            for fact, (group, text) in self._scenario.items()
            if text.unknown
        ]

    def scenario(self, facts: Mapping[str, FactValue]) -> Iterator[str]:
        """Write every group, also one of which nothing is known."""
        written = dict.fromkeys(self._groups, "")
        for name, value in facts.items():
            if name in self._scenario:
                group, text = self._scenario[name]
                same = value.__class__ is text.exact
                written[group] += text.pieces[value] if same else text.text(value)
        for name, group, unknown in self._unknown_scenario:
            if name not in facts:
                written[group] += unknown
        for index, group in enumerate(self._groups):
            yield f'{{"id":"g{index}","sid":"0",{written[group]}"{UNIT}":1}}'

    def options(self, options: Sequence[OptionFacts]) -> Iterator[str]:
        """Write one fact per option; its id is its place in the sequence."""
        for index, option in enumerate(options):
            values = [*map(option.values.get, self._option)]
            if self._looked_up(values):
                written = "".join(map(getitem, self._pieces, values))
            else:
                written = "".join(map(FactText.text, self._texts, values))
            yield f'{{"id":"p{index}","sid":"0","{PRESENT_OPTION}":1,{written}"{UNIT}":1}}'

    def _looked_up(self, values: Sequence[FactValue | None]) -> bool:
        """Whether every value is unknown or of the fact's own class, by which pieces are kept."""
        classes = (*map(type, values),)
        if classes in self._as_expected:
            return True
        pairs = zip(classes, self._exact, strict=True)
        expected = all(known is NoneType or known is exact for known, exact in pairs)
        if expected:
            self._as_expected.add(classes)
        return expected


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
        weakref.finalize(self, module.delete_ruleset, self._handle).atexit = False
        self.run([], [], set(), {})

    def run(
        self,
        batch: Sequence[str],
        keys: Sequence[str],
        fired: set[tuple[str, str]],
        concluded: dict[str, str],
    ) -> None:
        """Assert a scenario and fire to the fixed point.

        Args:
            batch: Facts as JSON.
            keys: Option keys, by the number in the option's id.
            fired: Firings are added to it.
            concluded: Facts that earlier rule sets concluded, and then these, as JSON.
        """
        try:
            self._fire([*batch, *concluded.values(), _WARM_FACT], keys, fired, concluded)
        except self._module.error as error:
            raise EngineError(f"durable-rules failed: {error}") from error
        finally:
            self._forget()

    def _fire(
        self,
        batch: Sequence[str],
        keys: Sequence[str],
        fired: set[tuple[str, str]],
        concluded: dict[str, str],
    ) -> None:
        module, handle = self._module, self._handle
        code, state = module.assert_facts(handle, f"[{','.join(batch)}]")
        if code == _DUPLICATE:
            raise EngineError("durable-rules met a fact twice")
        started = module.start_action_for_state(handle, state)
        message = started[1] if started else None
        most = 1 + len(self._rules) + self._per_option * len(keys)
        complete = False
        while message is not None:
            most -= 1
            if most < 0:
                raise EngineError("durable-rules fires without end")
            if message.startswith(_WARM_START):
                complete = True
            else:
                self._note(message, keys, fired, concluded)
            message = module.complete_and_start_action(handle, state)
        if not complete:
            raise EngineError("durable-rules did not read every fact")

    def _note(
        self,
        message: str,
        keys: Sequence[str],
        fired: set[tuple[str, str]],
        concluded: dict[str, str],
    ) -> None:
        """Record a firing and assert what it concludes for the first time."""
        rule = self._rules[message[2 : message.index('"', 2)]]
        key = ""
        if rule.per_option:
            start = message.index('"id":"p') + 7
            key = keys[int(message[start : message.index('"', start)])]
        fired.add((rule.id, key))
        for fact, value in rule.conclusions:
            text = self._conclusions.get((fact, value))
            if text is not None and fact not in concluded:
                concluded[fact] = text
                self._module.assert_fact(self._handle, text)

    def _forget(self) -> None:
        with contextlib.suppress(self._module.error):
            self._module.delete_state(self._handle, "0")
