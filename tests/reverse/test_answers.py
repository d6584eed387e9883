"""Which models and cards are listed, in what order, and what is refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from advisor.bulk.reverse.answers import Found, Settings
from advisor.bulk.reverse.cards import (
    SORTS,
    CardFilter,
    as_sold,
    form_of,
    gpus_for,
    machine_prices,
    value_of,
)
from advisor.bulk.reverse.models import ModelFilter, models_for
from advisor.errors import Problems, UserError
from advisor.knowledge.types import Gpu
from advisor.models.stored_tensors import Model
from advisor.scenario.settings import Request
from tests.reverse.asking import advisor, knowledge


def models(
    settings: Settings | None = None, wanted: ModelFilter | None = None, gpu: str = "RTX 4090"
) -> Found:
    return models_for(gpu, settings or Settings(), wanted or ModelFilter(), knowledge())[1]


def cards(
    settings: Settings | None = None,
    wanted: CardFilter | None = None,
    model: str = "qwen3-8b",
    sort: str = "price",
) -> Found:
    wanted = wanted or CardFilter()
    return gpus_for(model, settings or Settings(), wanted, knowledge(), sort=sort)[1]


def test_speed_lists_the_fastest_first_and_unknown_speeds_last() -> None:
    speeds = [row.answer.decode_tok_s for row in models(Settings(prefer="speed")).rows]
    known = [speed for speed in speeds if speed is not None]
    assert known == sorted(known, reverse=True)
    assert speeds[: len(known)] == known
    assert len(known) < len(speeds)


def test_formats_lose_no_more_than_asked() -> None:
    for row in models(Settings(max_loss_percent=3.0)).rows:
        assert (row.answer.loss_percent or 0.0) <= 3.0


def test_unmeasured_formats_are_taken_only_when_asked_for() -> None:
    assert all(row.answer.loss_percent is not None for row in models().rows)
    for settings in (
        Settings(Request(framework="vLLM"), precisions=("AWQ",)),
        Settings(unmeasured=True),
    ):
        found = models(settings).rows
        assert any(row.answer.loss_percent is None for row in found)


def test_named_formats_are_the_only_ones() -> None:
    found = models(Settings(precisions=("Q2_K", "Q4_K_M")))
    assert {row.answer.scenario.precision.name for row in found.rows} == {"Q2_K", "Q4_K_M"}


def test_all_formats_has_the_best_of_each_model_first() -> None:
    _, found = models_for(
        "RTX 4090",
        Settings(),
        ModelFilter(family="Qwen3"),
        knowledge(),
        limit=2,
        all_formats=True,
    )
    best = models(wanted=ModelFilter(family="Qwen3")).rows[:2]
    names = [row.answer.scenario.model.name for row in found.rows]
    for row in best:
        first = names.index(row.answer.scenario.model.name)
        assert found.rows[first].answer == row.answer
    pairs = [(n, r.answer.scenario.precision.name) for n, r in zip(names, found.rows, strict=True)]
    assert len(set(pairs)) == len(pairs) > 2


@pytest.mark.parametrize(
    ("wanted", "holds"),
    [
        (ModelFilter(family="qwen3"), lambda m: m.family == "Qwen3"),
        (ModelFilter(modality="embedding"), lambda m: m.modality == "embedding"),
        (ModelFilter(min_parameters=2e10), lambda m: m.parameters >= 2e10),
        (ModelFilter(max_parameters=1e9), lambda m: m.parameters <= 1e9),
        (ModelFilter(released_from="2025-03"), lambda m: (m.released or "") >= "2025-03-01"),
    ],
)
def test_models_are_filtered(wanted: ModelFilter, holds: Callable[[Model], bool]) -> None:
    found = models(wanted=wanted)
    assert found.rows
    assert all(holds(row.answer.scenario.model) for row in found.rows)


def test_a_context_leaves_out_models_trained_on_less() -> None:
    found = models(Settings(Request(context=100_000)))
    assert found.left_out["short_training"]
    for row in found.rows:
        trained = row.answer.scenario.model.trained_context_tokens
        assert trained is None or trained >= 100_000


@pytest.mark.parametrize("sort", SORTS)
def test_cards_are_sorted_and_unknown_figures_come_last(sort: str) -> None:
    values = [value_of(sort, row.answer) for row in cards(sort=sort).rows]
    known = [value for value in values if value is not None]
    assert known == sorted(known, reverse=sort == "speed")
    assert values[: len(known)] == known


@pytest.mark.parametrize("sort", SORTS)
def test_the_best_card_is_the_first_of_its_order(sort: str) -> None:
    found = cards(sort=sort)
    assert found.best[sort].answer == found.rows[0].answer


def test_the_fewest_cards_are_given() -> None:
    found = cards(Settings(Request(gpus=4)), model="llama-3-70b")
    several = [row for row in found.rows if row.answer.scenario.gpus > 1]
    assert several
    for row in several[:4]:
        fewer = Settings(Request(gpus=row.answer.scenario.gpus - 1))
        again = cards(fewer, model="llama-3-70b")
        assert row.answer.gpu.name not in {other.answer.gpu.name for other in again.rows}
        assert not row.answer.gpu.unified_memory
        assert row.answer.gpu.segment != "mobile"


@pytest.mark.parametrize(
    ("wanted", "holds"),
    [
        (CardFilter(vendor="amd"), lambda g: g.vendor == "AMD"),
        (CardFilter(forms=("laptop",)), lambda g: g.segment == "mobile"),
        (CardFilter(forms=("unified", "edge")), lambda g: form_of(g) in {"unified", "edge"}),
        (CardFilter(max_price_usd=500), lambda g: (g.launch_price_usd or 9e9) <= 500),
        (CardFilter(max_power_w=100), lambda g: (g.tdp_w or 9e9) <= 100),
        (CardFilter(released_from="2024"), lambda g: (g.released or "") >= "2024"),
    ],
)
def test_cards_are_filtered(wanted: CardFilter, holds: Callable[[Gpu], bool]) -> None:
    found = cards(wanted=wanted)
    assert found.rows
    assert all(holds(row.answer.gpu) for row in found.rows)


def test_the_price_and_power_of_several_cards_are_those_of_all() -> None:
    wanted = CardFilter(max_price_usd=1300, max_power_w=600)
    found = cards(Settings(Request(gpus=4)), wanted, model="llama-3-70b")
    assert found.rows
    for row in found.rows:
        gpus, gpu = row.answer.scenario.gpus, row.answer.gpu
        assert (gpu.launch_price_usd or 0) * gpus <= 1300
        assert (gpu.tdp_w or 0) * gpus <= 600
    assert found.left_out["price_unknown"]


def test_unknown_prices_are_never_cheap() -> None:
    assert all(row.answer.gpu.launch_price_usd for row in cards(sort="price").rows[:20])


def test_memory_of_more_cards_is_tried_before_system_ram() -> None:
    settings = Settings(Request(gpus=2, ram_gib=128, ram_bandwidth_gb_s=80))
    found = cards(settings, CardFilter(vendor="NVIDIA"), model="llama-3-70b")
    row = next(r for r in found.rows if r.answer.gpu.name == "GeForce RTX 4090")
    assert row.answer.scenario.gpus == 2
    assert not row.answer.split


def test_everything_wrong_is_said_at_once() -> None:
    settings = Settings(
        Request(framework="vlm", context=0, kv_cache="q9"),
        precisions=("Q4_K_X", "Q5_K_X"),
        min_speed_tok_s=-1,
        prefer="best",
    )
    wanted = ModelFilter(family="Qwen", modality="txt", min_parameters=2e9, max_parameters=1e9)
    with pytest.raises(Problems) as refused:
        models_for("RTX 409", settings, wanted, knowledge())
    text = str(refused.value)
    for words in (
        "unknown GPU 'RTX 409'", "'vLLM'", "'Q4_K_S'", "'Q5_K_X'", "context is 0", "q9",
        "--min-speed is -1", "preference 'best'", "unknown model family 'Qwen'", "'text'",
        "--min-params 2,000,000,000 is above --max-params 1,000,000,000",
    ):  # fmt: skip
        assert words in text, (words, text)


def test_a_framework_known_by_name_only_is_refused() -> None:
    with pytest.raises(UserError, match="known by name only"):
        models(Settings(Request(framework="KTransformers")))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (
            Settings(Request(framework="vLLM", kv_cache="q8_0")),
            "vLLM cannot keep the KV cache as q8_0",
        ),
        (Settings(Request(framework="vLLM"), precisions=("Q4_K_M",)), "vLLM does not run Q4_K_M"),
        (Settings(Request(framework="MLX-LM")), "MLX-LM does not run on NVIDIA cards"),
    ],
)
def test_a_framework_is_refused_what_it_runs_nowhere(settings: Settings, words: str) -> None:
    with pytest.raises(UserError, match=words):
        models(settings)


def test_what_the_user_may_not_have_meant_is_said() -> None:
    beyond = cards(Settings(Request(context=100_000))).warnings
    assert beyond == ("Qwen3-8B is configured for 40,960 tokens; 100,000 were asked for.",)
    read = cards(model="llama 3.1 8b").warnings
    assert read == ("'llama 3.1 8b' is read as Llama-3.1-8B-Instruct.",)


def test_a_model_whose_memory_is_unknown_is_refused_with_the_reason() -> None:
    with pytest.raises(UserError, match="cannot be computed"):
        cards(model="bigscience/bloomz-p3")


def test_a_card_of_a_stated_size_is_asked_for_again_with_it() -> None:
    found = models(gpu="M4 Pro:48GB", wanted=ModelFilter(family="Qwen3"))
    assert found.rows
    assert found.rows[0].request.gpu == "M4 Pro:48GB"
    again = advisor().estimate(found.rows[0].request)
    assert again.memory == found.rows[0].answer.memory


def test_machines_of_several_sizes_are_listed_with_the_least_memory_that_runs_it() -> None:
    shared = CardFilter(forms=("unified",))
    small, large = (cards(wanted=shared, model=name) for name in ("qwen3-8b", "qwen3-32b"))
    for found, memory in ((small, 16), (large, 24)):
        row = next(row for row in found.rows if row.answer.gpu.name == "Apple M4")
        assert row.request.gpu == f"Apple M4:{memory}GB"
        again = advisor().estimate(row.request)
        assert again.memory.required_bytes == row.answer.memory.required_bytes
    assert "Apple M4 Pro" in {row.answer.gpu.name for row in large.rows}


def test_whole_computers_have_the_price_of_their_memory() -> None:
    known = knowledge()
    prices = machine_prices()
    assert set(prices) <= set(known.gpus)
    for name, by_size in prices.items():
        sold = {one.vram_bytes: one.launch_price_usd for one in as_sold(known.gpus[name], prices)}
        assert by_size.items() <= sold.items()
    mine = replace(known.gpus["Apple M4"], launch_price_usd=450.0)
    assert {one.launch_price_usd for one in as_sold(mine, prices)} == {450.0}
    wanted = CardFilter(forms=("unified",), max_price_usd=800)
    found = cards(wanted=wanted, model="qwen3-32b")
    assert [row.request.gpu for row in found.rows] == ["Apple M4:24GB"]


def test_two_cards_fit_no_less_than_one() -> None:
    one = {row.answer.scenario.model.name for row in models().rows}
    two = {row.answer.scenario.model.name for row in models(Settings(Request(gpus=2))).rows}
    assert one < two


def test_the_order_of_the_catalogue_does_not_matter() -> None:
    turned = replace(knowledge(), gpus=dict(reversed(list(knowledge().gpus.items()))))
    _, found = gpus_for("qwen3-8b", Settings(), CardFilter(), turned)
    assert [r.request for r in found.rows] == [r.request for r in cards().rows]
