"""GGUF files for tests, written byte by byte, with holes where the weights would lie."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from advisor.errors import SourceFileError
from advisor.models.gguf import read_gguf
from advisor.models.gguf.header import TENSOR_TYPES
from advisor.models.shape import Shape
from advisor.models.stored_tensors import StoredModel
from tests.models.conftest import is_one_sentence

TYPE_NUMBERS = {name: number for number, (name, _, _) in TENSOR_TYPES.items()}
_SIZES = {name: (block, size) for name, block, size in TENSOR_TYPES.values()}
U32, I32, F32, BOOL, STRING, ARRAY, U64 = 4, 5, 6, 7, 8, 9, 10


@dataclass(frozen=True)
class Raw:
    """A metadata value with its type number, packed by hand."""

    kind: int
    content: bytes


@dataclass(frozen=True)
class Entry:
    """A tensor as the header states it."""

    name: str
    dims: tuple[int, ...]
    kind: str | int = "F16"
    offset: int | None = None

    @property
    def n_bytes(self) -> int:
        block, size = _SIZES[str(self.kind)]
        elements = 1
        for count in self.dims:
            elements *= count
        return elements // block * size


def text(value: str | bytes) -> bytes:
    raw = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(raw)) + raw


def packed(value: object) -> bytes:
    """Pack a value with its type number before it."""
    if isinstance(value, Raw):
        return struct.pack("<I", value.kind) + value.content
    if isinstance(value, bool):
        return struct.pack("<I?", BOOL, value)
    if isinstance(value, int):
        return struct.pack("<II", U32, value)
    if isinstance(value, float):
        return struct.pack("<If", F32, value)
    if isinstance(value, str):
        return struct.pack("<I", STRING) + text(value)
    assert isinstance(value, Sequence)
    if value and isinstance(value[0], str):
        listed = b"".join(text(word) for word in value)
        return struct.pack("<IIQ", ARRAY, STRING, len(value)) + listed
    kind, letter = (BOOL, "?") if value and isinstance(value[0], bool) else (I32, "i")
    return struct.pack(f"<IIQ{len(value)}{letter}", ARRAY, kind, len(value), *value)


def header(
    metadata: Mapping[str, object] | Iterable[tuple[str, object]],
    tensors: Sequence[Entry],
    *,
    version: int = 3,
    alignment: int = 32,
    counts: tuple[int, int] | None = None,
) -> tuple[bytes, int]:
    """Give the header with its padding, and the bytes of data behind it."""
    pairs = list(metadata.items() if isinstance(metadata, Mapping) else metadata)
    stated = counts or (len(tensors), len(pairs))
    parts = [b"GGUF", struct.pack("<IQQ", version, *stated)]
    parts += [text(key) + packed(value) for key, value in pairs]
    place = 0
    for tensor in tensors:
        kind = tensor.kind if isinstance(tensor.kind, int) else TYPE_NUMBERS[tensor.kind]
        offset = place if tensor.offset is None else tensor.offset
        dims = struct.pack(f"<I{len(tensor.dims)}Q", len(tensor.dims), *tensor.dims)
        parts.append(text(tensor.name) + dims + struct.pack("<IQ", kind, offset))
        if isinstance(tensor.kind, str):
            place = -(-(place + tensor.n_bytes) // alignment) * alignment
    whole = b"".join(parts)
    return whole + b"\0" * (-len(whole) % alignment), place


def write(path: Path, metadata: Mapping[str, object], tensors: Sequence[Entry]) -> Path:
    """Write a file whose data is a hole."""
    start, data = header(metadata, tensors)
    with path.open("wb") as file:
        file.write(start)
        file.truncate(len(start) + data)
    return path


def tiny_metadata(architecture: str = "llama", /, **changes: object) -> dict[str, object]:
    """Metadata of a two-layer model; a change to None leaves the key out."""
    values: dict[str, object] = {
        "block_count": 2,
        "context_length": 2048,
        "embedding_length": 64,
        "feed_forward_length": 128,
        "attention.head_count": 4,
        "attention.head_count_kv": 2,
        **{key.replace("__", "."): value for key, value in changes.items()},
    }
    named = {f"{architecture}.{key}": v for key, v in values.items() if v is not None}
    return {"general.architecture": architecture, "general.file_type": 1, **named}


def tiny_tensors(layers: int = 2) -> list[Entry]:
    found = [
        Entry("token_embd.weight", (64, 100)),
        Entry("output_norm.weight", (64,), "F32"),
        Entry("output.weight", (64, 100)),
    ]
    for index in range(layers):
        for name, dims in (
            ("attn_norm", (64,)),
            ("attn_q", (64, 64)),
            ("attn_k", (64, 32)),
            ("attn_v", (64, 32)),
            ("attn_output", (64, 64)),
            ("ffn_norm", (64,)),
            ("ffn_gate", (64, 128)),
            ("ffn_up", (64, 128)),
            ("ffn_down", (128, 64)),
        ):
            kind = "F16" if len(dims) > 1 else "F32"
            found.append(Entry(f"blk.{index}.{name}.weight", dims, kind))
    return found


def metadata_of(shape: Shape, architecture: str) -> dict[str, object]:
    """What llama.cpp's converter writes about a model."""
    values: dict[str, object] = {
        "block_count": shape.layers,
        "embedding_length": shape.hidden,
        "feed_forward_length": shape.intermediate,
        "context_length": shape.trained_context,
        "attention.head_count": shape.heads,
        "attention.head_count_kv": shape.kv_heads,
        "attention.sliding_window": shape.window,
    }
    if shape.heads and shape.head_dim * shape.heads != shape.hidden and not shape.mla:
        values |= {"attention.key_length": shape.head_dim, "attention.value_length": shape.head_dim}
    if shape.moe:
        values |= {"expert_count": shape.moe.experts, "expert_used_count": shape.moe.used}
        if architecture != "llama":
            values["expert_feed_forward_length"] = shape.moe.width
    values |= _latent(shape) | _state(shape)
    named = {f"{architecture}.{key}": v for key, v in values.items() if v is not None}
    return {"general.architecture": architecture, **named}


def _latent(shape: Shape) -> dict[str, object]:
    mla = shape.mla
    if mla is None:
        return {}
    return {
        "attention.head_count_kv": 1,
        "attention.kv_lora_rank": mla.kv_lora_rank,
        "attention.q_lora_rank": mla.q_lora_rank,
        "attention.key_length": mla.kv_lora_rank + mla.rope_dim,
        "attention.value_length": mla.kv_lora_rank,
        "attention.key_length_mla": mla.nope_dim + mla.rope_dim,
        "attention.value_length_mla": mla.value_dim,
        "rope.dimension_count": mla.rope_dim,
    }


def _state(shape: Shape) -> dict[str, object]:
    state = shape.recurrent
    if state is None:
        return {}
    return {
        "attention.head_count": 0,
        "attention.head_count_kv": None,
        "ssm.conv_kernel": state.conv_kernel,
        "ssm.inner_size": state.inner,
        "ssm.state_size": state.state,
        "ssm.time_step_rank": state.dt_rank,
        "ssm.group_count": state.groups,
    }


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
