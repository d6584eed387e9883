"""How much memory a machine can be asked for, and cards that are not named."""

from __future__ import annotations

import re

import pytest

from advisor.errors import RequestError
from advisor.knowledge import load_knowledge
from advisor.reading import find_cards
from advisor.units import GIB


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("M4 Pro:999999999999GB", "(24 GB, 48 GB, 64 GB). Write one of these."),
        ("M4 Pro:1GB", "(24 GB, 48 GB, 64 GB). Write one of these."),
        ("M4 Pro:32GB", "(24 GB, 48 GB, 64 GB). Write one of these."),
        ("M1 Max:65GB", "known: Apple M1 Max (32 GB, 64 GB). Write one of these."),
        ("M1 Max:2GB", "known: Apple M1 Max (32 GB, 64 GB). Write one of these."),
        ("DGX Spark:129GB", "known: DGX Spark (GB10) (128 GB). Write one of these."),
        ("780M:1GB", "known: Radeon 780M. Write 4 to 512 GB."),
        ("780M:513GB", "known: Radeon 780M. Write 4 to 512 GB."),
    ],
)
def test_a_size_that_no_machine_has_is_refused(text: str, words: str) -> None:
    with pytest.raises(RequestError, match=re.escape(words)):
        find_cards(load_knowledge(), text)


@pytest.mark.parametrize(
    ("text", "size"),
    [("M4 Pro:48GB", 48), ("M1 Max:32GB", 32), ("M5:24GB", 24), ("Ryzen AI Max+ 395:96GB", 96)],
)
def test_a_size_that_is_sold_or_not_known_to_be_is_taken(text: str, size: int) -> None:
    assert find_cards(load_knowledge(), text).gpu.vram_bytes == size * GIB


@pytest.mark.parametrize("text", ["RTX 4090 +", "RTX 4090 + ", "2x RTX 4090 + "])
def test_a_plus_without_a_card_is_told(text: str) -> None:
    with pytest.raises(RequestError, match="lacks a card beside the plus"):
        find_cards(load_knowledge(), text)


def test_a_blank_names_no_card() -> None:
    with pytest.raises(RequestError, match="no GPU is named"):
        find_cards(load_knowledge(), " ")
