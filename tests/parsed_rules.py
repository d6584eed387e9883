"""Rules of a test, parsed and checked without the cache."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from advisor.knowledge.vocabulary import Vocabulary
from advisor.rules.language import Names, parse_set
from advisor.rules.language.model import Rule


def parse_rules(
    contents: Mapping[str, bytes],
    vocabulary: Vocabulary,
    templates: Collection[str] | None = None,
    names: Names | None = None,
) -> tuple[Rule, ...]:
    """Parse files by the names that messages show."""
    return parse_set(contents, vocabulary, templates, names).rules
