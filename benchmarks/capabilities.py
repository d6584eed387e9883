"""Read what runtimes do on which card out of their own source: knowledge/capabilities-*.yaml.

    python benchmarks/capabilities.py PACKAGES      # a folder of wheels and source archives

The folder holds what ``pip download --no-deps`` gives: vllm, sglang, sglang-kernel, transformers
and llama-cpp-python (which carries llama.cpp). What is not there is left as it is. A newer version
is a run with newer packages and a look at what changed (``git diff knowledge``).
"""

from __future__ import annotations

import ast
import re
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from capabilities_vllm import SINKS, vllm
from runtime_sources import (
    FP8_UNITS,
    Classes,
    Module,
    Row,
    classes_of,
    compiled_for,
    smallest_cards,
    without,
)

KNOWLEDGE = Path(__file__).parents[1] / "knowledge"

# ---- SGLang

_SGLANG_WEIGHTS = {
    "AWQ 4-bit": ("awq/awq.py", "AWQMarlinConfig"),
    "GPTQ 4-bit": ("gptq/gptq.py", "GPTQMarlinConfig"),
    "GPTQ 8-bit": ("gptq/gptq.py", "GPTQMarlinConfig"),
    "FP8": ("fp8.py", "Fp8Config"),
    "MXFP4": ("mxfp4.py", "Mxfp4Config"),
    "NVFP4": ("modelopt_quant.py", "ModelOptFp4Config"),
    "INT8 W8A8": ("compressed_tensors/schemes/compressed_tensors_w8a8_int8.py", None),
}


def sglang(root: Path, wheel: Path, transformers: Path) -> Iterator[Row]:
    """Read SGLang."""
    library = "sgl_kernel/flash_ops.abi3.so"
    cards = compiled_for(wheel, library)
    yield {
        "about": "card", "answer": "refused", "vendors": ["NVIDIA"], "below_capability": min(cards),
        "why": f"its kernels hold machine code from compute capability {min(cards):g} on",
        "at": library,
    }  # fmt: skip
    chosen = Module(root, "sglang/srt/arg_groups/model_override_base.py")
    at = chosen.line("FlashInfer does not support attention sinks")
    why = "SGLang takes Triton kernels for it, which read fp8_e4m3 from compute capability 8.9 on"
    for row in ({"attention": ["mla"]}, {"model_types": list(SINKS)}):
        yield {
            "about": "kv_cache", "of": ["fp8_e4m3"], "answer": "refused", "vendors": ["NVIDIA"],
            "below_capability": FP8_UNITS, **row, "why": why, "at": at,
        }  # fmt: skip
    yield from smallest_cards(root, "sglang/srt/layers/quantization/", _SGLANG_WEIGHTS)
    types = sorted(bitsandbytes_types(root, transformers))
    loader = Module(root, "sglang/srt/model_loader/loader.py")
    yield {
        "about": "weights", "of": ["NF4", "INT8 (bitsandbytes)"], "answer": "refused",
        "other_model_types": types, "why": "SGLang has no bitsandbytes mapping for it",
        "at": loader.line('"bitsandbytes_stacked_params_mapping"'),
    }  # fmt: skip
    runner = Module(root, "sglang/srt/model_executor/model_runner.py")
    yield {
        "about": "split", "of": ["layer"], "answer": "refused",
        "model_types": without(root / "sglang/srt/models", transformers, _passes_stages),
        "why": "SGLang has no pipeline for it", "at": runner.line('"pp_proxy_tensors" in'),
    }  # fmt: skip


def bitsandbytes_types(root: Path, transformers: Path) -> Iterator[str]:
    """Name the ``model_type``s whose class has, or inherits, a mapping for bitsandbytes."""
    models = root / "sglang/srt/models"
    having = Classes(models).having(
        lambda node: "bitsandbytes_stacked_params_mapping" in ast.unparse(node)
    )
    for kind, names in classes_of(transformers).items():
        if having.intersection(names):
            yield kind


def _passes_stages(node: ast.ClassDef) -> bool:
    """Whether a class takes what the stage before it gives, by which SGLang tells that it can."""
    return any(
        isinstance(one, ast.FunctionDef)
        and one.name == "forward"
        and any(each.arg == "pp_proxy_tensors" for each in (*one.args.args, *one.args.kwonlyargs))
        for one in node.body
    )


# ---- llama.cpp


_CONVERTED = (
    "a default build has no attention kernel for it and turns the cache into f16 at every step;"
    " build with -DGGML_CUDA_FA_QUANTS=all"
)


def llamacpp(root: Path) -> Iterator[Row]:
    """Read which cache types the attention kernels of a default build take."""
    cmake = (root / "ggml/CMakeLists.txt").read_text(encoding="utf-8")
    built = re.search(r'GGML_CUDA_FA_QUANTS "([^"]+)"', cmake)
    kernels = (root / "ggml/src/ggml-cuda/fattn.cu").read_text(encoding="utf-8")
    body = kernels[kernels.index("bool ggml_cuda_fattn_kv_type_supported") :]
    taken = [kind.lower() for kind in re.findall(r"GGML_TYPE_(\w+):", body.split("}", 1)[0])]
    assert built
    pairs = [pair.split("-") for pair in built[1].split(";")]
    line = cmake[: built.start()].count("\n") + 1
    whole = sorted({key for key, value in pairs if key == value})
    slow = [kind for kind in taken if kind not in {*whole, "f32"}]
    yield {
        "about": "kv_cache", "of": slow, "answer": "slow", "vendors": ["NVIDIA", "AMD"],
        "backends": ["CUDA", "ROCm"],
        "why": _CONVERTED,
        "at": f"ggml/CMakeLists.txt:{line}",
    }  # fmt: skip
    number = kernels[: kernels.index("bool ggml_cuda_fattn_kv_type_supported")].count("\n") + 1
    yield {
        "about": "kv_cache", "of": ["iq4_nl"], "answer": "slow", "vendors": ["NVIDIA", "AMD"],
        "backends": ["CUDA", "ROCm"],
        "why": "its attention kernels do not take it, so attention runs on the processor",
        "at": f"ggml/src/ggml-cuda/fattn.cu:{number}",
    }  # fmt: skip
    yield {
        "about": "kv_pair", "of": sorted("-".join(pair) for pair in pairs), "answer": "runs",
        "backends": ["CUDA", "ROCm"], "why": "a default build has its attention kernel",
        "at": f"ggml/CMakeLists.txt:{line}",
    }  # fmt: skip
    yield {
        "about": "kv_pair", "answer": "slow", "vendors": ["NVIDIA", "AMD"],
        "backends": ["CUDA", "ROCm"], "why": _CONVERTED, "at": f"ggml/CMakeLists.txt:{line}",
    }  # fmt: skip


# ---- writing


def merged(rows: Sequence[Row]) -> list[Row]:
    """Join rows that differ in the names alone that they are of."""
    found: dict[str, Row] = {}
    for row in rows:
        key = repr({name: value for name, value in row.items() if name not in {"of", "at"}})
        first = found.setdefault(key, row)
        if first is not row:
            names: Any = first["of"]
            more: Any = row["of"]
            first["of"] = [*names, *(name for name in more if name not in names)]
    return list(found.values())


def write(framework: str, source: str, version: str, rows: Sequence[Row]) -> None:
    """Write the rows of one runtime, in the order in which they are asked."""
    head = (
        f"# Made by benchmarks/capabilities.py from {source}: do not edit, run it again.\n"
        "# What the keys mean stands in capabilities.yaml.\n"
    )
    records = [
        {"capability": f"{framework} {number}", "framework": framework, "version": version}
        | row | {"source": source}
        for number, row in enumerate(merged(rows), 1)
    ]  # fmt: skip
    name = f"capabilities-{framework.casefold().replace('.', '')}.yaml"
    text = yaml.safe_dump(records, sort_keys=False, width=120, default_flow_style=None)
    (KNOWLEDGE / name).write_text(head + text, encoding="utf-8")
    print(f"{name}: {len(records)} rows")


def main(packages: Path) -> None:
    """Read every runtime whose package lies in the folder."""
    with tempfile.TemporaryDirectory() as made:
        roots = dict(_unpacked(packages, Path(made)))
        for name, read in _READERS.items():
            read(roots, packages) if name in roots else print(f"no package of {name}")


def _unpacked(packages: Path, into: Path) -> Iterator[tuple[str, tuple[Path, str]]]:
    for wheel in sorted(packages.glob("*.whl")):
        name, version = wheel.name.split("-")[:2]
        with zipfile.ZipFile(wheel) as packed:
            wanted = [n for n in packed.namelist() if n.endswith(".py")]
            packed.extractall(into / name, wanted)  # noqa: S202 - zipfile keeps it inside
        yield name, (into / name, version)
    for archive in sorted(packages.glob("llama_cpp_python-*.tar.gz")):
        with tarfile.open(archive) as packed:
            packed.extractall(into / "llama.cpp", filter="data")
        yield "llama.cpp", (next((into / "llama.cpp").glob("*/vendor/llama.cpp")), "0c1e57098")


Roots = Mapping[str, tuple[Path, str]]


def _write_vllm(roots: Roots, packages: Path) -> None:
    root, version = roots["vllm"]
    rows = [*vllm(root, next(packages.glob("vllm-*.whl")), roots["transformers"][0])]
    write("vLLM", f"vllm-{version}", version, rows)


def _write_sglang(roots: Roots, packages: Path) -> None:
    root, version = roots["sglang"]
    kernels = next(packages.glob("sglang_kernel-*.whl"))
    write(
        "SGLang", f"sglang-{version}", version, [*sglang(root, kernels, roots["transformers"][0])]
    )


def _write_llamacpp(roots: Roots, _packages: Path) -> None:
    root, version = roots["llama.cpp"]
    write("llama.cpp", "llamacpp-source", version, [*llamacpp(root)])


_READERS: Mapping[str, Callable[[Roots, Path], None]] = {
    "vllm": _write_vllm,
    "sglang": _write_sglang,
    "llama.cpp": _write_llamacpp,
}

if __name__ == "__main__":
    main(Path(sys.argv[1]))
