"""What ``real_vllm.py`` and ``real_sglang.py`` share: records, folders of models, counting.

A record is a line that ``commands.py --write`` keeps. Only cards from NVIDIA are asked about: the
choices for other makers need their own builds.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import torch

Record = dict[str, Any]
Problem = Callable[[Record, list[str]], str]
Classes = Callable[[str], list[str]]

_GROUPS = {"group_size": 128, "desc_act": False, "sym": True}
PACKED: dict[str, dict[str, object]] = {
    "FP8": {"quant_method": "fp8", "activation_scheme": "dynamic", "weight_block_size": [128, 128]},
    "AWQ 4-bit": {
        "quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True, "version": "gemm",
    },
    "GPTQ 4-bit": {"quant_method": "gptq", "bits": 4, **_GROUPS},
    "GPTQ 8-bit": {"quant_method": "gptq", "bits": 8, **_GROUPS},
    "MXFP4": {"quant_method": "mxfp4", "modules_to_not_convert": ["lm_head"]},
    "NVFP4": {
        "quant_method": "modelopt", "quant_algo": "NVFP4", "kv_cache_quant_algo": None,
        "quantization": {
            "quant_algo": "NVFP4", "kv_cache_quant_algo": None, "group_size": 16,
            "exclude_modules": ["lm_head"],
        },
    },
    "INT8 W8A8": {
        "quant_method": "compressed-tensors", "format": "int-quantized", "ignore": ["lm_head"],
        "config_groups": {"group_0": {
            "targets": ["Linear"],
            "weights": {"num_bits": 8, "type": "int", "strategy": "channel", "symmetric": True},
            "input_activations": {
                "num_bits": 8, "type": "int", "strategy": "token", "dynamic": True,
                "symmetric": True,
            },
        }},
    },
    "INT4 (experts)": {
        "quant_method": "compressed-tensors", "format": "pack-quantized", "ignore": ["lm_head"],
        "config_groups": {"group_0": {
            "targets": ["Linear"],
            "weights": {
                "num_bits": 4, "type": "int", "strategy": "group", "group_size": 32,
                "symmetric": True,
            },
            "input_activations": None,
        }},
    },
}  # fmt: skip
"""Format -> the ``quantization_config`` that repositories in it have."""
_TO_NAME = {"float16": "float16", "bfloat16": "bfloat16", "float32": "float32"}
_ALLOWANCES = ("VLLM_ALLOW_LONG_MAX_MODEL_LEN", "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN")
_IMAGES = torch.library.Library("torchvision", "DEF")
for _name in ("nms", "qnms"):
    _IMAGES.define(f"{_name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
"""Torchvision is imported without its compiled code, which is for another torch."""
_POSITIONS = frozenset({"bert", "roberta", "xlm-roberta"})
_MADE = Path(tempfile.mkdtemp(prefix="real-parsers-"))


def main(file: str, framework: str, problem: Problem) -> int:
    """Put each command of a runtime to it, print what it refuses, return the exit status."""
    refused: Counter[str] = Counter()
    examples: dict[str, str] = {}
    passed = unasked = 0
    for record in _records(Path(file), framework):
        words = _without_variables(shlex.split(record["text"].replace("\\\n", " ")))
        why = _asked(record, words, problem)
        passed += why == ""
        unasked += why is None
        if why:
            refused[why] += 1
            examples.setdefault(why, f"{record['model']}, {record['format']}: {record['text']}")
    print(
        f"{framework}: {passed:,} pass, {refused.total()} refused, {unasked} without a description"
    )
    for why, number in refused.most_common():
        print(f"{number:6}  {why}\n        {examples[why]}")
    return int(bool(refused))


def _without_variables(words: list[str]) -> list[str]:
    """Set the variables that stand before a command for it alone; give the command."""
    for name in _ALLOWANCES:
        os.environ.pop(name, None)
    while "=" in words[0]:
        name, _, value = words.pop(0).partition("=")
        os.environ[name] = value
    return words


def _asked(record: Record, words: list[str], problem: Problem) -> str | None:
    """Ask; None where the model brings its own code, or the project carries too little of it."""
    if "--trust-remote-code" in words:
        return None
    record["quantized"] = "--quantization" not in words
    try:
        return problem(record, words)
    except KeyError:
        return None
    except SystemExit:
        return "the parser refuses it"
    except Exception as error:  # noqa: BLE001 - whatever the runtime raises is what is asked for
        return _short(error)


def _short(error: Exception) -> str:
    text = " ".join(str(error).split()).replace(str(_MADE), "")
    return f"{type(error).__name__}: {text[:230]}"


def _records(file: Path, framework: str) -> Iterator[Record]:
    for line in file.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        if (
            record["framework"] == framework
            and record["vendor"] == "NVIDIA"
            and record["capability"]
        ):
            yield record


def model_folder(record: Record, classes: Classes) -> str:
    """Write the folder of a model, once for each configuration; give its path."""
    return _written(json.dumps(_config(record, classes), default=str))


def _config(record: Record, classes: Classes) -> dict[str, object]:
    outer = record["outer_type"]
    inner = {key: value for key, value in record["config"].items() if key != "layer_pattern"}
    kind = outer or inner["model_type"]
    if record.get("trained"):
        inner.setdefault("max_position_embeddings", record["trained"])
    whole: dict[str, object] = dict(inner)
    if outer and (outer != inner["model_type"] or record["vision"]):
        inner = {k: v for k, v in inner.items() if k != "model_type" or v != outer}
        whole = {"text_config": inner}
        whole |= {"vision_config": record["vision"]} if record["vision"] else {}
    whole |= {"model_type": kind, "architectures": classes(kind)}
    if kind in _POSITIONS:
        whole.setdefault("position_embedding_type", "absolute")
    whole["dtype"] = _TO_NAME.get(record["dtype"] or "", "bfloat16")
    if record["quantized"] and record["format"] in PACKED:
        whole["quantization_config"] = PACKED[record["format"]]
    return whole


@cache
def _written(config: str) -> str:
    folder = _MADE / hashlib.sha256(config.encode()).hexdigest()[:16]
    folder.mkdir()
    (folder / "config.json").write_text(config, encoding="utf-8")
    return str(folder)
