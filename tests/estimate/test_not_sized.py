"""The known models that no figure is given for: one sentence each, and no other among them."""

from __future__ import annotations

from pathlib import Path

from advisor.errors import UserError
from advisor.estimator import estimate_memory
from advisor.knowledge import load_knowledge
from advisor.scenario.resolve import resolve
from advisor.scenario.settings import Request

PAGE = Path(__file__).parents[2] / "docs" / "memory-accuracy.md"
NOT_SIZED = {
    "grok-1": "of architecture 'grok-1', which advisor cannot size yet",
}


def refusals() -> dict[str, str]:
    known, found = load_knowledge(), {}
    for name in known.models:
        try:
            estimate_memory(resolve(Request(model=name), known), known)
        except UserError as error:
            found[name] = str(error)
    return found


def test_every_other_known_model_is_sized_and_these_say_what_is_missing() -> None:
    found = refusals()
    assert set(found) == set(NOT_SIZED)
    for name, reason in NOT_SIZED.items():
        assert reason in found[name]
        assert "\n" not in found[name]


def test_the_page_says_why() -> None:
    section = PAGE.read_text(encoding="utf-8").split("## Models that are known and not sized")[1]
    assert all(name in section for name in NOT_SIZED)
