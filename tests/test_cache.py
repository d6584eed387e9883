from __future__ import annotations

from pathlib import Path

import pytest

from advisor import files
from advisor.files import compiled, user_cache_dir


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ADVISOR_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


Form = dict[str, object]


def never() -> dict[str, object]:
    raise AssertionError("built although it is in the cache")


def test_builds_once_and_reads_back() -> None:
    assert compiled("rules", "a" * 64, lambda: {"x": [1, "ä"]}, Form) == {"x": [1, "ä"]}
    assert compiled("rules", "a" * 64, never, Form) == {"x": [1, "ä"]}


def test_other_content_or_kind_is_built_anew() -> None:
    compiled("rules", "a" * 64, lambda: {"x": 1}, Form)
    assert compiled("rules", "b" * 64, lambda: {"x": 2}, Form) == {"x": 2}
    assert compiled("knowledge", "a" * 64, lambda: {"x": 3}, Form) == {"x": 3}


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff"])
def test_a_damaged_file_is_built_anew(folder: Path, content: bytes) -> None:
    compiled("rules", "a" * 64, lambda: {"x": 1}, Form)
    for path in folder.iterdir():
        path.write_bytes(content)
    assert compiled("rules", "a" * 64, lambda: {"x": 2}, Form) == {"x": 2}


def test_a_folder_that_cannot_be_written_costs_nothing_but_time(folder: Path) -> None:
    folder.write_text("a file where the folder should be")
    assert compiled("rules", "a" * 64, lambda: {"x": 1}, Form) == {"x": 1}
    assert compiled("rules", "a" * 64, lambda: {"x": 2}, Form) == {"x": 2}


def test_old_files_are_removed(folder: Path) -> None:
    for number in range(20):
        compiled("rules", f"{number:064x}"[::-1], lambda: {"x": 1}, Form)
    assert len(list(folder.iterdir())) <= 10


def test_the_folder_follows_the_environment(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert user_cache_dir() == folder
    monkeypatch.delenv("ADVISOR_CACHE_DIR")
    assert "advisor" in user_cache_dir().parts


def test_the_program_is_told_apart_by_the_contents_of_every_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_PACKAGE", tmp_path)
    (tmp_path / "any" / "where").mkdir(parents=True)
    module = tmp_path / "any" / "where" / "new.py"
    seen = set()
    for content in ("a = 1\n", "a = 2\n", "a = 1\n"):
        module.write_text(content)
        seen.add(files.code_sha256())
    assert len(seen) == 2
