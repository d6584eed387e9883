"""Documents of reports keep to their types."""

from __future__ import annotations

from functools import lru_cache

import msgspec
import pytest

from advisor.advice import Advisor
from advisor.advice.document import Advice
from advisor.report import render_json
from advisor.report.assembly import document
from advisor.scenario.settings import Request
from tests.published_schemas import path_of, written

SCHEMA = path_of("report")
REQUESTS = (
    Request(gpu="RTX 4090", model="phi-3-medium", precision="fp16"),
    Request(gpu="RTX 4000 Ada", model="llava-1.6-13b", precision="fp16", ram_gib=64.0),
    Request(gpu="DGX Spark", model="qwen3-30b-a3b", precision="Q4_K_M", batch=4),
    Request(gpu="RTX 4090", model="bge-m3", precision="FP16"),
    Request(gpu="GTX 1080", model="llama-3.1-405b", precision="INT4", ram_gib=16.0),
)


@lru_cache(maxsize=1)
def advisor() -> Advisor:
    return Advisor.load()


def current_schema() -> str:
    return written("report")


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda r: str(r.model))
def test_documents_keep_to_the_contract(request_: Request) -> None:
    text = render_json(document(advisor().advise(request_)))
    msgspec.json.decode(text, type=Advice)
