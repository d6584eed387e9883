"""Generated requests, every document held to what the validator promises.

    python benchmarks/validity.py                 2,000 requests
    python benchmarks/validity.py --count 100000 --seed 7
    python benchmarks/validity.py --count 1000000 --lines    lines of advisor estimate

Requests are drawn from the whole catalogue: cards alone, several and unequal, every model, format
and runtime, contexts, batches, memory and shares on the cards. Prints what does not hold, the
longest report of each length, and exits 1 where anything is wrong.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from io import BytesIO
from itertools import islice
from pathlib import Path

from advisor.advice import Advisor
from advisor.advice.document import wrong_figures
from advisor.bulk import read_rows
from advisor.bulk.estimates import Line, estimate_row
from advisor.knowledge.types import Knowledge
from advisor.report.prose import MOST_WORDS

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.report.generated import easier, requests, wrong_with

_BLOCK = 1_000
Drawn = Iterable[dict[str, object]]


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=2_000, metavar="N")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--lines", action="store_true", help="As lines of advisor estimate.")
    asked = parser.parse_args()
    advisor = Advisor.load()
    count = asked.count // 2 if asked.lines else asked.count
    drawn = islice(requests(advisor.knowledge, asked.seed), count)
    wrong = of_lines(drawn, advisor.knowledge) if asked.lines else of_reports(drawn, advisor)
    return int(wrong > 0)


def of_lines(drawn: Drawn, knowledge: Knowledge) -> int:
    """Count the lines of an estimate file whose figures do not hold."""
    refused, bad, count = 0, 0, 0
    left = (one for given in drawn for one in (given, easier(given)[-1]))
    while some := list(islice(left, _BLOCK)):
        stream = BytesIO(b"".join(json.dumps(one).encode() + b"\n" for one in some))
        for row in read_rows(stream, "lines.jsonl"):
            doc, failure = estimate_row(row, knowledge)
            json.loads(Line(row.number, doc, failure).written())
            wrong = wrong_figures(doc, doc.memory)
            wrong += [f"crash: {failure.message}"] if failure and failure.bug else []
            wrong += [] if failure or doc.parameters else ["neither figures nor a message"]
            refused, bad, count = refused + bool(failure), bad + bool(wrong), count + 1
            _tell(row.given, wrong)
    print(f"{count:,} lines, {refused:,} refused, {bad} do not hold")
    return bad


def of_reports(drawn: Drawn, advisor: Advisor) -> int:
    """Count the reports that do not hold."""
    longest, bad, count = Counter[str](), 0, 0
    for given in drawn:
        try:
            wrong = wrong_with(advisor, given, longest)
        except Exception as failed:  # noqa: BLE001  a crash is what is looked for
            wrong = [f"crash: {type(failed).__name__}: {failed}"]
        bad, count = bad + bool(wrong), count + 1
        _tell(given, wrong)
    print(f"{count:,} requests, {longest['refused']:,} refused, {bad} documents do not hold")
    print(f"most words: {', '.join(f'{name} {longest[name]}' for name in MOST_WORDS)}")
    return bad


def _tell(given: Mapping[str, object], wrong: Iterable[str]) -> None:
    for line in wrong:
        print(f"{given}: {line}")


if __name__ == "__main__":
    sys.exit(main())
