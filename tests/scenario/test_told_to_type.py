"""What an error tells to type is accepted when it is typed."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from itertools import product

import pytest

from advisor.errors import RequestError
from advisor.estimator import estimate_memory
from advisor.knowledge import load_knowledge
from advisor.remedies.impossible import resolved
from advisor.scenario.instead import CannotRunError, Held, Way
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


def _told(error: RequestError) -> list[dict[str, str]]:
    """Read the options that a hint tells to give, way by way."""
    ways = map(shlex.split, re.findall(r"give (--.+?)\.(?: |$)", error.hint or ""))
    return [
        {_KEYS[key]: value for key, value in zip(way[::2], way[1::2], strict=True)} for way in ways
    ]


def test_every_line_that_an_error_tells_to_type_is_accepted() -> None:
    knowledge, tried = load_knowledge(), 0
    for card, model, precision, framework in product(CARDS, MODELS, FORMATS, RUNTIMES):
        asked = {"gpu": card, "model": model, "precision": precision, "framework": framework}
        try:
            resolve(_request(asked), knowledge)
        except RequestError as error:
            for told in _told(error):
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
            "FP8 needs compute capability 7.5",
            {"framework": "llama.cpp", "precision": "Q8_0"},
        ),
        (
            {
                "gpu": "RX 7900 XTX",
                "model": "qwen2.5-72b-instruct",
                "precision": "INT4",
                "framework": "TensorRT-LLM",
            },
            "TensorRT-LLM does not run on AMD cards",
            {"framework": "llama.cpp"},
        ),
        (
            {
                "gpu": "RTX A6000",
                "model": "llama-3.3-70b",
                "precision": "Q4_K_M",
                "framework": "SGLang",
            },
            "cannot be sized for .* in SGLang: ",
            {"precision": "AWQ 4-bit"},
        ),
        (  # in 4 bits with embedding and output in 16 it takes 8.6 GiB
            {
                "gpu": "RTX 4070 Laptop",
                "model": "phi-4",
                "precision": "Q4_K_M",
                "framework": "SGLang",
            },
            "cannot be sized for .* in SGLang: ",
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
        (
            {"gpu": "P40", "model": "gemma-4-e4b-it", "precision": "Q4_K_M", "framework": "SGLang"},
            "on Tesla P40 in SGLang: its kernels hold",
            {"framework": "llama.cpp"},
        ),
        (  # another server runs what was published
            {"gpu": "8x MI300X", "model": "deepseek-v3.2", "framework": "TensorRT-LLM"},
            "TensorRT-LLM does not run on AMD cards",
            {"framework": "vLLM", "precision": "FP8"},
        ),
        (
            {"gpu": "8x MI300X", "model": "gemma-3-12b", "framework": "TensorRT-LLM"},
            "TensorRT-LLM does not run on AMD cards",
            {"framework": "vLLM", "precision": "BF16"},
        ),
        (  # ... and what was asked for
            {
                "gpu": "2x A6000",
                "model": "qwen2.5-72b-instruct",
                "precision": "INT4",
                "framework": "TensorRT-LLM",
            },
            "TensorRT-LLM does not load AWQ 4-bit checkpoints: of 4-bit integers it loads NVIDIA's",
            {"framework": "vLLM", "precision": "AWQ 4-bit"},
        ),
        (  # nobody serves a model of 4-bit floats in INT4
            {
                "gpu": "T4",
                "model": "gpt-oss-20b",
                "precision": "INT4",
                "framework": "TensorRT-LLM",
            },
            "its table of cards begins with Ampere",
            {"framework": "llama.cpp", "precision": "MXFP4_MOE"},
        ),
        (  # of 128 GiB the system keeps 32: Q3_K_L takes 113
            {
                "gpu": "Ryzen AI Max+ 395",
                "model": "qwen3-235b-a22b-instruct-2507",
                "precision": "INT4",
                "framework": "MLX",
            },
            "MLX-LM does not run on AMD cards",
            {"framework": "llama.cpp", "precision": "IQ3_XXS"},
        ),
        (  # bitsandbytes step by step only where it is asked for by name
            {
                "gpu": "8x V100 SXM2 32GB",
                "model": "qwen3-235b-a22b",
                "precision": "INT8",
                "framework": "MLX",
            },
            "on Tesla V100 SXM2 32 GB in MLX-LM: ",
            {"framework": "llama.cpp", "precision": "Q8_0"},
        ),
        (
            {
                "gpu": "8x V100 SXM2 32GB",
                "model": "qwen2.5-72b-instruct",
                "precision": "NF4",
                "framework": "ExLlamaV3",
            },
            "ExLlamaV3 needs compute capability 8, Tesla V100 SXM2 32 GB has 7",
            {"framework": "transformers", "precision": "NF4"},
        ),
        (  # what is archived and what needs Ampere are not told of
            {
                "gpu": "8x V100 SXM2 32GB",
                "model": "qwen3-coder-480b-a35b-instruct",
                "precision": "INT4",
                "framework": "SGLang",
            },
            "on Tesla V100 SXM2 32 GB in SGLang: its kernels hold",
            {"framework": "llama.cpp", "precision": "Q4_K_M"},
        ),
        (  # in eight bits SGLang could read a GPTQ file there, which nobody is known to publish
            {
                "gpu": "2x A6000",
                "model": "qwen3-next-80b-a3b-instruct",
                "precision": "FP8",
                "framework": "SGLang",
            },
            "from compute capability 8.9 on",
            {"framework": "vLLM", "precision": "FP8"},
        ),
        (
            {
                "gpu": "T4",
                "model": "qwen2.5-7b-instruct",
                "precision": "EXL3 4.0bpw",
                "framework": "ExLlamaV3",
            },
            "ExLlamaV3 needs compute capability 8, Tesla T4 has 7.5",
            {"framework": "llama.cpp", "precision": "Q4_K_M"},
        ),
    ],
)
def test_the_reason_comes_first_and_then_the_nearest_that_runs(
    asked: dict[str, str], reason: str, told: dict[str, str]
) -> None:
    with pytest.raises(RequestError, match=reason) as error:
        resolve(_request(asked), load_knowledge())
    assert told.items() <= _told(error.value)[0].items()


def test_a_format_that_the_memory_cannot_hold_is_told_as_such() -> None:
    """80 billion parameters take 42 GB in four bits, and the machine has 16."""
    asked = {"gpu": "M4:16GB", "model": "qwen3-next-80b-a3b", "precision": "FP8"}
    with pytest.raises(RequestError, match="MLX-LM does not run FP8") as error:
        resolve(_request({**asked, "framework": "MLX"}), load_knowledge())
    assert error.value.hint == (
        "MLX-LM runs MLX 8-bit, the nearest, though it does not fit; to see what does: "
        "give --precision 'MLX 8-bit'."
    )


def test_what_is_told_has_room_beside_what_the_system_keeps() -> None:
    """A machine with one memory lends a part of it, so formats are weighed against that part."""
    knowledge = load_knowledge()
    asked = {"model": "qwen3-235b-a22b", "precision": "INT4", "framework": "MLX"}
    for card in ("Ryzen AI Max+ 395", "DGX Spark"):
        with pytest.raises(RequestError) as error:
            resolve(_request({**asked, "gpu": card}), knowledge)
        (told,) = _told(error.value)
        scenario = resolve(_request({**asked, **told, "gpu": card}), knowledge)
        memory = estimate_memory(scenario, knowledge)
        assert memory.usable_bytes, card
        assert memory.required_bytes <= memory.usable_bytes, (card, told)


@pytest.mark.parametrize(("card", "said"), [("2x RTX 4090", True), ("8x B200", False)])
def test_a_gap_of_ours_is_not_the_only_reason_where_no_format_fits(
    card: str, *, said: bool
) -> None:
    asked = {"gpu": card, "model": "glm-5", "framework": "transformers"}
    with pytest.raises(RequestError, match="token index is not established") as error:
        resolve(_request(asked), load_knowledge())
    told = "its weights do not fit on the cards in any format of transformers, and how transformers"
    assert (told in error.value.message) is said


@pytest.mark.parametrize(
    ("framework", "looked_at"),
    [(None, ["llama.cpp", "transformers"]), ("vLLM", ["llama.cpp", "transformers", "TGI"])],
)
def test_the_search_ends_where_nothing_more_can_be_told(
    framework: str | None, looked_at: list[str]
) -> None:
    """Beside a way with a part in system RAM only its runtime, and a stated one, are told."""
    asked = {"gpu": "TITAN V", "model": "DeepSeek-V3-0324", "precision": "AWQ"}
    with pytest.raises(CannotRunError) as refused:
        resolve(_request({**asked, "framework": framework}), load_knowledge())
    seen: dict[str, None] = {}

    def ways() -> Iterator[Way]:
        for way in refused.value.ways():
            seen[way.framework.name] = None
            yield way

    def holds(_: Way) -> Held:
        return Held(", in part from system RAM", beside=True)

    assert CannotRunError(refused.value.message, ways, holds).hint == refused.value.hint
    assert list(seen) == looked_at


@pytest.mark.parametrize(
    ("asked", "told", "never"),
    [
        (
            {"gpu": "W7900", "model": "qwq-32b", "framework": "TensorRT-LLM", "context": 131072},
            "--precision Q4_K_M --kv-cache q8_0",
            "in system RAM",
        ),
        (
            {"gpu": "RTX 4090", "model": "mistral-large-instruct-2411", "precision": "FP8",
             "framework": "ExLlamaV3", "context": 32768},
            "in system RAM at about",
            "below 1 tok/s",
        ),
    ],
)  # fmt: skip
def test_a_smaller_cache_goes_before_system_ram_and_a_crawl_goes_last(
    asked: dict[str, object], told: str, never: str
) -> None:
    with pytest.raises(CannotRunError) as refused:
        resolved(request_from(asked), load_knowledge())
    assert told in (refused.value.hint or "")
    assert never not in (refused.value.hint or "")


def test_beside_what_is_slower_than_reading_a_smaller_format_on_the_cards_is_told() -> None:
    asked = {"gpu": "2x RX 7900 XTX", "model": "command-a-03-2025", "precision": "INT4"}
    more = {"context": 65536, "ram": "64GB", "framework": "SGLang"}
    with pytest.raises(CannotRunError) as refused:
        resolved(request_from({**asked, **more}), load_knowledge())
    slow, _, whole = (refused.value.hint or "").partition("--precision Q4_K_M.")
    assert "in system RAM" in slow
    assert "free on the fullest card" in whole
    assert "--precision IQ2_M" in whole


def test_int4_means_integers_where_there_are_any_and_floats_are_said() -> None:
    asked = {"precision": "INT4", "framework": "vLLM", "gpu": "RTX 5070 Ti"}
    found = [
        resolve(request_from({**asked, "model": model}), load_knowledge())
        for model in ("deepseek-r1:8b", "gpt-oss-20b")
    ]
    assert [one.precision.name for one in found] == ["AWQ 4-bit", "MXFP4"]
    assert ["which holds floats" in " ".join(one.read_as) for one in found] == [False, True]


def test_a_cache_of_another_type_is_told_with_what_runs_instead() -> None:
    way = Way(load_knowledge().formats["Q4_K_M"], load_knowledge().frameworks["llama.cpp"], None)
    for cache, said in (("q8_0", "llama.cpp, whose KV cache is kept as q8_0"), ("", "llama.cpp.")):
        held = Held(cache=cache)
        error = CannotRunError("no", lambda: [way], lambda _, held=held: held)  # type: ignore[misc]
        assert error.instead
        assert said in error.instead[0]
