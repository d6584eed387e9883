"""The JSON and CSV of the reverse questions."""

from __future__ import annotations

import csv
import io
import json
from functools import lru_cache

import msgspec
import pytest

from advisor.bulk.reverse.answers import Settings
from advisor.bulk.reverse.cards import CardFilter, gpus_for
from advisor.bulk.reverse.documents import COLUMNS, ReverseDoc, reverse_doc, written_csv
from advisor.bulk.reverse.models import ModelFilter, models_for
from advisor.report import render_json
from advisor.scenario.settings import Request, request_from
from tests.published_schemas import path_of, written
from tests.reverse.asking import advisor, knowledge

SCHEMA = path_of("reverse")


@lru_cache(maxsize=2)
def doc(question: str) -> ReverseDoc:
    settings = Settings(Request(gpus=2, ram_gib=64, ram_bandwidth_gb_s=80))
    if question == "models-for":
        cards, found = models_for("RTX 3060 12GB", settings, ModelFilter(), knowledge(), limit=12)
        return reverse_doc(question, cards.gpu.name, found, knowledge())
    model, found = gpus_for("llama-3-70b", settings, CardFilter(), knowledge(), limit=12)
    return reverse_doc(question, model.name, found, knowledge())


def current_schema() -> str:
    return written("reverse")


@pytest.mark.parametrize("question", ["models-for", "gpus-for"])
def test_documents_keep_to_the_contract(question: str) -> None:
    text = render_json(doc(question))
    msgspec.json.decode(text, type=ReverseDoc)
    assert json.loads(text)["schema_version"] == 1


@pytest.mark.parametrize("question", ["models-for", "gpus-for"])
def test_every_item_is_accounted_for(question: str) -> None:
    found = doc(question)
    assert found.fitting + sum(found.left_out.values()) == found.tried
    assert [row.rank for row in found.rows] == list(range(1, len(found.rows) + 1))


@pytest.mark.parametrize("question", ["models-for", "gpus-for"])
def test_the_csv_holds_the_figures_of_the_json(question: str) -> None:
    found = doc(question)
    rows = list(csv.DictReader(io.StringIO(written_csv(found))))
    assert tuple(rows[0]) == COLUMNS
    assert len(rows) == len(found.rows)
    for cells, row in zip(rows, found.rows, strict=True):
        assert cells["model"] == row.scenario.model.name
        assert int(cells["required_bytes"]) == row.memory.required_bytes
        speed = row.speed
        known = speed is not None
        assert (cells["decode_tok_s"] != "") == known
        if speed is not None:
            assert float(cells["decode_tok_s"]) == speed.decode_tok_s.estimate


def test_the_best_cards_are_named() -> None:
    assert set(doc("gpus-for").best) == {"price", "memory", "speed", "power"}
    assert doc("models-for").best == {}


def test_requests_of_rows_can_be_run_in_bulk() -> None:
    for row in doc("models-for").rows[:4]:
        base = advisor().estimate(request_from(row.request))
        assert base.memory.required_bytes == row.memory.required_bytes
