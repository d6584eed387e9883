"""Facts -> the JSON that the C engine reads: one fact per scenario group and one per what-if."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from operator import getitem
from types import NoneType

from advisor.engine.base import FactValue, OptionFacts
from advisor.engine.compile import CompiledRules, group_of
from advisor.engine.kinds import of_option
from advisor.engine.network import PRESENT_OPTION, UNIT
from advisor.engine.properties import FactText
from advisor.memo import Kept

_MOST_KEPT = 6_144
_PRESENT = f'"{PRESENT_OPTION}":1,'


def option_fact(place: int, text: str) -> str:
    """Write a what-if of these properties as a fact; its id is its place among the others."""
    return f'{{"id":"p{place}","sid":"0",{text}"{UNIT}":1}}'


class Writer:
    """Writes facts as JSON: one per scenario group and one per option, only what rules read."""

    def __init__(self, compiled: CompiledRules, texts: Mapping[str, FactText]) -> None:
        read = {fact: text for fact, text in texts.items() if fact not in compiled.levels}
        self._scenario = {f: (group_of(f, ()), t) for f, t in read.items() if not of_option(f)}
        self._option = {fact: text for fact, text in read.items() if of_option(fact)}
        self._all = _Properties(self._option)
        self._own, self._shared = self._all, _Properties({})
        self._kept: Kept[int, tuple[Mapping[str, FactValue], str]] = Kept(_MOST_KEPT)
        self._groups = sorted({group for group, _ in self._scenario.values()})
        self._unknown_scenario = [
            (fact, group, text.unknown)
            for fact, (group, text) in self._scenario.items()
            if text.unknown
        ]

    def scenario(self, facts: Mapping[str, FactValue]) -> tuple[str, ...]:
        """Write every group, also one of which nothing is known."""
        written = dict.fromkeys(self._groups, "")
        for name, value in facts.items():
            if name in self._scenario:
                group, text = self._scenario[name]
                same = value.__class__ is text.exact
                written[group] += text.pieces[value] if same else text.text(value)
        for name, group, unknown in self._unknown_scenario:
            if name not in facts:
                written[group] += unknown
        return (
            *[
                f'{{"id":"g{index}","sid":"0",{written[group]}"{UNIT}":1}}'
                for index, group in enumerate(self._groups)
            ],
        )

    def options(self, options: Sequence[OptionFacts]) -> Iterator[str]:
        """Write the properties of every what-if; see ``option_fact``."""
        for option in options:
            if option.shared:
                shared = self._text_of(option.shared)
                yield shared + self._own.text(option.values)
            else:
                yield _PRESENT + self._all.text(option.values)

    def _text_of(self, shared: Mapping[str, FactValue]) -> str:
        found = self._kept.get(id(shared))
        if found is None:
            new = self._option.keys() & shared.keys() - self._shared.names
            if new:
                self._tell_apart({*new, *self._shared.names})
            found = (shared, _PRESENT + self._shared.text(shared))
            self._kept.put(id(shared), found)
        return found[1]

    def _tell_apart(self, shared: Collection[str]) -> None:
        """Note which facts what-ifs may share; what was kept before says nothing of new ones."""
        facts = self._option.items()
        self._own = _Properties({fact: text for fact, text in facts if fact not in shared})
        self._shared = _Properties({fact: text for fact, text in facts if fact in shared})
        self._kept = Kept(_MOST_KEPT)


class _Properties:
    """Writes certain facts of a what-if."""

    def __init__(self, texts: Mapping[str, FactText]) -> None:
        self.names = (*texts,)
        self._texts = (*texts.values(),)
        self._pieces = [text.pieces for text in self._texts]
        self._exact = [text.exact for text in self._texts]
        self._as_expected: set[tuple[type, ...]] = set()
        """Classes of all values of an option, where each may be looked up."""

    def text(self, facts: Mapping[str, FactValue]) -> str:
        values = [*map(facts.get, self.names)]
        if self._looked_up(values):
            return "".join(map(getitem, self._pieces, values))
        return "".join(map(FactText.text, self._texts, values))

    def _looked_up(self, values: Sequence[FactValue | None]) -> bool:
        """Whether every value is unknown or of the fact's own class, by which pieces are kept."""
        classes = (*map(type, values),)
        if classes in self._as_expected:
            return True
        pairs = zip(classes, self._exact, strict=True)
        expected = all(known is NoneType or known is exact for known, exact in pairs)
        if expected:
            self._as_expected.add(classes)
        return expected
