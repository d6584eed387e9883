"""Safetensors files: tensors, shards, what they say of a model."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest
import safetensors
from safetensors.numpy import save_file

from advisor.models.safetensors import DTYPE_BITS, read_header, read_safetensors
from advisor.models.stored_tensors import StoredTensor
from tests.models.safetensors_files import CONFIG, accepted, configure, llama, raw, refusal, write
from tests.models.stored_profile import stored_profile


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    configure(tmp_path)
    return tmp_path


# ---- against the safetensors package


def test_every_tensor_is_read_as_the_safetensors_package_reads_it(folder: Path) -> None:
    path = folder / "model.safetensors"
    kinds = (np.float16, np.float32, np.int32, np.uint8, np.int64, np.float64)
    arrays = {
        f"model.layers.{i % 2}.part{i}": np.zeros((3, i + 1, 2), dtype=kind)
        for i, kind in enumerate(kinds)
    }
    arrays |= {"scalar": np.zeros((), dtype=np.float32), "nothing": np.zeros((0, 4), np.float16)}
    save_file(arrays, path, metadata={"format": "np"})
    stored = {t.name: (t.type_name, t.dims, t.elements, t.n_bytes) for t in tensors(path)}
    with safetensors.safe_open(path, framework="np") as oracle:
        assert set(stored) == set(oracle.keys())
        for name, (dtype, dims, elements, n_bytes) in stored.items():
            part = oracle.get_slice(name)
            assert (dtype, list(dims)) == (part.get_dtype(), part.get_shape())
            assert (elements, n_bytes) == (arrays[name].size, arrays[name].nbytes)


def tensors(path: Path) -> tuple[StoredTensor, ...]:
    with path.open("rb") as file:
        return read_header(file, path.stat().st_size, str(path), 1000)


@pytest.mark.parametrize("dtype", sorted(DTYPE_BITS))
def test_every_type_has_the_size_that_the_safetensors_package_gives_it(dtype: str) -> None:
    content = raw({"a": {"dtype": dtype, "shape": [8], "data_offsets": [0, DTYPE_BITS[dtype]]}})
    content += bytes(DTYPE_BITS[dtype])
    assert accepted(content)[0][1]["shape"] == [8]
    read_header(io.BytesIO(content), len(content), "x", 10)


# ---- whole models


def test_a_folder_with_one_file(folder: Path) -> None:
    path = write(folder / "model.safetensors", llama())
    stored = read_safetensors(folder)
    assert (stored.kind, stored.format_name, stored.notes) == ("safetensors", "BF16", ())
    assert stored.name == folder.name
    assert stored.files == (path,)
    counts = stored.shape.counts
    assert counts is not None
    assert sum(tensor.elements for tensor in stored.tensors) == counts.total
    profile = stored_profile(stored)
    assert profile.exact
    assert profile.layer_bytes == tuple(2 * count for count in counts.layers)
    assert profile.embedding_bytes == 2 * counts.embedding
    assert profile.output_bytes == 2 * (counts.output + 64)
    assert profile.total_bytes == 2 * counts.total
    assert stored == read_safetensors(path)


def sharded(folder: Path, **changes: object) -> Path:
    names = list(llama())
    halves = names[:10], names[10:]
    weight_map: dict[str, object] = {}
    for number, half in enumerate(halves, 1):
        file = f"model-{number:05}-of-00002.safetensors"
        write(folder / file, {name: llama()[name] for name in half})
        weight_map |= dict.fromkeys(half, file)
    index = folder / "model.safetensors.index.json"
    content = {"metadata": {"total_size": 1}, "weight_map": weight_map | changes}
    index.write_text(json.dumps(content), encoding="utf-8")
    return index


def test_a_folder_with_shards_any_of_them_and_the_index(folder: Path) -> None:
    whole = folder / "whole"
    whole.mkdir()
    configure(whole)
    write(whole / "model.safetensors", llama())
    single = read_safetensors(whole)
    index = sharded(folder)
    second = folder / "model-00002-of-00002.safetensors"
    for path in (folder, index, second):
        stored = read_safetensors(path)
        assert (stored.tensors, stored.shape) == (single.tensors, single.shape)
        assert len(stored.files) == 2
    index.unlink()
    assert read_safetensors(second).tensors == single.tensors
    assert read_safetensors(folder).tensors == single.tensors


def test_a_missing_shard_is_named(folder: Path) -> None:
    index = sharded(folder)
    (folder / "model-00002-of-00002.safetensors").unlink()
    for path in (folder, index, folder / "model-00001-of-00002.safetensors"):
        assert "model-00002-of-00002.safetensors: there is no such file." in refusal(path)
    index.unlink()
    assert "model-00002-of-00002.safetensors: there is no such file." in refusal(folder)


@pytest.mark.parametrize(
    "name",
    [
        "model.safetensors.index.json",
        "../model.safetensors",
        "sub/model.safetensors",
        "/etc/passwd",
        "",
        ".safetensors/..",
        "a\0.safetensors",
        "..\\x.safetensors",
    ],
)
def test_an_index_may_name_only_files_beside_it(folder: Path, name: str) -> None:
    assert "is no safetensors file beside it" in refusal(sharded(folder, extra=name))


def test_an_index_must_hold_what_the_files_hold(folder: Path) -> None:
    first = "model-00001-of-00002.safetensors"
    assert "lists the tensor 'gone'" in refusal(sharded(folder, gone=first))
    assert "a file name for every tensor" in refusal(sharded(folder, gone=7))
    both = sharded(folder)
    write(folder / "model-00002-of-00002.safetensors", llama())
    assert "stands in two files" in refusal(both)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "does not hold valid JSON"),
        (b"[]", "not an object"),
        (b"{}", "lists no weights"),
        (b'{"weight_map": []}', "lists no weights"),
        (b'{"weight_map": {}}', "lists no weights"),
        (b"{" * 10**6, "more than"),
        (b"[" * 90_000, "does not hold valid JSON"),
        (b"\xff", "does not hold valid JSON"),
    ],
)
def test_broken_indexes_are_refused(folder: Path, content: bytes, said: str) -> None:
    index = folder / "model.safetensors.index.json"
    index.write_bytes(content)
    assert said in refusal(folder)


def test_an_index_of_too_many_files_is_refused(folder: Path) -> None:
    names = {f"t{n}": f"model-{n}.safetensors" for n in range(1001)}
    assert "it names 1003 files" in refusal(sharded(folder, **names))


def test_a_large_index_is_refused_unread(folder: Path) -> None:
    with sharded(folder).open("r+b") as file:
        file.truncate(2**40)
    assert "more than the index of any model" in refusal(folder)


def test_a_folder_must_hold_one_model(folder: Path) -> None:
    assert "holds no safetensors files" in refusal(folder)
    write(folder / "a.safetensors", llama())
    assert read_safetensors(folder).files == (folder / "a.safetensors",)
    write(folder / "b.safetensors", llama())
    assert "holds several models ('a.safetensors', 'b.safetensors')" in refusal(folder)
    write(folder / "model.safetensors", llama())
    assert read_safetensors(folder).files == (folder / "model.safetensors",)


def test_without_config_the_weights_are_exact_and_the_cache_a_range(tmp_path: Path) -> None:
    path = write(tmp_path / "some.safetensors", llama())
    model = read_safetensors(path)
    configure(tmp_path)
    shape, plain = model.shape, read_safetensors(path).shape
    assert shape.counts
    assert plain.counts
    assert shape.counts.total == sum(tensor.elements for tensor in model.tensors)
    assert (shape.layers, shape.hidden) == (plain.layers, plain.hidden)
    assert shape.kv_heads * shape.head_dim >= plain.kv_heads * plain.head_dim
    assert shape.cache_loose == 1.0
    assert "no config.json describes it" in shape.doubts[0]


def test_what_no_table_describes_has_the_weights_of_its_headers(tmp_path: Path) -> None:
    path = write(tmp_path / "some.safetensors", llama())
    configure(tmp_path)
    known = read_safetensors(path).shape
    configure(tmp_path, model_type="novel", architectures=["NovelForCausalLM"])
    shape = read_safetensors(path).shape
    assert shape.counts == known.counts
    assert (shape.spread, shape.described) == (0.0, False)
    assert "architecture 'novel' not described" in shape.doubts[0]


def test_adapters_are_refused(folder: Path) -> None:
    path = write(folder / "adapter_model.safetensors", llama())
    assert "this is an adapter (LoRA), not a model" in refusal(path)
    assert "this is an adapter (LoRA), not a model" in refusal(folder)


# ---- what the tensors say


def test_other_parameter_counts_are_a_note(folder: Path) -> None:
    write(folder / "model.safetensors", llama() | {"model.extra.weight": (1000,)})
    stored = read_safetensors(folder)
    assert stored.shape.counts is not None
    total = stored.shape.counts.total
    assert stored.notes == (
        f"The files hold {total + 1000:,} parameters, config.json describes {total:,}.",
    )


def test_layers_for_multi_token_prediction_are_not_loaded(folder: Path) -> None:
    write(folder / "model.safetensors", llama(3))
    stored = read_safetensors(folder)
    assert stored.notes == (
        "73,984 bytes in the files are not loaded (multi-token prediction, buffers).",
    )
    assert stored.shape.counts is not None
    assert stored_profile(stored).total_bytes == 2 * stored.shape.counts.total


def test_a_tied_matrix_counts_once(tmp_path: Path) -> None:
    configure(tmp_path, tie_word_embeddings=True)
    write(tmp_path / "model.safetensors", llama())
    stored = read_safetensors(tmp_path)
    profile = stored_profile(stored)
    assert stored.notes == ()
    assert profile.tied
    assert profile.output_bytes == profile.embedding_bytes + 128
    assert profile.total_bytes == 2 * stored.shape.counts.total if stored.shape.counts else 0


def test_towers_are_kept_apart(tmp_path: Path) -> None:
    vision = {"model_type": "clip_vision_model", "hidden_size": 32, "intermediate_size": 64}
    vision |= {"num_hidden_layers": 1, "num_attention_heads": 2, "image_size": 28, "patch_size": 14}
    config = {
        "model_type": "llava",
        "architectures": ["LlavaForConditionalGeneration"],
        "text_config": dict(CONFIG),
        "vision_config": vision,
        "tie_word_embeddings": False,
    }
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    towers = {
        "vision_tower.vision_model.encoder.layers.0.mlp.fc1.weight": (64, 32),
        "multi_modal_projector.linear_1.weight": (64, 32),
    }
    named = {f"language_model.{name}": dims for name, dims in llama().items()}
    write(tmp_path / "model.safetensors", named | towers)
    stored = read_safetensors(tmp_path)
    assert [tensor.name for tensor in stored.vision_tensors] == list(towers)
    assert stored_profile(stored).vision_bytes == 2 * 2 * 64 * 32
    assert all(stored_profile(stored).layer_bytes)


def test_experts_are_told_from_the_rest(tmp_path: Path) -> None:
    configure(
        tmp_path,
        model_type="mixtral",
        num_local_experts=4,
        num_experts_per_tok=2,
        architectures=None,
    )
    experts = {
        f"model.layers.{layer}.block_sparse_moe.experts.{number}.{part}.weight": (128, 64)
        for layer in range(2)
        for number in range(4)
        for part in ("w1", "w2", "w3")
    }
    dense = {name: dims for name, dims in llama().items() if ".mlp." not in name}
    gates = {f"model.layers.{n}.block_sparse_moe.gate.weight": (4, 64) for n in range(2)}
    write(tmp_path / "model.safetensors", dense | experts | gates)
    stored = read_safetensors(tmp_path)
    assert stored.notes == ()
    assert stored.shape.counts is not None
    profile = stored_profile(stored)
    assert profile.expert_bytes == tuple(2 * count for count in stored.shape.counts.experts)
    assert (profile.experts, profile.experts_used) == (4, 2)
