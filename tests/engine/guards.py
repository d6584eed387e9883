"""What could crash the C engine; run as a child process, so that a crash is a failure.

python guards.py joins|silent|memory
"""

from __future__ import annotations

import random
import resource
import sys
from pathlib import Path

from advisor.rules import Test, Verb, When
from advisor.rules.engine.base import OptionFacts, ReferenceEngine
from advisor.rules.engine.compiler import compile_rules
from advisor.rules.engine.durable import DurableEngine
from advisor.rules.language.model import Rule, RuleSet

ORDERING: tuple[Verb, ...] = ("above", "at least", "below", "at most")


def joins() -> None:
    """2,000 random lists of joins, every one with a last join that fails."""
    rng = random.Random(7)
    for _ in range(400):
        rules = [Rule(f"r{k}", "", When(_failing(rng)), note="x") for k in range(5)]
        compiled = compile_rules(RuleSet(tuple(rules), ""))
        facts = {f"{g}.n{k}": float(rng.randint(0, 3)) for g in "abcz" for k in range(3)}
        facts |= {"y.low": -5.0, "z.high": 5.0}
        options = [OptionFacts("o", {f"option.n{k}": float(rng.randint(0, 3)) for k in range(3)})]
        expected = ReferenceEngine(compiled).run(facts, options)
        assert DurableEngine(compiled).run(facts, options) == expected
        assert not expected.firings


def _failing(rng: random.Random) -> tuple[Test, ...]:
    last = rng.choice(("z", "option"))
    tests = [
        Test(
            f"{last}.n{k}", rng.choice(ORDERING), other=f"{rng.choice('abc')}.n{rng.randint(0, 2)}"
        )
        for k in range(rng.randint(0, 3))
    ]
    return (*tests, Test("z.high", "below", other="y.low"))


def silent() -> None:
    """Sessions in which no rule of ours fires, and engines that come and go."""
    rules = RuleSet((Rule("r", "", When((Test("a.x", "above", value=5.0),)), note="x"),), "")
    compiled = compile_rules(rules)
    for _ in range(300):
        engine = DurableEngine(compiled)
        for value in (0.0, 1.0):
            assert not engine.run({"a.x": value}, []).firings
        assert not engine.run({}, []).firings


def memory() -> None:
    """30,000 scenarios: what is kept of them is bounded, and nothing else stays."""
    offer = (
        Test("fit.state", "is", value="short"),
        Test("option.x", "above", other="gpu.x"),
        Test("option.family", "is", value="a"),
    )
    rules = (
        Rule(
            "state", "", When((Test("gpu.x", "below", value=0.5),)), conclude={"fit.state": "short"}
        ),
        Rule("offer", "", When(offer), action="quantize"),
    )
    engine = DurableEngine(compile_rules(RuleSet(rules, "")))
    rng = random.Random(1)
    early = 0.0
    for count in range(30_000):
        option = OptionFacts("o", {"option.x": rng.random(), "option.family": rng.choice("ab")})
        engine.run({"gpu.x": rng.random()}, [option])
        if count == 15_000:
            early = _rss_mib()
    assert _rss_mib() - early < 2, f"{early:.1f} -> {_rss_mib():.1f} MiB"


def _rss_mib() -> float:
    statm = Path("/proc/self/statm")
    if not statm.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return int(statm.read_text(encoding="ascii").split()[1]) * resource.getpagesize() / 2**20


if __name__ == "__main__":
    {"joins": joins, "silent": silent, "memory": memory}[sys.argv[1]]()
