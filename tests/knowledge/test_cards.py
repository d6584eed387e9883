"""Cards of one machine: what people write, and what several unequal ones offer together."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.errors import RequestError, UserError
from advisor.knowledge import load_knowledge
from advisor.knowledge.catalogue import Cards
from advisor.reading import find_cards

KNOWLEDGE = load_knowledge()


def found(text: str) -> Cards:
    return find_cards(KNOWLEDGE, text)


@pytest.mark.parametrize(
    ("text", "count", "each"),
    [
        ("RTX 3090", 1, 0),
        ("2x RTX 3090", 2, 0),
        ("2 x RTX 3090", 2, 0),
        ("RTX 3090 + RTX 3090", 2, 0),
        ("RTX 3090 + RTX 3060:12GB", 2, 2),
        ("RTX 3090+RTX 3060:12GB", 2, 2),
        ("2x RTX 3090 + RTX 3060:12GB", 3, 3),
        ("RTX 3060:12GB + 2x RTX 3090 + RTX 4090", 4, 4),
    ],
)
def test_lists_of_cards_are_read(text: str, count: int, each: int) -> None:
    cards = found(text)
    assert (cards.count, len(cards.each)) == (count, each)


@pytest.mark.parametrize("text", ["7900 xtx", "RX 7900 XTX", "AI Max+ 395", "RTX 4090"])
def test_signs_that_belong_to_a_name_count_nothing(text: str) -> None:
    cards = found(text)
    assert (cards.count, cards.each, cards.counted) == (1, (), False)


def test_cards_keep_their_order() -> None:
    names = [card.name for card in found("RTX 3060:12GB + RTX 3090").each]
    assert names == ["GeForce RTX 3060 12 GB", "GeForce RTX 3090"]


def test_unequal_cards_offer_the_least_of_each_figure() -> None:
    cards = found("RTX 4060 + RTX 3090")
    small, old = cards.each
    assert cards.gpu.vram_bytes == small.vram_bytes
    assert cards.gpu.compute_capability == old.compute_capability == 8.6
    assert cards.gpu.architecture == old.architecture
    assert cards.gpu.bandwidth_bytes_s == small.bandwidth_bytes_s
    assert cards.gpu.tdp_w == old.tdp_w
    assert cards.gpu.launch_price_usd is None


def test_a_figure_unknown_on_one_card_is_unknown_of_both() -> None:
    cards = found("RTX 3090 + RTX 4090")
    assert cards.each[0].nvlink_bytes_s is not None or cards.each[1].nvlink_bytes_s is None
    assert cards.gpu.nvlink_bytes_s is None


def test_the_name_of_unequal_cards_names_them_again() -> None:
    cards = found("2x RTX 3090 + RTX 3060:12GB")
    assert cards.gpu.name == "2x GeForce RTX 3090 + GeForce RTX 3060 12 GB"
    assert found(cards.gpu.name).each == cards.each


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("RTX 3090 + nope", "unknown GPU 'nope'"),
        ("RTX 3090 + ", "lacks a card beside the plus"),
        ("0x RTX 3090", "names no cards"),
        ("65x RTX 3090", "names 65 cards"),
        ("RTX 3090 + DGX Spark", "is a part of its machine"),
        ("RTX 4090 Ti + RTX 3090", "unknown GPU"),
    ],
)
def test_what_does_not_work_together_is_refused(text: str, said: str) -> None:
    with pytest.raises(UserError, match=said):
        found(text)


def test_every_unknown_card_is_told_at_once() -> None:
    with pytest.raises(UserError) as caught:
        found("nope + RTX 3090 + zork")
    assert "nope" in str(caught.value)
    assert "zork" in str(caught.value)


@given(st.text(alphabet="2x+ :RTX3090GBé\t\x00", max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        cards = found(text)
    except UserError:
        return
    assert 1 <= cards.count <= 64
    assert len(cards.each) in {0, cards.count}


def test_the_refusal_is_a_request_error() -> None:
    with pytest.raises(RequestError):
        found("0x RTX 3090")


@pytest.mark.parametrize(
    "text",
    [
        "DGX Spark + RTX 4090", "Strix Halo + RTX 3060:12GB", "processor:64GB + RTX 4090",
        "2x processor:64GB", "2x RTX 4090 Mobile", "RTX 4090 Mobile + RTX 3060:12GB",
        "M4 Pro:48GB + M4 Pro:24GB",
    ],
)  # fmt: skip
def test_a_part_of_a_machine_has_no_second_one_beside_it(text: str) -> None:
    with pytest.raises(UserError, match="is a part of its machine"):
        found(text)


def test_one_of_them_is_taken_counted_or_not() -> None:
    assert found("1x DGX Spark").count == 1
    assert found("DGX Spark").count == 1


def test_server_modules_sit_several_in_one_machine() -> None:
    assert found("4x MI300A").count == 4
