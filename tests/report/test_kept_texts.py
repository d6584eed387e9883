"""What is kept between reports is bounded and changes nothing; texts are written when asked for."""

from __future__ import annotations

from operator import attrgetter
from pathlib import Path

import pytest
from msgspec.structs import replace

from advisor.advice.projection import QUOTED_FACTS
from advisor.knowledge.vocabulary import vocabulary
from advisor.memo import Kept
from advisor.report import remedy_view, situation
from advisor.report.assembly import Views, document
from advisor.report.figures import spoken
from advisor.report.grammar import placeholders
from advisor.report.remedy_view import WRITERS
from advisor.runtimes import commands
from advisor.runtimes.commands import Command, command_for, commands_for
from advisor.scenario import Key
from tests.report.samples import does_not_fit, fits_amply


def test_commands_are_kept_in_a_bounded_table(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: Kept[Key, tuple[Key, tuple[Command, ...]]] = Kept(3)
    monkeypatch.setattr(commands, "_written_for", kept)
    scenario = fits_amply().scenario
    for context in range(1024, 1034):
        made = commands_for(replace(scenario, context_tokens=context))
        assert all(str(context) in command.text for command in made)
    assert len(kept) <= 6


def test_kept_commands_are_those_of_the_scenario(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the key leaves out (speed, system RAM, the card) is in no command."""
    scenario = fits_amply().scenario
    other = replace(
        scenario,
        depth_tokens=7,
        ram_bytes=2**33,
        ram_bandwidth_bytes_s=1e9,
        cpu_cores=3,
        use="none",
    )
    first = commands_for(scenario)
    monkeypatch.setattr(commands, "_written_for", Kept(3))
    assert commands_for(other) == first
    assert command_for(other) == (first[0].text if first else "")


def test_a_change_has_all_its_placeholders_though_few_are_written() -> None:
    doc = document(does_not_fit())
    item = doc.recommendations[0]
    made = remedy_view.OptionView(doc, item)
    assert "option.required" in made
    assert made["option.required"] == made.get("option.required")
    assert made.get("nothing") is None
    with pytest.raises(KeyError):
        made["nothing"]
    assert set(WRITERS) < set(made) == set(made.names) == set(dict(made)) == set(made.keys())
    assert len(made) == len(list(made.values())) == len(made.items())


def test_every_figure_that_texts_print_is_where_its_fact_says() -> None:
    doc = document(does_not_fit())
    known = {**vocabulary().facts, **vocabulary().texts}
    told = {one.name: one.at for one in known.values() if one.at}
    for name, at in told.items():
        about = doc.recommendations[0] if name.startswith("option.") else doc
        attrgetter(at)(about)
    written = {*situation.WRITERS, *WRITERS, *QUOTED_FACTS}
    assert set(placeholders("actions")) - told.keys() <= written
    assert not told.keys() & written


def test_texts_are_written_in_the_words_of_their_report(tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("speed.about = roughly {speed}\n", encoding="utf-8")
    doc = document(does_not_fit())
    item = next(i for i in doc.recommendations if i.after.decode_tok_s)
    with spoken(tmp_path):
        own = Views.of(doc).told(item)
    built_in = Views.of(doc).told(item)
    assert own["option.decode_speed"].startswith("roughly ")
    with spoken(tmp_path):
        assert built_in["option.decode_speed"].startswith("about ")
