"""The jinja2 environment: sandboxed, strict, restricted to ``grammar``.

Imported only when a template is rendered: jinja2 costs about 50 ms of start-up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import CodeType
from typing import get_args

import jinja2
from jinja2 import nodes
from jinja2.runtime import Context, LoopContext
from jinja2.sandbox import ImmutableSandboxedEnvironment

from advisor.errors import Source, TemplateError
from advisor.knowledge.fact_type import Folder
from advisor.report.grammar import (
    FILTERS,
    LOOP,
    Vary,
    Violation,
    dotted,
    looked_up,
    placeholders,
    renamed,
    violations,
)
from advisor.report.template_code import ESCAPED, MAX_BYTES, Writer, first_upper, place_of
from advisor.report.template_code import attribute as attribute_of
from advisor.report.template_compiler import Unsupported, code_of
from advisor.report.template_places import located, tokens_of, too_much
from advisor.report.variants import PICKS, picked
from advisor.suggest import did_you_mean

_UNDEFINED = jinja2.StrictUndefined
SYNTAX = "template-syntax"


class Sandbox(ImmutableSandboxedEnvironment):
    """Renders templates of the restricted grammar from one or more folders, first one first."""

    def __init__(self, folders: Sequence[Path]) -> None:
        super().__init__(
            loader=_Files([str(folder) for folder in folders]),
            undefined=_UNDEFINED,
            autoescape=lambda name: bool(name and name.endswith(ESCAPED)),
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=False,
            extensions=(Vary,),
            auto_reload=False,
        )
        self.folders = tuple(folders)
        self.globals.clear()
        allowed = {name: self.filters[name] for name in FILTERS if name in self.filters}
        self.filters = allowed | {"first_upper": first_upper}
        self.tests[PICKS] = picked

    def getattr(self, obj: object, attribute: str) -> object:
        """Look into data, and into nothing else: no methods, no classes, no modules."""
        if isinstance(obj, LoopContext) and attribute in LOOP:
            return getattr(obj, attribute)
        return attribute_of(obj, attribute)

    def getitem(self, obj: object, argument: object) -> object:
        """Take a fact, or an item as an attribute; filters ask in this way."""
        if isinstance(obj, Context):
            return obj[str(argument)]
        return self.getattr(obj, str(argument))

    def _parse(
        self,
        source: str,
        name: str | None,
        filename: str | None,  # noqa: ARG002  jinja2 hands it over
    ) -> nodes.Template:
        """Refuse what the grammar does not allow before any code is made of it."""
        found = self.violations(source, name or "")
        if found:
            raise Refused(found[0], name)
        return self.tree(source, name or "")

    def _generate(
        self,
        source: nodes.Template,
        name: str | None,
        filename: str | None,
        defer_init: bool = False,  # noqa: FBT001, FBT002 - as jinja2 hands it over
    ) -> str:
        return super()._generate(looked_up(source), name, filename, defer_init)

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
        known, former = placeholders(folder), renamed()
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
            found = super()._parse(source, name, None)
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


def compiled(sandbox: Sandbox, name: str) -> CodeType | None:
    """Compile one template; None where only jinja2 renders it.

    Raises:
        TemplateError: It is missing, not UTF-8, broken or not allowed.
    """
    try:
        source, _, _ = sandbox.loader.get_source(sandbox, name)  # type: ignore[union-attr]  # set
        return code_of(sandbox._parse(source, name, None), name)  # noqa: SLF001 - no public way
    except Unsupported:
        return None
    except jinja2.TemplateNotFound:
        raise TemplateError(f"there is no template '{name}'.", hint=_near(sandbox, name)) from None
    except jinja2.TemplateSyntaxError as bad:
        raise _as_error(bad, name) from None
    except UnicodeDecodeError:
        raise _not_utf8(name) from None


def rendered(sandbox: Sandbox, name: str, context: Mapping[str, object]) -> str:
    """Render one template.

    Raises:
        TemplateError: It is missing, not UTF-8, broken, not allowed, or failed.
    """
    try:
        return _limited(sandbox.get_template(name).generate(dict(context)))
    except jinja2.TemplateNotFound:
        raise TemplateError(f"there is no template '{name}'.", hint=_near(sandbox, name)) from None
    except jinja2.TemplateSyntaxError as bad:
        raise _as_error(bad, name) from None
    except UnicodeDecodeError:
        raise _not_utf8(name) from None
    except TemplateError as bad:
        raise TemplateError(bad.message, source=place_of(bad, name), hint=bad.hint) from None
    except (jinja2.TemplateError, ArithmeticError, LookupError, TypeError, ValueError) as bad:
        raise TemplateError(f"{bad}", source=place_of(bad, name)) from None


def _limited(pieces: Iterator[str]) -> str:
    """Put what a template writes together, as long as it stays within bounds."""
    written = Writer()
    for piece in pieces:
        written.add(piece)
    return "".join(written.out)


def _not_utf8(name: str) -> TemplateError:
    return TemplateError(
        "the file is not UTF-8",
        source=Source(f"templates/{name}"),
        hint="Save it as UTF-8.",
        lint=SYNTAX,
    )


def _near(sandbox: Sandbox, name: str) -> str:
    return did_you_mean(name, sandbox.list_templates(extensions=["j2"]))


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


def problems_in(sandbox: Sandbox, name: str) -> list[TemplateError]:
    """Find everything wrong with one template without rendering it."""
    if sandbox.loader is None:
        return []
    source = ""
    try:
        source, _, _ = sandbox.loader.get_source(sandbox, name)
        found = sandbox.violations(source, name)
    except jinja2.TemplateSyntaxError as bad:
        return [_as_error(bad, name, source)]
    except UnicodeDecodeError:
        return [_not_utf8(name)]
    return [_as_error(Refused(violation, name), name) for violation in found]
