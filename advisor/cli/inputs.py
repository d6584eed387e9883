"""Flag values that are more than a number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from advisor.errors import RequestError, UserError
from advisor.suggest import did_you_mean
from advisor.units import GB, GIB, UnitError, parse_quantity, parse_size_as_sold

_T = TypeVar("_T")


class FlagReader:
    """Reads flags one after the other and keeps every error for the end."""

    def __init__(self) -> None:
        """Start without errors."""
        self.errors: list[UserError] = []

    def take(self, read: Callable[[str, str | None], _T], flag: str, text: str | None) -> _T | None:
        """Read one flag; None where it is not stated or wrong."""
        try:
            return read(flag, text)
        except UserError as error:
            self.errors.append(error)
            return None

    def word(self, words: Sequence[_T], flag: str, text: str | None) -> _T | None:
        """Read one of these words, in any case; None where it is not stated or is none of them."""
        if text is None:
            return None
        known = {str(word): word for word in words}
        if text.casefold() in known:
            return known[text.casefold()]
        hint = did_you_mean(text, known) or f"Write {', '.join(known)}."
        self.errors.append(RequestError(f"{flag} is '{text}'", hint=hint))
        return None


def on_off(flag: str, text: str | None) -> bool | None:
    """Read on or off.

    Raises:
        RequestError: Neither.
    """
    if text is None:
        return None
    word = text.casefold()
    if word in {"on", "yes", "true", "1"}:
        return True
    if word in {"off", "no", "false", "0"}:
        return False
    raise RequestError(f"{flag} is '{text}'", hint="Write on or off.")


def count_or_all(flag: str, text: str | None) -> int | str | None:
    """Read a whole number or ``all``.

    Raises:
        RequestError: Neither.
    """
    if text is None or text.casefold() == "all":
        return text.casefold() if text else None
    try:
        return int(text)
    except ValueError:
        raise RequestError(f"{flag} is '{text}'", hint="Write a whole number or all.") from None


def read_size(flag: str, text: str | None) -> float | None:
    """Read a memory size as sold, in GiB.

    Raises:
        RequestError: Not a size.
    """
    if text is None:
        return None
    try:
        return parse_size_as_sold(text) / GIB
    except UnitError as error:
        raise RequestError(f"{flag}: {error}") from None


def read_bandwidth(flag: str, text: str | None) -> float | None:
    """Read a bandwidth, in GB/s; a bare number is GB/s.

    Raises:
        RequestError: Not a bandwidth.
    """
    if text is None:
        return None
    try:
        quantity = parse_quantity(text)
    except UnitError as error:
        raise RequestError(f"{flag}: {error}") from None
    if quantity.dimension == "count":
        return quantity.value
    if quantity.dimension == "bandwidth":
        return quantity.value / GB
    raise RequestError(f"{flag} is '{text}'", hint="Write for example 80GB/s.")
