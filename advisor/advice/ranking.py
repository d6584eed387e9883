"""Firings -> ranked recommendations, and why each rule fired."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from msgspec import Struct

from advisor.advice.conclusions import ScoreTerm
from advisor.knowledge.vocabulary import ACTION_FACT, FactValue
from advisor.remedies import is_uncertain, settings_of
from advisor.remedies.option import EFFORTS, Option
from advisor.remedies.search import BETWEEN_KEYS, DOMINATED_BY
from advisor.rules import Facts, all_hold, value_of
from advisor.rules.engine.base import Firing, OptionFacts
from advisor.rules.language.model import PerTerm, Rule, RuleSet, Score
from advisor.scenario.figures import certainty_of, partly_guessed

_ALTERNATIVES, _NEAR = 3, 0.6
_FRAMEWORK_FACT, _EFFORT, _PROGRAM = "option.framework", "option.effort", "framework.name"
_HOLDS_FEW, _HOLDS_MOST, _USABLE = "option.holds_few", "option.holds_most", "option.usable_speed"
_HELD, _THEN_HELD, _RUNS = "memory.held_share", "option.held_share", frozenset({"fits", "tight"})
_OTHER_MODEL, _BETTER_MODEL = "option.related", "option.rated_higher"
_FORMAT, _PURCHASE = "option.format", "purchase"
_SPEED, _LOSS, _STEPS = "option.decode_speed", "option.quality_loss", "option.steps"
_MARGIN, _RAM, _CARDS, _SAME_SPEED = "option.margin", "option.host_ram", "option.gpus", 0.03
_BITS = "option.format_bits"
_NO_WORSE = _BITS, "option.kv_bits", "option.context", "option.batch", _THEN_HELD
_ALIKE = _FRAMEWORK_FACT, "option.parameters", _SPEED, "option.required", *_NO_WORSE
"""What two options share that differ in the name of their format alone."""
READ = (
    ACTION_FACT, DOMINATED_BY, *_ALIKE, _FORMAT, _EFFORT, _LOSS, _STEPS, _MARGIN, _RAM, _CARDS,
    _HOLDS_FEW, _HOLDS_MOST, _USABLE, _OTHER_MODEL, _BETTER_MODEL,
)  # fmt: skip
"""What is read of an option beside the facts that scores count."""
_Values = Mapping[str, Mapping[str, FactValue]]


class _Marked(NamedTuple):
    """An option that a rule recommends, before its score is explained."""

    rule: Rule
    option: str
    score: float
    alternatives: tuple[str, ...] = ()


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


def rank(
    ruleset: RuleSet,
    firings: Sequence[Firing],
    facts: Mapping[str, FactValue],
    options: Sequence[OptionFacts],
) -> Ranking:
    """Turn firings into an ordered list, one entry per action; of sets one that is bought, too.

    The facts are those of the scenario, concluded ones included.
    """
    rules = ruleset.by_id
    values: _Values = {of.key: of.values for of in options}
    vetoed = _vetoed(rules, firings)
    barred = {key for _, key in vetoed}
    scorers = {
        id_: scorer(rule.score)
        for id_ in {firing.rule for firing in firings}
        if (rule := rules[id_]).score and rule.action
    }
    marked = [
        _Marked(rules[f.rule], f.option, scorers[f.rule](facts, values[f.option]))
        for f in firings
        if f.rule in scorers and f.option and f.option not in barred
    ]
    scored = [m for m in marked if m.score > 0] or _last_resort(marked, facts)
    worth_saying, pointless = _without_dominated(scored, values)
    now = facts.get(_HELD) if facts.get("fit.state") in _RUNS else None
    kept, superseded = _without_superseded(_told_once(worth_saying, facts, values, now))
    kept = _without_beaten(_most_held_first(kept, values, now), values)
    said = tuple(_explained(item, facts, values[item.option]) for item in kept)
    return Ranking(said, vetoed, tuple(superseded), pointless)


def _last_resort(marked: Sequence[_Marked], facts: Mapping[str, FactValue]) -> list[_Marked]:
    """The best of what scores nothing, where the request does not run: it beats no answer."""
    return [] if facts.get("fit.state") in _RUNS else sorted(marked, key=_order)[:1]


def _vetoed(rules: Mapping[str, Rule], firings: Iterable[Firing]) -> tuple[tuple[Rule, str], ...]:
    found = ((rules[f.rule], f.option) for f in firings if f.option and rules[f.rule].veto)
    return tuple(sorted(found, key=lambda pair: (pair[0].id, pair[1])))


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


def _without_dominated(
    marked: Sequence[_Marked], values: _Values
) -> tuple[list[_Marked], tuple[str, ...]]:
    """Drop what another recommended option of the same action makes pointless."""
    said = {item.option for item in marked}
    pointless = {
        key
        for key in said
        if (better := values[key].get(DOMINATED_BY))
        and not said.isdisjoint(str(better).split(BETWEEN_KEYS))
    }
    kept = [item for item in marked if item.option not in pointless]
    return kept, tuple(sorted(pointless))


def _explained(
    item: _Marked, facts: Mapping[str, FactValue], values: Mapping[str, FactValue]
) -> Scored:
    assert item.rule.score
    terms = score_terms(item.rule.score, facts, values)
    action = str(values[ACTION_FACT])
    return Scored(item.rule, item.option, action, item.score, terms, item.alternatives)


def _order(scored: _Marked) -> tuple[float, str, str]:
    return (-scored.score, scored.rule.id, scored.option)


def _best_of_each_action(
    scored: Sequence[_Marked], values: _Values, now: FactValue | None
) -> list[_Marked]:
    by_action: dict[tuple[FactValue, bool], list[_Marked]] = {}
    for item in sorted(scored, key=_order):
        facts = values[item.option]
        kind = facts[ACTION_FACT], facts.get(_EFFORT) == _PURCHASE
        by_action.setdefault(kind, []).append(item)
    best = []
    for items in (_most_held_first(of_one, values, now) for of_one in by_action.values()):
        first = items[0]
        most = _most_bits(items, values)
        near = (i for i in items if i.score >= _NEAR * first.score or i.option == most)
        others = dict.fromkeys(i.option for i in near if i.option != first.option)
        runners_up = _runners_up(first.option, list(others), values, most)
        best.append(_Marked(first.rule, first.option, first.score, runners_up))
    return sorted(best, key=_order)


def _told_once(
    worth: Sequence[_Marked], facts: Facts, values: _Values, now: FactValue | None
) -> list[_Marked]:
    """Give the best of each action; where another action says the same, its next in the program."""
    while True:
        best = _best_of_each_action(worth, values, now)
        once = _without_twins(_without_repeats(best), values)
        again = {item.option for item in best} - {item.option for item in once}
        actions = {values[key][ACTION_FACT] for key in again}
        if not again:
            return once
        worth = [
            item
            for item in worth
            if (of := values[item.option])[ACTION_FACT] not in actions
            or (item.option not in again and of.get(_FRAMEWORK_FACT) == facts.get(_PROGRAM))
        ]


def _most_held_first(said: list[_Marked], values: _Values, now: FactValue | None) -> list[_Marked]:
    """Put the first that holds most of the requests, as usefully, before what holds few.

    So goes before what holds a smaller share than the request does now.
    """
    facts = [values[item.option] for item in said]
    few = next((place for place, of in enumerate(facts) if _holds_fewer(of, now)), len(said))
    served = (place for place, of in enumerate(facts) if _serves(of) and not _holds_fewer(of, now))
    most = next(served, 0)
    if few >= most:
        return said
    return [*said[:few], said[most], *said[few:most], *said[most + 1 :]]


def _holds_fewer(facts: Mapping[str, FactValue], now: FactValue | None) -> bool:
    """Whether it holds hardly any of the requests, or fewer than are held without it."""
    then = facts.get(_THEN_HELD)
    fewer = isinstance(now, int | float) and isinstance(then, int | float) and then < now
    return fewer or bool(facts.get(_HOLDS_FEW))


def _serves(facts: Mapping[str, FactValue]) -> bool:
    """Whether it holds most of the requests, at a usable speed and with a model as good."""
    as_good = _OTHER_MODEL not in facts or facts.get(_BETTER_MODEL)
    return bool(facts.get(_HOLDS_MOST) and as_good) and facts.get(_USABLE) is not False


def _without_repeats(best: Sequence[_Marked]) -> list[_Marked]:
    """Say one change once, by the action that scores best: EXL3 weights are ExLlamaV3, too."""
    kept: list[_Marked] = []
    said: set[str] = set()
    for item in best:
        change = item.option.partition(" ")[2]
        if change not in said:
            said.add(change)
            kept.append(item)
    return kept


def _without_twins(best: Sequence[_Marked], values: _Values) -> list[_Marked]:
    """Say two formats of as many bytes and as fast once, as what asks least: AWQ and GPTQ."""
    kept: dict[tuple[object, ...], _Marked] = {}
    for item in best:
        facts = values[item.option]
        alike = tuple(facts.get(name) for name in _ALIKE)
        first, told = kept.get(alike), facts.get(_EFFORT) != _PURCHASE
        if not (told and first and values[first.option].get(_FORMAT) != facts.get(_FORMAT)):
            kept[alike if told and not first else (item.option,)] = item
        elif _asks(facts) < _asks(values[first.option]):
            kept[alike] = item
    return list(kept.values())


def _without_beaten(said: Sequence[_Marked], values: _Values) -> list[_Marked]:
    """Drop a set of changes that does no more than one of fewer; put what is beaten behind."""
    facts = {item.option: values[item.option] for item in said}
    kept: list[_Marked] = []
    for item in said:
        own = facts[item.option]
        as_good = (other for other in facts.values() if _is_as_good(other, own))
        if any(_number(other, _STEPS) < _number(own, _STEPS) for other in as_good):
            continue
        behind = (n for n, other in enumerate(kept) if _beats(own, facts[other.option]))
        kept.insert(next(behind, len(kept)), item)
    return kept


def _beats(one: Facts, other: Facts) -> bool:
    """Whether it is as good in every figure, and faster or holds more of the requests."""
    faster = _number(one, _SPEED) > _number(other, _SPEED) * (1 + _SAME_SPEED)
    more = faster or _number(one, _THEN_HELD) > _number(other, _THEN_HELD)
    return more and _is_as_good(one, other)


def _is_as_good(one: Facts, other: Facts) -> bool:
    """Whether a change of the same model is in no figure worse than another, nor asks for more."""
    if one is other or any(_stands_apart(of) for of in (one, other)):
        return False
    known = all((name in one) == (name in other) for name in (_SPEED, _LOSS, *_NO_WORSE))
    return (
        known
        and one.get(_FRAMEWORK_FACT) == other.get(_FRAMEWORK_FACT)
        and all(_number(one, name) >= _number(other, name) for name in _NO_WORSE)
        and _number(one, _SPEED) >= _number(other, _SPEED) * (1 - _SAME_SPEED)
        and _number(one, _LOSS) <= _number(other, _LOSS)
        and _number(one, _RAM) <= _number(other, _RAM) * (1 + _SAME_SPEED)
        and (one.get(_MARGIN) != "thin" or other.get(_MARGIN) == "thin")
        and _number(one, _CARDS) <= _number(other, _CARDS)
        and _asks(one) <= _asks(other)
    )


def _stands_apart(facts: Facts) -> bool:
    """Whether its figures do not say all of it: what is bought, drafted, or gives up pictures."""
    action = str(facts[ACTION_FACT])
    told = is_uncertain(action) or "text_only" in settings_of(action)
    return told or facts.get(_EFFORT) == _PURCHASE or _OTHER_MODEL in facts


def _number(facts: Facts, name: str) -> float:
    value = facts.get(name)
    return float(value) if isinstance(value, int | float) else 0.0


def _asks(facts: Facts) -> int:
    return EFFORTS.index(str(facts.get(_EFFORT, EFFORTS[0])))


def _runners_up(
    first: str, others: Sequence[str], values: _Values, most: str | None
) -> tuple[str, ...]:
    """The next best, with one in another framework and the one of most bits where there are any."""
    framework = values[first].get(_FRAMEWORK_FACT)
    elsewhere = (key for key in others if values[key].get(_FRAMEWORK_FACT) != framework)
    wanted = dict.fromkeys(key for key in (most, next(elsewhere, None)) if key in others)
    last = [key for key in wanted if key and key not in others[:_ALTERNATIVES]]
    return (*others[: _ALTERNATIVES - len(last)], *last)


def _most_bits(items: Sequence[_Marked], values: _Values) -> str | None:
    """Of formats in one program the largest that fits with ample room."""
    first = values[items[0].option]
    roomy = {
        item.option: _number(of, _BITS)
        for item in items
        if (of := values[item.option]).get(_MARGIN) == "ample"
        and of.get(_FRAMEWORK_FACT) == first.get(_FRAMEWORK_FACT)
        and of.get(_EFFORT) == first.get(_EFFORT)
    }
    return max(roomy, key=roomy.__getitem__) if len(set(roomy.values())) > 1 else None


def _without_superseded(
    best: Sequence[_Marked],
) -> tuple[list[_Marked], list[tuple[str, str, str]]]:
    said = {item.rule.id: item for item in best}
    dropped = {
        rule_id: item.rule.id
        for item in best
        for rule_id in item.rule.supersedes
        if rule_id in said
    }
    kept = [item for item in best if item.rule.id not in dropped]
    superseded = [(rule_id, said[rule_id].option, by) for rule_id, by in sorted(dropped.items())]
    return kept, superseded


Confidence = Literal["high", "medium", "low"]


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
