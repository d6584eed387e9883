"""Previews of texts: the words of the report, every wording, and the figures in them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from advisor.advice import Advisor
from advisor.advice.conclusions import Conclusions
from advisor.cli.templates import preview_text
from advisor.errors import RequestError
from advisor.report.assembly import document
from advisor.report.template_writer import picked
from advisor.scenario.settings import Request
from advisor.workbench.preview import WORDINGS, preview
from tests.cli.running import run

Capture = pytest.CaptureFixture[str]
FLAGS = ("--gpu", "RTX 4090", "--model", "phi-3-medium", "--precision", "FP16")


@pytest.fixture(scope="module")
def advice(advisor: Advisor) -> Conclusions:
    return advisor.advise(Request(gpu="RTX 4090", model="phi-3-medium", precision="FP16"))


def test_a_preview_says_what_the_report_says(advisor: Advisor, advice: Conclusions) -> None:
    doc = document(advice)
    for item in doc.recommendations:
        shown = preview(advisor, advice, item.action).variants[0]
        assert shown.title == item.title
        caveat = item.text.removeprefix(shown.text)
        assert bool(caveat) is (item.after.margin == "thin")
        assert shown.rule == item.rule
    for note in doc.notes:
        shown = preview(advisor, advice, note.rule).variants[0]
        assert shown.text == note.text


def test_placeholders_come_with_the_values_that_the_text_holds(
    advisor: Advisor, advice: Conclusions
) -> None:
    shown = preview(advisor, advice, "quantize").variants[0]
    whole = f"{shown.title} {shown.text}"
    assert shown.use.printed["option.required"]
    assert all(value in whole for value in shown.use.printed.values())
    assert shown.use.asked["option.quality_small"] == "yes"
    assert "variation" not in shown.use.asked


def test_every_wording_and_every_what_if_are_shown(advisor: Advisor, advice: Conclusions) -> None:
    few = preview(advisor, advice, "quantize").variants
    many = preview(advisor, advice, "quantize", every=True).variants
    assert len(few) == 1
    assert many[0] == few[0]
    assert len({variant.subject for variant in many}) > 1
    first = [variant.text for variant in many if variant.subject == many[0].subject]
    assert len(first) == len(set(first)) > 1
    assert any(variant.fate.startswith("not said: ") for variant in many)


def test_the_seeds_pick_every_wording() -> None:
    for choices in range(2, 17):
        for at in (0, 7, 60):
            found = {
                choice
                for seed in WORDINGS
                for choice in range(choices)
                if picked(seed, at, choices, choice)
            }
            assert found == set(range(choices))


def test_the_place_in_the_report_hangs_on_its_length(advisor: Advisor, advice: Conclusions) -> None:
    second = advice.recommendations[1].option.action
    fates = {
        length: preview(advisor, advice, second, length=length).variants[0].fate
        for length in ("short", "standard", "full")
    }
    assert fates["short"].endswith("not in the short report")
    assert fates["full"] == "number 2 in the full report, told in full"


def test_own_templates_stand_in_front(
    advisor: Advisor, advice: Conclusions, tmp_path: Path
) -> None:
    own = tmp_path / "actions" / "quantize.md.j2"
    own.parent.mkdir()
    own.write_text(
        "# Mine\n{% if fit.runs %}\nA\n{% else %}\n{{ option.format }} it is.\n{% endif %}"
    )
    shown = preview(advisor, advice, "quantize", templates=tmp_path)
    assert shown.variants[0].title == "Mine"
    assert shown.variants[0].template == f"{tmp_path.as_posix()}/actions/quantize.md.j2"
    assert shown.unreached == {shown.variants[0].template: [3]}
    assert "not reached" in preview_text(shown)


def test_what_does_not_arise_is_said_with_the_reason_and_what_does(
    advisor: Advisor, advice: Conclusions
) -> None:
    with pytest.raises(RequestError) as caught:
        preview(advisor, advice, "grow-batch")
    said = str(caught.value)
    assert "'grow-batch' does not arise here: the verdict is needs_offload" in said
    assert "fit.state is needs_offload" in said
    assert "what arises: " in said
    assert "quantize" in said
    with pytest.raises(RequestError, match="laptop-power"):
        preview(advisor, advice, "laptop-power")


def test_unknown_names_are_named_with_the_nearest(advisor: Advisor, advice: Conclusions) -> None:
    with pytest.raises(RequestError, match="Did you mean 'quantize'"):
        preview(advisor, advice, "quantise")


def test_the_command_takes_the_flags_of_advise(capsys: Capture) -> None:
    outcome = run(capsys, "templates", "preview", "quantize", *FLAGS, "--all-variants")
    assert outcome.code == 0, outcome.err
    assert "or, in other words:" in outcome.out
    assert "option.required" in outcome.out
    made = json.loads(
        run(capsys, "templates", "preview", "quantize", *FLAGS, "--format", "json").out
    )
    assert made["texts"][0]["written"]["option.format"] in made["texts"][0]["title"]
    wrong = run(capsys, "templates", "preview", "grow-batch", *FLAGS)
    assert (wrong.code, "does not arise here" in wrong.err) == (1, True)
    assert run(capsys, "templates", "preview", "quantize", "--gpuu", "x").code == 2
