"""Facts -> the JSON that the C engine reads: one fact per scenario group and one per what-if."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from operator import contains, getitem

from advisor.knowledge.vocabulary import FactValue
from advisor.rules.conditions import ORDERING, Test, of_option
from advisor.rules.engine.base import OptionFacts
from advisor.rules.engine.compiler import CompiledRules, group_of
from advisor.rules.engine.network import PRESENT_OPTION, UNIT
from advisor.rules.engine.properties import FactText, Names, fact_texts

_PRESENT = f'"{PRESENT_OPTION}":1,'


def option_fact(place: int, text: str) -> str:
    """Write a what-if of these properties as a fact; its id is its place among the others."""
    return f'{{"id":"p{place}","sid":"0",{text}"{UNIT}":1}}'


class Writer:
    """Writes facts as JSON: one per scenario group and one per option, only what rules read."""

    def __init__(self, compiled: CompiledRules, names: Names, tests: Sequence[Test]) -> None:
        texts = fact_texts(compiled, names, tests)
        read = {fact: text for fact, text in texts.items() if fact not in compiled.levels}
        self.texts = texts
        self._normal = compiled.normal
        ours = sorted((group_of(f, ()), f) for f in read if not of_option(f))
        self._scenario = {fact: read[fact] for _, fact in ours}
        self._groups = [
            [place for place, (other, _) in enumerate(ours) if other == group]
            for group in sorted({group for group, _ in ours})
        ]
        joins = [test for test in tests if test.other is not None]
        self._joins = [join for join in joins if self._is_plain(join)]
        exact = {f for join in joins if not self._is_plain(join) for f in (join.fact, join.other)}
        sketches = fact_texts(compiled, names, [test for test in tests if test.other is None])
        compared = {fact for join in self._joins for fact in (join.fact, join.other)}
        self._sketches = {fact: sketches.get(fact) for fact in compared - exact if fact}
        self._whatif = _Properties({f: text for f, text in read.items() if of_option(f)})

    def _is_plain(self, join: Test) -> bool:
        """Whether it compares two numbers of the scenario."""
        return join.verb in ORDERING and {join.fact, join.other} <= self._scenario.keys()

    def scenario(self, facts: Mapping[str, FactValue]) -> tuple[tuple[str, ...], Hashable]:
        """Write every group, also one of which nothing is known.

        Returns:
            The groups, and a key that they share with all that no rule can tell from them: of
            numbers that are compared with each other it has how they compare.
        """
        pieces = [_piece(text, facts.get(name)) for name, text in self._scenario.items()]
        groups = [
            f'{{"id":"g{index}","sid":"0",{"".join([pieces[at] for at in places])}"{UNIT}":1}}'
            for index, places in enumerate(self._groups)
        ]
        if self._sketches:
            pieces = [
                *map(self._told_apart, self._scenario, pieces, map(facts.get, self._scenario))
            ]
        return (*groups,), (*pieces, *[self._compared(join, facts) for join in self._joins])

    def _told_apart(self, name: str, piece: str, value: FactValue | None) -> str:
        """Give what rules tell apart of a fact: of a number compared with others its own tests."""
        if name not in self._sketches:
            return piece
        sketch = self._sketches[name]
        return _piece(sketch, value) if sketch else ""

    def _compared(self, join: Test, facts: Mapping[str, FactValue]) -> bool | None:
        one, two = facts.get(join.fact), facts.get(join.other or "")
        if one is None or two is None:
            return None
        return ORDERING[join.verb](
            self._normal(join.fact, one), self._normal(join.other or "", two)
        )

    def options(self, options: Sequence[OptionFacts]) -> Iterator[str]:
        """Write the properties of every what-if; see ``option_fact``."""
        return (_PRESENT + self._whatif.text(option.values) for option in options)


def _piece(text: FactText, value: FactValue | None) -> str:
    return text.pieces[value] if value.__class__ in text.classes else text.text(value)


class _Properties:
    """Writes certain facts of a what-if."""

    def __init__(self, texts: Mapping[str, FactText]) -> None:
        self._names = (*texts,)
        self._texts = (*texts.values(),)
        self._pieces = [text.pieces for text in self._texts]
        self._classes = [text.classes for text in self._texts]
        self._as_expected: set[tuple[type, ...]] = set()
        """Classes of all values of an option, where each may be looked up."""

    def text(self, facts: Mapping[str, FactValue]) -> str:
        values = [*map(facts.get, self._names)]
        if self._looked_up(values):
            return "".join(map(getitem, self._pieces, values))
        return "".join(map(FactText.text, self._texts, values))

    def _looked_up(self, values: Sequence[FactValue | None]) -> bool:
        """Whether every value is of a class by which the fact's pieces are kept."""
        classes = (*map(type, values),)
        if classes in self._as_expected:
            return True
        expected = all(map(contains, self._classes, classes))
        if expected:
            self._as_expected.add(classes)
        return expected
