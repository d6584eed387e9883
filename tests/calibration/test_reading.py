"""What the carried rows say, and why some are not used."""

from __future__ import annotations

import pytest

from advisor.estimator.calibration.dataset import conditions_of, odd_rows, speed_rows
from advisor.estimator.calibration.fits import Material
from advisor.estimator.calibration.observations import Spelling, source_of
from advisor.knowledge import load_knowledge

EMPTY = dict.fromkeys(speed_rows()[0], "")


def row(**cells: str) -> dict[str, str]:
    return {**EMPTY, **cells}


@pytest.mark.parametrize(
    ("note", "field", "expected"),
    [
        ("PARTIAL OFFLOAD ngl=26; ubatch=512; ngl=26", "gpu_layers", 26),
        ("full GPU; ngl=all", "gpu_layers", None),
        ("fa=1; ngl=99", "gpu_layers", None),
        ("MoE experts of 30 layers on CPU (n-cpu-moe); ngl=31", "cpu_experts", 30),
        ("spec=none; pl=220W/card", "speculates", False),
        ("spec=draft_model_tli k=4", "speculates", True),
        ("user=x; spec=no; moe=True", "speculates", False),
        ("user=x; spec=yes; moe=True", "speculates", True),
        ("pl=220W/card; tp=4 pp=1 inst=1", "power_w", 220),
        ("tp=4 pp=1 inst=1", "tensor", True),
        ("tp=1 pp=1 inst=4", "instances", 4),
        ("kv=q8_0; fa=True", "cache", "q8_0"),
        ("kv=None", "cache", "f16"),
        ("around 50, as the text says", "rounded", True),
        ("fa=1; around noon", "rounded", False),
        ("kv=turbo3", "cache", None),
        ("cmd='llama-bench -m x -p 512 -n 128 -d 4096 -o json'", "bench_depth", 4096),
        ("cmd='llama-bench -m x -p 16384 -n 128 -ngl 99'", "bench_depth", 0),
        ("cmd='llama-bench -m x", "bench_depth", -1),
        ("cmd='<path> -m x.gguf -p 4096 -n 512 -b 4096'", "bench_depth", 0),
        ("cmd='<path> -m x.gguf -p 4096 -n'", "bench_depth", -1),
        ("cmd='<path> --model x.gguf -c 4096'", "bench_depth", None),
        ("llama-bench in notebook", "bench_depth", None),
        ("kind=aggregate_output; spec=none", "prompts_between", True),
        ("1000 / mean TPOT of 7 ms", "prompts_between", True),
        ("kind=single_stream_wall", "prompts_between", False),
        ("MoE experts of 4 layers on CPU; ram=DDR4-3000 x2", "ram_bytes_s", 48e9),
        ("ram=75GB/s; machine=attic", "ram_bytes_s", 75e9),
        ("MoE experts of 4 layers on CPU", "ram_bytes_s", None),
        ("cmd='llama-server -ngl 99 --no-kv-offload -ctk q4_0'", "moved", True),
        ("gpu_used=True; model larger than VRAM => ollama splits to CPU", "moved", True),
        ("n_ctx=250000; spilled: 250,000 tokens beside 9.5 GB on 12 GB", "moved", True),
        ("cmd='llama-server -ngl 99 -ctk q4_0'", "moved", False),
    ],
)
def test_notes_are_read(note: str, field: str, expected: object) -> None:
    assert getattr(conditions_of(row(note=note)), field) == expected


@pytest.mark.parametrize(
    ("source", "note", "expected"),
    [
        ("github:a/b@123:x.md", "", "a/b"),
        ("https://github.com/a/b/pull/7 (x)", "", "a/b: x"),
        ("https://github.com/a/b/issues/7 (x-y, PR column)", "", "a/b: x-y"),
        ("https://github.com/a/b/discussions/7 (line-M1)", "", "a/b: line-M1"),
        ("localmaxxing.com benchmark id=1", "user=mary; spec=no", "localmaxxing.com: mary"),
        ("github:a/b@123:x.md", "ram=DDR4-3000 x2; machine=attic", "a/b: attic"),
        ("github:A/l@1:core/data/community/rtx-1/17-ab.json", "", "A/l: rtx-1"),
    ],
)
def test_a_source_is_a_machine_or_a_person(source: str, note: str, expected: str) -> None:
    assert source_of(row(source=source, note=note)) == expected


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ({"gpu": "NVIDIA GeForce RTX 3060", "vram_gb_each": "12"}, "GeForce RTX 3060 12 GB"),
        ({"gpu": "NVIDIA A100 (variant unstated)"}, None),
        ({"gpu": "CPU: Raspberry Pi 5"}, None),
    ],
)
def test_cards_are_named(cells: dict[str, str], expected: str | None) -> None:
    assert Spelling(load_knowledge()).gpu(row(**cells)) == expected


@pytest.mark.parametrize(
    ("model", "params", "expected", "exact"),
    [
        ("llama 13B", "13.02", "Llama-2-13b-hf", True),
        ("llama 13B", "23.5724", "Mistral-Small-3.1-24B-Instruct-2503", True),
        ("Jackrong_Qwen3.5-9B-Neo-Q4_K_M.gguf", "9.0", "Qwen3.5-9B", False),
        ("poolside/Laguna-S-2.1-INT4", "", None, False),
    ],
)
def test_models_are_named(model: str, params: str, expected: str | None, *, exact: bool) -> None:
    spelling = Spelling(load_knowledge())
    cells = row(model=model, params_b=params, quant="Q4_K_M")
    assert spelling.model(cells) == expected
    assert spelling.is_exact(cells) is exact


def test_every_row_is_used_or_dropped_with_a_reason(material: Material) -> None:
    assert material.rows == len(speed_rows())
    assert all(reason and count > 0 for reason, count in material.dropped.items())


def test_gpt_oss_in_16_bits_counts_only_where_its_size_is_stated(material: Material) -> None:
    """Its README repeats runs whose raw output states 60.9 GiB, 1.8 GiB more than with 8 bits."""
    kept = {row for run in material.single for row in run.rows}
    assert "S01850" in kept
    assert "S02126" not in kept
    assert any("GPT-OSS in 16 bits" in reason for reason in material.dropped)


def test_reasons_for_odd_rows_name_rows() -> None:
    assert set(odd_rows()) <= {found["id"] for found in speed_rows()}
