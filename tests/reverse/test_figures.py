"""Every figure of an answer is the estimator's, and nothing that fits is called too large."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import NamedTuple

import pytest
from msgspec.structs import replace

from advisor.bulk.reverse import context_for
from advisor.bulk.reverse.answers import Answer, Reader, Row, Settings, Wish, read_wish, with_cards
from advisor.bulk.reverse.cards import CardFilter, gpus_for
from advisor.bulk.reverse.models import ModelFilter, models_for
from advisor.bulk.reverse.search import Search, least_read_bytes, least_weight_bytes
from advisor.errors import UserError
from advisor.estimator import estimate_memory
from advisor.estimator.limits import find_limits
from advisor.estimator.weights import weights_of
from advisor.knowledge.catalogue import Cards
from advisor.knowledge.types import Framework, Gpu
from advisor.models import model_from_record
from advisor.models.stored_tensors import Model
from advisor.reading import find_gpu
from advisor.scenario import support
from advisor.scenario.choices import runs
from advisor.scenario.figures import margin_of
from advisor.scenario.settings import Request
from advisor.units import GIB
from tests.reverse.asking import advisor, drawn_card, drawn_settings, knowledge

SEEDS = range(6)
QUESTIONS = {
    "llama-3-70b": Settings(Request(gpus=4, context=16_384), prefer="balanced"),
    "qwen3-8b": Settings(Request(kv_cache="q8_0", batch=8), min_speed_tok_s=100.0),
    "mixtral-8x7b": Settings(Request(framework="vLLM", gpus=3)),
    "deepseek-v2-lite-chat": Settings(precisions=("INT4", "FP8"), prefer="speed"),
    "gpt-oss-120b": Settings(Request(ram_gib=96.0, ram_bandwidth_gb_s=90.0), unmeasured=True),
    "bge-m3": Settings(max_loss_percent=3.0),
}


def same_as_alone(row: Row) -> None:
    alone = advisor().estimate(row.request, all_cards=True)
    assert alone.memory == row.answer.memory, row.request
    assert alone.speed == row.answer.speed, row.request
    assert find_limits(alone.scenario, knowledge(), alone.memory) == row.limits


def sample(rows: list[Row], rng: random.Random) -> list[Row]:
    return rng.sample(rows, min(len(rows), 8))


@pytest.mark.parametrize("seed", SEEDS)
def test_models_have_the_figures_of_an_estimate(seed: int) -> None:
    rng = random.Random(seed)
    settings = drawn_settings(rng)
    card = drawn_card(rng, settings.request.framework, settings.request.gpus)
    _, found = models_for(card, settings, ModelFilter(), knowledge())
    assert found.fitting + sum(found.left_out.values()) == found.tried > len(knowledge().models)
    assert found.rows or found.left_out.get("cannot_run")
    for row in sample(list(found.rows), rng):
        same_as_alone(row)


@pytest.mark.parametrize("model", QUESTIONS)
def test_cards_have_the_figures_of_an_estimate(model: str) -> None:
    _, found = gpus_for(model, QUESTIONS[model], CardFilter(), knowledge())
    assert found.fitting + sum(found.left_out.values()) == found.tried == len(knowledge().gpus)
    assert found.rows or found.left_out.get("cannot_run")
    for row in sample(list(found.rows), random.Random(model)):
        same_as_alone(row)


@pytest.mark.parametrize(
    ("text", "named", "count"),
    [
        ("2x RTX 3090", "GeForce RTX 3090", 2),
        ("dual 3090", "GeForce RTX 3090", 2),
        ("RTX 3090 + RTX 3060 12GB", "GeForce RTX 3090 + GeForce RTX 3060 12 GB", 2),
        ("Mac mini 16GB", "Apple M4", 1),
    ],
)
def test_cards_are_counted_and_read_as_everywhere(text: str, named: str, count: int) -> None:
    """A row's request gives its figures by itself, whatever the cards were called."""
    cards, found = models_for(text, Settings(), ModelFilter(family="Qwen3"), knowledge())
    assert (cards.gpu.name, cards.count, found.wish.gpus) == (named, count, count)
    assert found.rows
    for row in found.rows[:2]:
        same_as_alone(row)


def test_a_row_has_the_figures_of_advice() -> None:
    settings = Settings(Request(context=16_384, batch=2, kv_cache="q8_0", gpus=2))
    _, found = models_for("RTX 4090", settings, ModelFilter(), knowledge(), limit=3)
    for row in found.rows:
        advice = advisor().advise(row.request)
        assert (advice.memory, advice.speed, advice.limits) == (
            row.answer.memory,
            row.answer.speed,
            row.limits,
        )


def wish_of(rng: random.Random) -> Wish:
    reader = Reader()
    wish = read_wish(drawn_settings(rng), knowledge(), reader)
    assert wish
    return wish


def sized_models(rng: random.Random, count: int) -> Iterator[Model]:
    for record in rng.sample(list(knowledge().models.values()), count):
        try:
            yield model_from_record(record, knowledge())
        except UserError:
            continue


def usual_context(wish: Wish, model: Model) -> int | None:
    """What the use takes where none is stated, as far as the model goes."""
    needed = context_for(wish, knowledge().policy)
    trained = model.trained_context_tokens
    return min(needed, trained) if needed and trained else needed


class Fit(NamedTuple):
    """A format that fits: its speed, and whether only just."""

    speed: float | None
    thin: bool
    last: bool
    """Whether it is left to a program that places layers, on a card of a server."""


def brute_force(wish: Wish, gpu: Gpu, gpus: int, model: Model) -> dict[str, Fit]:
    """Estimate every format by itself; give those that fit."""
    found = {}
    for precision in wish.formats:
        for framework in [wish.framework] if wish.framework else in_turn(gpu):
            if not (
                runs(knowledge(), framework, precision, gpu, model)
                and support.runs_kv(framework, wish.kv_type, gpu, model.shape)
                and support.can_share(framework, precision, model, gpus)
            ):
                continue
            request = with_cards(wish.request, gpus)
            asked = Request(
                gpu=gpu.name,
                model=model.name,
                precision=precision.name,
                framework=framework.name,
                context=request.context or usual_context(wish, model),
                batch=request.batch,
                gpus=request.gpus,
                kv_cache=request.kv_cache,
            )
            base = advisor().estimate(asked)
            held = base.memory.held_sequences
            if base.card_fits and held in {None, base.scenario.batch}:  # all requests at once
                speed = base.speed.decode_tok_s.estimate if base.speed else None
                thin = margin_of(base.memory, knowledge().policy) == "thin"
                found[precision.name] = Fit(speed, thin, is_last(framework, gpu))
            break
    return found


def in_turn(gpu: Gpu) -> list[Framework]:
    return sorted(knowledge().frameworks.values(), key=lambda one: is_last(one, gpu))


def is_last(framework: Framework, gpu: Gpu) -> bool:
    """Whether the program comes after all others: on a server's card one that places layers."""
    return gpu.segment == "datacenter" and framework.places_layers


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_left_out_is_what_trying_everything_leaves_out(seed: int) -> None:
    rng = random.Random(100 + seed)
    wish = wish_of(rng)
    card = drawn_card(rng, wish.framework.name if wish.framework else None, wish.gpus)
    gpu = find_gpu(knowledge(), card)
    search = Search(knowledge(), wish)
    for model in sized_models(rng, 14):
        found = search.best(Cards(gpu, wish.gpus, (), counted=False), model)
        if found == "not_sizable":
            continue
        try:
            fitting = brute_force(wish, gpu, wish.gpus, model)
        except UserError:
            assert found == "does_not_fit"  # its weights alone are too large; the rest is unknown
            continue
        allowed = {name: fit for name, fit in fitting.items() if may_be_taken(wish, name)}
        least = wish.min_speed_tok_s
        enough = [
            name
            for name, fit in allowed.items()
            if least is None or (fit.speed is not None and fit.speed >= least)
        ]
        if isinstance(found, Answer):
            chosen = found.scenario.precision
            assert chosen.name in enough
            if wish.prefer == "quality" and wish.use is None:  # a use takes what loses little
                roomy = [name for name in enough if not allowed[name].thin] or enough
                order = {name: place(name, allowed[name], model) for name in roomy}
                assert order[chosen.name] == min(order.values())
        else:
            assert not enough
            assert bool(allowed) == (found in {"too_slow", "speed_unknown"})
            assert bool(fitting) == (found not in {"does_not_fit", "cannot_run"})


def place(name: str, fit: Fit, model: Model) -> tuple[bool, bool, bool, float]:
    """Order formats: programs that come last, what was not published so, what loses more."""
    precision = knowledge().formats[name]
    published = support.is_published(precision, model)
    return (
        fit.last,
        not published,
        *((False, 0.0) if published else support.quality_order(precision)),
    )


def may_be_taken(wish: Wish, name: str) -> bool:
    loss = knowledge().formats[name].quality_loss_percent
    return wish.unmeasured if loss is None else loss <= wish.max_loss_percent


@pytest.mark.slow
@pytest.mark.parametrize("name", ["llama.cpp", "vLLM", "transformers", "ExLlamaV3", "MLX-LM"])
def test_weights_never_fall_below_the_bound_that_rules_formats_out(name: str) -> None:
    framework, checked = knowledge().frameworks[name], 0
    for record in list(knowledge().models.values())[:: 3 if name == "llama.cpp" else 8]:
        try:
            model = model_from_record(record, knowledge())
        except UserError:
            continue
        for text in framework.formats:
            precision = knowledge().formats[text]
            if not precision.offered:
                continue
            weights = weights_of(model, precision, framework, knowledge().ggml_types)
            held = weights.layer_sums[-1] + weights.output + weights.rope
            held += weights.profile.vision_bytes
            if framework.memory_model != "llama.cpp" and model.shape.tied:
                held += weights.embedding
            assert least_weight_bytes(model, precision) <= held, (model.name, text)
            checked += 1
    assert checked > 100


@pytest.mark.parametrize("card", ["RTX 4090", "Apple M2 Ultra", "Tesla P40"])
def test_no_speed_is_above_the_bound_that_rules_formats_out(card: str) -> None:
    gpu = find_gpu(knowledge(), card)
    assert gpu.bandwidth_bytes_s
    wish = read_wish(drawn_settings(random.Random(1)), knowledge(), Reader())
    assert wish
    rng = random.Random(card)
    for model in sized_models(rng, 60):
        for precision in rng.sample(list(knowledge().formats.values()), 4):
            request = Request(gpu=card, model=model.name, precision=precision.name)
            try:
                speed = advisor().estimate(request).speed
            except UserError:
                continue
            if speed:
                reads = least_read_bytes(model, precision)
                assert speed.decode_tok_s.estimate * reads <= 1.25 * gpu.bandwidth_bytes_s


def test_a_part_in_system_ram_is_the_smallest_that_makes_it_fit() -> None:
    settings = Settings(Request(ram_gib=64.0, ram_bandwidth_gb_s=80.0))
    _, found = models_for("RTX 3060 12GB", settings, ModelFilter(), knowledge(), limit=12)
    split = [row for row in found.rows if row.answer.split]
    assert split
    for row in split:
        same_as_alone(row)
        memory, scenario = row.answer.memory, row.answer.scenario
        assert memory.host_weights_bytes + memory.host_kv_cache_bytes <= 64 * GIB
        if scenario.gpu_layers is None:
            more = replace(scenario, cpu_experts=scenario.cpu_experts - 1)
        else:
            more = replace(scenario, gpu_layers=scenario.gpu_layers + 1)
        assert estimate_memory(more, knowledge()).deficit_bytes
