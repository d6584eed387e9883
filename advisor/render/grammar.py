"""The small part of jinja2 that templates may use, checked when a template is parsed.

Text, placeholders, ``if`` and, in report/ and site/ only, ``for``. No arithmetic, calls, includes
or attributes of objects, so a template can neither compute a number nor reach the program.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from jinja2 import nodes

from advisor.render.names import Kind, placeholders
from advisor.suggest import did_you_mean

FILTERS = frozenset({"capitalize", "first_upper", "lower", "join"})
_TESTS = frozenset({"defined", "none"})
_COMPARISONS = frozenset({"eq", "ne", "in", "notin"})
_TEXT: tuple[type[nodes.Node], ...] = (
    nodes.Template, nodes.Output, nodes.TemplateData, nodes.Name, nodes.Const, nodes.If,
    nodes.CondExpr, nodes.Compare, nodes.Operand, nodes.And, nodes.Or, nodes.Not, nodes.Filter,
    nodes.Test, nodes.Tuple, nodes.List,
)  # fmt: skip
_REPORT: tuple[type[nodes.Node], ...] = (*_TEXT, nodes.For, nodes.Getattr)
_LOOPING = frozenset({"report", "site"})
_MAX_LOOP_DEPTH = 3
_ADVICE = "Templates hold text, placeholders and conditions; figures are computed before."


@dataclass(frozen=True, slots=True)
class Violation:
    """Something a template may not do, at a line."""

    line: int
    message: str
    hint: str = ""


def violations(tree: nodes.Template, kind: Kind) -> list[Violation]:
    """List everything in a parsed template that is not allowed, in order of lines."""
    found = [*_forbidden(tree, kind), *_unknown_names(tree, kind), *_deep_loops(tree, 0)]
    return sorted(found, key=lambda v: (v.line, v.message))


def _forbidden(node: nodes.Node, kind: Kind) -> Iterator[Violation]:
    allowed = _REPORT if kind in _LOOPING else _TEXT
    for child in node.iter_child_nodes():
        line = child.lineno or node.lineno
        if not isinstance(child, allowed):
            name = type(child).__name__
            yield Violation(line, f"'{name}' is not allowed in templates/{kind}", _ADVICE)
        yield from _forbidden_detail(child, line)
        yield from _forbidden(child, kind)


def _forbidden_detail(node: nodes.Node, line: int) -> Iterator[Violation]:
    if isinstance(node, nodes.Filter) and node.name not in FILTERS:
        hint = f"Allowed are {', '.join(sorted(FILTERS))}."
        yield Violation(line, f"the filter '{node.name}' is not allowed", hint)
    if isinstance(node, nodes.Test) and node.name not in _TESTS:
        yield Violation(line, f"the test '{node.name}' is not allowed", _ADVICE)
    if isinstance(node, nodes.Operand) and node.op not in _COMPARISONS:
        hint = "Compare with ==, != or in; placeholders are text."
        yield Violation(line, f"the comparison '{node.op}' is not allowed", hint)
    if isinstance(node, nodes.Getattr) and node.attr.startswith("_"):
        yield Violation(line, f"'{node.attr}' is private", _ADVICE)
    if isinstance(node, nodes.For) and node.recursive:
        yield Violation(line, "a recursive loop is not allowed", _ADVICE)


def _unknown_names(tree: nodes.Template, kind: Kind) -> Iterator[Violation]:
    known = placeholders(kind)
    bound = {name.name for name in tree.find_all(nodes.Name) if name.ctx == "store"} | {"loop"}
    seen: set[str] = set()
    for name in tree.find_all(nodes.Name):
        if name.ctx != "load" or name.name in known or name.name in seen:
            continue
        if kind in _LOOPING and name.name in bound:
            continue
        seen.add(name.name)
        hint = did_you_mean(name.name, sorted(known)) or "docs/templates.md lists them all."
        yield Violation(name.lineno, f"unknown placeholder '{name.name}'.", hint)


def _deep_loops(node: nodes.Node, depth: int) -> Iterator[Violation]:
    for child in node.iter_child_nodes():
        inside = depth + isinstance(child, nodes.For)
        if inside > _MAX_LOOP_DEPTH:
            yield Violation(child.lineno, f"loops are nested deeper than {_MAX_LOOP_DEPTH}")
            continue
        yield from _deep_loops(child, inside)
