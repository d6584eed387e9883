"""Templates of the restricted grammar -> plain Python functions.

jinja2 reads a template and ``grammar`` refuses what is not allowed; what is left is text, names and
conditions, and becomes one function that a report calls some twenty times. That takes a tenth of
the time of jinja2's own rendering, which makes a context, looks names up in four places and joins
a generator each time (benchmarks/prose.py).
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from types import CodeType
from typing import TypeVar

from jinja2 import nodes

from advisor.report.template_code import ESCAPED, FILTERS
from advisor.report.variants import PICKS

_COMPARED: Mapping[str, type[ast.cmpop]] = {
    "eq": ast.Eq, "ne": ast.NotEq, "in": ast.In, "notin": ast.NotIn,
}  # fmt: skip
_T = TypeVar("_T", ast.expr, ast.stmt, ast.If, ast.For)
_GIVEN = "given"
_ADD = "add"


class Unsupported(Exception):  # noqa: N818 - not an error: jinja2 renders the template itself
    """A construct that is left to jinja2: ``loop``, a loop's ``else`` or condition."""


def code_of(tree: nodes.Template, filename: str) -> CodeType:
    """Compile a checked template.

    Args:
        tree: What jinja2 parsed, with nothing in it that ``grammar`` refuses.
        filename: The template's name, for tracebacks; lines are the template's own.

    Raises:
        Unsupported: It holds a construct that only jinja2 renders.
    """
    loops = tree.find(nodes.For) is not None
    begin = ["writer = Writer()", "out = writer.out"] if loops else ["out = []"]
    body = [
        *map(_statement, begin),
        _statement(f"{_ADD} = {'writer.add' if loops else 'out.append'}"),
        *_Block(frozenset(), escapes=filename.endswith(ESCAPED)).statements(tree.body),
        _statement("return ''.join(out)"),
    ]
    function = ast.parse("def rendering(given): pass").body[0]
    assert isinstance(function, ast.FunctionDef)
    function.body = body
    module = ast.Module(body=[function], type_ignores=[])
    return compile(ast.fix_missing_locations(module), filename, "exec", dont_inherit=True)


def _statement(source: str) -> ast.stmt:
    return ast.parse(source).body[0]


class _Block:
    """Statements and expressions with the loop variables that are in reach."""

    def __init__(self, bound: frozenset[str], *, escapes: bool) -> None:
        self._bound = bound
        self._escapes = escapes

    def statements(self, found: Sequence[nodes.Node]) -> list[ast.stmt]:
        return [made for node in found for made in self._statement(node)] or [ast.Pass()]

    def _statement(self, node: nodes.Node) -> list[ast.stmt]:
        if isinstance(node, nodes.Output):
            return self._output(node)
        if isinstance(node, nodes.If):
            return [_placed(self._if(node), node)]
        if isinstance(node, nodes.For):
            return [_placed(self._for(node), node)]
        raise Unsupported(type(node).__name__)

    def _output(self, node: nodes.Output) -> list[ast.stmt]:
        parts: list[ast.expr] = []
        for item in node.nodes:
            if isinstance(item, nodes.TemplateData):
                parts.append(ast.Constant(item.data))
            else:
                value = self.expression(item)
                if self._escapes:
                    value = _call("escape", [value])
                parts.append(_placed(ast.FormattedValue(value, conversion=-1), item))
        return [_placed(ast.Expr(_call(_ADD, [ast.JoinedStr(parts)])), node)]

    def _if(self, node: nodes.If) -> ast.If:
        rest = self.statements(node.else_) if node.else_ else []
        for other in reversed(node.elif_):
            test = self.expression(other.test)
            rest = [_placed(ast.If(test, self.statements(other.body), rest), other)]
        return ast.If(self.expression(node.test), self.statements(node.body), rest)

    def _for(self, node: nodes.For) -> ast.For:
        if node.test or node.else_ or node.recursive:
            raise Unsupported("For")
        names = [name.name for name in node.find_all(nodes.Name) if name.ctx == "store"]
        inside = _Block(self._bound | set(names), escapes=self._escapes)
        target = inside.target(node.target)
        return ast.For(target, self.expression(node.iter), inside.statements(node.body), [])

    def target(self, node: nodes.Node) -> ast.expr:
        if isinstance(node, nodes.Tuple):
            return ast.Tuple([self.target(item) for item in node.items], ast.Store())
        assert isinstance(node, nodes.Name)
        return ast.Name(_local(node.name), ast.Store())

    def expression(self, node: nodes.Node) -> ast.expr:
        return _placed(self._expression(node), node)

    def _expression(self, node: nodes.Node) -> ast.expr:  # noqa: C901 - one line per node
        match node:
            case nodes.Name():
                return self._name(node.name)
            case nodes.Const():
                return ast.Constant(node.value)
            case nodes.And() | nodes.Or():
                kind = ast.And() if isinstance(node, nodes.And) else ast.Or()
                return ast.BoolOp(kind, [self.expression(node.left), self.expression(node.right)])
            case nodes.Not():
                return ast.UnaryOp(ast.Not(), self.expression(node.node))
            case nodes.Compare():
                return self._compared(node)
            case nodes.Filter():
                return self._filtered(node)
            case nodes.Test():
                return self._tested(node)
            case nodes.CondExpr():
                other = self.expression(node.expr2) if node.expr2 else ast.Constant("")
                return ast.IfExp(self.expression(node.test), self.expression(node.expr1), other)
            case nodes.Getattr():
                return _call("attribute", [self.expression(node.node), ast.Constant(node.attr)])
            case nodes.Tuple() | nodes.List():
                return ast.Tuple([self.expression(item) for item in node.items], ast.Load())
        raise Unsupported(type(node).__name__)

    def _name(self, name: str) -> ast.expr:
        if name in self._bound:
            return ast.Name(_local(name), ast.Load())
        if name == "loop":
            raise Unsupported(name)
        return _item(ast.Name(_GIVEN, ast.Load()), name)

    def _compared(self, node: nodes.Compare) -> ast.expr:
        kinds = [_COMPARED[operand.op]() for operand in node.ops]
        values = [self.expression(operand.expr) for operand in node.ops]
        return ast.Compare(self.expression(node.expr), kinds, values)

    def _filtered(self, node: nodes.Filter) -> ast.expr:
        if node.node is None or node.kwargs or node.name not in FILTERS:
            raise Unsupported("Filter")
        values = [self.expression(node.node), *(self.expression(item) for item in node.args)]
        return _call(f"f_{node.name}", values)

    def _tested(self, node: nodes.Test) -> ast.expr:
        if node.name != PICKS:
            raise Unsupported("Test")
        values = [self.expression(node.node), *(self.expression(item) for item in node.args)]
        return _call("picked", values)


def _local(name: str) -> str:
    """Loop variables are kept apart from the names that the function itself uses."""
    return f"v_{name}"


def _call(name: str, values: list[ast.expr]) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), values, [])


def _item(value: ast.expr, key: str) -> ast.expr:
    return ast.Subscript(value, ast.Constant(key), ast.Load())


def _placed(made: _T, node: nodes.Node) -> _T:
    made.lineno = made.end_lineno = node.lineno
    made.col_offset = made.end_col_offset = 0
    return made
