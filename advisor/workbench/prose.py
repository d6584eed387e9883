"""Which reports read otherwise when templates changed and nothing else did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import unified_diff

from msgspec import Struct
from msgspec.structs import replace

from advisor.report.assembly import document
from advisor.report.pages import render_markdown
from advisor.rules.language.model import RuleSet
from advisor.scenario.request_data import request_from
from advisor.workbench.outcomes import Standing
from advisor.workbench.sample import Given
from advisor.workbench.sides import Side

MOST_READ = 200
"""Reports that are written out on both sides."""
_MOST_LINES = 12


class Reworded(Struct, frozen=True):
    """A report whose words differ."""

    request: Given
    lines: Sequence[str]
    """The first lines that differ, as a diff."""


class Prose(Struct, frozen=True):
    """What changed templates do."""

    templates: Sequence[str]
    """Files that differ."""
    concerned: int
    """Reports of the sample that use one of them."""
    read: int
    """Of those, how many were written out."""
    reworded: Sequence[Reworded]


def changed_templates(old: Side, new: Side) -> Sequence[str]:
    """Name the templates that differ."""
    names = sorted(old.templates.keys() | new.templates.keys())
    return [name for name in names if old.templates.get(name) != new.templates.get(name)]


def compare_prose(
    old: Side, new: Side, requests: Sequence[Given], reports: Mapping[int, Standing]
) -> Prose:
    """Write reports out on both sides and compare the words.

    Args:
        old: The base.
        new: What is there now.
        requests: The sample.
        reports: What the new side says in each scenario.
    """
    names = changed_templates(old, new)
    numbers = [n for n, report in reports.items() if _uses(names, report, new.advisor.ruleset)]
    step = max(1, len(numbers) // MOST_READ)
    read = numbers[::step][:MOST_READ]
    reworded = []
    for number in read:
        before, after = _written(old, requests[number]), _written(new, requests[number])
        if before != after:
            lines = [*unified_diff(before, after, "before", "after", n=0, lineterm="")][2:]
            wanted = [line for line in lines if not line.startswith("@@")]
            reworded.append(Reworded(requests[number], wanted[:_MOST_LINES]))
    return Prose(names, len(numbers), len(read), reworded)


def _uses(names: Sequence[str], report: Standing, ruleset: RuleSet) -> bool:
    """Whether a report uses one of these files; a skeleton or macro is used by all."""
    rules = [said.rule for said in report.recommended] + list(report.notes)
    own = {ruleset.by_id[rule].text for rule in rules}
    folders = {"actions", "notes"}
    return any(n.split("/")[0] not in folders or n.split("/")[-1] in own for n in names)


def _written(side: Side, given: Given) -> list[str]:
    advice = side.advisor.advise(request_from(given))
    same = replace(advice.provenance, rules_sha256="", knowledge_sha256="", templates_sha256="")
    doc = document(replace(advice, provenance=same), templates=side.folders.templates)
    return render_markdown(doc, length="full", templates=side.folders.templates).splitlines()
