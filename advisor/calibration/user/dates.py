"""Days as files write them."""

from __future__ import annotations

import re
from datetime import date


def iso_date(text: str) -> str:
    """Give the ISO date at the start of a text, or nothing.

    Known: 2025-04-24T11:57:09Z and 20250424-115709.
    """
    found = re.match(r"(\d{4})-?(\d{2})-?(\d{2})(?!\d)", text)
    if not found:
        return ""
    try:
        return date(*map(int, found.groups())).isoformat()
    except ValueError:
        return ""
