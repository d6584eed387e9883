"""Templates by name, from the built-in folder and a user's own in front of it.

jinja2 is imported at the first rendering, never before.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.errors import Source, TemplateError
from advisor.resources import data_dir

if TYPE_CHECKING:
    from advisor.render.sandbox import Sandbox

SUFFIX = ".md.j2"
_TITLE = "# "


class Templates:
    """Renders templates to clean text."""

    def __init__(self, folder: Path | None) -> None:
        self._folders = ([folder] if folder else []) + [data_dir("templates")]
        self._sandbox: Sandbox | None = None

    def page(self, name: str, context: Mapping[str, object]) -> str:
        """Render a template as it stands.

        Raises:
            TemplateError: Missing, broken, or not allowed.
        """
        from advisor.render import sandbox  # noqa: PLC0415

        if self._sandbox is None:
            self._sandbox = sandbox.Sandbox(self._folders)
        return sandbox.rendered(self._sandbox, name, dict(context))

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
                hint="Write '# Use {{ option_format }} weights', then the text below it.",
            )
        return title, text


@lru_cache(maxsize=8)
def templates_for(folder: Path | None) -> Templates:
    """Give the templates with a user's folder (or none) in front, made once."""
    return Templates(folder)


def template_names(folder: Path) -> frozenset[str]:
    """List the templates of ``folder``/actions and ``folder``/notes by file name.

    Rules name them in ``text:``. Does not import jinja2.
    """
    kinds = ("actions", "notes")
    return frozenset(p.name for kind in kinds for p in (folder / kind).glob(f"*{SUFFIX}"))


def template_problems(folder: Path) -> list[TemplateError]:
    """Find every mistake in every template of a folder, in order of files and lines."""
    from advisor.render import sandbox  # noqa: PLC0415

    checked = sandbox.Sandbox([folder], cached=False)
    names = sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*.j2"))
    problems = [found for name in names for found in sandbox.problems_in(checked, name)]
    return problems + [_no_title(name) for name in names if _lacks_title(folder / name, name)]


def _lacks_title(path: Path, name: str) -> bool:
    if not name.startswith("actions/"):
        return False
    return not path.read_bytes().lstrip().startswith(_TITLE.encode())


def _no_title(name: str) -> TemplateError:
    return TemplateError(
        "the first line must be a title",
        source=Source(f"templates/{name}", 1, 1),
        hint="Write '# Use {{ option_format }} weights', then the text below it.",
    )
