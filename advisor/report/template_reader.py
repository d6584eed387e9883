"""Template files -> trees: what jinja2 takes apart and ``grammar`` allows.

Imported only where a template is not stored yet: jinja2 costs about 60 ms of start-up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import pairwise
from pathlib import Path
from typing import get_args

import jinja2
from jinja2 import nodes
from msgspec import Struct
from msgspec.structs import replace

from advisor.errors import Source, TemplateError, did_you_mean
from advisor.knowledge.vocabulary import Folder, vocabulary
from advisor.report.grammar import Vary, Violation, dotted, placeholders, violations
from advisor.report.template_writer import Const, Expr, For, If, Name, Op, Output, Stmt, Tree
from advisor.report.word_file import UNREAD, read_source

_MAX_TAGS, _MAX_TOKENS, _MAX_BRACKETS, _MAX_BLOCKS = 1500, 80, 8, 16
_MAX_DIGITS, _MAX_BRANCHES = 20, 200
_TAGS = ("variable_begin", "block_begin")
_ENDS = ("variable_end", "block_end")
_OPEN = ("if", "for", "vary")
_SPLIT = "Split the template, or the condition."


class Token(Struct, frozen=True):
    """A piece of a template with its place, lines and columns from 1."""

    line: int
    column: int
    kind: str
    text: str
    at: int = 0
    """Characters before it, an end of line being one."""


def located(environment: jinja2.Environment, source: str, found: Violation) -> Violation:
    """Add the column of a violation: that of its word, else of the first tag of its line."""
    tokens = [t for t in tokens_of(environment, source) if t.line >= found.line]
    exact = (t for t in tokens if found.word and t.text == found.word and t.kind != "data")
    at = next(exact, None) or next((t for t in tokens if t.kind in _TAGS), None)
    if at is None or (not found.word and at.line != found.line):
        return replace(found, column=1)
    return replace(found, line=at.line, column=at.column)


def too_much(environment: jinja2.Environment, source: str) -> Violation | None:
    """Find what is nested or chained so far that a parser or a compiler could fail on it."""
    count = _Count()
    for before, token in pairwise([Token(1, 1, "", ""), *tokens_of(environment, source)]):
        message = count.over(before, token)
        if message:
            return Violation(token.line, message, _SPLIT, token.text, column=token.column)
    return None


class _Count(Struct):
    """How much of everything there was so far."""

    tags: int = 0
    tokens: int = 0
    brackets: int = 0
    blocks: int = 0
    branches: int = 0

    def over(self, before: Token, token: Token) -> str:
        """Count a token, and say which bound it goes over."""
        if token.kind == "data" or token.kind in _ENDS:
            return ""
        if token.kind in _TAGS:
            self.tags, self.tokens, self.brackets = self.tags + 1, 0, 0
            return f"more than {_MAX_TAGS} tags" if self.tags > _MAX_TAGS else ""
        self.tokens += 1
        self.brackets += (token.text in "([{") - (token.text in ")]}")
        if before.kind == "block_begin":
            self.branches += token.text in {"elif", "or"}
            self.blocks += (token.text in _OPEN) - (token.text.startswith("end"))
        return self._said() or _too_long(token)

    def _said(self) -> str:
        if self.tokens > _MAX_TOKENS:
            return f"more than {_MAX_TOKENS} words and signs in one tag"
        if self.brackets > _MAX_BRACKETS:
            return f"brackets are nested deeper than {_MAX_BRACKETS}"
        if self.blocks > _MAX_BLOCKS:
            return f"blocks are nested deeper than {_MAX_BLOCKS}"
        return f"more than {_MAX_BRANCHES} branches" if self.branches > _MAX_BRANCHES else ""


def _too_long(token: Token) -> str:
    if token.kind in {"integer", "float"} and len(token.text) > _MAX_DIGITS:
        return f"a number of more than {_MAX_DIGITS} digits"
    return ""


def tokens_of(environment: jinja2.Environment, source: str) -> Iterator[Token]:
    """Give every token but white space, as far as the text can be taken apart.

    ``memory.required`` is one token of the kind ``name``.
    """
    last: Token | None = None
    for token in _pieces(environment, source):
        if last and token.at == last.at + len(last.text) and _belongs(last, token):
            last = replace(last, text=last.text + token.text)
            continue
        if last:
            yield last
        last = token
    if last:
        yield last


def _belongs(before: Token, token: Token) -> bool:
    """Whether a dot or what follows one goes on with a name."""
    if before.kind != "name":
        return False
    return token.text == "." or (token.kind == "name" and before.text.endswith("."))


def _pieces(environment: jinja2.Environment, source: str) -> Iterator[Token]:
    text = source.replace("\r\n", "\n").replace("\r", "\n")
    at = begin = 0
    line = 1
    try:
        for _, kind, value in environment.lex(source):
            if kind == "whitespace" or not value:
                continue
            found = text.find(value, at)
            if found < 0:
                continue
            line += text.count("\n", begin, found)
            begin = found
            at = found + len(value)
            column = found - text.rfind("\n", 0, found)
            yield Token(line, column, kind, value, found)
    except jinja2.TemplateSyntaxError:
        return


SYNTAX = UNREAD


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
        self,
        environment: jinja2.Environment,  # noqa: ARG002 - jinja2 asks it so
        template: str,
    ) -> tuple[str, str, Callable[[], bool]]:
        """Give a template's text, file name and whether it is still so.

        Raises:
            TemplateNotFound: It is missing, or a link that leads out of its folder.
            TemplateSyntaxError: It is too large.
        """
        for folder in self.searchpath:
            try:
                source = read_source(Path(folder), template)
            except TemplateError as bad:
                raise jinja2.TemplateSyntaxError(bad.message, 1, template) from None
            if source is not None:
                return source.decode().replace("\r\n", "\n").replace("\r", "\n"), template, bool
        raise jinja2.TemplateNotFound(template)


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


_FORM = "A figure is written {{ NAME }}, a condition {% if NAME %} ... {% endif %}."


def _as_error(bad: jinja2.TemplateSyntaxError, name: str, source: str = "") -> TemplateError:
    if not isinstance(bad, Refused):
        message = bad.message or "not a template"
        column = _tag_column(bad.source or source, bad.lineno)
        place = Source(f"templates/{name}", bad.lineno, column)
        return TemplateError(f"{message}.", source=place, hint=_FORM, lint=SYNTAX)
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


_KINDS: Mapping[type[nodes.Node], str] = {
    nodes.And: "and", nodes.Or: "or", nodes.Not: "not", nodes.CondExpr: "choice",
    nodes.Filter: "filter", nodes.Test: "test", nodes.Getattr: "part",
    nodes.Tuple: "list", nodes.List: "list",
}  # fmt: skip
"""What the grammar allows beside names, values and comparisons."""


def _expr(node: nodes.Node) -> Expr:
    if isinstance(node, nodes.Name):
        return Name(node.name)
    if isinstance(node, nodes.Const):
        return Const(node.value)
    if isinstance(node, nodes.Compare):
        return _compared(node)
    of = [_expr(child) for child in node.iter_child_nodes()]
    if isinstance(node, nodes.CondExpr) and node.expr2 is None:
        of.append(Const(""))
    return Op(_KINDS[type(node)], of, getattr(node, "attr", getattr(node, "name", "")))


def _compared(node: nodes.Compare) -> Expr:
    """Make of a chain of comparisons one that holds where each holds."""
    ends = [_expr(one) for one in (node.expr, *(other.expr for other in node.ops))]
    pairs = [
        Op("compared", [*both], one.op) for both, one in zip(pairwise(ends), node.ops, strict=True)
    ]
    return reduce(lambda left, right: Op("and", [left, right]), pairs)
