"""What people type from habit: flags of other programs, names without quotes, a flag twice."""

from __future__ import annotations

import re

import pytest

from advisor.scenario.settings import FLAGS
from tests.cli.running import run

Capture = pytest.CaptureFixture[str]

CARD, MODEL = ("--gpu", "RTX 4090"), ("--model", "phi-3-medium")


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--gpu", "RTX", "4090", *MODEL], '--gpu "RTX 4090"'),
        ([*CARD, "--model", "llama", "3", "8b"], '--model "llama 3 8b"'),
        ([*CARD, "--gpu", "RTX 3090", *MODEL], '--gpu "RTX 3090 + RTX 4090"'),
        ([*CARD, *MODEL, "--quant", "q4_k_m"], "Write --precision."),
        ([*CARD, *MODEL, "--ctx-size=8192"], "Write --context."),
        ([*CARD, *MODEL, "--vram", "24"], '--gpu "NAME:24GB"'),
    ],
)
def test_a_habit_is_told_what_to_write(capsys: Capture, args: list[str], said: str) -> None:
    done = run(capsys, "advise", *args)
    assert done.code == 2
    assert said in re.sub(r"[\s│]+", " ", done.err)


def test_every_habit_is_told_at_once(capsys: Capture) -> None:
    done = run(capsys, "advise", "--gpu", "RTX", "4090", *MODEL, "--quant", "q4", "--ngl", "20")
    err = re.sub(r"[\s│]+", " ", done.err)
    assert all(said in err for said in ('"RTX 4090"', "--precision", "--gpu-layers"))


def test_no_other_name_of_a_flag_is_a_flag() -> None:
    own = {one.typed_name.replace("_", "-") for one in FLAGS}
    other = [name for one in FLAGS for name in one.called]
    assert len(set(other)) == len(other)
    assert not own & set(other)


def test_a_command_with_arguments_of_its_own_takes_words(capsys: Capture) -> None:
    assert run(capsys, "knowledge", "find", "4060").code == 0


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("qwen3-33b", "'Qwen3-32B'"),
        ("RTX 4095", "'GeForce RTX 4090'"),
        ("lama.cpp", "'llama.cpp'"),
        ("zzzzqqqq", "Search for a part of the name"),
    ],
)
def test_a_search_without_a_find_names_the_nearest(capsys: Capture, text: str, near: str) -> None:
    done = run(capsys, "knowledge", "find", text)
    assert done.code == 1
    assert near in done.err


def test_a_name_of_several_words_needs_no_quotes(capsys: pytest.CaptureFixture[str]) -> None:
    done = run(capsys, "knowledge", "find", "rtx", "409O")
    assert done.out == run(capsys, "knowledge", "find", "rtx 409O").out
    assert "GeForce RTX 4090" in done.out


def test_a_search_reads_cards_as_people_say_them(capsys: Capture) -> None:
    done = run(capsys, "knowledge", "find", "dual 3090")
    assert "GeForce RTX 3090 " in done.out


@pytest.mark.parametrize(("text", "near"), [("quen3", "Qwen3"), ("mistrall", "Mistral")])
def test_a_search_that_only_the_public_list_answers_names_the_nearest_known_first(
    capsys: Capture, text: str, near: str
) -> None:
    first, *listed = run(capsys, "knowledge", "find", text).out.splitlines()
    assert near in first
    assert any(line.startswith("public list") for line in listed)
