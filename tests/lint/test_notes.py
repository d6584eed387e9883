"""What a check says of notes and of long lists of names."""

from __future__ import annotations

from advisor.advice import Advisor
from tests.lint.conftest import Check

RULE = """
- rule: {name}
  why: A card that draws so much needs airflow.
  source: none
  when: {{gpu.tdp: above {watts} W}}
  note: "{note}"
  cases:
    - {{name: hot, given: {{gpu: RTX 4090, model: phi-3-mini, precision: FP16}}, expect: fires}}
    - {{name: cool, given: {{gpu: RTX 4060, model: phi-3-mini, precision: FP16}}, expect: silent}}
"""


def rule(name: str, watts: int, note: str) -> str:
    return RULE.format(name=name, watts=watts, note=note)


def test_a_note_that_another_one_says_too_is_told(check: Check) -> None:
    one, other = rule("hot", 300, "Mind it."), rule("hotter", 350, "Mind it.")
    (found,) = check(a=one + other)
    assert (found.lint.id, "wherever 'hotter' fires, 'hot' fires too" in found.text) == (
        "implied-by",
        True,
    )
    assert not check(a=one + rule("hotter", 350, "Mind it more."))


def test_a_note_names_facts_of_the_request(check: Check) -> None:
    assert not check(a=rule("hot", 300, "It draws {gpu.tdp} of {memory.capacity}."))
    for text, lint in (
        ("{gpu.tpd}", "unknown-fact"),
        ("{short}", "unused-placeholder"),
        ("{its power}", "unused-placeholder"),
        ("{option.required}", "unused-placeholder"),
    ):
        assert {found.lint.id for found in check(a=rule("hot", 300, f"It draws {text}."))} == {lint}


def test_a_list_that_not_turns_round_may_be_long(advisor: Advisor, check: Check) -> None:
    names = [name for name in advisor.knowledge.models if "," not in name and ":" not in name][:60]
    others = ", ".join(name for name in names if name != "Phi-3-mini-4k-instruct")
    text = rule("hot", 300, "Mind it.").replace(
        "when: {gpu.tdp: above 300 W}",
        f'when:\n    gpu.tdp: above 300 W\n    not: {{model.name: "one of {others}"}}',
    )
    assert not check(a=text)


def test_memory_of_all_cards_is_stated_as_sold(check: Check) -> None:
    text = rule("small", 300, "Mind it.").replace(
        "gpu.tdp: above 300 W", "memory.capacity: at most 48 GB"
    )
    text = text.replace("gpu: RTX 4090", "gpu: 2x RTX 4090, split: layer").replace(
        "gpu: RTX 4060", "gpu: 3x RTX 4090, split: layer"
    )
    assert not check(a=text)
