"""Commands of generated requests, held to the programs' own flags and to the capability table.

    python benchmarks/commands.py                 5,000 requests
    python benchmarks/commands.py --count 500 --seed 7 --write commands.jsonl

Every command of a report, its own and those of its recommendations, is read again as a pasted one
is: flags that the program does not have and values that it does not take are told by what was
dumped from its parser (knowledge/flags). Then what it says of the type of the cache and of the type
it computes in, and the format on these cards, are put to the capability table. Prints what does not
pass, each kind once with its number, and exits 1 where anything does not.

``--write`` keeps each distinct command with its model and card, one JSON object a line, for
``real_parsers.py``, which asks the programs themselves.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from advisor.advice import Advisor
from advisor.errors import RequestError, UserError
from advisor.knowledge.types import Knowledge
from advisor.reading.command_lines import Item, Pasted, read_command
from advisor.runtimes.commands import commands_for
from advisor.scenario import Scenario, support
from advisor.scenario.capability import DTYPES, refusal
from advisor.scenario.settings import request_from

_SOMETIMES = 0.25
_STATED: dict[str, tuple[object, ...]] = {
    "context": (2_048, 8_192, 32_768, 131_072, 1_000_000),
    "batch": (2, 4, 16, 64, 256),
    "ram": ("32GB", "128GB", "512GB"),
    "kv_cache": ("q8_0", "q4_0", "fp8", "fp8_e4m3", "fp8_e5m2"),
    "use": ("chat", "coding"),
    "split": ("layer", "tensor", "dp-attention"),
}
_CACHE = frozenset({"--kv-cache-dtype", "-ctk", "-ctv", "--cache-type-k", "--cache-type-v"})
_UNREAD = "transformers"
"""Its program is Python, which has no flags."""


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=5_000, metavar="N")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--write", type=Path, metavar="FILE")
    asked = parser.parse_args()
    advisor = Advisor.load()
    found: Counter[str] = Counter()
    examples: dict[str, str] = {}
    kept: dict[str, None] = {}
    read = 0
    for given in islice(requests(advisor.knowledge, asked.seed), asked.count):
        for scenario in shown(advisor, given):
            if asked.write:
                kept |= dict.fromkeys(records(scenario))
            for text, problem in problems_of(scenario):
                read += not problem
                if problem:
                    found[problem] += 1
                    examples.setdefault(problem, text)
    print(f"{read:,} commands of {asked.count:,} requests pass; {found.total()} problems")
    if asked.write:
        asked.write.write_text("".join(f"{line}\n" for line in kept), encoding="utf-8")
        print(f"{len(kept):,} distinct ones in {asked.write}")
    for problem, number in found.most_common():
        print(f"{number:6}  {problem}\n        {examples[problem]}")
    return int(bool(found))


def requests(knowledge: Knowledge, seed: int) -> Iterator[dict[str, object]]:
    """Draw requests without end, as many for each runtime; the same for the same seed."""
    rng = random.Random(seed)
    sized = [one for one in knowledge.frameworks.values() if one.sized]
    while True:
        framework = rng.choice(sized)
        cards = [one.name for one in knowledge.gpus.values() if one.vendor in framework.vendors]
        number = rng.choice(("", "", "", "2x ", "3x ", "4x ", "6x ", "8x "))
        drawn: dict[str, object] = {
            "gpu": number + rng.choice(cards), "model": rng.choice(list(knowledge.models)),
            "framework": framework.name,
        }  # fmt: skip
        if rng.random() > _SOMETIMES:
            drawn["precision"] = rng.choice((*framework.formats, "INT8", "INT4"))
        drawn |= {k: rng.choice(v) for k, v in _STATED.items() if rng.random() < _SOMETIMES}
        yield drawn


def easier(given: dict[str, object]) -> Iterator[dict[str, object]]:
    """Give a request, then without what is refused most often, step by step."""
    yield given
    for key in ("split", "kv_cache", "precision", "framework"):
        given = {name: value for name, value in given.items() if name != key}
        yield given


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


def records(scenario: Scenario) -> Iterator[str]:
    """Give each command with what a program would read in the model's folder and of the card."""
    model, precision, shape = scenario.model, scenario.precision, scenario.model.shape
    draft = scenario.draft_model
    for command in commands_for(scenario):
        for gpu in scenario.cards or (scenario.gpu,):
            record = {
                "framework": scenario.framework.name, "program": command.program,
                "text": command.text, "model": model.name,
                "trained": model.trained_context_tokens,
                "config": {**shape.config, "model_type": shape.model_type},
                "outer_type": shape.outer_type, "vision": shape.vision_config,
                "dtype": model.native_dtype, "modality": model.modality,
                "format": precision.name, "published": precision.name in model.native_formats,
                "capability": gpu and gpu.compute_capability, "vendor": gpu and gpu.vendor,
                "architecture": gpu and gpu.architecture, "gpus": scenario.gpus,
                "draft": draft and {**draft.shape.config, "model_type": draft.shape.model_type},
            }  # fmt: skip
            yield json.dumps(record, default=dict)


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
        if why and not {scenario.precision.name, gpu and gpu.architecture} & set(framework.beyond):
            yield why
        for item in pasted.items:
            for about, what in _asked(item):
                if refused := refusal(framework, about, what, gpu, shape):  # type: ignore[arg-type]
                    yield f"{pasted.tool} {' '.join(item.words)}: {refused}"


def _asked(item: Item) -> Iterator[tuple[str, str]]:
    if item.words[:1] and item.words[0] in _CACHE:
        yield "kv_cache", item.value
    if item.words[:1] == ("--dtype",) and item.value in DTYPES:
        yield "dtype", item.value


if __name__ == "__main__":
    raise SystemExit(main())
