"""One thing that is wrong with a file, in the form that every output reads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from advisor.errors import Edit, Problems, Source, UserError
from advisor.workbench.lint.registry import FALLBACK, LINTS, Lint


class Problem(Struct, frozen=True):
    """One finding of a check."""

    lint: Lint
    message: str
    source: Source
    """Where; the file as the user would name it, line and column 0 where there is none."""
    hint: str = ""
    edit: Edit | None = None
    """The correction to write at ``source``, where only one is possible."""

    @property
    def text(self) -> str:
        """The message and what to do, without the place."""
        stop = "" if self.message.endswith((".", "!", "?", ":")) else "."
        return f"{self.message}{stop} {self.hint}" if self.hint else self.message

    @property
    def is_error(self) -> bool:
        """Whether rules with this problem do not load or contradict themselves."""
        return self.lint.severity == "error"


def problem(
    lint: str, message: str, source: Source | None, hint: str = "", edit: Edit | None = None
) -> Problem:
    """Make a finding of a known kind.

    Args:
        lint: A name in ``LINTS``.
        message: What is wrong; ends with a full stop.
        source: Where.
        hint: What to do.
        edit: The correction.
    """
    return Problem(LINTS[lint], message, source or Source(""), hint, edit)


def problems_of(error: UserError) -> Sequence[Problem]:
    """Turn what a loader raised into findings."""
    errors = error.errors if isinstance(error, Problems) else [error]
    return [
        problem(e.lint or FALLBACK, e.message, e.source, e.hint, e.edit)
        for e in errors
        if isinstance(e, UserError)
    ]


def in_order(found: Iterable[Problem]) -> Sequence[Problem]:
    """Sort by place, then kind, then wording; the same finding is said once."""
    return sorted(set(found), key=lambda p: (p.source, p.lint.id, p.message, p.hint))
