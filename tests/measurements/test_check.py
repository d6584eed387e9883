"""Rows against the knowledge base: names settled, and figures that cannot be refused."""

from __future__ import annotations

import json

import pytest

from advisor.errors import UserError
from advisor.estimator.calibration.user.benchmark import Skipped
from advisor.estimator.calibration.user.plausibility import Given, check
from tests.measurements.examples import CARD, KNOWLEDGE, bench, bench_json, checked, example, runs


def measured(content: str, **given: object) -> dict[str, object]:
    found = checked(runs(content)[0], **given)
    m = found.measurement
    return {name: getattr(m, name) for name in m.__struct_fields__}


def refusal(content: str, **given: object) -> str:
    with pytest.raises(UserError) as caught:
        checked(runs(content)[0], **given)
    return str(caught.value)


def table(**cells: object) -> str:
    values = {"gpu": CARD, "model": "Llama-3.1-8B", "precision": "Q4_K_M"} | cells
    values.setdefault("framework", "llama.cpp")
    return f"{','.join(values)}\n{','.join(str(v) for v in values.values())}\n"


def test_names_become_those_of_the_knowledge_base() -> None:
    row = measured(bench_json(bench()))
    assert row["gpu"] == CARD
    assert row["model"] == "Qwen2.5-7B-Instruct"
    assert (row["precision"], row["framework"], row["backend"]) == ("Q4_K_M", "llama.cpp", "CUDA")
    assert (row["gpus"], row["batch"], row["depth_tokens"], row["gen_tokens"]) == (1, 1, 0, 128)
    assert (row["metric"], row["tok_s"], row["stdev"]) == ("decode_tok_s", 118.882, 1.04181)


def test_the_source_is_the_row_own_or_the_file() -> None:
    assert measured(bench_json(bench()))["source"] == "x"
    assert measured(table(tok_s=100, source="forum"))["source"] == "forum"


def test_what_the_file_leaves_out_is_taken_from_the_options() -> None:
    row = measured(
        example("vllm-throughput.json").decode(),
        gpu="RTX 3090",
        model="Qwen2.5-7B-Instruct",
        precision="AWQ",
        prompt_tokens=512,
        gen_tokens=128,
        batch=32,
        date="2026-04-01",
    )
    assert (row["gpu"], row["precision"]) == ("GeForce RTX 3090", "AWQ 4-bit")
    assert (row["batch"], row["date"], row["framework"]) == (32, "2026-04-01", "vLLM")
    assert row["tok_s"] == pytest.approx(3101.5 * 128 / 640)


def test_latency_becomes_generated_tokens_of_the_batch() -> None:
    row = measured(
        example("vllm-latency.json").decode(),
        gpu="RTX 3090", model="Qwen2.5-7B-Instruct", precision="AWQ", gen_tokens=128, batch=8,
    )  # fmt: skip
    assert row["tok_s"] == pytest.approx(8 * 128 / 2.417, rel=1e-5)


def test_a_size_is_kept_where_the_card_is_sold_with_several() -> None:
    row = measured(table(gpu="Apple M4 Pro:48GB", tok_s=30))
    assert row["gpu"] == "Apple M4 Pro:48GB"
    assert row["backend"] == "Metal"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"gpu": "RTX 3090"}, "the file says GPU 'NVIDIA GeForce RTX 4080', you say 'RTX 3090'"),
        ({"model": "llama-3-8b"}, "the file says model 'Qwen2.5-7B-Instruct'"),
        ({"precision": "Q8_0"}, "the file says weight format 'Q4_K_M', you say 'Q8_0'"),
        ({"framework": "vLLM"}, "the file says framework 'llama.cpp', you say 'vLLM'"),
        ({"backend": "Vulkan"}, "the file says backend 'CUDA', you say 'Vulkan'"),
    ],
)
def test_an_option_must_not_contradict_the_file(given: dict[str, object], words: str) -> None:
    assert words in refusal(bench_json(bench()), **given)


def test_an_option_settles_what_the_file_leaves_open() -> None:
    ambiguous = bench_json(bench(gpu_info="NVIDIA GeForce RTX 4060 Ti", avg_ts=50))
    assert "names several cards" in refusal(ambiguous)
    assert "--gpu" in refusal(ambiguous)
    row = measured(ambiguous, gpu="RTX 4060 Ti 16 GB")
    assert row["gpu"] == "GeForce RTX 4060 Ti 16 GB"


def test_everything_missing_is_named_at_once() -> None:
    message = refusal(example("vllm-throughput.json").decode())
    for option in ("--gpu", "--model", "--precision", "--batch"):
        assert option in message
    assert all(line.startswith("x:1: ") for line in message.splitlines())


def test_unknown_names_come_with_the_nearest() -> None:
    message = refusal(table(gpu="RTX 4091", model="Lama-3.1-8B", precision="Q4_K_N", tok_s=9))
    assert "unknown GPU 'RTX 4091'. Did you mean" in message
    assert "unknown model 'Lama-3.1-8B'" in message
    assert "unknown weight format 'Q4_K_N'. Did you mean" in message
    assert len(message.splitlines()) == 3


def test_models_of_the_same_size_are_offered_where_none_is_named() -> None:
    message = refusal(bench_json(bench(model_filename="")))
    assert "models of 7.62 B here" in message
    assert "DeepSeek-R1-Distill-Qwen-7B" in message


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (bench_json(bench(avg_ts=400)), "would read 1,7"),
        (table(model="Qwen2.5-3B", precision="FP16", tok_s=300), "GeForce RTX 4080 has 717"),
        (
            bench_json(bench(n_prompt=512, n_gen=0, avg_ts=90_000)),
            "90,000 prompt tok/s of Qwen2.5-7B-Instruct in Q4_K_M would take 1,3",
        ),
        (table(model="Llama-3.1-70B", tok_s=5), "needs 24."),
        (bench_json(bench(model_n_params=8.03e9)), "8.03 B parameters, Qwen2.5-7B-Instruct has"),
        (bench_json(bench(model_size=8_100_000_000)), "the file's weights take 7.5 GiB"),
    ],
)
def test_what_cannot_be_is_refused_with_the_figures(content: str, words: str) -> None:
    assert words in refusal(content)


def test_one_hundred_and_three_percent_of_the_bandwidth_is_where_belief_ends() -> None:
    """RTX 4080: 716.8 GB/s; Q8_0 of an 8B model reads 7.97 GB for one token."""
    assert measured(table(precision="Q8_0", tok_s=91))["tok_s"] == 91
    assert "would read" in refusal(table(precision="Q8_0", tok_s=94))


def test_a_split_model_is_passed_over() -> None:
    found = check(
        runs(bench_json(bench(n_gpu_layers=20)))[0], Given(), KNOWLEDGE, file="x", name="x"
    )
    assert found == Skipped(1, "20 of 29 layers were on the card; splits are not stored")


@pytest.mark.parametrize("layers", [29, 99, -1])
def test_all_layers_are_no_split(layers: int) -> None:
    assert measured(bench_json(bench(n_gpu_layers=layers)))["tok_s"] == 118.882


def test_a_speed_far_from_the_estimate_is_kept_with_a_remark() -> None:
    (warning,) = checked(runs(table(tok_s=20))[0]).warnings
    assert "1/5" in warning
    assert "do not follow it" in warning
    assert not checked(runs(table(tok_s=100))[0]).warnings


def test_what_just_fits_in_practice_is_kept_with_a_remark() -> None:
    row = table(model="Qwen2.5-14B-Instruct", precision="Q8_0", tok_s=30, depth_tokens=6144)
    (warning,) = checked(runs(row)[0]).warnings
    assert "too large for GeForce RTX 4080" in warning


def test_what_does_not_run_is_refused_as_advise_would() -> None:
    message = refusal(table(precision="AWQ", tok_s=50))
    assert "llama.cpp does not run AWQ 4-bit" in message


def test_streams_must_be_known() -> None:
    doc = json.loads(example("vllm-serve.json")) | {"max_concurrency": None}
    assert "State it: --batch" in refusal(json.dumps(doc), gpu="RTX 3090")
    assert measured(json.dumps(doc), gpu="RTX 3090", batch=8)["batch"] == 8
