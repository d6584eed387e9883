"""Every kind of problem that a check can report, by the name that never changes.

What each means, with examples, is in ``docs/lints/<id>.md``; a test holds the two together.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from msgspec import Struct

from advisor.errors import RequestError
from advisor.suggest import did_you_mean

Severity = Literal["error", "warning"]

FALLBACK = "cannot-load"
"""For an error without a kind of its own: a folder that cannot be read, broken knowledge."""


class Lint(Struct, frozen=True):
    """One kind of problem.

    An error keeps rules from loading, contradicts a case or another rule, or shows readers a gap;
    a warning is a rule that runs and is probably not what its author meant.
    """

    id: str
    severity: Severity
    title: str


_ERRORS: Mapping[str, str] = {
    "cannot-load": "A folder or file cannot be read",
    "encoding": "The file is not UTF-8 text",
    "tab": "A tab is used for indentation",
    "yaml-syntax": "The file is not YAML",
    "yaml-extras": "Anchors, aliases, tags and second documents are not allowed",
    "yaml-limits": "The file is too large or nested too deeply",
    "duplicate-key": "A key stands twice",
    "empty-file": "The file holds no rule",
    "not-a-list": "The file is not a list of rules",
    "wrong-shape": "A list, a mapping or a text stands where another is needed",
    "empty-value": "A key has no value",
    "wrong-value": "A plain value is of the wrong kind",
    "unknown-key": "A key is not known",
    "missing-key": "A key that every rule needs is missing",
    "bad-rule-name": "The name of a rule is written wrongly",
    "duplicate-rule": "Two rules have one name",
    "one-effect": "A rule does nothing, or two things",
    "unknown-fact": "A fact is not in the vocabulary",
    "unknown-verb": "A condition begins with no verb",
    "missing-verb": "A condition is a bare value",
    "wrong-verb": "A verb does not go with the fact",
    "missing-unit": "A number has no unit",
    "wrong-unit": "A unit is unknown or of another kind",
    "wrong-number": "A number cannot be read or compared",
    "unknown-enum": "A value is not one of the fact's values",
    "not-comparable": "Two facts cannot be compared",
    "not-about-concluded": "'not' asks about a fact that rules conclude",
    "unknown-word": "A word is not one of those allowed",
    "unknown-template": "A template does not exist",
    "unknown-rule": "A rule is named that does not exist",
    "unknown-input": "An input of a case is not known",
    "wrong-reference": "A rule refers to one that cannot be meant",
    "no-verdict": "No rule gives a verdict in some situation",
    "overlay": "Rules of one's own do not fit over the built-in ones",
    "not-concludable": "A fact is concluded that rules may not conclude",
    "no-option-named": "A recommendation or veto names no what-if",
    "action-never-meets": "The action can never meet the conditions",
    "wrong-score": "A score cannot be counted",
    "wrong-ladder": "A ladder cannot be expanded",
    "ladder-gap": "Rows of a ladder leave a gap",
    "ladder-overlap": "Rows of a ladder overlap",
    "engine-limits": "A rule is larger than the engine can hold",
    "number-without-source": "A number has no source",
    "missing-case": "No case shows the rule firing",
    "missing-silent-case": "No case shows the rule staying silent",
    "duplicate-case": "Two cases have one name",
    "wrong-case": "A case expects what its rule cannot give",
    "case-does-not-match": "A case does not hold",
    "contradictory-conclude": "Two rules conclude different values",
    "fact-never-concluded": "A rule reads a fact that no rule concludes",
    "conclusion-cycle": "Conclusions go round in a circle",
    "supersedes-cycle": "Rules supersede each other in a circle",
    "unused-placeholder": "A placeholder is never filled",
    "deprecated-without-replacement": "A deprecated rule names no better one",
}
TEMPLATES: Mapping[str, str] = {
    "template-syntax": "A template cannot be read",
    "template-forbidden": "A template does what templates may not",
    "unknown-placeholder": "A placeholder is not known",
    "template-title": "An action's template has no title",
    "number-without-unit": "A number stands without a unit",
    "missing-template": "A rule's text does not exist",
    "unused-template": "No rule names a text",
}
"""Kinds of ``advisor templates check``."""
_WARNINGS: Mapping[str, str] = {
    "never-fires": "A rule never fires",
    "always-fires": "A rule always fires",
    "same-as": "Two rules do the same in the same situations",
    "implied-by": "A rule adds nothing to another",
    "fact-never-used": "A fact is concluded that nothing reads",
    "supersedes-never-meets": "A rule supersedes one that it never meets",
    "needless-list": "'one of' lists a single name",
}

LINTS: Mapping[str, Lint] = {
    **{name: Lint(name, "error", title) for name, title in {**_ERRORS, **TEMPLATES}.items()},
    **{name: Lint(name, "warning", title) for name, title in _WARNINGS.items()},
}


_PACKAGE = Path(__file__).resolve().parents[2]


def pages_dir() -> Path:
    """Find the pages: in the wheel or, from a checkout, in ``docs/lints``."""
    packaged = _PACKAGE / "data" / "lints"
    return packaged if packaged.is_dir() else _PACKAGE.parent / "docs" / "lints"


def page(lint: str) -> str:
    """Give the page of one kind.

    Raises:
        RequestError: There is no such kind.
    """
    if lint not in LINTS:
        hint = did_you_mean(lint, LINTS) or f"Known: {', '.join(LINTS)}."
        raise RequestError(f"no kind of problem is called '{lint}'", hint=hint)
    return (pages_dir() / f"{lint}.md").read_text(encoding="utf-8")
