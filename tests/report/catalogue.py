"""Reports on a fixed, even sample of the catalogue, made once for all tests of the wording."""

from __future__ import annotations

from functools import lru_cache
from itertools import islice

from advisor.advice import Advisor
from advisor.advice.conclusions import Conclusions
from advisor.advice.document import Advice
from advisor.errors import UserError
from advisor.report.assembly import Views, document_and_views
from advisor.scenario.settings import request_from
from advisor.workbench.fact_store import Given, drawn, eased

REPORTS = 200


@lru_cache(maxsize=1)
def advisor() -> Advisor:
    return Advisor.load()


@lru_cache(maxsize=1)
def sampled() -> tuple[tuple[Advice, Views], ...]:
    found = (_advised(given) for given in drawn(advisor().knowledge))
    some = islice((advice for advice in found if advice), REPORTS)
    return tuple(document_and_views(advice) for advice in some)


def _advised(given: Given) -> Conclusions | None:
    for easier in eased(given):
        try:
            return advisor().advise(request_from({"precision": "FP16", **easier}))
        except UserError:
            continue
    return None
