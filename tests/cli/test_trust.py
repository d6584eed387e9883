"""The folder one stands in: an advisor.toml that somebody else wrote does nothing unasked."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from advisor.cli.init import write_starter
from tests.cli.running import Outcome, advise, run

Capture = pytest.CaptureFixture[str]
CARD = "Example 48 GB card"


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "house"
    write_starter(folder)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("ADVISOR_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.delenv("ADVISOR_CONFIG", raising=False)
    return folder


def found(capsys: Capture) -> Outcome:
    return run(capsys, "knowledge", "find", "example 48")


def test_it_counts_only_once_trusted_and_one_line_says_so(capsys: Capture, house: Path) -> None:
    before = found(capsys)
    assert before.code == 1
    note, *_ = before.err.splitlines()
    assert note.startswith(f"note: advisor.toml in '{house}' is left out: you did not say")
    assert "'advisor trust' makes it count here" in note
    trusted = run(capsys, "trust")
    assert trusted.code == 0, trusted.err
    assert trusted.err == ""
    assert trusted.out.splitlines()[0] == f"trusted: {house}"
    assert f"knowledge: {house / 'knowledge'}" in trusted.out
    after = found(capsys)
    assert (after.code, after.err) == (0, "")
    assert CARD in after.out


def test_one_of_any_size_stops_nothing(capsys: Capture, house: Path) -> None:
    with (house / "advisor.toml").open("r+b") as file:
        file.truncate(20 * 2**30)
    before = found(capsys)
    assert before.err.startswith("note: advisor.toml is left out: 'advisor.toml' is larger than")
    assert run(capsys, "trust").code == 1


PLAIN: dict[tuple[str, ...], Outcome] = {}
"""What commands say where no file is."""


@pytest.mark.parametrize(
    "words",
    [
        ("advise", "--gpu", "RTX 4090", "--model", "phi-3-medium"),
        ("models-for", "--gpu", "RTX 4090", "--limit", "1"),
        ("rules", "facts", "fit.gap"),
        ("templates", "check"),
    ],
)
@pytest.mark.parametrize("text", ["rules = ", 'rule = "x"', 'rules = "/etc"', "\x00", ""])
def test_a_planted_file_changes_nothing_whatever_it_holds(
    capsys: Capture, house: Path, words: tuple[str, ...], text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (house / "advisor.toml").write_text(text, encoding="utf-8")
    here = run(capsys, *words)
    monkeypatch.setenv("ADVISOR_CONFIG", "")
    plain = PLAIN[words] if words in PLAIN else PLAIN.setdefault(words, run(capsys, *words))
    assert (here.code, here.out) == (plain.code, plain.out)
    assert len(here.err.splitlines()) == len(plain.err.splitlines()) + 1


def test_an_edit_of_the_file_asks_again_and_of_the_folder_does_not(
    capsys: Capture, house: Path
) -> None:
    run(capsys, "trust")
    (house / "rules" / "more.yaml").write_text("", encoding="utf-8")
    assert found(capsys).code == 0
    file = house / "advisor.toml"
    right = file.read_bytes()
    file.write_bytes(right + b"\n")
    changed = found(capsys)
    assert changed.code == 1
    assert "it was changed since you trusted it" in changed.err
    assert "was changed since: it does not count" in run(capsys, "trust", "--list").out
    file.write_bytes(right)
    assert found(capsys).code == 0


def test_trust_does_not_move_with_the_folder(
    capsys: Capture, house: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(capsys, "trust")
    copy = house.parent / "copy"
    shutil.copytree(house, copy)
    monkeypatch.chdir(copy)
    assert "you did not say that you trust it" in found(capsys).err


def test_list_and_remove(capsys: Capture, house: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(capsys, "trust", "--list").out == ""
    monkeypatch.chdir(house.parent)
    run(capsys, "trust", "house")
    assert run(capsys, "trust", "--list").out == f"{house}\n"
    assert run(capsys, "trust", "--remove", "house").out == f"no longer trusted: {house}\n"
    assert run(capsys, "trust", "--list").out == ""
    again = run(capsys, "trust", "--remove", "house")
    assert (again.code, "'house' is not trusted" in again.err) == (1, True)
    run(capsys, "trust", "house")
    (house / "advisor.toml").unlink()
    assert "(no advisor.toml there now)" in run(capsys, "trust", "--list").out
    assert run(capsys, "trust", "--remove", "house").code == 0
    missing = run(capsys, "trust", "house")
    assert (missing.code, "there is no advisor.toml in 'house'" in missing.err) == (1, True)


def test_a_wrong_file_is_not_trusted(capsys: Capture, house: Path) -> None:
    (house / "advisor.toml").write_text('rule = "rules"', encoding="utf-8")
    refused = run(capsys, "trust")
    assert (refused.code, "Did you mean 'rules'?" in refused.err) == (1, True)
    assert run(capsys, "trust", "--list").out == ""


def test_a_flag_and_the_environment_need_no_trust(
    capsys: Capture, house: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = run(capsys, "knowledge", "find", "example 48", "--knowledge", "knowledge")
    assert CARD in named.out
    monkeypatch.setenv("ADVISOR_CONFIG", "advisor.toml")
    assert (found(capsys).code, found(capsys).err) == (0, "")
    assert house.is_dir()


def test_what_is_remembered_must_be_whole_and_ours(capsys: Capture, house: Path) -> None:
    run(capsys, "trust")
    kept = house.parent / "data" / "trusted.json"
    assert kept.stat().st_mode & 0o077 == 0
    right = kept.read_bytes()
    for at in range(0, len(right), 7):
        kept.write_bytes(right[:at] + bytes([right[at] ^ 4]) + right[at + 1 :])
        assert found(capsys).code == 1
    kept.write_bytes(right)
    kept.parent.chmod(0o777)
    refused = found(capsys)
    assert (refused.code, "name a folder of your own with ADVISOR_DATA_DIR" in refused.err) == (
        1,
        True,
    )
    kept.parent.chmod(0o700)
    assert found(capsys).code == 0


def test_help_and_version_say_nothing_of_it(capsys: Capture, house: Path) -> None:
    for words in (("--help",), ("--version",), ("advise", "--help"), ("trust", "--list")):
        assert run(capsys, *words).err == "", words
    assert house.is_dir()


def test_commands_and_words_of_an_overlay_are_named_and_marked(
    capsys: Capture, tmp_path: Path
) -> None:
    knowledge, texts = tmp_path / "k", tmp_path / "t"
    knowledge.mkdir()
    texts.mkdir()
    (knowledge / "sources-mine.yaml").write_text(
        "- {id: house, what: our notes, kind: community, as_of: 2026-11}\n", encoding="utf-8"
    )
    (knowledge / "commands-mine.yaml").write_text(
        "- command: llama-server\n  based_on: llama-server\n  source: house\n"
        '  lines: [["sh -c true && llama-server -m {gguf}", '
        '"-c {context_all}", "-np {slots}", "-ngl {gpu_layers}"]]\n',
        encoding="utf-8",
    )
    (texts / "words.txt").write_text("text.run = Run it so\n", encoding="utf-8")
    own = ("--knowledge", str(knowledge), "--templates", str(texts))
    mark = "Command yours: knowledge/commands-mine.yaml:1, replaces the built-in llama-server"
    for model, precision in (("phi-3-medium", "Q4_K_M"), ("phi-3-medium", "FP16")):
        given = {"model": model, "precision": precision}
        for form in ("text", "markdown", "html"):
            outcome = advise(capsys, *own, "--format", form, **given)
            said = " ".join(outcome.out.split())
            assert "sh -c true" in said, outcome.err
            assert mark in said, form
            assert "command llama-server (knowledge/commands-mine.yaml:1" in said
            assert "words words.txt (templates/words.txt, replaces the built-in one" in said
        doc = json.loads(advise(capsys, *own, "--format", "json", **given).out)
        named = {(entry["what"], entry["name"]) for entry in doc["provenance"]["yours"]}
        assert named == {("command", "llama-server"), ("words", "words.txt")}
