"""What shows when rules are tried: on the requests of their cases and on the catalogue."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial, reduce
from operator import or_
from typing import get_args

from msgspec import Struct
from msgspec.structs import replace

from advisor.advice import Advisor
from advisor.advice.document import Advice
from advisor.errors import RequestError, RuleFileError, Source, TemplateError
from advisor.knowledge.layers import Stack
from advisor.report import render_text
from advisor.report.assembly import document
from advisor.report.pages import render_html, render_markdown
from advisor.report.prose import Length
from advisor.rules.language.model import Rule, RuleSet
from advisor.scenario.settings import Request
from advisor.workbench.bulk import Evaluation, evaluate_all
from advisor.workbench.columns import Mask, all_rows, row_numbers
from advisor.workbench.cover import VERDICT
from advisor.workbench.fact_store import FactStore
from advisor.workbench.lint.logic import all_imply
from advisor.workbench.lint.problem import Problem, problem, problems_of
from advisor.workbench.scenario_file import request_line

_ENOUGH = 20
"""Rows from which on two rules that agree in all of them are taken to agree."""
_MOST_CONTRADICTIONS = 50


class Tried(Struct, frozen=True):
    """A rule set on several sets of scenarios."""

    ruleset: RuleSet
    evaluations: Sequence[Evaluation]

    @property
    def scenarios(self) -> int:
        """How many there are."""
        return sum(len(one.store) for one in self.evaluations)

    def rows(self, rule: Rule) -> Sequence[Mask]:
        """Where a rule holds: option rows for a rule about options, else scenarios."""
        return [one.fired[rule.id].mask for one in self.evaluations]

    def meet(self, one: Rule, two: Rule) -> bool:
        """Whether both hold in one scenario."""
        return any(own.scenarios(one.id) & own.scenarios(two.id) for own in self.evaluations)


def try_rules(ruleset: RuleSet, stores: Sequence[FactStore]) -> tuple[Tried, Sequence[Problem]]:
    """Try the rules; those that contradict others are left out, each with a finding."""
    found: list[Problem] = []
    while True:
        try:
            return Tried(ruleset, [evaluate_all(store, ruleset) for store in stores]), found
        except RuleFileError as error:
            found += problems_of(error)
            source = error.source
            kept = tuple(rule for rule in ruleset.rules if rule.source != source)
            if len(found) >= _MOST_CONTRADICTIONS or len(kept) == len(ruleset.rules):
                return Tried(RuleSet((), ""), ()), found
            ruleset = replace(ruleset, rules=kept)


def look_at_tried(tried: Tried, rules: Sequence[Rule]) -> Iterator[Problem]:
    """Find rules that never or always fire, add nothing, or supersede what they never meet."""
    if not tried.scenarios:
        return
    known = [rule for rule in rules if rule.id in tried.ruleset.by_id]
    for rule in known:
        yield from _firing(tried, rule)
        yield from _supersedes(tried, rule)
    names = {rule.id for rule in known}
    alike: dict[object, list[Rule]] = {}
    for rule in tried.ruleset.rules:
        alike.setdefault(_effect(rule), []).append(rule)
    for group in alike.values():
        yield from _needless(tried, group, names)


def _needless(tried: Tried, group: Sequence[Rule], names: Collection[str]) -> Iterator[Problem]:
    """Find rules that others of the same effect make needless, each told once.

    What a needless rule makes needless, the other one does too, so it is left out from then on.
    """
    counts = {rule.id: sum(mask.bit_count() for mask in tried.rows(rule)) for rule in group}
    told: set[str] = set()
    for place, one in enumerate(group):
        for two in group[place + 1 :]:
            if one.id in told:
                break
            if two.id in told or not (one.id in names or two.id in names):
                continue
            found = _compared(tried, one, two, counts)
            if found is not None:
                told.add(found.needless.id)
                yield found.problem


def without_verdict(tried: Tried) -> Iterator[Problem]:
    """Find scenarios in which no rule concludes the verdict, so that nothing is answered at all."""
    examples = [
        one.store.requests[number]
        for one in tried.evaluations
        for number in row_numbers(_silent(one), len(one.store))
    ]
    if not examples:
        return
    given = request_line(examples[0])
    message = (
        f"no rule concludes {VERDICT} in {len(examples):,} of the {tried.scenarios:,} scenarios "
        f"that were tried, so nothing is answered there: {given}."
    )
    hint = "Every request needs a verdict: close the gap between the rules that conclude it."
    yield problem("no-verdict", message, _to_blame(tried.ruleset), hint)


def _silent(one: Evaluation) -> Mask:
    concluded = one.concluded.get(VERDICT, {}).values()
    return all_rows(len(one.store)) & ~reduce(or_, concluded, 0)


def _to_blame(ruleset: RuleSet) -> Source | None:
    """Where the user changed a rule that concludes the verdict, else where the first one stands."""
    users = [rule.source for rule in ruleset.user_rules if VERDICT in rule.conclude]
    off = [item.source for item in ruleset.disabled if VERDICT in item.rule.conclude]
    known = [rule.source for rule in ruleset.rules if VERDICT in rule.conclude]
    return next(iter([*off, *users, *known]), None)


def _firing(tried: Tried, rule: Rule) -> Iterator[Problem]:
    rows = tried.rows(rule)
    where = f"the {tried.scenarios:,} scenarios that were tried"
    if not any(rows):
        hint = "Loosen a condition, or add a case that fires. 'advisor rules explain' says why not."
        message = f"rule '{rule.id}' fires in none of {where}."
        yield problem("never-fires", message, rule.source, hint)
    elif not rule.ladder and rule.when.tests and rows == _everything(tried, rule):
        hint = "Add a condition that tells situations apart, or say it in the template."
        message = f"rule '{rule.id}' fires in every one of {where}."
        yield problem("always-fires", message, rule.source, hint)


def _everything(tried: Tried, rule: Rule) -> Sequence[Mask]:
    option = rule.per_option
    return [all_rows(e.store.rows if option else len(e.store)) for e in tried.evaluations]


def _supersedes(tried: Tried, rule: Rule) -> Iterator[Problem]:
    for name in rule.supersedes:
        other = tried.ruleset.by_id.get(name)
        if other is not None and not tried.meet(rule, other):
            message = (
                f"'{rule.id}' supersedes '{name}', and the two meet in none of the "
                f"{tried.scenarios:,} scenarios that were tried."
            )
            hint = "Take it out of 'supersedes', or add a case in which both fire."
            yield problem("supersedes-never-meets", message, rule.source, hint)


def _effect(rule: Rule) -> object:
    """What two rules must share to be compared; notes say different things about one situation."""
    if rule.conclude:
        return tuple(sorted(rule.conclude.items(), key=str))
    if rule.action:
        return rule.action
    return ("veto",) if rule.veto else ("note", rule.note, rule.text)


class _Found(Struct, frozen=True):
    needless: Rule
    problem: Problem


def _compared(tried: Tried, one: Rule, two: Rule, counts: Mapping[str, int]) -> _Found | None:
    if one.ladder is not None and one.ladder == two.ladder:
        return None
    forth = _within(tried, one, two, counts)
    back = _within(tried, two, one, counts)
    if forth and back:
        how = "certainly" if forth == back == "certain" else "in every scenario tried"
        message = f"rule '{two.id}' fires exactly when '{one.id}' does ({how}), and does the same."
        hint = "Delete one of them, or make their conditions differ."
        return _Found(two, problem("same-as", message, two.source, hint))
    if forth and _adds_nothing(one, two, tried.ruleset):
        return _Found(one, _implied(one, two, forth))
    if back and _adds_nothing(two, one, tried.ruleset):
        return _Found(two, _implied(two, one, back))
    return None


def _implied(narrow: Rule, wide: Rule, how: str) -> Problem:
    shown = "" if how == "certain" else " in the scenarios tried"
    message = f"wherever '{narrow.id}' fires, '{wide.id}' fires too{shown} and does the same."
    hint = f"Delete '{narrow.id}', or narrow '{wide.id}'."
    return problem("implied-by", message, narrow.source, hint)


def _within(tried: Tried, one: Rule, two: Rule, counts: Mapping[str, int]) -> str:
    """Whether one rule fires only where the other does: ``certain``, ``tried`` or empty.

    What was tried is asked first, as it is sooner answered: of thousands of rules most pairs end
    there.
    """
    if one.per_option == two.per_option:
        if counts[one.id] > counts[two.id]:
            return ""
        pairs = zip(tried.rows(one), tried.rows(two), strict=True)
        if not all(own & other == own for own, other in pairs):
            return ""
        if all_imply(one.branches, two.branches):
            return "certain"
        return "tried" if counts[one.id] >= _ENOUGH else ""
    return "certain" if all_imply(one.branches, two.branches) else ""


def _adds_nothing(narrow: Rule, wide: Rule, ruleset: RuleSet) -> bool:
    """Whether the narrow rule says nothing new.

    A conclusion or a note that is there already, a veto that comes later, a lower fixed score.
    """
    if narrow.replaced_by == wide.id:
        return False
    if narrow.kind in {"conclude", "note"}:
        return True
    if narrow.veto:
        return _places(ruleset)[wide.id] < _places(ruleset)[narrow.id]
    if narrow.score is None or wide.score is None:
        return False
    plain = not (narrow.score.add or narrow.score.when or wide.score.add or wide.score.when)
    return plain and narrow.score.base <= wide.score.base


def _places(ruleset: RuleSet) -> Mapping[str, int]:
    return {rule.id: place for place, rule in enumerate(ruleset.rules)}


_CARD = "RTX 4090"
_ASKED: Sequence[Request] = (
    Request(gpu=_CARD, model="phi-3-medium", precision="FP16"),
    Request(gpu=_CARD, model="llama-3-8b", precision="Q4_K_M"),
    Request(gpu="M4 Pro:48GB", model="qwen2.5-32b", precision="Q4_K_M", context=32_768),
    Request(gpu="2x RTX 3090 + RTX 3060:12GB", model="llama-3.1-70b", precision="Q4_K_M"),
    Request(gpu="RTX 3060:12GB", model="mixtral-8x22b", batch=8),
    Request(gpu=_CARD, model="qwen2.5-vl-7b", precision="INT4"),
)
"""What fits and what does not, one card and several, machines, experts and images."""


def render_problems(folder: Stack, *, rules: Stack, knowledge: Stack) -> Iterator[TemplateError]:
    """Write reports of every kind with a folder's texts and give what refuses them, each once."""
    advisor = Advisor.load(rules=rules, templates=folder, knowledge=knowledge)
    told = set[str]()
    for asked in _ASKED:
        for write in _views(advisor, asked, folder):
            try:
                write()
            except RequestError:
                break  # the user's knowledge may lack what is asked about
            except TemplateError as bad:
                if str(bad) not in told:
                    told.add(str(bad))
                    yield bad


def _views(advisor: Advisor, asked: Request, folder: Stack) -> Iterator[Callable[[], object]]:
    """Give what writes each report of a request; the first works the request out."""
    made: list[Advice] = []
    yield lambda: made.append(document(advisor.advise(asked), templates=folder))
    for doc in made:
        for length in get_args(Length):
            yield partial(render_markdown, doc, length=length, templates=folder)
        yield partial(render_html, doc, templates=folder)
        yield partial(render_text, doc, templates=folder)
