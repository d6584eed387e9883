"""A fine-tune in no list is read by the model that its repository's or file's name bears."""

from __future__ import annotations

import pytest

from advisor.errors import UserError
from advisor.reading import read_model
from tests.reading.test_command_lines import known


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("someone/Qwen3-8B-Sparkle-GGUF", "Qwen3-8B"),
        ("Qwen3-8B-Sparkle.Q5_K_M.gguf", "Qwen3-8B"),
        ("someone/Sparkle-Llama-3.3-70B-v2-exl3", "Llama-3.3-70B-Instruct"),
        ("someone_GPT-NeoX-20B-Sparkle", "gpt-neox-20b"),
        ("someone/Llama-3-norsk-Blue-bird-8b-instruct", "Meta-Llama-3-8B-Instruct"),
        ("someone/Qwen2.5-sparkle-7B-Instruct-v2", "Qwen2.5-7B-Instruct"),
    ],
)
def test_it_is_sized_as_the_model_whose_name_it_bears_and_says_so(name: str, base: str) -> None:
    read = read_model(known(), name)
    assert read.model.parameters == read_model(known(), base).model.parameters
    assert f"is read as {base}, whose name it bears" in read.said[0]
    assert "no list here has it" in read.said[0]


@pytest.mark.parametrize(
    "name",
    [
        "qwen3-8b-sparkle",
        "someone/Qwen3-Sparkle",
        "someone/gemma-3-sparkle-2-9b",
        "someone/Llama3.2-Mamba-Sparkle-3B-Instruct",
        "Sparkle-22B-Q4_K_S.gguf",
        "Qwen/Qwen3-8B-Sparkle",
        "someone/Qwen3-8B-DFlash",
        "someone/Qwen3-8B-pruned-GGUF",
        "someone/Llama-3.1-8B-Sparkle-12B",
        "someone/Llama-3.1-8B-Qwen3-8B-Mix",
        "someone/2x-Qwen3-8B-Sparkle-MoE",
    ],
)
def test_what_may_be_of_another_size_is_refused(name: str) -> None:
    """Plain words, a name without size, the maker's own next model, drafts, two sizes or bases."""
    with pytest.raises(UserError, match="unknown model"):
        read_model(known(), name)


def test_a_makers_own_repository_may_be_known_by_its_copies_alone() -> None:
    read = read_model(known(), "tencent/HY-MT1.5-1.8B")
    assert (read.model.name, read.model.hf_id) == ("HY-MT1.5-1.8B", "tencent/HY-MT1.5-1.8B")
    assert "by copies of that name" in read.said[0]
    for name in ("google/HY-MT1.5-1.8B", "tencent/HY-MT1.5-99B"):
        with pytest.raises(UserError):
            read_model(known(), name)
