"""The words of reports on two sides, provenance left out: which differ, and through what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from difflib import unified_diff
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec import Struct, field
from msgspec.structs import replace

from advisor.advice.document import Advice
from advisor.errors import UserError
from advisor.report.assembly import document
from advisor.report.pages import render_markdown
from advisor.report.text import render_text
from advisor.rules.language.model import RuleSet
from advisor.scenario.settings import request_from
from advisor.workbench.causes import TOGETHER, Cause, changed_templates, mixed
from advisor.workbench.fact_store import Given
from advisor.workbench.outcomes import Standing
from advisor.workbench.sides import Side

MOST_READ = 200
"""Reports that are written out on both sides."""
_MOST_FIGURES = 30
"""The same where it is not texts that differ, so that any report may."""
_MOST_TRIED = 6
"""Reports that are written again with one change left out."""
_MOST_LINES = 12
_WIDE = 1_000
"""Characters of a line of text, so that a word does not move others."""
Pages = tuple[list[str], list[str]]


class Reworded(Struct, frozen=True):
    """A report whose words differ."""

    request: Given
    lines: Sequence[str]
    """The first lines that differ, as a diff."""
    causes: Sequence[str] = ()
    """Through what, as far as it was tried."""


class Prose(Struct, frozen=True):
    """What changed texts, words, rules and entries do to the words of reports."""

    templates: Sequence[str]
    """Files that differ."""
    concerned: int
    """Reports of the sample whose words may differ."""
    read: int
    """Of those, how many were written out."""
    reworded: Sequence[Reworded]

    @property
    def causes(self) -> Mapping[str, int]:
        """Cause -> reports in which it was established."""
        found = Counter(cause for item in self.reworded for cause in item.causes)
        return dict(found.most_common())

    @property
    def tried(self) -> int:
        """Of the reports that read otherwise, in how many causes were looked for."""
        return sum(bool(item.causes) for item in self.reworded)


def compare_prose(
    old: Side,
    new: Side,
    requests: Sequence[Given],
    reports: Mapping[int, Standing],
    causes: Sequence[Cause],
) -> Prose | None:
    """Write reports out on both sides and compare the words; None where they cannot differ.

    Args:
        old: The base.
        new: What is there now.
        requests: The sample.
        reports: What the new side says in each scenario that is decided the same.
        causes: What differs between the sides.
    """
    anywhere = [one for one in causes if one.what in {"word", "knowledge"} or one.reworded]
    names = changed_templates(old, new)
    if not names and not anywhere:
        return None
    rules = new.advisor.ruleset
    numbers = [n for n, report in reports.items() if anywhere or _uses(names, report, rules)]
    most = MOST_READ if names else _MOST_FIGURES
    read = numbers[:: max(1, len(numbers) // most)][:most]
    with TemporaryDirectory(prefix="advisor-words-") as scratch:
        trial = _Trial(old, new, causes, Path(scratch))
        found = [one for number in read for one in trial.reworded(requests[number])]
    return Prose(names, len(numbers), len(read), found)


def _uses(names: Sequence[str], report: Standing, ruleset: RuleSet) -> bool:
    """Whether a report uses one of these files; a skeleton or macro is used by all."""
    rules = [said.rule for said in report.recommended] + list(report.notes)
    own = {ruleset.by_id[rule].text for rule in rules}
    folders = {"actions", "notes"}
    return any(n.split("/")[0] not in folders or n.split("/")[-1] in own for n in names)


class _Trial(Struct):
    """Two sides, and what differs between them."""

    old: Side
    new: Side
    causes: Sequence[Cause]
    scratch: Path
    made: dict[str, Side | None] = field(default_factory=dict)
    tried: int = 0

    def reworded(self, given: Given) -> Iterator[Reworded]:
        """Compare the words of one report."""
        before, after = written(self.old, given), written(self.new, given)
        if before != after:
            pages = next(both for both in zip(before, after, strict=True) if both[0] != both[1])
            lines = [*unified_diff(*pages, "before", "after", n=0, lineterm="")][2:]
            wanted = [line for line in lines if not line.startswith("@@")]
            yield Reworded(given, wanted[:_MOST_LINES], self._through(given, before, after))

    def _through(self, given: Given, before: Pages, after: Pages) -> Sequence[str]:
        if len(self.causes) == 1:
            return [self.causes[0].name]
        self.tried += 1
        if self.tried > _MOST_TRIED:
            return ()
        left_out = self._each(self.new, self.old, given, after)
        return left_out or self._each(self.old, self.new, given, before) or [TOGETHER]

    def _each(self, base: Side, other: Side, given: Given, said: Pages) -> Sequence[str]:
        """Name the causes without which, or with which, these words would be others."""
        found = []
        for cause in self.causes:
            side = self._mixed(base, other, cause)
            pages = _written_or_none(side, given) if side else None
            if pages is not None and pages != said:
                found.append(cause.name)
        return found

    def _mixed(self, base: Side, other: Side, cause: Cause) -> Side | None:
        """Exchange one thing, once for all reports."""
        key = f"{cause.name} {'old' if base is self.old else 'new'}"
        if key not in self.made:
            folder = self.scratch / str(len(self.made))
            self.made[key] = mixed(base, other, cause, folder)
        return self.made[key]


def _written_or_none(side: Side, given: Given) -> Pages | None:
    try:
        return written(side, given)
    except (UserError, KeyError):
        return None


def written(side: Side, given: Given) -> Pages:
    """Write a report, as a page and as text, without what it says of where it comes from."""
    advice = side.advisor.advise(request_from(given))
    templates = side.folders.templates
    doc = anonymous(document(advice, templates=templates))
    page = render_markdown(doc, length="full", templates=templates)
    text = render_text(doc, width=_WIDE, length="full", templates=templates)
    return page.splitlines(), text.splitlines()


def anonymous(doc: Advice) -> Advice:
    """Take out whose the rules, texts and entries are that a report rests on."""
    made = replace(doc.provenance, rules_sha256="", knowledge_sha256="", templates_sha256="")
    return replace(
        doc,
        provenance=replace(made, yours=(), switched_off=()),
        recommendations=[replace(one, yours=None) for one in doc.recommendations],
        notes=[replace(one, yours=None) for one in doc.notes],
        not_recommended=[replace(one, yours=None) for one in doc.not_recommended],
    )
