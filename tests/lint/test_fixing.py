"""``--fix``: what can only be meant one way is written, and nothing else is touched."""

import os
from pathlib import Path

import pytest

from advisor.errors import RequestError, is_slip
from advisor.workbench.lint import Asked, Means
from advisor.workbench.lint.corrections import corrected, differences, replace_files
from advisor.workbench.lint.problem import Edited

BAD = """\
# keep me
- rule: my-card   # and me
  why: Heat slows the card down.
  source: board makers
  when:
    gpu.tdp:   over 300 W   # why
    gpu.laptp: "is not yes"
    gpu.segment: one of datacenter, consumr
    gpu.unified_memory: no
  note: Mind the airflow.
  cases:
    - {name: hot, givn: {gpu: RTX 4090, modl: phi-3-mini}, expect: fires}
    - {name: cool, given: {gpu: RTX 4060, model: phi-3-mini}, expect: silnt}
"""
GOOD = """\
# keep me
- rule: my-card   # and me
  why: Heat slows the card down.
  source: board makers
  when:
    gpu.tdp:   above 300 W   # why
    gpu.laptop: "is no"
    gpu.segment: one of datacenter, consumer
    gpu.unified_memory: is no
  note: Mind the airflow.
  cases:
    - {name: hot, given: {gpu: RTX 4090, model: phi-3-mini}, expect: fires}
    - {name: cool, given: {gpu: RTX 4060, model: phi-3-mini}, expect: silent}
"""


def fixed(folder: Path, text: str) -> str:
    """Give what a file would hold after --fix."""
    path = folder / "mine.yaml"
    path.write_bytes(text.encode())
    edited = corrected([Asked(folder)], Means()).files
    assert path.read_bytes() == text.encode(), "nothing is written yet"
    return edited[0].after if edited else text


def test_all_sure_mistakes_are_corrected_and_the_rest_stays_as_typed(tmp_path: Path) -> None:
    assert fixed(tmp_path, BAD) == GOOD


def test_line_ends_stay_as_they_are(tmp_path: Path) -> None:
    assert fixed(tmp_path, BAD.replace("\n", "\r\n")) == GOOD.replace("\n", "\r\n")


def test_a_byte_order_mark_stays(tmp_path: Path) -> None:
    assert fixed(tmp_path, f"\ufeff{BAD}") == f"\ufeff{GOOD}"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("above 300 W", "above 300"),
        ("above 300 W", "abve 300 GB"),
        ("why: Heat", "because: Heat"),
        ("gpu.laptop", "gpu.tdp"),
    ],
)
def test_what_can_mean_several_things_is_left_alone(tmp_path: Path, old: str, new: str) -> None:
    text = GOOD.replace(old, new)
    after = fixed(tmp_path, text)
    assert after in {text, text.replace("abve", "above")}


@pytest.mark.parametrize(
    "condition",
    [
        "gpu.name: is RTX 4090",
        "gpu.name: is RTX 4009",
        "model.name: is qwen2.5-7b",
        "model.name: is Qwen2.5-8B",
        "gpu.bandwidth: above 900 Gb/s",
        "gpu.vram: above 10 Gib",
        "option.family: is gguf-q",
        "framework.name: is vLM",
    ],
)
def test_no_correction_changes_what_a_rule_is_about(tmp_path: Path, condition: str) -> None:
    text = GOOD.replace("gpu.tdp:   above 300 W", condition)
    assert fixed(tmp_path, text) == text


@pytest.mark.parametrize(
    ("word", "name", "slip"),
    [
        ("consumr", "consumer", True),
        ("consummer", "consumer", True),
        ("consomer", "consumer", True),
        ("cosnumer", "consumer", True),
        ("needs-offload", "needs_offload", True),
        ("gpu.tpd", "gpu.tdp", True),
        ("exl4", "exl3", False),
        ("consmr", "consumer", False),
        ("in", "is", False),
    ],
)
def test_what_a_slip_is(word: str, name: str, *, slip: bool) -> None:
    assert is_slip(word, name) is slip
    assert is_slip(name, word) is slip


def test_a_unit_in_other_letters_is_corrected(tmp_path: Path) -> None:
    text = GOOD.replace("above 300 W ", "above 300 w ")
    assert fixed(tmp_path, text) == GOOD


def test_a_correction_that_would_double_a_key_is_not_made(tmp_path: Path) -> None:
    text = GOOD.replace("  note:", "  wen: {gpu.vram: above 2 GB}\n  note:")
    assert fixed(tmp_path, text) == text


def test_a_list_of_one_name_becomes_is(tmp_path: Path) -> None:
    text = GOOD.replace("one of datacenter, consumer", "'one of consumer'")
    assert "gpu.segment: 'is consumer'" in fixed(tmp_path, text)


def test_only_named_files_are_corrected(tmp_path: Path) -> None:
    (tmp_path / "other.yaml").write_text(BAD.replace("my-card", "other-card"), encoding="utf-8")
    (tmp_path / "mine.yaml").write_text(BAD, encoding="utf-8")
    asked = Asked(tmp_path, frozenset({(tmp_path / "mine.yaml").as_posix()}))
    assert [edited.path.name for edited in corrected([asked], Means()).files] == ["mine.yaml"]


def test_replacing_keeps_the_mode_and_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("old", encoding="utf-8")
    path.chmod(0o640)
    replace_files([Edited(path, "a.yaml", "old", "new\r\n")])
    assert path.read_bytes() == b"new\r\n"
    assert path.stat().st_mode & 0o777 == 0o640
    assert list(tmp_path.iterdir()) == [path]


def test_one_file_that_cannot_be_written_leaves_all_as_they_were(tmp_path: Path) -> None:
    good, bad = tmp_path / "a.yaml", tmp_path / "no" / "b.yaml"
    good.write_text("old", encoding="utf-8")
    with pytest.raises(RequestError, match="cannot be written"):
        replace_files([Edited(good, "a", "old", "new"), Edited(bad, "b", "old", "new")])
    assert good.read_text(encoding="utf-8") == "old"
    assert os.listdir(tmp_path) == ["a.yaml"]  # noqa: PTH208  names alone


def test_differences_are_a_patch() -> None:
    file = Edited(Path("r/a.yaml"), "r/a.yaml", "a\nb", "a\nc\n")
    assert differences([file]) == (
        "--- a/r/a.yaml\n+++ b/r/a.yaml\n@@ -1,2 +1,2 @@\n a\n-b\n"
        "\\ No newline at end of file\n+c\n"
    )
