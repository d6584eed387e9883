"""Mutation of a whole rule set: load, check the tests, work out the facts, try the mutants."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from advisor.errors import RequestError
from advisor.workbench.bulk import evaluate_all
from advisor.workbench.mutants import mutants_of
from advisor.workbench.mutate import Mutation, mutate
from advisor.workbench.rulenames import find_rules
from advisor.workbench.scenariofile import load_scenarios, scenario_folder
from advisor.workbench.sides import Folders, load_side
from advisor.workbench.storing import Origin, Progress, sampled_facts
from advisor.workbench.trial import trial_of

_SHOWN = 3


def mutated_rules(
    rules: Path | None,
    knowledge: Path | None,
    scenarios: Path | None,
    only: Sequence[str],
    *,
    templates: Path | None = None,
    sample: int,
    limit: int | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Mutation:
    """Try every mutant of every rule, or of the rules named.

    Raises:
        RequestError: A rule is unknown, or a test fails before anything was changed.
        UserError: A file is wrong.
    """
    advisor = load_side(Folders(rules, templates, knowledge)).advisor
    ids = find_rules(advisor.ruleset, list(only)) if only else None
    folder = scenarios or scenario_folder(rules)
    names = advisor.knowledge.names()
    whole = load_scenarios(folder, advisor.vocabulary, advisor.ruleset, names)
    wanted = [rule for rule in advisor.ruleset.rules if ids is None or rule.id in ids]
    trial = trial_of(advisor, [(rule, case) for rule in wanted for case in rule.cases], whole)
    if failing := trial.failing():
        shown = "; ".join(failing[:_SHOWN])
        raise RequestError(
            f"{len(failing)} tests fail with the rules as they are: {shown}",
            hint="Run 'advisor rules test' first.",
        )
    store = sampled_facts(sample, Origin(knowledge, workers=workers), progress=progress)
    mutants = [mutant for rule in wanted for mutant in mutants_of(rule, advisor.vocabulary)]
    return mutate(trial, evaluate_all(store, advisor.ruleset), mutants, limit=limit)
