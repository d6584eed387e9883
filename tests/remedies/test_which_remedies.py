"""Which remedies are found, by class: what two readers of 100 reports missed."""

from __future__ import annotations

from advisor.remedies.option import Option
from tests.remedies.asking import advised, combinations
from tests.remedies.test_first_advice import first

LONG_MANY = {"context": 131072, "batch": 128}


def options(action: str, **given: object) -> list[Option]:
    return [option for option in advised(**given).options if option.action == action]


def said(**given: object) -> list[str]:
    return [recommended.option.action for recommended in advised(**given).recommendations]


def test_copies_that_write_less_in_total_are_not_said() -> None:
    assert "split-requests" not in said(gpu="8x B200", model="devstral-small-2507", batch=64)


def test_of_unequal_cards_the_larger_works_alone_where_it_holds_a_format() -> None:
    given = {"gpu": "RTX 3090 + RTX 3060:12GB", "model": "devstral-small-2507"}
    four_bits = first(framework="vLLM", **given)
    assert four_bits["precision"] == "AWQ 4-bit"
    assert four_bits["gpu"] == "GeForce RTX 3090"
    smaller = options("smaller-model", framework="vLLM", **given)
    assert smaller
    assert all(option.scenario.gpus == 1 for option in smaller)


def test_a_mixture_leaves_the_card_by_experts_and_not_by_layers() -> None:
    given = {"gpu": "RTX A6000", "model": "glm-4.5-air", "precision": "AWQ"}
    moved = combinations(advised(context=131072, ram_gib=32, **given))
    assert any(option.scenario.cpu_experts for option in moved)
    assert all(option.scenario.gpu_layers is None for option in moved)


def test_sixteen_bits_of_experts_in_ram_are_not_all_that_is_said() -> None:
    given = {"gpu": "RTX 3060 12GB", "model": "qwen3.6-35b-a3b", "precision": "FP16"}
    assert first(ram_gib=64, **given)["precision"] in {"Q8_0", "Q4_K_M"}


def test_slow_layers_in_ram_do_not_hide_a_set_that_fits_the_card() -> None:
    given = {"gpu": "RX 7800 XT", "model": "mistral-small-3.2-24b-instruct-2506"}
    whole = first(context=32768, framework="Ollama", **given)
    assert whole["action"] == "combine"
    assert whole["kv_cache"] == "q8_0"
    assert "gpu_layers" not in whole


def test_a_format_with_slow_kernels_does_not_lead_on_a_server() -> None:
    given = {"gpu": "RTX 6000 Ada", "model": "devstral-small-2507", "framework": "SGLang"}
    assert first(context=131072, **given)["precision"] in {"AWQ 4-bit", "FP8"}


def test_a_server_with_few_seats_is_offered_a_smaller_cache_too() -> None:
    given = {"gpu": "8x H100 SXM5 80 GB", "model": "glm-4.6", "framework": "vLLM", **LONG_MANY}
    assert first(**given)["kv_cache"] == "fp8"
    plain = next(o for o in options("quantize", **given) if o.change["precision"] == "FP8")
    both = next(o for o in combinations(advised(**given)) if o.scenario.precision.name == "FP8")
    assert both.memory.held_sequences
    assert plain.memory.held_sequences
    assert both.memory.held_sequences > plain.memory.held_sequences


def test_four_bits_on_the_machine_that_holds_eight_serve_more() -> None:
    given = {"gpu": "2x RTX A6000", "model": "qwen3.5-397b-a17b", "precision": "INT4", **LONG_MANY}
    bought = [option for option in options("combine", **given) if option.effort == "purchase"]
    assert {o.scenario.precision.name for o in bought} & {"AWQ 4-bit", "GPTQ 4-bit"}


def test_the_fewest_cards_that_hold_it_are_named() -> None:
    server = {"gpu": "8x B200", "model": "qwq-32b", "framework": "TensorRT-LLM", "batch": 16}
    assert [o.scenario.gpus for o in options("fewer-gpus", context=32768, **server)] == [2]


def test_another_runtime_takes_the_next_more_bits_and_the_cards_that_divide_it() -> None:
    given = {"gpu": "6x RTX 3090", "model": "mistral-small-3.2-24b-instruct-2506"}
    found = options("change-framework", precision="Q6_K", context=65536, **given)
    vllm = next(option for option in found if option.change["framework"] == "vLLM")
    assert vllm.scenario.precision.class_bits == 8
    assert vllm.scenario.gpus == 4


def test_a_server_of_the_same_speed_does_not_hide_the_usual_one() -> None:
    given = {"gpu": "8x A100 SXM4 40GB", "model": "mistral-small-3.2-24b-instruct-2506"}
    assert first(precision="Q8_0", batch=16, **given)["framework"] == "vLLM"


def test_the_small_one_of_a_family_is_not_hidden_by_half_its_size() -> None:
    given = {"gpu": "RTX 4080", "model": "gpt-oss-120b", "context": 131072, "ram_gib": 32}
    assert "gpt-oss-20b" in {one.change["model"] for one in options("smaller-model", **given)}


def test_a_chat_of_eight_thousand_tokens_may_use_up_the_margin() -> None:
    (longer,) = options("grow-context", gpu="P40", model="qwq-32b", precision="Q4_K_M")
    assert longer.scenario.context_tokens == 8192


def test_ollama_users_hear_of_the_experts_that_llama_cpp_moves() -> None:
    given = {"gpu": "RTX 4070 Laptop", "model": "qwen3-coder-30b-a3b-instruct", "ram_gib": 64}
    (experts,) = options("offload-experts", framework="Ollama", context=8192, **given)
    assert experts.change["framework"] == "llama.cpp"
    assert first(framework="Ollama", context=8192, **given)["action"] == "offload-layers"


def test_a_gguf_file_in_a_server_keeps_its_bits_with_experts_in_ram() -> None:
    given = {"gpu": "2x RTX 5090", "model": "MiniMax-M2", "precision": "Q4_K_M"}
    best = first(context=8192, ram_gib=128, framework="vLLM", **given)
    assert (best["framework"], best.get("precision", "Q4_K_M")) == ("llama.cpp", "Q4_K_M")
    assert best["cpu_experts"]


def test_a_move_of_the_same_format_is_no_set() -> None:
    given = {"gpu": "RTX 3090", "model": "qwq-32b", "precision": "Q4_K_M", "context": 16384}
    found = advised(framework="vLLM", ram_gib=64, **given).options
    moved = [o for o in found if o.change.get("framework") == "llama.cpp" and o.fits]
    kept = {"framework", "precision"}
    own = [o for o in moved if set(o.change) <= kept and o.scenario.precision.name == "Q4_K_M"]
    assert [option.action for option in own] == ["change-framework"]


def test_a_server_that_unpacks_what_was_released_gives_way_to_one_that_reads_it() -> None:
    given = {"gpu": "4x L40S", "model": "gpt-oss-120b", "context": 32768, "batch": 128}
    best = first(framework="TensorRT-LLM", **given)
    assert (best["action"], best["precision"]) == ("change-framework", "MXFP4")


def test_stages_are_joined_with_a_smaller_cache_but_not_with_more_bits() -> None:
    given = {"gpu": "6x RTX 3090", "context": 65536, "framework": "vLLM", "batch": 8}
    joined = options("combine", model="llama-3.3-70b-instruct", precision="AWQ", **given)
    assert {"stages": 3, "kv_cache": "fp8"} in [dict(one.change) for one in joined]
    whole = options(
        "combine", model="mistral-small-3.2-24b-instruct-2506", precision="INT4", **given
    )
    assert not any(one.change.get("precision") == "BF16" for one in whole)


def test_a_mixture_beside_ram_runs_where_its_experts_move_alone() -> None:
    """Ollama places whole layers; llama.cpp runs the same file clearly faster."""
    given = {"gpu": "RTX 3050 8GB", "model": "qwen3-32b", "context": 32768, "ram_gib": 32}
    mixtures = options("other-model", framework="Ollama", **given)
    assert mixtures
    for one in mixtures:
        assert one.change["framework"] == "llama.cpp"
        assert one.scenario.cpu_experts
        assert one.effort == "rebuild"


def test_a_server_that_nobody_asked_for_gives_way_to_a_mixture_beside_ram() -> None:
    given = {"gpu": "RTX 4080", "model": "qwen3-32b", "precision": "AWQ"}
    mixtures = options("other-model", **given)
    assert mixtures
    assert all(option.change["framework"] == "llama.cpp" for option in mixtures)
    assert not options("other-model", framework="vLLM", **given)


def test_a_format_that_holds_fewer_requests_is_not_the_largest_that_fits() -> None:
    given = {"gpu": "4x RTX 3090", "model": "gemma-4-31b-it", "precision": "AWQ", "batch": 8}
    largest = advised(context=32768, **given).break_even
    assert largest
    assert largest.largest_format != "BF16"
