"""The published schema of the JSON document is current, and documents keep to it."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path

import msgspec
import pytest

from advisor.advice.document import Advice
from advisor.advice.pipeline import Advisor
from advisor.report.assembly import document
from advisor.report.formats import render_json
from advisor.scenario.settings import Request

SCHEMA = Path(__file__).resolve().parents[2] / "docs" / "report.schema.json"
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
    return json.dumps(msgspec.json.schema(Advice), indent=1, sort_keys=True) + "\n"


def test_the_published_schema_is_current() -> None:
    """On failure write ``current_schema()`` to docs/report.schema.json."""
    assert SCHEMA.read_text(encoding="utf-8") == current_schema()


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda r: str(r.model))
def test_documents_keep_to_the_contract(request_: Request) -> None:
    text = render_json(document(advisor().advise(request_)))
    msgspec.json.decode(text, type=Advice)
