"""How old what is known is, and what the records lack of the public list."""

from __future__ import annotations

import re

import pytest
from msgspec import json

from advisor.files import data_dir
from advisor.knowledge import load_knowledge
from advisor.knowledge.merit import merits
from advisor.knowledge.types import ModelRecord
from advisor.models.any_config import read_any
from advisor.reading.public_import import ages, behind, without_record
from advisor.reading.public_list import every, exact
from advisor.reading.public_sizing import model_of, model_unlisted
from advisor.reading.published import OWN, own_record, recorded_repositories
from tests.cli.running import run

KNOWN = load_knowledge()


def test_every_part_has_its_youngest_entry() -> None:
    found = {age.what: age for age in ages(KNOWN)}
    models = [record.released for record in KNOWN.models.values() if record.released]
    assert found["models"].newest == max(models)
    assert found["models"].undated == len(KNOWN.models) - len(models)
    assert {f"board {name}" for name in merits(KNOWN).boards} < set(found)


DAY = r"20\d\d-\d\d(-\d\d)?"


def test_every_entry_of_every_kind_says_when_it_was_seen() -> None:
    """A record by its sources, a line of a table by its last cell or the head of its file."""
    found = list(ages(KNOWN))
    assert {"models", "cards", "prices of cards", "weight formats", "tags of Ollama"} < {
        one.what for one in found
    }
    for one in found:
        assert re.fullmatch(rf"{DAY}( to {DAY})?", one.seen), one
        assert one.newest or not one.undated, one
    assert next(one for one in found if one.what == "prices of cards").seen == "2025-06-16"


def test_families_are_behind_only_what_is_newer() -> None:
    listed = {public.hf_id: public for public in every()}
    own = {record.hf_id for record in KNOWN.models.values()}
    for family in behind(KNOWN):
        newest = max(r.released or "" for r in KNOWN.models.values() if r.family == family.family)
        assert family.newest == newest
        assert all(listed[name].release_date > newest and name not in own for name in family.since)


def test_what_has_no_record_is_counted_among_the_most_downloaded() -> None:
    few, many = without_record(KNOWN, 50), without_record(KNOWN, 300)
    assert [one.hf_id for one in few] == [one.hf_id for one in many[: len(few)]]
    least = min(one.hf_downloads or 0 for one in many)
    assert sum((one.hf_downloads or 0) > least for one in every()) < 300


BY_THE_LIST = {
    # heads that draft: a part of their main model
    "RadixArk/Kimi-K3-DSpark", "openbmb/MiniCPM5-2B-DSpark",
    # what speaks, and whose parts no source tells that was read (docs/public-list.md)
    "pnnbao-ump/VieNeu-TTS-v3-Turbo", "remsky/kokoro-inno-clone-tuner", "openbmb/VoxCPM2",
    # the sizes of what pools its tokens are published nowhere that was read
    "ai-sage/Giga-Embeddings-instruct",
}  # fmt: skip


def test_of_the_300_most_downloaded_all_but_these_have_a_record() -> None:
    """A newer list must bring its records: ``benchmarks/public_list.py --records 300``."""
    assert {one.hf_id for one in without_record(KNOWN, 300)} == BY_THE_LIST


SOURCES = re.findall(
    r"^- id: (\S+)", (data_dir("knowledge") / "sources.yaml").read_text("utf-8"), re.MULTILINE
)
OWN_LINES = [
    json.decode(line.partition("\t")[2], type=ModelRecord)
    for line in (data_dir("knowledge") / OWN).read_text("utf-8").splitlines()
    if not line.startswith("#")
]


def test_repositories_hold_records_in_formats_that_are_here() -> None:
    lines = list(recorded_repositories())
    assert len({one.repository.casefold() for one in lines}) == len(lines)
    by_name = {record.hf_id for record in OWN_LINES}
    for one in lines:
        public = exact(one.repository)
        assert public is not None
        assert public.hf_id == one.repository
        assert one.record in KNOWN.models or one.record in by_name, one
        assert not one.format or one.format in KNOWN.formats, one
        assert re.fullmatch(DAY, one.seen)
        assert one.source


@pytest.mark.parametrize("record", OWN_LINES, ids=lambda record: record.name)
def test_a_record_found_by_name_alone_is_whole(record: ModelRecord) -> None:
    public = exact(record.hf_id or "")
    assert own_record((record.hf_id or "").upper()) == record
    assert record.hf_id not in {one.hf_id for one in KNOWN.models.values()}
    assert set(record.sources.values()) <= set(SOURCES)
    assert {"config", "parameters"} <= record.sources.keys()
    model = model_of(public, KNOWN) if public else model_unlisted(record.hf_id or "")
    assert model is not None
    assert model.parameters == record.parameters
    drafts = "layers that draft" in record.verified
    if public and public.parameters_raw and record.verified != "exact" and not drafts:
        assert abs(model.parameters / public.parameters_raw - 1) <= 0.01
    assert record.name in model.sized_as


@pytest.mark.parametrize(
    "name",
    [
        "OpenELM-1_1B-Instruct",
        "MiniCPM-SALA",
        "w2v-bert-2.0",
        "bge-reranker-v2.5-gemma2-lightweight-gptq",
    ],
)
def test_a_config_makes_the_parameters_that_were_counted(name: str) -> None:
    record = next(one for one in OWN_LINES if one.name == name)
    counts = read_any(record.config, "config.json").counts
    assert counts is not None
    assert counts.total == record.parameters


def test_the_page_says_all_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    done = run(capsys, "knowledge", "age", "--most", "20")
    assert done.code == 0
    for words in ("public list ", "of the 20 most downloaded", "Families whose"):
        assert words in done.out
