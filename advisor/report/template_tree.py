"""A template as data.

What is stored of a template is this tree as JSON: text, names and conditions, nothing that runs.
"""

from __future__ import annotations

from typing import Union

from msgspec import Struct


class Name(Struct, frozen=True, array_like=True, gc=False, tag="name"):
    """What is given under a name: a fact, a text, or what a loop is at."""

    name: str


class Const(Struct, frozen=True, array_like=True, gc=False, tag="const"):
    """A value that stands in the template."""

    value: str | int | float | bool | None


class Both(Struct, frozen=True, array_like=True, gc=False, tag="and"):
    """The second where the first holds."""

    left: Expr
    right: Expr


class Either(Struct, frozen=True, array_like=True, gc=False, tag="or"):
    """The first where it holds, else the second."""

    left: Expr
    right: Expr


class Not(Struct, frozen=True, array_like=True, gc=False, tag="not"):
    """Whether something does not hold."""

    of: Expr


class Compared(Struct, frozen=True, array_like=True, gc=False, tag="compared"):
    """Whether a chain of comparisons holds."""

    first: Expr
    others: list[tuple[str, Expr]]


class Filtered(Struct, frozen=True, array_like=True, gc=False, tag="filtered"):
    """A value through a filter."""

    name: str
    of: Expr
    given: list[Expr]


class Tested(Struct, frozen=True, array_like=True, gc=False, tag="tested"):
    """Whether a test holds."""

    name: str
    of: Expr
    given: list[Expr]


class Choice(Struct, frozen=True, array_like=True, gc=False, tag="choice"):
    """One value or another."""

    test: Expr
    yes: Expr
    no: Expr


class Part(Struct, frozen=True, array_like=True, gc=False, tag="part"):
    """A field of a row of a table or of a record."""

    of: Expr
    key: str


class Several(Struct, frozen=True, array_like=True, gc=False, tag="several"):
    """A list."""

    items: list[Expr]


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


Expr = Union[  # noqa: UP007 - msgspec resolves the names
    Name, Const, Both, Either, Not, Compared, Filtered, Tested, Choice, Part, Several
]
Stmt = Union[Output, If, For]  # noqa: UP007 - likewise


class Tree(Struct, frozen=True, array_like=True, gc=False):
    """A template that was read and checked."""

    body: list[Stmt]
    loops: bool
    """Whether it may write without end."""
