"""Both engines on random rule sets; run as a child process, so that a crash is a failure.

    python differential.py objects|yaml FIRST LAST

prints how many rule sets were compared and how many firings and contradictions they gave.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from advisor.errors import RuleFileError, UserError
from advisor.rules.engine.base import ReferenceEngine
from advisor.rules.engine.compiler import compile_rules
from advisor.rules.engine.durable import DurableEngine
from advisor.rules.language.model import RuleSet
from tests.engine import random_rules, yaml_rules
from tests.parsed_rules import parse_rules


def compare(rules: RuleSet, rng: random.Random, seen: Counter[str]) -> None:
    """Compare on two situations, the second engine with everything shuffled."""
    shuffled = RuleSet(tuple(random_rules.shuffled(rng, list(rules.rules))), "")
    compiled = compile_rules(rules)
    reference, durable = ReferenceEngine(compiled), DurableEngine(compiled)
    again = DurableEngine(compile_rules(shuffled))
    for engine in (durable, again):
        facts, options = random_rules.situation(rng)
        expected = random_rules.answer(reference, facts, options)
        if engine is again:
            facts = dict(random_rules.shuffled(rng, list(facts.items())))
            options = random_rules.shuffled(rng, options)
        found = random_rules.answer(engine, facts, options)
        if found != expected:
            raise AssertionError(f"{rules}\n{facts}\n{options}\n{expected}\n{found}")
        if isinstance(expected, str):
            seen["contradictions"] += 1
        else:
            seen["firings"] += len(expected.firings)
            seen["chained"] += any(fact.startswith("level2") for fact in expected.concluded)
    seen["compared"] += 1


def from_objects(seed: int, seen: Counter[str]) -> None:
    """Compare a rule set; one that reads more groups than allowed counts as refused."""
    rng = random.Random(seed)
    rules = random_rules.rule_set(rng, most=10)
    try:
        compile_rules(rules)
    except RuleFileError:
        seen["refused"] += 1
    else:
        compare(rules, rng, seen)


def from_yaml(seed: int, seen: Counter[str]) -> None:
    """Compare a rule set that went through the parser with the same one that did not."""
    rng = random.Random(seed)
    rules = yaml_rules.writable(random_rules.rule_set(rng, most=5))
    text = yaml_rules.text(rules).encode()
    try:
        parsed = RuleSet(parse_rules({"r.yaml": text}, yaml_rules.vocabulary()), "")
    except UserError:
        seen["refused"] += 1
        return
    facts, options = random_rules.situation(rng)
    plain = random_rules.answer(ReferenceEngine(compile_rules(rules)), facts, options)
    read = random_rules.answer(ReferenceEngine(compile_rules(parsed)), facts, options)
    assert isinstance(plain, str) or plain == read, text.decode()
    compare(parsed, rng, seen)


def main(kind: str, first: int, last: int) -> None:
    seen: Counter[str] = Counter()
    for seed in range(first, last):
        if kind == "yaml":
            from_yaml(seed, seen)
        else:
            from_objects(seed, seen)
    sys.stdout.write(" ".join(f"{name}={count}" for name, count in sorted(seen.items())))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
