"""Thousands of a user's rules that fire: how much is done for each, counted."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from advisor.advice import Advisor
from advisor.advice.conclusions import Conclusions
from advisor.advice.projection import numbers_of
from advisor.knowledge.layers import UserEntry
from advisor.knowledge.vocabulary import FactValue, shown_in
from advisor.scenario.settings import Request

RULES = 40
RULE = """\
- rule: house-{0}
  why: It is one of many.
  source: made up
  when:
    model.parameters: at least {1} B
    gpu.bandwidth: below {2} GB/s
    option.family: is quantize
  veto: House rule {0} says no.
  cases:
    - {{name: held, given: {{gpu: RTX 4090, model: llama-3-8b, precision: FP16}}, expect: fires}}
    - {{name: apart, given: {{gpu: RTX 4070, model: all-minilm-l6-v2}}, expect: silent}}
"""


ROUNDS: list[int] = []


class Entries(tuple[UserEntry, ...]):
    """What is the user's, and how often all of it was gone through."""

    __slots__ = ()

    def __iter__(self) -> Iterator[UserEntry]:
        ROUNDS.append(len(self))
        return super().__iter__()


@pytest.fixture(scope="module")
def advisor(tmp_path_factory: pytest.TempPathFactory) -> Advisor:
    folder = tmp_path_factory.mktemp("rules")
    text = "".join(RULE.format(n, round(0.1 + n / RULES, 6), 5000 + n) for n in range(RULES))
    (folder / "many.yaml").write_text(text, encoding="utf-8")
    return Advisor.load(rules=folder)


REQUEST = Request(gpu="RTX 4090", model="phi-3-medium")


def test_why_each_is_barred_is_written_only_where_it_is_shown(
    advisor: Advisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[str] = []

    def shown(unit: str, value: FactValue | None) -> str:
        written.append(unit)
        return shown_in(unit, value)

    monkeypatch.setattr("advisor.advice.conclusions.shown_in", shown)
    found = advisor.advise(REQUEST)
    page = numbers_of(found, reasons=False)
    ours = [item for item in found.not_recommended if item.rule.startswith("house-")]
    assert len(ours) == RULES * len({item.option.key for item in ours}) > 5 * RULES
    short = [item.rule for item in found.not_recommended if "{short}" in veto(advisor, item.rule)]
    assert len(written) < len(ours)
    assert len(written) <= _reasons(found) + 20 * len(short)
    whole = numbers_of(found)
    assert [(item.rule, item.reason) for item in page.not_recommended] == [
        (item.rule, item.reason) for item in whole.not_recommended
    ]
    for item in whole.not_recommended:
        if item.rule.startswith("house-"):
            assert [reason.fact for reason in item.because] == [
                "model.parameters", "gpu.bandwidth", "option.family",
            ]  # fmt: skip
            number = int(item.rule.removeprefix("house-"))
            assert item.because[1].distance == f"{5000 + number - 1008:,} GB/s"


def veto(advisor: Advisor, rule: str) -> str:
    return advisor.ruleset.rule(rule).veto or ""


def _reasons(found: Conclusions) -> int:
    """How many conditions stand behind what is said."""
    notes = sum(len(note.because) for note in found.notes)
    return notes + sum(len(said.because) for said in found.recommendations)


def test_what_is_the_users_is_gone_through_once_for_all_that_is_barred(advisor: Advisor) -> None:
    found = advisor.advise(REQUEST)
    own = Entries(found.provenance.yours)
    document = numbers_of(replace(found, provenance=replace(found.provenance, yours=own)))
    assert len(ROUNDS) <= 2
    ours = [item for item in document.not_recommended if item.rule.startswith("house-")]
    assert all(item.yours and item.yours.name == item.rule for item in ours)
    assert all(item.yours is None for item in document.not_recommended if item not in ours)
