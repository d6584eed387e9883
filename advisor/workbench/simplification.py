"""A killing case in as few inputs as will do, on cards and models that the rule's cases use."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from advisor.advice.pipeline import Advisor
from advisor.knowledge.vocabulary import show
from advisor.rules.language.model import Case, Rule
from advisor.workbench.bulk import Evaluation
from advisor.workbench.mutants import Mutant
from advisor.workbench.sample import Given
from advisor.workbench.trial import Trial, trial_of

_KEPT = ("gpu", "model")


def plainer(case: Case, mutant: Mutant, advisor: Advisor) -> tuple[Case, str]:
    """Shorten a case as long as it holds and kills, and name it.

    Args:
        case: A case that kills the mutant; its name is not read.
        mutant: What it kills.
        advisor: The rules as they are.

    Returns:
        The case, and what it expects as it is written: of a ladder, one of its values.
    """
    rule = advisor.ruleset.by_id[mutant.rule.id]
    trial = trial_of(advisor, [(rule, case)], [])
    tried = {str(case.given)}
    found = True
    while found:
        found = False
        for given in _shorter(case.given, rule):
            if str(given) in tried:
                continue
            tried.add(str(given))
            other = replace(case, given=given)
            own = trial_of(advisor, [(rule, other)], [])
            if not own.failing() and own.failure(mutant):
                case, trial, found = other, own, True
                break
    named = replace(case, name=f"{situation(case.given)}{_deciding(mutant, trial)}")
    return named, _written(rule, case, trial.base)


def _shorter(given: Given, rule: Rule) -> Iterator[Given]:
    """Without one input each, the last first; then with what the rule's cases ask about."""
    for key in reversed(list(given)):
        if key not in _KEPT:
            yield {name: value for name, value in given.items() if name != key}
    for key in _KEPT:
        known = list(dict.fromkeys(c.given[key] for c in rule.cases if key in c.given))
        if given[key] not in known:
            yield from ({**given, key: value} for value in known)


def situation(given: Given) -> str:
    """Name a request by what it asks for: ``Qwen3-8B in Q4_K_M on RTX 3060``."""
    precision = f" in {given['precision']}" if "precision" in given else ""
    rest = [
        f"{key.replace('_', ' ')} {value}"
        for key, value in given.items()
        if key not in {"gpu", "model", "precision"}
    ]
    more = f", {', '.join(rest)}" if rest else ""
    return f"{given['model']}{precision} on {given['gpu']}{more}"


def _deciding(mutant: Mutant, trial: Trial) -> str:
    """The value that decides, for the name of a case."""
    test = mutant.test
    if test is None or test.fact.startswith("option."):
        return ""
    value = trial.base.conclusion(test.fact, 0)
    if value is None:
        value = trial.base.store.value(test.fact, 0)
    fact = trial.advisor.vocabulary.fact(test.fact)
    shown = "unknown" if value is None else show(fact, value)
    return f", {test.fact} {shown}"


def _written(rule: Rule, case: Case, evaluation: Evaluation) -> str:
    """A ladder's case names the value that the ladder gives there."""
    if rule.ladder is None:
        return case.expect
    for fact in rule.conclude:
        for other in evaluation.ruleset.rules:
            if other.ladder == rule.ladder and evaluation.scenarios(other.id) & 1:
                return str(other.conclude[fact])
    return "silent"
