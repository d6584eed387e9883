"""Mutation of a whole rule set: load, check the tests, work out the facts, try the mutants."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from advisor.advice import Advisor
from advisor.errors import RequestError
from advisor.rules.language.model import Rule
from advisor.units import counted
from advisor.workbench.bulk import evaluate_all
from advisor.workbench.cover_views import table
from advisor.workbench.dependencies import find_rules
from advisor.workbench.expectations import scenario_lines
from advisor.workbench.fact_store_files import Origin, Progress, near_facts
from advisor.workbench.mutants import Mutant, mutants_of, read_known, write_known
from advisor.workbench.mutate import Mutation, Suggestion, Survivors, mutate
from advisor.workbench.scenario_file import inline, inline_map, load_scenarios, scenario_folder
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

    ``scenarios`` is by default the folder beside the rules; ``only`` names rules or ladders, none
    for all.

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
        store = near_facts(search.sample, origin, whole=search.accept, progress=progress)
        base = evaluate_all(store, advisor.ruleset)
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


def mutation_text(mutation: Mutation) -> str:
    """Write what became of the mutants."""
    return "\n".join(_text(mutation)) + "\n"


def _text(m: Mutation) -> Iterator[str]:
    rows = [("rule", "killed", "of")]
    rows += [(rule, f"{m.killed.get(rule, 0)}", f"{of}") for rule, of in m.totals.items()]
    yield from table(rows)
    yield ""
    for group in m.survivors:
        yield from _group(group)
        yield ""
    if m.equivalent:
        yield (
            f"No scenario of the {m.sample:,} tells these from the original, "
            f"so no test from it can: {len(m.equivalent)}"
        )
        yield from (f"  {_place(x)}{x.rule.id}: {x.what}" for x in m.equivalent)
        yield ""
    if m.unresolved:
        yield f"Survivors for which no test was looked for, or none holds: {len(m.unresolved)}"
        yield from (f"  {_place(x)}{x.rule.id}: {x.what}" for x in m.unresolved)
        yield ""
    before = f" ({len(m.known):,} by an earlier run)" if m.known else ""
    yield (
        f"{counted(m.tried, 'mutant')}: {m.killed_count:,} killed, "
        f"{m.meaningful - m.killed_count:,} survived, {m.same:,} the same as the original{before}; "
        f"{100 * m.share_of_all:.1f} % killed of all, "
        f"{100 * m.share:.1f} % killed of those that can be"
    )


def _group(group: Survivors) -> Iterator[str]:
    first = group.mutants[0]
    yield f"SURVIVED {_place(first)}{first.rule.id}: {first.what}"
    others = group.mutants[1:]
    yield from (f"         {_place(x)}{x.rule.id}: {x.what}" for x in others)
    where = "in the cases of the rule" if group.suggestion.case else "in a file of rules/scenarios/"
    yield f"  this {where} kills {'them' if others else 'it'}:"
    yield from (f"    {line}" for line in pasted(group.suggestion))


def _place(mutant: Mutant) -> str:
    return f"{mutant.source}: " if mutant.source else ""


def pasted(suggestion: Suggestion) -> Sequence[str]:
    """Give the YAML of a suggested test."""
    if suggestion.case is None:
        assert suggestion.scenario
        return scenario_lines(suggestion.scenario)
    case = suggestion.case
    lines = [
        f"- name: {inline(case.name)}",
        f"  given: {inline_map(case.given)}",
        f"  expect: {inline(suggestion.expect)}",
    ]
    return [*lines, f"  change: {inline_map(case.change)}"] if case.change is not None else lines


def mutation_json(mutation: Mutation) -> str:
    """Give what became of the mutants as data."""
    m = mutation
    made = {
        "schema_version": 1,
        "mutants": m.tried,
        "killed": m.killed_count,
        "survived": m.meaningful - m.killed_count,
        "equivalent": m.same,
        "killed_share": round(m.share, 4),
        "killed_share_of_all": round(m.share_of_all, 4),
        "sample": m.sample,
        "rules": {r: {"killed": m.killed.get(r, 0), "of": of} for r, of in m.totals.items()},
        "survivors": [
            {
                "mutants": [_object(x) for x in group.mutants],
                "paste": "\n".join(pasted(group.suggestion)) + "\n",
            }
            for group in m.survivors
        ],
        "equivalents": [_object(x) for x in (*m.equivalent, *m.known)],
        "not_looked_at": [_object(x) for x in m.unresolved],
    }
    return json.dumps(made, indent=2) + "\n"


def _object(mutant: Mutant) -> Mapping[str, object]:
    at = str(mutant.source) if mutant.source else None
    return {"rule": mutant.rule.id, "what": mutant.what, "kind": mutant.kind, "at": at}
