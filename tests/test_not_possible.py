"""What people look for and cannot run is named, with the rule and the distance."""

from __future__ import annotations

from functools import lru_cache

import pytest
from msgspec.structs import replace

from advisor.advice import Advisor
from advisor.advice.conclusions import BarredOption, Conclusions
from advisor.errors import UserError
from advisor.remedies.option import Expected
from advisor.report import render_text
from advisor.report.assembly import document
from advisor.scenario.settings import Request
from tests.cli.running import run

Capture = pytest.CaptureFixture[str]


@lru_cache(maxsize=1)
def advisor() -> Advisor:
    return Advisor.load()


@lru_cache(maxsize=64)
def advised(**keys: object) -> Conclusions:
    return advisor().with_expected(advisor().advise(Request(**keys)))  # type: ignore[arg-type]  # Request keys


def barred(advice: Conclusions, **change: object) -> list[BarredOption]:
    return [item for item in advice.not_recommended if item.option.change == change]


@pytest.mark.parametrize(
    ("given", "change", "rule", "words"),
    [
        (
            {"gpu": "RTX 3090", "precision": "FP16"},
            {"precision": "FP8", "framework": "vLLM"},
            "no-fp8-without-fp8-units",
            "This card has 8.6, which is 0.3 less",
        ),
        (
            {"gpu": "RTX 4090", "precision": "FP16"},
            {"precision": "NVFP4", "framework": "vLLM"},
            "no-fp4-without-fp4-units",
            "This card has 8.9, which is 1.1 less",
        ),
        (
            {"gpu": "GTX 1080", "precision": "Q4_K_M"},
            {"precision": "FP8", "framework": "vLLM"},
            "needs-a-newer-card",
            "compute capability 7.5. This card has 6.1, which is 1.4 less",
        ),
        (
            {"gpu": "V100 PCIe 16GB", "precision": "FP16", "framework": "ExLlamaV2"},
            {"precision": "GPTQ 4-bit"},
            "no-awq-gptq-before-turing",
            "which is 0.5 less",
        ),
        (
            {"gpu": "RTX 4090", "precision": "Q4_K_M"},
            {"framework": "vLLM"},
            "servers-cannot-take-this-file",
            "No GGUF files there",
        ),
        (
            {"gpu": "RTX 4090", "precision": "FP16", "framework": "vLLM"},
            {"precision": "Q4_K_S", "framework": "vLLM"},
            "no-gguf-formats-in-servers",
            "AWQ 4-bit is its format",
        ),
        (
            {"gpu": "RTX 4090", "precision": "FP16", "framework": "llama.cpp"},
            {"precision": "NF4", "framework": "llama.cpp"},
            "qlora-is-for-training",
            "QLoRA, which is for training",
        ),
        (
            {"gpu": "RTX 4090", "precision": "Q4_K_M"},
            {"precision": "AWQ 4-bit", "framework": "llama.cpp"},
            "gguf-files-only",
            "Q4_K_M is the GGUF format for as many bits",
        ),
        (
            {"gpu": "RTX 4090", "precision": "Q4_K_M"},
            {"precision": "MLX 4-bit", "framework": "MLX-LM"},
            "mlx-needs-apple",
            "this card is from NVIDIA",
        ),
        (
            {"gpu": "RX 7900 XTX", "precision": "Q4_K_M"},
            {"precision": "NVFP4", "framework": "vLLM"},
            "format-of-other-cards",
            "this one is from AMD",
        ),
        (
            {"gpu": "RTX 3090", "gpus": 2, "precision": "Q4_K_M"},
            {"gpus": 2},
            "tensor-split-is-not-sized",
            "marked experimental",
        ),
        (
            {"gpu": "RTX 4090", "precision": "Q4_K_M"},
            {"kv_cache": "fp8"},
            "cache-type-of-another-runtime",
            "it has q8_0",
        ),
    ],
)
def test_what_people_expect_is_named_with_its_rule(
    given: dict[str, object], change: dict[str, object], rule: str, words: str
) -> None:
    found = barred(advised(model="llama-3-8b", **given), **change)
    assert [item.rule for item in found] == [rule], found
    assert words in found[0].reason
    assert found[0].why()


def test_the_distance_stands_beside_the_condition() -> None:
    item = barred(
        advised(gpu="RTX 3090", model="llama-3-8b", precision="FP16"),
        precision="FP8", framework="vLLM",
    )[0]  # fmt: skip
    failing = [b for b in item.why() if b.distance]
    assert [(b.fact, b.shown, b.test, b.distance) for b in failing] == [
        ("gpu.compute_capability", "8.6", "below 8.9", "0.3")
    ]


GRID = [
    {"gpu": gpu, "model": model, "precision": precision, **more}
    for gpu, more in (
        ("RTX 4090", {}), ("GTX 1080", {}), ("RX 7900 XTX", {}), ("M4 Pro:48GB", {}),
        ("H100 SXM5 80 GB", {"framework": "vLLM"}), ("RTX 3090", {"gpus": 2}),
    )
    for model in ("llama-3-8b", "qwen3-30b-a3b", "phi-3-small")
    for precision in ("FP16", "INT4")
    if (gpu, model) != ("H100 SXM5 80 GB", "phi-3-small")
]  # fmt: skip


@pytest.mark.parametrize("given", GRID, ids=lambda g: "-".join(map(str, g.values())))
def test_every_reason_reads_well_and_stands_once(given: dict[str, object]) -> None:
    advice = advised(**given)
    keys = [(item.option.key, item.rule) for item in advice.not_recommended]
    assert len(keys) == len(set(keys))
    for item in advice.not_recommended:
        assert item.reason.endswith(".")
        assert not {"{", "}"} & set(item.reason)
        assert "unknown" not in item.reason
        assert "  " not in item.reason
    tried = {option.key for option in advice.options}
    assert not tried & {
        i.option.key for i in advice.not_recommended if isinstance(i.option, Expected)
    }


def test_advice_itself_pays_nothing_for_them() -> None:
    plain = advisor().advise(Request(gpu="RTX 4090", model="llama-3-8b", precision="Q4_K_M"))
    assert not any(isinstance(item.option, Expected) for item in plain.not_recommended)
    more = advisor().with_expected(plain)
    assert more.not_recommended[: len(plain.not_recommended)] == plain.not_recommended
    assert more.recommendations == plain.recommendations
    unlike = replace(more, not_recommended=plain.not_recommended, fired=plain.fired)
    assert unlike == plain


def test_what_runs_is_never_called_impossible() -> None:
    for given in GRID:
        advice = advised(**given)
        runs = {
            (option.scenario.framework.name, option.scenario.precision.name)
            for option in advice.options
            if option.scenario.gpu is advice.scenario.gpu
            and option.scenario.model is advice.scenario.model
        }
        for item in advice.not_recommended:
            if isinstance(item.option, Expected) and item.option.action == "quantize":
                change = item.option.change
                assert (change["framework"], change["precision"]) not in runs


@pytest.mark.parametrize("engine", ["durable", "reference"])
def test_both_engines_bar_the_same(engine: str) -> None:
    other = Advisor.load(engine=engine)
    request = Request(gpu="RTX 3090", gpus=2, model="llama-3.1-70b", precision="Q4_K_M")
    first = advisor().with_expected(advisor().advise(request))
    second = other.with_expected(other.advise(request))
    assert second.not_recommended == first.not_recommended
    assert second.fired == first.fired


def test_names_fold_where_the_reason_is_one() -> None:
    doc = document(advised(gpu="RTX 4090", model="llama-3-8b", precision="Q4_K_M"))
    text = " ".join(render_text(doc, length="full").split())
    assert "INT8 W8A8 and FP8 in llama.cpp: llama.cpp reads GGUF files alone" in text
    assert "vLLM, SGLang, TensorRT-LLM and TGI: No GGUF files there" in text


def test_json_and_why_show_them(capsys: Capture) -> None:
    asked = ("--gpu", "GTX 1080", "--model", "llama-3.2-3b", "--precision", "Q4_K_M")
    assert '"title":"FP8 in vLLM"' in run(capsys, "advise", *asked, "--format", "json").out.replace(
        '": "', '":"'
    )
    why = run(capsys, "advise", *asked, "--why").out
    assert "gpu.compute_capability is 6.1 (below option.needed_capability, 1.4 short)" in why
    assert "Needs compute capability" not in run(capsys, "advise", *asked).out


GLM = Request(gpu="8x B200", model="glm-5", precision="BF16", context=32_768, batch=64)


def test_in_place_of_a_server_another_is_named_in_the_published_format() -> None:
    with pytest.raises(UserError, match="does not support the architecture") as found:
        advisor().advise(replace(GLM, framework="TGI"))
    assert "--framework vLLM --precision FP8" in str(found.value.hint)
    assert "llama.cpp" not in str(found.value.hint)


def test_what_fits_too_says_how_many_requests_it_holds() -> None:
    for context, batch, told in (
        (65_536, 32, "attention data parallel (841.1 GiB, all 32 requests at once)"),
        (32_768, 64, "attention data parallel (841.1 GiB, all 64 requests at once)"),
    ):
        many = replace(GLM, framework="TensorRT-LLM", context=context, batch=batch)
        text = " ".join(render_text(document(advisor().advise(many))).split())
        assert told in text.partition("These fit too: ")[2]


def test_tensorrt_llm_keeps_a_token_index_from_hopper_on() -> None:
    small = replace(GLM, framework="TensorRT-LLM", precision="FP8", model="deepseek-v3.2")
    assert advisor().estimate(replace(small, gpu="8x H200")).memory.required_bytes
    with pytest.raises(UserError, match="sparse attention begin with Hopper"):
        advisor().estimate(replace(small, gpu="8x A100 SXM 80GB"))
