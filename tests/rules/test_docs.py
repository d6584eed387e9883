"""The examples of the reference page are rules that load."""

import re
from pathlib import Path

from advisor.knowledge.vocabulary import Vocabulary
from advisor.rules.language.conditions import VERBS
from advisor.units import DIMENSIONS
from tests.parsed_rules import parse_rules

PAGE = (Path(__file__).parents[2] / "docs" / "rule-language.md").read_text(encoding="utf-8")
EXAMPLES = [
    text
    for text in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    if "- r" in text or "- l" in text
]
"""test_pasted.py checks each of them over the built-in rules."""


def test_examples_load_together(vocabulary: Vocabulary) -> None:
    text = re.sub(r"^  replaces: .*\n", "", "".join(EXAMPLES), flags=re.MULTILINE)
    rules = parse_rules({"all.yaml": text.encode()}, vocabulary)
    assert {rule.kind for rule in rules} == {"conclude", "recommend", "veto", "note"}


def test_every_verb_and_dimension_is_explained() -> None:
    for word in (*VERBS, *DIMENSIONS):
        assert word in PAGE or word == "rate"
