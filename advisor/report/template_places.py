"""Where in a template something stands, and whether its shape is one a parser can take.

jinja2 knows lines but no columns, and recurses once for every bracket.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import jinja2
from msgspec import Struct
from msgspec.structs import replace

from advisor.report.grammar import Violation

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
