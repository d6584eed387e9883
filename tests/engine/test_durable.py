"""The C engine's known faults, each kept away; numbers as in docs/decisions/0001-engine.md."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import random
import re
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from advisor.errors import EngineError, RuleFileError
from advisor.knowledge.vocabulary import FactValue
from advisor.rules import Test, When
from advisor.rules.engine.base import OptionFacts, Outcome, ReferenceEngine
from advisor.rules.engine.compiler import compile_rules
from advisor.rules.engine.durable import DurableEngine, available
from advisor.rules.engine.network import chunked, engine_rules, ruleset_text
from advisor.rules.engine.properties import Names
from advisor.rules.language.model import Rule, RuleSet
from tests.engine import random_rules

pytestmark = pytest.mark.skipif(not available(), reason="durable-rules is not installed")

Facts = dict[str, FactValue]


def note(name: str, *tests: Test, any_of: tuple[When, ...] = ()) -> Rule:
    return Rule(name, "", When(tests, (any_of,) if any_of else ()), note="x")


def both(rules: list[Rule], facts: Facts, options: list[OptionFacts] | None = None) -> Outcome:
    """The outcome, the same from both engines."""
    compiled = compile_rules(RuleSet(tuple(rules), ""))
    found = DurableEngine(compiled).run(facts, options or [])
    assert found == ReferenceEngine(compiled).run(facts, options or [])
    return found


def fired(rules: list[Rule], facts: Facts, options: list[OptionFacts] | None = None) -> list[str]:
    return [firing.rule for firing in both(rules, facts, options).firings]


def texts(rules: RuleSet) -> list[str]:
    made = engine_rules(compile_rules(rules), Names())
    return [ruleset_text({f"r{k}": r for k, r in enumerate(part)}) for part in chunked(made)]


@pytest.mark.parametrize("guard", ["joins", "silent", "memory"])
def test_no_crash_and_no_growth(guard: str) -> None:
    script = Path(__file__).parent / "guards.py"
    environment = {**os.environ, "MALLOC_PERTURB_": "165"}
    done = subprocess.run(
        [sys.executable, str(script), guard],
        capture_output=True, text=True, check=False, timeout=120, env=environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]


def test_every_list_of_joins_ends_in_one_that_holds() -> None:
    """B1, and B2: no condition names id or sid; W16: aliases are those of earlier patterns."""
    joined = 0
    for seed in range(150):
        made = texts(random_rules.rule_set(random.Random(seed)))
        for rule in (rule for text in made for rule in json.loads(text).values()):
            earlier: list[str] = []
            for ((alias, pattern),) in (p.items() for p in rule["all"]):
                path = pattern.get("$and", [pattern])
                found = re.findall(r'\{"(a\d+)": "([a-z]+\d*)"\}', json.dumps(path))
                assert {name for name, _ in found} <= set(earlier)
                assert '"id"' not in json.dumps(path)
                assert '"sid"' not in json.dumps(path)
                assert not re.search(r"\$(or|not|nex|mt|imt|all|any)\b", json.dumps(path))
                if found:
                    joined += 1
                    assert path[-1] == {"u": {earlier[0]: "u"}}
                earlier.append(alias)
    assert joined > 100


@pytest.mark.parametrize("count", [60, 64, 65, 200])
def test_one_fact_may_pass_any_number_of_tests(count: int) -> None:
    """B5: the engine itself stops above 64."""
    rules = [note(f"r{k}", Test("gpu.x", "above", value=float(k))) for k in range(count)]
    assert len(fired(rules, {"gpu.x": 1000.0})) == count
    joins = [
        note(f"r{k}", Test(f"gpu.x{k}", "above", other="host.y"), Test("gpu.a", "is known"))
        for k in range(count)
    ]
    facts: Facts = {f"gpu.x{k}": 2.0 for k in range(count)}
    assert len(fired(joins, {**facts, "gpu.a": 1.0, "host.y": 1.0})) == count


def test_many_rules_may_end_in_the_same_condition() -> None:
    """B6: heap overflow from 256 on in the engine itself."""
    rules = [note(f"r{k}", Test("gpu.name", "is", value="x")) for k in range(300)]
    assert len(fired(rules, {"gpu.name": "x"})) == 300


def test_many_distinct_tests_below_one_condition() -> None:
    """B7: the engine itself hangs from 512 on."""
    rules = [note(f"r{k}", Test("gpu.x", "is", value=float(k + 1))) for k in range(600)]
    assert fired(rules, {"gpu.x": 512.0, "host.z": 1.0}) == ["r511"]


def test_chains_cross_the_rule_sets_that_limits_make() -> None:
    steps = [
        Rule(f"s{k}", "", When((Test(f"s{k}.v" if k else "gpu.x", "above", value=0.5),)),
             conclude={f"s{k + 1}.v": 1.0})
        for k in range(40)
    ]  # fmt: skip
    wide = [note(f"r{k}", Test("gpu.x", "above", value=float(k))) for k in range(100)]
    found = both([*wide, *reversed(steps)], {"gpu.x": 1000.0})
    assert len(found.firings) == 140
    assert len(found.concluded) == 40
    assert len(texts(RuleSet((*wide, *steps), ""))) > 1


def test_alternatives_before_a_join_keep_the_join() -> None:
    """W1: with a nested group before it the engine itself ignores the join."""
    either = (
        When((Test("option.family", "is", value="a"),)),
        When((Test("option.fits", "is", value=True),)),
    )
    rule = note("r", Test("option.x", "above", other="gpu.x"), any_of=either)
    options = [
        OptionFacts("low", {"option.family": "a", "option.fits": True, "option.x": 1.0}),
        OptionFacts("high", {"option.family": "a", "option.fits": True, "option.x": 3.0}),
    ]
    assert [f.option for f in both([rule], {"gpu.x": 2.0}, options).firings] == ["high"]


@pytest.mark.parametrize(
    ("one", "two", "equal"),
    [
        (2, 2.0, True),
        (-0.0, 0.0, True),
        (1.5 * 2, 3, True),
        (0.1 + 0.2, 0.3, False),
        (1e-9, 2e-9, False),
        (1e22, 1e22 + 2**21, False),
        ("", "", True),
        ("a", "a ", False),
        ("é", "é", True),
        ("x" * 70_000, "x" * 70_000, True),
        ("x" * 70_000, "x" * 70_001, False),
        ("1", 1, False),
        ("true", True, False),
        (True, 1, False),
        (False, False, True),
    ],
)
def test_equality_between_facts_is_exact(one: FactValue, two: FactValue, equal: bool) -> None:  # noqa: FBT001
    """W5, W11, W14."""
    rules = [
        note("same", Test("gpu.x", "is", other="host.y")),
        note("different", Test("gpu.x", "is not", other="host.y")),
    ]
    assert fired(rules, {"gpu.x": one, "host.y": two}) == ["same" if equal else "different"]
    inner = [note("same", Test("gpu.x", "is", other="gpu.y"))]
    assert fired(inner, {"gpu.x": one, "gpu.y": two}) == (["same"] if equal else [])


@pytest.mark.parametrize("value", [0.00001, 1e16, 1e22, 5e-324, -1e300, 1.7976931348623157e308])
def test_numbers_the_parser_would_refuse_lose_no_later_fact(value: float) -> None:
    """W6 and W7: such a number ends the batch silently in the engine itself."""
    rules = [
        note("above", Test("a.x", "above", value=0.0)),
        note("later", Test("z.x", "is", value=1.0)),
        note("option", Test("option.x", "above", other="a.x")),
    ]
    options = [OptionFacts("o", {"option.x": value * 0.5}), OptionFacts("p", {"option.x": 1e305})]
    found = fired(rules, {"a.x": value, "z.x": 1.0}, options)
    assert "later" in found
    assert ("above" in found) is (value > 0)


def test_names_with_one_hash_are_kept_apart() -> None:
    """W10: declinate and macallums have the same 32-bit hash."""
    rules = [
        note("one", Test("a.declinate", "above", value=1.0)),
        note("two", Test("a.macallums", "above", value=1.0)),
        note("words", Test("b.x", "is", value="declinate"), Test("option.x", "is", value="a")),
    ]
    assert fired(rules, {"a.declinate": 2.0, "a.macallums": 0.0, "b.x": "macallums"}) == ["one"]
    options = [OptionFacts(key, {"option.x": "a"}) for key in ("declinate", "macallums")]
    assert fired(rules, {"b.x": "declinate"}, options) == ["words", "words"]
    equal = [note("same", Test("a.x", "is", other="b.x"))]
    assert fired(equal, {"a.x": "declinate", "b.x": "macallums"}) == []


def test_a_join_on_an_unknown_fact_hides_nothing_from_other_rules() -> None:
    """W12: the engine itself withholds the fact from all rules that follow."""
    rules = [
        note("a-join", Test("option.x", "above", other="gpu.missing"), Test("gpu.x", "is known")),
        note("b-inner", Test("option.x", "above", other="option.missing")),
        note("c-plain", Test("option.x", "above", value=0.5)),
        note("d-plain", Test("gpu.x", "above", value=0.5)),
        note("e-back", Test("gpu.missing", "below", other="option.x")),
    ]
    options = [OptionFacts("o", {"option.x": 1.0})]
    assert fired(rules, {"gpu.x": 1.0}, options) == ["c-plain", "d-plain"]
    assert len(fired(rules, {"gpu.x": 1.0, "gpu.missing": 0.0}, options)) == 4


def test_priorities_stay_within_an_unsigned_short() -> None:
    """W20: -1 would come last and 65536 first."""
    for text in texts(random_rules.rule_set(random.Random(3))):
        assert all(0 <= rule.get("pri", 0) <= 65535 for rule in json.loads(text).values())


class Faulty:
    """The C module, with one call changed."""

    def __init__(self, name: str, change: Callable[..., object]) -> None:
        self._module = importlib.import_module("durable_rules_engine")
        self._name, self._change = name, change
        self.on = False

    def __getattr__(self, name: str) -> object:
        real = getattr(self._module, name)
        if name != self._name or not self.on:
            return real
        return lambda *args: self._change(real, *args)


def test_an_engine_survives_an_interruption_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(5)
    left = 0

    def interrupt(real: Callable[..., object], *args: object) -> object:
        nonlocal left
        left -= 1
        if left < 0:
            raise KeyboardInterrupt
        return real(*args)

    for call in ("complete_and_start_action", "assert_fact", "start_action_for_state"):
        module = Faulty(call, interrupt)
        monkeypatch.setattr("advisor.rules.engine.durable._c_module", lambda module=module: module)
        for seed in (11, 12, 13):
            compiled = compile_rules(random_rules.rule_set(random.Random(seed), most=8))
            engine, reference = DurableEngine(compiled), ReferenceEngine(compiled)
            for _ in range(15):
                facts, options = random_rules.situation(rng)
                module.on, left = True, rng.randint(0, 6)
                with contextlib.suppress(KeyboardInterrupt, RuleFileError):
                    engine.run(facts, options)
                module.on = False
                expected = random_rules.answer(reference, facts, options)
                assert random_rules.answer(engine, facts, options) == expected


@pytest.mark.parametrize(
    ("call", "change", "said"),
    [
        (
            "assert_facts",
            lambda real, handle, text: real(handle, text.replace('"w":1', '"w":1e-05')),
            "did not read every fact",
        ),
        (
            "assert_facts",
            lambda real, handle, text: real(handle, "[" + text[1:-1] + "," + text[1:]),
            "a fact twice",
        ),
        ("complete_and_start_action", lambda *_: '{"r0":{}}', "fires without end"),
    ],
)
def test_what_the_engine_loses_is_noticed(
    monkeypatch: pytest.MonkeyPatch, call: str, change: Callable[..., object], said: str
) -> None:
    module = Faulty(call, change)
    monkeypatch.setattr("advisor.rules.engine.durable._c_module", lambda: module)
    rules = RuleSet((note("r", Test("gpu.x", "above", value=1.0)),), "")
    engine = DurableEngine(compile_rules(rules))
    module.on = True
    with pytest.raises(EngineError, match=said):
        engine.run({"gpu.x": 2.0}, [])
    module.on = False
    assert len(engine.run({"gpu.x": 2.0}, []).firings) == 1


def test_threads_may_share_an_engine() -> None:
    compiled = compile_rules(random_rules.rule_set(random.Random(21), most=8))
    engine, reference = DurableEngine(compiled), ReferenceEngine(compiled)
    rng = random.Random(2)
    situations = [random_rules.situation(rng) for _ in range(200)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda pair: random_rules.answer(engine, *pair), situations))
    assert found == [random_rules.answer(reference, *pair) for pair in situations]


def test_a_missing_module_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    flags = sys.getdlopenflags()
    monkeypatch.setitem(sys.modules, "durable_rules_engine", None)
    assert not available()
    assert sys.getdlopenflags() == flags
