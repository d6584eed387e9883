"""How written reports read over the catalogue, and what writing them costs.

    python benchmarks/prose.py              1,000 reports drawn evenly from the catalogue
    python benchmarks/prose.py --reports N

Words, sentences and syllables are counted as tests/readability.py describes. Prints
Markdown for docs/templates.md.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from advisor.advice import Advisor
from advisor.advice.conclusions import Conclusions
from advisor.errors import UserError
from advisor.report import render_json
from advisor.report.assembly import document, document_and_views
from advisor.report.pages import render_markdown
from advisor.report.prose import Length, report
from advisor.report.sentence_check import contradictions
from advisor.scenario.settings import request_from
from advisor.workbench.fact_store import drawn, eased

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.readability import prose, read, reading, repeated, words

LONG_SENTENCE = 12
LENGTHS: tuple[Length, ...] = ("short", "standard", "full")


def sampled(advisor: Advisor) -> Iterator[Conclusions]:
    """Advice on a fixed, even sample of cards, models, formats, contexts and runtimes."""
    for given in drawn(advisor.knowledge):
        for easier in eased(given):
            try:
                yield advisor.advise(request_from(easier))
            except UserError:
                continue
            break


def how_they_read(pages: Sequence[str], length: Length) -> None:
    counted = [len(words(read(page))) for page in pages]
    told = [prose(page) for page in pages]
    each = [reading(paragraphs).ease for paragraphs in told]
    whole = reading([text for paragraphs in told for text in paragraphs])
    often = max(repeated(told, LONG_SENTENCE).values(), default=0) / len(pages)
    print(
        f"| {length} | {statistics.median(counted):.0f} ({max(counted)}) | {whole.ease:.0f} | "
        f"{statistics.median(each):.0f} ({min(each):.0f}) | "
        f"{whole.words / whole.sentences:.1f} | {100 * often:.1f} % |"
    )


def once(advice: Conclusions) -> None:
    doc, views = document_and_views(advice)
    render_markdown(doc, made=report(doc, "standard", None, views))
    render_json(doc, indent=None)


def milliseconds(found: Sequence[Conclusions]) -> float:
    """Processor time of document, standard Markdown and JSON of one report, best of five."""
    times = []
    for _ in range(5):
        start = time.process_time()
        for advice in found:
            once(advice)
        times.append((time.process_time() - start) / len(found))
    return 1000 * min(times)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--reports", type=int, default=1000, metavar="N")
    found = list(islice(sampled(Advisor.load()), parser.parse_args().reports))
    docs = [document(advice) for advice in found]
    print(
        f"{len(docs):,} reports, {sum(bool(contradictions(doc)) for doc in docs)} with a sentence"
    )
    print("that contradicts a figure\n")
    print(
        "| length | words read, median (most) | Flesch ease | of each, median (least) | words a "
        "sentence | reports with the same long sentence, at most |\n|---|---:|---:|---:|---:|---:|"
    )
    for length in LENGTHS:
        how_they_read([render_markdown(doc, length=length) for doc in docs], length)
    print(f"\n{milliseconds(found[:300]):.2f} ms of processor time write one: document, standard")
    print("Markdown and JSON")


if __name__ == "__main__":
    main()
