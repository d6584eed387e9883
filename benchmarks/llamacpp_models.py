"""What llama.cpp itself says of every model of the catalogue, in its true size: tensors and types.

    python -m benchmarks.llamacpp_models > tests/data/llamacpp_catalogue.csv
    python -m benchmarks.llamacpp_models MODEL config.json ...    these alone

Needs the package llama-cpp-py-sync. Of each model the tensors that advisor lists are written as a
GGUF file with holes for weights, with the keys that its shape gives. llama.cpp loads that without
memory for it, and so refuses what is missing, too much or of another size; then it says, in a dry
run, which type each tensor gets in a file type. Prints the bytes of each file type of the models
whose tensors are listed, and tells on the other stream what was refused.
"""

from __future__ import annotations

import ctypes
import json
import multiprocessing
import os
import re
import struct
import sys
import tempfile
from collections.abc import Iterator, Mapping
from ctypes import c_bool, c_int, c_int32, c_size_t, c_uint32, c_uint64, c_void_p
from pathlib import Path
from typing import Any, ClassVar

from advisor.errors import UserError
from advisor.estimator.gguf_tensors import Layout, Tensor, gguf_layout
from advisor.estimator.gguf_types import kept_type
from advisor.knowledge import load_knowledge
from advisor.models import known_shape
from advisor.models.architectures import class_defaults
from advisor.models.config import read_config
from advisor.models.gguf.header import TENSOR_TYPES
from advisor.models.shape import Shape
from tests.models.gguf_files import ARRAY, U64, Entry, Raw, write

sys.path.insert(0, str(Path(__file__).parent))

from llamacpp_oracle import NUMBERS, LlamaCpp, mended

FILE_TYPES: Mapping[str, int] = {
    "F16": 1, "Q8_0": 7, "Q6_K": 18, "Q5_K_M": 17, "Q5_K_S": 16, "Q5_0": 8, "Q4_K_M": 15,
    "Q4_K_S": 14, "Q4_0": 2, "IQ4_XS": 30, "IQ4_NL": 25, "Q3_K_L": 13, "Q3_K_M": 12, "Q3_K_S": 11,
    "IQ3_M": 27, "IQ3_S": 26, "Q2_K": 10, "IQ2_M": 29, "IQ2_XS": 20, "IQ2_XXS": 19, "IQ1_M": 31,
    "IQ1_S": 24, "MXFP4_MOE": 38,
}  # fmt: skip
"""File types with their numbers in ``llama.h``."""
_TENSOR = re.compile(r"\] +(\S+) +- \[([\d, ]+)\], type = +(\w+), size = +\S+ MiB(?:.*\((\w+)\))?")
_SIZES = {name: (block, size) for name, block, size in TENSOR_TYPES.values()}
_ZERO = {"embedding_length_per_layer_input", "rope.dimension_count"}
_LISTED_STATES = {"mamba", "mamba2", "conv", "kimi-delta"}
_FORK = multiprocessing.get_context("fork")
Said = dict[str, Any]


class _ModelParams(ctypes.Structure):
    _fields_ = (
        ("devices", c_void_p), ("buffers", c_void_p), ("gpu_layers", c_int32), ("split", c_int),
        ("load", c_int), ("lazy", c_int), ("main", c_int32), ("shares", c_void_p),
        ("progress", c_void_p), ("data", c_void_p), ("overrides", c_void_p), ("vocab", c_bool),
        ("check", c_bool), ("extra", c_bool), ("no_host", c_bool), ("no_alloc", c_bool),
        ("drafts", c_bool),
    )  # fmt: skip


class _QuantParams(ctypes.Structure):
    _fields_ = (
        ("threads", c_int32), ("ftype", c_int), ("output", c_int), ("embedding", c_int),
        ("again", c_bool), ("with_output", c_bool), ("copy", c_bool), ("pure", c_bool),
        ("keep_split", c_bool), ("dry_run", c_bool), ("matrix", c_void_p), ("keys", c_void_p),
        ("tensors", c_void_p), ("prune", c_void_p), ("most", c_size_t),
    )  # fmt: skip


class Loader(LlamaCpp):
    """llama.cpp as a shared library, which quantises too."""

    packages: ClassVar[dict[str, str]] = {"llama_cpp_py_sync": "libllama.so"}

    def weights(self, file: Path) -> int | None:
        """Load a file without memory for its weights; give their bytes, None where refused."""
        self.said = ""
        params = self.call("llama_model_default_params", _ModelParams)
        params.no_alloc, params.load = True, 0
        model = self.call("llama_model_load_from_file", c_void_p, str(file).encode(), params)
        if not model:
            return None
        size: int = self.call("llama_model_size", c_uint64, c_void_p(model))
        self.call("llama_model_free", None, c_void_p(model))
        return size

    def types(self, file: Path, ftype: str) -> Iterator[tuple[str, str, int]]:
        """Give what a dry run makes of each tensor: name, type and bytes."""
        self.said = ""
        params = self.call("llama_model_quantize_default_params", _QuantParams)
        params.ftype, params.dry_run, params.threads = FILE_TYPES[ftype], True, 1
        out = str(file.with_suffix(".out")).encode()
        self.call("llama_model_quantize", c_uint32, str(file).encode(), out, ctypes.byref(params))
        for name, dims, kept, given in _TENSOR.findall(self.said):
            kind = (given or kept).upper()
            block, size = _SIZES[kind]
            row, *rest = map(int, dims.split(","))
            count = row // block * size
            for side in rest:
                count *= side
            yield name, kind, count


def tensors(layout: Layout) -> Iterator[tuple[str, Tensor]]:
    """Name every tensor of a layout as the file does."""
    for one in (layout.embedding, layout.output, *layout.outside, layout.rope):
        if one is not None:
            yield one.name, one
    for index, kind in enumerate(layout.kinds):
        for one in layout.blocks[kind]:
            yield f"blk.{index}.{one.name}", one


def _entry(name: str, tensor: Tensor) -> Entry:
    dims = [tensor.ne0, tensor.ne1, tensor.ne2]
    while len(dims) > 1 and dims[-1] == 1:
        dims.pop()
    return Entry(name, tuple(dims), "I32" if name.endswith(NUMBERS) else kept_type(tensor) or "F16")


def metadata(shape: Shape, layout: Layout) -> Said:
    """Give the keys of the file that follow from the shape."""
    found = {
        "vocab_size": layout.embedding.ne1, "context_length": _positions(shape, layout),
        "embedding_length": shape.hidden, "block_count": shape.layers,
        "feed_forward_length": _widths(shape, layout), **_heads(shape, layout.architecture),
        "rope.dimension_count": shape.head_dim or 32, "attention.layer_norm_epsilon": 1e-5,
        "attention.layer_norm_rms_epsilon": 1e-5,
        **_latent(shape, layout.architecture), **_routed(shape), **_state(shape),
        **_windows(shape, layout), **_gemma(shape), **_streams(shape),
    }  # fmt: skip
    named = {
        f"{layout.architecture}.{key}": value
        for key, value in found.items()
        if value not in (0, []) or key in _ZERO
    }
    types = shape.config.get("type_vocab_size") or 2
    if shape.role == "encoder":
        named |= {
            "tokenizer.ggml.token_type_count": 1 if shape.model_type == "xlm-roberta" else types
        }
    return {
        "general.architecture": layout.architecture,
        "tokenizer.ggml.model": "no_vocab",
        **named,
    }


def _positions(shape: Shape, layout: Layout) -> int:
    stored = (t.ne1 for t in layout.outside if t.name == "position_embd.weight")
    return next(stored, shape.trained_context or 4096)


def _heads(shape: Shape, architecture: str) -> Said:
    """Heads of all layers or of each: a layer without is one that keeps a state, or nothing."""
    mixed = (
        shape.recurrent and shape.recurrent.kind in _LISTED_STATES and "H" not in shape.layer_kinds
    )
    kv: Any = 1 if shape.mla and architecture != "minicpm3" else shape.kv_heads
    heads: Any = shape.heads or 1
    if mixed or shape.kv_heads_by_layer or architecture == "mimo2":
        by_layer = shape.kv_heads_by_layer or (kv,) * shape.layers
        own = (
            {"S": shape.config.get("swa_num_key_value_heads", kv)}
            if architecture == "mimo2"
            else {}
        )
        kv = [
            0 if kind in "RN" else own.get(kind, n)
            for kind, n in zip(shape.layer_kinds, by_layer, strict=True)
        ]
    if architecture == "deci":
        heads = [heads if n else 0 for n in kv]
    values = shape.config.get("v_head_dim") if architecture == "mimo2" else shape.head_dim
    return {
        "attention.head_count": heads, "attention.head_count_kv": kv,
        "attention.key_length": shape.head_dim, "attention.value_length": values,
    }  # fmt: skip


def _widths(shape: Shape, layout: Layout) -> Any:
    """Widths of the feed-forward blocks: one, or those of all layers."""
    of = {
        kind: next((t.ne0 for t in listed if t.name == "ffn_down.weight"), 0)
        for kind, listed in layout.blocks.items()
    }
    usual = shape.moe.width if shape.moe and not any(of.values()) else 0
    found = [of[kind] or usual * ("E" in kind) for kind in layout.kinds]
    uneven = len({*found} - {0}) > 1 or layout.architecture.startswith("nemotron_h")
    return found if uneven else max(found)


def _latent(shape: Shape, architecture: str) -> Said:
    mla = shape.mla
    if not mla:
        return {}
    whole = {
        "attention.q_lora_rank": mla.q_lora_rank or 0, "attention.kv_lora_rank": mla.kv_lora_rank,
        "rope.dimension_count": mla.rope_dim,
    }  # fmt: skip
    keys, values = mla.nope_dim + mla.rope_dim, mla.value_dim
    if architecture == "minicpm3":
        return {**whole, "attention.key_length": keys, "attention.value_length": values}
    return {
        **whole, "attention.key_length": mla.kv_lora_rank + mla.rope_dim,
        "attention.value_length": mla.kv_lora_rank, "attention.key_length_mla": keys,
        "attention.value_length_mla": values, "attention.indexer.head_count": mla.index_heads,
        "attention.indexer.key_length": mla.index_dim, "attention.indexer.top_k": 2048,
        "attention.indexer.types": [int(kind == "F") for kind in mla.index_layers],
        "attention.indexer.kpool": mla.index_pool,
    }  # fmt: skip


def _routed(shape: Shape) -> Said:
    moe = shape.moe
    if not moe:
        return {}
    kinds = shape.ffn_kinds
    return {
        "expert_count": moe.experts, "expert_used_count": moe.used, "expert_gating_func": 2,
        "expert_feed_forward_length": moe.width,
        "expert_shared_feed_forward_length": moe.shared_width,
        "expert_shared_count": max(moe.shared_width // moe.width, bool(moe.shared_width)),
        "leading_dense_block_count": len(kinds) - len(kinds.lstrip("D")),
        "interleave_moe_layer_step": 1 if "D" not in kinds else 2,
        "moe_latent_size": shape.config.get("moe_latent_size") or 0,
        "expert_latent_length": shape.config.get("routed_expert_hidden_size") or 0,
    }  # fmt: skip


def _state(shape: Shape) -> Said:
    state = shape.recurrent
    if not state:  # Granite 4 without recurrent layers states them all the same
        return {"ssm.conv_kernel": 4, "ssm.inner_size": 2 * shape.hidden, "ssm.state_size": 128,
                "ssm.time_step_rank": 1, "ssm.group_count": 1}  # fmt: skip
    return {
        "ssm.conv_kernel": state.conv_kernel, "shortconv.l_cache": state.conv_kernel,
        "ssm.inner_size": state.inner, "ssm.state_size": state.state or state.head_dim,
        "ssm.time_step_rank": state.dt_rank or state.heads, "ssm.group_count": state.groups,
        "kda.head_dim": state.head_dim,
    }  # fmt: skip


def _windows(shape: Shape, layout: Layout) -> Said:
    if not shape.window:
        return {}
    return {
        "attention.sliding_window": shape.window,
        "attention.sliding_window_pattern": [kind[0] in "SX" for kind in layout.kinds],
    }


def _gemma(shape: Shape) -> Said:
    """What full layers of Gemma 4 have of their own, and what its layers read of a token."""
    config: Mapping[str, Any] = shape.config
    wide = config.get("global_head_dim")
    if not wide:
        return {}
    kv = [
        n * shape.head_dim // wide if kind == "F" else n
        for kind, n in zip(shape.layer_kinds, shape.kv_heads_by_layer or (), strict=False)
    ]
    return {
        "attention.key_length": wide, "attention.value_length": wide,
        "attention.key_length_swa": shape.head_dim, "attention.value_length_swa": shape.head_dim,
        "attention.head_count_kv": kv, "rope.dimension_count": wide,
        "rope.dimension_count_swa": shape.head_dim,
        "embedding_length_per_layer_input": config.get("hidden_size_per_layer_input") or 0,
        "attention.shared_kv_layers": config.get("num_kv_shared_layers") or 0,
    }  # fmt: skip


def _streams(shape: Shape) -> Said:
    """Several residual streams, and what DeepSeek V4 has besides."""
    config: Said = {**class_defaults(shape.model_type), **shape.config}

    def first(*names: str) -> Any:
        return next(filter(None, map(config.get, names)), 0)

    found: Said = {
        "hyper_connection.count": first("hc_mult", "hc_count") or 4 * (shape.cells is None),
        "hyper_connection.low_rank": first("hc_lowrank"),
        "attention.indexer.head_count": first("indexer_n_heads", "index_n_heads"),
        "attention.indexer.key_length": first("indexer_head_dim", "index_head_dim"),
    }
    if shape.model_type == "deepseek_v4":
        rates = {0: 0, 4: 128, 160: 4}
        found |= {
            "attention.q_lora_rank": config["q_lora_rank"],
            "attention.output_lora_rank": config["o_lora_rank"],
            "attention.output_group_count": config["o_groups"],
            "attention.compress_ratios": [rates[held] for held, _ in shape.cells or ()],
            "hash_layer_count": config.get("num_hash_layers", 3), "expert_gating_func": 4,
        }  # fmt: skip
    if layers := config.get("ple_layer_ids"):
        rows = shape.lookup // shape.hidden
        found |= {
            "ple.layers": [layer - 1 for layer in layers], "ple.ngram_size": 3,
            "ple.heads_per_ngram": 8, "ple.conv_kernel": 4, "ple.eos_token_id": 1,
            "ple.layer_multipliers": _long(1, 2, 3), "ple.head_vocab_sizes": _long(*[rows] * 16),
            "ple.head_offsets": _long(*range(0, 16 * rows, rows)),
            "embedding_length_per_layer_input": shape.hidden // 16, "full_attention_interval": 4,
        }  # fmt: skip
    return {key: value for key, value in found.items() if value}


def _long(*values: int) -> Raw:
    """An array of numbers of 64 bits."""
    return Raw(ARRAY, struct.pack(f"<IQ{len(values)}Q", U64, len(values), *values))


def asked(llama: Loader, shape: Shape, layout: Layout) -> Mapping[str, int]:
    """Let llama.cpp load the listed tensors; give the bytes of each file type.

    Raises:
        ValueError: It refuses them.
    """
    listed = [_entry(name, tensor) for name, tensor in tensors(layout)]
    keys = metadata(shape, layout)
    with tempfile.TemporaryDirectory() as folder:
        file = write(Path(folder) / "a.gguf", keys, listed)
        while llama.weights(file) is None:
            if not mended(keys, llama.said):
                raise ValueError(next(x for x in llama.said.splitlines() if "error" in x))
            file = write(Path(folder) / "a.gguf", keys, listed)
        types = [ftype for ftype in FILE_TYPES if ftype != "MXFP4_MOE" or shape.moe]
        return {ftype: sum(n for *_, n in llama.types(file, ftype)) for ftype in types}


def _shape(name: str) -> Shape:
    if name.endswith(".json"):
        return read_config(json.loads(Path(name).read_text(encoding="utf-8")), name)
    knowledge = load_knowledge()
    return known_shape(knowledge.models[name], knowledge)


def _one(name: str) -> None:
    """Print the line of a model."""
    try:
        shape = _shape(name)
        layout = gguf_layout(shape)
        found = asked(Loader(), shape, layout) if layout else None
    except (UserError, ValueError) as refused:
        print(name, refused, file=sys.stderr)
    else:
        if found:
            print(name, *(found.get(ftype, "") for ftype in FILE_TYPES), sep=",", flush=True)


def main() -> None:
    """Ask of the named models, or of all, each in a process that llama.cpp may end."""
    os.environ.setdefault("GGML_NO_BACKTRACE", "1")
    print("model", *FILE_TYPES, sep=",", flush=True)
    for name in sys.argv[1:] or load_knowledge().models:
        child = _FORK.Process(target=_one, args=(name,))
        child.start()
        child.join()
        if child.exitcode:
            print(name, "llama.cpp ended itself", file=sys.stderr)


if __name__ == "__main__":
    main()
