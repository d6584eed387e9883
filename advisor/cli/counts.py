"""Numbers with their word."""

from __future__ import annotations


def counted(number: int, word: str) -> str:
    """Write ``1 page`` or ``2,000 pages``."""
    return f"{number:,} {word}{'' if number == 1 else 's'}"
