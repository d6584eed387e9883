"""The page docs/placeholders.md: what templates may name, from knowledge/facts.yaml.

``python -m tests.report.placeholder_lists`` writes it anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from advisor.knowledge.vocabulary import OPTION, FactType, load_vocabulary

PAGE = Path(__file__).parents[2] / "docs" / "placeholders.md"


def page() -> str:
    """Write the page."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    vocabulary = load_vocabulary()
    yield "# What templates may name"
    yield ""
    yield "Facts, under the names that rules have for them, and phrases that no rule reads."
    yield "[Templates](templates.md) says where they may stand."
    parts = (
        ("Of the situation (actions, notes, report)", lambda one: one.group not in {OPTION, ""}),
        ("Of one change (actions, report)", lambda one: one.group == OPTION),
        ("Parts of the report (report)", lambda one: not one.group),
    )
    named = vocabulary.named_in("report")
    for title, among in parts:
        yield from ("", f"## {title}", "", "| name | unit | holds |", "|---|---|---|")
        yield from (_line(one) for one in named.values() if among(one))


def _line(one: FactType) -> str:
    what = one.unit or {"flag": "yes or empty", "enum": "a word"}.get(one.kind, "")
    if one.values:
        what = ", ".join(one.values)
    return f"| `{one.name}` | {what} | {one.help} |"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
