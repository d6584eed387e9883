"""Commands put to vLLM itself: its parser, its checks of a configuration, its choice of kernels.

    python benchmarks/commands.py --write commands.jsonl
    python benchmarks/real_vllm.py commands.jsonl       where vLLM is installed; no card needed

A stand-in for the card answers with the compute capability of the record. The model's folder holds
a ``config.json`` made from the shape that the project carries, with the ``quantization_config``
that repositories of the format have. No weights are loaded. Prints what vLLM refuses, each kind
once with its number, and exits 1 where it refuses anything.
"""
# ruff: noqa: ARG003, E402 - stand-ins have vLLM's arguments, and are there before what asks them

from __future__ import annotations

import os
import sys
import types
from typing import Any

os.environ |= {
    "VLLM_NO_USAGE_STATS": "1",
    "HF_HUB_OFFLINE": "1",
    "VLLM_LOGGING_LEVEL": os.environ.get("VLLM_LOGGING_LEVEL", "CRITICAL"),
}
for _compiled in (
    "_C_stable_libtorch", "_moe_C_stable_libtorch",
    "vllm_flash_attn._vllm_fa2_C", "vllm_flash_attn._vllm_fa3_C",
):  # fmt: skip
    sys.modules[f"vllm.{_compiled}"] = types.ModuleType(f"vllm.{_compiled}")

import torch


class Supported(torch._ops._OpNamespace):  # type: ignore[misc] # noqa: SLF001
    """Compiled code, which says of every kernel that it is there; the table asks the wheel."""

    def __getattr__(self, name: str) -> object:
        """Answer questions about kernels; nothing else is there."""
        return (lambda *_: True) if "support" in name else super().__getattr__(name)


torch.ops._C = Supported("_C")  # noqa: SLF001

import vllm.platforms
from real_parsers import Record, main, model_folder
from vllm.platforms.cuda import CudaPlatformBase
from vllm.platforms.interface import DeviceCapability


class StandIn(CudaPlatformBase):  # type: ignore[misc]
    """A card of any compute capability."""

    capability = DeviceCapability(8, 9)

    @classmethod
    def get_device_capability(cls, device_id: int = 0) -> DeviceCapability:
        """Answer for the record at hand."""
        return cls.capability

    @classmethod
    def get_device_name(cls, device_id: int = 0) -> str:
        """Name no card."""
        return "NVIDIA card"

    @classmethod
    def get_device_total_memory(cls, device_id: int = 0) -> int:
        """Give more than 70 GiB, above which vLLM's defaults for servers differ."""
        return 80 << 30

    @classmethod
    def is_fully_connected(cls, device_ids: list[int]) -> bool:
        """Say yes."""
        return True

    @classmethod
    def device_count(cls) -> int:
        """Give as many as any record has."""
        return 64

    @classmethod
    def num_compute_units(cls, device_id: int = 0) -> int:
        """Give any number."""
        return 100


vllm.platforms._current_platform = StandIn()  # noqa: SLF001

import transformers
from vllm.config import set_current_vllm_config
from vllm.engine.arg_utils import AsyncEngineArgs
from vllm.entrypoints.cli.serve import make_arg_parser, validate_parsed_serve_args
from vllm.model_executor.models import registry
from vllm.utils.argparse_utils import FlexibleArgumentParser
from vllm.v1.attention.selector import AttentionSelectorConfig

registry._run_in_subprocess = lambda work: work()  # noqa: SLF001
PARSER = make_arg_parser(FlexibleArgumentParser())
SINKS = ("gpt_oss", "mimo_v2_flash", "laguna")


def problem(record: Record, words: list[str]) -> str:
    """Say why vLLM refuses a command; empty where it does not."""
    StandIn.capability = DeviceCapability(*divmod(round(record["capability"] * 10), 10))
    args = PARSER.parse_args(words[2:])
    args.model = args.model_tag = model_folder(record, classes_of)
    if args.speculative_config and "model" in args.speculative_config:
        drafted = {**record, "config": record["draft"], "outer_type": "", "quantized": False}
        args.speculative_config["model"] = model_folder(drafted, classes_of)
    validate_parsed_serve_args(args)
    engine = AsyncEngineArgs.from_cli_args(args)
    engine.disable_log_stats = True
    config = engine.create_engine_config()
    return _kernels(config, record)


def classes_of(kind: str) -> list[str]:
    """Name the classes of a ``model_type`` that vLLM registers, as transformers lists them."""
    auto = transformers.models.auto.modeling_auto
    tables = (
        auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
        auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES,
        auto.MODEL_MAPPING_NAMES,
    )
    found = [table[kind] for table in tables if kind in table]
    names = [one for name in found for one in ([name] if isinstance(name, str) else name)]
    known = registry.ModelRegistry.get_supported_archs()
    return [name for name in names if name in known] or names


def _kernels(config: Any, record: Record) -> str:
    """Ask for an attention backend, as each layer does when it is made."""
    model, cache = config.model_config, config.cache_config
    if model.is_attention_free or record["config"]["model_type"] == "deepseek_v4":
        return ""  # none; its own, which the table has a row for
    asked = AttentionSelectorConfig(
        head_size=model.get_head_size(), dtype=model.dtype, kv_cache_dtype=cache.cache_dtype,
        block_size=None, use_mla=model.use_mla,
        has_sink=record["config"]["model_type"] in SINKS,
        use_sparse=hasattr(model.hf_text_config, "index_topk"),
        attn_type="encoder_only" if record["config"]["model_type"] == "bert" else "decoder",
    )  # fmt: skip
    with set_current_vllm_config(config):
        valid, _ = StandIn.get_valid_backends(
            StandIn.capability, asked, model.get_num_attention_heads(config.parallel_config)
        )
    if valid:
        return ""
    return f"no attention backend: {asked.kv_cache_dtype} {asked.dtype} head {asked.head_size}"


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1], "vLLM", problem))
