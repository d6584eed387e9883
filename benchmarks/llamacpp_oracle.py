"""What llama.cpp itself makes of tiny files: weights, cache and state, byte for byte.

    python -m benchmarks.llamacpp_oracle made > said.jsonl     needs the package xllamacpp
    python -m benchmarks.llamacpp_oracle compare said.jsonl    needs advisor alone

``made`` asks llama.cpp, as its Python package holds it, for a tiny model of every architecture: it
adds each key that llama.cpp demands, takes the tensors that llama.cpp makes, writes them as a GGUF
file with holes for weights, loads the file on the CPU and prints what llama.cpp says of it. Then
the same with one key changed or added, where that changes what llama.cpp makes.
``compare`` reads the same headers, prints exact, estimated, refused and wrong, and ends with 1
where one is wrong.
"""

from __future__ import annotations

import ctypes
import importlib.util
import json
import multiprocessing
import os
import re
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from ctypes import c_bool, c_char_p, c_float, c_int, c_int32, c_size_t, c_uint32, c_uint64, c_void_p
from pathlib import Path
from typing import Any, ClassVar

from tests.models.gguf_files import Entry, write

CONTEXT, SEQUENCES = 4096, 2
"""Tokens of a sequence, and sequences, for which the cache is asked."""
_SIZES: dict[str, Any] = {
    "vocab_size": 128,
    "context_length": CONTEXT,
    "embedding_length": 256,
    "block_count": 4,
    "feed_forward_length": 384,
    "attention.head_count": 8,
    "attention.head_count_kv": 2,
}
_ROUTED: dict[str, Any] = {
    "expert_count": 8,
    "expert_used_count": 2,
    "expert_feed_forward_length": 96,
    "expert_gating_func": 2,
}
_LATENT: dict[str, Any] = {
    "attention.head_count_kv": 1,
    "attention.q_lora_rank": 96,
    "attention.kv_lora_rank": 64,
    "attention.key_length": 96,
    "attention.value_length": 64,
    "attention.key_length_mla": 80,
    "attention.value_length_mla": 48,
    "rope.dimension_count": 32,
}
_DEMANDED: dict[str, Any] = {
    "attention.layer_norm_epsilon": 1e-5,
    "attention.layer_norm_rms_epsilon": 1e-5,
    "attention.sliding_window": 512,
    "attention.sliding_window_pattern": [True, True, True, False],
    "attention.relative_buckets_count": 32,
    "expert_shared_count": 1,
    "rope.dimension_sections": [4, 4, 4, 4],
    "ssm.conv_kernel": 4,
    "ssm.inner_size": 512,
    "ssm.state_size": 64,
    "ssm.time_step_rank": 8,
    "ssm.group_count": 2,
}
_PADDED_TO = 32
"""A buffer begins each tensor at a multiple of so many bytes; llama.cpp's total does not."""
_OTHER = 32
"""The value of a demanded number that stands nowhere above."""
_TYPED_TOKENS = {"tokenizer.ggml.token_type_count": 2}
_EVERY_HEAD = {"attention.head_count_kv": 8}
_WHOLE_LATENT = {
    **_LATENT,
    **_EVERY_HEAD,
    "attention.value_length_mla": None,
    "attention.key_length_mla": None,
}
_LATENT_IN_WINDOW = {
    f"{key}_swa": _LATENT[key]
    for key in (
        "attention.kv_lora_rank",
        "attention.key_length_mla",
        "attention.value_length_mla",
    )
}
_INDEXED = {**_LATENT, "attention.indexer.key_length": 64, "attention.indexer.head_count": 4}
_RANKS = {
    f"attention.{name}_lora_rank": 32 for name in ("decay", "iclr", "value_residual_mix", "gate")
}
_OWN: dict[str, dict[str, Any]] = {
    "afmoe": {"attention.sliding_window": 512, "leading_dense_block_count": 1},
    "arwkv7": {**_RANKS, "token_shift_count": 1},
    "bailingmoe3": {"kda.gate_lower_bound": -5.0},
    "bert": _TYPED_TOKENS,
    "chameleon": {"vocab_size": 10240},
    "cohere2moe": {"attention.layer_norm_rms_epsilon": 1e-5},
    "deepseek2-ocr": _EVERY_HEAD,
    "deepseek32": _INDEXED,
    "deepseek4": {
        "attention.compress_ratios": [0, 4, 128, 4],
        "expert_gating_func": 4,
        "hyper_connection.count": 4,
        "attention.key_length": 64,
        "attention.value_length": 64,
        "hash_layer_count": 1,
        "attention.output_group_count": 4,
    },
    "dots1": _EVERY_HEAD,
    "glm-dsa": _INDEXED,
    "dots3note": {**_INDEXED, **_LATENT_IN_WINDOW, "attention.indexer.types": [0, 0, 0, 1]},
    "glm5-next": {
        **_INDEXED,
        "hyper_connection.count": 4,
        "attention.key_length": 64,
        "rope.dimension_count": 0,
    },
    "graniteswitch": {
        "adapters.count": 2,
        "adapters.lora_rank": 8,
        "adapters.token_ids_activate": [100, 101],
        "adapters.token_ids_substitute": [1, 2],
        "logit_scale": 4.0,
    },
    "grovemoe": {"expert_chunk_feed_forward_length": 64, "experts_per_group": 2},
    "hrm_text": {"hrm.layers_per_stack": 1, "hrm.h_cycles": 2, "hrm.l_cycles": 1},
    "jina-bert-v2": {**_TYPED_TOKENS, **_EVERY_HEAD},
    "jina-bert-v3": _TYPED_TOKENS,
    "minicpm3": _WHOLE_LATENT,
    "minimax-m3": {"attention.indexer.head_count": 2},
    "nomic-bert": _TYPED_TOKENS,
    "nomic-bert-moe": {**_TYPED_TOKENS, "moe_every_n_layers": 2},
    "olmoe": _EVERY_HEAD,
    "plm": _WHOLE_LATENT,
    "rwkv6": {"attention.head_count": 0, "attention.head_count_kv": None},
    "rwkv7": {**_RANKS, "attention.head_count": 0, "attention.head_count_kv": None},
    "rwkv6qwen2": {"token_shift_count": 1},
    "t5": _EVERY_HEAD,
    "t5encoder": _EVERY_HEAD,
}
"""What an architecture needs besides, or in another way."""
_ADDED: tuple[dict[str, Any], ...] = (
    *({key: value} for key, value in _DEMANDED.items()),
    {"attention.key_length": 64, "attention.value_length": 64, "rope.dimension_count": 64},
    {"attention.key_length": 64, "attention.value_length": 48, "rope.dimension_count": 64},
    {"attention.key_length_swa": 64, "attention.value_length_swa": 64},
    {"attention.sliding_window_pattern": 2, "attention.sliding_window": 512},
    {"block_count": 6, "attention.sliding_window": 512},
    {"attention.shared_kv_layers": 2},
    {"attention.head_count_kv": [2, 4, 2, 4]},
    {"attention.head_count_kv": [2, 0, 2, 0]},
    {"attention.head_count_kv": [0, 1, 0, 1]},
    _WHOLE_LATENT,
    {"leading_dense_block_count": 1},
    {"full_attention_interval": 2},
)
_LEFT_OUT = {"rwkv6qwen2": "time_mix_first"}
"""Tensors that llama.cpp takes but does not run with, and no converter writes."""
_ALONE = frozenset({"t5"})
"""Architectures of which it computes one sequence at a time."""
NUMBERS = "ffn_gate_tid2eid.weight"
"""A table of whole numbers."""
_FORK = multiprocessing.get_context("fork")
_LOST = re.compile(r"key not found in model: ([\w.-]+)")
_TYPED = re.compile(r"key ([\w.-]+) has wrong type \S+ but expected type (\w+)")
_MISSING = re.compile(r"missing tensor '([\w.-]+)'")
Said = dict[str, Any]


class _Params(ctypes.Structure):
    """Parameters that are passed by value; llama.cpp fills them, so their layout does not count."""

    _fields_ = (("words", c_uint32 * 128),)


class _Map(ctypes.Structure):
    """A ``std::map`` as it is returned: by kind of buffer what is kept for model and context."""

    _fields_ = (
        ("compare", c_void_p),
        ("color", c_uint64),
        ("root", c_void_p),
        ("first", c_void_p),
        ("last", c_void_p),
        ("count", c_size_t),
    )


_LOG = ctypes.CFUNCTYPE(None, c_int, c_char_p, c_void_p)
_SET = ctypes.CFUNCTYPE(None, c_void_p, c_void_p)


class LlamaCpp:
    """llama.cpp inside a Python package, asked by the functions that it exports."""

    packages: ClassVar[dict[str, str]] = {"xllamacpp": "xllamacpp.abi3.so"}
    """Packages that hold it, and the file in them."""

    def __init__(self) -> None:
        found = map(importlib.util.find_spec, self.packages)
        places = [Path(one.origin) for one in found if one and one.origin]
        if not places:
            sys.exit(f"pip install {min(self.packages)}")
        name = self.packages[places[0].parent.name]
        self._library = ctypes.CDLL(str(places[0].with_name(name)))
        self.said = ""
        self._log = _LOG(self._hear)
        self.call("llama_log_set", None, self._log, None)
        self.call("llama_backend_init", None)

    def _hear(self, _level: int, text: bytes, _: object) -> None:
        self.said += text.decode(errors="replace")

    def call(self, name: str, kind: Any, *arguments: Any) -> Any:
        """Call a function that gives ``kind``."""
        function = getattr(self._library, name)
        function.restype = kind
        return function(*arguments)

    def architectures(self) -> Iterator[str]:
        """Name every architecture."""
        for number in range(1000):
            name = self.call("_Z13llm_arch_name8llm_arch", c_char_p, number)
            if name == b"(unknown)":
                return
            yield name.decode()

    def tensors(self, metadata: Said) -> list[list[Any]] | None:
        """Let it make a model of metadata alone; give name, type and sizes of its tensors."""
        found = {}
        left_out = _LEFT_OUT.get(metadata["general.architecture"], " ")

        def made(tensor: int, _: object) -> None:
            kind = self.call("ggml_type_name", c_char_p, c_int.from_address(tensor).value)
            sizes = list((ctypes.c_int64 * 4).from_address(tensor + 16))
            while len(sizes) > 1 and sizes[-1] == 1:
                sizes.pop()
            name = self.call("ggml_get_name", c_char_p, c_void_p(tensor)).decode()
            if not name.endswith((".scale", ".input_scale")) and left_out not in name:
                found[name] = [name, kind.decode().upper(), *sizes]

        params = self.call("llama_model_default_params", _Params)
        metadata_ = self._written(metadata)
        model = self.call(
            "llama_model_init_from_user", c_void_p, metadata_, _SET(made), None, params
        )
        return list(found.values()) if model else None

    def _written(self, metadata: Said) -> c_void_p:
        """Write metadata as it keeps it."""
        kept = c_void_p(self.call("gguf_init_empty", c_void_p))
        for key, value in metadata.items():
            self._put(kept, key.encode(), value)
        return kept

    def _put(self, kept: c_void_p, key: bytes, value: Any) -> None:
        if isinstance(value, list):
            kind, number = (c_bool, 7) if isinstance(value[0], bool) else (c_int32, 5)
            data = (kind * len(value))(*value)
            self.call("gguf_set_arr_data", None, kept, key, number, data, c_size_t(len(value)))
        elif isinstance(value, str):
            self.call("gguf_set_val_str", None, kept, key, value.encode())
        else:
            kinds = {bool: ("bool", c_bool), int: ("u32", c_uint32), float: ("f32", c_float)}
            name, made = kinds[type(value)]
            self.call(f"gguf_set_val_{name}", None, kept, key, made(value))

    def loaded(self, file: Path, sequences: int) -> Said | None:
        """Load a file; give bytes and number of its weights, and bytes of its cache."""
        params = self.call("llama_model_default_params", _Params)
        model = self.call("llama_model_load_from_file", c_void_p, str(file).encode(), params)
        if not model:
            return None
        model = c_void_p(model)
        params = self.call("llama_context_default_params", _Params)
        params.words[0], params.words[3] = CONTEXT * sequences, sequences
        _cut_windows(params)
        context = self.call("llama_init_from_model", c_void_p, model, params)
        return {
            "weights": self.call("llama_model_size", c_uint64, model),
            "parameters": self.call("llama_model_n_params", c_uint64, model),
            "cache": self._cache(c_void_p(context)) if context else None,
        }

    def _cache(self, context: c_void_p) -> int:
        name = "_Z26llama_get_memory_breakdownPK13llama_context"
        return sum(_contexts(self.call(name, _Map, context).root))


def _cut_windows(params: _Params) -> None:
    """Keep of a sliding window no more than it needs, as llama-server does.

    The switch is the fifth of six at the end (embeddings, offload_kqv, no_perf, op_offload,
    swa_full, kv_unified), whose place differs from build to build.
    """
    at = bytes(params).index(b"\0\1\1\1\1\0")
    ctypes.memset(ctypes.addressof(params) + at + 4, 0, 1)


def _contexts(node: int | None) -> Iterator[int]:
    """Give what the nodes of a map keep for the context."""
    if node:
        yield c_size_t.from_address(node + 48).value
        yield from _contexts(c_void_p.from_address(node + 16).value)
        yield from _contexts(c_void_p.from_address(node + 24).value)


def _asked(given: Said) -> Said:
    """Make a file of some metadata, adding what is demanded; give what llama.cpp says of it."""
    llama, metadata = LlamaCpp(), dict(given)
    while not (tensors := llama.tensors(metadata)):
        if not mended(metadata, llama.said):
            return {"refused": llama.said.strip().splitlines()[-2:]}
        llama.said = ""
    with tempfile.TemporaryDirectory() as folder:
        said = llama.loaded(_file(Path(folder), metadata, tensors), _sequences(metadata))
    if said is None or said["cache"] is None:
        return {"refused": llama.said.strip().splitlines()[-3:]}
    return {"metadata": metadata, "tensors": tensors, **said}


def _sequences(metadata: Said) -> int:
    return 1 if metadata["general.architecture"] in _ALONE else SEQUENCES


def _file(folder: Path, metadata: Said, tensors: list[list[Any]]) -> Path:
    listed = [
        Entry(name, tuple(sizes), "I32" if name.endswith(NUMBERS) else kind)
        for name, kind, *sizes in tensors
    ]
    return write(folder / "a.gguf", metadata, listed)


def mended(metadata: Said, said: str) -> bool:
    """Give metadata what was demanded; False where nothing was."""
    architecture = metadata["general.architecture"]
    if typed := _TYPED.search(said):
        kinds: dict[str, Callable[[Any], Any]] = {"f32": float, "bool": bool, "str": str}
        if typed[2] in kinds:
            metadata[typed[1]] = kinds[typed[2]](metadata[typed[1]])
        return typed[2] in kinds
    lost = _LOST.search(said)
    if lost is None or lost[1] in metadata:
        return False
    name = lost[1].removeprefix(f"{architecture}.")
    wanted = {name: {**_DEMANDED, **_ROUTED}.get(name, _OTHER)}
    if name in _LATENT:
        wanted = {**_LATENT, **_OWN.get(architecture, {})}
    for key, value in wanted.items():
        metadata[f"{architecture}.{key}" if lost[1] != name else key] = value
    return True


def _process(given: Said) -> Said:
    """Ask in a process of its own, which llama.cpp may end."""
    reader, writer = _FORK.Pipe(duplex=False)
    child = _FORK.Process(target=lambda: writer.send(_asked(given)))
    child.start()
    writer.close()
    try:
        said: Said = reader.recv()
    except EOFError:
        said = {"refused": ["llama.cpp ended itself"]}
    child.join()
    return said


def _metadata(architecture: str, values: Said) -> Said:
    named = {
        key if key.startswith("tokenizer.") else f"{architecture}.{key}": value
        for key, value in values.items()
        if value is not None
    }
    return {"general.architecture": architecture, "tokenizer.ggml.model": "no_vocab", **named}


def _bases(architecture: str) -> Iterator[tuple[str, Said]]:
    own = _OWN.get(architecture, {})
    yield architecture, _metadata(architecture, {**_SIZES, **own})
    yield f"{architecture} routed", _metadata(architecture, {**_SIZES, **_ROUTED, **own})


def _varied(base: Said) -> Iterator[tuple[str, Said]]:
    """Give metadata with one key doubled, or one more."""
    start = f"{base['general.architecture']}."
    for key, value in base.items():
        if type(value) is int and not key.endswith(("vocab_size", "context_length")):
            yield f"{key.removeprefix(start)}={value * 2}", {**base, key: value * 2}
    for added in _ADDED:
        said = ", ".join(f"{key}={value}" for key, value in added.items())
        changed = {**base, **{start + key: value for key, value in added.items()}}
        yield said, {key: value for key, value in changed.items() if value is not None}


def made(wanted: list[str]) -> None:
    """Print what llama.cpp says of tiny models of every architecture."""
    os.environ.setdefault("GGML_NO_BACKTRACE", "1")
    for architecture in wanted or LlamaCpp().architectures():
        before: list[Said] = []
        for name, metadata in _bases(architecture):
            base = _process(metadata)
            if "refused" in base:
                print(name, *base["refused"], file=sys.stderr)
            elif not _same(base, before):
                varied = [] if before else _varied(base["metadata"])
                _print(name, base, before)
                for what, changed in varied:
                    said = _process(changed)
                    if "refused" not in said and not _same(said, before):
                        _print(f"{name} {what}", said, before)


def _same(said: Said, before: list[Said]) -> bool:
    """Whether nothing that llama.cpp makes is new."""
    return any(all(one[k] == said[k] for k in ("tensors", "cache")) for one in before)


def _print(name: str, said: Said, before: list[Said]) -> None:
    before.append(said)
    print(json.dumps({"name": name, **said}, separators=(",", ":")), flush=True)


def compare(said: Path) -> int:
    """Print how the product's weights and cache stand against those of llama.cpp."""
    how: Counter[str] = Counter()
    types: dict[str, set[str]] = defaultdict(set)
    with said.open(encoding="utf-8") as stream:
        for case in map(json.loads, stream):
            result, told = judged(case)
            how[result] += 1
            types[result].add(case["metadata"]["general.architecture"])
            if result not in {"exact", "estimated, inside"}:
                print(result, f"{case['name']}:", told)
    print(*(f"{n:6} {what} ({len(types[what])} types)" for what, n in how.most_common()), sep="\n")
    return 1 if how["wrong"] else 0


def judged(case: Said) -> tuple[str, str]:
    """Say how the product reads the header of a file, and what of it is apart."""
    import advisor  # noqa: PLC0415
    from advisor.models.gguf import read_gguf  # noqa: PLC0415

    with tempfile.TemporaryDirectory() as folder:
        file = _file(Path(folder), case["metadata"], case["tensors"])
        try:
            shape = read_gguf(file).shape
            made = advisor.estimate(
                gpu="H200", model=str(file), framework="llama.cpp", context=CONTEXT,
                batch=_sequences(case["metadata"]), kv_unified=False, gpu_layers=0,
            )  # fmt: skip
        except advisor.UserError as error:
            return "refused", error.message
    memory = made.memory
    assert memory
    weights = memory.weights_bytes + memory.host_weights_bytes
    cache = memory.kv_cache_bytes + memory.host_kv_cache_bytes
    told = f"{weights:,} for {case['weights']:,}, cache {cache:,} for {case['cache']:,}"
    if not 0 <= weights - case["weights"] < _PADDED_TO * len(case["tensors"]):
        return "wrong", told
    if shape.described:
        return "exact" if cache == case["cache"] else "wrong", told
    low = cache * (1 - shape.cache_loose)
    return f"estimated, {'inside' if low <= case['cache'] <= cache else 'outside'}", told


def main() -> int:
    """Do what the first argument says."""
    task, *rest = sys.argv[1:] or [""]
    if task == "made":
        made(rest)
    elif task == "compare" and rest:
        return compare(Path(rest[0]))
    else:
        print(__doc__)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
