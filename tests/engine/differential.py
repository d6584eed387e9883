"""Both engines on random rule sets; run as a child process, so that a crash is a failure."""

from __future__ import annotations

import random
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import random_rules

from advisor.engine.compile import compile_rules
from advisor.engine.durable import DurableEngine
from advisor.engine.reference import ReferenceEngine
from advisor.errors import RuleFileError
from advisor.rulefile.model import RuleSet


def compare(seed: int) -> bool:
    """Compare one rule set on two situations; False where the rules are refused as circular."""
    rng = random.Random(seed)
    rules = random_rules.rule_set(rng)
    try:
        compiled = compile_rules(rules)
    except RuleFileError as e:
        if "circle" not in e.message:
            print(e)
        return False
    shuffled = RuleSet(tuple(random_rules.shuffled(rng, list(rules.rules))), "")
    durable, again = DurableEngine(compiled), DurableEngine(compile_rules(shuffled))
    reference = ReferenceEngine(compiled)
    for _ in range(2):
        facts, options = random_rules.situation(rng)
        expected = random_rules.answer(reference, facts, options)
        assert random_rules.answer(durable, facts, options) == expected, seed
        mixed = dict(random_rules.shuffled(rng, list(facts.items())))
        turned = random_rules.shuffled(rng, options)
        assert random_rules.answer(again, mixed, turned) == expected, seed
        global fired, errs
        if len(expected) == 1:
            errs += 1
        else:
            fired += len(expected[0])
    return True


fired = errs = 0

if __name__ == "__main__":
    first, last = map(int, sys.argv[1:])
    print(sum(compare(seed) for seed in range(first, last)), fired, errs)
