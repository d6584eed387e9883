"""Where a runtime runs the formats of one family: ``format_limits`` of frameworks.yaml."""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

from advisor.knowledge.fields import Record
from advisor.knowledge.types import Vendor
from advisor.suggest import did_you_mean

_KEY = "format_limits"


def format_limits(record: Record) -> dict[str, dict[str, object]]:
    """Read the limits of a framework: family -> fields of ``FormatLimit``.

    ``model_types_of`` is left beside them until ``link_limits`` has filled it in.
    """
    found: dict[str, dict[str, object]] = {}
    for family, node in record.mapping(_KEY).items():
        if not isinstance(node.value, Mapping):
            message = f"'{_KEY}': '{family}' must be a mapping of keys to values"
            record.problem(message, at=node.source)
            continue
        limit = Record(node, "format limit", f"{record.name}, {family}", record.problems)
        found[family] = {
            "vendors": limit.choices("vendors", get_args(Vendor)),
            "model_types": limit.texts("model_types"),
            "model_types_of": limit.text("model_types_of"),
            "one_card": limit.flag("one_card") is True,
        }
        limit.finish()
    return found


def link_limits(
    record: Record, fields: Mapping[str, object], earlier: Mapping[str, object]
) -> None:
    """Fill in ``model_types_of``: framework before this one -> its architectures."""
    limits = fields[_KEY]
    assert isinstance(limits, Mapping)
    for limit in limits.values():
        as_other = limit.pop("model_types_of")
        if as_other in earlier:
            limit["model_types"] = earlier[as_other]
        elif as_other:
            message = f"'{_KEY}': there is no framework before it '{as_other}'."
            record.problem(message, at=record.at(_KEY), hint=did_you_mean(as_other, earlier))
