"""GGUF files: tensors, sets of files, image towers."""

from __future__ import annotations

import struct
from pathlib import Path

import gguf
import numpy as np
import pytest

from advisor.models.architectures.tables import FAMILIES
from advisor.models.gguf import read_gguf
from advisor.models.gguf.cursor import gguf_families
from advisor.models.gguf.header import FILE_TYPES, TENSOR_TYPES
from tests.models.gguf_files import Entry, Raw, refusal, tiny, tiny_metadata, tiny_tensors, write

# ---- against the gguf package


def test_type_tables_are_those_of_the_gguf_package() -> None:
    sizes = {
        kind.value: (kind.name, *gguf.GGML_QUANT_SIZES[kind]) for kind in gguf.GGMLQuantizationType
    }
    assert dict(TENSOR_TYPES) == sizes
    known = {kind.value for kind in gguf.LlamaFileType if kind.name != "GUESSED"}
    assert set(FILE_TYPES) == known


def test_architectures_have_the_names_that_the_tensor_lists_use() -> None:
    unlike = {"llama-embed", "gemma-embedding", "nemotron_h_moe"}
    for name, known in gguf_families().items():
        family = FAMILIES.get(known.model_type)
        listed = family.stored().blocks if family else None
        assert listed is None or name in unlike or listed.architecture == name


@pytest.fixture
def written(tmp_path: Path) -> Path:
    path = tmp_path / "written.gguf"
    writer = gguf.GGUFWriter(str(path), "qwen3")
    writer.add_block_count(1)
    writer.add_context_length(40_960)
    writer.add_embedding_length(256)
    writer.add_feed_forward_length(512)
    writer.add_head_count(4)
    writer.add_head_count_kv(2)
    writer.add_key_length(32)
    writer.add_value_length(32)
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_Q4_K_M)
    writer.add_token_list([f"word {number}" for number in range(3000)])
    writer.add_token_scores([0.5] * 3000)
    writer.add_token_merges(["a b"] * 2000)
    writer.add_chat_template("x" * 5000)
    for name, rows, kind in (
        ("token_embd.weight", 3000, gguf.GGMLQuantizationType.Q6_K),
        ("blk.0.attn_q.weight", 128, gguf.GGMLQuantizationType.Q4_K),
        ("blk.0.attn_k.weight", 64, gguf.GGMLQuantizationType.Q8_0),
        ("blk.0.attn_v.weight", 64, gguf.GGMLQuantizationType.IQ4_XS),
        ("blk.0.ffn_up.weight", 512, gguf.GGMLQuantizationType.MXFP4),
    ):
        block, size = gguf.GGML_QUANT_SIZES[kind]
        raw = np.zeros((rows, 256 // block * size), dtype=np.uint8)
        writer.add_tensor(name, raw, raw_dtype=kind)
    writer.add_tensor("output_norm.weight", np.zeros(256, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_every_tensor_is_read_as_the_gguf_package_reads_it(written: Path) -> None:
    oracle = gguf.GGUFReader(written)
    stored = read_gguf(written)
    assert [(t.name, t.type_name, t.elements, t.n_bytes, t.dims) for t in stored.tensors] == [
        (t.name, t.tensor_type.name, t.n_elements, t.n_bytes, tuple(int(n) for n in t.shape))
        for t in oracle.tensors
    ]


def test_the_shape_comes_from_keys_and_tensors(written: Path) -> None:
    stored = read_gguf(written)
    shape = stored.shape
    assert (stored.kind, stored.format_name, stored.name) == ("gguf", "Q4_K_M", "written")
    assert (shape.model_type, shape.layers, shape.hidden, shape.vocab) == ("qwen3", 1, 256, 3000)
    assert (shape.heads, shape.kv_heads, shape.head_dim) == (4, 2, 32)
    assert (shape.tied, shape.trained_context, shape.layer_kinds) == (True, 40_960, "F")
    assert stored.files == (written,)
    assert stored.notes == ()


# ---- several files


def shards(folder: Path, count: int = 3) -> list[Path]:
    tensors = tiny_tensors()
    step = -(-len(tensors) // count)
    paths = []
    for number in range(count):
        split = {
            "split.no": number,
            "split.count": count,
            "split.tensors.count": len(tensors),
        }
        path = folder / f"big-{number + 1:05}-of-{count:05}.gguf"
        metadata = (tiny_metadata() if number == 0 else {}) | split
        paths.append(write(path, metadata, tensors[number * step : (number + 1) * step]))
    return paths


def test_any_shard_gives_the_whole_model(tmp_path: Path) -> None:
    paths = shards(tmp_path)
    whole = read_gguf(tiny(tmp_path))
    for path in paths:
        stored = read_gguf(path)
        assert stored.files == tuple(paths)
        assert (stored.name, stored.shape, stored.tensors) == ("big", whole.shape, whole.tensors)


def test_a_missing_shard_is_named(tmp_path: Path) -> None:
    paths = shards(tmp_path)
    paths[1].unlink()
    assert "big-00002-of-00003.gguf: there is no such file." in refusal(paths[0])


def test_shards_of_different_models_are_refused(tmp_path: Path) -> None:
    paths = shards(tmp_path)
    paths[2].write_bytes(paths[1].read_bytes())
    assert "it states that it is file 2 of 3, but is named 3 of 3" in refusal(paths[0])
    shards(tmp_path)
    write(paths[2], {"split.no": 2, "split.count": 3}, tiny_tensors()[:1])
    assert "they do not belong together" in refusal(paths[0])


def test_a_renamed_shard_is_refused(tmp_path: Path) -> None:
    path = shards(tmp_path)[0].rename(tmp_path / "renamed.gguf")
    assert "one of 3 files, but is not named like one" in refusal(path)


@pytest.mark.parametrize("count", [-1, 10**6, 65_535])
def test_impossible_shard_counts_are_refused(tmp_path: Path, count: int) -> None:
    value = Raw(5, struct.pack("<i", count))
    path = write(tmp_path / "a-00001-of-00002.gguf", tiny_metadata() | {"split.count": value}, [])
    refusal(path)


# ---- the image tower


def tower(folder: Path, name: str, *, width: int = 64, architecture: str = "clip") -> Path:
    metadata = {"general.architecture": architecture, "clip.vision.projection_dim": width}
    return write(folder / name, metadata, [Entry("v.blk.0.attn_q.weight", (32, 32))])


def test_one_tower_beside_the_model_is_counted(tmp_path: Path) -> None:
    path = tiny(tmp_path)
    alone = read_gguf(path)
    image = tower(tmp_path, "mmproj-F16.gguf")
    stored = read_gguf(path)
    assert [tensor.n_bytes for tensor in stored.vision_tensors] == [2048]
    assert stored.files == (path, image)
    assert alone.shape.counts is not None
    assert stored.shape.counts is not None
    assert stored.shape.counts.total == alone.shape.counts.total + 1024
    assert stored.shape.counts.vision == 1024


def test_several_towers_are_a_note(tmp_path: Path) -> None:
    tower(tmp_path, "mmproj-F16.gguf")
    tower(tmp_path, "MMPROJ-F32.gguf")
    stored = read_gguf(tiny(tmp_path))
    assert stored.vision_tensors == ()
    assert "none is counted" in stored.notes[0]


def test_a_tower_that_does_not_belong_is_a_note(tmp_path: Path) -> None:
    path = tiny(tmp_path)
    tower(tmp_path, "mmproj.gguf", width=4096)
    assert "belongs to another model (width 4096)" in read_gguf(path).notes[0]
    tower(tmp_path, "mmproj.gguf", architecture="llama")
    assert "is no image tower" in read_gguf(path).notes[0]
    (tmp_path / "mmproj.gguf").write_bytes(b"GGUF")
    assert "is left out" in read_gguf(path).notes[0]


def test_a_tower_alone_is_refused(tmp_path: Path) -> None:
    message = refusal(tower(tmp_path, "mmproj.gguf"))
    assert "Name the .gguf file of the language model" in message


def test_adapters_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "x.gguf", tiny_metadata() | {"general.type": "adapter"}, [])
    assert "a LoRA adapter, not a model" in refusal(path)
