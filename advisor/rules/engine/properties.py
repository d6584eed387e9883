"""Facts -> the properties that the C engine matches on.

A text, a flag and a state of knowledge become one property per question that rules ask about
them (present: yes), because the engine finds a property by name and tries values one by one.
Numbers that are compared stay numbers. Facts compared with each other for equality carry their
value as text, because the engine's own equality of numbers depends on how they are printed.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from json.encoder import encode_basestring_ascii
from types import NoneType

from advisor.files import hashed
from advisor.knowledge.vocabulary import FactValue
from advisor.rules import ORDERING, Kind, Test, answer
from advisor.rules.engine.compiler import MAX_TEXT_BYTES, CompiledRules

RESERVED = ("id", "sid", "u", "w", "o", "m", "$s", "$m", "$and", "$i", "$forward")
MOST_CACHED = 2_000
"""Distinct values of one fact whose text is kept, so that a long batch stays in bounded memory."""

_CLASSES: Mapping[Kind, frozenset[type]] = {
    "number": frozenset({NoneType, float, int}),
    "text": frozenset({NoneType, str}),
    "flag": frozenset({NoneType, bool}),
    "any": frozenset({NoneType, str}),
}
_FNV_BASIS = 0x811C9DC5
_FNV_PRIME = 0x01000193


def fnv1a(name: str) -> int:
    """Hash a name as the C engine does, which knows names by this hash alone."""
    value = _FNV_BASIS
    for byte in name.encode():
        value = ((value ^ byte) * _FNV_PRIME) & 0xFFFFFFFF
    return value


class Names:
    """Short names, no two of which the engine could confuse."""

    def __init__(self) -> None:
        self._taken = {fnv1a(name) for name in RESERVED}
        self._made: dict[tuple[object, ...], str] = {}
        self._count = 0

    def get(self, prefix: str, *key: object) -> str:
        """Give the name for ``key``, always the same one."""
        found = self._made.get((prefix, *key))
        if found is None:
            found = self._made[prefix, *key] = self._fresh(prefix)
        return found

    def _fresh(self, prefix: str) -> str:
        while True:
            self._count += 1
            name = f"{prefix}{self._count}"
            if fnv1a(name) not in self._taken:
                self._taken.add(fnv1a(name))
                return name


def is_number_test(test: Test) -> bool:
    """Whether the engine compares the fact's number; other literal tests are questions."""
    return isinstance(test.value, int | float) and not isinstance(test.value, bool)


def question_name(names: Names, test: Test) -> str:
    """Name the property that is present when the answer is yes."""
    kind = test.value.__class__.__name__
    return names.get("q", test.fact, test.verb, kind, test.value)


def number_name(names: Names, fact: str) -> str:
    """Name the property that holds the fact's number."""
    return names.get("n", fact)


def equality_name(names: Names, fact: str) -> str:
    """Name the property that holds the fact's value as text."""
    return names.get("e", fact)


def number_text(value: float) -> str:
    """Print a finite float so that the engine reads back the very same one.

    Its parser takes digits, a point and digits; it refuses ``1e-05`` and ``1e+16``.
    """
    text = repr(value)
    if "e" not in text:
        return text
    text = format(Decimal(text), "f")
    return text if "." in text else text + ".0"


def equality_text(value: FactValue) -> str:
    """Give a JSON string that equals another one exactly when kind and value are equal."""
    if isinstance(value, bool):
        return f'"b{value:d}"'
    if isinstance(value, float):
        return f'"n{value!r}"'
    assert isinstance(value, str)
    encoded = value.encode("utf-8", "surrogatepass")
    if len(encoded) > MAX_TEXT_BYTES:
        return f'"h{hashed(encoded)}"'
    return encode_basestring_ascii(f"t{value}")


class FactText:
    """How one fact is asserted: the properties that any of ``tests`` asks for."""

    __slots__ = (
        "_alike",
        "_fact",
        "_limits",
        "_normal",
        "_number",
        "_parts",
        "classes",
        "pieces",
        "unknown",
    )

    def __init__(
        self, compiled: CompiledRules, names: Names, fact: str, tests: Iterable[Test]
    ) -> None:
        self._fact = fact
        self._normal = compiled.normal
        questions: dict[str, Test] = {}
        parts: dict[str, Callable[[FactValue], str]] = {}
        for test in tests:
            if test.other is not None and test.verb not in ORDERING:
                parts[equality_name(names, fact)] = equality_text
            elif test.other is not None or is_number_test(test):
                parts[number_name(names, fact)] = _number_text
            else:
                questions[question_name(names, test)] = test
        for name, test in questions.items():
            parts[name] = _answered(test)
        self._parts = sorted(parts.items())
        self.classes = _CLASSES[compiled.kinds[fact]]
        """Classes whose values ``pieces`` may be asked for; others go through ``text``."""
        only = self._parts[0] if len(self._parts) == 1 else ("", None)
        self._number = f'"{only[0]}":' if only[1] is _number_text else ""
        compared = any(test.other is not None for test in tests)
        self._limits = None if compared else _limits(tests)
        self._alike: dict[int, FactValue] = {}
        self.unknown = "".join(
            f'"{name}":1,' for name, test in sorted(questions.items()) if test.verb == "is unknown"
        )
        self.pieces = _Pieces(self._make_number if self._number else self._make, self.unknown)

    def text(self, value: object) -> str:
        """Give the properties for a value of any class.

        Raises:
            EngineError: The value is not one the fact can hold.
        """
        if value is None:
            return self.unknown
        known = self._normal(self._fact, value)
        return self.pieces[known] if known.__class__ in self.classes else self._make(known)

    def _stand_in(self, value: FactValue) -> FactValue:
        """Give a number that no test can tell from this one: the first met between two limits."""
        if self._limits is None or not isinstance(value, float):
            return value
        place = bisect_left(self._limits, value)
        if place < len(self._limits) and self._limits[place] == value:
            return value
        return self._alike.setdefault(place, value)

    def _make_number(self, value: FactValue) -> str:
        """Do what ``_make`` does, for the common number in half the time."""
        text = repr(value)
        if "n" not in text:
            text = repr(self._stand_in(value))
        if "." not in text or "e" in text or text == "-0.0":
            return self._make(value)
        return f"{self._number}{text},"

    def _make(self, value: FactValue) -> str:
        value = self._stand_in(self._normal(self._fact, value))
        made = ((name, make(value)) for name, make in self._parts)
        return "".join(f'"{name}":{text},' for name, text in made if text)


class _Pieces(dict[FactValue | None, str]):
    """Value -> its properties; no flags beside numbers, as ``True`` and 1.0 are one key."""

    def __init__(self, make: Callable[[FactValue], str], unknown: str) -> None:
        super().__init__()
        self._make, self._unknown = make, unknown

    def __missing__(self, value: FactValue | None) -> str:
        if len(self) >= MOST_CACHED:
            self.clear()
        text = self[value] = self._unknown if value is None else self._make(value)
        return text


def _answered(test: Test) -> Callable[[FactValue], str]:
    """The answer to a question about a known value: ``1`` or nothing."""
    says = answer(test)
    return lambda value: "1" if says(value) else ""


def _limits(tests: Iterable[Test]) -> Sequence[float]:
    """Sort the numbers that a fact is compared with."""
    return sorted({float(t.value) for t in tests if is_number_test(t)})  # type: ignore[arg-type]


def _number_text(value: FactValue) -> str:
    assert isinstance(value, float)
    return number_text(value)


def fact_texts(
    compiled: CompiledRules, names: Names, tests: Iterable[Test]
) -> Mapping[str, FactText]:
    """Find out how every fact that these tests read is asserted; others are left out."""
    asked: dict[str, list[Test]] = defaultdict(list)
    for test in tests:
        asked[test.fact].append(test)
        if test.other is not None:
            asked[test.other].append(test)
    return {fact: FactText(compiled, names, fact, tests) for fact, tests in sorted(asked.items())}
