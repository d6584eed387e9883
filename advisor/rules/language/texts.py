"""Which template a rule's advice or remark is written with."""

from __future__ import annotations

from collections.abc import Mapping

from advisor.rules.language.model import Rule

SUFFIX = ".md.j2"


def text_of(rule: Rule) -> str:
    """Name the template of a rule, as ``actions/quantize.md.j2``; empty where it needs none."""
    if rule.action:
        return f"actions/{rule.text or rule.action + SUFFIX}"
    return f"notes/{rule.text}" if rule.kind == "note" and rule.text else ""


def text_name(rule: Rule) -> str:
    """Name the text of a rule without folder and ending, as experts speak of it."""
    return text_of(rule).partition("/")[2].removesuffix(SUFFIX)


def text_names(files: Mapping[str, bytes]) -> frozenset[str]:
    """The texts that rules may name: everything in actions/ and notes/."""
    paths = (name.split("/") for name in files)
    return frozenset(path[-1] for path in paths if path[0] in {"actions", "notes"})
