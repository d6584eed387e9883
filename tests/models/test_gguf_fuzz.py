"""Damaged GGUF files: a model or one sentence."""

from __future__ import annotations

import io
import random
import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.errors import SourceFileError
from advisor.models.gguf import read_gguf
from advisor.models.gguf.cursor import Budget
from advisor.models.gguf.header import read_header
from advisor.models.stored_tensors import StoredModel
from tests.models.conftest import is_one_sentence
from tests.models.gguf_files import (
    ARRAY,
    U64,
    Raw,
    header,
    read_or_refused,
    tiny,
    tiny_metadata,
    tiny_tensors,
    write,
)

HUGE = 2**63


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
