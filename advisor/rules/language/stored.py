"""Rules as compact JSON and back, so that a warm start neither parses YAML nor checks it.

Records become lists in field order; a place becomes its line and column, as the file is
the same for a whole rule.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from advisor.errors import Source
from advisor.rules.language.model import (
    Case,
    Disabled,
    Own,
    PerTerm,
    Rule,
    Score,
    Test,
    When,
    WhenTerm,
)

Row = list[object]


def stored(rules: Sequence[Rule], disabled: Sequence[Disabled] = ()) -> dict[str, object]:
    """Give the JSON form."""
    return {
        "rules": [_rule_row(rule) for rule in rules],
        "disabled": [[_rule_row(d.rule), d.reason, _whole_place_row(d.source)] for d in disabled],
    }


def restored(form: Mapping[str, object]) -> tuple[Rule, ...]:
    """Read back what ``stored`` gave."""
    return tuple(_rule(cast("Row", row)) for row in cast("list[object]", form["rules"]))


def restored_disabled(form: Mapping[str, object]) -> tuple[Disabled, ...]:
    """Read back the rules that are switched off."""
    rows = cast("list[tuple[Row, str, Row | None]]", form["disabled"])
    return tuple(Disabled(_rule(rule), reason, _whole_place(at)) for rule, reason, at in rows)


def _rule_row(rule: Rule) -> Row:
    file = rule.source.file if rule.source else ""
    return [
        file,
        [rule.id, rule.why, rule.action, rule.text, rule.veto, rule.note],
        [rule.status, rule.since, rule.replaced_by, rule.reference, rule.ladder],
        _when_row(rule.when),
        dict(rule.conclude),
        _score_row(rule.score) if rule.score else None,
        list(rule.supersedes),
        [_case_row(case) for case in rule.cases],
        _place_row(rule.source),
        [rule.own.replaces, _whole_place_row(rule.own.at)] if rule.own else None,
    ]


def _rule(row: Row) -> Rule:
    file, said, about, when, conclude, score, supersedes, cases, place, own = row
    name = str(file)
    rule_id, why, action, text, veto, note = cast("list[str | None]", said)
    status, since, replaced_by, reference, ladder = cast("list[str | None]", about)
    return Rule(
        rule_id or "",
        why or "",
        _when(cast("Row", when), name),
        cast("dict[str, str | float | bool]", conclude),
        action,
        _score(cast("Row", score), name) if score else None,
        tuple(cast("list[str]", supersedes)),
        text,
        veto,
        note,
        tuple(_case(case, name) for case in cast("list[Row]", cases)),
        status,  # type: ignore[arg-type] # one of the three, as stored
        since,
        replaced_by,
        reference,
        ladder,
        _place(cast("list[int] | None", place), name),
        _own(cast("Row", own)) if own else None,
    )


def _own(row: Row) -> Own:
    return Own(str(row[0]), _whole_place(cast("Row | None", row[1])))


def _whole_place_row(source: Source | None) -> Row | None:
    """A place in a file of its own: what was replaced, what switches off."""
    return [source.file, source.line, source.column] if source else None


def _whole_place(row: Row | None) -> Source | None:
    return Source(*row) if row else None  # type: ignore[arg-type] # as stored


def _place_row(source: Source | None) -> list[int] | None:
    return [source.line, source.column] if source else None


def _place(row: list[int] | None, file: str) -> Source | None:
    return Source(file, row[0], row[1]) if row else None


def _test_row(test: Test) -> Row:
    return [test.fact, test.verb, test.value, test.other, test.text, _place_row(test.source)]


def _test(row: Row, file: str) -> Test:
    value = tuple(row[2]) if isinstance(row[2], list) else row[2]
    return Test(row[0], row[1], value, row[3], row[4], _place(row[5], file))  # type: ignore[arg-type] # as stored


def _tests(rows: object, file: str) -> tuple[Test, ...]:
    return tuple([_test(row, file) for row in cast("list[Row]", rows)])


def _when_row(when: When) -> Row:
    return [
        [_test_row(test) for test in when.tests],
        [[_when_row(block) for block in blocks] for blocks in when.any],
        [_when_row(block) for block in when.none],
    ]


def _when(row: Row, file: str) -> When:
    tests, alternatives, none = row
    return When(
        _tests(tests, file),
        tuple(
            tuple(_when(block, file) for block in blocks)
            for blocks in cast("list[list[Row]]", alternatives)
        ),
        tuple(_when(block, file) for block in cast("list[Row]", none)),
    )


def _score_row(score: Score) -> Row:
    return [
        score.base,
        [[t.fact, t.points, t.per_value, t.text, t.cap, _place_row(t.source)] for t in score.add],
        [[[_test_row(test) for test in t.tests], t.points, t.text] for t in score.when],
    ]


def _score(row: Row, file: str) -> Score:
    base, add, when = cast("tuple[float, list[Row], list[Row]]", row)
    return Score(
        base,
        tuple(_per_term(t, file) for t in add),
        tuple(WhenTerm(_tests(t[0], file), t[1], t[2]) for t in when),  # type: ignore[arg-type] # as stored
    )


def _per_term(row: Row, file: str) -> PerTerm:
    fact, points, per_value, text, cap, place = row
    return PerTerm(fact, points, per_value, text, cap, _place(place, file))  # type: ignore[arg-type] # as stored


def _case_row(case: Case) -> Row:
    change = None if case.change is None else dict(case.change)
    place = _place_row(case.source)
    return [case.name, dict(case.given), case.expect, change, case.rank, case.says, place]


def _case(row: Row, file: str) -> Case:
    name, given, expect, change, rank, says, place = row
    return Case(name, given, expect, change, rank, says, _place(place, file))  # type: ignore[arg-type] # as stored
