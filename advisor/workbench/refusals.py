"""Why a request of a case or scenario is refused, on one line."""

from __future__ import annotations

from advisor.errors import Problems, UserError

_FOR_A_TERMINAL = "Add --"


def refusal(error: UserError) -> str:
    """Say in one line all that is wrong with an input, without what to type on a terminal."""
    errors = error.errors if isinstance(error, Problems) else [error]
    return " ".join(_said(one) for one in errors)


def _said(error: UserError) -> str:
    hint = "" if error.hint.startswith(_FOR_A_TERMINAL) else error.hint
    return f"{error.message.removesuffix('.')}. {hint}".rstrip()
