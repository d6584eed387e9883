"""Run tests again when a rule file is saved, and only those that the edit concerns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from advisor.engine import make_engine
from advisor.rulefile import load_rules
from advisor.rulefile.model import Rule, RuleSet
from advisor.workbench.cases import CaseResult, Runner
from advisor.workbench.dependencies import reads
from advisor.workbench.diff import edits_between
from advisor.workbench.scenariofile import ScenarioCase, load_scenarios
from advisor.workbench.scenariotext import brought_up_to_date, rewrite

Stamp = Mapping[str, tuple[int, int]]


def stamp(folders: Sequence[Path]) -> Stamp:
    """Note size and time of every YAML file below some folders."""
    found: dict[str, tuple[int, int]] = {}
    for folder in folders:
        for path in sorted(folder.rglob("*.yaml")):
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


class Session(Struct):
    """Rules under test whose facts stay in memory while the rules are edited."""

    runner: Runner
    scenarios: Sequence[ScenarioCase]
    rules: Path | None
    over: Path | None
    folder: Path
    """Of the scenario files."""
    names: Mapping[str, Sequence[str]]
    templates: frozenset[str]

    @property
    def folders(self) -> Sequence[Path]:
        """Where a change is looked for."""
        return (self.rules or self.folder.parent, self.folder)

    def reload(self) -> tuple[frozenset[str], Sequence[ScenarioCase]]:
        """Read the files again.

        Returns:
            The rules whose cases must run again, and the scenarios: all if a rule changed, else
            those that are not as they were.

        Raises:
            UserError: A file is wrong; the session stays as it was.
        """
        advisor = self.runner.advisor
        ruleset = load_rules(
            self.rules,
            vocabulary=advisor.vocabulary,
            templates=self.templates,
            names=self.names,
            over=self.over,
        )
        scenarios = load_scenarios(self.folder, advisor.vocabulary, ruleset, self.names)
        engine = make_engine(ruleset, prefer="reference")
        concerned = frozenset(concerned_by_edit(advisor.ruleset, ruleset))
        same = {_unplaced(scenario) for scenario in self.scenarios}
        changed = [s for s in scenarios if concerned or _unplaced(s) not in same]
        self.runner.advisor = replace(advisor, ruleset=ruleset, engine=engine)
        self.scenarios = scenarios
        return concerned, changed

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
