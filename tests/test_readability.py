"""The counts behind "plain English", on texts counted by hand."""

from __future__ import annotations

import pytest

from tests.readability import prose, read, reading, repeated, sentences, syllables, words

PAGE = """# Model on Card

**It fits on the card.**

| | |
|---|---|
| Needs | 27.0 GiB |

## What happens

It loads. llama.cpp runs at 8.4 tok/s (7 to 9 tok/s)!

```sh
never read this
```

- **Use Q4_K_M.** That is all.

*advisor 0.1.0, rules abc, knowledge def*
"""


def test_commands_are_not_read_and_tables_are_no_prose() -> None:
    assert "never" not in read(PAGE)
    assert "27.0 GiB" in read(PAGE)
    assert prose(PAGE) == [
        "It fits on the card.",
        "It loads. llama.cpp runs at 8.4 tok/s (7 to 9 tok/s)!",
        "Use Q4_K_M. That is all.",
    ]


def test_sentences_end_at_marks_and_not_inside_figures_or_names() -> None:
    assert sentences(prose(PAGE)) == [
        "It fits on the card.",
        "It loads.",
        "llama.cpp runs at 8.4 tok/s (7 to 9 tok/s)!",
        "Use Q4_K_M.",
        "That is all.",
    ]


def test_marks_alone_are_no_words() -> None:
    assert words("| 2.8 % | -> | a-b |") == ["2.8", "a-b"]


@pytest.mark.parametrize(
    ("word", "count"),
    [
        ("card", 1), ("memory", 3), ("weights", 1), ("measured", 2), ("table", 2), ("the", 1),
        ("stopped", 1), ("loaded", 2), ("stages", 2), ("27.0", 2), ("42", 1), ("4,096", 2),
        ("GiB", 2), ("RTX", 3), ("4090", 2), ("KV", 2), ("Q4_K_M", 4),
    ],
)  # fmt: skip
def test_syllables(word: str, count: int) -> None:
    assert syllables(word) == count


def test_the_ease_of_a_text_follows_the_formula() -> None:
    found = reading(["The card has memory. It is full."])
    assert (found.sentences, found.words, found.syllables) == (2, 7, 9)
    assert found.ease == pytest.approx(206.835 - 1.015 * 3.5 - 84.6 * 9 / 7)


def test_a_sentence_counts_once_in_a_report() -> None:
    reports = [["One two three. One two three."], ["One two three."], ["One two."]]
    assert repeated(reports, 2) == {"One two three.": 2}
