"""Every kind of mistake has a file with that mistake alone and its exact message."""

from pathlib import Path

import pytest

from advisor.errors import RuleFileError, UserError
from advisor.rulefile import parse_rules
from advisor.vocabulary import Vocabulary

FOLDER = Path(__file__).parent / "broken"
FILES = sorted(FOLDER.glob("*.yaml"))
EXPECTED = (FOLDER / "expected.txt").read_text(encoding="utf-8").splitlines()
TEMPLATES = frozenset({"quantize.md.j2"})
NAMES = {"frameworks": ["llama.cpp", "vLLM"]}


def problems(contents: dict[str, bytes], vocabulary: Vocabulary) -> list[str]:
    with pytest.raises(UserError) as caught:
        parse_rules(contents, vocabulary, TEMPLATES, NAMES)
    return str(caught.value).splitlines()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_mistake_has_its_exact_message(path: Path, vocabulary: Vocabulary) -> None:
    expected = [line for line in EXPECTED if line.startswith(f"{path.name}:")]
    assert problems({path.name: path.read_bytes()}, vocabulary) == expected


def test_every_message_belongs_to_a_file() -> None:
    assert {line.partition(":")[0] for line in EXPECTED} == {path.name for path in FILES}


def test_every_message_says_file_line_and_column() -> None:
    for line in EXPECTED:
        _, row, column, _ = line.split(":", 3)
        assert int(row) >= 1
        assert int(column) >= 1


def test_problems_of_all_files_are_reported_at_once(vocabulary: Vocabulary) -> None:
    names = ["unknown-fact.yaml", "tab.yaml", "wrong-unit.yaml", "empty-file.yaml"]
    contents = {name: (FOLDER / name).read_bytes() for name in names}
    expected = [line for line in EXPECTED if line.partition(":")[0] in names]
    found = problems(contents, vocabulary)
    assert [line for line in found if "is used twice" not in line] == sorted(expected)


def test_problems_of_one_rule_are_reported_at_once(vocabulary: Vocabulary) -> None:
    text = (
        "- rule: r\n  when: {gpu.tdp: above 3 GB, gpu.vrm: above 3 GB}\n  veto: no\n  status: old\n"
    )
    found = problems({"r.yaml": text.encode()}, vocabulary)
    assert [line.split(": ")[0] for line in found] == [
        "r.yaml:1:3", "r.yaml:1:3", "r.yaml:1:3", "r.yaml:2:19", "r.yaml:2:31", "r.yaml:4:11",
    ]  # fmt: skip


def test_a_broken_file_does_not_make_others_look_incomplete(vocabulary: Vocabulary) -> None:
    reader = (FOLDER / "never-concluded.yaml").read_bytes()
    found = problems({"a.yaml": b"- rule: x\n\twhy: y\n", "b.yaml": reader}, vocabulary)
    assert found == ["a.yaml:2:1: a tab is used for indentation. Use spaces."]


def test_errors_are_rule_file_errors_with_a_place(vocabulary: Vocabulary) -> None:
    content = (FOLDER / "unknown-fact.yaml").read_bytes()
    with pytest.raises(RuleFileError) as caught:
        parse_rules({"f.yaml": content}, vocabulary)
    assert caught.value.source is not None
    assert (caught.value.source.line, caught.value.source.column) == (5, 5)
