"""Commands of generated requests, held to the programs' own flags and to the capability table.

    python benchmarks/commands.py                 2,000 requests
    python benchmarks/commands.py --count 5000 --seed 7

Every command of a report, its own and those of its recommendations, is read again as a pasted one
is: flags that the program does not have and values that it does not take are told by what was
dumped from its parser (knowledge/flags). Then what it says of the type of the cache and of the type
it computes in, and the format on these cards, are put to the capability table. Prints what does not
pass, each kind once with its number, and exits 1 where anything does not.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from advisor.advice.pipeline import Advisor
from advisor.errors import RequestError, UserError
from advisor.reading.command_lines import Item, Pasted, read_command
from advisor.runtimes.commands import commands_for
from advisor.scenario import support
from advisor.scenario.capability import DTYPES, refusal
from advisor.scenario.scenario import Scenario
from advisor.scenario.settings import request_from

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.report.generated import easier, requests

_CACHE = frozenset({"--kv-cache-dtype", "-ctk", "-ctv", "--cache-type-k", "--cache-type-v"})
_UNREAD = "transformers"
"""Its program is Python, which has no flags."""


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=2_000, metavar="N")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    advisor = Advisor.load()
    found: Counter[str] = Counter()
    examples: dict[str, str] = {}
    read = 0
    for given in islice(requests(advisor.knowledge, asked.seed), asked.count):
        for scenario in shown(advisor, given):
            for text, problem in problems_of(scenario):
                read += not problem
                if problem:
                    found[problem] += 1
                    examples.setdefault(problem, text)
    print(f"{read:,} commands of {asked.count:,} requests pass; {found.total()} problems")
    for problem, number in found.most_common():
        print(f"{number:6}  {problem}\n        {examples[problem]}")
    return int(bool(found))


def shown(advisor: Advisor, given: dict[str, object]) -> Iterator[Scenario]:
    """Give what a report has commands for; nothing where even the plainest request is refused."""
    for one in easier(given):
        try:
            advice = advisor.advise(request_from(one))
        except UserError:
            continue
        yield advice.scenario
        yield from (ranked.option.scenario for ranked in advice.recommendations)
        return


def problems_of(scenario: Scenario) -> Iterator[tuple[str, str]]:
    """Give each command of a scenario with what is wrong with it; empty where it passes."""
    if scenario.framework.name == _UNREAD:
        return
    for command in commands_for(scenario):
        try:
            pasted = read_command(command.text)
        except RequestError as error:
            yield command.text, f"cannot be read: {error}"
            continue
        wrong = [*_of_parser(pasted), *_of_table(pasted, scenario)]
        yield from ((command.text, problem) for problem in wrong or [""])


def _of_parser(pasted: Pasted) -> Iterator[str]:
    yield from (f"{pasted.tool} has no flag {one.name}" for one in pasted.unknown)
    yield from (f"{pasted.tool}: {text}" for text in pasted.wrong)


def _of_table(pasted: Pasted, scenario: Scenario) -> Iterator[str]:
    framework, shape = scenario.framework, scenario.model.shape
    for gpu in scenario.cards or (scenario.gpu,):
        why = support.why_not(framework, scenario.precision, gpu, scenario.model)
        if why and scenario.precision.name not in framework.beyond:
            yield why
        for item in pasted.items:
            for about, what in _asked(item):
                if refused := refusal(framework, about, what, gpu, shape):  # type: ignore[arg-type]
                    yield f"{pasted.tool} {' '.join(item.words)}: {refused}"


def _asked(item: Item) -> Iterator[tuple[str, str]]:
    if item.words[0] in _CACHE:
        yield "kv_cache", item.value
    if item.words[0] == "--dtype" and item.value in DTYPES:
        yield "dtype", item.value


if __name__ == "__main__":
    raise SystemExit(main())
