"""A house folder as a whole: rules, texts, words, knowledge, facts and policy, and their reports.

Each part is checked by the check of its own; then every kind of report is written, so that what
no look at a file can tell shows here and not at somebody's desk.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, repeat
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from advisor.advice import Advisor
from advisor.advice.conclusions import Conclusions
from advisor.advice.configuration import memory_picture
from advisor.advice.partial_load import KINDS, read_all
from advisor.advice.preparation import Prepared, prepare
from advisor.bulk.batch.plan_file import FILE as PRESETS
from advisor.bulk.batch.plan_file import preset_problems
from advisor.errors import AdvisorError, KnowledgeError, Source, UserError
from advisor.estimator.calibration import file_of, with_measurements
from advisor.estimator.speed_tables import read_tables
from advisor.files import read_tree, real
from advisor.knowledge import check_knowledge, load_knowledge
from advisor.knowledge.field_kinds import FlawedError, choice
from advisor.knowledge.file_records import finished_model
from advisor.knowledge.layers import Layer, Stack, UserFiles, holding, layers, stack
from advisor.knowledge.log_patterns import log_pattern_problems
from advisor.knowledge.overlay import entries_of
from advisor.knowledge.parsing import calibration_in
from advisor.knowledge.stacked_files import files_of_user
from advisor.knowledge.types import UNUSUAL, ModelRecord
from advisor.knowledge.validation import record_of
from advisor.models import ONE_OF_BOTH, read_record, total_problem
from advisor.report import FORMATS, Page
from advisor.report.assembly import document
from advisor.report.figures import words_of
from advisor.report.prose import Length
from advisor.report.word_file import read_words
from advisor.rules.language.model import text_name
from advisor.runtimes import memory_models
from advisor.scenario.settings import request_from
from advisor.workbench.expectations import key_of
from advisor.workbench.fact_store_files import Progress
from advisor.workbench.lint import Asked, Means, check_all
from advisor.workbench.lint.problem import Problem, in_order, problem, problems_of
from advisor.workbench.lint.templates import check_templates
from advisor.workbench.preview import Variant, each_text
from advisor.workbench.scenario_file import load_scenarios, request_line, scenario_folder

LENGTHS: Sequence[Length] = ("short", "standard", "full")
_OWN_CARD = {"model": "phi-3-medium"}
_OWN_MODEL = {"gpu": "RTX 4090"}
_TEMPLATES = "templates"
_QUOTED = re.compile(r"'([^']+)'")

Given = Mapping[str, object]


class House(Struct, frozen=True):
    """The folders that lie over the built-in ones; None: the built-in one alone."""

    rules: Stack = None
    templates: Stack = None
    knowledge: Stack = None

    def placed(self, found: Problem) -> Problem:
        """Name a file of texts or facts as the user names its folder."""
        known = [
            *layers(self.templates, _TEMPLATES),
            *map(Layer, stack(self.templates), repeat(_TEMPLATES)),
        ]
        paths = stack(self.knowledge)
        known += layers(paths, real(paths[0]).name if paths else "")
        for layer in reversed(known):
            path = layer.folder / found.source.file.removeprefix(f"{layer.label}/")
            if found.source.file.startswith(f"{layer.label}/") and path.is_file():
                source = Source(path.as_posix(), found.source.line, found.source.column)
                return Problem(found.lint, found.message, source, found.hint, found.edit)
        return found


class Looked(Struct):
    """What was found in a house, and in how much."""

    problems: Sequence[Problem] = ()
    reports: int = 0
    """Situations whose reports were written, in every format and length."""
    texts: int = 0
    """Wordings of texts that were written."""


def check_house(house: House, *, sample: int = 0, progress: Progress | None = None) -> Looked:
    """Find everything that is wrong with a house; where nothing is, write its reports.

    Rules are tried on ``sample`` scenarios of the catalogue.
    """
    found = in_order(house.placed(one) for one in _parts(house, sample, progress))
    if any(one.is_error for one in found):
        return Looked(found)
    stage = _Stage(house, Advisor.of(UserFiles(house.rules, house.templates, house.knowledge)))
    made = stage.written()
    made.problems = in_order([*found, *map(house.placed, made.problems)])
    return made


def _parts(house: House, sample: int, progress: Progress | None) -> Iterator[Problem]:
    for error in _knowledge(house):
        yield from problems_of(error)
    if house.templates:
        yield from _texts(house)
    if house.rules:
        means = Means(house.knowledge, house.templates, sample, progress=progress)
        yield from _rules(house, means)


def _knowledge(house: House) -> Iterator[UserError]:
    if house.knowledge:
        yield from check_knowledge(house.knowledge, *CHECKS)
        yield from _lists(house.knowledge)
    if not house.rules:
        yield from read_all(None, house.templates, house.knowledge).problems


def _lists(folders: Stack) -> Iterator[UserError]:
    """What batches and the speed model alone read: presets, and what was measured."""
    measured = file_of(folders)
    if not any(holding(folders, PRESETS)) and not measured.is_file():
        return
    unread = ""
    try:
        known = load_knowledge(folders)
    except UserError:  # told by its own check; what it names may be right
        known = load_knowledge()
        files = [
            content for one in stack(folders) for content in read_tree(one, [".yaml"]).values()
        ]
        unread = "\n".join(content.decode(errors="replace") for content in files)
    for found in preset_problems(folders, known):
        if not any(f"{kind}: {name}" in unread for kind in KINDS for name in _names(found)):
            yield found
    try:
        with_measurements(known, measured)
    except UserError as error:
        yield error


def _names(error: UserError) -> Sequence[str]:
    return _QUOTED.findall(error.message)


def _rules(house: House, means: Means) -> Iterator[Problem]:
    try:
        yield from check_all([Asked(house.rules)], means).problems
    except UserError as error:
        yield from problems_of(error)


def _texts(house: House) -> Iterator[Problem]:
    folders = stack(house.templates)
    texts = [one for one in folders if not one.is_dir() or any(one.rglob("*.j2"))]
    if texts:
        try:
            yield from _with_rules(house, texts) if house.rules else check_templates(texts).problems
        except UserError as error:
            yield from problems_of(error)
    for folder in folders:
        for wrong in read_words(folder, words_of())[1] if folder.is_dir() else ():
            yield from problems_of(wrong)


def _with_rules(house: House, folders: Sequence[Path]) -> Sequence[Problem]:
    """What is wrong with rules is told by their own check."""
    checked = check_templates(folders, rules=house.rules, knowledge=house.knowledge).problems
    below = tuple(folder.as_posix() for folder in folders)
    return [one for one in checked if one.source.file.startswith(below)]


class _Stage(Struct, frozen=True):
    """A house that loads, whose reports are written."""

    house: House
    advisor: Advisor

    def written(self) -> Looked:
        """Write every kind of report; each failure is told once, by the first that shows it."""
        made = Looked()
        failures: dict[tuple[str, Source], Problem] = {}
        asked: set[object] = set()
        seen: set[str] = set()
        for rule, given in self.situations():
            if given and rule not in seen and (key := key_of(given)) not in asked:
                asked.add(key)
                for one in self._written(given, seen, made):
                    failures.setdefault((one.message, one.source), one)
        made.problems = list(failures.values())
        return made

    def _written(self, given: Given, seen: set[str], made: Looked) -> Iterator[Problem]:
        """Write the reports of one request, unless it is refused: its card may be switched off."""
        try:
            ready = prepare(request_from(given), self.advisor.knowledge)
        except KnowledgeError as bad:
            yield self._failure(bad, given)
        except UserError:
            return
        else:
            made.reports += 1
            yield from self._failures(given, ready, seen, made)

    def situations(self) -> Iterator[tuple[str, Given]]:
        """Give what the house is about, then for each rule a request in which it fires.

        Each stands beside the rule that it is to show, if any: a situation for each of thousands
        of rules would take hours, and one mostly shows many.
        """
        yield from zip(repeat(""), chain(self._user_records(), self._user_scenarios()))
        rules = self.advisor.ruleset.rules
        for rule in sorted(rules, key=lambda rule: not rule.overlay):
            yield rule.id, next((c.given for c in rule.cases if c.expect == "fires"), {})

    def _user_records(self) -> Iterator[Given]:
        entries = self.advisor.knowledge.user_entries
        for kind, rest in (("gpu", _OWN_CARD), ("model", _OWN_MODEL), ("framework", {})):
            table = entries.get(kind)
            for name in table if isinstance(table, Mapping) else ():
                yield {**_OWN_CARD, **_OWN_MODEL, **rest, kind: name}

    def _user_scenarios(self) -> Iterator[Given]:
        if not self.house.rules:
            return
        made, folder = self.advisor, scenario_folder(self.house.rules)
        found = load_scenarios(folder, made.vocabulary, made.ruleset, made.knowledge.names())
        yield from (one.given for one in found)

    def _failures(
        self, given: Given, ready: Prepared, seen: set[str], made: Looked
    ) -> Iterator[Problem]:
        try:
            advice = self.advisor.advise_on(ready, complete=True)
            fired = {rule for rule, _ in advice.fired} - seen
        except Exception as bad:  # noqa: BLE001 - whatever it is, a reader would have met it
            yield self._failure(bad, given)
            return
        seen |= fired
        yield from self._texts(advice, fired, given, made)
        yield from self._reports(_thinned(advice, fired), given)

    def _texts(
        self, advice: Conclusions, fired: set[str], given: Given, made: Looked
    ) -> Iterator[Problem]:
        """Write what rules say that were not seen before, every what-if in every wording."""
        rules = [self.advisor.ruleset.by_id[rule] for rule in sorted(fired)]
        said = [rule for rule in rules if text_name(rule)]
        try:
            for text in each_text(self.advisor, advice, said, self.house.templates):
                yield from self._wordings(text, given, made)
        except Exception as bad:  # noqa: BLE001 - as above
            yield self._failure(bad, given)

    def _wordings(self, text: Iterator[Variant], given: Given, made: Looked) -> Iterator[Problem]:
        try:
            made.texts += sum(1 for _ in text)
        except Exception as bad:  # noqa: BLE001 - as above
            yield self._failure(bad, given)

    def _reports(self, advice: Conclusions, given: Given) -> Iterator[Problem]:
        templates = self.house.templates
        try:
            picture = memory_picture(advice.scenario, self.advisor.knowledge)
            doc = document(advice, templates=templates, picture=picture, options=True)
        except Exception as bad:  # noqa: BLE001 - as above
            yield self._failure(bad, given)
            return
        for form in FORMATS.values():
            for length in LENGTHS[:1] if form.complete else LENGTHS:
                try:
                    form.write(Page(doc, length, templates))
                except Exception as bad:  # noqa: BLE001 - as above
                    yield self._failure(bad, given)

    def _failure(self, bad: Exception, given: Given) -> Problem:
        source = (bad.source if isinstance(bad, AdvisorError) else None) or Source("")
        said = bad.message if isinstance(bad, AdvisorError) else f"{type(bad).__name__}: {bad}"
        hint = bad.hint if isinstance(bad, AdvisorError) else ""
        message = f"a report cannot be written: {said}"
        seen = f"Seen with 'advisor advise {request_line(given)}'."
        return problem("report-fails", message, source, f"{hint} {seen}".strip())


def _thinned(advice: Conclusions, new: set[str]) -> Conclusions:
    """Bar each what-if once, and once by each of these rules.

    Thousands of vetoes that each bar dozens of what-ifs would make documents of 30 MB, in which
    nothing stands that these lack.
    """
    subjects: set[str] = set()
    rules = set(new)
    kept = []
    for item in advice.not_recommended:
        if item.option.key not in subjects or item.rule in rules:
            kept.append(item)
            subjects.add(item.option.key)
            rules.discard(item.rule)
    return replace(advice, not_recommended=tuple(kept))


def parameter_problems(files: Mapping[str, bytes]) -> Sequence[UserError]:
    """Say of every model of a user's, or of all, where its shape cannot be what it states."""
    problems: list[UserError] = []
    user = files_of_user(files)
    for entry in entries_of(files, "models", []):
        if user and entry.place.file not in user:
            continue
        record = finished_model(record_of(ModelRecord, entry), entry)
        try:
            said, hint, lint = total_problem(record, read_record(record)), ONE_OF_BOTH, ""
        except UserError as bad:
            said, hint, lint = f"it cannot be sized: {bad.message}", bad.hint, UNUSUAL
        if said and (user or not lint):
            at = entry.at("config" if lint else "parameters")
            shown = f"model '{entry.name}': {said}"
            problems.append(KnowledgeError(shown, source=at, hint=hint, lint=lint))
    return problems


def memory_model_problems(files: Mapping[str, bytes]) -> Sequence[UserError]:
    """Say of every framework in files of knowledge where it names a memory model that none has."""
    problems: list[UserError] = []
    entries = [*entries_of(files, "frameworks", problems)]
    problems.clear()
    read = choice((*memory_models(), "none"))
    for entry in entries:
        node = entry.values.get("memory_model")
        try:
            _ = node and node.text and read(node)
        except FlawedError as flawed:
            entry.flaws(flawed.flaws, "memory_model")
    return problems


def speed_problems(files: Mapping[str, bytes]) -> Sequence[UserError]:
    """Say what is first wrong with the calibration in files of knowledge."""
    calibration = calibration_in(files, [])
    try:
        if calibration.get("fitted"):
            read_tables(calibration)
    except KnowledgeError as wrong:
        return [wrong]
    return ()


CHECKS = (memory_model_problems, log_pattern_problems, parameter_problems, speed_problems)
"""What ``check_knowledge`` is given beside the files."""
