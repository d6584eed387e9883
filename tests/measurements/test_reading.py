"""Files as the tools write them: what is recognised, what is taken, what is passed over."""

from __future__ import annotations

import json
import math

import pytest

from advisor.errors import RequestError, UserError
from advisor.estimator.calibration.user.benchmark import (
    Run,
    Skipped,
    backend_of,
    card_spellings,
    of_gguf,
    of_hub,
    of_model_type,
)
from tests.measurements.examples import bench, bench_json, example, read, runs


def only(content: str) -> Run | Skipped | UserError:
    (row,) = read(content)
    return row


def why_skipped(**changes: object) -> str:
    row = only(bench_json(bench(**changes)))
    assert isinstance(row, Skipped), row
    return row.reason


def why_refused(content: str) -> str:
    row = only(content)
    assert isinstance(row, UserError), row
    return str(row)


@pytest.mark.parametrize("name", ["llama-bench.json", "llama-bench.jsonl", "llama-bench.csv"])
def test_every_form_of_llama_bench_says_the_same(name: str) -> None:
    prefill, decode = runs(example(name))
    assert (prefill.metric, prefill.prompt_tokens) == ("prefill_tok_s", 512)
    assert (decode.metric, decode.gen_tokens, decode.depth_tokens) == ("decode_tok_s", 128, 0)
    assert decode.tok_s == pytest.approx(119, rel=0.01)
    assert decode.stdev == pytest.approx(1, rel=0.6)
    assert (decode.gpu, decode.gpus, decode.backend) == ("NVIDIA GeForce RTX 4080", 1, "CUDA")
    assert decode.models[0] == "Qwen2.5-7B-Instruct"
    assert decode.precisions[0] == "Q4_K_M"
    assert decode.framework_version == "b5163 (8cf427ff)"
    assert decode.date == "2025-04-24"
    assert decode.parameters == 7615616512
    assert "n_ubatch=512" in decode.note


def test_a_markdown_table_gives_tests_depths_and_the_card_of_the_log() -> None:
    rows = read(example("llama-bench.md"))
    found = [row for row in rows if isinstance(row, Run)]
    assert [(r.metric, r.depth_tokens) for r in found] == [
        ("prefill_tok_s", 0), ("decode_tok_s", 0), ("prefill_tok_s", 512), ("decode_tok_s", 512),
    ]  # fmt: skip
    assert {r.gpu for r in found} == {"NVIDIA GeForce RTX 4080"}
    assert {r.framework_version for r in found} == {"b5163 (8cf427ff)"}
    assert [r.stdev for r in found] == [23.45, 0.59, 18.88, 0.6]
    assert found[0].precisions == ("Q4_K_M",)
    assert found[0].models == ()
    assert [r.reason for r in rows if isinstance(r, Skipped)] == [
        "pp512+tg128 is one figure of reading and writing together"
    ]


def test_the_old_spelling_of_tests_is_read_too() -> None:
    table = (
        "| model | size | params | backend | ngl | test | t/s |\n|---|---|---|---|---|---|---|\n"
        "| llama 7B mostly Q4_0 | 3.56 GiB | 6.74 B | CUDA | 99 | tg 128 | 131.42 ± 0.59 |\n"
    )
    (row,) = runs(table)
    assert (row.gen_tokens, row.tok_s, row.precisions) == (128, 131.42, ("Q4_0",))
    assert row.parameters == pytest.approx(6.74e9)
    assert row.line == 3


def test_vllm_serving_gives_one_stream_and_all_streams() -> None:
    one, total = runs(example("vllm-serve.json"))
    assert one.metric == "decode_tok_s"
    assert one.tok_s == pytest.approx(1000 / 12.41)
    assert one.stdev == pytest.approx(one.tok_s * 0.74 / 12.41)
    assert (total.metric, total.tok_s) == ("total_throughput_tok_s", 571.98)
    for run in (one, total):
        assert (run.prompt_tokens, run.gen_tokens, run.depth_tokens) == (512, 256, 512)
        assert (run.batch, run.framework, run.date) == (8, "vLLM", "2026-03-18")
        assert run.models[0] == "Qwen/Qwen2.5-7B-Instruct"
        assert run.precisions == ("AWQ",)


def test_sglang_says_model_type_and_version_of_its_server() -> None:
    found = runs(example("sglang.jsonl"))
    assert [(r.metric, r.batch) for r in found] == [
        ("decode_tok_s", 1), ("total_throughput_tok_s", 1),
        ("decode_tok_s", 4), ("total_throughput_tok_s", 4),
    ]  # fmt: skip
    assert {(r.framework, r.framework_version, r.precisions) for r in found} == {
        ("SGLang", "0.5.5", ("BF16",))
    }
    assert [r.line for r in found] == [1, 1, 2, 2]


def test_an_openai_interface_may_hide_any_engine() -> None:
    doc = json.loads(example("vllm-serve.json")) | {"backend": "openai-chat"}
    run = runs(json.dumps(doc))[0]
    assert (run.framework, run.usual_framework) == ("", "vLLM")


@pytest.mark.parametrize(
    ("changes", "streams"),
    [
        ({}, 8),
        ({"max_concurrency": None}, None),
        ({"request_rate": 4.0}, None),
        ({"request_rate": 4.0, "max_concurrency": 1}, 1),
        ({"num_prompts": 3, "completed": 3}, 3),
    ],
)
def test_streams_are_known_only_where_a_limit_was_the_only_brake(
    changes: dict[str, object], streams: int | None
) -> None:
    doc = json.loads(example("vllm-serve.json")) | changes
    assert {run.batch for run in runs(json.dumps(doc))} == {streams}


def test_offline_runs_say_what_their_figure_counts() -> None:
    (throughput,) = runs(example("vllm-throughput.json"))
    (latency,) = runs(example("vllm-latency.json"))
    assert (throughput.per, throughput.tok_s) == ("prompts too", 3101.5)
    assert latency.per == "batch"
    assert latency.tok_s == pytest.approx(1 / 2.417)


def test_the_simple_csv() -> None:
    decode, prefill, bare = runs(example("simple.csv"))
    assert (decode.gpu, decode.models, decode.note) == (
        "RTX 3090", ("Llama-3.1-8B",), "after a BIOS update",
    )  # fmt: skip
    assert (prefill.metric, prefill.prompt_tokens) == ("prefill_tok_s", 512)
    assert (bare.prompt_tokens, bare.stdev, bare.framework) == (None, None, "Ollama")
    assert [r.line for r in (decode, prefill, bare)] == [2, 3, 4]


@pytest.mark.parametrize("parted", [",", ";", "\t"])
def test_semicolons_and_tabs_part_cells_too(parted: str) -> None:
    (row,) = runs("gpu,model,quant,tok/s\nRTX 3090,Llama-3.1-8B,Q4_K_M,100\n".replace(",", parted))
    assert (row.precisions, row.tok_s) == (("Q4_K_M",), 100)


def test_json_objects_may_have_the_columns_of_the_simple_csv() -> None:
    (row,) = runs('{"gpu": "RTX 3090", "model": "m", "precision": "Q8_0", "tok_s": 12}')
    assert (row.tok_s, row.metric) == (12, "decode_tok_s")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"n_prompt": 512}, "pp512+tg128"),
        ({"embeddings": True}, "embeddings"),
        ({"backends": "CPU"}, "CPU"),
        ({"backends": "BLAS"}, "CPU"),
        ({"backends": "CUDA,RPC"}, "RPC"),
        ({"n_gpu_layers": 0}, "no layer"),
        ({"n_cpu_moe": 4}, "experts were in system RAM"),
        ({"tensor_buft_overrides": "exps=CPU"}, "by hand"),
        ({"no_kv_offload": True}, "KV cache was in system RAM"),
        ({"type_k": "q8_0"}, "KV cache was f16 and q8_0"),
        ({"gpu_info": "NVIDIA GeForce RTX 3090, NVIDIA GeForce RTX 4080"}, "different cards"),
        ({"gpu_info": "RTX 3090, RTX 3090", "split_mode": "row"}, "split mode row"),
    ],
)
def test_rows_of_no_use_are_passed_over_with_the_reason(
    changes: dict[str, object], words: str
) -> None:
    assert words in why_skipped(**changes)


@pytest.mark.parametrize(
    ("changes", "cards"),
    [
        ({}, 2),
        ({"split_mode": "none", "main_gpu": 1}, 1),
        ({"devices": "CUDA1"}, 1),
        ({"tensor_split": "1.00"}, 1),
        ({"tensor_split": "1.00/1.00"}, 2),
        ({"devices": "CUDA0/CUDA1"}, 2),
    ],
)
def test_only_cards_that_took_part_count(changes: dict[str, object], cards: int) -> None:
    (run,) = runs(bench_json(bench(gpu_info="RTX 3090, RTX 3090", **changes)))
    assert (run.gpu, run.gpus) == ("RTX 3090", cards)


def test_a_draft_model_makes_a_run_useless() -> None:
    doc = json.loads(example("sglang.jsonl").splitlines()[0]) | {"accept_length": 2.4}
    row = only(json.dumps(doc))
    assert isinstance(row, Skipped)
    assert "draft model" in row.reason


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"avg_ts": 0}, "avg_ts is 0"),
        ({"avg_ts": -3}, "avg_ts is -3"),
        ({"avg_ts": math.nan}, "avg_ts is nan"),
        ({"avg_ts": math.inf}, "avg_ts is inf"),
        ({"avg_ts": "fast"}, "avg_ts is 'fast', not a number"),
        ({"avg_ts": [1]}, "avg_ts is [1], not a number"),
        ({"avg_ts": True}, "avg_ts is True, not a number"),
        ({"avg_ts": None}, "avg_ts is missing"),
        ({"n_gen": 1.5}, "n_gen is 1.5"),
        ({"n_gen": 1e300}, "n_gen is 1e+300"),
        ({"n_gen": 0}, "neither n_prompt nor n_gen"),
        ({"gpu_info": {"name": "x"}}, "gpu_info is not a text"),
        ({"n_gpu_layers": "many"}, "n_gpu_layers is 'many'"),
    ],
)
def test_a_wrong_value_is_named_with_its_field_and_line(
    changes: dict[str, object], words: str
) -> None:
    message = why_refused(json.dumps([bench(**changes)]))
    assert words in message
    assert message.startswith("x:1: ")


def test_objects_have_the_line_they_start_on() -> None:
    text = example("llama-bench.json").decode()
    assert [run.line for run in runs(text)] == [2, 48]


def test_a_run_that_was_cut_short_keeps_what_was_whole() -> None:
    text = example("llama-bench.json").decode()
    whole, cut = read(text[: len(text) - 400])
    assert isinstance(whole, Run)
    assert isinstance(cut, UserError)
    assert "x:48: the object that starts here is not JSON" in str(cut)
    assert "cut short" in str(cut)


def test_a_bad_line_costs_no_other_line() -> None:
    first, second = example("sglang.jsonl").decode().splitlines()
    rows = read(f"{first}\n{{bad\n{second}\n")
    assert [type(row) for row in rows] == [Run, Run, RequestError, Run, Run]
    assert "x:2:" in str(rows[2])


def test_several_objects_after_one_another_are_read() -> None:
    text = example("vllm-serve.json").decode()
    assert len(runs(f"{text}\n{text}")) == 4


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(example("llama-bench.csv").replace(b"\n", b"\r\n"), id="CRLF"),
        pytest.param(b"\xef\xbb\xbf" + example("llama-bench.csv"), id="BOM"),
        pytest.param(
            b"\xff\xfe" + example("llama-bench.csv").decode().encode("utf-16-le"), id="PowerShell"
        ),
        pytest.param(b"\n\n# mine\n" + example("llama-bench.csv") + b"\n\n", id="empty lines"),
    ],
)
def test_how_a_text_is_saved_does_not_matter(content: bytes) -> None:
    assert [run.tok_s for run in runs(content)] == [7285.676949, 119.915244]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "the file is empty"),
        (b" \n\n", "the file is empty"),
        (b"\x00\x01\x02", "not a text file"),
        (b"\xff\xd8\xff\xe0JFIF", "not a text file"),
        (b"hello", "no measurement was recognised"),
        (b"a,b\n1,2\n", "no measurement was recognised"),
        (b"[]", "no measurement was recognised"),
        (b"CREATE TABLE IF NOT EXISTS llama_bench (", "no measurement was recognised"),
    ],
)
def test_a_file_of_another_kind_is_refused_with_what_is_known(content: bytes, words: str) -> None:
    try:
        messages = [str(row) for row in read(content)]
    except UserError as error:
        messages = [str(error)]
    assert any(words in message for message in messages), messages
    assert all("llama-bench" in message for message in messages)


def test_unknown_and_double_columns_are_all_named() -> None:
    messages = [str(row) for row in read("gpu,modle,tok_s,speed,gpu\n1,2,3,4,5\n")]
    assert any("unknown column 'modle'. Did you mean 'model'?" in m for m in messages)
    assert any("unknown column 'speed'" in m for m in messages)
    assert any("two columns are called gpu" in m for m in messages)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("RTX 3090,m,Q8_0,decode,12", "the line has 5 cells, the header 6"),
        ('RTX 3090,"m,Q8_0,decode,12,', "not CSV"),
        ("RTX 3090,m,Q8_0,decoding,12,", "unknown metric 'decoding'"),
        ("RTX 3090,m,Q8_0,prefill,12,", "prefill without prompt_tokens"),
        ("RTX 3090,m,Q8_0,decode,12,31.12.2026", "date is '31.12.2026'"),
        ("RTX 3090,m,Q8_0,decode,12,2026-02-30", "date is '2026-02-30'"),
        ("RTX 3090,m,Q8_0,decode,,", "tok_s is missing"),
    ],
)
def test_a_wrong_line_of_the_simple_csv(line: str, words: str) -> None:
    assert words in why_refused(f"gpu,model,precision,metric,tok_s,date\n{line}\n")


@pytest.mark.parametrize(
    ("name", "models", "precision"),
    [
        ("models/Qwen2.5-7B-Instruct-Q4_K_M.gguf", "Qwen2.5-7B-Instruct", "Q4_K_M"),
        ("C:\\m\\google_gemma-3-27b-it-Q6_K.gguf", "gemma-3-27b-it", "Q6_K"),
        ("Meta-Llama-3.1-8B-Instruct.Q8_0.gguf", "Llama-3.1-8B-Instruct", "Q8_0"),
        ("gpt-oss-120b-mxfp4-00001-of-00003.gguf", "gpt-oss-120b", "MXFP4_MOE"),
        ("Qwen3-8B-UD-Q4_K_XL.gguf", "Qwen3-8B", "Q4_K_XL"),
        ("phi-4-bf16.gguf", "phi-4", "BF16"),
        ("model.gguf", "model", ""),
    ],
)
def test_names_of_gguf_files(name: str, models: str, precision: str) -> None:
    spellings, found = of_gguf(name)
    assert models in spellings
    assert found == precision


@pytest.mark.parametrize(
    ("text", "precision"),
    [
        ("qwen2 7B Q4_K - Medium", "Q4_K_M"),
        ("llama 7B mostly Q4_0", "Q4_0"),
        ("llama 7B all F32", "F32"),
        ("qwen3moe 30B.A3B Q3_K - Small", "Q3_K_S"),
        ("gpt-oss 20B MXFP4 MoE", "MXFP4_MOE"),
        ("llama 8B IQ2_XXS - 2.0625 bpw", "IQ2_XXS"),
        ("llama 8B BF16", "BF16"),
        ("llama ?B unknown", ""),
    ],
)
def test_formats_as_llama_cpp_describes_them(text: str, precision: str) -> None:
    assert of_model_type(text) == precision


@pytest.mark.parametrize(
    ("name", "model", "precision"),
    [
        ("Qwen/Qwen2.5-7B-Instruct-AWQ", "Qwen/Qwen2.5-7B-Instruct", "AWQ"),
        ("Qwen/Qwen2.5-7B-Instruct-GPTQ-Int8", "Qwen/Qwen2.5-7B-Instruct", "GPTQ 8-bit"),
        ("nm/Llama-3.1-8B-FP8-dynamic", "nm/Llama-3.1-8B", "FP8"),
        ("Qwen/Qwen3-8B", "Qwen/Qwen3-8B", ""),
    ],
)
def test_names_on_the_hub(name: str, model: str, precision: str) -> None:
    spellings, found = of_hub(name)
    assert (spellings[0], found) == (model, precision)


def test_names_of_drivers() -> None:
    assert "AMD Radeon RX 7900 XTX" in card_spellings("AMD Radeon RX 7900 XTX (RADV NAVI31)")
    assert "NVIDIA RTX PRO 6000 Blackwell" in card_spellings(
        "NVIDIA RTX PRO 6000 Blackwell Workstation Edition"
    )
    assert backend_of("MTL,BLAS") == ("Metal", False)
    assert backend_of("HIP") == ("ROCm", False)
    assert backend_of("Vulkan,RPC") == ("Vulkan", True)
    assert backend_of("BLAS") == ("", False)


@pytest.mark.parametrize("stated", [True, -1, 1, "auto"])
def test_a_setting_kept_for_the_note_may_be_of_any_kind(stated: object) -> None:
    """Older builds of llama-bench write flash_attn as true or false."""
    (run,) = runs(bench_json(bench(flash_attn=stated)))
    assert f"flash_attn={stated}" in run.note
