"""A plan file -> a plan: YAML, CSV or JSON Lines."""

from __future__ import annotations

from pathlib import Path

from advisor.bulk.batch.plan import Plan
from advisor.bulk.batch.plan_file import read_plan
from advisor.bulk.batch.product import expand
from advisor.bulk.batch.row_plan import check_requests
from advisor.errors import RequestError
from advisor.knowledge.types import Knowledge

_YAML = (".yaml", ".yml")
_ROWS = (".csv", ".jsonl", ".ndjson", ".json")
_MOST_REASONS = 5


def load_plan(file: Path, knowledge: Knowledge, folder: Path | None = None) -> Plan:
    """Read and check a plan; nothing is estimated yet but what tells whether it can be.

    Args:
        file: The plan; its ending says what it is.
        knowledge: Where names are looked up.
        folder: The user's knowledge folder, for presets.

    Raises:
        UserError: Everything that is wrong with it, at once.
    """
    suffix = file.suffix.casefold()
    if suffix in _ROWS:
        return check_requests(file, knowledge)
    if suffix not in _YAML:
        raise RequestError(
            f"'{file}' is neither a plan nor requests by its name",
            hint=f"Name it with one of {', '.join((*_YAML, *_ROWS))}.",
        )
    try:
        content = file.read_bytes()
    except OSError as bad:
        raise RequestError(f"cannot read '{file}': {bad.strerror}.") from None
    plan = expand(read_plan(content, str(file), knowledge, folder), knowledge)
    if not plan.scenarios:
        reasons = list(plan.skipped)[:_MOST_REASONS]
        raise RequestError(
            f"nothing in '{file}' can run: {'; '.join(reasons) or 'it is empty'}",
            hint="Take other formats, cards or contexts.",
        )
    return plan
