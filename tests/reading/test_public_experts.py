"""What a token reads of a mixture that no table describes, and what is said where nothing tells."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from statistics import median

import pytest
from msgspec.structs import replace

from advisor.bulk.estimates import estimate_request
from advisor.bulk.reverse.answers import Settings
from advisor.bulk.reverse.cards import CardFilter, gpus_for
from advisor.bulk.reverse.models import ModelFilter, models_for
from advisor.estimator.speed_rates import speeds_of
from advisor.knowledge import load_knowledge
from advisor.models.any_config import load_config
from advisor.reading.public_config import is_mixture, read_by_widths
from advisor.reading.public_list import PublicModel, exact
from advisor.reading.public_sizing import model_of
from advisor.scenario.asked_model import find_model_named
from advisor.scenario.settings import Request
from tests.cli.running import advise

NORTH = "CohereLabs/North-Mini-Code-1.0"
Capture = pytest.CaptureFixture[str]


def listed(repository: str, **changed: object) -> PublicModel:
    found = exact(repository)
    assert found is not None
    return replace(found, **changed)


@cache
def reads() -> dict[str, float]:
    """What the widths make of what is known exactly, of each mixture with a record of its own."""
    knowledge = load_knowledge()
    found = {}
    for name, record in knowledge.models.items():
        public = exact(record.hf_id) if record.hf_id else None
        if public is None or not is_mixture(public) or not public.parameters_raw:
            continue
        shape = find_model_named(name, knowledge).shape
        read = read_by_widths(public, public.parameters_raw)
        if read and shape.moe and shape.counts:
            counts, moe = shape.counts, shape.moe
            idle = sum(counts.experts) * (1 - moe.used / moe.experts)
            exactly = sum(counts.layers) - idle + (counts.output or counts.embedding)
            found[public.hf_id] = read / exactly
    return found


def test_widths_tell_what_known_mixtures_read() -> None:
    found = reads().values()
    assert len(found) >= 20
    assert median(abs(share - 1) for share in found) <= 0.1
    speeds = speeds_of(load_knowledge())
    assert speeds
    low, high = speeds.tables.ranges["experts_estimated"]
    assert sum(low <= share <= high for share in found) >= 0.9 * len(found)


def test_a_mixture_is_as_fast_as_what_a_token_reads_of_it(capsys: Capture) -> None:
    """Models of 30 B with 3 B active run at 175 (builds of 2025) to 286 tok/s on this card."""
    request = Request(gpu="RTX 5090", model=NORTH, precision="Q4_K_M")
    line = estimate_request(request, load_knowledge())
    assert line.parameters
    assert line.speed
    decode = line.speed.decode_tok_s
    assert 3e9 <= (line.parameters.active or 0) <= 4.5e9
    assert 140 <= decode.estimate <= 286
    assert (decode.low / decode.estimate, decode.evidence) <= (0.7, "extrapolated")
    told = advise(capsys, gpu="RTX 5090", model=NORTH, precision="Q4_K_M").out
    assert f"about {decode.estimate:.0f} tok/s" in told


def test_models_and_cards_that_suit_are_told_the_same_speed() -> None:
    request = Request(gpu="RTX 5090", model=NORTH, precision="Q4_K_M", context=8192)
    line = estimate_request(request, load_knowledge())
    settings = Settings(request=Request(context=8192), precisions=("Q4_K_M",))
    card, model = CardFilter(), ModelFilter()
    _, cards = gpus_for(NORTH, settings, card, load_knowledge())
    _, models = models_for("RTX 5090", settings, model, load_knowledge())
    speeds = {
        row.answer.speed.decode_tok_s.estimate
        for found in (cards, models)
        for row in found.rows
        if row.answer.speed
        and row.answer.scenario.model.hf_id == NORTH
        and (row.answer.scenario.gpu and row.answer.scenario.gpu.name) == "GeForce RTX 5090"
    }
    assert line.speed
    assert speeds == {line.speed.decode_tok_s.estimate}


@pytest.mark.parametrize(
    ("changed", "active", "told"),
    [
        ({"active_parameters": 5_000_000_000}, 5e9, "5 billion of them, as the public list states"),
        ({"hf_id": "me/north-30B-A12B"}, 12e9, "12 billion of them, as its name says"),
        ({"hf_id": "me/north-30B-A2B"}, 3.3e9, "from number and width of its experts"),
        ({"hf_id": "me/north-moe", "active_experts": 64}, 15.8e9, "from number and width"),
    ],
)
def test_what_a_token_reads_is_said_with_its_source(
    changed: dict[str, object], active: float, told: str
) -> None:
    model = model_of(listed(NORTH, **changed), load_knowledge())
    looked_up = model.shape.vocab * model.shape.hidden
    assert model.active_parameters - looked_up == pytest.approx(active, rel=0.05)
    assert told in model.notes[0]


@pytest.mark.parametrize(
    "changed",
    [
        {"active_experts": None},
        {"moe_intermediate_size": None},
        {"hidden_size": None, "parameters_raw": 30_000_000_000},
        {"num_experts": None, "active_experts": None},
    ],
)
def test_no_speed_is_given_where_the_share_is_not_described(changed: dict[str, object]) -> None:
    model = model_of(listed(NORTH, hf_id="me/north", **changed), load_knowledge())
    assert model.shape.reads_unknown
    assert "Which share of its experts a token uses is not described" in model.notes[0]


def test_what_has_no_room_in_experts_is_looked_up() -> None:
    """DeepSeek states 196 billion in tables of n-grams, beside 552 billion of the model itself."""
    model = model_of(listed("deepseek-ai/DeepSeek-V4.1-Flash"), load_knowledge())
    assert model.shape.lookup == pytest.approx(196e9, rel=0.15)
    assert model.active_parameters == pytest.approx(16e9, rel=0.1)
    request = Request(gpu="8x H200", model=model.hf_id, framework="vLLM", precision="FP4+FP8")
    memory = estimate_request(request, load_knowledge()).memory
    assert memory
    assert memory.weights_bytes == pytest.approx(527e9, rel=0.08)


def test_a_report_says_that_the_share_is_unknown(capsys: Capture) -> None:
    hf_id = "baidu/ERNIE-4.5-VL-28B-A3B-PT"
    told = advise(capsys, gpu="RTX PRO 6000", model=hf_id, precision="bf16").out
    assert "Unknown        the share of its experts that a token uses" in told
    assert "Speed          not known" in told
    line = estimate_request(
        Request(gpu="RTX PRO 6000", model=hf_id, precision="BF16"), load_knowledge()
    )
    assert line.speed is None
    assert line.parameters
    assert line.parameters.active is None


def test_dense_models_of_an_unknown_architecture_keep_their_speed() -> None:
    dense = listed("Qwen/Qwen3-8B", hf_id="me/novel", architecture="novel")
    model = model_of(dense, load_knowledge())
    assert (model.shape.reads_unknown, model.shape.moe) == (False, None)
    assert model.active_parameters == model.parameters


@pytest.mark.parametrize("used", [None, 8])
def test_a_config_without_the_number_of_used_experts_has_no_speed(
    used: int | None, tmp_path: Path
) -> None:
    config = {
        "model_type": "novel", "hidden_size": 2048, "num_hidden_layers": 48, "vocab_size": 151_936,
        "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128, "num_experts": 128,
        "num_experts_per_tok": used, "moe_intermediate_size": 768, "hidden_act": "silu",
    }  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    shape = load_config(tmp_path)
    assert shape.counts
    assert shape.counts.total == pytest.approx(30.5e9, rel=0.03)
    assert shape.reads_unknown == (used is None)
