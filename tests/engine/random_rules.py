"""Random rule sets and situations: chains of four, any/not, known/unknown, joins, options."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import TypeVar

from advisor.errors import RuleFileError
from advisor.knowledge.vocabulary import FactValue
from advisor.rules import Test, Verb, When
from advisor.rules.engine.base import Engine, OptionFacts, Outcome
from advisor.rules.language.model import Rule, RuleSet

NUMBERS = tuple(f"{group}.n{k}" for group in ("gpu", "memory", "speed") for k in range(3))
TEXTS = ("gpu.vendor", "memory.type", "request.prefer", "request.format")
FLAGS = ("gpu.bf16", "request.offload", "memory.unified")
OPTION_NUMBERS = ("option.n0", "option.n1", "option.n2")
OPTION_TEXTS = ("option.family", "option.format")
OPTION_FLAGS = ("option.fits", "option.native")
CONCLUDED = tuple(f"level{depth}.c{k}" for depth in range(4) for k in range(2))
"""Texts; rules that conclude one of a level read only those of lower levels."""
CONCLUDED_NUMBERS = ("score0.value", "score2.value")

VALUES: tuple[float, ...] = (0.0, -0.0, 1, 2, 2.5, -3.0, 1e-5, 1e16, 1e22, 0.1 + 0.2, 0.3, 7e9)
LIMITS = (0.0, 1.0, 2.0, 2.5, -3.0, 0.3, 0.1 + 0.2, 7e9, 1e-4)
WORDS = ("", "a", "b", "ab", 'say "hi"', "naïve", "back\\slash", "a b", "1", "true")
T = TypeVar("T")
ORDERING: tuple[Verb, ...] = ("above", "at least", "below", "at most")


def situation(rng: random.Random) -> tuple[dict[str, FactValue], list[OptionFacts]]:
    facts = _facts(rng, NUMBERS, TEXTS, FLAGS)
    count = rng.choice((0, 1, 2, 5))
    options = [
        OptionFacts(f"o{k}", _facts(rng, OPTION_NUMBERS, OPTION_TEXTS, OPTION_FLAGS))
        for k in range(count)
    ]
    return facts, options


def _facts(
    rng: random.Random, numbers: tuple[str, ...], texts: tuple[str, ...], flags: tuple[str, ...]
) -> dict[str, FactValue]:
    facts: dict[str, FactValue] = {}
    for name in shuffled(rng, [*numbers, *texts, *flags]):
        if rng.random() < 0.8:
            pool: tuple[FactValue, ...] = VALUES if name in numbers else WORDS
            facts[name] = rng.choice((True, False)) if name in flags else rng.choice(pool)
    return facts


def rule_set(rng: random.Random, most: int = 14) -> RuleSet:
    rules = [_rule(rng, f"rule-{k}") for k in range(rng.randint(1, most))]
    return RuleSet(tuple(rules), "")


def _rule(rng: random.Random, name: str) -> Rule:
    depth = rng.randint(0, 4)
    when = _when(rng, depth, per_option=rng.random() < 0.5, nested=0)
    if rng.random() < 0.55 and depth < 4:
        fact, value = _conclusion(rng, depth)
        return Rule(name, "", when, conclude={fact: value})
    kind = rng.choice(("action", "veto", "note"))
    return Rule(
        name,
        "",
        when,
        action="quantize" if kind == "action" else None,
        veto="no" if kind == "veto" else None,
        note="so" if kind == "note" else None,
    )


def _conclusion(rng: random.Random, depth: int) -> tuple[str, FactValue]:
    number = f"score{depth}.value"
    if number in CONCLUDED_NUMBERS and rng.random() < 0.3:
        return number, rng.choice(LIMITS[:2])
    return f"level{depth}.c{rng.randint(0, 1)}", "a" if rng.random() < 0.9 else "b"


def _when(rng: random.Random, depth: int, *, per_option: bool, nested: int) -> When:
    low = 0 if nested == 0 and rng.random() < 0.05 else 1
    tests = tuple(
        _test(rng, depth, per_option=per_option) for _ in range(rng.randint(low, 3 - nested))
    )
    if nested:
        return When(tests)
    alternatives: tuple[tuple[When, ...], ...] = ()
    if rng.random() < 0.3:
        blocks = rng.randint(1, 3)
        alternatives = (
            tuple(_when(rng, depth, per_option=per_option, nested=1) for _ in range(blocks)),
        )
    none: tuple[When, ...] = ()
    if rng.random() < 0.25:
        none = (_when(rng, 0, per_option=per_option, nested=1),)
    return When(tests, alternatives, none)


def _test(rng: random.Random, depth: int, *, per_option: bool) -> Test:
    own = per_option and rng.random() < 0.6
    if depth and not own and rng.random() < 0.5:
        return _concluded_test(rng, depth)
    numbers = OPTION_NUMBERS if own else NUMBERS
    texts = OPTION_TEXTS if own else TEXTS
    flags = OPTION_FLAGS if own else FLAGS
    choice = rng.random()
    if choice < 0.15:
        known: tuple[Verb, ...] = ("is known", "is unknown")
        return Test(rng.choice(numbers + texts + flags), rng.choice(known))
    if choice < 0.35:
        return Test(rng.choice(numbers), rng.choice(ORDERING), value=rng.choice(LIMITS))
    if choice < 0.55:
        return _join(rng, own=own)
    equal: tuple[Verb, ...] = ("is", "is not")
    if choice < 0.62:
        return Test(rng.choice(numbers), rng.choice(equal), value=rng.choice(LIMITS))
    if choice < 0.72:
        return Test(rng.choice(flags), rng.choice(equal), value=rng.choice((True, False)))
    if choice < 0.82:
        return Test(rng.choice(texts), "one of", value=tuple(rng.sample(WORDS, 3)))
    return Test(rng.choice(texts), rng.choice(equal), value=rng.choice(WORDS))


def _concluded_test(rng: random.Random, depth: int) -> Test:
    below = tuple(f"level{d}.c{k}" for d in range(depth) for k in range(2))
    scores = tuple(s for s in CONCLUDED_NUMBERS if int(s[5]) < depth)
    if rng.random() < 0.2:
        return Test(rng.choice(scores), rng.choice(ORDERING), other=rng.choice(NUMBERS))
    equal: tuple[Verb, ...] = ("is", "is not")
    if rng.random() < 0.15:
        return Test(rng.choice(below), rng.choice(equal), other=rng.choice(TEXTS))
    if rng.random() < 0.1:
        return Test(rng.choice(below), "is known")
    return Test(rng.choice(below), rng.choice(equal), value="a" if rng.random() < 0.8 else "b")


def _join(rng: random.Random, *, own: bool) -> Test:
    equal: tuple[Verb, ...] = ("is", "is not")
    if rng.random() < 0.6:
        left = rng.choice(OPTION_NUMBERS if own else NUMBERS)
        other = rng.choice(
            tuple(n for n in (*NUMBERS, *(OPTION_NUMBERS if own else ())) if n != left)
        )
        verb = rng.choice(ORDERING if rng.random() < 0.7 else equal)
        return _either_way(rng, Test(left, verb, other=other))
    if rng.random() < 0.7:
        texts = TEXTS + OPTION_TEXTS if own else TEXTS
        left, other = rng.sample(texts, 2)
        return Test(left, rng.choice(equal), other=other)
    left, other = rng.sample(FLAGS + OPTION_FLAGS if own else FLAGS, 2)
    return Test(left, rng.choice(equal), other=other)


def _either_way(rng: random.Random, test: Test) -> Test:
    assert test.other is not None
    if rng.random() < 0.5:
        return test
    mirrored: Mapping[Verb, Verb] = {
        "above": "below",
        "below": "above",
        "at least": "at most",
        "at most": "at least",
    }
    return Test(test.other, mirrored.get(test.verb, test.verb), other=test.fact)


def shuffled(rng: random.Random, items: list[T]) -> list[T]:
    return rng.sample(items, len(items))


def answer(
    engine: Engine, facts: Mapping[str, FactValue], options: list[OptionFacts]
) -> Outcome | str:
    """The outcome, or the contradiction that was reported."""
    try:
        return engine.run(facts, options)
    except RuleFileError as error:
        return str(error)
