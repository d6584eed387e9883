"""How fast rules are compared over the catalogue, and how soon a save is answered.

    python benchmarks/workbench.py [--sample N] [--workers N]

Prints, in processor seconds and by the clock: the facts of the sample worked out (unless they are
kept already), one ``rules diff`` against rules with one threshold raised, and what ``rules test
--watch`` does from a saved file to the result.
"""

from __future__ import annotations

import argparse
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

from advisor.advice import Advisor
from advisor.cli.init import write_starter
from advisor.files import data_dir
from advisor.workbench.cases import CaseResult, Runner
from advisor.workbench.comparison import compare_sides
from advisor.workbench.fact_store_files import Origin, sampled_facts
from advisor.workbench.scenario_file import load_scenarios
from advisor.workbench.sides import Folders, base_side, load_side
from advisor.workbench.watch import Session

T = TypeVar("T")
OLD, NEW = "option.quality_loss: at most 12 %", "option.quality_loss: at most 8 %"


def timed(what: str, work: Callable[[], T]) -> T:
    wall, used = time.perf_counter(), time.process_time()
    done = work()
    wall, used = time.perf_counter() - wall, time.process_time() - used
    print(f"{what}: {wall:.2f} s by the clock, {used:.2f} s of this process")
    return done


def edited_rules(folder: Path) -> Path:
    rules = Path(shutil.copytree(data_dir("rules"), folder / "rules"))
    raise_threshold(rules)
    return rules


def raise_threshold(rules: Path) -> None:
    path = rules / "recommend-format.yaml"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace(OLD, NEW), encoding="utf-8")


def compared(sample: int, base: Path) -> None:
    now = Folders()
    new = load_side(now)
    with base_side(str(base), now) as old:
        found, _, _ = compare_sides(old, new, sample)
    print(f"  {found.compared:,} scenarios compared, {len(found.changes):,} reports differ")


def watched(folder: Path) -> None:
    rules = Path(shutil.copytree(data_dir("rules"), folder / "watched"))
    advisor = Advisor.load(rules=rules)
    names = advisor.knowledge.names()
    whole = rules / "scenarios"
    scenarios = load_scenarios(whole, advisor.vocabulary, advisor.ruleset, names)
    session = Session(Runner(advisor), scenarios, rules, whole)
    timed("first run of every test", lambda: list(session.run(None, session.scenarios)))
    raise_threshold(rules)
    results = timed("after a save of a rule", lambda: rerun(session))
    print(f"  {len(results)} tests run again")


def rerun(session: Session) -> list[CaseResult]:
    concerned = session.reload()
    return list(session.run(concerned.rules, concerned.scenarios))


def watched_overlay(folder: Path) -> None:
    """What is run at once after a save of a text and of a card, in a starter folder."""
    house = folder / "house"
    write_starter(house)
    rules, templates, knowledge = (house / kind for kind in ("rules", "templates", "knowledge"))
    advisor = Advisor.load(rules=rules, templates=templates, knowledge=knowledge)
    whole = rules / "scenarios"
    names = advisor.knowledge.names()
    scenarios = load_scenarios(whole, advisor.vocabulary, advisor.ruleset, names)
    session = Session(Runner(advisor, templates=templates), scenarios, rules, whole, knowledge)
    list(session.run(None, session.scenarios))
    for what, path, old, new in (
        ("a text", templates / "notes" / "example-card.md.j2", "book it", "reserve it"),
        ("a card", knowledge / "gpus" / "house.yaml", "48 GiB", "40 GiB"),
    ):
        path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
        results = timed(f"after a save of {what}", lambda: rerun(session))
        print(f"  {len(results)} tests run again")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--sample", type=int, default=20_000)
    parser.add_argument("--workers", type=int, default=None)
    given = parser.parse_args()
    origin = Origin(workers=given.workers)
    store = timed("facts, worked out or read", lambda: sampled_facts(given.sample, origin))
    print(f"  {len(store):,} scenarios, {store.rows:,} what-ifs")
    with TemporaryDirectory() as scratch:
        base = edited_rules(Path(scratch))
        timed("diff, facts kept", lambda: compared(given.sample, base))
        watched(Path(scratch))
        watched_overlay(Path(scratch))


if __name__ == "__main__":
    main()
