"""The jinja2 environment: sandboxed, strict, restricted to ``grammar``, and cached.

Imported only when a template is rendered: jinja2 costs about 50 ms of start-up.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

import jinja2
from jinja2 import nodes
from jinja2.bccache import Bucket, BytecodeCache
from jinja2.sandbox import ImmutableSandboxedEnvironment

from advisor.cache import user_cache_dir
from advisor.errors import Source, TemplateError
from advisor.render.grammar import FILTERS, Violation, violations
from advisor.render.names import KINDS, Kind
from advisor.suggest import did_you_mean

_GRAMMAR_VERSION = 1
_UNDEFINED = jinja2.StrictUndefined


class Sandbox(ImmutableSandboxedEnvironment):
    """Renders templates of the restricted grammar from one or more folders, first one first."""

    def __init__(self, folders: Sequence[Path], *, cached: bool = True) -> None:
        super().__init__(
            loader=jinja2.FileSystemLoader([str(folder) for folder in folders]),
            undefined=_UNDEFINED,
            autoescape=lambda name: bool(name and name.endswith(".html.j2")),
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=False,
            bytecode_cache=_Compiled() if cached else None,
            extensions=(),
            auto_reload=False,
        )
        self.folders = tuple(folders)
        self.globals.clear()
        allowed = {name: self.filters[name] for name in FILTERS if name in self.filters}
        self.filters = allowed | {"first_upper": _first_upper}

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


class _Compiled(BytecodeCache):
    """Compiled templates in the user's cache folder; unusable folders cost time only."""

    def __init__(self) -> None:
        version = f"templates-{jinja2.__version__}-{_GRAMMAR_VERSION}"
        self._folder = user_cache_dir() / version

    def load_bytecode(self, bucket: Bucket) -> None:
        """Read a compiled template if it is there and fits."""
        try:
            with (self._folder / bucket.key).open("rb") as file:
                bucket.load_bytecode(file)
        except OSError:
            return

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Write a compiled template whole or not at all."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=self._folder, suffix=".tmp")
            with os.fdopen(handle, "wb") as file:
                bucket.write_bytecode(file)
            Path(name).replace(self._folder / bucket.key)
        except OSError:
            return


def _first_upper(text: str) -> str:
    """Make the first letter a capital and leave the rest (``lower`` would spoil names)."""
    return text[:1].upper() + text[1:]


def kind_of(name: str) -> Kind:
    """The kind of template by its folder; notes, the strictest, for anything else."""
    folder = name.split("/", 1)[0]
    return next((kind for kind in KINDS if kind == folder), "notes")


def rendered(sandbox: Sandbox, name: str, context: dict[str, object]) -> str:
    """Render one template.

    Raises:
        TemplateError: It is missing, not UTF-8, broken, not allowed, or failed.
    """
    try:
        return sandbox.get_template(name).render(context)
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
