"""Cards that were replaced, boards and laptops by product, caches and several models."""

from __future__ import annotations

import re

import pytest
from msgspec.structs import replace

from advisor.errors import RequestError
from advisor.files import table_rows
from advisor.reading import find_cards
from advisor.reading.sentence_numbers import read_numbers
from advisor.reading.sentence_spelling import apart
from advisor.reading.sentences import read_sentence
from advisor.scenario.resolve import resolve
from advisor.scenario.settings import KEYS, Request
from tests.cli.running import run
from tests.reading.test_command_lines import known


def cards_of(text: str) -> str:
    cards = find_cards(known(), str(read_sentence(text, known()).settings["gpu"]))
    return f"{cards.count}x {cards.gpu.name}"


@pytest.mark.parametrize(
    ("text", "cards", "left"),
    [
        ("upgraded from a 3080 Ti to a 3090, qwen3 32b", "1x GeForce RTX 3090", "3080 Ti"),
        ("upgrade 3060 12gb to 3090 24gb, qwen3 32b", "1x GeForce RTX 3090", "3060"),
        ("swap two 3090s for one 5090, qwen3 32b", "1x GeForce RTX 5090", "two 3090s"),
        ("upgrade from 3060 to 3090, qwen3 32b", "1x GeForce RTX 3090", "3060"),
        ("I upgraded from 2x 3060 to 5090, gemma 3 27b", "1x GeForce RTX 5090", "2x 3060"),
        ("replaced my 1080 ti with an rx 7900 xtx, phi-4", "1x Radeon RX 7900 XTX", "1080 ti"),
    ],
)
def test_a_card_that_was_replaced_is_left_out_and_said(text: str, cards: str, left: str) -> None:
    assert cards_of(text) == cards
    assert left in " ".join(read_sentence(text, known()).left)


def test_a_card_beside_a_wish_to_upgrade_is_meant() -> None:
    assert cards_of("should I upgrade my 3090 for qwen3 32b") == "1x GeForce RTX 3090"
    assert cards_of("moving 20 layers to 3090, qwen3 32b") == "1x GeForce RTX 3090"


@pytest.mark.parametrize(
    ("text", "card"),
    [
        ("Gigabyte Windforce RTX 4070 Ti qwen3 14b", "GeForce RTX 4070 Ti"),
        ("Sapphire Nitro+ 7900 XTX qwen3 32b", "Radeon RX 7900 XTX"),
        ("ASUS TUF 4080 super gemma 3 27b", "GeForce RTX 4080 SUPER"),
        ("Zotac Trinity 3090 qwen3 32b", "GeForce RTX 3090"),
        ("MSI Ventus 3X 4070 phi-4", "GeForce RTX 4070"),
        ("phi-4 on ASUS Sparkle 4070", "GeForce RTX 4070"),
        ("Lenovo Legion 5 Pro RTX 3070 qwen3 8b", "GeForce RTX 3070 Mobile"),
        ("HP Victus 4070 phi-4", "GeForce RTX 4070 Mobile"),
        ("Razer Blade 16 4090 qwen3 32b", "GeForce RTX 4090 Mobile"),
        ("ASUS TUF A15 4060 qwen3 8b", "GeForce RTX 4060 Mobile"),
        ("RTX 5090 DV2 24G qwen3 32b", "GeForce RTX 5090 D V2"),
        ("RTX 4070TiS qwen3 14b", "GeForce RTX 4070 Ti SUPER"),
        ("GMKtec K11 Ryzen 9 8945HS llama3.2", "Radeon 780M"),
    ],
)
def test_boards_and_laptops_are_read_by_product(text: str, card: str) -> None:
    """A laptop's card is the mobile part; the word of a board's maker says nothing of the card."""
    assert cards_of(text) == f"1x {card}"


@pytest.mark.parametrize(
    ("text", "cards"),
    [
        (
            "llama 3 70b on Dual AMD GPU 7900 XTX and 7900 XT",
            "2x Radeon RX 7900 XTX + Radeon RX 7900 XT",
        ),
        ("qwen3 32b on 2A100 80G", "2x A100 SXM4 80 GB"),
        ("LLaMA 3 70B on RTX 4000 Ada 20GB * 4", "4x RTX 4000 Ada Generation"),
        ("qwen3 32b on Tesla P40 (24 GB VRAM), 2 cards", "2x Tesla P40"),
        ("command-r-plus q5_k_s for 3x24 GB", "3x GeForce RTX 3090"),
    ],
)
def test_counts_of_cards_are_read_in_more_forms(text: str, cards: str) -> None:
    assert cards_of(text) == cards


@pytest.mark.parametrize(
    ("text", "runtime", "kept"),
    [
        ("Qwen3 32b exl2 4.0bpw q4 cache 3090", "ExLlamaV2", "exl-q4"),
        ("Llama-3.1-8B exl3 4bpw with q6 cache on a 3060", "ExLlamaV3", "exl-q6"),
        ("Qwen3 32b q4_k_m q4_0 cache 3090", "llama.cpp", "q4_0"),
    ],
)
def test_a_cache_is_that_of_the_runtime_that_reads_the_format(
    text: str, runtime: str, kept: str
) -> None:
    said = read_sentence(text, known()).settings
    gpu, model, precision, kept_in = map(
        str, (said["gpu"], said["model"], said["precision"], said["kv_cache"])
    )
    made = resolve(Request(gpu=gpu, model=model, precision=precision, kv_cache=kept_in), known())
    assert (made.framework.name, made.kv_cache_k.name) == (runtime, kept)


def test_fp8_runs_on_intel_cards_in_vllm_alone() -> None:
    wanted = Request(gpu="Arc Pro B60", model="qwen3 14b", precision="fp8", framework="vLLM")
    assert resolve(wanted, known()).precision.name == "FP8"
    with pytest.raises(RequestError, match="SGLang does not run FP8 on Intel cards"):
        resolve(replace(wanted, framework="SGLang"), known())


@pytest.mark.parametrize(
    ("text", "second"),
    [
        ("Gemma 3 27B or Qwen2.5 32B on 4090", {"model": "Qwen2.5 32B"}),
        ("gpt-oss 20b and 120b on a 4090", {"model": "gpt-oss 120b"}),
    ],
)
def test_each_of_two_models_is_answered(
    text: str, second: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    read = read_sentence(text, known())
    assert read.more == [second]
    both = run(capsys, "ask", text)
    for model in (read.settings["model"], second["model"]):
        alone = run(capsys, "ask", f"{model} on a 4090")
        assert alone.code == 0
        assert alone.out in both.out
    document = run(capsys, "ask", text, "--format", "json")
    assert (document.code, "are two models" in document.err) == (1, True)


@pytest.mark.parametrize(
    ("text", "cards"),
    [
        ("should I get a 3090 or 4090 for qwen3 32b", ["3090", "4090"]),
        ("rtx 3090, 4090 or a 5090 for qwen3 32b", ["rtx 3090", "4090", "5090"]),
        ("is a 4060 ti 16gb better than a 3090 for qwen3 32b", ["4060 ti 16gb", "3090"]),
        ("2x 3090 or 1x 5090, qwen3 32b", ["2x 3090", "1x 5090"]),
        ("compare 3090 and 4090 for qwen3 32b", ["3090", "4090"]),
        ("difference between a 7900 xtx and a 5080 with qwen3 14b", ["7900 xtx", "5080"]),
        ("qwen3 32b on a 3060 or better", ["3060"]),
        ("qwen3 32b on 3090 + 3060", ["3090 + 3060"]),
    ],
)
def test_each_of_the_cards_to_choose_between_is_answered(text: str, cards: list[str]) -> None:
    read = read_sentence(text, known())
    assert [read.settings["gpu"], *(one["gpu"] for one in read.more)] == cards


def test_each_model_is_answered_on_each_card(capsys: pytest.CaptureFixture[str]) -> None:
    said = run(capsys, "ask", "qwen3 32b or gemma 3 27b on a 3090 or a 4090")
    assert said.code == 0
    for gpu in ("3090", "4090"):
        for model in ("qwen3 32b", "gemma 3 27b"):
            assert f"read as: --gpu {gpu} --model '{model}'" in said.out
    document = run(capsys, "ask", "qwen3 32b on a 3090 or a 4090", "--format", "json")
    assert (document.code, "'3090' and '4090' are two cards" in document.err) == (1, True)


def test_models_are_listed_for_each_of_the_cards(capsys: pytest.CaptureFixture[str]) -> None:
    listed = run(capsys, "ask", "3090 or 4080 for coding models")
    for gpu in ("3090", "4080"):
        assert f"read as: models-for --gpu {gpu} --for code" in listed.out
    document = run(capsys, "ask", "3090 or 4080 for coding models", "--format", "json")
    assert (document.code, "are two cards" in document.err) == (1, True)


@pytest.mark.parametrize(
    ("text", "framework", "gpus"),
    [
        ("vllm serve Qwen/Qwen3-32B --tensor-parallel-size 2 on 2x 4090", "vLLM", 2),
        (
            "python3 -m sglang.launch_server --model-path Qwen/Qwen3-32B --tp-size 4 4x A10",
            "SGLang",
            4,
        ),
        (
            "python -m vllm.entrypoints.openai.api_server --model Qwen/Qwen3-32B -tp 2 2x L4",
            "vLLM",
            2,
        ),
    ],
)
def test_a_command_in_a_question_names_runtime_model_and_ranks(
    text: str, framework: str, gpus: int
) -> None:
    read = read_sentence(text, known())
    said = {key: str(read.settings[key]) for key in ("model", "framework", "gpus")}
    assert said | {"framework": said["framework"].casefold()} == {
        "model": "Qwen/Qwen3-32B",
        "framework": framework.casefold(),
        "gpus": str(gpus),
    }
    assert not read.left


def test_cards_that_stand_in_a_row_are_no_choice() -> None:
    with pytest.raises(RequestError, match="'3090' beside '3060 and 4090' is not understood"):
        read_sentence("3090, 3060 and 4090 for qwen3 32b", known())


def test_a_second_model_is_never_a_size_of_the_first_under_another_name() -> None:
    with pytest.raises(RequestError, match="'14b' beside 'qwen3 8b' is not understood"):
        read_sentence("qwen3 8b or sparkle 14b on a 3090", known())
    both = read_sentence("llama 3.1 8b and llama 3.3 70b on 2x 3090", known())
    assert both.more == [{"model": "llama 3.3 70b"}]
    drafted = read_sentence("qwen3 32b with qwen3 0.6b as draft on a 4090", known())
    assert (drafted.settings["draft_model"], drafted.left) == ("qwen3 0.6b", [])


def test_every_spelling_can_be_written() -> None:
    for pattern, *written in table_rows("spellings.tsv"):
        groups = re.compile(pattern).groups
        assert len(written) < 2, pattern
        named = [int(number) for number in re.findall(r"\\(\d)", "".join(written))]
        assert max(named, default=0) <= groups, pattern


@pytest.mark.parametrize(
    ("said", "read"),
    [("core 9 ultra 285", "Core Ultra 9 285"), ("M3Max", "M3 Max"), ("32 b", "32b")],
)
def test_a_spelling_is_written_as_others_write_it(said: str, read: str) -> None:
    assert apart(said).strip() == read


def test_every_way_to_say_a_setting_is_of_one_that_exists() -> None:
    settings = {*KEYS, "limit", "wish"}
    for name, *_ in table_rows("said_settings.tsv"):
        assert name in settings or name.startswith("="), name


@pytest.mark.parametrize(
    ("said", "read"),
    [
        ("two users and 64 GB of DDR5 RAM at 8k context", {"batch": 2, "ram": "64 GB of DDR5"}),
        ("90% gpu memory utilization", {"gpu_memory_utilization": 0.9}),
        ("eager mode", {"eager": "on"}),
    ],
)
def test_a_setting_that_is_said_is_read(said: str, read: dict[str, object]) -> None:
    settings: dict[str, object] = {}
    read_numbers(said, settings)
    assert read.items() <= settings.items(), settings
