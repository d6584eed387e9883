"""Every remedy is proved: applied and run again it gives exactly its figures."""

from __future__ import annotations

import random
from functools import lru_cache
from itertools import pairwise

import pytest

from advisor.advice import Advisor
from advisor.errors import UserError
from advisor.remedies.option import Option
from advisor.remedies.sharing import names_cards
from advisor.scenario.resolve import apply_change
from advisor.scenario.settings import Request

SEEDS = range(8)
PER_SEED = 45
PRECISIONS = ("FP16", "INT8", "INT4", "Q4_K_M", "Q3_K_M", "Q8_0", "AWQ", "FP8", "NF4")


@lru_cache(maxsize=1)
def advisor() -> Advisor:
    return Advisor.load()


def drawn(seed: int) -> list[Request]:
    """Draw requests from the whole catalogue."""
    rng = random.Random(seed)
    known = advisor().knowledge
    cards = [card.name for card in known.gpus.values() if card.vram_bytes]
    return [
        Request(
            gpu=rng.choice(cards),
            model=rng.choice(list(known.models)),
            precision=rng.choice(PRECISIONS),
            context=rng.choice((None, None, 2048, 8192, 32768, 131_072)),
            batch=rng.choice((None, None, 4, 16)),
            gpus=rng.choice((None, None, None, 2)),
            kv_cache=rng.choice((None, None, None, "q8_0")),
            framework=rng.choice((None, None, None, "llama.cpp", "vLLM")),
            gpu_layers=rng.choice((None, None, None, None, 20)),
            cpu_experts=rng.choice((None, None, None, None, 8)),
            prefer=rng.choice((None, "quality", "speed", "cost")),
            ram_gib=rng.choice((None, 32.0, 128.0)),
            ram_bandwidth_gb_s=rng.choice((None, 80.0)),
        )
        for _ in range(PER_SEED)
    ]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_change_applied_and_run_again_gives_exactly_its_figures(seed: int) -> None:
    proved = 0
    for request in drawn(seed):
        try:
            advice = advisor().advise(request)
        except UserError:
            continue
        said = advice.recommendations
        for option in [o for r in said for o in (r.option, *r.alternatives)]:
            again = advisor().estimate(
                apply_change(request, dict(option.change)), all_cards=names_cards(option.change)
            )
            assert again.memory == option.memory, (request.stated(), option.key)
            assert again.speed == option.speed, (request.stated(), option.key)
            proved += 1
    assert proved > PER_SEED


@pytest.mark.parametrize("seed", SEEDS[:4])
def test_advice_never_contradicts_the_estimate(seed: int) -> None:
    for request in drawn(seed):
        try:
            advice = advisor().advise(request)
        except UserError:
            continue
        fits = advice.memory.deficit_bytes == 0
        assert (advice.state in {"fits", "tight"}) == fits or advice.state == "too_big"
        if not fits:
            assert advice.speed is None
        barred = {item.option.key for item in advice.not_recommended}
        said = [item.option.key for item in advice.recommendations]
        assert not barred & set(said)
        actions = [item.option.action for item in advice.recommendations]
        assert len(actions) == len(set(actions))
        for before, after in pairwise(advice.recommendations):
            first, then = before.option, after.option
            keeps = first.effort != "purchase" and first.scenario.model is advice.scenario.model
            beats = _pace(first) >= _pace(then) and _held(first) >= _held(then)
            assert before.score >= after.score or _held(first) > _held(then) or keeps or beats
        for item in advice.recommendations:
            assert item.option.fits


def _pace(option: Option) -> float:
    return option.speed.decode_tok_s.estimate if option.speed else 0.0


def _held(option: Option) -> int:
    """Requests that are held at once; what holds most goes before what holds few."""
    held = option.memory.held_sequences
    return option.scenario.batch if held is None else held


def test_options_are_unique_and_stable() -> None:
    request = Request(gpu="RTX 4090", model="phi-3-medium", precision="fp16")
    first, second = (advisor().advise(request) for _ in range(2))
    keys = [option.key for option in first.options]
    assert len(keys) == len(set(keys))
    assert first == second


def test_a_model_that_does_not_fit_gets_remedies_of_every_kind() -> None:
    request = Request(gpu="RTX 3060 12GB", model="qwen3-30b-a3b", precision="Q4_K_M")
    actions = {option.action for option in advisor().advise(request).options}
    assert {"quantize", "offload-experts", "offload-layers", "add-gpus", "upgrade-gpu"} <= actions
