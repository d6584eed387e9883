"""The facts of requests that tests ask for: worked out once, whoever asks."""

from __future__ import annotations

import json
from collections.abc import Mapping

from advisor.advice.preparation import Prepared, prepare
from advisor.errors import Source
from advisor.knowledge.types import Knowledge
from advisor.memo import Kept
from advisor.scenario.request_data import request_from

_kept: Kept[tuple[int, str], tuple[Knowledge, Prepared]] = Kept(1_024)


def key_of(given: Mapping[str, object]) -> str:
    """Give the same text for the same request, in whatever order it was written."""
    return json.dumps(dict(given), sort_keys=True, default=str)


def prepared(
    given: Mapping[str, object], knowledge: Knowledge, source: Source | None = None
) -> Prepared:
    """Estimate a request with every what-if, as facts, or give what is kept of the same one.

    Args:
        given: The request, in the words of a case.
        knowledge: What it is estimated with.
        source: Where it is written, for messages.

    Raises:
        UserError: The request is wrong.
    """
    found = kept_of(given, knowledge)
    if found is None:
        found = prepare(request_from(given, source=source), knowledge)
        _kept.put((id(knowledge), key_of(given)), (knowledge, found))
    return found


def kept_of(given: Mapping[str, object], knowledge: Knowledge) -> Prepared | None:
    """Give what is kept of a request; None: nothing, or it is refused."""
    found = _kept.get((id(knowledge), key_of(given)))
    return found[1] if found and found[0] is knowledge else None
