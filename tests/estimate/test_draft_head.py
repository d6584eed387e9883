"""A model's own draft head: which models carry one, what it takes, and what it may bring."""

from __future__ import annotations

import re
from functools import lru_cache

import pytest
from msgspec.structs import replace

from advisor.advice import Advisor
from advisor.errors import UserError
from advisor.estimator import estimate_memory
from advisor.estimator.calibration.fits import pairs_of_situations
from advisor.estimator.kv_cache import HEAD_GUESSED, head_parameters, kv_bytes_per_token
from advisor.estimator.speed import estimate_speed
from advisor.knowledge import load_knowledge
from advisor.knowledge.types import Knowledge, ModelRecord
from advisor.models import model_from_record
from advisor.models.config import read_config
from advisor.runtimes.commands import commands_for
from advisor.scenario import Scenario
from advisor.scenario.figures import Memory, Speed
from advisor.scenario.resolve import resolve
from advisor.scenario.settings import Request

GIB = 2**30
_TOLD = re.compile(r"layers? that drafts?|with its multi-token-prediction layer")
"""Of those whose count of such layers is not held against a formula."""
_HOLDS = re.compile(r"holds ([\d.]+) B with its multi-token-prediction layer\.")


@lru_cache(maxsize=1)
def known() -> Knowledge:
    return load_knowledge()


def heads() -> dict[str, ModelRecord]:
    return {name: r for name, r in known().models.items() if _HOLDS.search(r.notes)}


def scenario(**asked: object) -> Scenario:
    return resolve(Request(**asked), known())  # type: ignore[arg-type]  # Request keys


def estimates(**asked: object) -> tuple[Memory, Speed]:
    whole = scenario(**asked)
    memory = estimate_memory(whole, known())
    speed = estimate_speed(whole, memory, known())
    assert speed is not None
    return memory, speed


def test_a_head_is_what_the_checkpoint_holds_beyond_the_main_model() -> None:
    """To 3 million parameters, with no copy or one of embedding and output each."""
    checked = 0
    for name, record in heads().items():
        model = model_from_record(record, known())
        shape, own = model.shape, head_parameters(model.shape)
        found = _HOLDS.search(record.notes)
        assert found is not None
        assert own is not None, name
        rest = float(found[1]) * 1e9 - model.parameters - own
        copies = 2 * shape.vocab * shape.hidden
        # One DeepSeek count holds the router's biases and scales as well: 0.04 billion.
        assert min(abs(rest), abs(rest - copies)) < (
            45e6 if "deepseek" in shape.model_type else 3e6
        )
        checked += 1
    assert checked == 30


def test_only_models_with_such_a_layer_have_a_head() -> None:
    for name, record in known().models.items():
        try:
            shape = model_from_record(record, known()).shape
        except UserError:
            continue
        if shape.mtp_layers:
            assert _TOLD.search(f"{record.verified} {record.notes}"), name
        else:
            assert name not in heads()


FITS = {"gpu": "RTX 4090", "model": "Qwen3.6-27B", "precision": "Q4_K_M"}


def test_a_head_costs_its_weights_and_a_cache_of_one_layer() -> None:
    plain, _ = estimates(**FITS)
    drafted, _ = estimates(**FITS, mtp=2)
    weights = drafted.weights_bytes - plain.weights_bytes
    assert weights == pytest.approx(0.4247e9 * (plain.bits_per_weight or 0) / 8, rel=0.01)
    assert HEAD_GUESSED in drafted.approximate
    assert drafted.high_bytes - drafted.required_bytes > plain.high_bytes - plain.required_bytes
    longer, _ = estimates(**FITS, mtp=2, context=8192)
    before, _ = estimates(**FITS, context=8192)
    per_token = kv_bytes_per_token(scenario(**FITS)) / 16
    grown = (longer.kv_cache_bytes - before.kv_cache_bytes) - (
        drafted.kv_cache_bytes - plain.kv_cache_bytes
    )
    assert grown == 4096 * per_token


def test_every_drafted_token_keeps_a_recurrent_state() -> None:
    one, two = (estimates(**FITS, mtp=n)[0].kv_cache_bytes for n in (1, 2))
    states = 48 * (48 * 128 * 128 * 4)
    assert two - one == pytest.approx(states, rel=0.05)


def test_llama_cpp_keeps_no_such_states_for_qwen3_next() -> None:
    asked = {"gpu": "RTX 5090", "model": "Qwen3-Next-80B-A3B-Instruct", "precision": "Q2_K"}
    one, two = (estimates(**asked, mtp=n)[0].kv_cache_bytes for n in (1, 2))
    assert one == two


def test_a_tensor_split_shares_the_head() -> None:
    asked = {"gpu": "H200 SXM", "gpus": 8, "model": "DeepSeek-R1", "framework": "vLLM"}
    plain, _ = estimates(**asked, precision="FP8")
    drafted, _ = estimates(**asked, precision="FP8", mtp=1)
    added = {
        b.required_bytes - a.required_bytes
        for a, b in zip(plain.per_gpu, drafted.per_gpu, strict=True)
    }
    assert len(added) == 1
    assert added.pop() * 8 == pytest.approx(11.6e9, rel=0.1)


def test_the_plain_figures_stay_as_they_are() -> None:
    _, plain = estimates(**FITS)
    _, drafted = estimates(**FITS, mtp=2)
    assert replace(drafted, speculative_tok_s=None) == plain
    span = drafted.speculative_tok_s
    assert span is not None
    assert span.low < plain.decode_tok_s.estimate < span.high


def test_small_models_may_lose_most_of_their_speed() -> None:
    def lowest(model: str) -> float:
        _, speed = estimates(gpu="RTX 4090", model=model, precision="FP16", mtp=2)
        assert speed.speculative_tok_s is not None
        return speed.speculative_tok_s.low / speed.decode_tok_s.estimate

    assert lowest("Qwen3.5-0.8B") < 0.4
    assert 0.7 < lowest("Qwen3.5-9B") < 1


def test_the_span_is_that_of_the_carried_pairs() -> None:
    found = pairs_of_situations()
    assert found["mtp"].low < 1 < found["mtp"].middle < found["mtp"].high
    assert found["draft_model"].low < 1 < found["draft_model"].high
    assert len(found["mtp"].factors) >= 30
    _, speed = estimates(**FITS, mtp=2)
    assert speed.speculative_tok_s is not None
    plain, span = speed.decode_tok_s, speed.speculative_tok_s
    assert span.low <= plain.low
    assert span.high / plain.estimate == pytest.approx(found["mtp"].high, rel=0.04)
    assert span.high / plain.estimate > found["mtp"].high


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"model": "qwen3-32b"}, "has no layer for multi-token prediction"),
        ({"model": "Qwen3.6-27B", "framework": "Ollama"}, "is not known to draft"),
        ({"model": "DeepSeek-R1"}, "is not known to draft"),
        ({"model": "Qwen3.6-27B", "draft_model": "Qwen3.5-0.8B"}, "exclude each other"),
        ({"model": "Qwen3.6-27B", "mtp": 99}, "at most 16"),
    ],
)
def test_what_cannot_draft_is_refused(asked: dict[str, object], said: str) -> None:
    with pytest.raises(UserError, match=said):
        scenario(**{"gpu": "RTX 4090", "precision": "Q4_K_M", "mtp": 2, **asked})


@pytest.mark.parametrize(
    ("framework", "precision", "typed"),
    [
        ("llama.cpp", "Q4_K_M", "--spec-type draft-mtp --spec-draft-n-max 2"),
        ("vLLM", "FP8", '{"method": "mtp", "num_speculative_tokens": 2}'),
        ("SGLang", "FP8", "--speculative-algorithm NEXTN --speculative-num-steps 2"),
    ],
)
def test_the_command_says_how(framework: str, precision: str, typed: str) -> None:
    found = scenario(
        gpu="H100 SXM5 80 GB", model="Qwen3.6-27B", precision=precision, framework=framework, mtp=2
    )
    assert typed in commands_for(found)[0].text
    plain = replace(found, mtp=0)
    assert typed not in commands_for(plain)[0].text


def test_a_report_offers_it_with_low_confidence() -> None:
    advice = Advisor.load().advise(Request(**FITS, prefer="speed"))  # type: ignore[arg-type]  # Request keys
    found = [r for r in advice.recommendations if r.option.change == {"mtp": 2}]
    assert [r.confidence for r in found] == ["low"]
    assert found[0].rule == "own-head-for-speed"


@pytest.mark.parametrize("key", ["num_nextn_predict_layers", "mtp_num_hidden_layers"])
def test_a_config_says_whether_there_is_a_head(key: str) -> None:
    config = dict(known().models["MiMo-7B-RL"].config)
    config.pop("num_nextn_predict_layers")
    assert read_config(config, "x").mtp_layers == 0
    assert read_config({**config, key: 1}, "x").mtp_layers == 1
    for wrong in (0, -1, "one", None, 10_000):
        assert read_config({**config, key: wrong}, "x").mtp_layers == 0
