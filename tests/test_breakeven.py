"""Break-even points: on one side it fits, on the other it does not, by the estimator itself."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import pytest
from msgspec.structs import replace

from advisor.advice import Advisor
from advisor.advice.conclusions import Conclusions
from advisor.errors import UserError
from advisor.estimator import estimate_memory, free_bytes
from advisor.estimator.limits import MOST_CARDS, can_double
from advisor.remedies.format_lists import worth_having
from advisor.runtimes import runtime_of
from advisor.scenario import Scenario, is_usual_split, split_of, support, with_batch
from advisor.scenario.figures import Memory
from advisor.scenario.settings import Request, request_from
from advisor.units import GIB

SEEDS = range(6)
PER_SEED = 20


@lru_cache(maxsize=1)
def advisor() -> Advisor:
    return Advisor.load(engine="reference")


@lru_cache(maxsize=len(SEEDS))
def advised(seed: int) -> list[Conclusions]:
    """Advise on requests drawn from the whole catalogue."""
    rng = random.Random(seed)
    known = advisor().knowledge
    cards = [card.name for card in known.gpus.values() if card.vram_bytes]
    found: list[Conclusions] = []
    while len(found) < PER_SEED:
        request = Request(
            gpu=rng.choice(cards),
            model=rng.choice(list(known.models)),
            precision=rng.choice(("FP16", "Q4_K_M", "Q8_0", "INT4", "AWQ", "FP8", "Q4_0")),
            context=rng.choice((None, 2048, 8192, 32768)),
            batch=rng.choice((None, None, 4)),
            gpus=rng.choice((None, None, None, 2, 3)),
            framework=rng.choice((None, None, "vLLM", "SGLang", "transformers")),
            gpu_layers=rng.choice((None, None, None, None, None, 12)),
        )
        try:
            found.append(advisor().advise(request))
        except UserError:
            continue
    return found


def fits(scenario: Scenario, *, in_full: bool = False) -> bool:
    free = free_bytes(scenario, advisor().knowledge, in_full=in_full)
    assert free is not None
    return free >= 0


@pytest.mark.parametrize("seed", SEEDS)
def test_the_longest_context_fits_and_a_block_more_does_not(seed: int) -> None:
    for advice in advised(seed):
        longest = advice.limits.max_context_tokens
        trained = advice.scenario.model.trained_context_tokens
        if longest is None:
            assert not fits(replace(advice.scenario, context_tokens=1), in_full=True)
            continue
        assert fits(replace(advice.scenario, context_tokens=longest), in_full=True)
        if trained and longest + 256 <= trained:
            more = replace(advice.scenario, context_tokens=longest + 256)
            assert not fits(more, in_full=True)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_first_batch_too_large_does_not_fit_and_one_less_does(seed: int) -> None:
    for advice in advised(seed):
        batch = advice.break_even.too_large_batch
        if batch is None:
            most = runtime_of(advice.scenario.framework).most_sequences
            assert fits(with_batch(advice.scenario, most), in_full=True)
            continue
        assert not fits(with_batch(advice.scenario, batch), in_full=True)
        assert batch == 1 or fits(with_batch(advice.scenario, batch - 1), in_full=True)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_largest_format_fits_and_no_larger_one_worth_having_does(seed: int) -> None:
    known = advisor().knowledge
    for advice in advised(seed):
        scenario, named = on_all(advice.scenario), advice.break_even.largest_format
        sizes = {}
        for precision in {f.name: f for f in (*worth_having(scenario, known), scenario.precision)}:
            other = known.formats[precision]
            memory = estimate_memory(replace(scenario, precision=other), known)
            alike = other.bits_per_weight == scenario.precision.bits_per_weight
            second = alike and other is not scenario.precision and fits(scenario)
            second = second or support.is_rounded(other, scenario.model)
            if fits(scenario) and held(memory, scenario) < held(advice.memory, scenario):
                continue
            if memory.deficit_bytes == 0 and (not second or other is scenario.precision):
                sizes[precision] = memory.weights_bytes + memory.host_weights_bytes
        if named is None:
            assert not sizes
        else:
            best = max(sizes, key=sizes.__getitem__)
            assert sizes[named] == sizes[best]


def on_all(scenario: Scenario) -> Scenario:
    """Give it on all of its equal cards, as a larger format may be."""
    return replace(scenario, gpus=scenario.gpus + len(scenario.idle_cards), idle_cards=())


def held(memory: Memory, scenario: Scenario) -> int:
    return memory.held_sequences or scenario.batch


def splits(scenario: Scenario) -> Iterator[int]:
    for count in range(1, MOST_CARDS + 1):
        if support.can_share(scenario.framework, scenario.precision, scenario.model, count):
            yield count


@pytest.mark.parametrize("seed", SEEDS)
def test_the_fewest_cards_fit_and_fewer_do_not(seed: int) -> None:
    for advice in advised(seed):
        scenario, fewest = advice.scenario, advice.break_even.fewest_gpus
        if not can_double(scenario):
            assert fewest == (scenario.gpus if fits(scenario) else None)
            continue
        holding = [n for n in splits(scenario) if fits(replace(scenario, gpus=n))]
        if fits(scenario):
            own = {None, split_of(scenario)}
            alike = [n for n in holding if split_of(replace(scenario, gpus=n)) in own] or holding
            assert fewest == min([*alike, scenario.gpus])
            continue
        more = [n for n in holding if n > scenario.gpus]
        usual = [n for n in more if is_usual_split(replace(scenario, gpus=n))]
        least = min(usual or more, default=None)
        if fewest != least:  # in a pipeline, where none of the usual ways was tried and fits
            assert not usual
            assert fits(replace(scenario, gpus=fewest, split="layer"))


@pytest.mark.parametrize("seed", SEEDS)
def test_the_smallest_card_holds_it_and_one_gib_less_does_not(seed: int) -> None:
    for advice in advised(seed):
        size, gpu = advice.break_even.smallest_capacity_bytes, advice.scenario.gpu
        assert size
        assert gpu
        assert size % GIB == 0
        assert fits(replace(advice.scenario, gpu=replace(gpu, vram_bytes=size)))
        smaller = replace(gpu, vram_bytes=size - GIB)
        assert not fits(replace(advice.scenario, gpu=smaller))


def test_points_are_facts_in_base_units() -> None:
    advice = advisor().advise(Request(gpu="RTX 4090", model="phi-3-medium", precision="FP16"))
    edges = advice.break_even
    assert advice.facts["break_even.format"] == edges.largest_format == "Q8_0"
    assert advice.facts["break_even.gpus"] == edges.fewest_gpus == 2
    assert advice.facts["break_even.card_memory"] == edges.smallest_capacity_bytes
    assert advice.facts["break_even.batch"] == 1


def test_a_framework_that_cannot_divide_a_model_has_no_number_of_cards() -> None:
    request = Request(
        gpu="RTX 4090", model="llama-3-70b", precision="Q4_K_M", framework="LM Studio"
    )
    assert advisor().advise(request).break_even.fewest_gpus is None


def test_shared_memory_has_no_number_of_machines() -> None:
    request = Request(gpu="DGX Spark", model="llama-3-70b", precision="FP16")
    edges = advisor().advise(request).break_even
    assert edges.fewest_gpus is None
    assert edges.smallest_capacity_bytes


def test_the_card_that_starts_a_server_is_that_of_one_request() -> None:
    asked = Request(gpu="RTX PRO 6000 Blackwell", gpus=4, model="qwq-32b", precision="BF16")
    many = replace(asked, context=32768, batch=16, framework="TensorRT-LLM")
    found = advisor().advise(many).break_even.smallest_capacity_bytes
    assert found == advisor().advise(replace(many, batch=1)).break_even.smallest_capacity_bytes


@pytest.mark.parametrize(
    ("given", "tensors", "turns"),
    [
        ({"gpu": "2x RTX A6000", "model": "glm-4.5-air", "context": 131_072}, 8, 6),
        ({"gpu": "RTX 4080", "model": "qwen3.6-35b-a3b", "precision": "FP8"}, 4, 3),
        ({"gpu": "2x RTX 4090", "model": "qwen3-32b"}, 4, None),
    ],
)
def test_fewer_cards_that_take_turns_are_counted_beside_those_that_split_tensors(
    given: dict[str, Any], tensors: int, turns: int | None
) -> None:
    """Four cards divide the heads that six do not; six hold whole layers all the same."""
    asked = Request(**given, framework="vLLM")
    found = advisor().advise(asked)
    assert (found.break_even.fewest_gpus, found.break_even.fewest_in_turns) == (tensors, turns)
    if turns:
        scenario = replace(found.scenario, split="layer")
        assert fits(replace(scenario, gpus=turns))
        assert not fits(replace(scenario, gpus=turns - 1))


def test_a_tied_output_of_an_exl3_file_lies_packed_on_the_last_of_its_cards() -> None:
    """``Linear.get_tensors`` writes ``lm_head.trellis``; the embedding prefers system RAM."""
    asked = Request(gpu="RTX 4080", model="command-a-03-2025", context=16_384, ram_gib=128)
    advice = advisor().advise(replace(asked, framework="ExLlamaV3"))
    assert advice.break_even.fewest_gpus == 5
    shape = advice.scenario.model.shape
    table = shape.vocab * shape.hidden
    assert advice.memory.host_weights_bytes == 2 * table
    wide = estimate_memory(replace(advice.scenario, gpus=5), advisor().knowledge)
    last, before = wide.per_gpu[-1].weights_bytes, wide.per_gpu[-2].weights_bytes
    layer = before / 13
    assert last == pytest.approx(12 * layer + table / 2, rel=0.001)


def test_a_smaller_card_with_defaults_of_its_own_is_named_beside_the_point() -> None:
    """VLLM computes 2,048 tokens at once on an A100, 8,192 on other cards of its size."""
    told = {"gpu": "W7900", "model": "gemma-4-31b-it", "context": 32768, "framework": "vLLM"}
    found = advisor().advise(request_from(told))
    edges, least = found.break_even, found.break_even.smallest_capacity_bytes
    assert edges.smaller_card == "A100 PCIe 80 GB"
    assert (edges.smaller_card_tokens, edges.step_tokens) == (2048, 8192)
    for option in found.options:
        of = option.scenario.gpu
        if option.fits and option.change.keys() == {"gpu"} and of and of.vram_bytes:
            assert of.name.startswith("A100") or (least and of.vram_bytes >= least)


def test_no_smaller_card_is_named_where_all_take_as_much() -> None:
    told = {"gpu": "RTX 3060:12GB", "model": "qwen3-14b", "precision": "Q8_0"}
    assert advisor().advise(request_from(told)).break_even.smaller_card is None


def test_a_second_card_beside_it_is_no_smaller_card() -> None:
    told = {"gpu": "RTX 4000 Ada", "model": "llava-1.6-13b", "precision": "FP16"}
    assert advisor().advise(request_from(told)).break_even.smaller_card is None
