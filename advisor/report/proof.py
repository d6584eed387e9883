"""The proof that nothing helps -> placeholders."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.report import figures as f

if TYPE_CHECKING:
    from advisor.advice.document import Advice


def proof_view(doc: Advice) -> f.Strings:
    """Why nothing helps; empty where something does."""
    facts = doc.facts
    least, most = facts.get("options.least_needed"), facts.get("options.most_memory")
    return {
        "options.least_needed": f.amount(least) if isinstance(least, float) else "",
        "options.most_memory": f.amount(most) if isinstance(most, float) else "",
        "options.smallest_format": str(facts.get("options.smallest_format", "")),
        "options.largest_machine": str(facts.get("options.largest_machine", "")),
    }
