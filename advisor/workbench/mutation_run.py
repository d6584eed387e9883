"""Mutation of a whole rule set: load, check the tests, work out the facts, try the mutants."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from advisor.advice.pipeline import Advisor
from advisor.errors import RequestError
from advisor.rules.language.model import Rule
from advisor.workbench.bulk import evaluate_all
from advisor.workbench.equivalents import read_known, write_known
from advisor.workbench.fact_store_files import Origin, Progress, sampled_facts
from advisor.workbench.mutants import mutants_of
from advisor.workbench.mutate import Mutation, mutate
from advisor.workbench.rule_names import find_rules
from advisor.workbench.scenario_file import load_scenarios, scenario_folder
from advisor.workbench.sides import Folders, load_side
from advisor.workbench.trial import Trial, trial_of

_SHOWN = 3


class Search(Struct, frozen=True):
    """How tests are looked for that kill what survives."""

    sample: int
    """Scenarios of the catalogue among which they are looked for."""
    limit: int | None = None
    """Look for at most so many; with 0 no sample is needed."""
    known: Path | None = None
    """A file of equivalents, see ``equivalents``."""
    accept: bool = False
    """Look for everything again and write the equivalents into that file."""
    workers: int | None = None
    """Processes that work out facts."""


def mutated_rules(
    folders: Folders,
    scenarios: Path | None,
    only: Sequence[str],
    search: Search,
    progress: Progress | None = None,
) -> Mutation:
    """Try every mutant of every rule, or of the rules named.

    Args:
        folders: Rules, templates and knowledge over the built-in ones.
        scenarios: A folder of scenario files; by default the one beside the rules.
        only: Rules or ladders; all when empty.
        search: How tests are looked for.
        progress: Told how many facts were worked out.

    Raises:
        RequestError: A rule is unknown, or a test fails before anything was changed.
        UserError: A file is wrong.
    """
    advisor = load_side(folders).advisor
    ids = find_rules(advisor.ruleset, list(only)) if only else None
    wanted = [rule for rule in advisor.ruleset.rules if ids is None or rule.id in ids]
    trial = _trial(advisor, wanted, scenarios or scenario_folder(folders.rules))
    base = None
    if search.limit != 0:
        origin = Origin(folders.knowledge, workers=search.workers)
        base = evaluate_all(
            sampled_facts(search.sample, origin, progress=progress), advisor.ruleset
        )
    known = read_known(search.known) if search.known and not search.accept else None
    mutants = [mutant for rule in wanted for mutant in mutants_of(rule, advisor.vocabulary)]
    result = mutate(trial, base, mutants, known=known, limit=search.limit)
    if search.known and search.accept:
        write_known(search.known, result.equivalent, {rule.id for rule in wanted})
    return result


def _trial(advisor: Advisor, rules: Sequence[Rule], scenarios: Path) -> Trial:
    """Make the tests ready.

    Raises:
        RequestError: One fails with the rules as they are.
    """
    names = advisor.knowledge.names()
    whole = load_scenarios(scenarios, advisor.vocabulary, advisor.ruleset, names)
    trial = trial_of(advisor, [(rule, case) for rule in rules for case in rule.cases], whole)
    if failing := trial.failing():
        shown = "; ".join(failing[:_SHOWN])
        raise RequestError(
            f"{len(failing)} tests fail with the rules as they are: {shown}",
            hint="Run 'advisor rules test' first.",
        )
    return trial
