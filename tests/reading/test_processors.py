"""Computers without a card: processors and RAM as people say them, and what is answered then."""

from __future__ import annotations

import pytest

from advisor.errors import UserError
from advisor.knowledge.catalogue import PROCESSOR
from advisor.reading.sentence_names import processor_said
from advisor.reading.sentences import read_sentence
from advisor.scenario.resolve import resolve
from advisor.scenario.settings import Request, request_from
from advisor.units import GIB
from tests.cli.running import run
from tests.reading.test_command_lines import known


@pytest.mark.parametrize(
    ("text", "cpu", "ram"),
    [
        ("llama 3.1 8b q4_k_m on ryzen 7950x 64gb ddr5", "ryzen 7950x", "64gb ddr5"),
        ("llama 65B on AMD 5700G with 32GB RAM", "AMD 5700G", "32GB"),
        ("deepseek r1 on EPYC 9654, 12 channel ddr5 768GB", "EPYC 9654", "12 channel ddr5 768GB"),
        ("EPYC 7282 16-Core Processor + 128GB DDR4 for llama 70b", "EPYC 7282", "128GB DDR4"),
        ("qwen3 8b on a laptop with an i7-12700H and 32GB RAM", "i7-12700H", "32GB"),
        ("gpt-oss 20b, 2x EPYC 9554, pure CPU, 512GB", "2x EPYC 9554", "512GB"),
        ("gpt-oss 120b cpu only 96GB ddr5", None, "96GB ddr5"),
        ("Llama 3.2 3B on laptop with 13 GB RAM", None, "13GB"),
        ("llama-2-13b Q4_K_M with integrated graphics and 16GB of RAM", None, "16GB"),
        ("I don't have a GPU, 32 gigs of ram, qwen3 8b", None, "32GB"),
        ("how much ram for mixtral on cpu", None, None),
    ],
)  # fmt: skip
def test_a_question_without_a_card_is_about_the_processor(
    text: str, cpu: str | None, ram: str | None
) -> None:
    read = read_sentence(text, known())
    assert read.asks == "advise"
    assert read.settings["gpu"] == PROCESSOR.name
    assert (read.settings.get("cpu"), read.settings.get("ram")) == (cpu, ram)


@pytest.mark.parametrize(
    "text",
    [
        "which gpu for llama 3.3 70b with 64GB RAM",
        "qwen3 32b on a 3090, ryzen 7950x, 64GB ram",
        "llama 3.1 8b on a 780M with 32GB ram",
    ],
)
def test_a_card_that_is_named_or_asked_for_goes_before_it(text: str) -> None:
    assert read_sentence(text, known()).settings.get("gpu") != PROCESSOR.name


@pytest.mark.parametrize(
    "text", ["llama 3.1 8b on a voodoo5 with 64GB ram", "llama 3.1 8b on an RTX 9999, 64GB RAM"]
)
def test_a_card_that_is_not_known_is_no_processor(text: str) -> None:
    with pytest.raises(UserError):
        read_sentence(text, known())


def test_models_are_named_for_a_computer_without_a_card(
    capsys: pytest.CaptureFixture[str],
) -> None:
    read = read_sentence("best model for a ryzen 5600g with 32gb, no gpu", known())
    assert (read.asks, read.settings["gpu"]) == ("models-for", PROCESSOR.name)
    done = run(capsys, "models-for", "--gpu", "ryzen 7950x 64GB DDR5", "--limit", "3")
    assert "processor, 64 GiB" in done.out


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Ryzen 9 7950X, 64GB DDR5-6000", {"cpu": "Ryzen 9 7950X", "ram": "64GB DDR5-6000"}),
        ("EPYC 9654 768GB", {"cpu": "EPYC 9654", "ram": "768GB"}),
        ("Raspberry Pi 5 Model B 16GB", {"cpu": "Raspberry Pi 5 Model B", "ram": "16GB"}),
        ("RPi4 - 4GB", {"cpu": "RPi4", "ram": "4GB"}),
        ("Orange Pi 5 16GB", None),
        ("RTX 3090", None),
        ("Ryzen 9 7950X + RTX 3090", None),
        ("64GB DDR5", None),
    ],
)
def test_a_processor_stands_where_a_card_should(text: str, said: dict[str, str] | None) -> None:
    assert processor_said(text) == said


@pytest.mark.parametrize("text", ["EPYC 1", "Ryzen 3090", "9700", "cpu 4090x", "Core 2 + RTX 9"])
def test_what_is_no_known_processor_is_no_machine(text: str) -> None:
    with pytest.raises(UserError):
        resolve(Request(gpu=text, model="llama-3.1-8b"), known())


def test_a_chip_with_graphics_of_its_own_is_taken_with_them() -> None:
    scenario = resolve(Request(gpu="Ryzen AI Max+ 395", model="llama-3.1-8b"), known())
    assert scenario.gpu is not None
    assert "8060S" in scenario.gpu.name


def test_a_small_board_has_the_memory_that_it_can_have_and_the_pace_of_half_a_channel() -> None:
    for text, gib, least in (("Raspberry Pi 5", 8, 8.5), ("Pi 4 (4GB)", 4, 8.5)):
        scenario = resolve(Request(gpu=text, model="qwen3-4b"), known())
        assert scenario.gpu is not None
        assert scenario.gpu.vram_bytes == gib * GIB
        assert least < (scenario.ram_bandwidth_bytes_s or 0) / 1e9 < 17.1
    with pytest.raises(UserError, match="not sized"):
        resolve(Request(gpu="Banana Pi 5", model="qwen3-4b"), known())


def test_its_memory_and_pace_are_those_of_its_ram() -> None:
    request = Request(gpu="Ryzen 9 7950X 64GB DDR5-6000", model="llama-3.1-8b", precision="Q4_K_M")
    scenario = resolve(request, known())
    assert scenario.gpu is not None
    assert (scenario.gpu.vram_bytes, scenario.gpu.bandwidth_bytes_s) == (64 * GIB, 96e9)
    assert scenario.backend == "CPU"
    stated = request_from(
        {"gpu": "cpu", "cpu": "Ryzen 9 7950X", "ram": "64GB DDR5-6000", "model": "llama-3.1-8b",
         "precision": "Q4_K_M"},
    )  # fmt: skip
    assert resolve(stated, known()).gpu == scenario.gpu


def test_layers_on_a_card_mean_nothing_there() -> None:
    request = Request(gpu="processor:64GB", model="llama-3.1-8b", gpu_layers=20)
    assert resolve(request, known()).gpu_layers is None


@pytest.mark.parametrize("framework", ["vLLM", "SGLang", "ExLlamaV3", "MLX-LM"])
def test_what_is_for_cards_alone_says_so(framework: str) -> None:
    request = Request(gpu="processor:64GB", model="llama-3.1-8b", framework=framework)
    with pytest.raises(
        UserError, match=r"does not run|is not sized on a processor|is not modelled"
    ):
        resolve(request, known())


def test_a_command_for_it_is_checked_and_printed_without_layers_on_a_card(
    capsys: pytest.CaptureFixture[str],
) -> None:
    line = "llama-server -m Qwen3-8B-Q4_K_M.gguf -c 8192 -ngl 99"
    done = run(
        capsys, "check-command", "--gpu", "Ryzen 9 7950X 64GB DDR5-6000", "--", *line.split()
    )
    assert "It starts." in done.out
    asked = run(
        capsys, "advise", "--gpu", "processor:64GB", "--model", "Qwen3-8B", "--precision", "Q4_K_M"
    )
    assert "-ngl 0" in asked.out
    assert "-ngl all" not in asked.out.partition("What you could do")[0]
