"""Firings -> ranked recommendations, and why each rule fired."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from advisor.advice.conclusions import Ranking, Scored, number, score_terms, scorer
from advisor.knowledge.vocabulary import ACTION_FACT, FactValue
from advisor.remedies import is_uncertain, settings_of
from advisor.remedies.option import EFFORTS
from advisor.remedies.search import BETWEEN_KEYS, DOMINATED_BY
from advisor.rules import Facts
from advisor.rules.engine.base import Firing, OptionFacts
from advisor.rules.language.model import Rule, RuleSet

_ALTERNATIVES, _NEAR, _ALL = 3, 0.6, 100
_FRAMEWORK_FACT, _EFFORT = "option.framework", "option.effort"
_HOLDS_FEW, _HOLDS_MOST, _USABLE = "option.holds_few", "option.holds_most", "option.usable_speed"
_HELD, _THEN_HELD, _RUNS = "memory.held_share", "option.held_share", frozenset({"fits", "tight"})
_OTHER_MODEL, _BETTER_MODEL = "option.related", "option.rated_higher"
_FORMAT, _PURCHASE = "option.format", "purchase"
_SPEED, _LOSS, _STEPS = "option.decode_speed", "option.quality_loss", "option.steps"
_MARGIN, _RAM, _CARDS, _SAME_SPEED = "option.margin", "option.host_ram", "option.gpus", 0.03
_SCARCE, _KEEPS, _COST = "option.ram_scarce", "option.keeps_asked", "option.quality_cost"
_BATCH_KEPT, _GAIN = "option.batch_kept", "option.speed_gain"
_CLEAR, _QUICK, _PROGRAM = "policy.clear_gain", "policy.mixture_below", "framework.name"
_MUCH, _LITTLE = "policy.clearly_faster", "policy.little_gain"
_BITS_NOW, _BITS = "weights.bits_per_weight", "option.bits_per_weight"
_CACHE, _ROOM = "option.kv_bits", "option.headroom"
_NO_WORSE = "option.format_bits", _CACHE, "option.context", "option.batch", _THEN_HELD
_ALIKE = _FRAMEWORK_FACT, "option.parameters", _SPEED, "option.required", *_NO_WORSE
"""What two options share that differ in the name of their format alone."""
READ = (
    ACTION_FACT, DOMINATED_BY, *_ALIKE, _FORMAT, _EFFORT, _LOSS, _STEPS, _MARGIN, _RAM, _CARDS,
    _HOLDS_FEW, _HOLDS_MOST, _USABLE, _OTHER_MODEL, _BETTER_MODEL, _SCARCE, _KEEPS, _COST,
    _BATCH_KEPT, _GAIN, _BITS, _ROOM,
)  # fmt: skip
"""What is read of an option beside the facts that scores count."""
READ_OF_REQUEST = _HELD, _CLEAR, _MUCH, _LITTLE, _QUICK, _PROGRAM, _BITS_NOW
_Values = Mapping[str, Mapping[str, FactValue]]


class _Marked(NamedTuple):
    """An option that a rule recommends, before its score is explained."""

    rule: Rule
    option: str
    score: float
    alternatives: tuple[str, ...] = ()


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
    kept = _in_order(_most_held_first(kept, values, now), values, _Asked.of(facts, now))
    said = tuple(_explained(item, facts, values[item.option]) for item in kept)
    return Ranking(said, vetoed, tuple(superseded), pointless)


def _last_resort(marked: Sequence[_Marked], facts: Mapping[str, FactValue]) -> list[_Marked]:
    """The best of what scores nothing, where the request does not run: it beats no answer."""
    return [] if facts.get("fit.state") in _RUNS else sorted(marked, key=_order)[:1]


def _vetoed(rules: Mapping[str, Rule], firings: Iterable[Firing]) -> tuple[tuple[Rule, str], ...]:
    found = ((rules[f.rule], f.option) for f in firings if f.option and rules[f.rule].veto)
    return tuple(sorted(found, key=lambda pair: (pair[0].id, pair[1])))


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


class _Asked(NamedTuple):
    """What the request is by itself, and what counts as clearly more."""

    held: float | None
    """The share of its requests that it holds, %; None where it does not run."""
    program: FactValue | None
    bits: float
    clear: float
    """The share of a figure that is clearly more than it, above 1."""
    much: float
    """The share of a speed that is worth more trouble, above 1."""
    little: float
    """A gain in speed that is hardly one, %."""
    quick: float
    """Tokens per second at which nobody looks for another model."""

    @classmethod
    def of(cls, facts: Facts, now: FactValue | None) -> _Asked:
        held = None if now is None else number(facts, _HELD)
        clear, little, quick = (number(facts, name) for name in (_CLEAR, _LITTLE, _QUICK))
        much = number(facts, _MUCH) / _ALL
        bits, program = number(facts, _BITS_NOW), facts.get(_PROGRAM)
        return cls(held, program, bits, 1 + clear / _ALL, much, little, quick)


def _in_order(said: Sequence[_Marked], values: _Values, asked: _Asked) -> list[_Marked]:
    """Drop a set of changes that does no more than one of fewer; put first what plainly is."""
    facts = {item.option: values[item.option] for item in said}
    kept: list[_Marked] = []
    for item in said:
        own = facts[item.option]
        as_good = (other for other in facts.values() if _is_as_good(other, own, asked))
        if any(number(other, _STEPS) < number(own, _STEPS) for other in as_good):
            continue
        behind = (n for n, o in enumerate(kept) if _goes_first(own, facts[o.option], asked))
        kept.insert(next(behind, len(kept)), item)
    return kept


def _goes_first(one: Facts, other: Facts, asked: _Asked) -> bool:
    """Whether it stands before another whatever both score."""
    if _beats(one, other, asked):
        return True
    if not (one.get(_KEEPS) and one.get(_USABLE)) or _held(one) < _held(other):
        return False
    if other.get(_EFFORT) == _PURCHASE:
        return asked.held is None or _gains(one, asked)
    if _OTHER_MODEL in other:
        return number(one, _SPEED) >= asked.quick and _gives_more(one, other, asked)
    if _is_switch(one, asked) and not _is_switch(other, asked):
        cured = _is_better(other, asked) and number(other, _GAIN) >= 0
        return not cured and number(one, _SPEED) * asked.clear > number(other, _SPEED)
    return _is_free(one) and _is_for_little(other, asked)


def _gains(one: Facts, asked: _Asked) -> bool:
    """Whether it is clearly faster than the request, or holds clearly more of it."""
    more = _held(one) >= (asked.held or 0.0) * asked.clear
    return more or number(one, _GAIN) >= (asked.clear - 1) * _ALL


def _gives_more(one: Facts, other: Facts, asked: _Asked) -> bool:
    """Whether it cures a request that runs, or holds or writes clearly more than another model."""
    fast, his = number(one, _SPEED), number(other, _SPEED)
    held = _held(other) if asked.held is None else asked.held
    if _held(one) >= held * asked.clear and fast * asked.much >= his:
        return True
    cured = number(one, _GAIN) >= (asked.much - 1) * _ALL
    return cured if asked.held is not None else fast >= his * asked.clear


def _is_switch(one: Facts, asked: _Asked) -> bool:
    """Whether the same file in the same program becomes clearly faster, and serves as many."""
    same = one.get(_FRAMEWORK_FACT) == asked.program and one.get(_COST) == 0
    full = number(one, _BATCH_KEPT) >= _ALL and _held(one) >= (asked.held or 0.0)
    gains = number(one, _GAIN) >= (asked.clear - 1) * _ALL
    return bool(one.get(_KEEPS)) and same and full and gains and asked.held is not None


def _is_free(one: Facts) -> bool:
    """Whether it asks for a setting alone, and costs neither quality nor speed."""
    slower = number(one, _GAIN) < -_ALL * _SAME_SPEED
    return _asks(one) == 0 == one.get(_COST) and not (slower or _stands_apart(one))


def _is_for_little(other: Facts, asked: _Asked) -> bool:
    """Whether it asks for more than a setting, and is hardly faster, or a little and loses."""
    if asked.held is None or _asks(other) == 0 or _stands_apart(other) or _is_better(other, asked):
        return False
    slow = _GAIN in other and number(other, _GAIN) < asked.little
    hardly = slow and _held(other) <= asked.held
    return hardly or (number(other, _COST) > 0 and not _gains(other, asked))


def _is_better(other: Facts, asked: _Asked) -> bool:
    """Whether it loses less than the request; where nobody measured that, nothing or by bits."""
    if _COST in other:
        return number(other, _COST) < 0
    return other.get(_LOSS) == 0 or number(other, _BITS) > asked.bits * asked.clear


def _held(facts: Facts) -> float:
    """The share of the requests asked for that it holds at once, %."""
    return number(facts, _THEN_HELD) * number(facts, _BATCH_KEPT) / _ALL


def _beats(one: Facts, other: Facts, asked: _Asked) -> bool:
    """Whether it is as good in every figure, and faster, finer, holds more or asks for less."""
    faster = number(one, _SPEED) > number(other, _SPEED) * (1 + _SAME_SPEED)
    more = number(one, _THEN_HELD) > number(other, _THEN_HELD)
    easier = _SPEED in one and _asks(one) < _asks(other)
    finer = number(one, _CACHE) > number(other, _CACHE) and (
        number(one, _ROOM) >= number(other, _ROOM)
    )
    return (faster or more or easier or finer) and _is_as_good(one, other, asked)


def _is_as_good(one: Facts, other: Facts, asked: _Asked) -> bool:
    """Whether a change of the same model is in no figure worse than another, nor asks for more."""
    if one is other or any(_stands_apart(of) for of in (one, other)):
        return False
    known = all((name in one) == (name in other) for name in (_SPEED, *_NO_WORSE))
    gentler = not (_LOSS in one and _LOSS in other) or number(one, _LOSS) <= number(other, _LOSS)
    roomy = one.get(_SCARCE) is False or (
        number(one, _RAM) <= number(other, _RAM) * (1 + _SAME_SPEED)
    )
    clearly = _asks(other) > 0 and number(one, _SPEED) >= number(other, _SPEED) * asked.clear
    return (
        known
        and roomy
        and one.get(_FRAMEWORK_FACT) == other.get(_FRAMEWORK_FACT)
        and all(number(one, name) >= number(other, name) for name in _NO_WORSE)
        and number(one, _SPEED) >= number(other, _SPEED) * (1 - _SAME_SPEED)
        and gentler
        and (one.get(_MARGIN) != "thin" or other.get(_MARGIN) == "thin")
        and (number(one, _CARDS) <= number(other, _CARDS) or clearly)
        and _asks(one) <= _asks(other)
    )


def _stands_apart(facts: Facts) -> bool:
    """Whether its figures do not say all of it: what is bought, drafted, or gives up pictures."""
    action = str(facts[ACTION_FACT])
    told = is_uncertain(action) or "text_only" in settings_of(action)
    return told or facts.get(_EFFORT) == _PURCHASE or _OTHER_MODEL in facts


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
    program = values[items[0].option].get(_FRAMEWORK_FACT)
    here = (
        (i.option, of) for i in items if (of := values[i.option]).get(_FRAMEWORK_FACT) == program
    )
    roomy = {key: number(of, _NO_WORSE[0]) for key, of in here if of.get(_MARGIN) == "ample"}
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
