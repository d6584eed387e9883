"""Differences are told by their cause: established by running again, provenance left out."""

from __future__ import annotations

import json
from pathlib import Path

from advisor.workbench.causes import Prose
from advisor.workbench.comparison import compare_sides
from advisor.workbench.diff import Difference
from advisor.workbench.diff_views import View
from advisor.workbench.sides import Folders, base_side, load_side

SAMPLE = 16
NOTE = """\
- rule: {name}
  why: So that something is said.
  source: us
  when: {{{when}}}
  note: {text}
  cases:
    - {{name: a, given: {{gpu: RTX 4090, model: phi-3-mini}}, expect: fires}}
    - {{name: b, given: {{gpu: RTX 3060, model: llama-3.1-70b}}, expect: silent}}
"""
VETO = """\
- rule: {name}
  why: So.
  source: us
  when: {{option.family: is add-gpus{more}}}
  veto: Not here.
  cases:
    - {{name: a, given: {{gpu: RTX 3060, model: llama-3.1-70b}}, expect: fires}}
    - {{name: b, given: {{gpu: RTX 4090, model: phi-3-mini}}, expect: silent}}
"""
SOURCE = "- {id: ours, what: Our books., kind: background, as_of: 2026-11}\n"
CARD = "- {gpu: Lab card, based_on: GeForce RTX 4090, not_for_sale: ours, source: ours}\n"
ALL = "gpu.vram: at least 1 GiB"
BIG = "gpu.vram: at least 24 GiB"


def house(folder: Path, files: dict[str, str]) -> Folders:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    kinds = ("rules", "templates", "knowledge")
    found = [folder / kind if (folder / kind).is_dir() else None for kind in kinds]
    return Folders(found[0], found[1], found[2])


def compared(
    folders: Folders, base: str = "built-in", sample: int = SAMPLE
) -> tuple[Difference, Prose | None, str]:
    with base_side(base, folders) as old:
        found, prose, beside = compare_sides(old, load_side(folders), sample, workers=1)
    return found, prose, View(found, prose, beside, base=base, examples=1).text()


def test_words_are_compared_where_knowledge_differs_too(tmp_path: Path) -> None:
    """As in every folder that ``advisor init`` makes, which adds a card."""
    files = {
        "knowledge/sources-mine.yaml": SOURCE,
        "knowledge/gpus/mine.yaml": CARD,
        "templates/words.txt": "line.confidence.high = quite sure\nline.confidence.low = unsure\n",
    }
    found, prose, text = compared(house(tmp_path, files))
    assert found.changes == [] == list(found.groups)
    assert prose is not None
    assert prose.reworded
    assert {*prose.causes} <= {"word line.confidence.high", "word line.confidence.low"}
    assert prose.causes
    assert "Lab card" not in "".join(line for one in prose.reworded for line in one.lines)
    assert "\n  word line.confidence." in text


def test_whose_a_rule_or_text_is_makes_no_difference(tmp_path: Path) -> None:
    """The same card, text and rule as built in, said again by the user."""
    from advisor.files import data_dir  # noqa: PLC0415

    same = (data_dir("templates") / "notes" / "tight-headroom.md.j2").read_text(encoding="utf-8")
    price = "- {gpu: GeForce RTX 4090, based_on: GeForce RTX 4090, tdp: 450 W, source: ours}\n"
    off = "- {disable: GeForce GTX 1630, reason: None here.}\n"
    files = {
        "knowledge/sources-mine.yaml": SOURCE,
        "knowledge/gpus/mine.yaml": price + off,
        "templates/notes/tight-headroom.md.j2": same,
    }
    found, prose, text = compared(house(tmp_path, files))
    assert not found.changes
    assert prose is None or not prose.reworded
    assert "No report changes" in text
    assert "RTX 4090: edited" not in text


def test_what_merely_happens_in_the_same_report_is_no_cause(tmp_path: Path) -> None:
    """One rule speaks everywhere; the other, where a card has 24 GiB, alone bars nothing else."""
    files = {
        "base/rules/mine.yaml": NOTE.format(name="first", when=ALL, text="First."),
        "now/rules/mine.yaml": NOTE.format(name="first", when=BIG, text="First.")
        + NOTE.format(name="second", when="gpu.vram: at least 1000 GiB", text="Second."),
    }
    house(tmp_path, files)
    folders = Folders(rules=tmp_path / "now" / "rules")
    found, _, _ = compared(folders, str(tmp_path / "base" / "rules"))
    assert {edit.rule for edit in found.edits} == {"first", "second"}
    assert [(group.cause, len(group.changes)) for group in found.groups] == [
        ("rule first", len(found.changes))
    ]


def test_two_that_do_the_same_are_found_alone(tmp_path: Path) -> None:
    """Each of two edits would bar the same what-ifs, so leaving one out changes nothing."""
    files = {"rules/mine.yaml": VETO.format(name="one", more="")}
    files["rules/more.yaml"] = VETO.format(name="two", more=", option.gpus: at least 1")
    found, _, text = compared(house(tmp_path, files), sample=30)
    barred = [change for change in found.changes if "barred" in change.kinds]
    assert barred
    named = {group.cause for group in found.groups}
    assert named == {"rule one", "rule two"}
    assert "decided again with one change left out, or alone)" in text


def test_json_tells_causes_too(tmp_path: Path) -> None:
    rules = NOTE.format(name="first", when=BIG, text="First.")
    folders = house(tmp_path, {"rules/mine.yaml": rules})
    with base_side("built-in", folders) as old:
        found, prose, beside = compare_sides(old, load_side(folders), SAMPLE, workers=1)
    data = json.loads(View(found, prose, beside, base="built-in", examples=1).json())
    assert [one["cause"] for one in data["causes"]] == ["rule first"]
    assert [one["rule"] for one in data["rules"]] == ["first"]
    assert data["causes"][0]["changed"] == data["changed"] > 0
