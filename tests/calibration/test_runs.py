"""A carried row becomes a run of the estimator, or is dropped with a reason."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from advisor.estimator.calibration.dataset import conditions_of, speed_rows
from advisor.estimator.calibration.observations import Observation, observations
from advisor.estimator.calibration.runs import Run, depth_step, runs_of, scenario_of
from advisor.estimator.measured_speed import Measurement
from advisor.estimator.speed_tables import read_policy
from advisor.knowledge import load_knowledge

KNOWLEDGE = load_knowledge()
POLICY = read_policy(KNOWLEDGE.calibration)
MEASURED = Measurement(
    gpu="GeForce RTX 4080", gpus=1, model="Llama-3.1-8B", precision="Q4_K_M",
    framework="llama.cpp", framework_version="b5000", backend="CUDA", prompt_tokens=512,
    gen_tokens=128, depth_tokens=0, batch=1, metric="decode_tok_s", tok_s=100.0, stdev=None,
    date="2026-01", source="", note="",
)  # fmt: skip
NOTHING_SAID = conditions_of(dict.fromkeys(speed_rows()[0], ""))
SEEN = Observation("S1", MEASURED, NOTHING_SAID, None, "somebody", False, False, True, False)


def told(row: str = "S1", note: dict[str, object] | None = None, **fields: object) -> Observation:
    seen = {
        name: fields.pop(name)
        for name in ("source", "stated_bytes", "raw", "dynamic")
        if name in fields
    }
    conditions = replace(NOTHING_SAID, **(note or {}))
    measured = replace(MEASURED, **fields)
    return replace(SEEN, row=row, measured=measured, conditions=conditions, **seen)


def kept(*rows: Observation) -> list[Run]:
    found = runs_of(rows, KNOWLEDGE, POLICY)
    assert not found.dropped
    return list(found.kept)


def reason(row: Observation) -> str:
    found = runs_of([row], KNOWLEDGE, POLICY)
    assert not found.kept
    ((why, count),) = found.dropped.items()
    assert count == 1
    return why


def test_a_row_is_the_scenario_it_was_taken_in() -> None:
    (run,) = kept(told())
    assert run.card == ("GeForce RTX 4080", "CUDA")
    assert run.scenario.depth_tokens == 64, "half of what was written lies in the cache"
    assert run.scenario.context_tokens == 4096
    assert (run.tok_s, run.rows, run.family, run.split) == (100.0, ("S1",), True, False)
    deep = scenario_of(replace(MEASURED, depth_tokens=8192), KNOWLEDGE)
    assert deep.context_tokens > 8192 + 512 + 128


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (told(note={"moved": True}), "a share that is not stated"),
        (told(metric="prefill_tok_s", prompt_tokens=63), "fewer than 64 tokens"),
        (told(metric="total_throughput_tok_s"), "prompt and answer together"),
        (told(tok_s=200.0), "more than 103 % of the card's bandwidth"),
        (told(tok_s=200.0, gpus=4), "more than 103 % of the card's bandwidth"),
        (told(model="Qwen2.5-32B-Instruct"), "more than 93% of the card"),
        (told(raw=True, stated_bytes=8e9), "more than 30 %"),
    ],
)
def test_what_cannot_be_used_is_dropped_with_the_reason(row: Observation, words: str) -> None:
    assert words in reason(row)


def test_cards_that_read_at_once_may_be_as_fast_as_all_of_them() -> None:
    (run,) = kept(told(tok_s=200.0, gpus=4, note={"tensor": True}))
    assert run.tensor


def test_self_reported_runs_must_leave_more_memory_free() -> None:
    row = told(model="Qwen2.5-14B-Instruct", precision="Q8_0", tok_s=40.0)
    assert kept(row)
    assert "self-reported" in reason(replace(row, self_reported=True))


def test_a_stated_size_scales_what_is_read_only_where_a_tool_printed_it() -> None:
    plain = kept(told())[0].reads.gpu_bytes
    assert kept(told(stated_bytes=5e9))[0].reads.gpu_bytes == plain
    small, large = (
        kept(told(stated_bytes=size, raw=True))[0].reads.gpu_bytes for size in (5.0e9, 5.5e9)
    )
    assert large / small == pytest.approx(1.1)


@pytest.mark.parametrize(
    ("name", "date", "own", "served"),
    [
        ("Ollama", "2026-05", "Ollama", False),
        ("Ollama", "2025", "Ollama", False),
        ("Ollama", "2026-06", "", True),
        ("llama.cpp", "2026-05", "", False),
    ],
)
def test_a_program_has_a_pace_of_its_own_until_it_starts_llama_server(
    name: str, date: str, own: str, *, served: bool
) -> None:
    (run,) = kept(told(framework=name, date=date))
    assert (run.program, run.served) == (own, served)


@pytest.mark.parametrize(
    ("date", "older"),
    [
        ("2024-05", True), ("2024-06", False), ("2023", True), ("2024", False), ("", False),
        ("2026-08-19", False),
    ],
)  # fmt: skip
def test_prompts_of_older_builds_are_told_apart(date: str, older: bool) -> None:  # noqa: FBT001
    (run,) = kept(told(metric="prefill_tok_s", prompt_tokens=512, date=date))
    assert run.older is older


def test_speed_is_over_all_streams() -> None:
    (run,) = kept(told(batch=4, tok_s=50.0))
    assert run.tok_s == 200.0
    (total,) = kept(told(batch=4, tok_s=200.0, metric="total_throughput_tok_s"))
    assert total.tok_s == 200.0


def test_rows_of_one_source_and_setup_are_their_median() -> None:
    rows = [told(f"S{i}", tok_s=speed) for i, speed in enumerate((90.0, 100.0, 140.0))]
    (run,) = kept(*rows)
    assert run.tok_s == 100.0
    assert run.rows == ("S0", "S1", "S2")
    assert len(kept(*rows, told("S3", source="another"))) == 2


def test_the_newest_build_counts_and_flash_attention_before_none() -> None:
    old = told("S1", framework_version="b4000", tok_s=60.0)
    new = told("S2", framework_version="build: abc (5000)", tok_s=100.0)
    slow = told("S3", framework_version="b5000", tok_s=80.0, note={"flash": False})
    (run,) = kept(old, new, slow)
    assert run.tok_s == 100.0
    assert run.rows == ("S1", "S2", "S3")
    assert kept(old, slow)[0].tok_s == 80.0


@pytest.mark.parametrize(("tokens", "step"), [(0, 0), (1024, 0), (2048, 2), (2896, 3), (4096, 4)])
def test_depths_are_sorted_into_steps(tokens: int, step: int) -> None:
    assert depth_step(tokens) == step


def test_layers_left_in_ram_make_a_split() -> None:
    row = told(note={"gpu_layers": 16}, tok_s=15.0)
    (run,) = kept(row)
    assert run.split
    assert run.scenario.gpu_layers == 16
    assert run.reads.host_bytes > 0
    assert not kept(told(note={"gpu_layers": 99}))[0].split


def test_a_prompt_is_read_from_its_own_depth() -> None:
    alone = told(metric="prefill_tok_s", depth_tokens=512, tok_s=5000.0)
    assert kept(alone)[0].scenario.depth_tokens == 0, "some tables give the prompt as the depth"
    behind = told(metric="prefill_tok_s", depth_tokens=4096, tok_s=5000.0)
    assert kept(behind)[0].scenario.depth_tokens == 4096


def test_builds_before_todays_kernels_are_told_apart() -> None:
    def experts(date: str, backend: str = "CUDA") -> Run:
        row = told(model="gpt-oss-20b", precision="MXFP4_MOE", date=date, backend=backend)
        return kept(row)[0]

    assert experts("2025-08").older
    assert not experts("2025-11").older
    assert experts("2025-08", "Vulkan").older
    assert not experts("2025-08", "SYCL").older
    (others,) = kept(told(date="2025-08"))
    assert not others.older, "of other formats the launches stayed the same"


def test_attention_without_flash_is_told_apart() -> None:
    runs = [("2025-08", None), ("2025-09", None), ("2025-08", True), ("2026-01", False)]
    found = [kept(told(date=date, note={"flash": flash}))[0].plain for date, flash in runs]
    assert found == [True, False, False, True]


@pytest.mark.parametrize(
    ("gpus", "watts", "limited"),
    [(1, 220, True), (1, 250, False), (1, None, False), (4, 220, False)],
)
def test_one_card_far_below_its_power_is_told_apart(
    gpus: int,
    watts: int | None,
    limited: bool,  # noqa: FBT001
) -> None:
    """An RTX 3090 has 350 W; several cards wait for each other and lose nothing."""
    assert (
        kept(told(gpu="GeForce RTX 3090", gpus=gpus, note={"power_w": watts}))[0].limited is limited
    )


def test_prompts_that_were_read_meanwhile_are_tokens_of_a_step() -> None:
    between: dict[str, object] = {"prompts_between": True}
    (run,) = kept(told(batch=4, gen_tokens=256, note=between))
    assert (run.prompts, run.further) == (2.0, 11.0)
    (alone,) = kept(told(gen_tokens=256, note=between))
    assert (alone.prompts, alone.further) == (0.0, 0.0)
    (answers,) = kept(told(batch=4, gen_tokens=256))
    assert (answers.prompts, answers.further) == (0.0, 3.0)


@pytest.mark.parametrize(
    ("model", "outside"),
    [("Qwen3.6-35B-A3B", "Q8_0"), ("Qwen3-30B-A3B", "Q4_K_M"), ("Qwen3.6-27B", "Q4_K_M")],
)
def test_newer_dynamic_recipes_of_mixtures_read_more_of_what_is_no_expert(
    model: str, outside: str
) -> None:
    common: dict[str, Any] = {"model": model, "gpu": "RTX A6000", "tok_s": 30.0}
    (plain,), (dynamic,) = kept(told(**common)), kept(told(**common, dynamic=True))
    assert (plain.outside, dynamic.outside) == ("Q4_K_M", outside)
    assert (dynamic.reads.gpu_bytes > 1.4 * plain.reads.gpu_bytes) is (outside == "Q8_0")
    assert dynamic.reads.gpu_expert_bytes == plain.reads.gpu_expert_bytes


def test_the_stated_size_of_a_dynamic_file_less_what_is_no_expert_is_experts() -> None:
    seen = told(model="Qwen3.6-35B-A3B", gpu="RTX A6000", tok_s=30.0, dynamic=True)
    (run,), (stated,) = kept(seen), kept(replace(seen, raw=True, stated_bytes=21.0e9))
    assert stated.reads.gpu_bytes == run.reads.gpu_bytes
    assert 0.85 < stated.reads.gpu_expert_bytes / run.reads.gpu_expert_bytes < 1


@pytest.mark.parametrize(
    ("quant", "model", "dynamic"),
    [
        ("UD-Q4_K_M", "Qwen3.6-35B-A3B", True),
        ("Q4_K_XL", "Qwen3.6-35B-A3B", True),
        ("Q4_K_M", "Qwen3.6-35B-A3B-UD-Q4_K_M", True),
        ("Q3_K_XL", "Qwen3.6-35B-A3B", False),
        ("Q4_K_M", "Qwen3.6-35B-A3B", False),
    ],
)
def test_a_dynamic_recipe_is_known_by_its_name(quant: str, model: str, *, dynamic: bool) -> None:
    row = next(row for row in speed_rows() if row["id"] == "V01000")
    (seen,) = observations(KNOWLEDGE, [{**row, "quant": quant, "model": model}]).kept
    assert seen.dynamic is dynamic
