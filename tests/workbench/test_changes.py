"""What counts as a change of a report or of a rule, one field at a time."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from advisor.rules import Test, When
from advisor.rules.language.model import Case, PerTerm, Rule, Score, WhenTerm, as_stored
from advisor.workbench.cover import Said, Standing
from advisor.workbench.diff import (
    CHANGES,
    FAIL_ON,
    Change,
    Difference,
    change_between,
    counted,
    edits_between,
)

ONE, TWO = Said("r1", "quantize", "quantize:a", 50.0), Said("r2", "reduce_context", "c:1", 40.0)
REPORT = Standing("fits", (ONE, TWO), ("n1", "n2"), (("v", "cards:2"),))


def kinds(**fields: object) -> tuple[str, ...]:
    change = change_between({}, REPORT, replace(REPORT, **fields))
    return change.kinds if change else ()


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, ()),
        ({"verdict": "tight"}, ("verdict",)),
        ({"recommended": (ONE,)}, ("set",)),
        ({"recommended": (TWO, ONE)}, ("first", "order")),
        ({"recommended": (TWO,)}, ("first", "set")),
        ({"recommended": (replace(ONE, option="quantize:b"), TWO)}, ("first", "set")),
        ({"recommended": (replace(ONE, score=51.0), TWO)}, ()),
        ({"recommended": (replace(ONE, rule="r9"), TWO)}, ()),
        ({"notes": ("n2", "n1")}, ("notes",)),
        ({"barred": (("other", "cards:2"),)}, ()),
        ({"barred": ()}, ("barred",)),
        ({"verdict": "", "recommended": (), "notes": ()}, ("verdict", "first", "set", "notes")),
    ],
)
def test_a_change_is_what_a_reader_would_see(
    fields: dict[str, object], expected: tuple[str, ...]
) -> None:
    assert kinds(**fields) == expected


def test_a_limit_names_the_changes_that_fail() -> None:
    def failing(kind: str) -> set[str]:
        change = Change({}, (kind,), REPORT, REPORT)
        difference = Difference(1, 0, [], [change], [], 0)
        return {limit for limit in FAIL_ON if difference.fails(limit)}

    assert failing("verdict") == {"verdict", "first", "any"}
    assert failing("first") == {"first", "any"}
    assert failing("notes") == {"any"}
    assert not Difference(1, 0, [], [], [], 7).fails("any"), "scores alone fail nothing"


def test_changes_are_counted_the_gravest_first() -> None:
    changes = [Change({}, ("notes", "verdict"), REPORT, REPORT)] * 2
    changes.append(Change({}, ("first",), REPORT, REPORT))
    assert list(counted(changes).items()) == [("verdict", 2), ("first", 1), ("notes", 2)]
    assert list(CHANGES) == sorted(CHANGES, key=CHANGES.index)


# ---- which parts of a rule differ

SCORE = Score(
    50.0,
    (PerTerm("option.cost", -2.0, 1000.0, "-2 per 1000 USD"),),
    (WhenTerm((Test("gpu.laptop", "is", value=True),), 5.0, "gpu.laptop is yes"),),
)
RULE = Rule(
    "r", "why", When((Test("gpu.tdp", "at least", 350.0, text="at least 350 W"),)),
    action="quantize", score=SCORE, supersedes=("s",),
    stored_cases=as_stored([Case("a case", {"gpu": "RTX 4090"}, "fires")]),
)  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "what", "parts"),
    [
        ({"why": "because"}, "words only", ("why",)),
        ({"stored_cases": as_stored([])}, "words only", ("cases",)),
        ({"score": replace(SCORE, base=51.0)}, "edited", ("score",)),
        ({"score": replace(SCORE, when=())}, "edited", ("score",)),
        ({"score": None}, "edited", ("score",)),
        ({"supersedes": ()}, "edited", ("supersedes",)),
        ({"action": "reduce_context"}, "edited", ("action",)),
        (
            {"when": When((Test("gpu.tdp", "at least", 351.0, text="at least 351 W"),))},
            "edited",
            ("conditions",),
        ),
    ],
)
def test_an_edit_is_told_by_its_parts(
    fields: dict[str, object], what: str, parts: tuple[str, ...]
) -> None:
    (edit,) = edits_between({"r": RULE}, {"r": replace(RULE, **fields)})
    assert (edit.rule, edit.what) == ("r", what)
    assert set(parts) <= set(edit.parts)
    assert set(edit.parts) - {"template"} == set(parts)


def test_the_same_condition_in_other_words_is_no_edit() -> None:
    same = When((Test("gpu.tdp", "at least", 350.0, text="at least 0.35 kW"),))
    assert not edits_between({"r": RULE}, {"r": replace(RULE, when=same)})


def test_added_and_removed_rules_are_in_order_of_their_names() -> None:
    found = edits_between({"b": RULE, "c": RULE}, {"a": RULE, "c": RULE})
    assert [(edit.rule, edit.what) for edit in found] == [("a", "added"), ("b", "removed")]
