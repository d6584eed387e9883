"""Safetensors headers: nothing in them is believed unchecked."""

from __future__ import annotations

import io
import json
import os
import random
import struct
import time
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.errors import SourceFileError
from advisor.models.safetensors import read_header, read_safetensors
from tests.models.conftest import is_one_sentence
from tests.models.safetensors_files import (
    accepted,
    configure,
    described,
    llama,
    raw,
    refusal,
    write,
)

HUGE = 2**63


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    configure(tmp_path)
    return tmp_path


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
    started = time.process_time()
    message = refusal(path)
    elapsed, peak = time.process_time() - started, tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert "more than 300000 tensors" in message
    assert elapsed < 2
    assert peak < 128 * 2**20


def test_many_tensors_are_read(folder: Path) -> None:
    names = {f"model.layers.0.mlp.experts.{n}.up_proj.weight": (1,) for n in range(50_000)}
    write(folder / "model.safetensors", llama() | names)
    started = time.process_time()
    assert len(read_safetensors(folder).tensors) == 50_000 + len(llama())
    assert time.process_time() - started < 10


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
    st.none()
    | st.booleans()
    | st.integers(-1, 2**64)
    | st.floats(allow_nan=False)
    | st.text(max_size=4),
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
