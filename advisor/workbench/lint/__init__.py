"""Checks of rule files: what is wrong, how it is reported and how it is put right."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from msgspec import Struct, field

from advisor.advice import Advisor
from advisor.advice.conclusions import provenance_line
from advisor.advice.partial_load import Readable, read_all
from advisor.advice.preparation import all_option_facts
from advisor.advice.projection import QUOTED_FACTS
from advisor.errors import RequestError, RuleFileError, UserError
from advisor.files import data_dir
from advisor.knowledge.layers import Stack, UserFiles, stack
from advisor.knowledge.types import Knowledge
from advisor.knowledge.vocabulary import Vocabulary
from advisor.rules.language.model import Case, Places, Rule, RuleSet, openable
from advisor.scenario.resolve import resolve
from advisor.scenario.settings import request_from
from advisor.workbench.cases import CaseResult, Runner
from advisor.workbench.cover import VERDICT
from advisor.workbench.expectations import key_of, prepared, refusal
from advisor.workbench.fact_store import FactStore, Part, joined
from advisor.workbench.fact_store_files import Origin, Progress, sampled_facts
from advisor.workbench.lint.logic import look_at, look_at_each, look_at_words
from advisor.workbench.lint.problem import Problem, in_order, problem, problems_of
from advisor.workbench.lint.trials import look_at_tried, try_rules, without_verdict
from advisor.workbench.scenario_file import FOLDER, ScenarioCase, scenario_folder, scenarios_as_far
from advisor.workbench.trial import trial_of

_QUOTED = re.compile(r"'([^']+)'")


def refused_cases(
    rules: Sequence[Rule], knowledge: Knowledge, unread: str = ""
) -> Iterator[Problem]:
    """Find cases whose input is refused: an unknown model, a negative context.

    ``unread`` is knowledge that could not be read; what it names may be right.
    """
    told = set()
    for rule in rules:
        for case in rule.cases:
            said = _refusal(case, knowledge, unread)
            if said and case.source not in told:
                told.add(case.source)
                whose = rule.ladder or rule.id
                message = f"case '{case.name}' of rule '{whose}': its input is refused: {said}"
                yield problem("case-does-not-match", message, case.source, "Correct the case.")


def refused_scenarios(
    scenarios: Sequence[ScenarioCase], knowledge: Knowledge, unread: str = ""
) -> Iterator[Problem]:
    """Find scenarios whose input is refused; the arguments are those of ``refused_cases``."""
    for scenario in scenarios:
        if said := _refusal(scenario, knowledge, unread):
            message = f"scenario '{scenario.name}': its input is refused: {said}"
            hint = "Correct the scenario."
            yield problem("case-does-not-match", message, scenario.source, hint)


def _refusal(test: Case | ScenarioCase, knowledge: Knowledge, unread: str) -> str:
    try:
        resolve(request_from(test.given), knowledge)
    except UserError as error:
        named = {str(value) for value in test.given.values()} & set(_QUOTED.findall(str(error)))
        if any(name.casefold() in unread.casefold() for name in named):
            return ""
        return refusal(error)
    return "" if "gpu" in test.given else "no GPU is named."


READ_BY_THE_PROGRAM = frozenset({VERDICT, *QUOTED_FACTS})


class Asked(Struct, frozen=True):
    """One folder of rules to check, or several layers."""

    folder: Stack = None
    """Laid over the built-in rules, each over those before it; None: those."""
    only: frozenset[str] | None = None
    """Paths of the files to report on; None: all."""

    def wants(self, file: str) -> bool:
        """Whether findings in a file are asked for."""
        return self.only is None or file in self.only


class Means(Struct, frozen=True):
    """What rules are checked against."""

    knowledge: Stack = None
    templates: Stack = None
    sample: int = 0
    """Scenarios of the catalogue to try rules on; 0: none."""
    try_cases: bool = True
    """Whether to run the cases."""
    workers: int | None = None
    progress: Progress | None = None


class Checked(Struct):
    """What was found, and in how much."""

    problems: Sequence[Problem] = ()
    rules: int = 0
    files: int = 0
    scenarios: int = 0
    """On so many the rules were tried."""
    provenance: str = ""
    """How many rules are the user's, in words; empty where none is."""
    elsewhere: int = 0
    """Errors in files that were not asked for; they keep the rest from being tried."""


def asked_for(paths: Sequence[Path], layers: Stack = None) -> Sequence[Asked]:
    """Group paths as typed into folders of rules, and single files within them.

    Each path is checked by itself; ``layers``, where there are none, as one.

    Raises:
        RequestError: A path is nothing that holds rules.
    """
    if not paths:
        users = [_with_rules(folder) for folder in stack(layers) if _user_folder(folder)]
        return [Asked(users)]
    folders = [path for path in paths if path.is_dir()]
    files: dict[Path, set[str]] = {}
    for path in paths:
        if not path.is_dir():
            files.setdefault(_home(path), set()).add(openable(path))
    return [
        *(Asked(_user_folder(_with_rules(folder))) for folder in folders),
        *(Asked(_user_folder(folder), frozenset(names)) for folder, names in files.items()),
    ]


def _user_folder(folder: Path) -> Path | None:
    return None if folder.resolve() == data_dir("rules") else folder


def _with_rules(folder: Path) -> Path:
    if not any(folder.rglob("*.yaml")) and not any(folder.rglob("*.yml")):
        raise RequestError(f"{folder} holds no rule file (*.yaml)")
    return folder


def _home(path: Path) -> Path:
    """The folder whose rules a file belongs to; scenario files lie one below."""
    if not path.is_file():
        raise RequestError(f"there is no file or folder '{path}'")
    if path.suffix != ".yaml":
        raise RequestError(f"{path} is no rule file", hint="A rule file ends in .yaml.")
    built_in = data_dir("rules")
    if path.resolve().is_relative_to(built_in):
        return built_in
    return path.parent.parent if path.parent.name == FOLDER else path.parent


def each_layer(asked: Sequence[Asked]) -> Sequence[Asked]:
    """Ask for each layer by itself, over those before it."""
    return [
        Asked(paths[: number + 1], one.only)
        for one in asked
        for paths in [stack(one.folder)]
        for number in range(max(len(paths), 1))
    ]


def check_all(asked: Sequence[Asked], means: Means) -> Checked:
    """Check every folder; one that is broken hides nothing in the others.

    Raises:
        UserError: Only for what is not about rules: a sample cannot be worked out.
    """
    total = Checked()
    found: list[Problem] = []
    for one in asked:
        done = _Check(one, means).run()
        found += done.problems
        total.rules += done.rules
        total.files += done.files
        total.scenarios += done.scenarios
        total.elsewhere += done.elsewhere
        total.provenance = total.provenance or done.provenance
    total.problems = in_order(found)
    return total


class _Check(Struct):
    asked: Asked
    means: Means
    found: list[Problem] = field(default_factory=list)
    tried: int = 0

    def run(self) -> Checked:
        """Load and look; what cannot be loaded is looked at as far as it goes."""
        places = Places.of(self.asked.folder)
        rules: Sequence[Rule] = ()
        provenance = ""
        try:
            advisor = Advisor.of(
                UserFiles(self.asked.folder, self.means.templates, self.means.knowledge)
            )
        except UserError as error:
            self._as_far_as_it_goes(error, places)
        else:
            rules = self._reported(advisor.ruleset.rules, places)
            provenance = provenance_line(advisor.ruleset)
            self._scenario_files(advisor.vocabulary, advisor.ruleset.by_id, advisor.knowledge)
            self.found += look_at(advisor.ruleset, rules, READ_BY_THE_PROGRAM)
            if self.means.try_cases:
                self._try(advisor, rules)
            else:
                self.found += refused_cases(rules, advisor.knowledge)
        placed = [_at(one, places) for one in self.found]
        wanted = [one for one in placed if self.asked.wants(one.source.file)]
        return Checked(
            wanted,
            len(rules),
            len({rule.source.file for rule in rules if rule.source}),
            self.tried,
            provenance,
            sum(one.is_error for one in placed) - sum(one.is_error for one in wanted),
        )

    def _reported(self, rules: Sequence[Rule], places: Places) -> Sequence[Rule]:
        """The rules of the folder itself, in the files that were asked for."""
        users = set(Places.of(self.asked.folder, built_in=False).paths.values())
        files = {rule.id: places.source(rule.source).file if rule.source else "" for rule in rules}
        return [r for r in rules if files[r.id] in users and self.asked.wants(files[r.id])]

    def _as_far_as_it_goes(self, error: UserError, places: Places) -> None:
        """Find what can be told although something does not load."""
        means = self.means
        found = read_all(self.asked.folder, means.templates, means.knowledge)
        self.found += [p for e in found.problems or [error] for p in problems_of(e)]
        whole = self._reported(found.rules.whole, places)
        partial = self._reported(found.rules.partial, places)
        self.found += look_at_each(RuleSet(tuple(found.rules.whole), ""), whole)
        self.found += look_at_words(partial)
        self.found += refused_cases([*whole, *partial], found.knowledge, found.unread)
        self._scenario_files(found.vocabulary, found.rules.names, found.knowledge, found)

    def _scenario_files(
        self,
        vocabulary: Vocabulary,
        rules: Collection[str],
        knowledge: Knowledge,
        readable: Readable | None = None,
    ) -> None:
        """Read the scenario files."""
        names = readable.names if readable else knowledge.names()
        folder = scenario_folder(self.asked.folder)
        scenarios, wrong = scenarios_as_far(folder, vocabulary, rules, names)
        self.found += [p for e in wrong for p in problems_of(e)]
        unread = readable.unread if readable else ""
        self.found += refused_scenarios(scenarios, knowledge, unread)

    def _try(self, advisor: Advisor, rules: Sequence[Rule]) -> None:
        runner = Runner(advisor, templates=self.means.templates)
        results = [runner.case(rule, case) for rule, case in _doubtful(advisor, rules)]
        stores = [_situations(rules, advisor.knowledge)]
        if self.means.sample:
            origin = Origin(self.means.knowledge, workers=self.means.workers)
            stores.append(sampled_facts(self.means.sample, origin, progress=self.means.progress))
        tried, contradictions = try_rules(advisor.ruleset, stores)
        self.tried = sum(map(len, stores))
        self.found += contradictions
        self.found += () if contradictions else without_verdict(tried)
        self.found += [_failure(one) for one in results if not (one.ok or one.unanswered)]
        self.found += look_at_tried(tried, rules)


def _doubtful(advisor: Advisor, rules: Sequence[Rule]) -> Iterator[tuple[Rule, Case]]:
    """Give the cases that a trial of all at once does not show to hold: those are run one by one.

    What a case expects of ranks and texts, a trial does not say.
    """
    cases = [(rule, case) for rule in rules for case in rule.cases]
    plain = [(rule, case) for rule, case in cases if case.rank is None and case.says is None]
    try:
        trial = trial_of(advisor, plain, ())
    except RuleFileError:  # two rules contradict each other in one of the situations
        yield from cases
        return
    held = {id(case) for case in trial.holding()}
    yield from ((rule, case) for rule, case in cases if id(case) not in held)


def _failure(result: CaseResult) -> Problem:
    message = f"case '{result.name}' of rule '{result.rule}': {result.problem}"
    if result.details:
        message += f": {'; '.join(result.details)}"
    hint = "Correct the rule or the case."
    return problem("case-does-not-match", message, result.source, hint)


def _situations(rules: Sequence[Rule], knowledge: Knowledge) -> FactStore:
    """The facts of every request that a case asked, those aside that are refused."""
    part = Part()
    asked = {key_of(case.given): case.given for rule in rules for case in rule.cases}
    for key, given in asked.items():
        try:
            ready = prepared(given, knowledge)
        except UserError:
            continue
        part.take(json.loads(key), ready.facts, all_option_facts(ready))
    return joined([part])


def _at(found: Problem, places: Places) -> Problem:
    return Problem(
        found.lint,
        places.text(found.message),
        places.source(found.source),
        found.hint,
        found.edit,
    )
