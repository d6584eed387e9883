"""Template files -> trees: what jinja2 takes apart and ``grammar`` allows.

Imported only where a template is not stored yet: jinja2 costs about 60 ms of start-up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import get_args

import jinja2
from jinja2 import nodes

from advisor.errors import Source, TemplateError
from advisor.knowledge.fact_type import Folder
from advisor.report.grammar import Vary, Violation, dotted, placeholders, violations
from advisor.report.template_places import located, tokens_of, too_much
from advisor.report.template_tree import (
    Both,
    Choice,
    Compared,
    Const,
    Either,
    Expr,
    Filtered,
    For,
    If,
    Name,
    Not,
    Output,
    Part,
    Several,
    Stmt,
    Tested,
    Tree,
)
from advisor.report.views import vocabulary
from advisor.suggest import did_you_mean

MAX_BYTES = 64 * 1024
"""Of one template; the largest built-in one has 9 KiB."""
SYNTAX = "template-syntax"


class TemplateReader(jinja2.Environment):
    """Reads templates of the restricted grammar from one or more folders, first one first.

    jinja2 takes them apart and does no more: it never makes code of them.
    """

    def __init__(self, folders: Sequence[Path]) -> None:
        super().__init__(
            loader=_Files([str(folder) for folder in folders]),
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=False,
            extensions=(Vary,),
            auto_reload=False,
        )
        self.globals.clear()

    def source(self, name: str) -> str:
        """Read the first file of this name.

        Raises:
            TemplateNotFound: There is none.
            TemplateSyntaxError: It is too large, or a link out of its folder.
            UnicodeDecodeError: It is not UTF-8.
        """
        assert self.loader is not None
        return self.loader.get_source(self, name)[0]

    def checked(self, name: str) -> nodes.Template:
        """Read a template and refuse what the grammar does not allow.

        Raises:
            TemplateError: It is missing, not UTF-8, broken or not allowed.
        """
        try:
            source = self.source(name)
            found = self.violations(source, name)
            if found:
                raise Refused(found[0], name)
            return self.tree(source, name)
        except jinja2.TemplateNotFound:
            hint = did_you_mean(name, self.list_templates(extensions=["j2"]))
            raise TemplateError(f"there is no template '{name}'.", hint=hint) from None
        except jinja2.TemplateSyntaxError as bad:
            raise _as_error(bad, name) from None
        except UnicodeDecodeError:
            raise _not_utf8(name) from None

    def violations(self, source: str, name: str) -> list[Violation]:
        """List everything in a template that is not allowed, with lines and columns.

        Raises:
            TemplateSyntaxError: It cannot be parsed.
        """
        deep = too_much(self, source)
        if deep:
            return [deep]
        found = violations(self.tree(source, name), folder_of(name))
        return [located(self, source, violation) for violation in found]

    def renamed(self, source: str, name: str) -> str:
        """Write a template with today's names in place of those that facts once had."""
        folder = folder_of(name)
        if folder == "site":
            return source
        known, former = placeholders(folder), vocabulary().renamed()
        try:
            tree = self.tree(source, name)
        except jinja2.TemplateSyntaxError:
            return source
        bound = {found.name for found in tree.find_all(nodes.Name) if found.ctx == "store"}
        text = source.replace("\r\n", "\n").replace("\r", "\n")
        for token in reversed(list(tokens_of(self, source))):
            head, dot, rest = token.text.partition(".")
            if token.kind != "name" or token.text in known or head in bound:
                continue
            now = former.get(head, head)
            if now != head and now in known:
                text = text[: token.at] + now + dot + rest + text[token.at + len(token.text) :]
        return text.replace("\n", "\r\n") if "\r\n" in source else text

    def tree(self, source: str, name: str) -> nodes.Template:
        """Parse a template without looking at what it holds.

        Raises:
            TemplateSyntaxError: It cannot be parsed.
        """
        try:
            found = self.parse(source, name)
            return found if folder_of(name) == "site" else dotted(found)
        except jinja2.TemplateSyntaxError:
            raise
        except (ValueError, ArithmeticError, RecursionError, MemoryError) as bad:
            raise jinja2.TemplateSyntaxError(f"{bad}", 1, name) from None


class Refused(jinja2.TemplateSyntaxError):
    """A template that leaves the grammar."""

    def __init__(self, violation: Violation, name: str | None) -> None:
        super().__init__(violation.message, violation.line, name)
        self.violation = violation


class _Files(jinja2.FileSystemLoader):
    """Reads templates of the folders alone, and none that no template can be as large as."""

    def get_source(
        self, environment: jinja2.Environment, template: str
    ) -> tuple[str, str, Callable[[], bool]]:
        """Give a template's text, file name and whether it is still so.

        Raises:
            TemplateNotFound: It is missing, or a link that leads out of its folder.
            TemplateSyntaxError: It is too large.
        """
        for folder in self.searchpath:
            path = Path(folder) / template
            if not path.is_file() or ".." in Path(template).parts:
                continue
            if not path.resolve().is_relative_to(Path(folder).resolve()):
                message = "a link that leads out of the folder is not followed"
                raise jinja2.TemplateSyntaxError(message, 1, template)
            if path.stat().st_size > MAX_BYTES:
                message = f"the file is larger than {MAX_BYTES // 1024} KiB"
                raise jinja2.TemplateSyntaxError(message, 1, template)
            break
        return super().get_source(environment, template)


def folder_of(name: str) -> Folder:
    """The folder of a template; notes, the strictest, for anything else."""
    top = name.split("/", 1)[0]
    return next((folder for folder in get_args(Folder) if folder == top), "notes")


def _not_utf8(name: str) -> TemplateError:
    return TemplateError(
        "the file is not UTF-8",
        source=Source(f"templates/{name}"),
        hint="Save it as UTF-8.",
        lint=SYNTAX,
    )


def _as_error(bad: jinja2.TemplateSyntaxError, name: str, source: str = "") -> TemplateError:
    if not isinstance(bad, Refused):
        message = bad.message or "not a template"
        column = _tag_column(bad.source or source, bad.lineno)
        place = Source(f"templates/{name}", bad.lineno, column)
        return TemplateError(message, source=place, lint=SYNTAX)
    found = bad.violation
    place = Source(f"templates/{name}", found.line, found.column)
    return TemplateError(found.message, source=place, hint=found.hint, lint=found.lint)


def _tag_column(source: str, line: int) -> int:
    """The column of the first tag on a line: a parser's message has none."""
    lines = source.splitlines()
    text = lines[line - 1] if 0 < line <= len(lines) else ""
    return min((at for at in map(text.find, ("{{", "{%", "{#")) if at >= 0), default=0) + 1


def problems_in(reader: TemplateReader, name: str) -> list[TemplateError]:
    """Find everything wrong with one template without rendering it."""
    source = ""
    try:
        source = reader.source(name)
        found = reader.violations(source, name)
    except jinja2.TemplateSyntaxError as bad:
        return [_as_error(bad, name, source)]
    except UnicodeDecodeError:
        return [_not_utf8(name)]
    return [_as_error(Refused(violation, name), name) for violation in found]


def tree_of(found: nodes.Template) -> Tree:
    """Give a checked template as data."""
    return Tree(_block(found.body), found.find(nodes.For) is not None)


def _block(found: Sequence[nodes.Node]) -> list[Stmt]:
    return [_statement(node) for node in found]


def _statement(node: nodes.Node) -> Stmt:
    if isinstance(node, nodes.Output):
        return Output([(part.lineno, _part(part)) for part in node.nodes])
    if isinstance(node, nodes.If):
        branches = [(_expr(one.test), _block(one.body)) for one in (node, *node.elif_)]
        return If(node.lineno, branches, _block(node.else_))
    assert isinstance(node, nodes.For)
    names = [
        name.name
        for name in (node.target, *node.target.find_all(nodes.Name))
        if isinstance(name, nodes.Name)
    ]
    test = _expr(node.test) if node.test else None
    body, otherwise = _block(node.body), _block(node.else_)
    return For(node.lineno, names, _expr(node.iter), test, body, otherwise)


def _part(node: nodes.Node) -> str | Expr:
    return node.data if isinstance(node, nodes.TemplateData) else _expr(node)


def _expr(node: nodes.Node) -> Expr:  # noqa: C901 - one line per node
    match node:
        case nodes.Name():
            return Name(node.name)
        case nodes.Const():
            return Const(node.value)
        case nodes.And():
            return Both(_expr(node.left), _expr(node.right))
        case nodes.Or():
            return Either(_expr(node.left), _expr(node.right))
        case nodes.Not():
            return Not(_expr(node.node))
        case nodes.Compare():
            return Compared(_expr(node.expr), [(one.op, _expr(one.expr)) for one in node.ops])
        case nodes.Filter() if node.node is not None:
            return Filtered(node.name, _expr(node.node), [_expr(one) for one in node.args])
        case nodes.Test():
            return Tested(node.name, _expr(node.node), [_expr(one) for one in node.args])
        case nodes.CondExpr():
            other = _expr(node.expr2) if node.expr2 else Const("")
            return Choice(_expr(node.test), _expr(node.expr1), other)
        case nodes.Getattr():
            return Part(_expr(node.node), node.attr)
        case nodes.Tuple() | nodes.List():
            return Several([_expr(item) for item in node.items])
    raise AssertionError(type(node))  # the grammar allows nothing else
