"""Sentences that two expert readers found false where they stood, by class."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import advisor as advisor_package
from advisor.advice.document import Advice
from advisor.advice.projection import QUOTED_FACTS
from advisor.errors import RequestError
from advisor.report import render_text
from advisor.report.assembly import document
from advisor.scenario.settings import Request
from tests.report.catalogue import advisor


def told(**given: object) -> tuple[Advice, str]:
    doc = document(advisor().advise(Request(**given)))  # type: ignore[arg-type]
    return doc, " ".join(render_text(doc).split())


@pytest.mark.parametrize(
    "given",
    [
        {"gpu": "3x P40", "model": "command-a-03-2025", "precision": "Q6_K", "ram_gib": 64},
        {"gpu": "RTX 5060 Ti 16GB", "model": "qwen3.6-27b", "precision": "FP16", "ram_gib": 64},
        {"gpu": "RTX 3060 12GB", "model": "qwen3-32b", "precision": "Q4_K_M"},
    ],
)
def test_the_system_ram_that_is_told_is_that_of_an_option_in_the_report(
    given: dict[str, object],
) -> None:
    doc, text = told(**given)
    found = re.search(r"[Oo]ption (\d), (\S+ GiB) of system|Option (\d) takes (\S+ GiB) of", text)
    assert found
    rank, size = found[1] or found[3], found[2] or found[4]
    item = doc.recommendations[int(rank) - 1]
    assert item.setup.gpu_layers is not None or item.setup.cpu_experts
    assert re.search(rf"{size} in (\S+ GiB of )?system RAM", text)


def test_no_speed_of_system_ram_is_told_where_nothing_lies_there() -> None:
    _, text = told(
        gpu="RTX 3090", model="llama-3.3-70b", precision="FP16", framework="vLLM", ram_gib=16
    )
    assert "read at 42" not in text


def test_ollama_splits_by_itself() -> None:
    _, text = told(
        gpu="GTX 1080 Ti", model="qwen2.5-32b", precision="Q8_0", framework="Ollama", ram_gib=64
    )
    assert "Ollama" in text
    assert not re.search(r"out[- ]of[- ]memory|stops\.|Loading (fails|stops)", text)
    assert re.search("Ollama (loads it all the same|splits it by itself)", text)


@pytest.mark.parametrize(
    ("framework", "said"),
    [("SGLang", "SGLang starts all the same"), ("vLLM", "vLLM stops at the start and names")],
)
def test_a_server_without_room_for_one_request_is_told_as_it_behaves(
    framework: str, said: str
) -> None:
    _, text = told(
        gpu="RTX 4090", model="llama-3.1-8b", precision="FP16", context=131072, framework=framework
    )
    assert "does not fit" in text
    assert said in text
    assert "out-of-memory" not in text


def test_sixteen_bits_do_not_fit_where_fewer_requests_do() -> None:
    """Of 8 requests the four cards hold all in 4 bits, and in 16 bits fewer."""
    _, text = told(
        gpu="4x RTX 3090", model="gemma-4-31b-it", precision="AWQ", context=32768, batch=8
    )
    assert "Even BF16" not in text


def test_no_format_of_fewer_bits_is_told_as_the_larger() -> None:
    doc, _ = told(
        gpu="2x RTX 5060 Ti 16GB", model="gemma-4-26b-a4b", precision="NVFP4", framework="vLLM"
    )
    assert doc.break_even.largest_format == "NVFP4"


def test_what_is_missing_of_several_cards_is_told_of_the_fullest() -> None:
    doc, _ = told(gpu="4x RTX 3090", model="qwen3-30b-a3b-instruct-2507", framework="vLLM")
    assert any(line.endswith("is missing on the fullest card.") for line in doc.warnings)


@pytest.mark.parametrize(("card", "links"), [("L40S", 0), ("A100 SXM4 80 GB", 1)])
def test_nvlink_is_told_of_cards_that_have_it(card: str, links: int) -> None:
    _, text = told(gpu=f"4x {card}", model="llama-3.3-70b", precision="FP16", framework="vLLM")
    assert text.count("NVLink") == links


def test_the_main_limit_is_not_told_as_the_only_one() -> None:
    """The cards read for a part of each token's time; exchange and launch take the rest."""
    doc, text = told(gpu="4x L4", model="qwen3.6-35b-a3b", framework="vLLM")
    assert doc.speed
    assert doc.speed.bound_by == "bandwidth"
    assert re.search("limits it most|main limit|More than anything else", text)


def test_more_tokens_in_one_sequence_than_the_room_counts_are_explained() -> None:
    doc, text = told(
        gpu="RTX 5090", model="gemma-4-26b-a4b", precision="FP8", framework="vLLM", context=32768
    )
    assert doc.memory.max_context_tokens
    assert doc.memory.cache_tokens
    assert doc.memory.max_context_tokens > doc.memory.cache_tokens
    assert "tokens by its own count" in text


def test_a_count_for_fewer_sequences_than_memory_holds_says_of_what_it_is() -> None:
    doc, text = told(gpu="RTX 3090", model="gpt-oss-20b", framework="vLLM")
    assert doc.memory.cache_tokens
    count, held = doc.memory.cache_tokens, doc.memory.cache_sequences
    assert (
        f"vLLM counts {count:,} tokens, {count // 4096} sequences while prompts are read; then"
        f" windows keep less, which leaves memory for {held} sequences of 4,096 tokens" in text
    )


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"gpu": "2x A6000", "model": "llama-3.3-70b", "framework": "vLLM", "batch": 16},
            "INT8 W8A8 1 to 3 % lower on benchmarks; an FP8 cache usually costs little.",
        ),
        ({"gpu": "2x RTX 3090", "model": "gemma-4-31b-it", "framework": "vLLM"}, "1 to 3 % for"),
    ],
)
def test_what_is_published_of_a_loss_is_told_where_no_figure_compares(
    given: dict[str, object], said: str
) -> None:
    doc, text = told(**given)
    assert said in text
    assert any(item.tradeoff.quality_known for item in doc.recommendations)
    assert "not known here. Compare" not in text


def test_a_format_that_no_kernel_takes_is_not_said_to_run_in_the_same_sentence() -> None:
    given = Request(gpu="RX 7900 XTX", model="qwen3.6-27b", precision="FP8", framework="vLLM")
    with pytest.raises(RequestError, match="save for files in blocks") as refused:
        advisor().advise(given)
    assert "run there" not in str(refused.value)


def test_what_runs_in_part_from_system_ram_is_not_called_slow_beside_its_speed() -> None:
    _, text = told(
        gpu="RTX 4070 Laptop", model="gpt-oss-20b", precision="Q4_K_M", context=32768,
        framework="Ollama",
    )  # fmt: skip
    assert "but slowly" not in text


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"gpu": "RTX 3050 8GB", "model": "llama-3.1-8b", "framework": "vLLM"}, "bartowski's"),
        ({"gpu": "RTX 3080", "model": "mistral-7b-instruct-v0.3", "precision": "FP16"}, "makes"),
        ({"gpu": "RTX 4090", "model": "gemma-4-31b", "precision": "EXL3 4.0bpw"}, "turboderp"),
    ],
)
def test_a_file_without_a_repository_is_told_where_it_comes_from(
    given: dict[str, object], said: str
) -> None:
    doc, text = told(**{"precision": "AWQ", **given})
    first = [doc.commands[:1], *(item.commands[:1] for item in doc.recommendations[:4])]
    assert any(command.unpublished for commands in first for command in commands)
    assert said in text


@pytest.mark.parametrize(
    ("given", "costs"),
    [
        (("M2 Ultra:192GB", "mistral-small-3.2-24b-instruct-2506", "INT4", "MLX"), False),
        (("RTX 4090", "qwen3-8b", "BF16", "TGI"), True),
    ],
)
def test_more_bits_are_not_said_to_cost_quality(
    given: tuple[str, str, str, str],
    costs: bool,  # noqa: FBT001
) -> None:
    doc, text = told(**dict(zip(("gpu", "model", "precision", "framework"), given, strict=True)))
    assert "quantize" in {one.action for one in doc.recommendations}
    unknown = (
        "quality it costs is not known|No figure for its quality|Its loss of quality|A study of"
    )
    assert bool(re.search(unknown, text)) is costs


@pytest.mark.parametrize(("precision", "in_parts"), [("FP16", True), ("Q8_0", False)])
def test_ollama_pulls_no_file_in_parts(precision: str, in_parts: bool) -> None:  # noqa: FBT001
    doc, text = told(
        gpu="A100 80GB", model="gemma-4-26b-a4b-it", precision=precision, framework="Ollama"
    )
    assert ("ollama run hf.co/" in doc.commands[0].text) is not in_parts
    assert ("`llama-gguf-split --merge`" in text) is in_parts


@pytest.mark.parametrize(
    ("model", "precision", "framework", "repository"),
    [
        (
            "mistral-large-instruct-2411",
            "AWQ",
            "vLLM",
            "TechxGenus/Mistral-Large-Instruct-2411-AWQ",
        ),
        ("devstral-small-2507", "AWQ", "vLLM", "btbtyler09/Devstral-Small-2507-AWQ"),
    ],
)
def test_a_repository_that_was_seen_is_named(
    model: str, precision: str, framework: str, repository: str
) -> None:
    doc, _ = told(gpu="8x H100", model=model, precision=precision, framework=framework)
    assert f" {repository} " in f"{doc.commands[0].text} "
    assert not doc.commands[0].unpublished


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"gpu": "RTX 3090", "model": "qwen3-32b", "precision": "EXL3 4.0bpw"},
            "Start it in the folder of TabbyAPI",
        ),
        (
            {
                "gpu": "M3 Ultra:96GB",
                "model": "qwen3-30b-a3b-instruct-2507",
                "framework": "LM Studio",
            },
            "`lms load` cannot say which of several files of one model",
        ),
    ],
)
def test_where_a_command_is_typed_is_said_once(given: dict[str, object], said: str) -> None:
    _, text = told(**given)
    assert text.count(said) == 1


def test_a_repository_named_like_the_folder_is_one() -> None:
    """zai-org/GLM-4.5-Air-FP8 ends as the folder would be called."""
    doc, text = told(gpu="4x H100", model="glm-4.5-air", precision="FP8", framework="SGLang")
    assert "zai-org/GLM-4.5-Air-FP8" in doc.commands[0].text
    assert not doc.commands[0].unpublished
    assert "On no repository" not in text


@pytest.mark.parametrize(
    ("card", "said"),
    [
        ("8x V100 SXM2 32GB", "Today's vLLM and TensorRT-LLM do not run on Volta"),
        ("M2 Ultra:192GB", ""),
        ("3x P40", ""),
    ],
)
def test_no_server_is_praised_where_it_does_not_run(card: str, said: str) -> None:
    doc, _ = told(gpu=card, model="qwen3-30b-a3b", precision="Q4_K_M", batch=16)
    found = [note.text for note in doc.notes if note.rule == "one-user-runtime"]
    assert [text.startswith(said) for text in found] == ([True] if said else [])


def test_what_nobody_packs_is_told_with_the_format_that_is_published() -> None:
    doc, text = told(
        gpu="RTX 3090 + RTX 3060:12GB",
        model="gpt-oss-20b",
        precision="AWQ",
        context=65536,
        split="tensor",
    )
    assert any("--precision MXFP4 takes what there is" in line for line in doc.warnings)
    assert "equal shares, so the card with the least memory sets the limit" in text


def test_gguf_in_vllm_is_refused_where_its_plugin_is_not_built_for_the_card() -> None:
    with pytest.raises(RequestError, match="built for CUDA and ROCm") as found:
        told(gpu="Arc B580", model="qwen3-14b", precision="Q8_0", framework="vLLM")
    assert "cannot be sized" in str(found.value)


@pytest.mark.parametrize("framework", ["Ollama", "llama.cpp"])
def test_ollama_does_not_fail_to_load_what_the_card_cannot_hold(framework: str) -> None:
    _, text = told(gpu="RTX 2080 Ti", model="phi-4", framework=framework, ram_gib=16)
    assert ("tokens of context Ollama leaves part of it in system RAM" in text) is (
        framework == "Ollama"
    )
    assert ("The context cannot go beyond" in text) is (framework != "Ollama")


@pytest.mark.parametrize(("gpu", "dropped"), [("8x V100 SXM2 32GB", True), ("8x A100", False)])
def test_what_a_release_has_dropped_is_no_plain_fit(gpu: str, dropped: bool) -> None:  # noqa: FBT001
    doc, _ = told(gpu=gpu, model="qwen3-30b-a3b-instruct-2507", framework="vLLM", batch=64)
    assert doc.verdict.state == "fits"
    assert ("the release of vLLM has dropped these cards" in doc.verdict.sentence) is dropped


@pytest.mark.parametrize(("ram", "little"), [(64, True), (96, False)])
def test_what_is_left_of_system_ram_is_told_where_it_is_little(ram: int, little: bool) -> None:  # noqa: FBT001
    _, text = told(
        gpu="RTX 4080", model="glm-4.5-air", precision="INT4", context=32768, ram_gib=ram
    )
    assert ("for the system and all other programs: close those" in text) is little


def test_two_formats_of_one_size_in_one_server_are_one_piece_of_advice() -> None:
    doc, _ = told(gpu="4x RTX 3090", model="llama-4-scout-17b-16e-instruct", ram_gib=256)
    figures = [
        (
            i.setup.framework,
            i.after.required_bytes,
            i.after.decode_tok_s and i.after.decode_tok_s.estimate,
        )
        for i in doc.recommendations
    ]
    assert "vLLM" in {framework for framework, *_ in figures}
    assert len(set(figures)) == len(figures)


def test_the_next_smaller_of_a_series_is_named_however_much_smaller() -> None:
    doc, _ = told(
        gpu="RTX 4090", model="gpt-oss-120b", precision="FP8", context=16384, ram_gib=32,
        framework="SGLang",
    )  # fmt: skip
    models = [i.setup.model for i in doc.recommendations]
    assert "gpt-oss-20b" in models


def test_the_next_smaller_of_a_series_is_of_its_newest_release() -> None:
    doc, _ = told(
        gpu="RTX 4090", model="qwen3-235b-a22b-instruct-2507", precision="FP8", context=16384,
        framework="vLLM",
    )  # fmt: skip
    named = [i.setup.model for i in doc.recommendations]
    named += [a.setup.model for i in doc.recommendations for a in i.alternatives]
    assert "Qwen3-30B-A3B-Instruct-2507" in named
    assert "Qwen3-30B-A3B" not in named


def test_a_service_that_runs_already_is_told_of_before_its_settings_are_lost() -> None:
    _, text = told(gpu="RTX 2080 Ti", model="llama-3.1-8b-instruct", framework="Ollama")
    assert text.count("sudo systemctl stop ollama") == 1
    _, text = told(gpu="RTX 2080 Ti", model="llama-3.1-8b-instruct", framework="llama.cpp")
    assert "systemctl" not in text


def test_a_flag_of_one_program_is_not_told_to_another() -> None:
    asked = {"gpu": "Ryzen AI Max+ 395", "model": "qwen3-32b", "context": 131_072}
    _, text = told(**asked, framework="LM Studio")
    assert "--load-mode" not in text
    _, text = told(**asked, framework="llama.cpp")
    assert "--load-mode none" in text


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"gpu": "RX 7900 XTX", "model": "qwen3-4b", "precision": "Q8_0"}, "--no-build-isolation"),
        ({"gpu": "RTX 4090", "model": "qwen3-4b", "precision": "Q8_0"}, "pip install vllm-gguf-"),
        ({"gpu": "RTX 4090", "model": "qwen3-4b", "precision": "BF16"}, ""),
        ({"gpu": "V100 SXM2 32GB", "model": "qwen3-4b", "precision": "FP16"}, "vllm==0.19.1"),
    ],
)
def test_what_has_to_be_installed_stands_below_the_command(
    asked: dict[str, str], said: str
) -> None:
    doc, text = told(**asked, framework="vLLM")
    assert bool(doc.commands[0].setup) is bool(said)
    assert said in " ".join(text.split())
    assert "nothing to change here" not in text or "dropped" not in text


def test_a_gb10_reads_the_file_and_other_cards_map_it() -> None:
    asked = {"model": "qwen3-next-80b-a3b-instruct", "precision": "Q8_0", "framework": "llama.cpp"}
    doc, _ = told(gpu="DGX Spark", **asked)
    assert "--load-mode none" in doc.commands[0].text
    doc, _ = told(gpu="RTX PRO 6000 Blackwell", **asked)
    assert "--load-mode" not in doc.commands[0].text


@pytest.mark.parametrize(
    ("given", "size"),
    [
        ({"gpu": "6x RTX 3090", "model": "llama-3.3-70b-instruct", "framework": "vLLM"}, "70B"),
        ({"gpu": "T4", "model": "qwen3-8b", "framework": "vLLM", "context": 32768}, "7B"),
        ({"gpu": "RTX 3090", "model": "qwen3-32b", "precision": "Q6_K"}, "8B"),
    ],
)
def test_a_loss_is_said_of_the_size_that_it_was_measured_on(
    given: dict[str, object], size: str
) -> None:
    """GPTQ was measured on Llama 2 of three sizes, the formats of GGUF on an 8B."""
    doc, text = told(**given)
    first = next(r for r in doc.recommendations if r.action == "quantize")
    assert first.tradeoff.quality_of == size
    assert f" one {size} model" in text
    assert not re.search(r"of a 8B|of an [^8]|8B model" if size != "8B" else "of a 8B", text)


def test_files_of_modelopt_are_made_with_modelopt() -> None:
    given = {"gpu": "A100", "model": "llama-3.1-8b-instruct", "framework": "TensorRT-LLM"}
    _, text = told(**given, precision="INT8")
    assert "with NVIDIA's ModelOpt" in text
    assert "llm-compressor" not in text


def test_every_fact_that_a_view_quotes_is_in_the_document() -> None:
    """What is not carried reads as empty wherever a text asks for it."""
    views = Path(advisor_package.__file__).parent / "report"
    texts = [path.read_text(encoding="utf-8") for path in views.rglob("*.py")]
    named = {
        name for text in texts for name in re.findall(r'\.facts(?:\.get\(|\[)"([\w.]+)"', text)
    }
    assert named
    assert named <= set(QUOTED_FACTS)


def test_what_is_slow_for_want_of_kernels_is_not_said_to_be_bound_by_memory() -> None:
    given = {"gpu": "2x RX 7900 XTX", "model": "qwen3-32b", "framework": "vLLM"}
    bound = "memory bandwidth"
    assert bound not in told(**given, precision="AWQ")[1]
    assert bound in told(**given, precision="GPTQ 4-bit")[1]


def test_what_embeds_gives_no_answers_that_improve() -> None:
    _, text = told(gpu="RTX 4090", model="bge-m3")
    assert "vectors come closer" in text
    assert "Answers improve" not in text


def test_a_combination_that_moves_the_limit_of_a_mac_says_how() -> None:
    doc, _ = told(gpu="M4 Max:64GB", model="glm-4.5-air", framework="LM Studio")
    moved = [r for r in doc.recommendations if {"gpu_memory_utilization"} < set(r.change)]
    assert moved
    for item in moved:
        assert "`sudo sysctl iogpu.wired_limit_mb=" in item.text


def test_no_server_is_told_to_load_files_for_mlx_alone() -> None:
    doc, _ = told(
        gpu="RTX 5060 Ti 16GB", gpus=2, model="gemma-4-26b-a4b-it", batch=8, context=65536
    )
    assert doc.recommendations
    assert "OsaurusAI" not in "".join(c.text for r in doc.recommendations for c in r.commands)
