"""Templates by name, from the built-in folder and a user's own in front of it.

jinja2 is imported when a template has to be compiled, never before.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache, partial
from pathlib import Path

from advisor.errors import Source, TemplateError
from advisor.files import data_dir
from advisor.report.template_code import MAX_BYTES, Rendering, keep, kept, place_of, rendering
from advisor.report.words import forget_words, read_words

SUFFIX = ".md.j2"
_TITLE = "# "


class Templates:
    """Renders templates to clean text."""

    def __init__(self, folder: Path | None) -> None:
        self._folders = ([folder] if folder else []) + [data_dir("templates")]
        self._made: dict[str, Rendering] = {}

    def page(self, name: str, context: Mapping[str, object]) -> str:
        """Render a template as it stands.

        Raises:
            TemplateError: Missing, broken, or not allowed.
        """
        made = self._made.get(name) or self._make(name)
        try:
            return made(context)
        except TemplateError as bad:
            place = bad.source or place_of(bad, name)
            raise TemplateError(bad.message, source=place, hint=bad.hint) from None
        except LookupError as bad:
            raise TemplateError(f"{bad} is not given here", source=place_of(bad, name)) from None
        except (ArithmeticError, TypeError, ValueError) as bad:
            raise TemplateError(f"{bad}", source=place_of(bad, name)) from None

    def _make(self, name: str) -> Rendering:
        """Take a template from the cache of compiled ones or compile it, once in a process."""
        source = self._source(name)
        code = kept(name, source) if source is not None else None
        if code is None or source is None:
            from advisor.report import sandbox  # noqa: PLC0415

            found = sandbox.Sandbox(self._folders)
            code = sandbox.compiled(found, name)
            if code is None or source is None:
                self._made[name] = partial(sandbox.rendered, found, name)
                return self._made[name]
            keep(name, source, code)
        self._made[name] = rendering(code)
        return self._made[name]

    def _source(self, name: str) -> bytes | None:
        """Read the first file of this name; None leaves it to jinja2 to say what is wrong."""
        if ".." in name.split("/"):
            return None
        for folder in self._folders:
            path = folder / name
            try:
                if path.is_file():
                    return path.read_bytes() if path.stat().st_size <= MAX_BYTES else None
            except OSError:
                continue
        return None

    def text(self, name: str, context: Mapping[str, object]) -> str:
        """Render a template into one paragraph on one line."""
        return " ".join(self.page(name, context).split())

    def titled(self, name: str, context: Mapping[str, object]) -> tuple[str, str]:
        """Render a template whose first line is ``# Title`` into title and paragraph."""
        head, _, body = self.page(name, context).lstrip().partition("\n")
        title, text = " ".join(head.removeprefix(_TITLE).split()), " ".join(body.split())
        if not head.startswith(_TITLE) or not title or not text:
            raise TemplateError(
                "an action's template starts with a title line and goes on with a paragraph",
                source=Source(f"templates/{name}", 1),
                hint="Write '# Use {{ option.format }} weights', then the text below it.",
            )
        return title, text


@lru_cache(maxsize=8)
def templates_for(folder: Path | None) -> Templates:
    """Give the templates with a user's folder (or none) in front, made once."""
    return Templates(folder)


def forget_templates() -> None:
    """Read templates and words anew from now on: their files have changed."""
    templates_for.cache_clear()
    forget_words()


def template_names(folder: Path) -> frozenset[str]:
    """List the templates of ``folder``/actions and ``folder``/notes by file name.

    Rules name them in ``text:``. Does not import jinja2.
    """
    kinds = ("actions", "notes")
    return frozenset(p.name for kind in kinds for p in (folder / kind).glob(f"*{SUFFIX}"))


def template_problems(folder: Path) -> list[TemplateError]:
    """Find every mistake in every template of a folder, in order of files and lines."""
    from advisor.report import sandbox  # noqa: PLC0415

    checked = sandbox.Sandbox([folder])
    names = sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*.j2"))
    problems = [found for name in names for found in sandbox.problems_in(checked, name)]
    problems += [_no_title(name) for name in names if _lacks_title(folder / name, name)]
    return problems + read_words(folder)[1]


def _lacks_title(path: Path, name: str) -> bool:
    if not name.startswith("actions/"):
        return False
    return not path.read_bytes().lstrip().startswith(_TITLE.encode())


def _no_title(name: str) -> TemplateError:
    return TemplateError(
        "the first line must be a title",
        source=Source(f"templates/{name}", 1, 1),
        hint="Write '# Use {{ option.format }} weights', then the text below it.",
    )
