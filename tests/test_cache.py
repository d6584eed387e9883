from __future__ import annotations

import ast
import os
import random
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from advisor import files
from advisor.errors import UserError
from advisor.files import compiled, read_kept, user_cache_dir, write_kept


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


ASKED = ("advise", "--gpu", "RTX 4090", "--model", "phi-3-medium", "--format", "json")
KINDS = {"architectures", "knowledge", "rules", "shapes", "template", "vocabulary"}


def asked(*more: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "advisor", *ASKED, *more]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def flipped(content: bytes, at: int) -> bytes:
    return content[:at] + bytes([content[at] ^ 1 << at % 8]) + content[at + 1 :]


def test_no_flipped_byte_of_any_kind_is_believed(folder: Path) -> None:
    """A digit that became another is still JSON, and was once a false \"fits\"."""
    right = asked().stdout
    files_of = {path: path.read_bytes() for path in folder.iterdir()}
    assert {path.name.partition("-")[0] for path in files_of} == KINDS
    places = random.Random(17)
    for path, whole in files_of.items():
        what = path.stem.rpartition("-")[0]
        assert read_kept(path, what) is not None
        for at in {0, 31, 32, len(whole) - 1, *places.sample(range(len(whole)), 12)}:
            path.write_bytes(flipped(whole, at))
            assert read_kept(path, what) is None, (path.name, at)
        path.write_bytes(whole[:-1])
        assert read_kept(path, what) is None
        path.write_bytes(flipped(whole, len(whole) // 2))
    again = asked()
    assert (again.returncode, again.stdout, again.stderr) == (0, right, "")
    assert {path: path.read_bytes() for path in folder.iterdir()} == files_of


def test_a_whole_file_of_another_name_is_not_believed(folder: Path) -> None:
    compiled("rules", "a" * 64, lambda: {"x": 1}, Form)
    (kept,) = folder.iterdir()
    kept.rename(folder / kept.name.replace("a" * 32, "b" * 32))
    assert compiled("rules", "b" * 64, lambda: {"x": 2}, Form) == {"x": 2}


@pytest.mark.parametrize("other", [os.mkfifo, os.mkdir])
def test_a_pipe_or_folder_in_place_of_a_file_is_as_none(
    folder: Path, other: Callable[[Path], None]
) -> None:
    compiled("rules", "a" * 64, lambda: {"x": 1}, Form)
    (kept,) = folder.iterdir()
    kept.unlink()
    other(kept)
    assert compiled("rules", "a" * 64, lambda: {"x": 2}, Form) == {"x": 2}


def test_what_is_made_is_for_nobody_else(folder: Path) -> None:
    before = os.umask(0)
    try:
        compiled("rules", "a" * 64, lambda: {"x": 1}, Form)
    finally:
        os.umask(before)
    assert folder.stat().st_mode & 0o077 == 0
    assert all(path.stat().st_mode & 0o077 == 0 for path in folder.iterdir())


@pytest.mark.parametrize("mode", [0o775, 0o777, 0o1777])
def test_a_folder_that_others_write_to_is_refused(folder: Path, mode: int) -> None:
    asked()
    folder.chmod(mode)
    done = asked()
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith(f"error: '{folder}' can be written by others")
    assert f"'chmod go-w {folder}'" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_file_that_others_write_to_is_refused(folder: Path) -> None:
    compiled("rules", "a" * 64, lambda: {"x": 1}, Form)
    (kept,) = folder.iterdir()
    kept.chmod(0o666)
    with pytest.raises(UserError, match="can be written by others"):
        compiled("rules", "a" * 64, never, Form)


def test_what_belongs_to_another_user_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled("rules", "a" * 64, lambda: {"x": 1}, Form)
    (kept,) = folder.iterdir()
    states = {path: list(path.stat()) for path in (kept, folder)}
    for state in states.values():
        state[stat.ST_UID] = os.geteuid() + 1
        with pytest.raises(UserError, match="belongs to another user") as refused:
            files.refuse_shared(kept, os.stat_result(state))
        assert "ADVISOR_CACHE_DIR" in str(refused.value)
    monkeypatch.setattr(os, "fstat", lambda _: os.stat_result(states[kept]))
    with pytest.raises(UserError, match="belongs to another user"):
        compiled("rules", "a" * 64, never, Form)


def test_every_kind_is_pruned_and_what_earlier_versions_left(folder: Path) -> None:
    old = time.time() - 7_200
    left = [folder / "templates-2-cpython-312", folder / "templates-3.1.6-2"]
    for path in left:
        path.mkdir(parents=True, mode=0o700)
        (path / "code.bin").write_bytes(b"code")
    left += [folder / "tmpabcd_123.tmp"]
    left[-1].touch()
    mine = folder / "templates-of-mine"
    mine.mkdir()
    new = folder / "tmpabcd_124.tmp"
    new.touch()
    for path in (*left, mine):
        os.utime(path, (old, old))
    folder.chmod(0o700)
    for kind in sorted(KINDS | {"facts"}):
        for number in range(12):
            path = folder / f"{kind}-{number:032x}-abc.json"
            write_kept(path, path.stem, [b"{}"], f"{kind}-*.json", 8)
    assert not any(path.exists() for path in left)
    assert len(list(folder.iterdir())) == 8 * (len(KINDS) + 1) + 2
    assert mine.exists()
    assert new.exists()


def test_nothing_that_is_kept_can_run() -> None:
    """No module reads code: what is stored is data."""
    forbidden = {"marshal", "pickle", "shelve", "dill", "cloudpickle", "joblib", "exec", "eval"}
    forbidden |= {"compile", "__import__"}
    for path in Path(files.__file__).parent.rglob("*.py"):
        found = set[str]()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found |= {name.name.partition(".")[0] for name in node.names}
            elif isinstance(node, ast.ImportFrom):
                found.add((node.module or "").partition(".")[0])
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                found.add(node.func.id)
        assert not found & forbidden, path
