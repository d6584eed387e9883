"""Safetensors files for tests, with holes where the weights would lie."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
import safetensors

from advisor.errors import SourceFileError
from advisor.models.safetensors import DTYPE_BITS, read_safetensors

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


def refusal(path: Path) -> str:
    with pytest.raises(SourceFileError) as caught:
        read_safetensors(path)
    message = str(caught.value)
    assert "\n" not in message
    assert message.endswith((".", "?"))
    return message


def accepted(content: bytes) -> list[tuple[str, dict[str, object]]]:
    found: list[tuple[str, dict[str, object]]] = safetensors.deserialize(content)  # type: ignore[no-untyped-call]  # its stubs leave it out
    return found
