"""Dates as a user writes them."""

from __future__ import annotations

import pytest

from advisor.knowledge.field_kinds import is_date


@pytest.mark.parametrize("text", ["2025", "2025-02", "2025-02-28", "2024-02-29"])
def test_years_months_and_days_are_dates(text: str) -> None:
    assert is_date(text)


@pytest.mark.parametrize(
    "text",
    ["", "20", "0000", "2025-", "2025-13", "2025-00", "2025-02-31", "2025-02-29", "2025-2-1",
     "2025-02-01T", "\u0662\u0660\u0662\u0665"],
)  # fmt: skip
def test_what_no_calendar_has_is_no_date(text: str) -> None:
    assert not is_date(text)
