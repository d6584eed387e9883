"""Bulk estimates: reading requests, sizing them, writing them, against measurements."""

from __future__ import annotations

import gzip
import io
import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, cast

import pytest

from advisor.bulk import MOST_BYTES, Row, read_rows
from advisor.bulk.estimates import Line, estimate_row
from advisor.errors import RequestError, UserError
from advisor.files import opened
from advisor.knowledge import load_knowledge
from advisor.knowledge.types import Knowledge
from tests.estimate.builders import DATA, rows

Doc = dict[str, object]


@pytest.fixture(scope="module")
def knowledge() -> Knowledge:
    return load_knowledge()


def read(text: str | bytes, name: str = "requests.jsonl") -> list[Row]:
    content = text.encode() if isinstance(text, str) else text
    return list(read_rows(io.BytesIO(content), name))


def line(knowledge: Knowledge, **given: object) -> Doc:
    doc, _ = estimate_row(Row(1, given), knowledge)
    return cast("Doc", json.loads(Line(1, doc, None).written()))


def part(doc: Doc, name: str) -> Mapping[str, int]:
    found = doc[name]
    assert isinstance(found, dict), doc
    return found


# Reading


def test_json_lines_keep_their_numbers_and_blank_lines_are_left_out() -> None:
    found = read('{"id": 1}\n\n  \n{"id": 2}')
    assert [(row.number, row.given) for row in found] == [(1, {"id": 1}), (4, {"id": 2})]


def test_windows_files_and_byte_order_marks_are_read() -> None:
    assert [row.given for row in read(b'\xef\xbb\xbf{"id": 1}\r\n{"id": 2}\r\n')] == [
        {"id": 1},
        {"id": 2},
    ]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"gpu": ', "not JSON"),
        ("[1, 2]", "list"),
        ("3", "single value"),
        ('{"gpu": "a", "gpu": "b"}', "'gpu' stands twice"),
        ('{"ram_gib": NaN}', "NaN"),
        ('{"ram_gib": Infinity}', "Infinity"),
        ("[" * 50_000, "nested"),
        ('{"context": ' + "9" * 5_000 + "}", "cannot be read"),
        (b'{"gpu": "\xff"}', "UTF-8"),
        ('{"gpu": "' + "x" * MOST_BYTES + '"}', "longer than"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_a_bad_line_is_told_and_the_next_is_read(text: str | bytes, says: str) -> None:
    content = text.encode() if isinstance(text, str) else text
    bad, good = read(content + b'\n{"id": 2}\n')
    assert says in bad.problem
    assert (good.number, good.given, good.problem) == (2, {"id": 2}, "")


def test_a_line_of_ten_megabytes_is_never_held_whole() -> None:
    class Counting(io.BytesIO):
        most = 0

        def readline(self, size: int | None = -1, /) -> bytes:
            content = super().readline(size)
            self.most = max(self.most, len(content))
            return content

    stream = Counting(b"x" * 10_000_000 + b'\n{"id": 2}')
    bad, good = read_rows(cast("BinaryIO", stream), "x.jsonl")
    assert "longer than" in bad.problem
    assert good.given == {"id": 2}
    assert stream.most <= MOST_BYTES + 1


@pytest.mark.parametrize(
    ("content", "says"),
    [(b"", "empty"), (b"\n \n", "empty"), ("{}".encode("utf-16"), "UTF-16")],
    ids=["nothing", "blank lines", "UTF-16"],
)
def test_files_in_which_nothing_can_be_read(content: bytes, says: str) -> None:
    with pytest.raises(RequestError, match=says):
        read(content)


def test_csv_empty_cells_are_not_stated_and_switches_are_words() -> None:
    text = "id, gpu,flash_attention,kv_unified,context\na,RTX 4090,on,0,\n"
    assert [row.given for row in read(text, "x.csv")] == [
        {"id": "a", "gpu": "RTX 4090", "flash_attention": True, "kv_unified": False}
    ]


def test_csv_quotes_may_hold_commas_and_quotes() -> None:
    text = 'model,gpu\n"a, ""b""",x\n'
    assert read(text, "x.csv")[0].given == {"model": 'a, "b"', "gpu": "x"}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("gpu,modl\n", "unknown column 'modl'. Did you mean 'model'"),
        ("gpu,gpu\n", "'gpu' stands twice"),
        ("gpu;model\n", "unknown column 'gpu;model'"),
    ],
)
def test_a_wrong_csv_header_is_told_at_once(text: str, says: str) -> None:
    with pytest.raises(UserError, match=says):
        read(text + "a,b\n", "x.csv")


def test_bad_csv_rows_are_told_and_the_next_is_read() -> None:
    text = b'model,gpu\na\na,b,c\n"a"b,c\n\xff,b\ngood,x\n"unclosed'
    found = read(text, "x.csv")
    told = ["1 cells", "3 cells", "not CSV", "UTF-8", "", "not CSV"]
    assert [row.number for row in found] == [2, 3, 4, 5, 6, 7]
    for row, says in zip(found, told, strict=True):
        assert says in row.problem
        assert bool(row.problem) == bool(says)


@pytest.mark.parametrize("name", ["x.txt", "standard input"])
def test_the_first_line_says_what_an_unnamed_file_is(name: str) -> None:
    assert read("gpu,model\na,b\n", name)[0].given == {"gpu": "a", "model": "b"}
    assert read('{"gpu": "a"}\n', name)[0].given == {"gpu": "a"}


# Sizing


def test_a_line_has_the_documented_keys(knowledge: Knowledge) -> None:
    doc = line(knowledge, id="a", gpu="RTX 4090", model="llama-3-8b", precision="Q8_0")
    assert list(doc) == ["id", "parameters", "memory", "speed", "error"]
    assert doc["parameters"] == {"total": 8030261248, "active": 8030261248, "vision": 0}
    assert set(part(doc, "memory")) >= {
        "capacity_bytes", "usable_bytes", "required_bytes", "deficit_bytes", "headroom_bytes",
        "weights_bytes", "kv_cache_bytes", "compute_buffer_bytes", "overhead_bytes",
        "host_weights_bytes", "host_kv_cache_bytes", "nominal_weights_gb", "max_context_tokens",
        "max_batch", "per_gpu", "low_bytes", "high_bytes", "approximate",
    }  # fmt: skip
    assert set(part(doc, "speed")) >= {"depth_tokens", "decode_tok_s", "bound_by"}


def test_without_a_card_only_what_is_needed_is_known(knowledge: Knowledge) -> None:
    doc = line(knowledge, model="llama-3-8b", precision="Q8_0")
    memory = part(doc, "memory")
    assert memory["required_bytes"] > memory["weights_bytes"] > 0
    assert memory["overhead_bytes"] == 0
    assert doc["speed"] is None
    for name in ("capacity_bytes", "usable_bytes", "deficit_bytes", "max_context_tokens"):
        assert memory[name] is None


def test_a_backend_without_a_card_adds_its_own_memory(knowledge: Knowledge) -> None:
    given = {"model": "llama-3-8b", "precision": "Q8_0", "kv_cache": "q8_0"}
    neutral = part(line(knowledge, **given), "memory")
    cuda = part(line(knowledge, **given, backend="CUDA"), "memory")
    assert cuda["overhead_bytes"] > neutral["overhead_bytes"]
    assert cuda["compute_buffer_bytes"] > neutral["compute_buffer_bytes"]


def test_several_cards_give_each_card(knowledge: Knowledge) -> None:
    doc = line(knowledge, gpu="RTX 4090", gpus=2, model="llama-3-70b", precision="Q4_K_M")
    memory = doc["memory"]
    assert isinstance(memory, dict)
    assert len(memory["per_gpu"]) == 2
    for name in ("weights_bytes", "kv_cache_bytes", "required_bytes"):
        assert sum(card[name] for card in memory["per_gpu"]) == memory[name]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"gpu": "RTX 4091", "model": "llama-3-8b"}, "RTX 4090"),
        ({"model": "llama-3-8b", "contxt": 1}, "Did you mean 'context'"),
        ({"model": "llama-3-8b", "context": "long"}, "context"),
        ({"model": "llama-3-8b", "context": [1]}, "context"),
        ({"model": "llama-3-8b", "context": 1.5}, "whole number"),
        ({"model": "llama-3-8b", "context": 10**400}, "context"),
        ({"model": "llama-3-8b", "context": 10**12}, "at most"),
        ({"model": "llama-3-8b", "flash_attention": "maybe"}, "flash_attention"),
        ({"model": {"a": 1}}, "model"),
        ({"gpu": "RTX 4090"}, "no model"),
        ({"config": "nowhere/config.json"}, "nowhere"),
        ({"config": "\0"}, "file"),
        ({"model": "x" * 5000}, "x"),
        ({"model": "llama-3-8b", "id": [1]}, "id must be"),
        ({"model": "llama-3-8b", "id": float("inf")}, "id must be"),
        ({"gpu": "RTX 4091", "model": "phi-3-medum"}, "RTX 4091"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_is_wrong_stays_on_its_line(
    knowledge: Knowledge, given: dict[str, object], says: str
) -> None:
    doc = line(knowledge, **given)
    assert says in str(doc["error"])
    assert "bug" not in str(doc["error"])
    assert "\n" not in str(doc["error"])
    assert (doc["parameters"], doc["memory"], doc["speed"]) == (None, None, None)


def test_all_unknown_names_of_a_line_are_told(knowledge: Knowledge) -> None:
    told = str(line(knowledge, gpu="RTX 4091", model="phy-3-medum")["error"])
    assert "RTX 4090" in told
    assert "phi-3-medium" in told


def test_the_same_mistake_is_told_the_same_way_again(knowledge: Knowledge) -> None:
    given = {"gpu": "RTX 4091", "model": "llama-3-8b"}
    assert line(knowledge, **given) == line(knowledge, **given)


def config_file(folder: Path, content: object) -> str:
    path = folder / "config.json"
    path.write_text(json.dumps(content))
    return str(path)


def test_an_architecture_of_unknown_memory_still_has_parameters(
    knowledge: Knowledge,
) -> None:
    doc = line(knowledge, model="bigscience/bloomz-p3")
    assert part(doc, "parameters")["total"] > 0
    assert (doc["memory"], doc["speed"], doc["error"]) == (None, None, None)
    told = line(knowledge, model="bigscience/bloomz-p3", framework="TGI")["error"]
    assert "cannot be computed" in str(told)


def test_a_known_model_of_unknown_shape_has_its_published_parameters(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "mine.yaml").write_text(
        "- model: Unshaped-8B\n  family: mine\n  modality: text\n  parameters: 8.1 B\n"
        "  verified: not verified\n  config: {model_type: minicpmv}\n  source: advisor-policy\n"
    )
    known = load_knowledge(tmp_path)
    doc = line(known, gpu="RTX 4090", model="Unshaped-8B")
    published = doc["parameters"]
    assert isinstance(published, dict)
    assert published["total"] > 8e9
    assert published["active"] is None
    assert (doc["memory"], doc["speed"], doc["error"]) == (None, None, None)
    assert line(known, gpu="RTX 4091", model="Unshaped-8B")["parameters"] is None
    assert line(known, model="Unshaped-8B", framework="vLLM")["error"]


UNLISTED = {
    "model_type": "codegen", "n_embd": 1024, "n_layer": 20, "n_head": 16, "vocab_size": 51200,
    "n_positions": 2048, "n_inner": None, "tie_word_embeddings": False, "rotary_dim": 32,
}  # fmt: skip


def test_an_architecture_that_llamacpp_does_not_list_is_sized(
    knowledge: Knowledge, tmp_path: Path
) -> None:
    config = config_file(tmp_path, UNLISTED)
    assert "codegen" not in knowledge.frameworks["llama.cpp"].model_types
    for precision in ("FP16", "Q4_K_M"):
        memory = part(line(knowledge, config=config, precision=precision), "memory")
        assert memory["weights_bytes"] > 0
        assert memory["overhead_bytes"] == 0


def test_a_config_read_again_is_read_anew(knowledge: Knowledge, tmp_path: Path) -> None:
    first = line(knowledge, config=config_file(tmp_path, UNLISTED))
    second = line(knowledge, config=config_file(tmp_path, {**UNLISTED, "n_layer": 10, "n_head": 8}))
    assert part(first, "parameters")["total"] > part(second, "parameters")["total"]


# Writing


def test_a_file_appears_only_when_it_is_complete(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    out.write_text("old")
    with pytest.raises(UnicodeEncodeError), opened(out) as file:
        file.write("half, \udcff")
    assert [path.name for path in tmp_path.iterdir()] == ["out.jsonl"]
    assert out.read_text() == "old"
    with opened(out) as file:
        file.write("new")
    assert out.read_text() == "new"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_link_keeps_pointing_to_its_file(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("old")
    link = tmp_path / "link"
    link.symlink_to(target)
    with opened(link) as file:
        file.write("new")
    assert link.is_symlink()
    assert target.read_text() == "new"


# Against measurements


def test_an_image_tower_is_a_file_of_its_own_to_llamacpp(
    knowledge: Knowledge, configs: Path
) -> None:
    given = {"config": str(configs / "gemma-3-12b.json"), "precision": "Q4_K_M"}
    neutral, vulkan = line(knowledge, **given), line(knowledge, **given, backend="Vulkan")
    tower = part(vulkan, "memory")["weights_bytes"] - part(neutral, "memory")["weights_bytes"]
    assert tower == 2 * part(neutral, "parameters")["vision"] > 0
    assert part(neutral, "parameters") == part(vulkan, "parameters")


@pytest.fixture(scope="module")
def configs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("configs")
    for name, content in json.loads((DATA / "llamacpp_configs.json").read_text()).items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    return folder


def requested(row: Mapping[str, str], folder: Path) -> Doc:
    """Write a measured context as a line of the input."""
    sequences = int(row["n_seq"])
    given: Doc = {
        "config": str(folder / f"{row['name']}.json"),
        "precision": row["quant"],
        "context": int(row["n_ctx_req"]) // sequences,
        "batch": sequences,
        "kv_cache_k": row["type_k"],
        "kv_cache_v": row["type_v"],
        "framework": "llama.cpp",
        "flash_attention": row["flash_attn"] == "1",
        "ubatch": int(row["n_ubatch"]),
        "kv_unified": row["kv_unified"] == "1",
        "swa_full": row["swa_full"] == "1",
        "logits_rows": int(row["n_outputs_max"]) or int(row["n_batch"]),
    }
    if row["ngl"] != "all":
        given["gpu_layers"] = int(row["ngl"])
    return given


EXACT = (
    ("weights_bytes", "dev_model"),
    ("host_weights_bytes", "host_model"),
    ("kv_cache_bytes", "dev_kv"),
    ("host_kv_cache_bytes", "host_kv"),
)


def answers(found: list[dict[str, str]], folder: Path) -> Iterator[Mapping[str, int]]:
    knowledge = load_knowledge()
    text = "".join(f"{json.dumps(requested(row, folder))}\n" for row in found)
    for row in read(text):
        doc, failure = estimate_row(row, knowledge)
        assert failure is None, failure
        yield part(cast("Doc", json.loads(Line(1, doc, None).written())), "memory")


def compute_bar(row: Mapping[str, str]) -> str:
    logits = "all logits" if row["n_outputs_max"] == "0" else "few logits"
    wide = ", f32" if "f32" in {row["type_k"], row["type_v"]} else ""
    return f"{'flash' if row['flash_attn'] == '1' else 'plain'}, {logits}{wide}"


BARS = {
    "flash, few logits": (1.0, 0.0001),
    "flash, all logits": (0.93, 0.20),
    "flash, all logits, f32": (0.95, 0.56),
    "plain, all logits": (0.98, 0.20),
    "plain, few logits": (0.98, 0.20),
}
"""Regime -> share within 10 %, furthest off (relative), as published for the formulas."""


@pytest.mark.slow
def test_lines_agree_with_what_llamacpp_reports(configs: Path) -> None:
    found = [row for row in rows("llamacpp_memory") if row["offload_kqv"] == "1"]
    assert (len(found), len({row["name"] for row in found})) == (13_191, 33)
    wrong: Counter[tuple[str, str]] = Counter()
    off: dict[str, list[float]] = defaultdict(list)
    for row, memory in zip(found, answers(found, configs), strict=True):
        wrong.update((row["name"], key) for key, column in EXACT if memory[key] != int(row[column]))
        assert memory["overhead_bytes"] == 0
        if row["device"] == "rpc" and row["ngl"] == "all" and row["arch"] != "mamba2":
            truth = int(row["dev_compute"])
            off[compute_bar(row)].append(abs(memory["compute_buffer_bytes"] / truth - 1))
    assert not wrong
    assert set(off) == set(BARS)
    for name, (share, furthest) in BARS.items():
        close = sum(error <= 0.10 for error in off[name])
        assert close >= share * len(off[name]), name
        assert max(off[name]) <= furthest, name


def test_the_worked_example_of_the_contract(knowledge: Knowledge, configs: Path) -> None:
    doc = line(
        knowledge,
        config=str(configs / "llama-3-8b.json"),
        precision="Q4_K_M",
        context=8192,
        framework="llama.cpp",
        logits_rows=1,
    )
    memory = part(doc, "memory")
    assert memory["weights_bytes"] == 4_617_396_224
    assert memory["kv_cache_bytes"] == 1_073_741_824
    assert memory["compute_buffer_bytes"] == 121_645_056
    assert memory["host_weights_bytes"] == 295_501_824
    assert memory["overhead_bytes"] == 0


@pytest.mark.slow
def test_every_known_config_gives_its_parameters_without_a_framework(
    knowledge: Knowledge, tmp_path: Path
) -> None:
    content = json.loads(gzip.decompress((DATA / "configs.json.gz").read_bytes()))
    sized = 0
    for name, config in content.items():
        doc = line(knowledge, config=config_file(tmp_path, config))
        if doc["error"]:
            assert "is missing" in str(doc["error"]), name
        else:
            sized += doc["memory"] is not None
            assert part(doc, "parameters")["total"] > 0
    assert sized >= 140
