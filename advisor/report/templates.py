"""Templates by name, from the built-in folder and a user's own in front of it.

jinja2 is imported when a template has to be read anew, never before.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from types import ModuleType

from advisor.errors import Source, TemplateError
from advisor.files import compiled, data_dir, hashed, read_tree
from advisor.knowledge.layers import Stack, layers, stack
from advisor.report.figures import forget_words, words_of
from advisor.report.template_writer import Tree, Writer
from advisor.report.word_file import read_source, read_words

_TITLE = "# "
_KEPT = 512
"""Templates that stay stored."""


class Templates:
    """Renders templates to clean text."""

    def __init__(self, folders: Stack) -> None:
        self._folders = [*reversed(stack(folders)), data_dir("templates")]
        self._made: dict[str, Writer] = {}

    def page(self, name: str, context: Mapping[str, object]) -> str:
        """Render a template as it stands.

        Raises:
            TemplateError: Missing, broken, or not allowed.
        """
        return self._writer(name)(context)

    def tree(self, name: str) -> Tree:
        """Give a template as data, stored since it was first read.

        Raises:
            TemplateError: Missing, broken, or not allowed.
        """
        return self._writer(name).tree

    def _writer(self, name: str) -> Writer:
        made = self._made.get(name)
        if made is None:
            made = self._made[name] = Writer(self._tree(name), name)
        return made

    def _tree(self, name: str) -> Tree:
        source = self._source(name)
        if source is None:
            return self._read(name)
        key = hashed(f"{name}\0".encode() + source)
        return compiled("template", key, lambda: self._read(name), Tree, most=_KEPT)

    def _read(self, name: str) -> Tree:
        reading = _reading()
        tree: Tree = reading.tree_of(reading.TemplateReader(self._folders).checked(name))
        return tree

    def _source(self, name: str) -> bytes | None:
        """Read the first file of this name; None leaves it to the reader to say what is wrong."""
        with suppress(TemplateError):
            found = (read_source(folder, name) for folder in self._folders)
            return next((source for source in found if source is not None), None)
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


def _reading() -> ModuleType:
    """Give what takes templates apart: it needs jinja2, which a warm start does without."""
    from advisor.report import template_reader  # noqa: PLC0415

    return template_reader


def templates_for(folders: Stack) -> Templates:
    """Give the templates with a user's folders (or none) in front, made once."""
    return _templates_for(stack(folders))


_templates_for = lru_cache(maxsize=8)(Templates)


def compile_texts() -> None:
    """Compile every template that is built in, so that the first run finds it made."""
    texts = templates_for(None)
    for name in read_tree(data_dir("templates"), [".j2"]):
        texts.tree(name)


def forget_templates() -> None:
    """Read templates and words anew from now on: their files have changed."""
    _templates_for.cache_clear()
    forget_words()


def template_problems(folders: Stack) -> list[TemplateError]:
    """Find every mistake in every template of the folders that exist, in order of lines."""
    named = layers(folders, "templates")
    return [
        _in(layer.label, problem)
        for layer in named
        if layer.folder.is_dir()
        for problem in _problems(layer.folder)
    ]


def _in(label: str, problem: TemplateError) -> TemplateError:
    """Name the folder of a problem as its layer is called."""
    at = problem.source or Source("")
    place = Source(f"{label}/{at.file.partition('/')[2]}", at.line, at.column)
    return TemplateError(
        problem.message, source=place, hint=problem.hint, lint=problem.lint, edit=problem.edit
    )


def _problems(folder: Path) -> list[TemplateError]:
    reading = _reading()
    reader = reading.TemplateReader([folder])
    names = sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*.j2"))
    problems = [found for name in names for found in reading.problems_in(reader, name)]
    problems += [_no_title(name) for name in names if _lacks_title(folder / name, name)]
    return problems + read_words(folder, words_of(None))[1]


def _lacks_title(path: Path, name: str) -> bool:
    if not name.startswith("actions/"):
        return False
    with suppress(TemplateError):
        return not (read_source(path.parent, path.name) or b"").lstrip().startswith(_TITLE.encode())
    return False


def _no_title(name: str) -> TemplateError:
    return TemplateError(
        "the first line must be a title",
        source=Source(f"templates/{name}", 1, 1),
        hint="Write '# Use {{ option.format }} weights', then the text below it.",
    )
