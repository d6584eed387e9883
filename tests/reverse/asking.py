"""Questions for the tests, drawn from the whole catalogue."""

from __future__ import annotations

import random
from functools import lru_cache

from advisor.knowledge.types import Knowledge
from advisor.pipeline import Advisor
from advisor.reverse import Settings


@lru_cache(maxsize=1)
def advisor() -> Advisor:
    return Advisor.load(engine="reference")


def knowledge() -> Knowledge:
    return advisor().knowledge


def drawn_settings(rng: random.Random) -> Settings:
    ram = rng.choice((None, None, 64.0))
    return Settings(
        framework=rng.choice((None, None, None, "vLLM", "llama.cpp", "ExLlamaV3")),
        precisions=rng.choice(((), (), (), ("Q4_K_M",), ("INT4", "FP8"))),
        context=rng.choice((None, None, 2048, 16_384)),
        batch=rng.choice((None, None, 4)),
        gpus=rng.choice((None, None, 2, 3)),
        kv_cache=rng.choice((None, None, None, "q8_0", "fp8")),
        ram_gib=ram,
        ram_bandwidth_gb_s=80.0 if ram else None,
        min_speed_tok_s=rng.choice((None, None, 20.0)),
        max_loss_percent=rng.choice((None, None, 3.0)),
        unmeasured=rng.choice((False, True)),
        prefer=rng.choice(("quality", "speed", "balanced")),
    )


def drawn_card(rng: random.Random) -> str:
    return rng.choice([card.name for card in knowledge().gpus.values() if card.vram_bytes])
