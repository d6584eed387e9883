"""What people name and nothing here sizes is told in a sentence, with what is nearest."""

from __future__ import annotations

import pytest

from advisor.errors import UserError
from advisor.files import data_dir
from advisor.reading import find_cards, read_model
from advisor.reading.known import read_format
from advisor.reading.name_parts import UNSIZED_FILE
from advisor.reading.sentences import read_sentence
from advisor.scenario.resolve import resolve
from advisor.scenario.settings import Request
from tests.commands.test_shown import doc
from tests.reading.test_command_lines import known


@pytest.mark.parametrize(
    ("said", "gpus", "split"),
    [
        ("tp 8 pp 2", 16, "tensor"),
        ("TP8/PP2", 16, "tensor"),
        ("-pp 2 -tp 8", 16, "tensor"),
        ("tp=16", 16, None),
        ("pp 16", 16, "layer"),
    ],
)
def test_ranks_of_both_kinds_make_the_cards(said: str, gpus: int, split: str | None) -> None:
    read = read_sentence(f"deepseek v3 on 16x h100 with vllm {said}", known())
    assert (read.settings["gpus"], read.settings.get("split")) == (gpus, split)
    assert read.settings.get("stages") == (2 if split == "tensor" else None)
    assert read.assumed == ""
    assert read.left == []


def test_fewer_ranks_than_cards_take_as_many_cards() -> None:
    read = read_sentence("qwen3 32b awq on 4x 3090, vllm, tp 2", known())
    assert read.settings["gpu"] == "2x GeForce RTX 3090"
    assert "gpus" not in read.settings
    assert read.assumed == "The split is over 2 of the 4 cards."


@pytest.mark.parametrize(
    ("text", "who", "nearest"),
    [
        ("JANG_4M", "MLX Studio", "MLX 4-bit"),
        ("JANG_3M", "MLX Studio", "MLX 3-bit"),
        ("JANGTQ4", "MLX Studio", "MLX 4-bit"),
        ("QTIP 2bit", "the code of its authors", "EXL3 2.0bpw"),
    ],
)
def test_a_format_that_nothing_here_reads_says_who_does(text: str, who: str, nearest: str) -> None:
    with pytest.raises(UserError, match=f"{who}.*'{nearest}'"):
        read_format(known(), text)
    assert read_format(known(), nearest).formats
    model = read_model(known(), f"dealignai/Gemma-4-31B-{text.replace(' ', '-')}-CRACK")
    assert model.model.parameters == read_model(known(), "gemma-4-31B-it").model.parameters
    read = read_sentence(f"llama 2 70b {text} on a 3090", known())
    assert read.settings["precision"] == text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("can I run llama 3.1 8b on a Tesla K80", "'Tesla K80' is not sized: its compute"),
        ("mistral 7b on gt-730 + ryzen 3600 16gb ram", "'gt-730' is not sized"),
        ("Ascend 950PR with Qwen3-8B in SGLang", "'Ascend 950PR' is not sized: vLLM's plugin"),
        ("llama 3.2 1b raspberry pi 5 8gb", "'raspberry pi 5' is not sized"),
        ("llama 3.1 8b on TPU v4", "'TPU v4' is not sized"),
    ],
)
def test_hardware_that_is_known_by_name_alone_says_why(text: str, said: str) -> None:
    with pytest.raises(UserError, match=said):
        read_sentence(text, known())


def test_no_card_of_the_catalogue_is_called_unsized() -> None:
    lines = (data_dir("knowledge") / UNSIZED_FILE).read_text("utf-8").splitlines()
    listed = [one for line in lines if line[0] != "#" for one in line.split("\t")[0].split(", ")]
    assert len(listed) > 100
    for one in listed:
        with pytest.raises(UserError, match="is not sized"):
            find_cards(known(), one)


def test_a_card_beside_a_machine_s_own_memory_names_both() -> None:
    asked = "Qwen3-Coder-30B-A3B on AMD Strix Halo + Nvidia 3060 eGPU, vulkan"
    with pytest.raises(UserError, match=r"\(an eGPU\) is not sized.*GeForce RTX 3060 12 GB with"):
        read_sentence(asked, known())


def test_a_runtime_for_experts_in_ram_is_told_as_the_others_that_offload() -> None:
    asked = {"gpu": "RTX 4090", "model": "DeepSeek-R1", "precision": "Q4_K_M", "ram_gib": 502}
    for framework in ("KTransformers", "llama.cpp"):
        found = doc(**asked, framework=framework)
        assert found.verdict.state == "needs_offload"
        assert found.recommendations[0].action == "offload-experts"
    stated = doc(**asked, framework="KTransformers", cpu_experts=61)
    assert stated.verdict.state == "fits"


@pytest.mark.parametrize("framework", ["vLLM", "SGLang", "transformers"])
def test_a_back_end_for_processors_is_told_and_not_denied(framework: str) -> None:
    asked = Request(gpu="cpu", model="qwen3-8b", framework=framework, ram_gib=64)
    with pytest.raises(UserError, match=r"cannot be sized on processor.*not modelled"):
        resolve(asked, known())
    with pytest.raises(UserError, match="ExLlamaV3 does not run on a processor alone"):
        resolve(Request(gpu="cpu", model="qwen3-8b", framework="ExLlamaV3"), known())


@pytest.mark.parametrize(("text", "bits"), [("3-bit", 3), ("3 bit", 3), ("2bit", 2)])
def test_bits_alone_name_the_formats_of_so_many(text: str, bits: int) -> None:
    read = read_sentence(f"qwen3 32b {text} on a 3090", known())
    scenario = resolve(
        Request(gpu="RTX 3090", model="qwen3-32b", precision=str(read.settings["precision"])),
        known(),
    )
    assert scenario.precision.class_bits == bits


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("NVILA-8B", "its vision tower and its projector"),
        ("MiniCPM-o-2_6", "parts that hear and speak"),
        ("wolfram/miquliz-120b-v2.0", "no list here tells how many it has"),
        ("Some-Merge-7B", "the model that it is tuned or merged of"),
    ],
)
def test_what_is_missing_of_a_model_is_said(text: str, missing: str) -> None:
    with pytest.raises(UserError, match=missing):
        read_model(known(), text)


def test_a_word_that_is_typed_for_another_makes_no_fine_tune() -> None:
    found = read_model(known(), "lama-3-8b")
    assert (found.model.name, found.model.hf_id) == (
        "Meta-Llama-3-8B-Instruct", "meta-llama/Meta-Llama-3-8B-Instruct",
    )  # fmt: skip


def test_what_files_hold_beside_the_shape_of_a_plain_model_is_sized_with_its_layers() -> None:
    counts = read_model(known(), "zai-org/cogvlm2-llama3-chat-19B").model.shape.counts
    assert counts is not None
    assert counts.total == 19_503_107_328
    assert sum(counts.layers) > 0.9 * counts.total
