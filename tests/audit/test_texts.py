"""Links, and how alike texts are."""

from __future__ import annotations

import random

import pytest

from advisor.bulk.audit.folder import Alike, Common, alike, overlap, runs, sentences, signature
from advisor.bulk.audit.pages import broken, markdown_links, read_page

FILES = {"a/page.html": frozenset({"top"}), "a/other.html": frozenset[str](), "b.md": frozenset()}
WORDS = [f"word{number}" for number in range(2000)]


@pytest.mark.parametrize(
    "link", ["other.html", "./page.html#top", "#top", "../b.md", "https://example.org/x", "?q=1"]
)
def test_links_that_lead_somewhere(link: str) -> None:
    assert [*broken("a/page.html", [link], FILES.__contains__, FILES.__getitem__)] == []


@pytest.mark.parametrize(
    ("link", "words"),
    [
        ("none.html", "'a/none.html', which is not there"),
        ("#none", "no place named 'none'"),
        ("../../x", "leads out of the folder"),
        ("/b.md", "root of a server"),
        ("javascript:alert(1)", "no address that a reader can follow"),
        ("file:///etc/passwd", "no address that a reader can follow"),
        ("http://[", "is no address"),
    ],
)
def test_links_that_do_not(link: str, words: str) -> None:
    (problem,) = broken("a/page.html", [link] * 2, FILES.__contains__, FILES.__getitem__)
    assert words in problem


def test_markdown_links_leave_code_out() -> None:
    text = "[a](x.md) ![b](<y.png>) `[c](no)`\n```\n[d](no)\n```\n\\[e](no)"
    assert markdown_links(text) == ["x.md", "y.png"]


def test_a_page_gives_links_anchors_and_the_text_that_is_read() -> None:
    page = read_page(
        '<html lang="en"><title>T</title><style>no{}</style>'
        '<p class="a b" id="x">One <b>two</b></p>'
        '<p class="ticks"><span>0</span></p><a href="y.html">three</a><p id="x">four</p>'
    )
    assert (page.title, page.language, page.links) == ("T", "en", ["y.html"])
    assert page.text == "One two\nthree\nfour"
    assert page.doubled == ["x"]
    assert {"a", "b"} <= page.classes


def text(seed: int, changed: float = 0.0) -> str:
    rng = random.Random(seed)
    words = [rng.choice(WORDS) for _ in range(600)]
    other = random.Random(seed + 10_000)
    return " ".join(other.choice(WORDS) if other.random() < changed else word for word in words)


@pytest.mark.parametrize("changed", [0.0, 0.01, 0.05, 0.3])
def test_signatures_estimate_the_overlap(changed: float) -> None:
    pairs = [(runs(text(seed)), runs(text(seed, changed))) for seed in range(12)]
    exact = sum(overlap(a, b) for a, b in pairs) / len(pairs)
    guess = sum(alike(signature(a), signature(b)) for a, b in pairs) / len(pairs)
    assert guess == pytest.approx(exact, abs=0.08)


def test_near_copies_are_grouped_and_strangers_are_not() -> None:
    found = Alike(0.8)
    for seed in range(40):
        found.add(f"text-{seed:02d}", signature(runs(text(seed))))
    found.add("copy-of-07", signature(runs(text(7, 0.004))))
    found.add("copy-of-08", signature(runs(text(8))))
    assert sorted(found.groups()) == [["copy-of-07", "text-07"], ["copy-of-08", "text-08"]]
    assert found.closest(1) == [("text-08", "copy-of-08")]


def test_many_like_texts_are_joined_without_holding_each_against_each() -> None:
    found = Alike(0.5)
    for number in range(300):
        found.add(str(number), signature(runs(text(1))))
    assert [len(group) for group in found.groups()] == [300]
    assert len(found.pairs) < 300 * 16


def test_the_share_that_most_texts_have_in_common() -> None:
    common = Common()
    same = text(1)
    for seed in range(10):
        whole = f"{same} {text(seed + 50)}"
        common.add(
            runs(whole),
            sentences(f"All of them say this same thing. Number {seed} is new and alone."),
        )
    assert common.share() == pytest.approx(0.5, abs=0.02)
    assert common.repeated(3) == {"All of them say this same thing.": 1.0}
    assert Common().share() is None


def test_short_and_empty_texts_are_texts_too() -> None:
    assert overlap(runs(""), runs("")) == 1.0
    assert alike(signature(runs("one")), signature(runs("two"))) < 1
