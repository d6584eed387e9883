"""How reports read: short enough, plain enough, not alike, and never against their figures."""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache
from itertools import combinations

import pytest
from msgspec.structs import replace

from advisor.advice.document import Advice
from advisor.report.assembly import Views, document
from advisor.report.pages import render_markdown
from advisor.report.prose import MOST_WORDS, Length, report
from advisor.report.sentence_check import contradictions
from advisor.scenario.settings import Request
from tests.readability import prose, read, reading, repeated, sentences, words
from tests.report.catalogue import advisor, sampled
from tests.report.runs import reference_hashes, run_hashes

LONG_SENTENCE = 12
MOST_ALIKE = 0.3
ENOUGH = 40
"""Reports that hold a text, from which on its share is no accident."""


@lru_cache(maxsize=3)
def pages(length: Length) -> tuple[str, ...]:
    return tuple(
        render_markdown(doc, length=length, made=report(doc, length, None, views))
        for doc, views in sampled()
    )


@pytest.mark.parametrize(("length", "most"), list(MOST_WORDS.items()))
def test_no_report_is_longer_than_promised(length: Length, most: int) -> None:
    counts = [len(words(read(page))) for page in pages(length)]
    assert max(counts) <= most
    assert max(counts) > most / 2


@pytest.mark.parametrize("length", ["short", "standard", "full"])
def test_reports_are_plain_english(length: Length) -> None:
    told = [prose(page) for page in pages(length)]
    assert reading([text for paragraphs in told for text in paragraphs]).ease >= 55
    assert min(reading(paragraphs).ease for paragraphs in told) >= 30


@pytest.mark.parametrize("length", ["short", "standard", "full"])
def test_no_long_sentence_stands_in_many_reports(length: Length) -> None:
    found = repeated(map(prose, pages(length)), LONG_SENTENCE)
    assert max(found.values()) <= MOST_ALIKE * len(pages(length))


def texts_by_place(doc: Advice, views: Views) -> dict[str, list[str]]:
    """The sentences of a report by the template they come from, as far as that can vary."""
    made = report(doc, "full", None, views)
    state = doc.verdict.state
    found = {"have": [made.have], f"happens {state}": [made.happens], f"verdict {state}": []}
    found[f"verdict {state}"] = [made.verdict]
    for item in doc.recommendations:
        found.setdefault(f"action {item.action}", []).append(item.text)
    first = doc.recommendations[0].action if doc.recommendations else "none"
    found[f"first {first}"] = [made.first]
    return found | {f"note {note.rule}": [note.text] for note in doc.notes}


def test_no_long_sentence_is_the_usual_one_of_its_place() -> None:
    places: Counter[str] = Counter()
    said: Counter[tuple[str, str]] = Counter()
    for doc, views in sampled():
        for place, texts in texts_by_place(doc, views).items():
            places[place] += 1
            long = {s for s in sentences(texts) if len(words(s)) > LONG_SENTENCE}
            said.update((place, sentence) for sentence in long)
    often = {key: count / places[key[0]] for key, count in said.items() if places[key[0]] >= ENOUGH}
    assert len(often) > 1000
    assert [key for key, share in often.items() if share > MOST_ALIKE] == []


def test_no_sentence_contradicts_a_figure() -> None:
    assert [problem for doc, _ in sampled() for problem in contradictions(doc)] == []


def test_no_report_repeats_the_published_ones() -> None:
    known = reference_hashes()
    for page in pages("full"):
        assert not run_hashes(page) & known


def told(**request: object) -> str:
    page = render_markdown(document(advisor().advise(Request(**request))))  # type: ignore[arg-type]
    return re.sub(r"[\d.,]+", "", " ".join(sentences(prose(page))))


def test_neighbours_do_not_read_alike() -> None:
    formats = ("Q4_K_M", "Q5_K_M", "Q6_K", "Q8_0")
    reports = [
        set(told(gpu="RTX 4090", model="llama-3-8b", precision=f).split(" . ")) for f in formats
    ]
    for one, other in combinations(reports, 2):
        assert one != other
    words_of = [told(gpu="RTX 4090", model="llama-3-8b", precision=f) for f in formats]
    assert len(set(words_of)) == len(formats)


def test_the_same_request_gives_the_same_words() -> None:
    asked = {"gpu": "RTX 3060 12 GB", "model": "qwen2.5-14b", "precision": "Q6_K"}
    assert told(**asked) == told(**asked)


def test_what_is_asked_chooses_the_words_not_what_is_found() -> None:
    seeds = {views.situation["request.variation"] for _, views in sampled()}
    assert len(seeds) > 0.95 * len(sampled())
    doc, views = sampled()[0]
    memory = replace(doc.memory, required_bytes=doc.memory.required_bytes + 1)
    other = Views.of(replace(doc, memory=memory))
    assert other.situation["request.variation"] == views.situation["request.variation"]
