"""A template as data, and how it is written out: its tree becomes functions, without jinja2.

What is stored of a template is the tree as JSON: text, names and conditions, nothing that runs.
Which of several wordings a report takes (``{% vary %} ... {% or %} ... {% endvary %}``) hangs on a
hash of what was asked and on the place in the template: the same request gives the same bytes.
"""

from __future__ import annotations

import operator
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any, Union

from msgspec import Struct

from advisor.errors import Source, TemplateError, did_you_mean
from advisor.files import hashed


class Name(Struct, frozen=True, array_like=True, gc=False, tag="name"):
    """What is given under a name: a fact, a text, or what a loop is at."""

    name: str


class Const(Struct, frozen=True, array_like=True, gc=False, tag="const"):
    """A value that stands in the template."""

    value: str | int | float | bool | None


class Op(Struct, frozen=True, array_like=True, gc=False, tag="op"):
    """What becomes of other values: a condition, a comparison, a filter, a test, a part, a list."""

    kind: str
    of: list[Expr]
    name: str = ""
    """Of the comparison, filter, test or part."""


class Output(Struct, frozen=True, array_like=True, gc=False, tag="output"):
    """Text and values, each with its line."""

    parts: list[tuple[int, str | Expr]]


class If(Struct, frozen=True, array_like=True, gc=False, tag="if"):
    """The first branch whose condition holds, else what is left."""

    line: int
    branches: list[tuple[Expr, list[Stmt]]]
    otherwise: list[Stmt]


class For(Struct, frozen=True, array_like=True, gc=False, tag="for"):
    """A body for each of several values."""

    line: int
    targets: list[str]
    over: Expr
    test: Expr | None
    body: list[Stmt]
    otherwise: list[Stmt]


Expr = Union[Name, Const, Op]  # noqa: UP007 - msgspec resolves the names
Stmt = Union[Output, If, For]  # noqa: UP007 - likewise


class Tree(Struct, frozen=True, array_like=True, gc=False):
    """A template that was read and checked."""

    body: list[Stmt]
    loops: bool
    """Whether it may write without end."""


SEED = "request.variation"
"""The placeholder that holds the hash."""
PICKS = "picks"
"""The test that a ``vary`` block becomes when its template is parsed."""
_DIGITS, _TURN = 4, 7


def variation(asked: Iterable[object]) -> str:
    """Hash a request into 64 hexadecimal digits."""
    return hashed("\0".join(map(str, asked)).encode())


def turned(seed: str, by: int) -> str:
    """Turn a hash, for the texts of one of several things in a report."""
    start = _TURN * by % len(seed)
    return seed[start:] + seed[:start]


def place(template: str, number: int) -> int:
    """Number the places where wordings vary, over all templates."""
    return zlib.crc32(f"{template}:{number}".encode()) % (64 - _DIGITS + 1)


def picked(seed: str, at: int, choices: int, choice: int) -> bool:
    """Whether a choice, counted from 0, is the one for this request at this place."""
    return int(seed[at : at + _DIGITS], 16) % choices == choice


_MOST_WRITTEN = 4_000_000
"""Characters of one rendering; the largest reports have a tenth of it."""
ESCAPED = (".html.j2", ".svg.j2")
"""Endings of templates in which placeholders are escaped."""

Given = Mapping[str, object]
Value = Callable[[Given], object]
Add = Callable[[str], None]
Write = Callable[[Given, Add], None]


def first_upper(text: str) -> str:
    """Make the first letter a capital and leave the rest (``lower`` would spoil names)."""
    return text[:1].upper() + text[1:]


def _join(items: Iterable[object], between: str = "") -> str:
    return between.join(map(str, items))


FILTERS: Mapping[str, Callable[..., str]] = {
    "capitalize": str.capitalize,
    "first_upper": first_upper,
    "join": _join,
    "lower": str.lower,
}
_COMPARED: Mapping[str, Callable[[Any, Any], bool]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "in": lambda a, b: a in b,
    "notin": lambda a, b: a not in b,
}


def part_of(of: object, key: str) -> object:
    """Look a field up in a row of a table or in a record; nothing else has parts here.

    Raises:
        TemplateError: There is none of this name.
    """
    if isinstance(of, dict):
        try:
            return of[key]
        except KeyError:
            known = tuple(of)
    else:
        known = tuple(getattr(type(of), "__struct_fields__", getattr(type(of), "_fields", ())))
        if key in known:
            return getattr(of, key)
    raise TemplateError(f"there is no '{key}' here", hint=did_you_mean(key, known))


def value_of(node: Expr) -> Value:
    """Give the function that takes what is given and gives the value of an expression."""
    if isinstance(node, Name):
        return itemgetter(node.name)
    if isinstance(node, Const):
        constant = node.value
        return lambda _: constant
    return _OPERATIONS[node.kind](node, *map(value_of, node.of))


def _compared(node: Op, left: Value, right: Value) -> Value:
    holds, other = _COMPARED[node.name], node.of[1]
    if isinstance(other, Const):
        constant = other.value
        return lambda given: holds(left(given), constant)
    return lambda given: holds(left(given), right(given))


def _filtered(node: Op, *values: Value) -> Value:
    filtered = FILTERS[node.name]
    return lambda given: filtered(*[value(given) for value in values])


def _tested(node: Op, of: Value, *_: Value) -> Value:
    if node.name == PICKS:
        at, choices, choice = (int(str(n.value)) for n in node.of if isinstance(n, Const))
        return lambda given: picked(str(of(given)), at, choices, choice)
    if node.name == "none":
        return lambda given: of(given) is None
    return lambda _: True  # what a template may name is always given


_OPERATIONS: Mapping[str, Callable[..., Value]] = {
    "and": lambda _, left, right: lambda given: left(given) and right(given),
    "or": lambda _, left, right: lambda given: left(given) or right(given),
    "not": lambda _, of: lambda given: not of(given),
    "choice": lambda _, test, yes, no: lambda given: yes(given) if test(given) else no(given),
    "part": lambda node, of: lambda given: part_of(of(given), node.name),
    "list": lambda _, *items: lambda given: tuple([item(given) for item in items]),
    "compared": _compared,
    "filter": _filtered,
    "test": _tested,
}
"""Kind of an operation -> what makes its function, from it and those of what it is of."""


class _Failed(Exception):  # noqa: N818 - carries a line to where the template is known
    def __init__(self, line: int) -> None:
        self.line = line


_MISTAKES = (TemplateError, LookupError, ArithmeticError, TypeError, ValueError)


class Writer:
    """A template that can be written out."""

    def __init__(self, tree: Tree, name: str) -> None:
        """Make functions of the tree.

        The name's ending says whether values are escaped.
        """
        self.tree, self._name, self._loops = tree, name, tree.loops
        self._body = _block(tree.body, escapes=name.endswith(ESCAPED))

    def __call__(self, given: Given) -> str:
        """Write it with what is given.

        Raises:
            TemplateError: Something is not given, or it writes too much.
        """
        out: list[str] = []
        add = _Bounded(out) if self._loops else out.append
        try:
            for write in self._body:
                write(given, add)
        except _Failed as failed:
            raise self._error(failed.__cause__, failed.line) from None
        except TemplateError as bad:
            raise self._error(bad, 0) from None
        return "".join(out)

    def _error(self, cause: BaseException | None, line: int) -> TemplateError:
        place = Source(f"templates/{self._name}", line)
        if isinstance(cause, TemplateError):
            return TemplateError(cause.message, source=cause.source or place, hint=cause.hint)
        missing = f"{cause} is not given here" if isinstance(cause, LookupError) else f"{cause}"
        return TemplateError(missing, source=place)


class _Bounded:
    """Takes what a template with loops writes, as long as it stays within bounds."""

    def __init__(self, out: list[str]) -> None:
        self._out, self._left = out, _MOST_WRITTEN

    def __call__(self, piece: str) -> None:
        self._left -= len(piece)
        if self._left < 0:
            message = f"the template writes more than {_MOST_WRITTEN:,} characters"
            raise TemplateError(message, hint="A loop writes too much.")
        self._out.append(piece)


def _block(found: Sequence[Stmt], *, escapes: bool) -> list[Write]:
    return [_written(node, escapes=escapes) for node in found]


def _written(node: Stmt, *, escapes: bool) -> Write:
    if isinstance(node, Output):
        return _output(node, escapes=escapes)
    return _if(node, escapes=escapes) if isinstance(node, If) else _for(node, escapes=escapes)


def _output(node: Output, *, escapes: bool) -> Write:
    shape = "".join(p.replace("%", "%%") if isinstance(p, str) else "%s" for _, p in node.parts)
    found = [part for _, part in node.parts if not isinstance(part, str)]
    if not found:
        text = shape % ()
        return lambda _, add: add(text)
    values = _values(found, escapes=escapes)

    def write(given: Given, add: Add) -> None:
        try:
            add(shape % values(given))
        except _MISTAKES as bad:
            raise _Failed(_line_of(node, given)) from bad

    return write


def _values(found: Sequence[Expr], *, escapes: bool) -> Callable[[Given], tuple[object, ...]]:
    names = [node.name for node in found if isinstance(node, Name)]
    if len(names) == len(found) > 1 and not escapes:
        return itemgetter(*names)
    shown = [value_of(node) for node in found]
    if escapes:
        return lambda given: tuple([_escape(value(given)) for value in shown])
    if len(shown) == 1:
        only = shown[0]
        return lambda given: (only(given),)
    return lambda given: tuple([value(given) for value in shown])


def _line_of(node: Output, given: Given) -> int:
    """Find the line of the part that cannot be written."""
    for line, part in node.parts:
        try:
            if not isinstance(part, str):
                str(value_of(part)(given))
        except _MISTAKES:
            return line
    return node.parts[0][0]


def _escape(value: object) -> str:
    from markupsafe import escape  # noqa: PLC0415 - for HTML alone

    return escape(value)


def _if(node: If, *, escapes: bool) -> Write:
    branches = [(value_of(test), _block(body, escapes=escapes)) for test, body in node.branches]
    otherwise = _block(node.otherwise, escapes=escapes)

    def write(given: Given, add: Add) -> None:
        try:
            for test, body in branches:  # noqa: B007 - used below
                if test(given):
                    break
            else:
                body = otherwise
        except _MISTAKES as bad:
            raise _Failed(node.line) from bad
        for one in body:
            one(given, add)

    return write


class _Scope(dict[str, object]):
    """What a loop is at, in front of what is given."""

    def __init__(self, given: Given) -> None:
        self._given = given

    def __missing__(self, name: str) -> object:
        return self._given[name]


def _for(node: For, *, escapes: bool) -> Write:
    over, body = value_of(node.over), _block(node.body, escapes=escapes)
    test = value_of(node.test) if node.test else None
    otherwise = _block(node.otherwise, escapes=escapes)

    def rounds(given: Given, scope: _Scope) -> list[object]:
        try:
            found: list[object] = list(over(given))  # type: ignore[call-overload]  # as it says
            if test is None:
                return found
            return [one for one in found if _bound(scope, node.targets, one) and test(scope)]
        except _MISTAKES as bad:
            raise _Failed(node.line) from bad

    def write(given: Given, add: Add) -> None:
        scope = _Scope(given)
        found = rounds(given, scope)
        last = len(found) - 1
        for index, one in enumerate(found):
            try:
                _bound(scope, node.targets, one)
            except _MISTAKES as bad:
                raise _Failed(node.line) from bad
            scope["loop"] = {
                "index": index + 1,
                "index0": index,
                "first": index == 0,
                "last": index == last,
                "length": last + 1,
            }
            for inner in body:
                inner(scope, add)
        for other in () if found else otherwise:
            other(given, add)

    return write


def _bound(scope: _Scope, targets: Sequence[str], one: object) -> bool:
    if len(targets) == 1:
        scope[targets[0]] = one
    else:
        scope.update(zip(targets, one, strict=True))  # type: ignore[call-overload]  # likewise
    return True
