"""Change words of a house at random, and hold ``advisor check`` to its word: green means reports.

    python benchmarks/green.py                        100 changed houses
    python benchmarks/green.py --count 500 --seed 3   more, others

The starter with built-in texts, rules and entries laid over is changed in one to three places:
a word or line is deleted, doubled, swapped with another or misspelt, in any of its files. Reports
of requests that the check does not choose are written in every format and length. Where one fails,
the check must have found an error; where it has not, the house is printed with its number, and
``--only NUMBER`` with the same seed makes it again. Exits 1 when there was one.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import tempfile
import time
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path

from advisor.advice import Advisor
from advisor.advice.preparation import prepare
from advisor.cli.init import write_starter
from advisor.errors import UserError
from advisor.files import data_dir
from advisor.report import FORMATS, Page
from advisor.report.assembly import document
from advisor.report.templates import forget_templates
from advisor.scenario.settings import request_from
from advisor.workbench.house import LENGTHS, House, check_house

sys.path.insert(0, str(Path(__file__).parent))

from kept import keep_built_in

LAID_OVER = (
    "templates/actions/quantize.md.j2",
    "templates/actions/shrink-context.md.j2",
    "templates/report/verdict.md.j2",
    "templates/words.txt",
    "knowledge/policy.yaml",
    "knowledge/second_cards.yaml",
    "knowledge/boards.yaml",
    "knowledge/calibration.yaml",
    "knowledge/models/phi.yaml",
    "rules/fit.yaml",
    "rules/recommend-format.yaml",
)
ASKED: Sequence[Mapping[str, object]] = (
    {"gpu": "RTX 4090", "model": "phi-3-medium", "precision": "FP16"},
    {"gpu": "GeForce RTX 3060 12 GB", "model": "llama-3-8b", "precision": "Q8_0", "ram": 64.0},
    {"gpu": "Example 48 GB card", "model": "phi-3-mini"},
    {"gpu": "M4 Pro:48GB", "model": "qwen2.5-32b", "precision": "Q4_K_M"},
    {"gpu": "2x RTX 3090", "model": "llama-3.1-70b", "framework": "vLLM", "batch": 8},
)
_TOKEN = re.compile(r"[\w.%-]+|[{}:,\[\]|\"'#]")
_MOST_CHANGES = 3


def house_of(folder: Path) -> House:
    """Write the house that is changed."""
    write_starter(folder)
    for name in LAID_OVER:
        source = data_dir("rules").parent / name
        if source.is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(source.read_bytes())
    return House(folder / "rules", folder / "templates", folder / "knowledge")


def changed(text: str, rng: random.Random) -> str:
    """Change one word or line of a file; of one that an earlier change emptied, nothing."""
    if not text.strip():
        return text
    if rng.random() < 0.2:
        lines = text.splitlines(keepends=True)
        at = rng.randrange(len(lines))
        lines[at] = rng.choice(["", lines[at] * 2, rng.choice(lines)])
        return "".join(lines)
    found = [*_TOKEN.finditer(text)]
    one, other = rng.choice(found), rng.choice(found)
    word = one[0]
    at = rng.randrange(len(word))
    new = rng.choice(
        ["", f"{word} {word}", other[0], word[:at] + word[at + 1 :], word[:at] + "x" + word[at:]]
    )
    return text[: one.start()] + new + text[one.end() :]


def damage(folder: Path, rng: random.Random) -> str:
    """Change a house in one to three places; gives the names of the files."""
    files = sorted(p for p in folder.rglob("*") if p.suffix in {".yaml", ".j2", ".txt", ".toml"})
    names: list[str] = []
    for path in rng.choices(files, k=rng.randint(1, _MOST_CHANGES)):
        path.write_text(changed(path.read_text(encoding="utf-8"), rng), encoding="utf-8")
        names.append(path.relative_to(folder).as_posix())
    return ", ".join(names)


def reports(house: House, requests: Sequence[Mapping[str, object]]) -> int:
    """Write reports of requests that the check does not choose; gives how many."""
    advisor = Advisor.load(rules=house.rules, templates=house.templates, knowledge=house.knowledge)
    written = 0
    for asked in requests:
        try:
            ready = prepare(request_from(asked), advisor.knowledge)
        except UserError:  # the house may have switched off or renamed what is asked for
            continue
        doc = document(
            advisor.advise_on(ready, complete=True), templates=house.templates, options=True
        )
        for form in FORMATS.values():
            for length in LENGTHS:
                form.write(Page(doc, length, house.templates))
                written += 1
    return written


def tried(
    number: int, seed: int, requests: Sequence[Mapping[str, object]] = ASKED
) -> tuple[str, int, str]:
    """Change house ``number``: what was changed, reports written, and what the check let pass.

    Where every report comes out, whatever the check says holds; so it is asked where one does not.
    """
    rng = random.Random(f"{seed}/{number}")
    with tempfile.TemporaryDirectory() as scratch:
        house = house_of(Path(scratch) / "house")
        forget_templates()
        what = damage(Path(scratch) / "house", rng)
        try:
            return what, reports(house, requests), ""
        except Exception:  # noqa: BLE001 - whatever it is, a reader would have met it
            failed = traceback.format_exc()
        try:
            red = any(found.is_error for found in check_house(house).problems)
        except Exception:  # noqa: BLE001 - whatever it is, a reader would have met it
            return what, 0, traceback.format_exc()
        return what, 0, "" if red else failed


def main(argv: Sequence[str] | None = None) -> int:
    """Run the drill; gives the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int)
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop after so many")
    given = parser.parse_args(argv)
    keep_built_in()
    numbers = range(given.count) if given.only is None else [given.only]
    done = green = written = failures = 0
    begun = time.monotonic()
    for number in numbers:
        what, count, failed = tried(number, given.seed)
        done += 1
        green += bool(count)
        written += count
        if failed:
            failures += 1
            print(f"{number}: {what}\n{failed}", flush=True)
        took = time.monotonic() - begun
        if done % 20 == 0:
            print(f"{done} in {took:.0f} s, {green} whole", file=sys.stderr)
        if took > given.minutes * 60:
            break
    print(
        f"{done} changed houses, {green} with every report, {written:,} reports, "
        f"{done - green - failures} told by the check, {failures} not told"
    )
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
