"""Random rules as an expert would have typed them, and the vocabulary they need."""

from __future__ import annotations

from msgspec.structs import replace

from advisor.knowledge.vocabulary import FactKind, FactType, Origin, Vocabulary
from advisor.rules import Test, When, all_tests
from advisor.rules.language.model import Rule, RuleSet
from tests.engine import random_rules as rr

_SIMPLE = ("a", "b", "ab")
_CASES = """  source: made up
  cases:
    - {name: one, given: {gpu: X}, expect: fires}
    - {name: two, given: {gpu: X}, expect: silent}
"""


def vocabulary() -> Vocabulary:
    option = rr.OPTION_NUMBERS + rr.OPTION_TEXTS + rr.OPTION_FLAGS
    made = rr.CONCLUDED + rr.CONCLUDED_NUMBERS
    numbers = rr.NUMBERS + rr.OPTION_NUMBERS + rr.CONCLUDED_NUMBERS
    flags = rr.FLAGS + rr.OPTION_FLAGS
    facts = {}
    for name in (*rr.NUMBERS, *rr.TEXTS, *rr.FLAGS, *option, *made):
        kind: FactKind = "number" if name in numbers else "flag" if name in flags else "text"
        origin: Origin = "option" if name in option else "rules" if name in made else "input"
        dimension = "count" if kind == "number" else ""
        group = name.partition(".")[0]
        facts[name] = FactType(name, group, kind, "", dimension, (), None, origin, "help")
    return Vocabulary(facts)


def writable(rules: RuleSet) -> RuleSet:
    """Keep what the language can say: every fact once per block, plain words, flags with is."""
    rewritten = [replace(rule, when=_block(rule.when)) for rule in rules.rules]
    kept = [rule for rule in rewritten if rule.when.tests]
    read = {t.fact for r in kept for t in all_tests(r.when)} & {
        *rr.CONCLUDED,
        *rr.CONCLUDED_NUMBERS,
    }
    missing = sorted(read - {fact for rule in kept for fact in rule.conclude})
    return RuleSet((*kept, *map(_maker, missing)), rules.sha256)


def _maker(fact: str) -> Rule:
    value = 1.0 if fact in rr.CONCLUDED_NUMBERS else "a"
    tests = (Test("gpu.n0", "at least", value=0.0),)
    return Rule(f"make-{fact.replace('.', '-')}", "", When(tests), conclude={fact: value})


def _block(when: When) -> When:
    tests = {test.fact: _plain(test) for test in when.tests if _can_ask(test)}
    alternatives = tuple(tuple(map(_block, blocks)) for blocks in when.any)
    return When(tuple(tests.values()), alternatives, tuple(map(_block, when.none)))


def _can_ask(test: Test) -> bool:
    """Leave out what the parser refuses: numbers that equal, concluded facts that are known."""
    numbers = {test.fact, test.other} <= {*rr.NUMBERS, *rr.OPTION_NUMBERS}
    if test.other is not None and numbers:
        return test.verb in rr.ORDERING
    return not (test.fact in rr.CONCLUDED and test.verb == "is known")


def _plain(test: Test) -> Test:
    if isinstance(test.value, bool):
        value = test.value is (test.verb == "is")
        return replace(test, verb="is", value=value)
    if isinstance(test.value, tuple):
        return replace(test, value=tuple(dict.fromkeys(map(_word, test.value))))
    if isinstance(test.value, str):
        return replace(test, value=_word(test.value))
    if test.other in rr.FLAGS + rr.OPTION_FLAGS:
        return Test(test.fact, "is", value=True)
    return test


def _word(word: str) -> str:
    return word if word in _SIMPLE else "ab"


def text(rules: RuleSet) -> str:
    return "".join(map(_rule, rules.rules))


def _rule(rule: Rule) -> str:
    lines = [f"- rule: {rule.id}", "  why: Made up.", "  when:"]
    lines += [f"    {test.fact}: {_condition(test)}" for test in rule.when.tests]
    for blocks in rule.when.any:
        lines += ["    any:", *(f"      - {_inline(block)}" for block in blocks)]
    lines += [f"    not: {_inline(block)}" for block in rule.when.none]
    if rule.conclude:
        (fact, value), *_ = rule.conclude.items()
        lines.append(f"  conclude: {{{fact}: {value}}}")
    elif "option." in "".join(lines):
        lines.append("  veto: Not this one.")
    else:
        lines.append("  note: Well.")
    return "\n".join(lines) + "\n" + _CASES


def _inline(when: When) -> str:
    return "{" + ", ".join(f'{t.fact}: "{_condition(t)}"' for t in when.tests) + "}"


def _condition(test: Test) -> str:
    if test.other is not None:
        return f"{test.verb} {test.other}"
    if test.value is None:
        return test.verb
    if isinstance(test.value, bool):
        return f"is {'yes' if test.value else 'no'}"
    shown = ", ".join(test.value) if isinstance(test.value, tuple) else test.value
    return f"{test.verb} {shown}"
