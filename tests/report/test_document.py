"""The JSON contract: keys, types, and what it says in each situation."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from msgspec import to_builtins
from msgspec.structs import replace

from advisor.advice.conclusions import Conclusions
from advisor.advice.projection import option_doc
from advisor.report import render_json
from advisor.report.assembly import document
from tests.report.samples import SAMPLES, does_not_fit, fits_amply, stated_split

KEYS = {
    "": "schema_version request scenario memory speed verdict recommendations notes"
    " not_recommended provenance",
    "scenario": "gpu gpus model precision context_tokens batch kv_cache framework",
    "memory": "capacity_bytes usable_bytes required_bytes deficit_bytes headroom_bytes"
    " weights_bytes kv_cache_bytes compute_buffer_bytes overhead_bytes host_weights_bytes"
    " host_kv_cache_bytes nominal_weights_gb max_context_tokens max_batch",
    "verdict": "state sentence",
    "provenance": "advisor rules_sha256 knowledge_sha256",
}
RECOMMENDATION = (
    "rank action title text change before after tradeoff confidence command rule score"
    " score_terms because"
)


@pytest.fixture(params=SAMPLES)
def sample(request: pytest.FixtureRequest) -> Callable[[], Conclusions]:
    return SAMPLES[request.param]


def test_every_key_of_the_contract_is_there(sample: Callable[[], Conclusions]) -> None:
    doc = json.loads(render_json(document(sample())))
    for place, keys in KEYS.items():
        inside = doc[place] if place else doc
        assert set(keys.split()) <= set(inside), place
    for item in doc["recommendations"]:
        assert set(RECOMMENDATION.split()) <= set(item)
        assert set(item["before"]) >= {"required_bytes", "decode_tok_s"}
        assert set(item["after"]) >= {"required_bytes", "headroom_bytes", "fits", "decode_tok_s"}
        assert set(item["tradeoff"]) == {
            "quality",
            "quality_change",
            "quality_known",
            "quality_of",
            "cost_usd",
            "effort",
        }
        assert all(set(b) >= {"fact", "value", "test"} for b in item["because"])
    for item in doc["notes"]:
        assert set(item) == {"rule", "text", "yours"}
    for item in doc["not_recommended"]:
        assert set(item) >= {"action", "change", "rule", "because"}


def test_every_sentence_is_written(sample: Callable[[], Conclusions]) -> None:
    doc = document(sample())
    texts = [doc.verdict.sentence]
    texts += [text for item in doc.recommendations for text in (item.title, item.text)]
    texts += [note.text for note in doc.notes]
    for text in texts:
        assert text.strip() == text
        assert text
        assert "  " not in text
        assert "{" not in text
        assert " ." not in text
        assert " ," not in text


def test_same_advice_gives_the_same_bytes(sample: Callable[[], Conclusions]) -> None:
    assert render_json(document(sample())) == render_json(document(sample()))


def test_speed_is_null_where_nothing_runs() -> None:
    advice = does_not_fit()
    assert advice.speed is not None
    assert document(advice).speed is None


def test_a_stated_split_keeps_its_speed() -> None:
    speed = document(stated_split()).speed
    assert speed is not None
    assert speed.bound_by == "offload"


def test_an_option_that_does_not_fit_has_no_speed() -> None:
    advice = fits_amply()
    first = advice.recommendations[0]
    broken = replace(first, option=replace(first.option, fits=False))
    doc = document(replace(advice, recommendations=(broken,)))
    assert doc.recommendations[0].after.decode_tok_s is None


def test_a_note_without_template_brings_its_own_sentence() -> None:
    advice = fits_amply()
    note = replace(advice.notes[0], text_template="", text="Mind\nthe \x1b[31mgap.")
    assert document(replace(advice, notes=(note,))).notes[0].text == "Mind the [31mgap."


def test_names_from_files_cannot_carry_control_characters() -> None:
    advice = fits_amply()
    model = replace(advice.scenario.model, name="evil\x1b]0;owned\x07\n\u202emodel")
    doc = document(replace(advice, scenario=replace(advice.scenario, model=model)))
    shown = render_json(doc)
    assert "\\u001b" not in shown
    assert "\u202e" not in shown
    assert doc.scenario.model.name == "evil]0;owned model"


def test_options_are_listed_as_data() -> None:
    advice = does_not_fit()
    rows = [option_doc(option) for option in advice.options]
    assert [row.action for row in rows] == [option.action for option in advice.options]
    assert json.loads(json.dumps(to_builtins(rows)))[0]["action"] == rows[0].action


def test_json_on_one_line_for_bulk_output() -> None:
    text = render_json(document(fits_amply()), indent=None)
    assert text.count("\n") == 1
