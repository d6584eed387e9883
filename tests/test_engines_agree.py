"""Both engines give the same advice, byte for byte."""

from __future__ import annotations

from functools import lru_cache

import pytest
from msgspec.structs import replace

from advisor.advice import Advisor
from advisor.errors import UserError
from advisor.report import render_json
from advisor.report.assembly import document
from advisor.rules.engine.durable import available
from advisor.scenario.settings import Request
from tests.test_options import drawn


@lru_cache
def advisor(engine: str) -> Advisor:
    return Advisor.load(engine=engine)


def advice_json(engine: str, request: Request) -> str:
    try:
        doc = document(advisor(engine).advise(request))
    except UserError as error:
        return str(error)
    doc.provenance = replace(doc.provenance, engine="either")
    return render_json(doc)


@pytest.mark.skipif(not available(), reason="durable-rules is not installed")
@pytest.mark.parametrize("seed", [101, 102])
def test_durable_and_reference_give_the_same_bytes(seed: int) -> None:
    for request in drawn(seed):
        assert advice_json("durable", request) == advice_json("reference", request)
