"""Weights read back from files against llama.cpp's quantiser and the analytic estimate."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from msgspec.structs import replace

from advisor.estimator.gguf_tensors import Layout, gguf_layout
from advisor.estimator.gguf_types import SEVENTY_B, Rules, Site, category_of, kept_type
from advisor.estimator.gguf_weights import gguf_bytes, stored_bytes
from advisor.estimator.weights import weight_profile
from advisor.models.gguf import read_gguf
from advisor.models.gguf.header import FILE_TYPES
from advisor.models.shape import Counts
from advisor.models.stored_tensors import Model, Place, StoredModel, place_of
from tests.estimate.builders import (
    GGML_TYPES,
    framework,
    gguf,
    kv_cache_bytes,
    rows,
    scenario,
    text_model,
)
from tests.models.gguf_files import Entry, metadata_of, write
from tests.models.stored_profile import stored_profile

FTYPES = {name: number for number, name in FILE_TYPES.items()} | {"F16": 1}
QUANTISED: dict[str, list[dict[str, str]]] = defaultdict(list)
for _row in (row for row in rows("llamacpp_quant") if row["ftype"] != "IQ3_XXS"):
    QUANTISED[_row["name"]].append(_row)


def entries(model: Model, layout: Layout, ftype: str) -> list[Entry]:
    """Every tensor with the type that llama.cpp's quantiser gives it."""
    shape = model.shape
    seventy_b = (
        shape.layers == 80
        and layout.architecture in {"llama", "qwen2"}
        and shape.heads != shape.kv_heads
    )
    rules = Rules(ftype, GGML_TYPES, SEVENTY_B if seventy_b else "")
    table = layout.embedding
    found = [
        Entry(
            table.name,
            (table.ne0, table.ne1),
            rules.matrix_type(table, as_output=layout.output is None),
        )
    ]
    if layout.output:
        kind = rules.matrix_type(layout.output, as_output=True)
        found.append(Entry(layout.output.name, (layout.output.ne0, layout.output.ne1), kind))
    vectors = [*layout.outside, *([layout.rope] if layout.rope else [])]
    found += [Entry(tensor.name, (tensor.ne0,), "F32") for tensor in vectors]
    return found + blocks(model, layout, rules)


def blocks(model: Model, layout: Layout, rules: Rules) -> list[Entry]:
    shape = model.shape
    experts = shape.moe.experts if shape.moe else 0
    grouping = shape.heads // shape.kv_heads if shape.kv_heads else 1
    walk = [
        (block, tensor, "" if kept_type(tensor) else category_of(tensor.name))
        for block, kind in enumerate(layout.kinds)
        for tensor in layout.blocks[kind]
    ]
    values = sum(category == "V" for _, _, category in walk)
    passed: Counter[str] = Counter()
    found = []
    for block, tensor, category in walk:
        index, count = (passed["V"], values) if category == "V" else (passed["DOWN"], shape.layers)
        if category == "DOWN" and experts > 1 and not rules.low_bit:
            index = block
        passed[category] += 1
        site = Site(index, count, block, shape.layers, experts, grouping)
        kind = kept_type(tensor) or rules.block_type(tensor, category, site)
        dims = (tensor.ne0, tensor.ne1, tensor.ne2)
        kept = dims[: 3 if dims[2] > 1 else 2 if dims[1] > 1 else 1]
        found.append(Entry(f"blk.{block}.{tensor.name}", kept, kind))
    return found


def written(folder: Path, name: str, ftype: str) -> tuple[Model, StoredModel]:
    model = text_model(name)
    layout = gguf_layout(model.shape)
    assert layout is not None
    metadata = metadata_of(model.shape, layout.architecture)
    metadata["general.file_type"] = FTYPES[ftype]
    path = write(folder / f"{name}-{ftype}.gguf", metadata, entries(model, layout, ftype))
    return model, read_gguf(path)


def check(folder: Path, row: dict[str, str]) -> None:
    """Hold a file read back against the quantiser's row and the analytic estimate."""
    ftype = row["ftype"]
    model, stored = written(folder, row["name"], ftype)
    profile = stored_profile(stored)
    assert profile.total_bytes == int(row["weight_bytes"])
    by_type: Counter[str] = Counter()
    for tensor in stored.tensors:
        by_type[tensor.type_name] += tensor.n_bytes
    assert dict(by_type) == json.loads(row["by_type_bytes"])
    assert profile == weight_profile(model, gguf(ftype), framework("llama.cpp"), GGML_TYPES)
    layout = gguf_layout(model.shape)
    assert layout is not None
    assert stored_bytes(stored) == gguf_bytes(model.shape, layout, ftype, GGML_TYPES)
    assert stored.format_name == {"F16": "FP16"}.get(ftype, ftype)


@pytest.mark.parametrize("name", sorted(QUANTISED))
def test_files_give_the_quantisers_bytes(tmp_path: Path, name: str) -> None:
    for row in QUANTISED[name][sorted(QUANTISED).index(name) % 11 :: 11]:
        check(tmp_path, row)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(QUANTISED))
def test_every_file_gives_the_quantisers_bytes(tmp_path: Path, name: str) -> None:
    for row in QUANTISED[name]:
        check(tmp_path, row)


@pytest.mark.parametrize("name", sorted(QUANTISED))
def test_files_give_the_shape_of_the_config(tmp_path: Path, name: str) -> None:
    model, stored = written(tmp_path, name, "Q8_0")
    described, read = model.shape, stored.shape
    assert (read.moe, read.mla, read.recurrent) == (
        described.moe,
        described.mla,
        described.recurrent,
    )
    assert (read.ffn_kinds, read.tied) == (described.ffn_kinds, described.tied)
    assert (read.layers, read.hidden, read.heads, read.kv_heads, read.head_dim) == (
        described.layers,
        described.hidden,
        described.heads,
        described.kv_heads,
        described.head_dim,
    )
    assert read.trained_context == described.trained_context
    check_counts(described.counts, read.counts, same_vocabulary=read.vocab == described.vocab)
    for context in (512, 32_768):
        both = [
            kv_cache_bytes(scenario(replace(model, shape=shape), context_tokens=context))
            for shape in (described, read)
        ]
        assert both[0] == both[1]


def check_counts(described: Counts | None, read: Counts | None, *, same_vocabulary: bool) -> None:
    assert described is not None
    assert read is not None
    assert (read.layers, read.experts) == (described.layers, described.experts)
    if same_vocabulary and not described.vision:
        assert read == described


@pytest.mark.parametrize("name", sorted(QUANTISED))
def test_a_file_is_requantised_like_its_config(tmp_path: Path, name: str) -> None:
    model, stored = written(tmp_path, name, "F16")
    again = replace(model, shape=stored.shape)
    both = [
        weight_profile(each, gguf("Q4_K_M"), framework("llama.cpp"), GGML_TYPES)
        for each in (model, again)
    ]
    assert both[0] == both[1]


def test_encoders_beside_a_decoder_are_no_layers() -> None:
    for name in ("encoder.block.3.layer.0.k.weight", "model.encoder.layers.3.fc1.weight"):
        assert place_of(name, 8).part == "encoder"
    for name in ("decoder.block.3.layer.0.k.weight", "bert.encoder.layer.3.output.dense.weight"):
        assert place_of(name, 8) == Place("layer", 3)


def test_experts_stored_one_by_one_are_experts() -> None:
    place = place_of("blk.3.ffn_up.7.weight", 8)
    assert (place.layer, place.expert) == (3, True)
    assert not place_of("blk.3.ffn_up.weight", 8).expert
    assert not place_of("blk.3.ffn_up_shexp.weight", 8).expert
    assert place_of("model.layers.3.mlp.experts.7.up_proj.weight", 8).expert
    assert not place_of("model.layers.3.mlp.shared_experts.up_proj.weight", 8).expert
