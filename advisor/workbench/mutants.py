"""Small mistakes one could make in a rule, one at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from advisor.errors import RequestError, Source
from advisor.knowledge.vocabulary import Vocabulary, show
from advisor.rules import Test, Verb, When
from advisor.rules.language.model import Rule, Score
from advisor.units import base_factor

_UP, _DOWN = 1.25, 0.8
_BASE_STEP = 15.0
_BOUNDARY: dict[Verb, Verb] = {
    "above": "at least",
    "at least": "above",
    "below": "at most",
    "at most": "below",
}
_FLIPPED: dict[Verb, Verb] = {
    "above": "at most",
    "at least": "below",
    "below": "at least",
    "at most": "above",
    "is": "is not",
    "is not": "is",
    "is known": "is unknown",
    "is unknown": "is known",
}
_COUNTED = {"", "count"}


class Mutant(Struct, frozen=True):
    """A rule with one mistake in it."""

    rule: Rule
    """As it would read with the mistake; its id is the original's."""
    what: str
    kind: str
    """``condition``, ``conclusion`` or ``score``."""
    source: Source | None = None
    test: Test | None = None
    """The condition that was changed."""
    changed: Test | None = None
    """What it was changed into; None when it was dropped."""


def mutants_of(rule: Rule, vocabulary: Vocabulary) -> Iterator[Mutant]:
    """Give every mutant of a rule, always in the same order."""
    for when, what, test, changed in _whens(rule.when, vocabulary, whole=True):
        mutated = replace(rule, when=when)
        if mutated.per_option == rule.per_option:
            source = (test.source if test else None) or rule.source
            yield Mutant(mutated, what, "condition", source, test, changed)
    yield from _conclusions(rule, vocabulary)
    if rule.score and rule.action:
        for score, what in _scores(rule.score):
            yield Mutant(replace(rule, score=score), what, "score", rule.source)
    for name in rule.supersedes:
        rest = tuple(other for other in rule.supersedes if other != name)
        mutated = replace(rule, supersedes=rest)
        yield Mutant(mutated, f"no longer supersedes {name}", "score", rule.source)


_Varied = tuple[When, str, Test | None, Test | None]


def _whens(when: When, vocabulary: Vocabulary, *, whole: bool) -> Iterator[_Varied]:
    alone = len(when.tests) + len(when.any) + len(when.none) == 1
    for place, test in enumerate(when.tests):
        before, after = when.tests[:place], when.tests[place + 1 :]
        if whole or not alone:
            yield replace(when, tests=before + after), f"without '{_line(test)}'", test, None
        for changed, what in _tests(test, vocabulary):
            yield replace(when, tests=(*before, changed, *after)), what, test, changed
    yield from _anys(when, vocabulary)
    yield from _nones(when, vocabulary)


def _anys(when: When, vocabulary: Vocabulary) -> Iterator[_Varied]:
    for place, blocks in enumerate(when.any):
        before, after = when.any[:place], when.any[place + 1 :]
        for number, block in enumerate(blocks):
            others = blocks[:number] + blocks[number + 1 :]
            if others:
                fewer = replace(when, any=(*before, others, *after))
                yield fewer, f"without alternative {number + 1} of 'any'", _first(block), None
            for inner, what, test, changed in _whens(block, vocabulary, whole=False):
                varied = (*blocks[:number], inner, *blocks[number + 1 :])
                yield replace(when, any=(*before, varied, *after)), what, test, changed


def _nones(when: When, vocabulary: Vocabulary) -> Iterator[_Varied]:
    for place, block in enumerate(when.none):
        before, after = when.none[:place], when.none[place + 1 :]
        yield replace(when, none=before + after), "without 'not'", _first(block), None
        for inner, what, test, changed in _whens(block, vocabulary, whole=False):
            varied = replace(when, none=(*before, inner, *after))
            yield varied, f"inside 'not': {what}", test, changed


def _first(block: When) -> Test | None:
    return block.tests[0] if block.tests else None


def _line(test: Test) -> str:
    return f"{test.fact} {test.text}"


def _tests(test: Test, vocabulary: Vocabulary) -> Iterator[tuple[Test, str]]:
    for changed in _changed_tests(test, vocabulary):
        yield changed, f"'{_line(test)}' becomes '{changed.text}'"


def _changed_tests(test: Test, vocabulary: Vocabulary) -> Iterator[Test]:
    if isinstance(test.value, bool):
        yield _valued(test, not test.value, vocabulary)
        return
    if isinstance(test.value, tuple):
        yield from _lists(test, vocabulary)
        return
    for verbs in (_BOUNDARY, _FLIPPED):
        verb = verbs.get(test.verb)
        if verb:
            yield replace(test, verb=verb, text=verb + test.text.removeprefix(test.verb))
    if isinstance(test.value, float | int):
        yield from (_valued(test, value, vocabulary) for value in _moved(test, vocabulary))
    elif isinstance(test.value, str) and test.verb == "is":
        other = _next(test.fact, [test.value], vocabulary)
        if other:
            yield _valued(test, other, vocabulary)


def _valued(test: Test, value: float | str | bool, vocabulary: Vocabulary) -> Test:  # noqa: FBT001
    shown = show(vocabulary.fact(test.fact), value)
    return replace(test, value=value, text=f"{test.verb} {shown}")


def _moved(test: Test, vocabulary: Vocabulary) -> Sequence[float]:
    """A count one up and one down, anything else a quarter up and a fifth down."""
    assert isinstance(test.value, int | float)
    value, fact = float(test.value), vocabulary.fact(test.fact)
    if value == 0:
        step = base_factor(fact.unit) if fact.unit else 1.0
        return (step, -step)
    if fact.unit in _COUNTED and value.is_integer():
        return (value + 1, value - 1)
    return (value * _UP, value * _DOWN)


def _lists(test: Test, vocabulary: Vocabulary) -> Iterator[Test]:
    assert isinstance(test.value, tuple)
    for name in test.value:
        rest = tuple(other for other in test.value if other != name)
        if rest:
            yield _listed(test, rest)
    other = _next(test.fact, test.value, vocabulary)
    if other:
        yield _listed(test, (*test.value, other))


def _listed(test: Test, names: tuple[str, ...]) -> Test:
    return replace(test, value=names, text=f"one of {', '.join(names)}")


def _next(fact: str, taken: Sequence[str], vocabulary: Vocabulary) -> str | None:
    """The next value of an enum that is not taken."""
    values = vocabulary.fact(fact).values
    if not values:
        return None
    start = values.index(taken[-1]) + 1 if taken[-1] in values else 0
    turned = (*values[start:], *values[:start])
    return next((value for value in turned if value not in taken), None)


def _conclusions(rule: Rule, vocabulary: Vocabulary) -> Iterator[Mutant]:
    for fact, value in rule.conclude.items():
        other = _next(fact, [value], vocabulary) if isinstance(value, str) else None
        if other:
            mutated = replace(rule, conclude={**rule.conclude, fact: other})
            yield Mutant(mutated, f"concludes {fact} {other}", "conclusion", rule.source)


def _scores(score: Score) -> Iterator[tuple[Score, str]]:
    for base in (score.base + _BASE_STEP, score.base - _BASE_STEP):
        yield replace(score, base=base), f"base {score.base:g} becomes {base:g}"
    for place, per in enumerate(score.add):
        before, after = score.add[:place], score.add[place + 1 :]
        name = f"'{per.text} of {per.fact}'"
        yield replace(score, add=before + after), f"without {name}"
        turned = replace(per, points=-per.points)
        yield replace(score, add=(*before, turned, *after)), f"{name} with the other sign"
    for place, term in enumerate(score.when):
        others = score.when[:place], score.when[place + 1 :]
        name = f"{term.points:+g} if {term.text}"
        yield replace(score, when=others[0] + others[1]), f"without '{name}'"
        opposite = replace(term, points=-term.points)
        varied = (*others[0], opposite, *others[1])
        yield replace(score, when=varied), f"'{name}' with the other sign"


_HEAD = (
    "# Mutants that no scenario of the catalogue's sample tells from the original rule.",
    "# Written by: advisor rules mutate --known FILE --accept",
)
_SIGN = ": "


def line_of(mutant: Mutant) -> str:
    """Name a mutant so that it is found again after lines have moved."""
    return f"{mutant.rule.id}{_SIGN}{mutant.what}"


def read_known(path: Path) -> Mapping[str, int]:
    """Read a file of equivalents: how often each line stands in it.

    Raises:
        RequestError: The file cannot be read.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise RequestError(
            f"{path} cannot be read: {why}.",
            hint="Make it with --accept, which takes a search of the whole sample.",
        ) from error
    lines = (line.strip() for line in text.splitlines())
    return Counter(line for line in lines if line and not line.startswith("#"))


def told_apart(
    survivors: Iterable[Mutant], known: Mapping[str, int]
) -> tuple[list[Mutant], list[Mutant]]:
    """Split survivors into new ones and known equivalents; each line stands for one."""
    left = Counter(known)
    new: list[Mutant] = []
    old: list[Mutant] = []
    for mutant in survivors:
        line = line_of(mutant)
        (old if left[line] > 0 else new).append(mutant)
        left[line] -= 1
    return new, old


def write_known(path: Path, equivalents: Sequence[Mutant], tried: Collection[str]) -> None:
    """Write the equivalents of the rules tried; lines of other rules stay.

    Raises:
        RequestError: The file cannot be written.
    """
    before = read_known(path) if path.exists() else Counter[str]()
    kept = Counter({x: n for x, n in before.items() if x.partition(_SIGN)[0] not in tried})
    lines = sorted([*kept.elements(), *map(line_of, equivalents)])
    try:
        path.write_text("\n".join([*_HEAD, *lines]) + "\n", encoding="utf-8", newline="\n")
    except OSError as error:
        raise RequestError(f"{path} cannot be written: {error.strerror}.") from error
