"""Scenarios per second of both rule engines, and memory over many scenarios.

    python benchmarks/engine.py [--scenarios N] [--engine durable|reference] [--long]

About 70 rules in the shape of rules/ (10 concluding, 40 per option, 20 notes) on about 105 scenario
facts and 50 options of 26 facts each. ``--long`` runs 100,000 scenarios and prints the memory.
"""

from __future__ import annotations

import argparse
import random
import resource
import statistics
import time
from collections.abc import Callable

from advisor.knowledge.vocabulary import FactValue
from advisor.rules import Test, When
from advisor.rules.engine.base import Engine, OptionFacts, ReferenceEngine
from advisor.rules.engine.compiler import CompiledRules, compile_rules
from advisor.rules.engine.durable import DurableEngine, available
from advisor.rules.language.model import Rule, RuleSet

FAMILIES = ("quantize", "quantize-kv", "shrink-context", "shrink-batch", "grow-batch",
            "offload-layers", "offload-experts", "add-gpus", "upgrade-gpu", "smaller-model",
            "change-framework", "combine")  # fmt: skip
STATES = ("fits", "tight", "needs_offload", "too_big")
GROUPS = ("request", "gpu", "model", "weights", "memory", "speed", "framework", "host", "options")
GIB = 2.0**30


def rule_set() -> RuleSet:
    rules = [*_concluding(), *_recommending(), *_barring(), *_notes()]
    return RuleSet(tuple(rules), "")


def _concluding() -> list[Rule]:
    share = "memory.headroom_share"
    rules = [
        _conclude("fits", Test(share, "at least", 10.0), value=("fit.state", "fits")),
        _conclude("tight", Test(share, "at least", 0.0), Test(share, "below", 10.0),
                  value=("fit.state", "tight")),
        _conclude("needs-offload", Test(share, "below", 0.0),
                  Test("framework.offloads_layers", "is", value=True),
                  value=("fit.state", "needs_offload")),
        _conclude("too-big", Test(share, "below", 0.0),
                  Test("framework.offloads_layers", "is", value=False),
                  value=("fit.state", "too_big")),
        _conclude("cause-weights", Test("memory.weights", "above", other="memory.usable"),
                  value=("fit.cause", "weights")),
        _conclude("serving", Test("request.batch", "above", 8.0),
                  value=("workload.kind", "serving")),
    ]  # fmt: skip
    steps = (0.0, 3e11, 6e11, 1e12, 1e13)
    for name, low, high in zip(
        ("low", "medium", "high", "very_high"), steps, steps[1:], strict=False
    ):
        rules.append(
            _conclude(
                f"bandwidth-{name}",
                Test("gpu.bandwidth", "at least", low),
                Test("gpu.bandwidth", "below", high),
                value=("gpu.bandwidth_class", name),
            )
        )
    return rules


def _conclude(name: str, *tests: Test, value: tuple[str, str]) -> Rule:
    return Rule(name, "", When(tests), conclude={value[0]: value[1]})


def _recommending() -> list[Rule]:
    rules = []
    short = Test("fit.state", "one of", ("needs_offload", "too_big"))
    for k, family in enumerate(FAMILIES):
        own = Test("option.family", "is", family)
        fits = Test("option.fits", "is", value=True)
        rules += [
            _recommend(f"{family}-to-fit", short, own, fits,
                       Test("option.quality_cost", "at most", 5.0)),
            _recommend(f"{family}-faster", Test("fit.state", "is", "fits"), own, fits,
                       Test("option.speed_gain", "above", 20.0 + k),
                       Test("gpu.bandwidth_class", "is not", "low")),
            _recommend(f"{family}-cheap", own, Test("option.cost", "below", 900.0),
                       Test("option.headroom", "above", other="memory.overhead"),
                       Test("request.prefer", "is", "cost")),
        ]  # fmt: skip
    return rules


def _recommend(name: str, *tests: Test) -> Rule:
    return Rule(name, "", When(tests), action="quantize")


def _barring() -> list[Rule]:
    return [
        Rule("no-tiny-bits", "", When((Test("option.bits_per_weight", "below", 3.5),
                                       Test("model.parameters", "below", 8e9))), veto="no"),
        Rule("worse-quality", "", When((Test("option.quality_loss", "above", 25.0),)), veto="no"),
        Rule("no-gain", "", When((Test("option.speed_gain", "below", -60.0),
                                  Test("option.fits", "is", value=True))), veto="no"),
        Rule("no-room", "", When((Test("option.host_ram", "above", other="host.ram"),)), veto="no"),
    ]  # fmt: skip


def _notes() -> list[Rule]:
    rules = [
        Rule("unknown-ram", "", When((Test("host.ram", "is unknown"),
                                      Test("fit.state", "is", "too_big"))), note="so"),
        Rule("hot", "", When((Test("gpu.tdp", "above", 300.0),)), note="so"),
    ]  # fmt: skip
    for k in range(18):
        left, right = GROUPS[k % 9], GROUPS[(k + 3) % 9]
        tests = (
            Test(f"{left}.fact{k % 5}", "above", 40.0),
            Test(f"{right}.fact{k % 4}", "below", 30.0),
        )
        rules.append(Rule(f"note-{k}", "", When(tests), note="so"))
    return rules


def situation(rng: random.Random) -> tuple[dict[str, FactValue], list[OptionFacts]]:
    facts: dict[str, FactValue] = {
        f"{g}.fact{k}": rng.uniform(0, 100) for g in GROUPS for k in range(10)
    }
    usable = rng.choice((7, 11, 15, 23, 79)) * GIB
    facts |= {
        "memory.headroom_share": rng.uniform(-60, 60), "memory.usable": usable,
        "memory.weights": rng.uniform(1, 60) * GIB, "memory.overhead": rng.uniform(0.3, 1) * GIB,
        "framework.offloads_layers": rng.random() < 0.6,
        "request.batch": float(rng.choice((1, 4, 16))),
        "gpu.bandwidth": rng.uniform(1e11, 3e12), "gpu.tdp": float(rng.choice((75, 250, 450))),
        "request.prefer": rng.choice(("balanced", "quality", "speed", "cost")),
        "model.parameters": rng.choice((3.8e9, 7e9, 14e9, 70e9)), "model.name": "phi-3-medium",
        "gpu.vendor": "NVIDIA", "gpu.name": "RTX 4090", "weights.format": "FP16",
    }  # fmt: skip
    if rng.random() < 0.5:
        facts["host.ram"] = 64 * GIB
    return facts, [_option(rng, k) for k in range(50)]


def _option(rng: random.Random, index: int) -> OptionFacts:
    numbers = {f"option.{n}": rng.uniform(0, 100) for n in (
        "headroom_share", "decode_speed", "aggregate_speed", "aggregate_gain", "kv_bits", "context",
        "context_kept", "batch", "gpus", "layers_on_gpu", "parameters_kept", "steps")}  # fmt: skip
    return OptionFacts(f"option-{index}", {
        **numbers, "option.family": rng.choice(FAMILIES), "option.fits": rng.random() < 0.4,
        "option.required": rng.uniform(1, 60) * GIB, "option.headroom": rng.uniform(0, 20) * GIB,
        "option.saved": rng.uniform(0, 20) * GIB, "option.quality_cost": rng.uniform(0, 30),
        "option.quality_loss": rng.uniform(0, 30), "option.speed_gain": rng.uniform(-80, 100),
        "option.bits_per_weight": rng.uniform(2, 8), "option.cost": rng.uniform(0, 4000),
        "option.host_ram": rng.uniform(0, 80) * GIB, "option.effort": "download",
        "option.format": "Q4_K_M", "option.native": rng.random() < 0.5})  # fmt: skip


def rss_mib() -> float:
    with open("/proc/self/statm", encoding="ascii") as statm:
        return int(statm.read().split()[1]) * resource.getpagesize() / 2**20


def measure(make: Callable[[CompiledRules], Engine], scenarios: int) -> None:
    compiled = compile_rules(rule_set())
    engine = make(compiled)
    rng = random.Random(1)
    pool = [situation(rng) for _ in range(200)]
    firings = sum(len(engine.run(*pool[k]).firings) for k in range(len(pool))) / len(pool)
    before = rss_mib()
    rates = []
    for _ in range(max(1, scenarios // len(pool))):
        start = time.perf_counter()
        for facts, options in pool:
            engine.run(facts, options)
        rates.append(len(pool) / (time.perf_counter() - start))
    print(
        f"{engine.name:14} {len(compiled.rules)} rules, {firings:.1f} firings, "
        f"{statistics.median(rates):,.0f} scenarios/s (best {max(rates):,.0f}), "
        f"memory {before:.1f} -> {rss_mib():.1f} MiB"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--scenarios", type=int, default=1000)
    parser.add_argument("--engine", choices=("durable", "reference"))
    parser.add_argument("--long", action="store_true", help="100,000 scenarios")
    asked = parser.parse_args()
    scenarios = 100_000 if asked.long else asked.scenarios
    if asked.engine != "reference" and available():
        measure(DurableEngine, scenarios)
    if asked.engine != "durable":
        measure(ReferenceEngine, scenarios)


if __name__ == "__main__":
    main()
