"""The jinja2 environment: sandboxed, strict, restricted to ``grammar``.

Imported only when a template is rendered: jinja2 costs about 50 ms of start-up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import CodeType

import jinja2
from jinja2 import nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment

from advisor.errors import Source, TemplateError
from advisor.render.compiled import first_upper
from advisor.render.compiling import Unsupported, code_of
from advisor.render.grammar import FILTERS, Vary, Violation, violations
from advisor.render.names import KINDS, Kind
from advisor.render.varied import PICKS, picked
from advisor.suggest import did_you_mean

_UNDEFINED = jinja2.StrictUndefined


class Sandbox(ImmutableSandboxedEnvironment):
    """Renders templates of the restricted grammar from one or more folders, first one first."""

    def __init__(self, folders: Sequence[Path]) -> None:
        super().__init__(
            loader=jinja2.FileSystemLoader([str(folder) for folder in folders]),
            undefined=_UNDEFINED,
            autoescape=lambda name: bool(name and name.endswith(".html.j2")),
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
        """Look a key up at once: rows of tables are plain dicts, and no key is a dict's method."""
        if type(obj) is dict and attribute in obj:
            return obj[attribute]
        return super().getattr(obj, attribute)

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        """Refuse what the grammar does not allow before any code is made of it."""
        tree = super()._parse(source, name, filename)
        found = violations(tree, kind_of(name or ""))
        if found:
            raise Refused(found[0], name)
        return tree


class Refused(jinja2.TemplateSyntaxError):
    """A template that leaves the grammar."""

    def __init__(self, violation: Violation, name: str | None) -> None:
        super().__init__(violation.message, violation.line, name)
        self.hint = violation.hint


def kind_of(name: str) -> Kind:
    """The kind of template by its folder; notes, the strictest, for anything else."""
    folder = name.split("/", 1)[0]
    return next((kind for kind in KINDS if kind == folder), "notes")


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
        raise TemplateError("the file is not UTF-8", source=Source(f"templates/{name}")) from None


def rendered(sandbox: Sandbox, name: str, context: Mapping[str, object]) -> str:
    """Render one template.

    Raises:
        TemplateError: It is missing, not UTF-8, broken, not allowed, or failed.
    """
    try:
        return sandbox.get_template(name).render(dict(context))
    except jinja2.TemplateNotFound:
        raise TemplateError(f"there is no template '{name}'.", hint=_near(sandbox, name)) from None
    except jinja2.TemplateSyntaxError as bad:
        raise _as_error(bad, name) from None
    except UnicodeDecodeError:
        raise TemplateError("the file is not UTF-8", source=Source(f"templates/{name}")) from None
    except (jinja2.TemplateError, ArithmeticError, LookupError, TypeError, ValueError) as bad:
        raise TemplateError(f"{bad}", source=_place(bad, name)) from None


def _near(sandbox: Sandbox, name: str) -> str:
    return did_you_mean(name, sandbox.list_templates(extensions=["j2"]))


def _as_error(bad: jinja2.TemplateSyntaxError, name: str) -> TemplateError:
    message = bad.message or "not a template"
    hint = bad.hint if isinstance(bad, Refused) else ""
    return TemplateError(message, source=Source(f"templates/{name}", bad.lineno), hint=hint)


def _place(bad: Exception, name: str) -> Source:
    line, trace = 0, bad.__traceback__
    while trace:
        if trace.tb_frame.f_code.co_filename.endswith(".j2"):
            line = trace.tb_lineno
        trace = trace.tb_next
    return Source(f"templates/{name}", line)


def problems_in(sandbox: Sandbox, name: str) -> list[TemplateError]:
    """Find everything wrong with one template without rendering it."""
    if sandbox.loader is None:
        return []
    try:
        source, _, _ = sandbox.loader.get_source(sandbox, name)
        tree = ImmutableSandboxedEnvironment._parse(sandbox, source, name, None)  # noqa: SLF001
    except jinja2.TemplateSyntaxError as bad:
        return [_as_error(bad, name)]
    except UnicodeDecodeError:
        return [TemplateError("the file is not UTF-8", source=Source(f"templates/{name}"))]
    return [_as_error(Refused(found, name), name) for found in violations(tree, kind_of(name))]
