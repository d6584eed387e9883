"""Questions for the tests, drawn from the whole catalogue."""

from __future__ import annotations

import random
from functools import lru_cache

from advisor.advice import Advisor
from advisor.bulk.reverse.answers import Settings
from advisor.knowledge.types import Knowledge
from advisor.scenario.settings import Request


@lru_cache(maxsize=1)
def advisor() -> Advisor:
    return Advisor.load(engine="reference")


def knowledge() -> Knowledge:
    return advisor().knowledge


RUNS = {
    None: ((None, "q8_0", "fp8"), ((), ("Q4_K_M",), ("INT4", "FP8"))),
    "vLLM": ((None, "fp8"), ((), ("INT4", "FP8"))),
    "llama.cpp": ((None, "q8_0"), ((), ("Q4_K_M",))),
    "ExLlamaV3": ((None, "exl-q8"), ((), ("EXL3 4.0bpw", "FP16"))),
}
"""Framework -> cache types and formats to draw from."""


def drawn_settings(rng: random.Random) -> Settings:
    ram = rng.choice((None, None, 64.0))
    framework = rng.choice((None, None, *RUNS))
    caches, formats = RUNS[framework]
    precisions = rng.choice(formats)
    request = Request(
        framework=framework,
        context=rng.choice((None, None, 2048, 16_384)),
        batch=rng.choice((None, None, 4)),
        gpus=rng.choice((None, None, 2, 3)),
        kv_cache=rng.choice((None, *caches)),
        ram_gib=ram,
        ram_bandwidth_gb_s=80.0 if ram else None,
    )
    return Settings(
        request,
        precisions=precisions,
        min_speed_tok_s=rng.choice((None, None, 20.0)),
        max_loss_percent=rng.choice((None, None, 3.0)),
        unmeasured=rng.choice((False, True)),
        prefer=rng.choice(("quality", "speed", "balanced")),
        use=rng.choice((None, "chat", "code", "agents")),
    )


def drawn_card(rng: random.Random, framework_name: str | None, gpus: int | None) -> str:
    """Draw a card that the framework runs on and that may be had as often as is asked for."""
    known = knowledge()
    framework = known.frameworks[framework_name or "llama.cpp"]
    several = (gpus or 1) > 1
    return rng.choice(
        [
            card.name
            for card in known.gpus.values()
            if card.vram_bytes and card.vendor in framework.vendors
            if (card.compute_capability or 99) >= (framework.min_compute_capability or 0)
            if card.architecture not in framework.not_on and not (several and card.stands_alone)
        ]
    )
