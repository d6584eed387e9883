"""The page of each kind of problem: what it means, why, and how to put it right."""

from __future__ import annotations

from pathlib import Path

from advisor.errors import RequestError
from advisor.suggest import did_you_mean
from advisor.workbench.lint.registry import LINTS

_PACKAGE = Path(__file__).resolve().parents[2]


def pages_dir() -> Path:
    """Find the pages: in the wheel or, from a checkout, in ``docs/lints``."""
    packaged = _PACKAGE / "data" / "lints"
    return packaged if packaged.is_dir() else _PACKAGE.parent / "docs" / "lints"


def page(lint: str) -> str:
    """Give the page of one kind.

    Raises:
        RequestError: There is no such kind.
    """
    if lint not in LINTS:
        hint = did_you_mean(lint, LINTS) or f"Known: {', '.join(LINTS)}."
        raise RequestError(f"no kind of problem is called '{lint}'", hint=hint)
    return (pages_dir() / f"{lint}.md").read_text(encoding="utf-8")
