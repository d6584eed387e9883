"""GGUF headers: what is read from them, and that nothing in them is believed unchecked."""

from __future__ import annotations

import io
import os
import random
import struct
import time
import tracemalloc
from pathlib import Path

import gguf
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.errors import SourceFileError
from advisor.estimate.gguf_tensors import _TRAITS
from advisor.knowledge.load import load_knowledge
from advisor.sources.config import read_config
from advisor.sources.gguf import read_gguf
from advisor.sources.gguf_cursor import Budget
from advisor.sources.gguf_families import GGUF_FAMILIES
from advisor.sources.gguf_formats import FILE_TYPES, TENSOR_TYPES
from advisor.sources.gguf_header import GgufHeader, read_header
from advisor.sources.shape import Shape
from advisor.sources.stored import StoredModel
from tests.sources.conftest import is_one_sentence
from tests.sources.gguf_files import (
    ARRAY,
    STRING,
    U64,
    Entry,
    Raw,
    header,
    metadata_of,
    text,
    tiny_metadata,
    tiny_tensors,
    write,
)

HUGE = 2**63


def refusal(path: Path) -> str:
    with pytest.raises(SourceFileError) as caught:
        read_gguf(path)
    message = str(caught.value)
    assert "\n" not in message
    assert message.endswith((".", "?"))
    return message


def read_or_refused(path: Path) -> StoredModel | None:
    """Give the model, or None after a refusal in one sentence."""
    said = ""
    try:
        return read_gguf(path)
    except SourceFileError as error:
        said = str(error)
    assert is_one_sentence(said)
    return None


def tiny(folder: Path, **changes: object) -> Path:
    return write(folder / "tiny.gguf", tiny_metadata(**changes), tiny_tensors())


# ---- against the gguf package


def test_type_tables_are_those_of_the_gguf_package() -> None:
    sizes = {
        kind.value: (kind.name, *gguf.GGML_QUANT_SIZES[kind]) for kind in gguf.GGMLQuantizationType
    }
    assert dict(TENSOR_TYPES) == sizes
    known = {kind.value for kind in gguf.LlamaFileType if kind.name != "GUESSED"}
    assert set(FILE_TYPES) == known
    assert set(GGUF_FAMILIES) <= set(gguf.MODEL_ARCH_NAMES.values()) | {"cohere2moe", "mellum"}


def test_architectures_have_the_names_that_the_tensor_lists_use() -> None:
    unlike = {"llama-embed", "gemma-embedding"}
    for name, family in GGUF_FAMILIES.items():
        listed = _TRAITS.get(family.model_type)
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


# ---- shapes


def kinds(
    folder: Path, architecture: str, layers: int, **changes: object
) -> tuple[str, int | None]:
    metadata = tiny_metadata(architecture, block_count=layers, **changes)
    shape = read_gguf(write(folder / "x.gguf", metadata, tiny_tensors(layers))).shape
    return shape.layer_kinds, shape.window


@pytest.mark.parametrize(
    ("architecture", "window", "expected"),
    [
        ("gemma2", None, ("SFSFSF", 4096)),
        ("gemma3", 1024, ("SSSSSF", 1024)),
        ("gemma3", None, ("FFFFFF", None)),
        ("gpt-oss", 128, ("SFSFSF", 128)),
        ("cohere2", 4096, ("SSSFSS", 4096)),
        ("smallthinker", 4096, ("FSSSFS", 4096)),
        ("llama4", None, ("CCCFCC", 8192)),
        ("llama4", 0, ("FFFFFF", None)),
        ("llama", 4096, ("FFFFFF", None)),
        ("phi3", 2047, ("FFFFFF", None)),
        ("exaone-moe", None, ("SSSFSS", 128)),
    ],
)
def test_which_layers_slide(
    tmp_path: Path, architecture: str, window: int | None, expected: tuple[str, int | None]
) -> None:
    assert kinds(tmp_path, architecture, 6, attention__sliding_window=window) == expected


def test_a_stated_pattern_counts_more_than_the_usual_one(tmp_path: Path) -> None:
    change = {"attention__sliding_window": 512}
    pattern = [True, True, False, True]
    listed = kinds(tmp_path, "gemma4", 4, attention__sliding_window_pattern=pattern, **change)
    assert listed == ("SSFS", 512)
    period = kinds(tmp_path, "gemma3", 4, attention__sliding_window_pattern=2, **change)
    assert period == ("SFSF", 512)


def test_layers_that_share_a_cache_keep_none(tmp_path: Path) -> None:
    found = kinds(
        tmp_path, "gemma3n", 4, attention__sliding_window=512, attention__shared_kv_layers=2
    )
    assert found == ("SSXX", 512)


def test_layers_of_gemma_3n_share_caches_unsaid(tmp_path: Path) -> None:
    found = kinds(tmp_path, "gemma3n", 30, attention__sliding_window=512)
    assert found == ("SSSSF" * 4 + "X" * 10, 512)


def test_full_layers_may_have_wider_heads(tmp_path: Path) -> None:
    changes: dict[str, object] = {
        "attention__sliding_window": 512,
        "attention__sliding_window_pattern": [True, False],
    }
    for width, name in ((64, "key_length"), (64, "value_length")):
        changes |= {f"attention__{name}": width, f"attention__{name}_swa": width // 4}
    metadata = tiny_metadata("gemma4", **changes)
    shape = read_gguf(write(tmp_path / "x.gguf", metadata, tiny_tensors())).shape
    assert (shape.layer_kinds, shape.head_dim, shape.kv_heads_by_layer) == ("SF", 16, (2, 8))
    assert not shape.cache_unknown


def test_values_of_another_width_leave_the_cache_unknown(tmp_path: Path) -> None:
    shape = read_gguf(tiny(tmp_path, attention__key_length=192, attention__value_length=128)).shape
    assert "different widths" in shape.cache_unknown


def test_heads_may_be_listed_per_layer(tmp_path: Path) -> None:
    shape = read_gguf(tiny(tmp_path, attention__head_count_kv=[1, 4])).shape
    assert (shape.kv_heads, shape.kv_heads_by_layer) == (4, (1, 4))
    assert (
        read_gguf(tiny(tmp_path, attention__head_count_kv=[2, 2])).shape.kv_heads_by_layer is None
    )
    assert read_gguf(tiny(tmp_path, feed_forward_length=[96, 128])).shape.intermediate == 128


def test_layers_for_multi_token_prediction_are_not_loaded(tmp_path: Path) -> None:
    metadata = tiny_metadata("glm4moe", block_count=3, nextn_predict_layers=1)
    stored = read_gguf(write(tmp_path / "x.gguf", metadata, tiny_tensors(3)))
    assert stored.shape.layers == 2
    assert stored.notes == ("1 layers for multi-token prediction in the file are not loaded.",)
    two = read_gguf(write(tmp_path / "y.gguf", tiny_metadata("glm4moe"), tiny_tensors(2)))
    assert stored.shape.counts == two.shape.counts


def test_an_unknown_architecture_has_tensors_and_no_cache(tmp_path: Path) -> None:
    shape = read_gguf(write(tmp_path / "x.gguf", tiny_metadata("novel"), tiny_tensors())).shape
    assert (shape.model_type, shape.layers) == ("novel", 2)
    assert shape.cache_unknown == "advisor does not know the architecture 'novel'"


def test_old_latent_attention_has_no_known_cache(tmp_path: Path) -> None:
    metadata = tiny_metadata("deepseek2", attention__kv_lora_rank=32, rope__dimension_count=8)
    shape = read_gguf(write(tmp_path / "x.gguf", metadata, tiny_tensors())).shape
    assert shape.mla is None
    assert "convert it again" in shape.cache_unknown


def test_a_file_without_file_type_is_named_after_most_of_its_weights(tmp_path: Path) -> None:
    metadata = {k: v for k, v in tiny_metadata().items() if k != "general.file_type"}
    stored = read_gguf(write(tmp_path / "x.gguf", metadata, tiny_tensors()))
    assert stored.format_name == "FP16"
    assert "most of its weights are FP16" in stored.notes[0]


HYBRIDS = {
    "AI21-Jamba-Mini-1.5": "jamba",
    "Falcon-H1-7B-Instruct": "falcon-h1",
    "LFM2-1.2B": "lfm2",
    "LFM2-8B-A1B": "lfm2moe",
    "Mamba-Codestral-7B-v0.1": "mamba2",
    "NVIDIA-Nemotron-3-Nano-30B-A3B-BF16": "nemotron_h",
    "Qwen3-Next-80B-A3B-Instruct": "qwen3next",
    "Qwen3.5-27B": "qwen35",
    "Qwen3.5-35B-A3B": "qwen35moe",
    "falcon-mamba-7b": "mamba",
    "granite-4.0-h-tiny": "granitehybrid",
}
_MIXERS = {
    "F": ("attn_q", "attn_k", "attn_v", "attn_output"),
    "R": ("ssm_in", "ssm_out"),
    "H": ("ssm_in", "ssm_out", "attn_q", "attn_k"),
    "N": (),
}
_FEEDS = {"D": ("ffn_up", "ffn_down"), "E": ("ffn_gate_inp", "ffn_up_exps"), "-": ()}


def mixed_tensors(shape: Shape, recurrent: str) -> list[Entry]:
    found = [Entry("token_embd.weight", (shape.hidden, shape.vocab))]
    if not shape.tied:
        found.append(Entry("output.weight", (shape.hidden, shape.vocab)))
    for index, (kind, feed) in enumerate(zip(shape.layer_kinds, shape.ffn_kinds, strict=True)):
        names = ["attn_norm", *_MIXERS[kind], *_FEEDS[feed]]
        for name in names:
            own = recurrent if name == "ssm_in" else name
            dims = (32, 32, shape.moe.experts) if name.endswith("_exps") and shape.moe else (32,)
            found.append(Entry(f"blk.{index}.{own}.weight", dims))
    return found


@pytest.mark.parametrize("name", sorted(HYBRIDS))
def test_hybrids_have_the_layers_and_states_of_their_config(tmp_path: Path, name: str) -> None:
    expected = read_config(load_knowledge().models[name].config, name)
    architecture = HYBRIDS[name]
    state = expected.recurrent
    assert state is not None
    metadata = metadata_of(expected, architecture)
    pairs = [expected.kv_heads if kind in "FH" else 0 for kind in expected.layer_kinds]
    more = {
        "attention.head_count": expected.heads,
        "attention.head_count_kv": pairs if expected.heads else 0,
        "ssm.time_step_rank": state.dt_rank or state.heads,
        "shortconv.l_cache": state.conv_kernel,
    }
    metadata |= {f"{architecture}.{key}": value for key, value in more.items()}
    mixer = "shortconv.in_proj" if state.kind == "conv" else "ssm_in"
    path = write(tmp_path / "x.gguf", metadata, mixed_tensors(expected, mixer))
    shape = read_gguf(path).shape
    assert (shape.layer_kinds, shape.ffn_kinds) == (expected.layer_kinds, expected.ffn_kinds)
    assert (shape.heads, shape.kv_heads) == (expected.heads, expected.kv_heads)
    assert shape.recurrent == expected.recurrent
    assert shape.kv_heads_by_layer is None
    assert not shape.cache_unknown


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


# ---- speed and bounds


class Counting(io.BytesIO):
    """Counts what is read."""

    taken = 0
    calls = 0

    def read(self, size: int | None = -1, /) -> bytes:
        found = super().read(size)
        self.taken += len(found)
        self.calls += 1
        return found


def counted(raw: bytes, size: int) -> tuple[GgufHeader, Counting]:
    file = Counting(raw)
    return read_header(file, size, Path("x.gguf"), Budget()), file


def test_a_large_vocabulary_is_stepped_over() -> None:
    words = [f"word{number}" for number in range(150_000)]
    scores = Raw(ARRAY, struct.pack("<IQ", 6, 150_000) + bytes(600_000))
    tokenizer = {
        "tokenizer.ggml.tokens": words,
        "tokenizer.ggml.merges": words,
        "tokenizer.ggml.scores": scores,
        "tokenizer.huggingface.json": "x" * 5_000_000,
    }
    raw, data = header(tokenizer | tiny_metadata(), tiny_tensors())
    found, file = counted(raw + bytes(data), len(raw) + data)
    assert not any(key.startswith("tokenizer") for key in found.metadata)
    texts = 2 * sum(8 + len(word) for word in words)
    assert file.taken < texts + 3 * 2**18
    assert file.calls < 30
    started = time.perf_counter()
    read_header(io.BytesIO(raw), len(raw) + data, Path("x.gguf"), Budget())
    assert time.perf_counter() - started < 1


def test_weights_are_never_read(tmp_path: Path) -> None:
    metadata = tiny_metadata(embedding_length=4096)
    tensors = tiny_tensors()
    tensors[0] = Entry("token_embd.weight", (4096, 128_000), "F32")
    raw, data = header(metadata, tensors)
    file = Counting(raw)
    read_header(file, len(raw) + data, tmp_path / "x.gguf", Budget())
    assert data > 2**30
    assert file.taken <= len(raw)


def test_a_million_tensors_are_refused_or_read_in_bounded_memory(tmp_path: Path) -> None:
    path = tmp_path / "x.gguf"
    start, _ = header({}, [], counts=(10**6, 0))
    with path.open("wb") as file:
        file.write(start)
        file.truncate(2**40)
    tracemalloc.start()
    message = refusal(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert "1000000 tensors, more than any model has" in message
    assert peak < 10 * 2**20


def zeros_behind(folder: Path, start: bytes) -> Path:
    """A file of a tebibyte that is empty text and holes."""
    path = folder / "holes.gguf"
    with path.open("wb") as file:
        file.write(start)
        file.truncate(2**40)
    return path


@pytest.mark.parametrize("kind", [STRING, ARRAY, 4, 99])
@pytest.mark.parametrize("count", [2**32, HUGE, 2**64 - 1, 3_999_999])
def test_endless_lists_are_refused(tmp_path: Path, kind: int, count: int) -> None:
    raw = Raw(ARRAY, struct.pack("<IQ", kind, count))
    start, _ = header({"tokenizer.x": raw}, [])
    started = time.perf_counter()
    refusal(zeros_behind(tmp_path, start))
    assert time.perf_counter() - started < 10


def test_lists_of_lists_end(tmp_path: Path) -> None:
    content = struct.pack("<IQ", ARRAY, 1) * 6
    start, _ = header({"a": Raw(ARRAY, content)}, [])
    assert "nested too deeply" in refusal(zeros_behind(tmp_path, start))


@pytest.mark.parametrize("length", [65_536, 2**31, HUGE, 2**64 - 1])
def test_impossible_lengths_are_refused(tmp_path: Path, length: int) -> None:
    start = b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, length)
    assert "at most 65535 are allowed" in refusal(zeros_behind(tmp_path, start))
    start = b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text("general.name")
    long = struct.pack("<IQ", STRING, length)
    refusal(zeros_behind(tmp_path, start + long))


@pytest.mark.parametrize("counts", [(HUGE, 0), (0, HUGE), (2**64 - 1, 2**64 - 1), (10**9, 10**9)])
def test_impossible_counts_are_refused(tmp_path: Path, counts: tuple[int, int]) -> None:
    start, _ = header({}, [], counts=counts)
    assert "more than any model has" in refusal(zeros_behind(tmp_path, start))


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        (Entry("token_embd.weight", (HUGE, HUGE, HUGE, HUGE)), "it is cut off"),
        (Entry("token_embd.weight", (0, 4)), "cannot be of type F16"),
        (Entry("token_embd.weight", (100, 4), "Q4_K"), "cannot be of type Q4_K"),
        (Entry("token_embd.weight", ()), "states 0 dimensions"),
        (Entry("token_embd.weight", (1,) * 5), "states 5 dimensions"),
        (Entry("token_embd.weight", (64, 100), 999), "has type 999"),
        (Entry("token_embd.weight", (64, 100), "F16", HUGE), "the header is damaged"),
        (Entry("token_embd.weight", (64, 100), "F16", 32), "the header is damaged"),
        (Entry("x" * 64, (64, 100)), "64 bytes long; at most 63"),
        (Entry("a\x1b[31m\n", (64, 100), 999), r"'a\x1b[31m\n'"),
    ],
)
def test_impossible_tensors_are_named(tmp_path: Path, entry: Entry, said: str) -> None:
    start, _ = header(tiny_metadata(), [entry])
    path = tmp_path / "x.gguf"
    path.write_bytes(start)
    assert said in refusal(path)


def test_tensors_beyond_the_end_are_refused(tmp_path: Path) -> None:
    path = tiny(tmp_path)
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.truncate(size - 64)
    assert f"but the file has {size - 64}: it is cut off. Download it again." in refusal(path)


def test_bytes_behind_the_last_tensor_are_a_note(tmp_path: Path) -> None:
    path = tiny(tmp_path)
    with path.open("ab") as file:
        file.write(b"x" * 100)
    assert read_gguf(path).notes == ("'tiny.gguf' holds 100 bytes behind its last tensor.",)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"block_count": 3}, "no tensor of layer 2"),
        ({"block_count": 10**9}, "block_count is 1000000000"),
        ({"block_count": "two"}, "llama.block_count is 'two'"),
        ({"block_count": None}, "llama.block_count is missing"),
        ({"embedding_length": 128}, "embedding has width 64"),
        ({"attention__head_count": None}, "attention.head_count is missing"),
        ({"attention__head_count_kv": 3}, "does not divide the 4"),
        ({"attention__head_count_kv": [2]}, "lists 1 impossible figures"),
        ({"attention__head_count_kv": [2, 10**6]}, "impossible figures"),
        ({"attention__head_count_kv": [2, -1]}, "it must be a whole number from 0"),
        ({"attention__head_count": 4.5}, "attention.head_count is 4.5"),
        ({"attention__head_count": 128}, "too few for 128 attention heads"),
        ({"context_length": 0}, "context_length is 0"),
    ],
)
def test_impossible_metadata_is_named(
    tmp_path: Path, changes: dict[str, object], said: str
) -> None:
    assert said in refusal(tiny(tmp_path, **changes))


@pytest.mark.parametrize("name", ["", "a\nb", "\x1b[31m", "x" * 65, 7])
def test_impossible_architectures_are_refused(tmp_path: Path, name: object) -> None:
    metadata = tiny_metadata() | {"general.architecture": name}
    assert "general.architecture" in refusal(write(tmp_path / "x.gguf", metadata, tiny_tensors()))


def test_experts_must_agree_with_their_tensors(tmp_path: Path) -> None:
    experts = [
        Entry("blk.0.ffn_gate_inp.weight", (64, 8), "F32"),
        Entry("blk.0.ffn_up_exps.weight", (64, 32, 8)),
    ]
    cases: tuple[tuple[dict[str, object], str], ...] = (
        ({}, "expert_count is missing"),
        ({"expert_count": 9, "expert_used_count": 2}, "its tensors hold 8 experts"),
        ({"expert_count": 8, "expert_used_count": 9}, "expert_used_count is 9"),
    )
    for changes, said in cases:
        path = write(tmp_path / "x.gguf", tiny_metadata(**changes), tiny_tensors() + experts)
        assert said in refusal(path)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "does not start with 'GGUF'"),
        (b"GGU", "does not start with 'GGUF'"),
        (b"GGML" + bytes(20), "does not start with 'GGUF'"),
        (b"GGUF" + struct.pack("<I", 1) + bytes(40), "version 1 of 2023; advisor reads 2 and 3"),
        (b"GGUF" + struct.pack("<I", 4) + bytes(40), "version 4"),
        (b"GGUF" + struct.pack(">I", 3) + bytes(40), "big-endian"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "x.gguf"
    path.write_bytes(content)
    assert said in refusal(path)


def test_names_that_occur_twice_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "x.gguf", tiny_metadata(), [*tiny_tensors(), tiny_tensors()[0]])
    assert "'token_embd.weight' occurs twice" in refusal(path)
    start, _ = header([("a", 1), ("a", 2)], [])
    path.write_bytes(start)
    assert "'a' occurs twice" in refusal(path)


@pytest.mark.parametrize("alignment", [0, 3, 2**31, "x"])
def test_impossible_alignments_are_refused(tmp_path: Path, alignment: object) -> None:
    metadata = tiny_metadata() | {"general.alignment": alignment}
    assert "power of two" in refusal(write(tmp_path / "x.gguf", metadata, tiny_tensors()))


def test_another_alignment_is_followed(tmp_path: Path) -> None:
    start, data = header(tiny_metadata() | {"general.alignment": 64}, tiny_tensors(), alignment=64)
    path = tmp_path / "x.gguf"
    path.write_bytes(start + bytes(data))
    assert len(read_gguf(path).tensors) == len(tiny_tensors())


def test_version_2_is_read(tmp_path: Path) -> None:
    start, data = header(tiny_metadata(), tiny_tensors(), version=2)
    path = tmp_path / "x.gguf"
    path.write_bytes(start + bytes(data))
    assert read_gguf(path).shape.layers == 2


# ---- files that are no files


def test_links_are_followed_and_cycles_refused(tmp_path: Path) -> None:
    link = tmp_path / "link.gguf"
    link.symlink_to(tiny(tmp_path))
    assert read_gguf(link).name == "link"
    one, two = tmp_path / "one.gguf", tmp_path / "two.gguf"
    one.symlink_to(two)
    two.symlink_to(one)
    assert "cannot be read" in refusal(one)
    (tmp_path / "gone.gguf").symlink_to(tmp_path / "nowhere")
    assert "no such file" in refusal(tmp_path / "gone.gguf")


def test_pipes_folders_and_devices_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.gguf")
    for path in (tmp_path / "pipe.gguf", tmp_path, Path(os.devnull)):
        assert "not a plain file" in refusal(path)
    assert "no such file" in refusal(tmp_path / "gone" / "x.gguf")
    assert "not the name of a file" in refusal(tmp_path / "a\0b.gguf")
    assert "cannot be read" in refusal(tmp_path / ("x" * 5000))


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
def test_unreadable_files_are_refused(tmp_path: Path) -> None:
    path = tiny(tmp_path)
    path.chmod(0)
    assert "cannot be read" in refusal(path)


def test_errors_of_the_disk_are_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tiny(tmp_path)

    def broken(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", broken)
    assert "cannot be read (Permission denied)" in refusal(path)


# ---- damage


def outcome(raw: bytes) -> StoredModel | str:
    """Read a header held in memory as the first part of a large file."""
    try:
        read_header(io.BytesIO(raw), len(raw), Path("x.gguf"), Budget())
    except SourceFileError as error:
        return str(error)
    return ""


def test_cut_at_every_byte_it_is_refused(tmp_path: Path) -> None:
    whole = tiny(tmp_path).read_bytes()
    start, _ = header(tiny_metadata(), tiny_tensors())
    for length in range(len(start)):
        message = outcome(whole[:length])
        assert isinstance(message, str)
        assert message
        assert is_one_sentence(message)


def test_any_flipped_byte_gives_a_model_or_one_sentence(tmp_path: Path) -> None:
    whole = tiny(tmp_path).read_bytes()
    start, _ = header(tiny_metadata(), tiny_tensors())
    path = tmp_path / "flipped.gguf"
    rng = random.Random(7)
    with path.open("wb") as file:
        file.write(whole)
    for place in range(len(start)):
        with path.open("r+b") as file:
            file.seek(place)
            file.write(bytes([whole[place] ^ rng.randrange(1, 256)]))
        read_or_refused(path)
        with path.open("r+b") as file:
            file.seek(place)
            file.write(whole[place : place + 1])


_SPECIAL = st.sampled_from([0, 1, 2**31, 2**32 - 1, HUGE, 2**64 - 1])


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_any_words_of_eight_bytes_give_a_header_or_one_sentence(data: st.DataObject) -> None:
    start, size = header(tiny_metadata(), tiny_tensors())
    raw = bytearray(start + bytes(size))
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(start) - 8))
        raw[place : place + 8] = struct.pack("<Q", data.draw(_SPECIAL))
    message = outcome(bytes(raw))
    assert isinstance(message, str)
    assert not message or is_one_sentence(message)


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=400))
def test_any_bytes_behind_the_start_give_one_sentence(tail: bytes) -> None:
    message = outcome(b"GGUF\x03\0\0\0" + tail)
    assert isinstance(message, str)
    assert not message or is_one_sentence(message)


_VALUES = st.one_of(
    st.booleans(),
    st.integers(0, 2**32 - 1),
    st.floats(width=32),
    st.text(max_size=5),
    st.lists(st.integers(-5, 5), max_size=3),
    st.lists(st.text(max_size=2), max_size=2),
)
_KEYS = st.sampled_from(
    [
        *tiny_metadata(),
        "llama.attention.key_length",
        "llama.attention.value_length",
        "llama.attention.kv_lora_rank",
        "llama.attention.key_length_mla",
        "llama.rope.dimension_count",
        "llama.attention.sliding_window",
        "llama.attention.sliding_window_pattern",
        "llama.attention.shared_kv_layers",
        "llama.nextn_predict_layers",
        "llama.expert_count",
        "split.count",
        "general.alignment",
        "general.type",
    ]
)


@settings(max_examples=150, deadline=None)
@given(
    changes=st.dictionaries(_KEYS, _VALUES, min_size=1, max_size=3),
    kind=st.sampled_from(["llama", "gemma3", "gemma4", "llama4", "mamba2", "deepseek2", "bert"]),
)
def test_any_metadata_gives_a_model_or_one_sentence(
    tmp_path_factory: pytest.TempPathFactory, changes: dict[str, object], kind: str
) -> None:
    folder = tmp_path_factory.getbasetemp()
    renamed = {key.replace("llama.", f"{kind}."): value for key, value in changes.items()}
    path = write(folder / "any.gguf", tiny_metadata(kind) | renamed, tiny_tensors())
    stored = read_or_refused(path)
    if stored is None:
        return
    shape = stored.shape
    assert len(shape.layer_kinds) == len(shape.ffn_kinds) == shape.layers
    assert (shape.window is not None) == bool(set(shape.layer_kinds) & set("SC"))
    assert shape.counts is not None
    assert 0 < shape.counts.active <= shape.counts.total


def test_unused_values_of_every_type_are_stepped_over(tmp_path: Path) -> None:
    odd = {
        "a.u64": Raw(U64, struct.pack("<Q", HUGE)),
        "a.words": ["x", "yy"],
        "a.nested": Raw(ARRAY, struct.pack("<IQ", ARRAY, 2) + struct.pack("<IQH", 2, 1, 7) * 2),
        "a.long": "x" * 100_000,
    }
    path = write(tmp_path / "x.gguf", odd | tiny_metadata(), tiny_tensors())
    assert read_gguf(path).shape.layers == 2
