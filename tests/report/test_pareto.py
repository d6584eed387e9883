"""The table and the picture of --options, in every view."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from advisor.advice.projection import best_balanced
from advisor.remedies.search import dominators_in_kind
from advisor.report.assembly import document
from advisor.report.pages import options_html, options_text, scatter_svg
from tests.cli.running import advise
from tests.remedies.asking import advised

Capture = pytest.CaptureFixture[str]
GIVEN = {"gpu": "RTX 4090", "model": "phi-3-medium", "precision": "FP16"}


def test_only_what_fits_and_no_rule_bars_is_listed() -> None:
    advice = advised(**GIVEN)
    options = document(advice, options=True).options
    assert options
    assert options.tried == len(advice.options)
    shown = len(options.rows)
    assert shown == options.fitting - options.barred - options.dominated
    assert all(row.after.fits for row in options.rows)
    barred = [dict(item.option.change) for item in advice.not_recommended]
    assert not [row for row in options.rows if row.change in barred]


def test_the_best_balanced_are_those_that_none_beats() -> None:
    fitting = [o for o in advised(**GIVEN).options if o.fits]
    best = best_balanced(fitting)
    points = {
        o.key: (
            o.quality_loss_percent,
            -o.speed.decode_tok_s.estimate,
            o.cost_usd if o.effort == "purchase" else 0.0,
        )
        for o in fitting
        if o.speed and o.quality_loss_percent is not None
    }
    known = {key: point for key, point in points.items() if None not in point}
    assert best
    for key, point in known.items():
        beaten = any(
            all(a <= b for a, b in zip(other, point, strict=True)) and other != point  # type: ignore[operator]  # no None left
            for other in known.values()
        )
        assert (key in best) is not beaten
    assert best <= set(known)


def test_without_the_flag_the_document_lists_none() -> None:
    doc = document(advised(**GIVEN))
    assert doc.options is None
    assert options_text(doc) == ""
    assert options_html(doc) is None
    assert scatter_svg(doc) is None


def test_counts_are_facts_too() -> None:
    advice = advised(**GIVEN)
    assert advice.facts["options.dominated"] == len(dominators_in_kind(advice.options))
    assert advice.facts["options.fitting"] == sum(o.fits for o in advice.options)


def test_a_pipe_gets_aligned_columns(capsys: Capture) -> None:
    out = advise(capsys, "--options", model="phi-3-medium", precision="FP16").out
    table = out.split("What fits, side by side")[1].splitlines()
    head = next(line for line in table if "perplexity" in line)
    row = next(line for line in table if "Q8_0 weights" in line)
    assert row.index("download") == head.index("effort")
    assert "\x1b" not in out


def test_json_holds_the_rows(capsys: Capture) -> None:
    out = advise(capsys, "--options", "--format", "json", model="phi-3-medium", precision="FP16")
    options = json.loads(out.out)["options"]
    assert {"action", "change", "setup", "after", "tradeoff", "steps", "best"} == set(
        options["rows"][0]
    )


def test_the_page_draws_every_option_with_both_figures(capsys: Capture, tmp_path: Path) -> None:
    target = tmp_path / "report.html"
    flags = ("--options", "--format", "html", "-o", str(target))
    assert advise(capsys, *flags, model="phi-3-medium", precision="FP16").code == 0
    page = target.read_text(encoding="utf-8")
    drawn = re.search(r"<svg[^>]*scatter.*?</svg>", page, re.DOTALL)
    assert drawn
    options = document(advised(**GIVEN), options=True).options
    assert options
    both = [
        row for row in options.rows if row.tradeoff.quality is not None and row.after.decode_tok_s
    ]
    marks = drawn.group().count("<circle") + drawn.group().count("<rect")
    assert marks == len(both)
    assert "What fits, side by side" in page


def test_a_markdown_file_holds_the_picture_and_a_pipe_does_not(
    capsys: Capture, tmp_path: Path
) -> None:
    target = tmp_path / "report.md"
    flags = ("--options", "--format", "markdown")
    piped = advise(capsys, *flags, model="phi-3-medium", precision="FP16").out
    assert "| Q8_0 weights |" in piped
    assert "<svg" not in piped
    advise(capsys, *flags, "-o", str(target), model="phi-3-medium", precision="FP16")
    assert "<svg" in target.read_text(encoding="utf-8")


def test_labels_come_from_the_templates(tmp_path: Path) -> None:
    (tmp_path / "report").mkdir()
    rows = "{% for row in changes %}\n| {{ row.change }} |\n{% endfor %}\n"
    text = f"## Was passt\n\n{{{{ options.tried }}}}\n\n| a |\n|---|\n{rows}"
    (tmp_path / "report" / "options.md.j2").write_text(text, encoding="utf-8")
    shown = options_text(document(advised(**GIVEN), options=True), templates=tmp_path)
    assert shown.startswith("Was passt")
    assert "side by side" not in shown
