"""Everything that can go wrong, as one tree.

AdvisorError
 * UserError            the user's input or files are wrong: exit 1
   * RequestError       what was asked for (a GPU, a model, a number)
   * KnowledgeError     a file in knowledge/
   * RuleFileError      a file in rules/
   * TemplateError      a file in templates/
   * SourceFileError    a model file (config.json, GGUF, safetensors)
   * Problems           several of the above, reported together
 * EngineError          a bug of ours: exit 70
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct


def visible(text: str) -> str:
    """Make foreign text safe to print: its lines stay, other control and invisible characters go.

    Names come from files, listings and headers of strangers; whatever stands in a message passes
    here, so that no message moves a cursor, renames a window or hides what it says.
    """
    if text.isascii() and text.replace("\n", "").isprintable():
        return text
    shown = (c if c.isprintable() or c == "\n" else " " if c.isspace() else "" for c in text)
    return "".join(shown)


def as_sentence(error: Exception) -> str:
    """Give a message with a full stop, to stand beside others."""
    text = str(error)
    return text if text.endswith((".", "?")) else f"{text}."


class Source(Struct, frozen=True, order=True):
    """A place in a file; ``line`` and ``column`` count from 1, 0 means unknown."""

    file: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        return ":".join([visible(self.file), *(str(n) for n in (self.line, self.column) if n)])


class Edit(Struct, frozen=True):
    """What to write instead of what stands at the place of a problem."""

    old: str
    new: str


class AdvisorError(Exception):
    """A message for whoever must act, with where it happened and what to do.

    Args:
        message: What is wrong, one or two sentences.
        source: Where, when it is a place in a file.
        hint: What to do ("Did you mean 'memory.deficit'?").
        lint: The kind of mistake (``unknown-fact``), for files that ``rules check`` reads.
        edit: The correction, where only one is possible.
    """

    def __init__(
        self,
        message: str,
        *,
        source: Source | None = None,
        hint: str = "",
        lint: str = "",
        edit: Edit | None = None,
    ) -> None:
        self.message = visible(message)
        self.source = source
        self.hint = visible(hint)
        self.lint = lint
        self.edit = edit
        super().__init__(self.message)

    def __str__(self) -> str:
        where = f"{self.source}: " if self.source else ""
        if not self.hint:
            return f"{where}{self.message}"
        stop = "" if self.message.endswith((".", "!", "?", ":")) else "."
        return f"{where}{self.message}{stop} {self.hint}"


class UserError(AdvisorError):
    """The user's input or files are wrong."""


class RequestError(UserError):
    """The request names something unknown, ambiguous or impossible."""


class KnowledgeError(UserError):
    """A file in knowledge/ is wrong."""


class RuleFileError(UserError):
    """A file in rules/ is wrong."""


class TemplateError(UserError):
    """A file in templates/ is wrong."""


class SourceFileError(UserError):
    """A model file cannot be read."""


class NotDescribedError(SourceFileError):
    """A model's file that may be well-formed, of which nothing here describes some part."""


class EngineError(AdvisorError):
    """The rule engine failed: a bug of ours."""


class Problems(UserError):  # noqa: N818  it is what it holds
    """All problems found, so that nobody has to fix them one run at a time.

    Args:
        errors: At least one; they are kept sorted by place.
    """

    def __init__(self, errors: Iterable[UserError]) -> None:
        self.errors: Sequence[UserError] = sorted(
            errors, key=lambda e: (e.source or Source(""), e.message)
        )
        super().__init__("\n".join(str(e) for e in self.errors))


def raise_problems(errors: Sequence[UserError]) -> None:
    """Raise what was collected: one error as itself, several as ``Problems``."""
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise Problems(errors)
