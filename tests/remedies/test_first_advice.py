"""What comes first is what can be had, what its class rates best, and what is clearly better."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

import pytest

from advisor.errors import RequestError
from advisor.knowledge import load_knowledge
from advisor.models import model_from_record
from advisor.reading.published import listed_as, packings_of
from advisor.report import render_text
from advisor.report.assembly import document
from advisor.report.prose import report
from advisor.scenario.capability import is_likely_had
from advisor.scenario.figures import held_percent
from tests.remedies.asking import advised

MISTRAL = "mistralai/Mistral-Small-3.2-24B-Instruct-2506"


def first(**given: object) -> dict[str, object]:
    said = advised(**given).recommendations[0]
    return {"action": said.option.action, **said.option.change}


def offered(action: str, **given: object) -> set[object]:
    found = (option for option in advised(**given).options if option.action == action)
    return {option.scenario.model.name for option in found if option.fits}


def test_of_two_generations_of_a_mixture_the_better_one_comes_first() -> None:
    given = {"gpu": "RTX 4060 Ti 16GB", "model": "qwen3-32b", "context": 32768}
    assert first(**given)["model"] == "Qwen3.6-35B-A3B"


def test_a_mixture_of_the_models_own_family_is_one_too() -> None:
    given = {"gpu": "M3 Pro:36GB", "model": "qwen3.6-27b", "framework": "LM Studio"}
    assert first(**given)["model"] == "Qwen3.6-35B-A3B"


def test_a_small_model_does_not_hide_one_of_the_requests_class() -> None:
    given = {"gpu": "4x L40S", "model": "glm-4.6", "framework": "vLLM", "batch": 64}
    assert "Qwen3.5-122B-A10B" in offered("smaller-model", **given)


def test_a_model_of_unknown_age_is_outdone_like_another() -> None:
    given = {"gpu": "M4 Max:64GB", "model": "mistral-large-instruct-2411", "framework": "MLX"}
    assert "Mistral-Small-Instruct-2409" not in offered("smaller-model", **given)


def test_a_desktop_is_offered_no_smaller_model_in_sixteen_bits() -> None:
    given = {"gpu": "RTX 3060 12GB", "model": "qwen3-8b", "precision": "FP16", "context": 32768}
    smaller = [o for o in advised(**given).options if o.action == "smaller-model"]
    assert smaller
    assert all(option.scenario.precision.family != "unquantized" for option in smaller)


def test_a_draft_that_the_command_cannot_name_is_not_offered() -> None:
    given = {"gpu": "4x A100 SXM4 80GB", "model": "qwen2.5-72b-instruct", "precision": "BF16"}
    assert not offered("speculative", framework="TensorRT-LLM", **given)
    assert offered("speculative", framework="llama.cpp", **given)


def test_nvfp4_that_somebody_publishes_leads_on_blackwell() -> None:
    given = {"gpu": "RTX 5090", "model": "gemma-4-26b-a4b-it", "framework": "vLLM"}
    assert first(**given)["precision"] == "NVFP4"


def test_a_copy_stands_for_an_original_that_is_not_listed() -> None:
    copy = listed_as(MISTRAL)
    assert copy is not None
    assert copy.hf_id != MISTRAL
    assert packings_of(MISTRAL)["NVFP4"].startswith("RedHatAI/")
    assert listed_as("nobody/Nothing-1B") is None


def test_files_for_mlx_are_no_mxfp4_of_a_server() -> None:
    assert "mlx" not in packings_of("google/gemma-4-26B-A4B-it").get("MXFP4", "")


@pytest.mark.parametrize(
    ("model", "precision", "had"),
    [
        ("Qwen3.6-27B", "Q4_K_M", True),
        ("Qwen3.6-27B", "IQ2_M", False),
        ("gemma-3-27b-it", "IQ3_M", True),
        ("Llama-3.3-70B-Instruct", "Q8_0", True),
        ("Llama-3.3-70B-Instruct", "IQ2_S", False),
    ],
)
def test_gguf_files_are_likely_had_where_the_publishers_make_them(
    model: str, precision: str, *, had: bool
) -> None:
    known = load_knowledge()
    found = model_from_record(known.models[model], known)
    assert is_likely_had(known.frameworks["llama.cpp"], known.formats[precision], found) is had


def test_a_card_to_buy_is_given_what_was_asked_as_its_own_server_reads_it() -> None:
    given = {"gpu": "GTX 1080 Ti", "model": "deepseek-r1-distill-qwen-32b", "framework": "vLLM"}
    bought = [o for o in advised(**given, precision="INT4").options if o.effort == "purchase"]
    larger = [o.scenario for o in bought if o.action in {"upgrade-gpu", "cloud"}]
    assert larger
    assert not [one for one in larger if one.precision.kind == "gguf"]


def test_a_card_to_rent_is_given_the_released_format_that_todays_cannot_run() -> None:
    given = {"gpu": "8x A100 SXM4 40GB", "model": "deepseek-r1", "framework": "SGLang"}
    asked = advised(**given, context=16384, batch=32)
    assert asked.scenario.precision.name == "GPTQ 8-bit"
    rented = [option.scenario for option in asked.options if option.action == "cloud"]
    newer = [one for one in rented if one.gpu and (one.gpu.compute_capability or 0) >= 9]
    assert {one.precision.name for one in newer} == {"FP8"}


def test_an_error_names_the_usual_format_where_none_was_asked_for() -> None:
    with pytest.raises(RequestError) as told:
        advised(gpu="4x L40S", model="glm-5", framework="vLLM")
    assert re.fullmatch(
        r"llama\.cpp runs Q4_K_M, the nearest, with 2\d\d\.\d GiB in system RAM at about "
        r"[\d.]+ tok/s \(.*\): give --framework llama\.cpp --precision Q4_K_M\.",
        told.value.hint,
    )


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (
            {"gpu": "W7900", "model": "gpt-oss-120b", "framework": "SGLang"},
            ("vLLM runs MXFP4, the nearest, which does not fit here (* GiB missing). llama.cpp "
            "runs MXFP4_MOE, which does, with 13.2 GiB in system RAM at about * tok/s"),
        ),
        (
            {"gpu": "M1 Max:32GB", "model": "mistral-large-instruct-2411", "precision": "FP8",
             "framework": "MLX"},
            ("MLX-LM runs MLX 8-bit, the nearest, though it does not fit (* GiB missing); to see "
            "what does:"),
        ),
        (
            {"gpu": "M1 Max:32GB", "model": "qwen3-coder-30b-a3b-instruct", "precision": "AWQ",
             "framework": "MLX", "context": 131072},
            ("MLX-LM runs MLX 4-bit, the nearest, though it does not fit (* GiB missing; 53,760 "
            "tokens would fit); to see what does:"),
        ),
        (
            {"gpu": "4x L40S", "model": "qwq-32b", "precision": "AWQ", "framework": "TensorRT-LLM"},
            "vLLM runs AWQ 4-bit, the nearest, with * GiB free on the fullest card at about * tok",
        ),
        (
            {"gpu": "W7900", "model": "qwen2.5-72b-instruct", "precision": "INT4", "ram_gib": 64,
             "framework": "SGLang", "context": 32768},
            ("vLLM runs GPTQ 4-bit, the nearest, which does not fit with 32,768 tokens of context "
            "(* GiB missing; * tokens would fit). llama.cpp runs Q4_K_M, which does, with 8.3 GiB "
            "in system RAM at "),
        ),
        (
            {"gpu": "RX 7900 XTX", "model": "deepseek-r1-distill-qwen-32b", "precision": "FP8",
             "framework": "ExLlamaV3", "context": 16384},
            ("ExLlamaV3 runs EXL3 8.0bpw, the nearest, which does not fit with 16,384 tokens of "
            "context (* GiB missing). ExLlamaV3 runs EXL3 5.0bpw, which does, its KV cache in *"),
        ),
        (
            {"gpu": "8x V100 SXM2 32GB", "model": "qwq-32b", "precision": "INT4", "batch": 128,
             "framework": "SGLang", "context": 32768},
            ("llama.cpp runs Q4_K_M, the nearest, though it does not fit (* GiB missing on the "
            "fullest card; 22 of 128 requests would fit); to see what does: "),
        ),
        (
            {"gpu": "8x H100 SXM", "model": "qwq-32b", "precision": "INT4", "batch": 128,
             "framework": "TensorRT-LLM"},
            ("vLLM runs AWQ 4-bit, the nearest, with * GiB free on the fullest card at about * "
            "for each request:"),
        ),
        (
            {"gpu": "RX 7900 XTX", "model": "gemma-4-31b-it", "precision": "AWQ",
             "framework": "SGLang"},
            ("vLLM runs AWQ 4-bit, the nearest, which does not fit here (* GiB missing). "
            "llama.cpp runs Q4_K_M, which does, with 2.8 GiB free at about * tok/s ("),
        ),
        (
            {"gpu": "RTX 4090", "model": "gpt-oss-120b", "precision": "AWQ", "ram_gib": 32,
             "framework": "ExLlamaV3", "context": 32768},
            ("ExLlamaV3 runs EXL3 4.0bpw, the nearest, though it does not fit (* GiB missing); to "
            "see what does:"),
        ),
        (
            {"gpu": "RTX 4090", "model": "qwen3-32b", "precision": "Q8_0", "ram_gib": 64,
             "framework": "SGLang", "batch": 16},
            ("SGLang runs FP8, the nearest, which does not fit with 16 requests (* GiB missing). "
            "vLLM runs AWQ 4-bit, which does, 2 of 16 requests at once, with * GiB free at about "),
        ),
        (
            {"gpu": "RTX 4080", "model": "qwen3-coder-30b-a3b-instruct", "precision": "FP8",
             "framework": "ExLlamaV3", "ram_gib": 64},
            ("ExLlamaV3 runs EXL3 8.0bpw, the nearest, which does not fit here (* GiB missing). "
            "ExLlamaV3 runs EXL3 4.0bpw, which does, with only 0.* GiB free at about * tok/s ("),
        ),
        (
            {"gpu": "8x V100 SXM2 32GB", "model": "kimi-k2-instruct", "framework": "SGLang",
             "context": 131072, "batch": 32},
            ("llama.cpp runs Q4_K_M, the nearest, with * in system RAM at below 1 tok/s for each "
            "request: give --framework llama.cpp --precision Q4_K_M."),
        ),
        (
            {"gpu": "4x RTX 3090", "model": "command-a-03-2025", "precision": "Q6_K",
             "framework": "SGLang", "context": 32768, "ram_gib": 64},
            ("llama.cpp runs Q6_K, the nearest, with * in system RAM at about * tok/s (*), * tok/s "
            "(*) when all of the context is in use: give "
            "--framework llama.cpp --precision Q6_K. llama.cpp runs Q5_K_M, with * GiB free on the "
            "fullest card at about * tok/s (*), * tok/s (*) when all of the context is in use: "
            "give --framework llama.cpp --precision Q5_K_M."),
        ),
        (
            {"gpu": "Tesla P40", "model": "gemma-3-4b-it", "framework": "vLLM"},
            "llama.cpp runs Q8_0, the nearest, with * GiB free at about * tok/s (*): give ",
        ),
        (
            {"gpu": "RTX A6000", "model": "command-a-03-2025", "precision": "Q4_K_M",
             "context": 131072, "ram_gib": 64, "framework": "ExLlamaV3"},
            ("ExLlamaV3 runs EXL3 4.0bpw, the nearest, which does not fit with * of context (* GiB "
            "missing). llama.cpp runs Q4_K_M, which does, with * in system RAM at about *. "
            "llama.cpp runs IQ3_XXS, its KV cache in q8_0, with * GiB free at about "),
        ),
    ],
)  # fmt: skip
def test_an_error_names_what_was_published_and_what_has_room(
    given: dict[str, object], told: str
) -> None:
    with pytest.raises(RequestError) as error:
        advised(**given)
    assert fnmatchcase(error.value.hint or "", f"{told}*")


def test_16_bits_are_those_of_the_checkpoint() -> None:
    """A format of as many bits that nobody asked for is no change to propose either."""
    asked = {"gpu": "H100 SXM5 80 GB", "model": "qwen3-32b"}
    assert advised(**asked, framework="vLLM").scenario.precision.name == "BF16"
    older = advised(gpu="H100 SXM5 80 GB", model="phi-2", framework="vLLM")
    assert older.scenario.precision.name == "FP16"
    stated = advised(**asked, precision="FP16")
    assert "BF16" not in {option.change.get("precision") for option in stated.options}


def test_many_users_of_16_bits_on_a_server_card_get_a_server() -> None:
    asked = {"gpu": "8x A100 SXM4 40GB", "model": "qwq-32b", "precision": "BF16", "batch": 16}
    assert advised(**asked).scenario.framework.name == "vLLM"


def test_the_next_smaller_of_a_series_is_tried_though_a_newer_model_outdoes_it() -> None:
    models = offered("smaller-model", gpu="RTX 3060 12GB", model="qwen3-32b", precision="Q4_K_M")
    assert {"Qwen3-14B", "Qwen3.5-9B"} <= models
    large = offered("smaller-model", gpu="8x H100", model="llama-3.1-405b-instruct", batch=32)
    assert "Llama-3.1-70B-Instruct" in large


@pytest.mark.parametrize(
    ("given", "model"),
    [
        ({"gpu": "RTX 4080", "model": "llama-3.3-70b", "framework": "vLLM"}, "gpt-oss-120b"),
        ({"gpu": "RTX 4080", "model": "qwen2.5-72b-instruct", "context": 32768}, "gpt-oss-120b"),
        ({"gpu": "RTX 2080 Ti", "model": "qwq-32b", "framework": "Ollama"}, "Qwen3.6-35B-A3B"),
        ({"gpu": "RTX 3050 8GB", "model": "gemma-3-12b-it", "framework": "vLLM"}, "*26B-A4B*"),
        ({"gpu": "RTX 4090", "model": "qwen2.5-72b-instruct", "framework": "vLLM"}, "Qwen3.8-27B"),
    ],
)
def test_a_mixture_of_the_requests_class_before_a_small_model_in_the_program_at_hand(
    given: dict[str, object], model: str
) -> None:
    assert fnmatchcase(str(first(**given, ram_gib=64)["model"]), model)


def test_a_quick_mixture_before_a_better_model_that_writes_slowly() -> None:
    advice = advised(gpu="M4 Max:64GB", model="command-a-03-2025").recommendations
    smaller = next(said.option for said in advice if said.option.action == "smaller-model")
    assert smaller.scenario.model.name == "Qwen3.6-35B-A3B"
    asked = {"model": "qwen3-235b-a22b-instruct-2507", "precision": "INT4", "framework": "MLX"}
    assert first(gpu="M1 Max:32GB", **asked)["model"] == "Qwen3.6-35B-A3B"
    quick = first(gpu="RTX 5090", model="qwen2.5-72b-instruct", framework="vLLM", context=32768)
    assert quick["model"] == "Qwen3.8-27B"


def test_a_larger_sibling_before_a_small_model_of_another_line_and_a_smaller_sibling() -> None:
    distilled = first(gpu="M4:16GB", model="deepseek-r1-distill-qwen-32b", precision="INT4")
    assert distilled["model"] == "DeepSeek-R1-Distill-Qwen-14B"
    matformer = first(gpu="M4:16GB", model="gemma-4-31b-it", precision="Q8_0", context=131072)
    assert matformer["model"] == "gemma-4-E4B-it"


def test_the_cards_that_are_missing_are_counted_as_they_are_offered() -> None:
    """Five are offered, which share the tensors, so five are needed, not three in a pipeline."""
    said = advised(
        gpu="RTX 4060 Ti 16GB", model="phi-4", precision="FP16", framework="vLLM", ram_gib=64
    )
    assert said.break_even.fewest_gpus == 5


KIMI = {"gpu": "8x H100 SXM", "model": "kimi-k2-instruct", "framework": "vLLM", "context": 131072}
LONG = {"gpu": "4x A100 SXM4 80GB", "model": "glm-4.6", "framework": "vLLM", "context": 131072}


def test_what_holds_few_requests_comes_after_what_holds_most() -> None:
    said = [item.option for item in advised(**KIMI, batch=64).recommendations]
    shares = [held_percent(option.memory, option.scenario.batch) for option in said]
    assert shares[0] > 50
    assert min(shares) < 25


def test_a_smaller_model_comes_in_a_format_that_holds_more_of_the_requests() -> None:
    """In 16 bits it holds 8 of 128, in 8 bits three times as many."""
    (found,) = (
        option
        for option in advised(**LONG, batch=128).options
        if option.action == "smaller-model" and option.scenario.model.name == "Qwen3.5-122B-A10B"
    )
    assert (found.memory.held_sequences or 0) > 20
    assert found.scenario.precision.class_bits == 8


def test_that_nothing_holds_all_requests_is_said_before_the_advice() -> None:
    made = dict(report(document(advised(**LONG, batch=128)), "standard").figures)
    assert made["Held at once"].startswith("none of what follows holds all 128 requests")
    assert "Held at once" not in dict(report(document(advised(**LONG)), "standard").figures)
    too_big = {"gpu": "4x L40S", "model": "llama-3.1-405b-instruct", "precision": "BF16"}
    others = document(advised(**too_big, framework="vLLM", context=32768, batch=16))
    most = [one.setup.batch for item in others.recommendations for one in item.alternatives]
    assert max(most) == 16
    assert "Held at once" not in dict(report(others, "standard").figures)
    fits = {"gpu": "8x L4", "model": "command-a-03-2025", "precision": "FP8", "framework": "vLLM"}
    held = document(advised(**fits, context=16384, batch=16))
    assert "Held at once" not in dict(report(held, "standard").figures)


def test_nothing_is_said_not_to_hold_all_requests_that_a_runner_up_holds() -> None:
    given = {"gpu": "4x L40S", "model": "llama-3.1-405b-instruct", "precision": "BF16"}
    made = document(advised(**given, context=32768, framework="vLLM", batch=16))
    others = [other for item in made.recommendations for other in item.alternatives]
    assert max(other.after.held_sequences or 16 for other in others) == 16
    assert "Held at once" not in dict(report(made, "standard").figures)


def test_a_smaller_cache_keeps_the_context_that_was_asked_for() -> None:
    given = {"gpu": "RX 7900 XTX", "model": "gemma-3-27b-it", "precision": "AWQ"}
    best = advised(**given, context=131072, ram_gib=128.0).recommendations[0].option
    assert best.scenario.context_tokens == 131072
    assert best.change["kv_cache"] == "q8_0"


@pytest.mark.parametrize("model", ["devstral-small-2507", "phi-4"])
def test_int4_is_what_is_published_before_what_is_packed_with_slow_kernels(model: str) -> None:
    """Blackwell multiplies NVFP4, which nobody publishes of these; bitsandbytes packs any model."""
    asked = advised(gpu="RTX 5090", model=model, precision="INT4", framework="SGLang")
    assert asked.scenario.precision.name == "AWQ 4-bit"


def test_a_card_that_would_hold_no_layer_is_no_remedy() -> None:
    """All on the processor is barred, so it must not keep the last resort away."""
    said = advised(
        gpu="GeForce MX570", model="GLM-4.1V-9B-Thinking", precision="INT8", context=2048, batch=16,
        backend="Vulkan", gpu_layers=40, ram_gib=32, use="none", split="row",
    )  # fmt: skip
    assert said.recommendations
    assert all(one.option.scenario.gpu_layers != 0 for one in said.recommendations)


def test_no_option_sets_memory_aside_for_what_is_never_served() -> None:
    """llama-server ends each request at the 16,384 tokens that phi-4 was trained for."""
    asked = {"gpu": "RTX 2080 Ti", "model": "phi-4", "context": 32768}
    advice = advised(**asked)
    own = [one.option for one in advice.recommendations if "model" not in one.option.change]
    assert own
    assert own[0].effort != "purchase"
    for option in own:
        assert option.effort == "purchase" or option.scenario.context_tokens <= 16384


def test_who_asked_for_16_bits_gets_eight_where_they_fit_well() -> None:
    given = {"gpu": "GTX 1080 Ti", "model": "qwen3-8b", "precision": "FP16", "context": 8192}
    assert first(**given, ram_gib=64.0)["precision"] == "Q8_0"


def test_the_usual_format_with_a_few_experts_in_ram_comes_before_three_bits() -> None:
    given = {"gpu": "RX 7800 XT", "model": "gemma-4-26b-a4b-it", "precision": "Q8_0"}
    said = [item.option for item in advised(**given, context=8192, ram_gib=32.0).recommendations]
    both = next(option for option in said if option.action == "combine")
    fewer = next(option for option in said if option.action == "quantize")
    assert both.scenario.precision.name == "Q4_K_M"
    assert 0 < both.scenario.cpu_experts < 10
    assert said.index(both) < said.index(fewer)
    two = advised(**given, context=8192, ram_gib=32.0, batch=2)
    sets = [one.option for one in two.recommendations if one.option.action == "combine"]
    assert not any(one.scenario.cpu_experts and "precision" in one.change for one in sets)


def test_no_second_change_is_worth_a_context_of_a_few_questions() -> None:
    given = {"gpu": "M4:16GB", "model": "devstral-small-2507", "precision": "INT4"}
    said = [item.option for item in advised(**given, framework="LM Studio").recommendations]
    assert said
    assert all(option.scenario.context_tokens >= 2048 for option in said)


def test_a_slower_machine_is_not_what_to_buy_for_a_chat() -> None:
    said = advised(gpu="RTX 2080 Ti", model="qwq-32b", precision="Q8_0", context=32768)
    (bought,) = (o.option for o in said.recommendations if o.option.action == "upgrade-gpu")
    assert bought.scenario.gpu
    assert (bought.scenario.gpu.bandwidth_bytes_s or 0.0) > 616e9
    assert bought.scenario.gpu.name != "DGX Spark (GB10)"


def test_stated_ram_is_used_for_a_mixture_where_nobody_rated_the_dense_model() -> None:
    given = {"gpu": "2x RTX 3090", "model": "mistral-large-instruct-2411", "precision": "Q6_K"}
    best = advised(**given, context=65536, ram_gib=256.0).recommendations[0].option
    assert best.scenario.model.shape.moe
    assert best.scenario.cpu_experts
    assert best.speed
    assert best.speed.decode_tok_s.estimate >= 20


def test_a_server_takes_what_the_publisher_packed_for_it() -> None:
    asked = {"gpu": "8x MI300X", "model": "qwen3-coder-480b-a35b-instruct"}
    assert first(**asked) == {
        "action": "change-framework", "framework": "vLLM", "precision": "FP8",
    }  # fmt: skip
    stated = advised(**asked, precision="Q4_K_M")
    moves = [o.scenario for o in stated.options if o.action == "change-framework"]
    taken = {one.framework.name: one.precision.name for one in moves}
    assert taken["vLLM"] == "AWQ 4-bit"
    assert taken["SGLang"] == "FP8"  # it has no kernels for experts of four bits on these cards


def test_what_the_program_packs_itself_is_a_setting() -> None:
    asked = {"gpu": "8x H100 SXM", "model": "command-a-03-2025", "precision": "BF16", "batch": 32}
    said = {o.key: o.effort for o in advised(**asked, framework="SGLang").options}
    assert said["quantize precision=FP8"] == "setting"
    held = advised(gpu="8x H100 SXM", model="qwen3-32b", framework="SGLang")
    assert {o.key: o.effort for o in held.options}["quantize precision=FP8"] == "download"


def test_another_line_of_a_publisher_is_not_called_another_family() -> None:
    given = {"gpu": "M3 Pro:36GB", "model": "qwen3-next-80b-a3b-instruct", "context": 32768}
    text = render_text(document(advised(**given, framework="MLX")))
    assert "Qwen3.6-35B-A3B" in text
    assert "nother line of Qwen" in text or "nother Qwen" in text
    assert "another family" not in text


def test_16_bits_made_from_what_was_released_in_four_hear_of_that() -> None:
    asked = {"gpu": "4x H200", "model": "gpt-oss-120b", "precision": "BF16", "context": 131072}
    assert first(**asked, framework="TensorRT-LLM")["precision"] == "MXFP4"
    said = {item.option.action for item in advised(**asked).recommendations}
    assert "combine" not in said


def test_a_smaller_cache_comes_with_no_other_format_of_as_many_bits() -> None:
    asked = {"gpu": "2x L40S", "model": "gemma-4-31b-it", "precision": "INT4", "context": 32768}
    said = advised(**asked, framework="vLLM", batch=128)
    assert said.recommendations[0].option.change == {"kv_cache": "fp8"}
    assert not [o for o in said.options if o.action == "combine"]


def test_a_smaller_cache_keeps_experts_on_the_card() -> None:
    given = {"gpu": "RTX 4090", "model": "qwen3-30b-a3b-instruct-2507", "precision": "Q4_K_M"}
    found = first(**given, context=131_072)
    assert (found["action"], found["kv_cache"], found["cpu_experts"]) == ("combine", "q8_0", 5)
    assert first(**given, context=8192)["action"] != "combine"


def test_nothing_is_free_beside_a_cache_that_lets_requests_wait() -> None:
    waits = {"gpu": "8x L4", "model": "kimi-k2-instruct", "batch": 128}
    text = render_text(document(advised(**waits)))
    (line,) = re.findall(r"^     977\.3 -> .*?\n\n?(?=     Its)", text, re.DOTALL | re.MULTILINE)
    assert "122 of 128 requests" in line
    assert " free" not in line
    runs = {"gpu": "2x RTX 3090", "model": "qwen2.5-72b-instruct", "precision": "AWQ", "batch": 8}
    assert "\n  Free  " not in render_text(document(advised(**runs)))


def test_an_option_that_leaves_the_system_little_ram_says_how_much() -> None:
    given = {"gpu": "RTX 3060 12GB", "model": "qwen3.6-35b-a3b", "precision": "Q4_K_M"}
    said = " ".join(render_text(document(advised(**given, ram_gib=16))).split())
    assert re.search(r"GiB in 16.0 GiB of system RAM \(leaves [4-6]\.\d GiB for the system\)", said)
    roomy = render_text(document(advised(**given, ram_gib=64)))
    assert "for the system)" not in roomy


def test_three_bits_whole_on_the_card_come_before_another_model_with_experts_in_ram() -> None:
    given = {"gpu": "RTX 5070 Ti", "model": "qwen3.6-27b", "precision": "Q4_K_M"}
    assert first(**given, context=32768, ram_gib=64)["precision"] == "IQ3_M"


def test_what_only_just_fits_is_not_cured_by_what_fits_no_better() -> None:
    found = advised(gpu="M1 Max:32GB", model="gemma-4-31b-it").recommendations
    [mixture] = [item.option for item in found if item.option.action == "other-model"]
    assert mixture.margin == "ample"


def test_two_settings_of_a_mac_and_a_format_go_before_a_format_that_loses_more() -> None:
    advice = advised(gpu="M4 Max:64GB", model="command-a-03-2025")
    said = advice.recommendations
    assert "`sudo sysctl iogpu.wired_limit_mb=" in document(advice).recommendations[0].text
    assert said[0].option.change == {"gpu_memory_utilization": 0.9, "precision": "Q3_K_L"}
    losses = [r.option.quality_loss_percent or 0.0 for r in said if r.option.action == "quantize"]
    assert min(losses) > (said[0].option.quality_loss_percent or 0.0)


def test_what_was_released_is_not_first_where_it_barely_fits() -> None:
    asked = {"gpu": "RTX 3060 12GB", "model": "gpt-oss-20b", "precision": "FP16"}
    said = advised(**asked, context=8192, ram_gib=32).recommendations
    first, *_ = (r.option for r in said)
    thin = next(r.option for r in said if r.option.action == "quantize")
    assert first.change == {"precision": "MXFP4_MOE", "cpu_experts": 2}
    assert (first.margin, thin.margin) == ("narrow", "thin")


def test_text_alone_is_no_part_of_what_lies_in_ram_anyway() -> None:
    asked = {"gpu": "RTX 4060 Ti 16GB", "model": "qwen3.6-35b-a3b", "precision": "Q8_0"}
    options = advised(**asked, context=8192).options
    assert not [o for o in options if o.change.get("text_only") and o.change.get("cpu_experts")]


def test_idle_cards_are_told_what_more_bits_run_at() -> None:
    """Though a server's format of as many bits is told as a move to that server."""
    said = advised(gpu="4x RTX 3090", model="deepseek-r1-distill-qwen-32b", ram_gib=256)
    more = next(r for r in said.recommendations if r.option.action == "quantize")
    assert more.option.change == {"precision": "Q6_K"}
    assert "quantize precision=Q8_0" in {one.key for one in more.alternatives}


def test_the_largest_format_with_ample_room_is_named_beside_a_smaller_one() -> None:
    asked = {"gpu": "RTX A6000", "model": "qwen3-30b-a3b-instruct-2507", "framework": "SGLang"}
    first = advised(**asked, context=16_384).recommendations[0]
    assert first.option.change == {"precision": "GPTQ 4-bit"}
    assert "quantize precision=GPTQ 8-bit" in {one.key for one in first.alternatives}
