"""The small part of jinja2 that templates may use, checked when a template is parsed.

Text, placeholders, ``if``, ``vary`` and, in report/ and site/ only, ``for``. No arithmetic, calls,
includes or attributes of objects, so a template can neither compute a number nor reach the program.
What is left is bounded by its data: a loop inside a loop runs over a part of what the outer one
runs over, and ``join`` is given a short separator and nothing that was joined before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from jinja2 import nodes
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.visitor import NodeTransformer
from msgspec import Struct

from advisor.errors import did_you_mean
from advisor.knowledge.vocabulary import FactType, Folder, vocabulary
from advisor.report.template_writer import FILTERS, PICKS, SEED, place

LOOP = frozenset({"index", "index0", "first", "last", "length"})
"""What a loop may be asked."""
FORBIDDEN, UNKNOWN = "template-forbidden", "unknown-placeholder"
"""What a lint calls a violation."""
_TESTS = frozenset({"defined", "none", PICKS})
_COMPARISONS = frozenset({"eq", "ne", "in", "notin"})
_SIGNS = {"gt": ">", "gteq": ">=", "lt": "<", "lteq": "<="}
_TEXT: tuple[type[nodes.Node], ...] = (
    nodes.Template, nodes.Output, nodes.TemplateData, nodes.Name, nodes.Const, nodes.If,
    nodes.CondExpr, nodes.Compare, nodes.Operand, nodes.And, nodes.Or, nodes.Not, nodes.Filter,
    nodes.Test, nodes.Tuple, nodes.List,
)  # fmt: skip
_REPORT: tuple[type[nodes.Node], ...] = (*_TEXT, nodes.For, nodes.Getattr)
_LOOPING = frozenset({"report", "site"})
_WORDS: Mapping[type[nodes.Node], tuple[str, str]] = {
    nodes.Concat: ("~", "joining with '~'"),
    nodes.Call: ("(", "calling a function"),
    nodes.Getitem: ("[", "looking into a value with [ ]"),
    nodes.Dict: ("{", "a dictionary"),
    nodes.For: ("for", "a loop"),
    nodes.FilterBlock: ("filter", "a 'filter' block"),
}
_STATEMENTS: Mapping[type[nodes.Node], str] = {
    nodes.Include: "include", nodes.Import: "import", nodes.FromImport: "from",
    nodes.Extends: "extends", nodes.Block: "block", nodes.Macro: "macro", nodes.CallBlock: "call",
    nodes.With: "with", nodes.Assign: "set", nodes.AssignBlock: "set", nodes.Scope: "autoescape",
}  # fmt: skip
_MAX_LOOP_DEPTH = 3
_LONGEST_SEPARATOR = 10
_ADVICE = "Templates hold text, placeholders and conditions; figures are computed before."


class Violation(Struct, frozen=True):
    """Something a template may not do, at a line."""

    line: int
    message: str
    hint: str = ""
    word: str = ""
    """What stands there, for finding the column."""
    lint: str = FORBIDDEN
    column: int = 0
    """From 1; 0 until it is looked up."""


def violations(tree: nodes.Template, folder: Folder) -> list[Violation]:
    """List everything in a parsed template that is not allowed, in order of lines.

    Of an expression that is not allowed only the outermost part is named.
    """
    bound = {name.name for name in tree.find_all(nodes.Name) if name.ctx == "store"} | {"loop"}
    known = frozenset(placeholders(folder)) | (bound if folder in _LOOPING else frozenset())
    found = [*_walked(tree, folder, known), *_deep_loops(tree, 0), *_wide_loops(tree, ())]
    by_place = {(v.message, v.line if v.lint == FORBIDDEN else 0): v for v in reversed(found)}
    return sorted(by_place.values(), key=lambda v: (v.line, v.message))


def _walked(node: nodes.Node, folder: Folder, known: frozenset[str]) -> Iterator[Violation]:
    for child in node.iter_child_nodes():
        line = child.lineno or node.lineno
        found = _forbidden(child, folder, line) or _detail(child, line) or _unknown(child, known)
        if found:
            yield found
        else:
            yield from _walked(child, folder, known)


def _forbidden(node: nodes.Node, folder: Folder, line: int) -> Violation | None:
    if isinstance(node, _REPORT if folder in _LOOPING else _TEXT):
        return None
    if isinstance(node, nodes.Getattr):
        word, what = node.attr, f"the attribute '{node.attr}'"
    else:
        word, what = _named(node)
    return Violation(line, f"{what} is not allowed in templates/{folder}", _ADVICE, word)


def _named(node: nodes.Node) -> tuple[str, str]:
    """Give the word of a part that is not allowed, and what it is called."""
    sign = node.operator if isinstance(node, nodes.BinExpr | nodes.UnaryExpr) else ""
    if sign and not isinstance(node, nodes.And | nodes.Or | nodes.Not):
        return sign, f"arithmetic ('{sign}')"
    word = _STATEMENTS.get(type(node), "")
    return _WORDS.get(type(node), (word, f"'{word or type(node).__name__}'"))


def _detail(node: nodes.Node, line: int) -> Violation | None:
    if isinstance(node, nodes.Filter):
        return _filter(node, line)
    if isinstance(node, nodes.Test) and node.name not in _TESTS:
        return Violation(line, f"the test '{node.name}' is not allowed", _ADVICE, node.name)
    if isinstance(node, nodes.Operand) and node.op not in _COMPARISONS:
        hint = "Compare with ==, != or in; placeholders are text."
        sign = _SIGNS.get(node.op, node.op)
        return Violation(line, f"the comparison '{sign}' is not allowed", hint, sign)
    if isinstance(node, nodes.Getattr) and node.attr.startswith("_"):
        return Violation(line, f"'{node.attr}' is private", _ADVICE, node.attr)
    if isinstance(node, nodes.Getattr) and _is_loop(node.node) and node.attr not in LOOP:
        hint = f"A loop knows {', '.join(sorted(LOOP))}."
        return Violation(line, f"a loop has no '{node.attr}' here", hint, node.attr)
    if isinstance(node, nodes.For) and node.recursive:
        return Violation(line, "a recursive loop is not allowed", _ADVICE, "recursive")
    return None


def _is_loop(node: nodes.Node) -> bool:
    return isinstance(node, nodes.Name) and node.name == "loop"


def _filter(node: nodes.Filter, line: int) -> Violation | None:
    if node.name not in FILTERS:
        hint = f"Allowed are {', '.join(sorted(FILTERS))}."
        return Violation(line, f"the filter '{node.name}' is not allowed", hint, node.name)
    given = [*node.args, *node.kwargs, *filter(None, (node.dyn_args, node.dyn_kwargs))]
    if given and (node.name != "join" or len(given) > 1 or not _is_short(given[0])):
        hint = f"Only 'join' takes something: a separator of up to {_LONGEST_SEPARATOR} letters."
        return Violation(line, f"the filter '{node.name}' does not take this", hint, node.name)
    if node.name == "join" and _is_filtered(node.node):
        return Violation(line, "'join' of a filtered value is not allowed", _ADVICE, "join")
    return None


def _is_short(node: nodes.Node) -> bool:
    text = node.value if isinstance(node, nodes.Const) else None
    return isinstance(text, str) and len(text) <= _LONGEST_SEPARATOR


def _is_filtered(node: nodes.Node | None) -> bool:
    return node is not None and (
        isinstance(node, nodes.Filter) or next(node.find_all(nodes.Filter), None) is not None
    )


def placeholders(folder: Folder) -> Mapping[str, FactType]:
    """Give what the templates of a folder may name: facts, and what is text alone."""
    return vocabulary().named_in(folder)


class _Dotted(NodeTransformer):
    """Makes one name of the group and the name of a fact: ``memory.required``."""

    def __init__(self, bound: frozenset[str]) -> None:
        self._groups = {one.group for one in placeholders("report").values()} - bound

    def visit_Getattr(self, node: nodes.Getattr) -> nodes.Node:  # noqa: N802 - as jinja2 calls it
        group = node.node
        if isinstance(group, nodes.Name) and group.name in self._groups:
            return nodes.Name(f"{group.name}.{node.attr}", "load", lineno=node.lineno)
        return self.generic_visit(node)


def dotted(tree: nodes.Template) -> nodes.Template:
    """Give a template in which facts and texts are single names with a dot."""
    bound = frozenset(name.name for name in tree.find_all(nodes.Name) if name.ctx == "store")
    found: nodes.Template = _Dotted(bound).visit(tree)
    return found


def _unknown(node: nodes.Node, known: frozenset[str]) -> Violation | None:
    if not isinstance(node, nodes.Name) or node.ctx != "load" or node.name in known:
        return None
    hint = did_you_mean(node.name, sorted(known)) or "docs/placeholders.md lists them all."
    now = vocabulary().renamed().get(node.name, node.name)
    if now in known:
        hint = f"It is '{now}' now; 'advisor templates check --fix' writes that."
    elif now in placeholders("actions"):
        hint = "What is about a change is for templates/actions and templates/report."
    message = f"unknown placeholder '{node.name}'."
    return Violation(node.lineno, message, hint, node.name, UNKNOWN)


def _deep_loops(node: nodes.Node, depth: int) -> Iterator[Violation]:
    for child in node.iter_child_nodes():
        inside = depth + isinstance(child, nodes.For)
        if inside > _MAX_LOOP_DEPTH:
            message = f"loops are nested deeper than {_MAX_LOOP_DEPTH}"
            yield Violation(child.lineno, message, word="for")
            continue
        yield from _deep_loops(child, inside)


def _wide_loops(node: nodes.Node, outer: tuple[str, ...]) -> Iterator[Violation]:
    """Find loops inside a loop that do not run over a part of what that one is at.

    Together such loops would run as often as their lengths multiplied.
    """
    for child in node.iter_child_nodes():
        if not isinstance(child, nodes.For):
            yield from _wide_loops(child, outer)
            continue
        if outer and _root(child.iter) not in outer:
            message = "a loop inside a loop must run over a part of the outer loop's value"
            hint = f"Loop over '{outer[0]}' or something in it."
            yield Violation(child.lineno, message, hint, "for")
            continue
        yield from _wide_loops(child, _targets(child.target))


def _root(node: nodes.Node) -> str:
    while isinstance(node, nodes.Getattr):
        node = node.node
    return node.name if isinstance(node, nodes.Name) else ""


def _targets(node: nodes.Node) -> tuple[str, ...]:
    found = (node,) if isinstance(node, nodes.Name) else node.find_all(nodes.Name)
    return tuple(name.name for name in found)


class Vary(Extension):
    """``{% vary %} one wording {% or %} another {% endvary %}``, parsed into an ``if``."""

    tags = {"vary"}  # noqa: RUF012 - as jinja2 declares it

    def parse(self, parser: Parser) -> nodes.Node:
        """Make an ``if`` of the block: each wording is a branch, picked by the request's hash."""
        line = next(parser.stream).lineno
        number = self._counted(parser)
        bodies = [parser.parse_statements(("name:or", "name:endvary"))]
        while next(parser.stream).value == "or":
            bodies.append(parser.parse_statements(("name:or", "name:endvary")))
        at, count = place(parser.name or "", number), len(bodies)
        branches = [
            nodes.If(_picks(at, count, index, line), body, [], [], lineno=line)
            for index, body in enumerate(bodies[:-1])
        ]
        if not branches:
            parser.fail("a 'vary' block needs at least one {% or %}", line)
        first, *others = branches
        first.elif_, first.else_ = others, bodies[-1]
        return first

    def _counted(self, parser: Parser) -> int:
        """Count the blocks of a template as they open."""
        number: int = getattr(parser, "varied", 0)
        parser.varied = number + 1  # type: ignore[attr-defined]  # the parser lives as long as its file
        return number


def _picks(at: int, count: int, index: int, line: int) -> nodes.Test:
    given = [nodes.Const(value, lineno=line) for value in (at, count, index)]
    seed = nodes.Name(SEED, "load", lineno=line)
    return nodes.Test(seed, PICKS, given, [], None, None, lineno=line)
