"""Conditions: ``fact: verb value unit`` -> tests, and blocks of them with ``any`` and ``not``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import cast

from advisor.errors import Edit, correction, guess
from advisor.knowledge.vocabulary import FactKind, FactType
from advisor.knowledge.yaml_fields import COMMA, Fields, listed
from advisor.rules import Test, Verb, When, all_tests
from advisor.rules.language.context import Reading
from advisor.units import UnitError, parse_quantity
from advisor.yamlfile import Node

VERBS: Mapping[str, str] = {
    "above": "more than a number: `above 5 GiB`, `above memory.usable`",
    "at least": "this number or more: `at least 10 %`",
    "below": "less than a number: `below 3.5 bit`",
    "at most": "this number or less: `at most 5 %`",
    "between": "from one number to another, both included: `between 4 and 6 bit`",
    "is": "exactly this: `is quantize`, `is yes`, `is 2`",
    "is not": "known, and something else: `is not apple`",
    "one of": "any of several names: `one of needs_offload, too_big`",
    "is known": "the fact has a value",
    "is unknown": "the fact has no value",
}

BY_KIND: Mapping[FactKind, tuple[str, ...]] = {
    "number": ("above", "at least", "below", "at most", "between", "is", "is not"),
    "enum": ("is", "is not", "one of"),
    "text": ("is", "is not", "one of"),
    "flag": ("is",),
}
"""What each kind takes besides ``is known`` and ``is unknown``."""

KINDS: Mapping[FactKind, str] = {
    "number": "a number",
    "enum": "one of a list of names",
    "text": "a name",
    "flag": "yes or no",
}

_LONGEST_FIRST = sorted(VERBS, key=len, reverse=True)
_LISTS_DENIED = ["is not one of", "not one of", "is none of", "none of", "is not in", "not in"]
_INSTEAD: Mapping[str, str] = {
    "is more than": "above",
    "is greater than": "above",
    "is above": "above",
    "more than": "above",
    "greater than": "above",
    "larger than": "above",
    "exceeds": "above",
    "over": "above",
    ">=": "at least",
    "is at least": "at least",
    "no less than": "at least",
    ">": "above",
    "is less than": "below",
    "is below": "below",
    "less than": "below",
    "smaller than": "below",
    "under": "below",
    "<=": "at most",
    "is at most": "at most",
    "no more than": "at most",
    "up to": "at most",
    "<": "below",
    "is between": "between",
    "is equal to": "is",
    "equals": "is",
    "==": "is",
    "=": "is",
    "!=": "is not",
    "isn't": "is not",
    "not": "is not",
    "is one of": "one of",
    "is in": "one of",
    "any of": "one of",
    "in": "one of",
    "is set": "is known",
    "exists": "is known",
    "is missing": "is unknown",
}


def split_verb(text: str) -> tuple[str, str] | None:
    """Split ``at most 5 %`` into verb and rest; None when no verb begins it."""
    if _starts(text, _LISTS_DENIED) or _starts(text, _INSTEAD):
        return None
    verb = _starts(text, _LONGEST_FIRST)
    return (verb, text[len(verb) :].strip()) if verb else None


def verb_hint(text: str) -> str:
    """Say what to write for a condition whose verb is unknown."""
    if _starts(text.casefold(), _LISTS_DENIED):
        return "Put the condition below 'not:', with 'one of'."
    said = _starts(text.casefold(), _INSTEAD)
    if said:
        return f"Write '{_INSTEAD[said]}'."
    words = text.split()
    close = guess(" ".join(words[:2]), VERBS) or guess(words[0], VERBS)
    return close or f"Verbs: {listed(VERBS)}."


def unknown_verb(text: str) -> str:
    """Name the word that stands where a verb should."""
    folded = text.casefold()
    said = _starts(folded, _LISTS_DENIED) or _starts(folded, _INSTEAD)
    return said or text.split(maxsplit=1)[0]


def _starts(text: str, words: Mapping[str, str] | list[str]) -> str:
    for word in words:
        end = len(word)
        if text.startswith(word) and (
            len(text) == end or text[end].isspace() or not word[-1].isalpha()
        ):
            return word
    return ""


_WRITE = re.compile(r"Write '([^']+)'\.")
_BETWEEN = re.compile(r"(.+?)\s+and\s+(.+)")
_ORDER = ("above", "at least", "below", "at most")


def read_when(node: Node, reading: Reading) -> When:
    """Read a ``when`` block; what is wrong is noted and left out."""
    block = Fields.of(node, "'when'", reading.problems)
    if block is None:
        return When(())
    if not block.values:
        hint = "Name at least one fact."
        reading.problems.add("'when' is empty.", block.source, hint, lint="empty-value")
    return When(
        tuple(
            test
            for key in block.values
            if key not in {"any", "not"}
            for test in _entry(block, key, reading)
        ),
        (_any(block, reading),) if "any" in block else (),
        (_not(block, reading),) if "not" in block else (),
    )


def read_tests(block: Fields, reading: Reading, *, besides: str) -> tuple[Test, ...]:
    """Read a flat block of tests, in which the key ``besides`` means something else."""
    keys = (key for key in block.values if key != besides)
    return tuple(test for key in keys for test in _entry(block, key, reading))


def _any(block: Fields, reading: Reading) -> tuple[When, ...]:
    node = block.values["any"]
    if not isinstance(node.value, list) or not node.value:
        hint = "Write each alternative as '- fact: verb value'."
        message = "'any' must be a list of blocks."
        reading.problems.add(message, block.at("any"), hint, lint="wrong-shape")
        return ()
    return tuple(read_when(item, reading) for item in node.value)


def _not(block: Fields, reading: Reading) -> When:
    when = read_when(block.values["not"], reading)
    for test in all_tests(when):
        for name in filter(None, (test.fact, test.other)):
            if reading.vocabulary.facts[name].origin == "rules":
                message = f"'not' cannot ask about {name}, which rules conclude."
                hint = "Use 'is not', or conclude the opposite in a rule of its own."
                reading.problems.add(message, test.source, hint, lint="not-about-concluded")
    return when


def _entry(block: Fields, key: str, reading: Reading) -> tuple[Test, ...]:
    node = block.values[key]
    if node.value is None and key not in reading.vocabulary.facts:
        message = f"'{key}' has no condition."
        reading.problems.add(message, block.at(key), COMMA, lint="empty-value")
        return ()
    fact = reading.fact(key, block.at(key))
    return read_condition(fact, node, reading) if fact else ()


def read_condition(fact: FactType, node: Node, reading: Reading) -> tuple[Test, ...]:
    """Read one condition; ``between`` gives two tests, a mistake none."""
    if isinstance(node.value, list | Mapping) or node.value is None:
        hint = f"Write for example '{example(fact)}'."
        message = f"the condition of {fact.name} must be a text."
        reading.problems.add(message, node.source, hint, lint="wrong-shape")
        return ()
    text = " ".join(node.text.split())
    split = split_verb(text)
    if split is None:
        _no_verb(fact, text, node, reading)
        return ()
    verb, rest = split
    if not _fitting(fact, verb, rest, node, reading):
        return ()
    return _tests(fact, verb, rest, node, reading)


def example(fact: FactType) -> str:
    """Give a condition that the fact takes."""
    if fact.kind == "number":
        return f"at least 8 {fact.unit}".rstrip()
    if fact.kind == "flag":
        return "is yes"
    return f"is {fact.values[0]}" if fact.values else "is known"


def _no_verb(fact: FactType, text: str, node: Node, reading: Reading) -> None:
    bare = text in fact.values or not isinstance(node.value, str) or _is_number(text)
    if bare:
        verb = "for example 'above" if fact.kind == "number" else "'is"
        hint = f"Write {verb} {text}'."
        edit = None if fact.kind == "number" else Edit(text, f"is {text}")
        message = f"'{text}' has no verb."
        reading.problems.add(message, node.source, hint, lint="missing-verb", edit=edit)
        return
    written = unknown_verb(text)
    message = f"unknown verb '{written}' in '{text}'."
    hint = verb_hint(text)
    edit = correction(written, hint) or _in_words(written, hint)
    reading.problems.add(message, node.source, hint, lint="unknown-verb", edit=edit)


def _in_words(written: str, hint: str) -> Edit | None:
    match = _WRITE.fullmatch(hint)
    return Edit(written, match[1]) if match else None


def _is_number(text: str) -> bool:
    try:
        parse_quantity(text)
    except UnitError:
        return False
    return True


def _fitting(fact: FactType, verb: str, rest: str, node: Node, reading: Reading) -> bool:
    if verb in {"is known", "is unknown"}:
        return _fitting_known(fact, verb, rest, node, reading)
    allowed = BY_KIND[fact.kind]
    if verb not in allowed:
        message = f"'{verb}' does not go with {fact.name}, which is {KINDS[fact.kind]}."
        hint = f"Use {listed([*allowed, 'is known', 'is unknown'])}."
        if fact.kind == "flag" and verb == "is not" and rest in {"yes", "no"}:
            hint = f"Write 'is {'no' if rest == 'yes' else 'yes'}'."
        edit = Edit(f"{verb} {rest}", hint[7:-2]) if hint.startswith("Write '") else None
        reading.problems.add(message, node.source, hint, lint="wrong-verb", edit=edit)
        return False
    if not rest:
        hint = f"Write for example '{example(fact)}'."
        message = f"nothing stands after '{verb}'."
        reading.problems.add(message, node.source, hint, lint="empty-value")
        return False
    return True


def _fitting_known(fact: FactType, verb: str, rest: str, node: Node, reading: Reading) -> bool:
    if rest:
        message = f"'{rest}' cannot stand after '{verb}'."
        reading.problems.add(message, node.source, "Delete it.", lint="wrong-verb")
    elif fact.origin == "rules":
        message = f"'{verb}' cannot ask about {fact.name}, which rules conclude."
        hint = "Name the values that matter."
        reading.problems.add(message, node.source, hint, lint="wrong-verb")
    return not rest and fact.origin != "rules"


def _tests(fact: FactType, verb: str, rest: str, node: Node, reading: Reading) -> tuple[Test, ...]:
    place = node.source
    if verb == "between":
        return _between(fact, rest, node, reading)
    said = cast("Verb", verb)
    text = f"{verb} {rest}".rstrip()
    if verb in {"is known", "is unknown"}:
        return (Test(fact.name, said, text=text, source=place),)
    if verb == "one of":
        words = [word.strip() for word in rest.split(",")]
        names = [reading.name(fact, word, place) for word in words]
        found = tuple(name for name in names if name is not None)
        return (Test(fact.name, said, found, None, text, place),) if found else ()
    if reading.means_fact(rest):
        other = _other(fact, verb, rest, node, reading)
        return (Test(fact.name, said, None, other, text, place),) if other else ()
    value = reading.value(fact, rest, place)
    return () if value is None else (Test(fact.name, said, value, None, text, place),)


def _between(fact: FactType, rest: str, node: Node, reading: Reading) -> tuple[Test, ...]:
    match = _BETWEEN.fullmatch(rest)
    if not match:
        numbers = f"1 and 8 {fact.unit}".rstrip()
        hint = f"Write for example 'between {numbers}'."
        message = "'between' needs two numbers."
        reading.problems.add(message, node.source, hint, lint="wrong-number")
        return ()
    low_text, high_text = match[1].strip(), match[2].strip()
    low_text = _with_unit_of(low_text, high_text)
    low = reading.number(fact, low_text, node.source)
    high = reading.number(fact, high_text, node.source)
    if low is None or high is None:
        return ()
    if low >= high:
        message = f"nothing lies between {low_text} and {high_text}."
        hint = "Put the smaller number first."
        reading.problems.add(message, node.source, hint, lint="wrong-number")
        return ()
    return (
        Test(fact.name, "at least", low, None, f"at least {low_text}", node.source),
        Test(fact.name, "at most", high, None, f"at most {high_text}", node.source),
    )


def _with_unit_of(low: str, high: str) -> str:
    try:
        unit = parse_quantity(high).unit
        return f"{low} {unit}".rstrip() if not parse_quantity(low).unit else low
    except UnitError:
        return low


def _other(fact: FactType, verb: str, name: str, node: Node, reading: Reading) -> str | None:
    other = reading.fact(name, node.source)
    if other is None:
        return None
    if problem := _incomparable(fact, verb, other):
        reading.problems.add(problem[0], node.source, problem[1], lint="not-comparable")
        return None
    return other.name


def _incomparable(fact: FactType, verb: str, other: FactType) -> tuple[str, str] | None:
    both = f"{fact.name} and {other.name}"
    if fact is other:
        return f"{fact.name} is compared with itself.", "Name another fact or a value."
    if fact.kind != other.kind or fact.kind == "flag":
        kinds = f"{KINDS[fact.kind]} and {KINDS[other.kind]}"
        return f"{both} cannot be compared: {kinds}.", "Compare with a value."
    if fact.dimension != other.dimension:
        sizes = f"{fact.dimension} and {other.dimension}"
        return f"{both} cannot be compared: {sizes}.", "Name a fact of the same kind of unit."
    if fact.kind == "number" and verb not in _ORDER:
        return f"two numbers cannot be compared with '{verb}'.", f"Use {listed(_ORDER)}."
    if (fact.values, fact.of) != (other.values, other.of):
        return f"{both} cannot be compared: their values differ.", "Compare with a value."
    return None
