"""Real logs: what is read in them, the cause, what is asked for, and our figures beside theirs."""

from __future__ import annotations

import io
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec.structs import replace

from advisor.advice import Advisor
from advisor.knowledge import load_knowledge
from advisor.knowledge.log_patterns import load_log_patterns
from advisor.reading.log_file import read_log
from advisor.reading.log_request import settings_of
from advisor.reading.logs import Log, read_lines
from advisor.report.assembly import document
from advisor.report.diagnosing import diagnose
from advisor.report.diagnosis import Diagnosis, diagnosed
from advisor.scenario.settings import Request
from advisor.units import base_factor

CASES: list[dict[str, Any]] = yaml.safe_load(
    Path(__file__).with_name("logs.yaml").read_text(encoding="utf-8")
)
EXACT = 0.001


@cache
def advisor() -> Advisor:
    return Advisor.load(engine="reference")


def read(text: str) -> Log:
    return read_lines(read_log(None, io.BytesIO(text.encode())), load_log_patterns())


def in_bytes(text: str) -> float:
    number, unit = text.split()
    return float(number) * base_factor(unit)


def answered(case: dict[str, Any]) -> Diagnosis:
    log = read(case["text"])
    found = settings_of(log, advisor().knowledge)
    settings = {**found.settings, **case["flags"]}
    asked = replace(Request(), **settings)
    doc = document(advisor().advise(asked, complete=True, all_cards=True))
    return diagnosed(log, settings, {}, doc)


def named(case: dict[str, Any]) -> str:
    return str(case["log"])


@pytest.mark.parametrize("case", CASES, ids=named)
def test_a_real_log_is_read(case: dict[str, Any]) -> None:
    log = read(case["text"])
    assert log.runtime == case.get("runtime", "")
    assert log.text("version") == case.get("version", log.text("version"))
    assert list(log.cards.values()) == case.get("cards", [])
    for name, shown in case.get("memory", {}).items():
        assert log.on_cards(name) == pytest.approx(in_bytes(shown), rel=EXACT), name
    for name, shown in case.get("in_ram", {}).items():
        assert log.in_ram(name) == pytest.approx(in_bytes(shown), rel=EXACT), name
    for name, number in case.get("counts", {}).items():
        assert log.figure(name) == number, name


@pytest.mark.parametrize("case", CASES, ids=named)
def test_a_real_log_names_its_cause_and_leaves_open_what_it_does_not_tell(
    case: dict[str, Any],
) -> None:
    log = read(case["text"])
    found = settings_of(log, advisor().knowledge)
    cause = diagnosed(log, found.settings, found.unknown, None).cause
    assert (cause.cause if cause else None) == case.get("cause")
    assert list(found.unknown) == case.get("asks", [])
    assert {key: found.settings.get(key) for key in case.get("settings", {})} == case.get(
        "settings", {}
    )


@pytest.mark.parametrize("case", [case for case in CASES if "flags" in case], ids=named)
def test_our_figures_stand_beside_those_of_a_real_log(case: dict[str, Any]) -> None:
    rows = {row.figure: row for row in answered(case).comparison}
    for name, within in case.get("beside", {}).items():
        row = rows[name]
        assert row.computed == pytest.approx(row.logged, rel=within / 100), name
        assert row.difference == pytest.approx((row.computed or 0) - row.logged)
        assert not row.far
    assert all(row.line for row in rows.values())


def test_a_cause_that_is_not_the_card_is_not_laid_to_other_programs() -> None:
    text = (
        "ValueError: Bfloat16 is only supported on GPUs with compute capability of at least 8.0."
        " Your Tesla T4 GPU has compute capability 7.5.\n"
    )
    case = {"text": text, "flags": {"model": "llama-3.2-3b"}}
    found = answered(case)
    assert found.cause
    assert found.cause.cause == "no-bfloat16"
    assert not found.remarks


def test_a_card_that_is_not_named_is_the_usual_one_of_its_memory() -> None:
    text = (
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 68.00 MiB (GPU 0; "
        "23.65 GiB total capacity; 22.68 GiB already allocated; 41.31 MiB free; 23.14 GiB reserved "
        "in total by PyTorch)\n"
    )
    log = read_log(None, io.BytesIO(text.encode()))
    made, missing = diagnose(log, Request(model="llama-13b"), advisor())
    assert not missing
    assert made.settings["gpu"] == "GeForce RTX 3090"
    assert made.remarks[0].startswith("The log names no card")
    named, _ = diagnose(log, Request(model="llama-13b", gpu="RTX 4090"), advisor())
    assert not any("names no card" in remark for remark in named.remarks)


def test_memory_that_rocm_ran_out_of_is_no_card_of_another_maker() -> None:
    text = (
        "torch.OutOfMemoryError: {} out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total"
        " capacity of 15.98 GiB of which 1.00 GiB is free.\n"
    )
    found = {}
    for name in ("HIP", "CUDA"):
        log = read_log(None, io.BytesIO(text.format(name).encode()))
        made, _ = diagnose(log, Request(model="llama-3.1-8b"), advisor())
        found[name] = advisor().knowledge.gpus[str(made.settings["gpu"])].vendor
    assert found == {"HIP": "AMD", "CUDA": "NVIDIA"}


@pytest.mark.parametrize(
    ("gpu", "device", "shown", "ours"),
    [("2x RTX 3090", 0, 23.69, 24), ("RTX 3090 + RTX 3060:12GB", 1, 11.69, 12)],
)
def test_the_memory_of_one_card_stands_beside_that_of_the_same_card(
    gpu: str, device: int, shown: float, ours: int
) -> None:
    text = (
        f"CUDA out of memory. Tried to allocate 2.00 GiB. GPU {device} has a total capacity of"
        f" {shown} GiB of which 1.00 GiB is free.\n"
    )
    found = answered({"text": text, "flags": {"model": "llama-3.1-8b", "gpu": gpu}})
    row = next(row for row in found.comparison if row.figure == "capacity")
    assert row.computed == ours * 2**30
    assert row.each_card


@pytest.mark.parametrize(
    ("second", "total", "taken"),
    [
        ("RTX 3090", 24576, "2x GeForce RTX 3090"),
        ("RTX 3060", 12288, "GeForce RTX 3090 + GeForce RTX 3060"),
    ],
)
def test_a_table_alone_tells_all_cards_of_the_machine(second: str, total: int, taken: str) -> None:
    text = (
        "|   0  NVIDIA GeForce RTX 3090        Off |   00000000:01:00.0 Off |      N/A |\n"
        "|  0%   45C    P8       20W /  350W |      10MiB /  24576MiB |      0%  Default |\n"
        f"|   1  NVIDIA GeForce {second}        Off |   00000000:02:00.0 Off |      N/A |\n"
        f"|  0%   40C    P8       12W /  170W |       5MiB /  {total}MiB |      0%  Default |\n"
    )
    assert settings_of(read(text), advisor().knowledge).settings["gpu"] == taken


@pytest.mark.parametrize(
    "text",
    [
        (
            "server_args=ServerArgs(model_path='Qwen/Qwen2.5-32B-Instruct-AWQ', dtype='float16',"
            " quantization=None, tp_size=1)\nLoad weight end. type=Qwen2ForCausalLM,"
            " dtype=torch.float16, avail mem=4.2 GB, mem usage=18.1 GB.\n"
        ),
        (
            "Initializing a V1 LLM engine (v0.9.1) with config:"
            " model='RedHatAI/Meta-Llama-3.1-8B-Instruct-FP8-dynamic', dtype=torch.bfloat16,"
            " max_seq_len=8192, tensor_parallel_size=1, quantization=compressed-tensors,\n"
        ),
        (
            "Initializing a V1 LLM engine (v0.9.1) with config: model='meta-llama/Llama-3.1-8B',"
            " dtype=torch.bfloat16, max_seq_len=8192, quantization=compressed-tensors,\n"
        ),
    ],
)
def test_what_is_computed_in_is_no_format_of_quantised_weights(text: str) -> None:
    assert "precision" not in settings_of(read(text), advisor().knowledge).settings


def test_a_tag_tells_its_format() -> None:
    text = "model requires more system memory (39.4 GiB) than is available (30.0 GiB)\n"
    log = read_log(None, io.BytesIO(text.encode()))
    for model, asks in (
        ("llama3.3", []),
        ("Qwen3-14B-Q5_K_M.gguf", []),
        ("LLaMA-Mesh", ["precision"]),
    ):
        made, _ = diagnose(log, Request(model=model, gpu="RTX 3080"), advisor())
        assert list(made.unknown) == asks, model


@pytest.mark.parametrize(
    "row",
    [
        "0    45.0c  35.0W  800Mhz  1600Mhz  0%   auto  300.0W   93%   0%",
        "0  2  0x74a1, 28851  35.0\u00b0C  142.0W  SPX  132Mhz  900Mhz  0%  auto  750.0W  93%  0%",
    ],
)
def test_the_short_table_of_rocm_smi_is_known_and_tells_no_card(row: str) -> None:
    found = read(row)
    assert found.known_lines == 1
    assert settings_of(found, load_knowledge()).unknown["gpu"] == ""


def settled(text: str, **stated: object) -> Diagnosis:
    made, missing = diagnose(text, replace(Request(), **stated), advisor())
    assert not missing
    return made


METAL = """ggml_metal_device_init: GPU name:   Apple M4
ggml_metal_device_init: has unified memory    = true
ggml_metal_device_init: recommendedMaxWorkingSetSize  = {set} MB
llama_model_load_from_file_impl: using device Metal (Apple M4) (unknown id) - {free} MiB free
llama_model_loader: loaded meta data with 9 tensors from Qwen3-14B-Q8_0.gguf (version GGUF V3)
print_info: file type   = Q8_0
"""


@pytest.mark.parametrize(
    ("working_set", "free", "size"),
    [("11453.25", "10922", 16), ("26800.60", "25557", 32), ("17179.87", "16384", 24)],
)
def test_a_mac_is_one_machine_with_the_memory_that_metal_tells(
    working_set: str, free: str, size: int
) -> None:
    """Its graphics are named twice, and Metal gives a card two thirds to 78 % of the memory."""
    text = METAL.replace("{set}", working_set).replace("{free}", free)
    assert settled(text).settings["gpu"] == f"Apple M4:{size}GB"


def test_an_error_of_cuda_in_python_is_not_llama_cpps() -> None:
    said = settled("RuntimeError: CUDA error: out of memory", gpu="RTX 3090", model="qwen3-14b")
    assert said.program == "transformers"
    assert read("CUDA error: out of memory").runtime == "llama.cpp"


def test_a_tag_in_the_table_of_ollama_needs_no_format() -> None:
    text = (
        "NAME             ID              SIZE     PROCESSOR          CONTEXT    UNTIL\n"
        "qwen3:30b-a3b    0b28110b7a33    25 GB    36%/64% CPU/GPU    16384      4 minutes\n"
    )
    said = settled(text, gpu="RTX 4080")
    assert said.advice is not None
    assert said.advice.scenario.precision == "Q4_K_M"
    share = next(row for row in said.comparison if row.figure == "card_percent")
    assert share.computed is not None
    assert share.computed < 90, "what has no room on the card is not counted there"


def test_the_card_of_so_much_memory_may_be_a_servers() -> None:
    text = (
        "HIP out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 191.98 GiB "
        "of which 1.20 GiB is free."
    )
    said = settled(text, model="llama-3.1-405b", precision="FP8", framework="vllm")
    assert said.settings["gpu"] == "Radeon Instinct MI300X"


def test_the_format_of_tgis_arguments_ends_where_it_ends() -> None:
    text = 'Args { model_id: "mistralai/Mixtral-8x7B-Instruct-v0.1", quantize: Some( Bitsandbytes'
    found = settings_of(read(f"{text}Nf4, ), num_shard: Some( 2, ) }}"), advisor().knowledge)
    assert found.settings["precision"] == "NF4"


CACHE_FAILED = """load: using device CUDA0 (NVIDIA GeForce RTX 3090) - 23865 MiB free
load: using device CUDA1 (NVIDIA GeForce RTX 3060) - 11774 MiB free
llama_model_loader: loaded meta data with 9 tensors from gemma-3-27b-it-Q4_K_M.gguf (version GGUF
print_info: file type   = Q4_K - Medium
print_info: file size   = 15.40 GiB (4.90 BPW)
load_tensors:        CUDA0 model buffer size = 10513.00 MiB
load_tensors:        CUDA1 model buffer size =  5257.45 MiB
llama_context: n_ctx         = 131072
llama_kv_cache:      CUDA0 KV buffer size =  7200.00 MiB
alloc_buffer: allocating 3400.00 MiB on device 1: cudaMalloc failed: out of memory
alloc_tensor_range: failed to allocate CUDA1 buffer of size 3565158400
llama_init_from_model: failed to initialize the context: failed to allocate buffer for kv cache
"""


def test_figures_are_set_beside_what_they_are_of() -> None:
    """The file holds an embedding once and no images; a cache that failed counts too."""
    rows = {row.figure: row for row in settled(CACHE_FAILED).comparison}
    assert rows["cache"].logged == (7200 + 3400) * 2**20
    for name in ("model_size", "weights"):
        assert rows[name].computed == pytest.approx(rows[name].logged, rel=0.01)
        assert not rows[name].far


def test_what_a_table_of_the_driver_shows_in_use_is_shown() -> None:
    table = (
        "|   0  NVIDIA GeForce RTX 3090        Off | 00000000:01:00.0  On |             N/A |\n"
        "|  0%   42C    P8        25W /  350W |     912MiB /  24576MiB |      2%      Default |\n"
    )
    rows = {
        row.figure: row for row in settled(table, model="qwen3-8b", precision="Q8_0").comparison
    }
    assert rows["used"].logged == 912 * 2**20
