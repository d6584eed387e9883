"""Safetensors headers and shard indexes: what is read, and that nothing is believed unchecked."""

from __future__ import annotations

import io
import json
import os
import random
import struct
import time
import tracemalloc
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
import safetensors
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import save_file

from advisor.errors import SourceFileError
from advisor.estimate.stored_weights import stored_profile
from advisor.sources.safetensors import read_safetensors
from advisor.sources.safetensors_header import DTYPE_BITS, read_header
from advisor.sources.stored import StoredTensor
from tests.sources.conftest import is_one_sentence

HUGE = 2**63
CONFIG: Mapping[str, object] = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 100,
    "tie_word_embeddings": False,
    "max_position_embeddings": 2048,
}
Dims = tuple[int, ...]


def llama(layers: int = 2) -> dict[str, Dims]:
    found: dict[str, Dims] = {"model.embed_tokens.weight": (100, 64)}
    for index in range(layers):
        start = f"model.layers.{index}"
        for name, dims in (
            ("self_attn.q_proj", (64, 64)),
            ("self_attn.k_proj", (32, 64)),
            ("self_attn.v_proj", (32, 64)),
            ("self_attn.o_proj", (64, 64)),
            ("mlp.gate_proj", (128, 64)),
            ("mlp.up_proj", (128, 64)),
            ("mlp.down_proj", (64, 128)),
            ("input_layernorm", (64,)),
            ("post_attention_layernorm", (64,)),
        ):
            found[f"{start}.{name}.weight"] = dims
    return found | {"model.norm.weight": (64,), "lm_head.weight": (100, 64)}


def raw(entries: Mapping[str, object], data: int = 0) -> bytes:
    text = json.dumps(entries).encode()
    return struct.pack("<Q", len(text)) + text + bytes(data)


def described(tensors: Mapping[str, Dims], dtype: str = "BF16") -> tuple[dict[str, object], int]:
    place = 0
    entries: dict[str, object] = {"__metadata__": {"format": "pt"}}
    for name, dims in tensors.items():
        kind = "I32" if name.endswith(("qweight", "qzeros")) else dtype
        end = place + int(np.prod(dims)) * DTYPE_BITS[kind] // 8
        entries[name] = {"dtype": kind, "shape": list(dims), "data_offsets": [place, end]}
        place = end
    return entries, place


def write(path: Path, tensors: Mapping[str, Dims], dtype: str = "BF16") -> Path:
    entries, data = described(tensors, dtype)
    start = raw(entries)
    with path.open("wb") as file:
        file.write(start)
        file.truncate(len(start) + data)
    return path


def configure(folder: Path, **changes: object) -> None:
    text = json.dumps({key: v for key, v in {**CONFIG, **changes}.items() if v is not None})
    (folder / "config.json").write_text(text, encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    configure(tmp_path)
    return tmp_path


def refusal(path: Path) -> str:
    with pytest.raises(SourceFileError) as caught:
        read_safetensors(path)
    message = str(caught.value)
    assert "\n" not in message
    assert message.endswith((".", "?"))
    return message


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


def accepted(content: bytes) -> list[tuple[str, dict[str, object]]]:
    found: list[tuple[str, dict[str, object]]] = safetensors.deserialize(content)  # type: ignore[no-untyped-call]  # its stubs leave it out
    return found


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


def test_without_config_the_architecture_is_unknown(tmp_path: Path) -> None:
    path = write(tmp_path / "some.safetensors", llama())
    assert "there is no config.json beside it" in refusal(path)
    configure(tmp_path, model_type="novel")
    assert "'novel', which advisor cannot size yet" in refusal(path)


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


# ---- formats


def compressed(form: str, bits: int, kind: str, *, activations: bool = False) -> dict[str, object]:
    group = {
        "weights": {"num_bits": bits, "type": kind},
        "input_activations": {"num_bits": bits} if activations else None,
    }
    groups = {"group_0": group}
    return {"quant_method": "compressed-tensors", "format": form, "config_groups": groups}


@pytest.mark.parametrize(
    ("stated", "expected"),
    [
        ({"quant_method": "awq", "bits": 4, "group_size": 128}, "AWQ 4-bit"),
        ({"quant_method": "awq", "bits": 3}, None),
        ({"quant_method": "gptq", "bits": 4}, "GPTQ 4-bit"),
        ({"quant_method": "gptq", "bits": 8}, "GPTQ 8-bit"),
        ({"quant_method": "gptq", "bits": 3}, "GPTQ 3-bit"),
        ({"quant_method": "gptq", "bits": 2}, None),
        ({"quant_method": "gptq", "bits": "4"}, None),
        ({"quant_method": "auto-round", "bits": 4}, "GPTQ 4-bit"),
        (
            {"quant_method": "auto-round", "bits": 4, "packing_format": "auto_round:auto_awq"},
            "AWQ 4-bit",
        ),
        ({"quant_method": "fp8", "activation_scheme": "dynamic"}, "FP8"),
        ({"quant_method": "fbgemm_fp8"}, "FP8"),
        ({"quant_method": "mxfp4", "modules_to_not_convert": []}, "MXFP4"),
        ({"quant_method": "bitsandbytes", "load_in_8bit": True}, "INT8 (bitsandbytes)"),
        (
            {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4"},
            "NF4",
        ),
        (
            {
                "quant_method": "bitsandbytes",
                "bnb_4bit_quant_type": "nf4",
                "bnb_4bit_use_double_quant": True,
            },
            "NF4 double quant",
        ),
        ({"quant_method": "bitsandbytes", "bnb_4bit_quant_type": "fp4"}, None),
        (compressed("float-quantized", 8, "float", activations=True), "FP8"),
        (compressed("int-quantized", 8, "int", activations=True), "INT8 W8A8"),
        (compressed("pack-quantized", 4, "int"), "GPTQ 4-bit"),
        (compressed("nvfp4-pack-quantized", 4, "float", activations=True), "NVFP4"),
        (compressed("mxfp4-pack-quantized", 4, "float"), "MXFP4"),
        ({"quant_method": "compressed-tensors", "config_groups": 3}, None),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, "NVFP4"),
        ({"quant_method": "modelopt", "quant_algo": "FP8_PB_WO"}, "FP8"),
        ({"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION"}, None),
        (
            {"quant_method": "hqq", "quant_config": {"weight_quant_params": {"nbits": 4}}},
            "HQQ 4-bit",
        ),
        ({"quant_method": "exl2", "bits": 4.65}, "EXL2 4.65bpw"),
        ({"quant_method": "exl3", "bits": 3.0}, "EXL3 3.0bpw"),
        ({"quant_method": "exl3", "bits": 3.14}, None),
        ({"group_size": 64, "bits": 4}, "MLX 4-bit"),
        ({"group_size": 64, "bits": 4, "model.layers.0": {"bits": 6}}, "MLX mixed"),
        ({"quant_method": "\x1b[31m"}, None),
        ({"quant_method": 7}, None),
    ],
)
def test_quantised_checkpoints_are_recognised(
    tmp_path: Path, stated: dict[str, object], expected: str | None
) -> None:
    configure(tmp_path, quantization_config=stated)
    path = write(tmp_path / "model.safetensors", llama())
    stored = read_safetensors(path)
    assert stored.format_name == expected
    assert bool(stored.notes) == (expected is None)
    assert all(note.isprintable() for note in stored.notes)


def test_every_recognised_name_is_in_the_knowledge_base() -> None:
    text = (Path(__file__).parents[2] / "knowledge" / "formats.yaml").read_text(encoding="utf-8")
    known = {line.removeprefix("- format: ") for line in text.splitlines()}
    marks = test_quantised_checkpoints_are_recognised.pytestmark  # type: ignore[attr-defined]  # set by pytest
    names = {expected for _, expected in marks[0].args[1] if expected}
    assert names <= known


def test_packed_weights_take_their_stored_bytes(tmp_path: Path) -> None:
    configure(tmp_path, quantization_config={"quant_method": "awq", "bits": 4})
    packed: dict[str, Dims] = {}
    for name, dims in llama().items():
        if "_proj" not in name:
            packed[name] = dims
            continue
        start = name.removesuffix("weight")
        packed[start + "qweight"] = (dims[1], dims[0] // 8)
        packed[start + "qzeros"] = (1, dims[0] // 8)
        packed[start + "scales"] = (1, dims[0])
    path = write(tmp_path / "model.safetensors", packed, "F16")
    stored = read_safetensors(tmp_path)
    assert (stored.format_name, stored.notes) == ("AWQ 4-bit", ())
    assert stored.shape.counts is not None
    length = struct.unpack("<Q", path.read_bytes()[:8])[0]
    assert stored_profile(stored).total_bytes == path.stat().st_size - 8 - length


def test_modelopt_states_its_format_beside_the_config(folder: Path) -> None:
    write(folder / "model.safetensors", llama())
    own = folder / "hf_quant_config.json"
    own.write_text('{"quantization": {"quant_algo": "NVFP4"}}', encoding="utf-8")
    assert read_safetensors(folder).format_name == "NVFP4"
    own.write_text("{", encoding="utf-8")
    with pytest.raises(SourceFileError, match=r"hf_quant_config.json:1:2: this is not valid JSON"):
        read_safetensors(folder)


@pytest.mark.parametrize(
    ("dtype", "expected"), [("F16", "FP16"), ("F32", "F32"), ("F8_E4M3", "FP8"), ("I8", None)]
)
def test_without_quantisation_the_type_of_most_bytes_counts(
    folder: Path, dtype: str, expected: str | None
) -> None:
    write(folder / "model.safetensors", llama(), dtype)
    assert read_safetensors(folder).format_name == expected


# ---- bounds


class Counting(io.BytesIO):
    """Counts what is read."""

    taken = 0

    def read(self, size: int | None = -1, /) -> bytes:
        found = super().read(size)
        self.taken += len(found)
        return found


def test_weights_are_never_read() -> None:
    entries, data = described({"model.embed_tokens.weight": (2**20, 2**20)})
    start = raw(entries)
    file = Counting(start)
    assert read_header(file, len(start) + data, "x", 10)[0].n_bytes == 2**41
    assert file.taken == len(start)


@pytest.mark.parametrize("length", [48_000_001, 2**39])
def test_impossible_header_lengths_are_refused(folder: Path, length: int) -> None:
    path = folder / "model.safetensors"
    with path.open("wb") as file:
        file.write(struct.pack("<Q", length))
        file.truncate(2**40)
    assert "more than any model needs" in refusal(path)


@pytest.mark.parametrize("length", [17, 2**31, HUGE, 2**64 - 1])
def test_headers_longer_than_the_file_are_refused(folder: Path, length: int) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(struct.pack("<Q", length) + bytes(16))
    assert "cut off or not a safetensors file" in refusal(path)


def tensor_flood(count: int) -> bytes:
    return b"{" + b",".join(b'"%d":{}' % number for number in range(count)) + b"}"


@pytest.mark.parametrize(
    "text",
    [
        tensor_flood(10**6),
        b'{"a":[' + b"1e9," * 10**7 + b"1]}",
        b'{"a":[' + b"[]," * 10**6 + b"1]}",
        b"{" + b'"%d":0,' * 10**6 % tuple(range(10**6)) * 4 + b'"a":0}',
    ],
    ids=["tensors", "numbers", "lists", "keys"],
)
def test_millions_of_anything_are_refused_in_bounded_memory(folder: Path, text: bytes) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(struct.pack("<Q", len(text)) + text)
    tracemalloc.start()
    started = time.perf_counter()
    message = refusal(path)
    elapsed, peak = time.perf_counter() - started, tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert "more than 300000 tensors" in message
    assert elapsed < 2
    assert peak < 128 * 2**20


def test_many_tensors_are_read(folder: Path) -> None:
    names = {f"model.layers.0.mlp.experts.{n}.up_proj.weight": (1,) for n in range(50_000)}
    write(folder / "model.safetensors", llama() | names)
    started = time.perf_counter()
    assert len(read_safetensors(folder).tensors) == 50_000 + len(llama())
    assert time.perf_counter() - started < 10


def test_a_file_without_tensors_is_refused(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(raw({}))
    assert "it holds no tensors" in refusal(folder)


ONE = {"dtype": "F16", "shape": [2, 3], "data_offsets": [0, 12]}


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        (ONE | {"dtype": "F17"}, "has type 'F17'"),
        (ONE | {"dtype": 7}, "has type '7'"),
        (ONE | {"dtype": ["F16"]}, "has type"),
        (ONE | {"shape": 6}, "impossible shape"),
        (ONE | {"shape": [2, -3]}, "impossible shape"),
        (ONE | {"shape": [2, 3.0]}, "impossible shape"),
        (ONE | {"shape": [True, 6]}, "impossible shape"),
        (ONE | {"shape": [1] * 17}, "impossible shape"),
        (ONE | {"shape": [HUGE, 1]}, "impossible shape"),
        (ONE | {"shape": [HUGE - 1] * 16}, "by its shape: the header is damaged"),
        (ONE | {"shape": [2, 4]}, "takes 12 bytes by its place, but 16 by its shape"),
        (ONE | {"data_offsets": [0]}, "impossible shape or place"),
        (ONE | {"data_offsets": [0, 12, 24]}, "impossible shape or place"),
        (ONE | {"data_offsets": [12, 0]}, "the header is damaged"),
        (ONE | {"data_offsets": [1, 13]}, "starts at byte 1 of the data, expected at 0"),
        (ONE | {"data_offsets": [HUGE - 13, HUGE - 1]}, "expected at 0"),
        (ONE | {"more": 1}, "not described as safetensors does"),
        ({"dtype": "F16"}, "not described as safetensors does"),
        (None, "not described as safetensors does"),
        ([], "not described as safetensors does"),
        ({"dtype": "F4", "shape": [3], "data_offsets": [0, 1]}, "the header is damaged"),
    ],
)
def test_impossible_tensors_are_named(folder: Path, entry: object, said: str) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(raw({"a": entry}, 12))
    assert said in refusal(path)


def test_gaps_overlaps_and_missing_bytes_are_refused(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(raw({"a": ONE, "b": ONE}, 24))
    assert "starts at byte 0 of the data, expected at 12" in refusal(path)
    path.write_bytes(raw({"a": ONE}, 11))
    assert "need 12 bytes, but 11 follow the header: it is cut off" in refusal(path)
    path.write_bytes(raw({"a": ONE}, 20))
    assert "8 bytes behind its last tensor" in refusal(path)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[]",
        b"7",
        b"{",
        b'"a"',
        b"\xff\xff",
        b"[" * 5000,
        b'{"a":' * 5000,
        b"9" * 5000,
        b"{}x",
    ],
)
def test_headers_that_are_no_object_are_refused(folder: Path, text: bytes) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(struct.pack("<Q", len(text)) + text)
    refusal(path)


def test_other_files_are_refused(folder: Path) -> None:
    path = folder / "model.safetensors"
    for content in (b"", b"1234567", b"PK\x03\x04" + bytes(100), b"GGUF" + bytes(100)):
        path.write_bytes(content)
        refusal(path)
    path.unlink()
    os.mkfifo(path)
    assert "not a plain file" in refusal(folder)
    path.unlink()
    path.symlink_to(path)
    assert "cannot be read" in refusal(folder)
    path.unlink()
    path.symlink_to(write(folder / "blob", llama()))
    assert len(read_safetensors(folder).tensors) == len(llama())
    for bad in (folder / "gone", folder / "a\0b", folder / ("x" * 5000)):
        refusal(bad)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
def test_unreadable_files_are_refused(folder: Path) -> None:
    write(folder / "model.safetensors", llama()).chmod(0)
    assert "cannot be read" in refusal(folder)


# ---- damage


def outcome(content: bytes) -> str:
    said = ""
    try:
        read_header(io.BytesIO(content), len(content), "x.safetensors", 1000)
    except SourceFileError as error:
        said = str(error)
    assert not said or is_one_sentence(said)
    return said


def small() -> bytes:
    entries, data = described({"model.norm.weight": (4,), "lm_head.weight": (3, 4)})
    return raw(entries, data)


def test_cut_at_every_byte_it_is_refused() -> None:
    content = small()
    assert not outcome(content)
    assert all(outcome(content[:length]) for length in range(len(content)))


def test_any_flipped_byte_gives_a_header_or_one_sentence() -> None:
    content = small()
    rng = random.Random(7)
    for place in range(len(content)):
        for _ in range(4):
            flipped = bytearray(content)
            flipped[place] ^= rng.randrange(1, 256)
            outcome(bytes(flipped))


def test_what_is_accepted_the_safetensors_package_accepts() -> None:
    content = small()
    rng = random.Random(11)
    for _ in range(500):
        flipped = bytearray(content)
        flipped[rng.randrange(len(content) - 32)] = rng.randrange(32, 127)
        if not outcome(bytes(flipped)):
            assert accepted(bytes(flipped))


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 2**64) | st.floats() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)


@settings(max_examples=200, deadline=None)
@given(_JSON)
def test_any_json_gives_a_header_or_one_sentence(value: object) -> None:
    text = json.dumps(value).encode()
    outcome(struct.pack("<Q", len(text)) + text)
    outcome(raw({"a": value}, 12))
    outcome(raw({"a": ONE | {"shape": value}}, 12))


@settings(max_examples=100, deadline=None)
@given(
    stated=st.dictionaries(
        st.sampled_from(
            ["quant_method", "bits", "config_groups", "format", "quant_config", "mode"]
        ),
        st.sampled_from(["gptq", "compressed-tensors", "hqq", "exl2", "modelopt", "a\nb"]) | _JSON,
    )
)
def test_any_quantisation_gives_a_model(
    tmp_path_factory: pytest.TempPathFactory, stated: dict[str, object]
) -> None:
    folder = tmp_path_factory.getbasetemp()
    write(folder / "model.safetensors", llama())
    configure(folder, quantization_config=stated)
    stored = read_safetensors(folder / "model.safetensors")
    assert all(note.isprintable() and note.endswith(".") for note in stored.notes)
