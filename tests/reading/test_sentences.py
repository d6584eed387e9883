"""Questions in plain words: what is read, what is left out, what is refused."""

from __future__ import annotations

import itertools
import random

import pytest

from advisor.errors import RequestError
from advisor.reading.sentences import read_sentence
from advisor.scenario.settings import KEYS
from advisor.units import UnitError, parse_whole
from tests.cli.running import run
from tests.reading.test_command_lines import known

FULL = "can I run qwen3 32b awq on two 3090s with vllm at 32k, 4 users"


def settings(text: str) -> dict[str, object]:
    return read_sentence(text, known()).settings


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (
            FULL,
            {
                "gpu": "2x 3090", "model": "qwen3 32b", "precision": "awq", "framework": "vLLM",
                "context": 32_768, "batch": 4,
            },
        ),
        (
            "what about Mixtral 8x7B q4_k_m with 64GB of RAM on an RTX 4090 using llama.cpp?",
            {
                "gpu": "RTX 4090", "model": "Mixtral 8x7B", "precision": "q4_k_m", "ram": "64GB",
                "framework": "llama.cpp",
            },
        ),
        (
            "qwen3-30b-a3b on a 4090 at 128K context with q8_0 kv cache",
            {
                "gpu": "4090", "model": "qwen3-30b-a3b", "context": 131_072, "kv_cache": "q8_0",
            },
        ),
        (
            "deepseek r1 on 8x H100 SXM5 80 GB with sglang, 1e5 tokens, tensor parallel",
            {
                "gpu": "8x H100 SXM5 80 GB", "model": "deepseek r1", "context": 100_000,
                "framework": "SGLang", "split": "tensor",
            },
        ),
        ("gpt-oss 20b on dual 3090", {"gpu": "2x 3090", "model": "gpt-oss 20b"}),
        ("qwen3 32b int4 on an L40S", {"gpu": "L40S", "model": "qwen3 32b", "precision": "INT4"}),
        ("qwen3 32b on two A40s", {"gpu": "2x A40", "model": "qwen3 32b"}),
        (
            "glm-5 on 8xB200 in vllm, 16k context 8 users",
            {
                "gpu": "8x B200", "model": "glm-5", "framework": "vLLM", "context": 16_384,
                "batch": 8,
            },
        ),
        (
            "Is my RTX 3060 12GB enough for gemma 2 27b in 4-bit with 20 layers on the gpu?",
            {"gpu": "RTX 3060 12GB", "model": "gemma 2 27b", "precision": "INT4", "gpu_layers": 20},
        ),
        (
            "run Qwen/Qwen3-32B-AWQ on RTX 4090, batch size 8, fp8 kv cache",
            {"gpu": "RTX 4090", "model": "Qwen/Qwen3-32B-AWQ", "batch": 8, "kv_cache": "fp8"},
        ),
        (
            "llama-3-8b fp16 on 7900 xtx with vulkan",
            {"gpu": "7900 xtx", "model": "llama-3-8b", "precision": "fp16", "backend": "Vulkan"},
        ),
    ],
)  # fmt: skip
def test_what_a_sentence_says(text: str, wanted: dict[str, object]) -> None:
    assert settings(text) == wanted
    assert settings(text.upper() if "/" not in text else text).keys() == wanted.keys()


CARDS = ("RTX 4090", "2x RTX 3090", "7900 xtx", "Tesla P40")
MODELS = ("llama 3.1 8b", "Qwen3-14B", "phi-3-medium", "gemma-2-9b")
MORE = (
    ("in q8_0", "precision", "q8_0"),
    ("at 16k", "context", 16_384),
    ("for 8 users", "batch", 8),
)


def test_parts_may_stand_in_any_order() -> None:
    chance = random.Random(3)
    for card, model in itertools.product(CARDS, MODELS):
        parts = [f"on {card}", f"run {model}", *(text for text, _, _ in MORE)]
        chance.shuffle(parts)
        found = settings(", ".join(parts))
        assert (found["gpu"], found["model"]) == (card, model), parts
        assert all(found[key] == value for _, key, value in MORE), parts
        assert set(found) <= set(KEYS)


def test_what_is_not_understood_is_named() -> None:
    assert read_sentence("llama 3.1 8b on a 4090 please, purple", known()).left == ["purple"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("hello world", "nothing is understood"),
        ("llama 3.1 8b snowflake on a 4090", "'snowflake' beside"),
        ("qwen3 32b coder on a 4090", "beside"),
        ("snorlax-7b on a 4090", "unknown model"),
        ("llama 3.1 8b on an RTX 9999", "unknown GPU"),
        ("minimax m2 on 2x dgx spark", "part of its machine"),
        ("can I fine-tune llama 3 8b on a 3090", "training is not sized"),
        ("is 24gb vram enough for qwen3.6 35b a3b", "only 24gb of memory"),
        ("kimi k2 on two m3 ultra mac studios", "part of its machine"),
    ],
)
def test_never_an_answer_about_another_model_or_card(text: str, words: str) -> None:
    with pytest.raises(RequestError, match=words):
        settings(text)


def test_any_text_is_read_or_refused() -> None:
    chance = random.Random(5)
    letters = "abz 0139 -_/.,:;!?'\"()x\u00e9\u4e2d\n\t"
    pieces = ("4090", "llama", "3.1", "8b", "32k", "two", "context", "x", "GB", "|", "|model|")
    for _ in range(300):
        noise = "".join(chance.choices(letters, k=12))
        text = " ".join([*chance.choices(pieces, k=4), noise])
        try:
            read_sentence(text, known())
        except RequestError:
            continue


def test_the_command_shows_how_it_read_and_answers(capsys: pytest.CaptureFixture[str]) -> None:
    asked = run(capsys, "ask", *FULL.split())
    quoted = run(capsys, FULL)
    assert asked == quoted
    first = asked.out.splitlines()[0]
    assert first.startswith("read as: --gpu '2x 3090' --model 'qwen3 32b' --precision awq")
    assert "but not with all 4" in asked.out
    machine = run(capsys, FULL, "--format", "json", "--fail-unless-fits")
    assert machine.code == 0
    assert machine.out.startswith("{")
    assert "read as:" in machine.err


def test_without_a_card_or_a_model_the_other_question_is_named(
    capsys: pytest.CaptureFixture[str],
) -> None:
    card = run(capsys, "ask", "which card do I need for llama 3.3 70b")
    assert card.code == 1
    assert "advisor gpus-for --model 'llama 3.3 70b'" in card.err
    model = run(capsys, "ask", "what can I run on an RTX 3060 12GB")
    assert "advisor models-for --gpu 'RTX 3060 12GB'" in model.err


@pytest.mark.parametrize(
    ("text", "number"),
    [("32k", 32_768), ("128K", 131_072), ("1e5", 100_000), ("32,768", 32_768), ("1M", 2**20)],
)
def test_whole_numbers_have_units(text: str, number: int) -> None:
    assert parse_whole(text) == number


@pytest.mark.parametrize("text", ["", "k", "1.5", "many", "1e999", "4 5", "0x10", "9" * 400])
def test_what_is_no_whole_number(text: str) -> None:
    with pytest.raises(UnitError, match="not a whole number"):
        parse_whole(text)


def test_flags_take_units(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("advise", "--gpu", "RTX 4090", "--model", "llama-3.1-8b", "--format", "json")
    one = run(capsys, *asked, "--context", "32k")
    assert one.out == run(capsys, *asked, "--context", "32768").out
    assert '"context": 32768' in one.out
