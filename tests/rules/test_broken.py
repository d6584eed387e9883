"""Every kind of mistake has a file with that mistake alone and its exact message."""

import re
from pathlib import Path

import pytest

from advisor.errors import Problems, RuleFileError, UserError
from advisor.knowledge.vocabulary import Vocabulary
from advisor.workbench.lint.problem import LINTS
from tests.cli.running import run
from tests.parsed_rules import parse_rules

FOLDER = Path(__file__).parent / "broken"
FILES = sorted(FOLDER.glob("*.yaml"))
EXPECTED = (FOLDER / "expected.txt").read_text(encoding="utf-8").splitlines()
TEMPLATES = frozenset({"quantize.md.j2"})
NAMES = {"frameworks": ["llama.cpp", "vLLM"]}
OF_TEXTS = {"unknown-placeholder", "number-without-unit"}
"""Kinds that tests/lint/test_templates.py shows."""
TAKEN_AS_THEY_ARE = {"duplicate-rule.yaml"}


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


@pytest.mark.parametrize(
    ("broken", "also"),
    [
        ("- rule: x\n\tconclude: {workload.kind: chat}\n", []),
        ("- rule: x\n\twhy: y\n", ["b.yaml:5:20: no rule concludes workload.kind."]),
    ],
)
def test_what_a_broken_file_seems_to_conclude_is_not_missing(
    broken: str, also: list[str], vocabulary: Vocabulary
) -> None:
    reader = (FOLDER / "never-concluded.yaml").read_bytes()
    first, *rest = problems({"a.yaml": broken.encode(), "b.yaml": reader}, vocabulary)
    assert first == "a.yaml:2:1: a tab is used for indentation. Use spaces."
    assert [line.partition(" Add")[0] for line in rest] == also


def test_what_a_broken_file_seems_to_name_is_not_unknown(vocabulary: Vocabulary) -> None:
    reader = (FOLDER / "supersedes-unknown.yaml").read_bytes()
    broken = b"- rule: offload-layer\n\twhy: y\n"
    found = problems({"a.yaml": broken, "b.yaml": reader}, vocabulary)
    assert found == ["a.yaml:2:1: a tab is used for indentation. Use spaces."]


def test_errors_are_rule_file_errors_with_a_place(vocabulary: Vocabulary) -> None:
    content = (FOLDER / "unknown-fact.yaml").read_bytes()
    with pytest.raises(RuleFileError) as caught:
        parse_rules({"f.yaml": content}, vocabulary)
    assert caught.value.source is not None
    assert (caught.value.source.line, caught.value.source.column) == (5, 5)


def in_one_folder() -> dict[str, bytes]:
    """All files, each rule with a name of its own: one name twice is a mistake of its own."""
    contents = {}
    for number, path in enumerate(FILES):
        content = path.read_bytes()
        if path.name not in TAKEN_AS_THEY_ARE:
            content = content.replace(b"hot-card", b"hot-%04d" % number)
            content = content.replace(b"quantize-to-fit", b"quantize-fit%03d" % number)
        contents[path.name] = content
    return contents


def test_one_run_over_the_folder_finds_every_mistake(vocabulary: Vocabulary) -> None:
    found = {
        re.sub(r"'(hot|quantize)-[^']*'", "''", one)
        for one in problems(in_one_folder(), vocabulary)
    }
    expected = {re.sub(r"'(hot|quantize)-[^']*'", "''", line) for line in EXPECTED}
    assert expected - found == set()
    assert {line for line in found - expected if "is used twice" not in line} == set()


def test_one_command_over_the_folder_names_every_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("broken").mkdir()
    for name, content in in_one_folder().items():
        (Path("broken") / name).write_bytes(content)
    outcome = run(capsys, "rules", "check", "broken")
    assert outcome.code == 1
    assert "Traceback" not in outcome.out + outcome.err
    named = set(re.findall(r"^broken/([^:]+):\d+:\d+: ", outcome.out, re.MULTILINE))
    assert named == {path.name for path in FILES}


def test_every_kind_of_error_has_a_fixture_or_a_page(vocabulary: Vocabulary) -> None:
    seen = set()
    for path in FILES:
        with pytest.raises(UserError) as caught:
            parse_rules({path.name: path.read_bytes()}, vocabulary, TEMPLATES, NAMES)
        errors = caught.value.errors if isinstance(caught.value, Problems) else [caught.value]
        seen |= {error.lint for error in errors}
    assert "" not in seen
    texts = {lint for lint in LINTS if "template" in lint or lint in OF_TEXTS} - seen
    loads = {
        "cannot-load",
        "no-verdict",
        "report-fails",
        "case-does-not-match",
        "contradictory-conclude",
        "unused-placeholder",
    }
    assert seen == {lint.id for lint in LINTS.values() if lint.severity == "error"} - loads - texts


def test_there_are_at_least_sixty_kinds() -> None:
    assert len(FILES) >= 60
