"""Mutation results as text and JSON, with cases to paste."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from advisor.workbench.layout import count, inline, inline_map, table
from advisor.workbench.mutants import Mutant
from advisor.workbench.mutate import Mutation, Suggestion, Survivors
from advisor.workbench.scenario_text import scenario_lines


def mutation_text(mutation: Mutation, *, rules: bool = True) -> str:
    """Write what became of the mutants; ``rules`` adds a line for each rule."""
    return "\n".join(_text(mutation, rules=rules)) + "\n"


def _text(m: Mutation, *, rules: bool) -> Iterator[str]:
    if rules:
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
        yield f"Survivors for which no test was looked for: {len(m.unresolved)}"
        yield from (f"  {_place(x)}{x.rule.id}: {x.what}" for x in m.unresolved)
        yield ""
    before = f" ({len(m.known):,} by an earlier run)" if m.known else ""
    yield (
        f"{count(m.tried, 'mutant')}: {m.killed_count:,} killed, "
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
