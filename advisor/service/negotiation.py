"""Which form of an answer is wanted: named in the query, or by the header ``Accept``."""

from __future__ import annotations

from collections.abc import Sequence

from advisor.service.bodies import RefusedBodyError
from advisor.service.questions import FORMS


def form_wanted(forms: Sequence[str], named: str | None, accept: str | None) -> str:
    """Give the form.

    Args:
        forms: Those there are, the usual one first.
        named: What the query says.
        accept: The header; the higher ``q``, then the more exact, then the earlier form counts.

    Raises:
        RefusedBodyError: None of them is wanted (406).
    """
    if named is not None:
        if named in forms:
            return named
        raise _none_of(forms, f"'{named[:100]}' is no format of this answer")
    ranges = _ranges(accept or "*/*")
    found = max(forms, key=lambda form: _wanted(FORMS[form], ranges), default="json")
    if _wanted(FORMS[found], ranges) <= 0:
        raise _none_of(forms, "none of the types that are accepted can be given")
    return found


def _none_of(forms: Sequence[str], message: str) -> RefusedBodyError:
    known = ", ".join(f"{form} ({FORMS[form]})" for form in forms)
    return RefusedBodyError(message, status=406, hint=f"There are {known}.")


def _ranges(accept: str) -> dict[str, float]:
    """Read media ranges and how much each is wanted; what cannot be read is left out."""
    found: dict[str, float] = {}
    for part in accept.split(","):
        name, *parameters = (piece.strip().casefold() for piece in part.split(";"))
        weight = next((one[2:] for one in parameters if one.startswith("q=")), "1")
        try:
            found[name] = min(max(float(weight), 0.0), 1.0)
        except ValueError:
            continue
    return found


def _wanted(media: str, ranges: dict[str, float]) -> float:
    """How much a type is wanted: the most exact range that covers it says so."""
    for name in (media, f"{media.partition('/')[0]}/*", "*/*"):
        if name in ranges:
            return ranges[name]
    return 0.0
