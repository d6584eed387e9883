"""Conclusions: what the rules made of one request, and every record that they rest on."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Literal, cast

from msgspec import Struct

from advisor.advice.document import Because, Provenance
from advisor.knowledge import users_counted
from advisor.knowledge.layers import SwitchedOff, UserEntry, user_record
from advisor.knowledge.vocabulary import FactValue, Vocabulary, show, shown_in
from advisor.reading.public_list import user_entry
from advisor.remedies import is_uncertain
from advisor.remedies.option import Expected, Option
from advisor.rules import ORDERING, Facts, Test, all_hold, value_of
from advisor.rules.language.model import PerTerm, Rule, Score, what_held
from advisor.scenario.figures import BreakEven, certainty_of, partly_guessed

if TYPE_CHECKING:
    from advisor.errors import Source
    from advisor.knowledge.types import Knowledge
    from advisor.rules.language.model import Disabled, RuleSet
    from advisor.scenario import Scenario
    from advisor.scenario.figures import Limits, Memory, Speed
    from advisor.scenario.settings import Request


State = Literal["fits", "tight", "needs_offload", "too_big"]
Confidence = Literal["high", "medium", "low"]


class ScoreTerm(Struct, frozen=True):
    """One term of a score: ``points`` and how they came about."""

    text: str
    points: float
    fact: str = ""
    """The fact a ``per`` term counts, empty for the base and for ``when`` terms."""
    value: float | None = None
    """Its value in base units."""


class RankedOption(Struct, frozen=True):
    """A remedy that was proved: its option's figures are the estimator's."""

    rank: int
    rule: str
    option: Option
    text_template: str
    score: float
    score_terms: tuple[ScoreTerm, ...]
    because: tuple[Because, ...]
    confidence: Confidence
    command: str
    alternatives: tuple[Option, ...] = ()
    """Other options of the same action that rules also recommend, best first."""


class FiredNote(Struct, frozen=True):
    """A remark that changes nothing: cooling, drivers, monitoring."""

    rule: str
    text_template: str
    score: float
    because: tuple[Because, ...]
    text: str = ""
    """The remark itself where the rule has no template."""


class BarredOption(Struct, frozen=True):
    """An option a rule barred, with the reason."""

    option: Option | Expected
    rule: str
    reason: str
    why: Callable[[], tuple[Because, ...]]
    """Lists the conditions that held, where they are shown: thousands of rules bar thousands."""


class Conclusions(Struct, frozen=True):
    """Everything concluded about one request."""

    request: Request
    scenario: Scenario
    memory: Memory
    limits: Limits
    speed: Speed | None
    speed_full: Speed | None
    """With the whole context in use, where that is long."""
    state: State
    facts: Mapping[str, FactValue]
    """Scenario facts by name in base units, concluded ones included; unknown ones absent."""
    recommendations: tuple[RankedOption, ...]
    notes: tuple[FiredNote, ...]
    not_recommended: tuple[BarredOption, ...]
    superseded: tuple[tuple[str, str, str], ...]
    """(rule, option key, the rule that made it unnecessary)."""
    fired: tuple[tuple[str, str], ...]
    """(rule, option key or "") for every firing, sorted."""
    options: tuple[Option, ...]
    warnings: tuple[str, ...]
    """Plain sentences about the request itself (a sibling card, a context beyond training)."""
    missing: tuple[str, ...]
    """Names of figures that are unknown and would have mattered."""
    provenance: Provenance
    dominated: tuple[str, ...] = ()
    """Keys of options left out because another recommended one is as good in everything."""
    break_even: BreakEven = BreakEven()


_EVERYWHERE = "policy"
"""Numbers that every answer rests on."""


def user_rule(rule: Rule) -> UserEntry | None:
    """Say that a rule is the user's; None for a built-in one."""
    if rule.overlay is None:
        return None
    return UserEntry(
        "rule",
        rule.id,
        _place(rule.source),
        rule.overlay.replaces or None,
        _place(rule.overlay.at) or None,
    )


def _place(source: Source | None) -> str:
    return f"{source.file}:{source.line}" if source and source.line else str(source or "")


def user_entries(
    ruleset: RuleSet, knowledge: Knowledge, fired: Collection[str], scenarios: Collection[Scenario]
) -> tuple[UserEntry, ...]:
    """List what of the user's an answer rests on.

    ``scenarios`` are the situation and those that are recommended.
    """
    found = (user_rule(rule) for rule in ruleset.rules if rule.overlay and rule.id in fired)
    rules = tuple(entry for entry in found if entry is not None)
    return (*rules, *user_records(knowledge, scenarios))


def user_records(knowledge: Knowledge, scenarios: Collection[Scenario]) -> tuple[UserEntry, ...]:
    """List the user's entries of knowledge that some situations rest on."""
    listed = tuple(_listed(scenarios))
    if not knowledge.user_entries:
        return listed
    records = dict.fromkeys(r for scenario in scenarios for r in _records(scenario))
    numbers = cast("Mapping[str, object]", knowledge.user_entries.get(_EVERYWHERE) or {})
    records |= dict.fromkeys((_EVERYWHERE, name) for name in numbers)
    found = (user_record(knowledge, kind, name) for kind, name in records)
    return (*listed, *(entry for entry in found if entry is not None))


def _listed(scenarios: Collection[Scenario]) -> Iterator[UserEntry]:
    """Give the models that come from the user's own public list."""
    models = [m for s in scenarios for m in (s.model, s.draft_model) if m and m.origin == "list"]
    for hf_id in dict.fromkeys(model.hf_id or "" for model in models):
        if entry := user_entry(hf_id):
            yield entry


def _records(scenario: Scenario) -> Iterator[tuple[str, str]]:
    for card in scenario.cards or ([scenario.gpu] if scenario.gpu else []):
        yield "gpu", card.name
    yield "model", scenario.model.name
    if scenario.draft_model:
        yield "model", scenario.draft_model.name
    yield "format", scenario.precision.name
    yield "kv_type", scenario.kv_cache_k.name
    yield "kv_type", scenario.kv_cache_v.name
    yield "framework", scenario.framework.name
    yield from (("command", program.name) for program in scenario.framework.commands)


def switched_off(ruleset: RuleSet) -> tuple[SwitchedOff, ...]:
    """List the built-in rules that the user disabled."""
    return tuple(map(switched_off_rule, ruleset.disabled))


def switched_off_rule(item: Disabled) -> SwitchedOff:
    """Say of one rule where and why it was disabled."""
    return SwitchedOff(item.rule.id, _place(item.source), item.reason)


def provenance_line(ruleset: RuleSet) -> str:
    """Count what is the user's; empty where nothing is."""
    counts = {
        "added": sum(not rule.overlay.replaces for rule in ruleset.user_rules if rule.overlay),
        "in the place of built-in ones": sum(
            bool(r.overlay and r.overlay.replaces) for r in ruleset.user_rules
        ),
        "switched off": len(ruleset.disabled),
    }
    return users_counted(counts)


_PLACEHOLDER = re.compile(r"\{([a-z_.]+)\}")
_SHORT = "{short}"
"""In a veto's text: how far the first number lies beyond its limit."""


def because(
    rule: Rule,
    facts: Mapping[str, FactValue],
    option: Mapping[str, FactValue] | None,
    vocabulary: Vocabulary,
    *,
    distances: bool = False,
) -> tuple[Because, ...]:
    """List the conditions of the branch that held, in the order of the rule.

    ``distances`` says how far each number lies beyond its limit, as vetoes do.
    """
    found = []
    for test, actual in what_held(rule, facts, option):
        away = _distance(test, actual, facts, option or {}, vocabulary) if distances else ""
        shown = shown_in(vocabulary.fact(test.fact).unit, actual)
        found.append(Because(test.fact, actual, test.text or test.verb, shown, away))
    return tuple(found)


def _distance(
    test: Test,
    actual: FactValue | None,
    facts: Mapping[str, FactValue],
    option: Mapping[str, FactValue],
    vocabulary: Vocabulary,
) -> str:
    if test.verb not in ORDERING or not isinstance(actual, int | float):
        return ""
    other = test.other
    limit = test.value if other is None else option.get(other, facts.get(other))
    if not isinstance(limit, int | float):
        return ""
    return show(vocabulary.fact(test.fact), round(abs(float(actual) - float(limit)), 6))


class Held(Struct, frozen=True):
    """A veto that fired for a what-if; called, it lists why, each number with its distance."""

    rule: Rule
    facts: Mapping[str, FactValue]
    option: Mapping[str, FactValue]
    vocabulary: Vocabulary

    def __call__(self) -> tuple[Because, ...]:
        """List the conditions that held."""
        return because(self.rule, self.facts, self.option, self.vocabulary, distances=True)

    def veto_text(self) -> str:
        """Fill the text: ``{fact.name}`` is its value, ``{short}`` the first distance."""
        text = self.rule.veto or ""
        if "{" not in text:
            return text
        if _SHORT in text:
            short = next((item.distance for item in self() if item.distance), "")
            text = text.replace(_SHORT, short)
        return filled(text, {**self.facts, **self.option}, self.vocabulary)


def filled(text: str, facts: Mapping[str, FactValue], vocabulary: Vocabulary) -> str:
    """Write the values of facts into a rule's own text, where it names them in braces."""

    def value(found: re.Match[str]) -> str:
        known = facts.get(found[1])
        return "unknown" if known is None else show(vocabulary.fact(found[1]), known)

    return _PLACEHOLDER.sub(value, text)


def confidence_of(option: Option) -> Confidence:
    """Grade an option.

    Low: drafts, whose gain hangs on what is written; a rough speed; a fit that the upper end of
    the memory range would undo. High: memory by exact formulas but for the runtime's own, and a
    speed from this card or none needed.
    """
    memory = option.memory
    if is_uncertain(option.action):
        return "low"
    if certainty_of(memory) not in {"sure", "unverified", None}:
        return "low"
    if option.speed and option.speed.decode_tok_s.evidence == "extrapolated":
        return "low"
    near = option.speed is None or option.speed.decode_tok_s.evidence in {"measured", "near"}
    return "medium" if not near or partly_guessed(memory) else "high"


def scorer(score: Score) -> Callable[[Facts, Facts], float]:
    """Give what adds up a score of a scenario and an option, rounded to 0.01.

    It is the sum of what ``score_terms`` prints.
    """
    whens = [(all_hold(when.tests), when.points) for when in score.when]

    def scored(facts: Facts, option: Facts) -> float:
        total = score.base
        for per in score.add:
            total += _per_points(per, facts, option) or 0.0
        for check, points in whens:
            if check(facts, option):
                total += points
        return round(total, 2)

    return scored


def score_terms(
    score: Score, facts: Mapping[str, FactValue], option: Mapping[str, FactValue]
) -> tuple[ScoreTerm, ...]:
    """List every term that counted, for people."""
    terms = [ScoreTerm("base", score.base)]
    for per in score.add:
        points = _per_points(per, facts, option)
        if points is not None:
            value = value_of(per.fact, facts, option)
            assert isinstance(value, float | int)
            terms.append(ScoreTerm(per.text, points, per.fact, float(value)))
    terms += [
        ScoreTerm(when.text, when.points)
        for when in score.when
        if all_hold(when.tests)(facts, option)
    ]
    return tuple(terms)


def _per_points(per: PerTerm, facts: Facts, option: Facts) -> float | None:
    value = value_of(per.fact, facts, option)
    if value is None or isinstance(value, str):
        return None
    points = per.points * value / per.per_value
    cap = per.cap
    if cap is not None and not -cap <= points <= cap:
        points = max(-abs(cap), min(abs(cap), points))
    return round(points, 2)


def number(facts: Facts, name: str) -> float:
    """Give a figure, 0 where it is unknown."""
    value = facts.get(name)
    return float(value) if isinstance(value, int | float) else 0.0


class Scored(Struct, frozen=True):
    """An option that a rule recommends, with its printed score."""

    rule: Rule
    option: str
    """Its key, as everywhere here."""
    action: str
    score: float
    terms: tuple[ScoreTerm, ...]
    alternatives: tuple[str, ...] = ()


class Ranking(Struct, frozen=True):
    """What is said, what was barred, and what need not be said."""

    recommended: tuple[Scored, ...]
    vetoed: tuple[tuple[Rule, str], ...]
    superseded: tuple[tuple[str, str, str], ...]
    dominated: tuple[str, ...] = ()
    """Keys of options that rules recommend and another recommended one makes pointless."""
