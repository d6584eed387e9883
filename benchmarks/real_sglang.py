"""Commands put to SGLang itself: its parser and its checks of a configuration.

    python benchmarks/commands.py --write commands.jsonl
    python benchmarks/real_sglang.py commands.jsonl     where SGLang is installed; no card needed

As ``real_vllm.py``: torch answers with the compute capability of the record, the model's folder
holds a ``config.json`` alone, no weights are loaded.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from functools import cache
from pathlib import Path

os.environ |= {"HF_HUB_OFFLINE": "1"}

import real_parsers
import sglang
import torch
import transformers
from sglang.srt.arg_groups.overrides import model_config_of
from sglang.srt.layers import quantization
from sglang.srt.model_loader import weight_utils  # noqa: F401 - imported while there is no card
from sglang.srt.server_args import ServerArgs
from sglang.srt.utils import common

PARSER = argparse.ArgumentParser()
ServerArgs.add_cli_args(PARSER)
for _methods in (quantization.BASE_QUANTIZATION_METHODS, quantization.QUANTIZATION_METHODS):
    _methods["mxfp4"] = quantization.Mxfp4Config
"""It is there where a card is."""
_MODELS = Path(sglang.__file__).parent / "srt/models"


def problem(record: real_parsers.Record, words: list[str]) -> str:
    """Say why SGLang refuses a command; empty where it does not."""
    _place_card(tuple(divmod(round(record["capability"] * 10), 10)))
    args = PARSER.parse_args(words[2:])
    args.model_path = args.tokenizer_path = real_parsers.model_folder(record, classes_of)
    if args.speculative_draft_model_path:
        drafted = {**record, "config": record["draft"], "outer_type": "", "quantized": False}
        args.speculative_draft_model_path = real_parsers.model_folder(drafted, classes_of)
    server = ServerArgs.from_cli_args(args)
    server.resolve_once()
    server.check_server_args()
    kind = model_config_of(server).hf_config.architectures[0]
    return "" if kind in _written() else f"no class {kind}"


def _place_card(capability: tuple[int, ...]) -> None:
    torch.version.cuda = "13.0"
    torch.cuda.is_available = lambda: True
    torch.cuda.device_count = lambda: 64
    torch.cuda.get_device_capability = lambda *_: capability
    torch.cuda.get_device_name = lambda *_: "NVIDIA card"
    torch.cuda.current_device = lambda: 0
    common.get_nvgpu_memory_capacity = lambda: 80 * 1024
    for name in dir(common):
        if hasattr(getattr(common, name), "cache_clear"):
            getattr(common, name).cache_clear()


@cache
def _written() -> frozenset[str]:
    """Name every model class in SGLang's source."""
    texts = (file.read_text(encoding="utf-8") for file in _MODELS.rglob("*.py"))
    return frozenset(
        name for text in texts for name in re.findall(r"^class (\w+)", text, re.MULTILINE)
    )


def classes_of(kind: str) -> list[str]:
    """Name the classes of a ``model_type`` that SGLang has, as transformers lists them."""
    auto = transformers.models.auto.modeling_auto
    tables = (
        auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
        auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES,
        auto.MODEL_MAPPING_NAMES,
    )
    found = [table[kind] for table in tables if kind in table]
    names = [one for name in found for one in ([name] if isinstance(name, str) else name)]
    spelled = {name.casefold(): name for name in _written()}
    return [spelled[n.casefold()] for n in names if n.casefold() in spelled] or names


if __name__ == "__main__":
    raise SystemExit(real_parsers.main(sys.argv[1], "SGLang", problem))
