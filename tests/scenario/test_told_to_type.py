"""What an error tells to type is accepted when it is typed."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from itertools import product

import pytest

from advisor.errors import RequestError
from advisor.knowledge import load_knowledge
from advisor.scenario.resolve import resolve
from advisor.scenario.settings import Request, request_from

CARDS = (
    "8x V100 SXM2 32GB",
    "RX 7900 XTX",
    "RTX A6000",
    "M4 Max:64GB",
    "Arc B580",
    "T4",
    "4x H100",
)
MODELS = (
    "qwen2.5-72b-instruct",
    "qwen3.6-35b-a3b",
    "gpt-oss-20b",
    "glm-5",
    "gemma-3-12b",
    "whisper-small",
)
FORMATS = ("FP8", "INT4", "Q4_K_M", "NVFP4", "INT8", "EXL3 4.0bpw", "MLX 4-bit", None)
RUNTIMES = ("vLLM", "SGLang", "TensorRT-LLM", "ExLlamaV3", "MLX-LM", "TGI", "llama.cpp", None)
_KEYS = {"--framework": "framework", "--precision": "precision"}


def _request(asked: Mapping[str, str | None]) -> Request:
    return request_from({key: value for key, value in asked.items() if value})


def _told(error: RequestError) -> dict[str, str]:
    """Read the options that a hint tells to give."""
    given = re.search(r"give (--.+)\.$", error.hint or "")
    words = shlex.split(given[1]) if given else []
    return {_KEYS[key]: value for key, value in zip(words[::2], words[1::2], strict=True)}


def test_every_line_that_an_error_tells_to_type_is_accepted() -> None:
    knowledge, tried = load_knowledge(), 0
    for card, model, precision, framework in product(CARDS, MODELS, FORMATS, RUNTIMES):
        asked = {"gpu": card, "model": model, "precision": precision, "framework": framework}
        try:
            resolve(_request(asked), knowledge)
        except RequestError as error:
            if told := _told(error):
                tried += 1
                assert resolve(_request({**asked, **told}), knowledge), (asked, told)
    assert tried > 400


@pytest.mark.parametrize(
    ("asked", "reason", "told"),
    [
        (
            {
                "gpu": "8x V100 SXM2 32GB",
                "model": "qwen3.6-35b-a3b",
                "precision": "FP8",
                "framework": "vLLM",
            },
            "vLLM does not run on Tesla V100",
            {"framework": "llama.cpp", "precision": "Q8_0"},
        ),
        (
            {
                "gpu": "RX 7900 XTX",
                "model": "qwen2.5-72b-instruct",
                "precision": "INT4",
                "framework": "ExLlamaV3",
            },
            "ExLlamaV3 does not run on AMD cards",
            {"framework": "llama.cpp"},
        ),
        (
            {
                "gpu": "RTX A6000",
                "model": "llama-3.3-70b",
                "precision": "Q4_K_M",
                "framework": "vLLM",
            },
            "vLLM does not run Q4_K_M",
            {"precision": "AWQ 4-bit"},
        ),
        (  # in 4 bits with embedding and output in 16 it takes 8.6 GiB
            {
                "gpu": "RTX 4070 Laptop",
                "model": "phi-4",
                "precision": "Q4_K_M",
                "framework": "vLLM",
            },
            "vLLM does not run Q4_K_M",
            {"framework": "llama.cpp", "precision": "Q4_K_M"},
        ),
        (
            {
                "gpu": "RTX 3090",
                "model": "qwen3-235b-a22b",
                "precision": "Q4_K_M",
                "framework": "ExLlamaV3",
            },
            "ExLlamaV3 does not run Q4_K_M",
            {"framework": "llama.cpp", "precision": "Q4_K_M"},
        ),
        (  # its files could be read with a plugin; the card is what it does not run on
            {"gpu": "P40", "model": "gemma-4-e4b-it", "precision": "Q4_K_M", "framework": "vLLM"},
            "vLLM does not run on Tesla P40",
            {"framework": "llama.cpp"},
        ),
    ],
)
def test_the_reason_comes_first_and_then_the_nearest_that_runs(
    asked: dict[str, str], reason: str, told: dict[str, str]
) -> None:
    with pytest.raises(RequestError, match=reason) as error:
        resolve(_request(asked), load_knowledge())
    assert told.items() <= _told(error.value).items()


def test_a_format_that_the_memory_cannot_hold_is_told_as_such() -> None:
    """80 billion parameters take 42 GB in four bits, and the machine has 16."""
    asked = {"gpu": "M4:16GB", "model": "qwen3-next-80b-a3b", "precision": "Q8_0"}
    with pytest.raises(RequestError, match="MLX-LM does not run Q8_0") as error:
        resolve(_request({**asked, "framework": "MLX"}), load_knowledge())
    assert error.value.hint == (
        "MLX-LM runs MLX 8-bit, the nearest, though it does not fit; to see what does: "
        "give --precision 'MLX 8-bit'."
    )
