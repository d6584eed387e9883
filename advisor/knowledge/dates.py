"""Dates as a user writes them: a year, a month or a day."""

from __future__ import annotations

import re
from datetime import date

_DATE = re.compile(r"[0-9]{4}(-[0-9]{2}(-[0-9]{2})?)?")
_FIRST_OF_YEAR = "-01-01"


def is_date(text: str) -> bool:
    """Tell ``2024``, ``2024-05`` and ``2024-05-07``, if the calendar has them."""
    if not _DATE.fullmatch(text):
        return False
    try:
        date.fromisoformat(text + _FIRST_OF_YEAR[len(text) - 4 :])
    except ValueError:
        return False
    return True
