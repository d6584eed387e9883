"""Run tests again when a file is saved: what the edit concerns, and that first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from advisor.advice import Advisor
from advisor.files import data_dir
from advisor.knowledge.layers import Stack, stack
from advisor.knowledge.types import Knowledge
from advisor.report.templates import forget_templates
from advisor.rules.language.model import Rule, RuleSet
from advisor.scenario import Scenario
from advisor.workbench.cases import CaseResult, Runner
from advisor.workbench.dependencies import reads
from advisor.workbench.diff import edits_between
from advisor.workbench.expectations import brought_up_to_date, rewrite
from advisor.workbench.scenario_file import ScenarioCase, load_scenarios

Stamp = Mapping[str, tuple[int, int]]
_READ = frozenset({".yaml", ".yml", ".csv", ".j2", ".txt"})
_MOST_SOON = 40
"""Cases that name an edited entry of knowledge and are run before the rest."""


def stamp(folders: Sequence[Path]) -> Stamp:
    """Note size and time of every file below some folders that tests depend on."""
    found: dict[str, tuple[int, int]] = {}
    for folder in folders:
        for path in sorted(p for p in folder.rglob("*") if p.suffix in _READ):
            try:
                state = path.stat()
            except OSError:
                continue
            found[str(path)] = (state.st_mtime_ns, state.st_size)
    return found


def until_changed(folders: Sequence[Path], before: Stamp, wait: Callable[[], object]) -> Stamp:
    """Wait until a file differs; ``wait`` passes the time between two looks."""
    while (now := stamp(folders)) == before:
        wait()
    return now


class Concerned(Struct, frozen=True):
    """What an edit may have changed."""

    rules: frozenset[str] = frozenset()
    """Their cases run at once."""
    scenarios: Sequence[ScenarioCase] = ()
    later: frozenset[str] = frozenset()
    """Their cases run after that; not empty where all facts must be worked out again."""
    texts: bool = False
    """Whether a template or a word was edited."""


class Session(Struct):
    """Rules under test whose facts stay in memory while files are edited."""

    runner: Runner
    scenarios: Sequence[ScenarioCase]
    rules: Stack
    folder: Path
    """Of the scenario files."""
    knowledge: Stack = None

    @property
    def folders(self) -> Sequence[Path]:
        """Where a change is looked for."""
        folders = (self.runner.templates, self.knowledge)
        kinds: tuple[Literal["templates", "knowledge"], ...] = ("templates", "knowledge")
        others = [stack(of) or (data_dir(kind),) for of, kind in zip(folders, kinds, strict=True)]
        rules = stack(self.rules) or (self.folder.parent,)
        return (*rules, self.folder, *(folder for of in others for folder in of))

    def reload(self) -> Concerned:
        """Read the files again.

        Returns:
            What must run again. A rule: its cases, those of rules that read what it concludes,
            and all scenarios. A text: cases that ask for words. Knowledge: everything.

        Raises:
            UserError: A file is wrong, every problem; the session stays as it was.
        """
        old = self.runner.advisor
        new = Advisor.load(
            rules=self.rules,
            templates=self.runner.templates,
            knowledge=self.knowledge,
            engine="reference",
        )
        scenarios = load_scenarios(self.folder, new.vocabulary, new.ruleset, new.knowledge.names())
        concerned = frozenset(concerned_by_edit(old.ruleset, new.ruleset))
        texts = old.templates_sha256 != new.templates_sha256
        if texts:
            forget_templates()
            concerned |= {rule.id for rule in new.ruleset.rules if _asks_for_words(rule)}
        same = {_unplaced(scenario) for scenario in self.scenarios}
        changed = [s for s in scenarios if concerned or _unplaced(s) not in same]
        later: frozenset[str] = frozenset()
        if old.knowledge.sha256 != new.knowledge.sha256 or old.vocabulary != new.vocabulary:
            concerned, later = self._soon_and_later(new)
            changed = list(scenarios)
        self.runner.advisor = new
        self.scenarios = scenarios
        return Concerned(concerned, changed, later, texts)

    def _soon_and_later(self, new: Advisor) -> tuple[frozenset[str], frozenset[str]]:
        """Put first what the user wrote, then a few cases that name what was edited."""
        soon = {rule.id for rule in new.ruleset.user_rules}
        edited = _edited_names(self.runner.advisor.knowledge, new.knowledge)
        left = _MOST_SOON
        for rule in new.ruleset.rules:
            if left > 0 and rule.id not in soon and self._names(rule, edited):
                left -= len(rule.cases)
                soon.add(rule.id)
        return frozenset(soon), frozenset(new.ruleset.by_id) - soon

    def _names(self, rule: Rule, edited: frozenset[str]) -> bool:
        """Whether a case that was asked before is about an edited entry."""
        facts = [self.runner.known_facts(case.given) for case in rule.cases]
        names = {name for ready in facts if ready for name in _names_in(ready.base.scenario)}
        return bool(names & edited)

    def accept(self) -> int:
        """Write what is seen now into the scenarios that fail, and give their number.

        One that has no report, as its input is refused or the rules give no answer, stays.
        """
        advisor = self.runner.advisor
        changed = {}
        for number, scenario in enumerate(self.scenarios):
            seen = None if self.runner.scenario(scenario).ok else self.runner.seen(scenario)
            if seen is not None:
                changed[number] = brought_up_to_date(scenario, seen, advisor.vocabulary)
        return rewrite(self.folder, changed, self.scenarios)

    def run(
        self, rules: frozenset[str] | None, scenarios: Sequence[ScenarioCase]
    ) -> Iterator[CaseResult]:
        """Run cases of these rules, or of all, and these scenarios."""
        yield from self.runner.cases(rules)
        yield from self.runner.scenarios(scenarios)


def _edited_names(old: Knowledge, new: Knowledge) -> frozenset[str]:
    """Name the cards, models and so on that differ."""
    tables = (
        (old.gpus, new.gpus),
        (old.models, new.models),
        (old.formats, new.formats),
        (old.frameworks, new.frameworks),
    )
    return frozenset(
        name
        for before, after in tables
        for name in {*before, *after}
        if before.get(name) != after.get(name)
    )


def _names_in(scenario: Scenario) -> Iterator[str]:
    parts = (scenario.gpu, scenario.model, scenario.precision, scenario.framework)
    return (part.name for part in parts if part is not None)


def _asks_for_words(rule: Rule) -> bool:
    return any(case.says is not None for case in rule.cases)


def _unplaced(scenario: ScenarioCase) -> str:
    return repr(replace(scenario, source=None))


def concerned_by_edit(old: RuleSet, new: RuleSet) -> Iterator[str]:
    """Name the rules that differ, and those that read what they conclude.

    A case may ask for a rank, which any other recommendation can move; rules with such cases are
    named too.
    """
    edits = edits_between(old.by_id, new.by_id)
    open_ = {edit.rule for edit in edits}
    concerned: set[str] = set()
    while open_:
        concerned |= open_
        facts = {fact for rule_id in open_ for fact in _concluded(rule_id, old, new)}
        open_ = {rule.id for rule in new.rules if reads(rule) & facts} - concerned
    if concerned:
        concerned |= {rule.id for rule in new.rules if _ranks(rule)}
    return (rule.id for rule in new.rules if rule.id in concerned)


def _concluded(rule_id: str, *sets: RuleSet) -> Iterator[str]:
    for rules in sets:
        if rule_id in rules.by_id:
            yield from rules.by_id[rule_id].conclude


def _ranks(rule: Rule) -> bool:
    return any(case.rank is not None for case in rule.cases)
