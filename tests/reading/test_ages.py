"""How old what is known is, and what the records lack of the public list."""

from __future__ import annotations

import pytest

from advisor.knowledge import load_knowledge
from advisor.knowledge.merit import merits
from advisor.reading.public_import import ages, behind, without_record
from advisor.reading.public_list import every
from tests.cli.running import run

KNOWN = load_knowledge()


def test_every_part_has_its_youngest_entry() -> None:
    found = {age.what: age for age in ages(KNOWN)}
    models = [record.released for record in KNOWN.models.values() if record.released]
    assert found["models, by release"].newest == max(models)
    assert found["models, by release"].undated == len(KNOWN.models) - len(models)
    assert {f"board {name}, by table" for name in merits(KNOWN).boards} < set(found)


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


def test_the_page_says_all_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    done = run(capsys, "knowledge", "age", "--most", "20")
    assert done.code == 0
    for words in ("public list, by release", "of the 20 most downloaded", "Families whose"):
        assert words in done.out
