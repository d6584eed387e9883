"""The file of measurements: nothing lost, nothing half-written, edited by hand or not."""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
from pathlib import Path

import pytest
from msgspec.structs import replace

from advisor.errors import UserError
from advisor.estimator.calibration import file_of, user
from advisor.estimator.calibration.user.benchmark import COLUMNS
from advisor.estimator.measured_speed import Measurement
from advisor.files import user_data_dir

ONE = Measurement(
    gpu="GeForce RTX 4080", gpus=1, model="Llama-3.1-8B", precision="Q4_K_M", framework="llama.cpp",
    framework_version="b5163", backend="CUDA", prompt_tokens=0, gen_tokens=128, depth_tokens=0,
    batch=1, metric="decode_tok_s", tok_s=118.882, stdev=1.04, date="2026-03-01",
    source="bench.json", note='said "fast", twice; ok',
)  # fmt: skip
TWO = replace(ONE, tok_s=95.5, stdev=None, date="", note="")


def figures(path: Path) -> list[Measurement]:
    return [item.measurement for item in user.load(path)[1]]


def test_what_is_stored_is_read_back_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "measurements.csv"
    user.add(path, [ONE, TWO])
    assert figures(path) == [ONE, TWO]


def test_nothing_is_stored_before_the_first_add(tmp_path: Path) -> None:
    assert user.load(tmp_path / "measurements.csv") == (b"", [])


def test_the_same_figure_is_known_under_another_file_name(tmp_path: Path) -> None:
    path = tmp_path / "measurements.csv"
    user.add(path, [ONE, ONE])
    before, after = user.add(
        path, [replace(ONE, source="copy.json", note="", framework_version="")]
    )
    assert before == after
    assert figures(path) == [ONE]


def test_a_second_run_of_the_same_setup_is_a_second_figure(tmp_path: Path) -> None:
    path = tmp_path / "measurements.csv"
    user.add(path, [ONE])
    user.add(path, [replace(ONE, tok_s=117.0)])
    assert [m.tok_s for m in figures(path)] == [118.882, 117.0]


def test_untouched_lines_keep_their_bytes(tmp_path: Path) -> None:
    path = tmp_path / "measurements.csv"
    user.add(path, [ONE])
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n") + b"# my second card\r\n\r\n")
    by_hand = path.read_bytes()
    user.add(path, [TWO])
    assert path.read_bytes().startswith(by_hand)
    user.remove(path, [user.id_of(TWO)])
    assert path.read_bytes() == by_hand


def test_a_last_line_without_its_end_is_not_glued_to_the_next(tmp_path: Path) -> None:
    path = tmp_path / "measurements.csv"
    user.add(path, [ONE])
    path.write_bytes(path.read_bytes().rstrip(b"\n"))
    user.add(path, [TWO])
    assert figures(path) == [ONE, TWO]


def test_columns_may_be_moved_and_parted_by_semicolons(tmp_path: Path) -> None:
    path = tmp_path / "measurements.csv"
    names = [*reversed(COLUMNS)]
    values = [str(getattr(TWO, name) or "") for name in names]
    path.write_text(f"{';'.join(names)}\n{';'.join(values)}\n")
    assert figures(path) == [TWO]
    user.add(path, [ONE])
    assert figures(path) == [TWO, replace(ONE)]


def test_remove_takes_the_beginning_of_an_id(tmp_path: Path) -> None:
    path = tmp_path / "measurements.csv"
    user.add(path, [ONE, TWO])
    user.remove(path, [user.id_of(ONE)[:5]])
    assert figures(path) == [TWO]


def test_remove_is_all_or_nothing(tmp_path: Path) -> None:
    path = tmp_path / "measurements.csv"
    user.add(path, [ONE, TWO])
    with pytest.raises(UserError) as caught:
        user.remove(path, [user.id_of(ONE), "xyz", "", "0123456789"])
    assert "no measurement is called 'xyz'" in str(caught.value)
    assert "no measurement is called ''" in str(caught.value)
    assert figures(path) == [ONE, TWO]


def test_an_id_that_begins_several_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "measurements.csv"
    many = [replace(ONE, tok_s=float(n)) for n in range(1, 40)]
    user.add(path, many)
    by_start: dict[str, list[str]] = {}
    for m in many:
        by_start.setdefault(user.id_of(m)[0], []).append(user.id_of(m))
    start = next(first for first, ids in by_start.items() if len(ids) > 1)
    with pytest.raises(UserError, match="begins several"):
        user.remove(path, [start])
    assert len(figures(path)) == 39


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("1,2,3", "the line has 3 cells"),
        ('"', "not CSV"),
        (",1,m,q,f,,CUDA,0,0,0,1,decode_tok_s,9,,,,", "gpu is missing"),
        ("g,1,m,q,f,,CUDA,0,0,0,1,decode_tok_s,,,,,", "tok_s is missing"),
        ("g,1,m,q,f,,CUDA,0,0,0,1,decode_tok_s,-4,,,,", "tok_s is -4"),
        ("g,1,m,q,f,,CUDA,0,0,0,1,decode_tok_s,inf,,,,", "tok_s is inf"),
        ("g,x,m,q,f,,CUDA,0,0,0,1,decode_tok_s,9,,,,", "gpus is 'x'"),
        ("g,1,m,q,f,,CUDA,0,0,-1,1,decode_tok_s,9,,,,", "depth_tokens is -1"),
        ("g,1,m,q,f,,CUDA,0,0,0,1,decoding,9,,,,", "unknown metric"),
        ("g,1,m,q,f,,CUDA,0,0,0,1,decode_tok_s,9,,yesterday,,", "date is 'yesterday'"),
    ],
)
def test_damage_is_named_with_its_line_and_stops_every_change(
    tmp_path: Path, line: str, words: str
) -> None:
    path = tmp_path / "measurements.csv"
    user.add(path, [ONE])
    path.write_text(f"{path.read_text()}{line}\n")
    damaged = path.read_bytes()
    for change in (lambda: user.load(path), lambda: user.add(path, [TWO])):
        with pytest.raises(UserError) as caught:
            change()
        assert str(caught.value).startswith(f"{path}:3: ")
        assert words in str(caught.value)
        assert "--no-measurements" in str(caught.value)
    assert path.read_bytes() == damaged


@pytest.mark.parametrize("content", [b"gpu,model\n", b"\xff\xfe\x00", b"nonsense\n"])
def test_another_file_under_this_name_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "measurements.csv"
    path.write_bytes(content)
    with pytest.raises(UserError):
        user.add(path, [ONE])
    assert path.read_bytes() == content


def test_a_folder_under_this_name_is_refused(tmp_path: Path) -> None:
    (tmp_path / "measurements.csv").mkdir()
    with pytest.raises(UserError, match="cannot read"):
        user.load(tmp_path / "measurements.csv")


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.csv"
    real.touch()
    link = tmp_path / "measurements.csv"
    link.symlink_to(real)
    user.add(link, [ONE])
    assert link.is_symlink()
    assert figures(real) == [ONE]


def test_a_write_that_fails_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "measurements.csv"
    user.add(path, [ONE])
    whole = path.read_bytes()

    def full(_handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UserError, match="No space left on device"):
        user.add(path, [TWO])
    assert path.read_bytes() == whole
    assert not list(tmp_path.glob("*.part"))
    assert not list(tmp_path.glob(".*.part"))


def _add_ten(path: Path, first: int) -> None:
    for n in range(first, first + 10):
        user.add(path, [replace(ONE, tok_s=float(n))])


@pytest.mark.skipif(sys.platform == "win32", reason="processes start anew there: too slow")
def test_adds_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "measurements.csv"
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_add_ten, args=(path, first)) for first in (100, 200, 300)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert {worker.exitcode for worker in workers} == {0}
    assert sorted(m.tok_s for m in figures(path)) == [
        float(n) for first in (100, 200, 300) for n in range(first, first + 10)
    ]


def test_where_the_file_lies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert file_of(tmp_path) == tmp_path / "measurements.csv"
    monkeypatch.setenv("ADVISOR_DATA_DIR", str(tmp_path / "own"))
    assert user_data_dir() == tmp_path / "own"
    monkeypatch.delenv("ADVISOR_DATA_DIR")
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "xdg"))
    assert user_data_dir() == tmp_path / "xdg" / "advisor"
    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert user_data_dir() == tmp_path / ".local" / "share" / "advisor"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert user_data_dir() == tmp_path / "Library" / "Application Support" / "advisor"
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setenv("APPDATA", str(tmp_path / "Roaming"))
    assert user_data_dir() == tmp_path / "Roaming" / "advisor"


@pytest.mark.skipif(sys.platform == "win32", reason="locks of Windows are of a process")
def test_an_add_waits_for_whoever_holds_the_lock(tmp_path: Path) -> None:
    import fcntl  # noqa: PLC0415 - there is none on Windows

    path = tmp_path / "measurements.csv"
    user.add(path, [ONE])
    adding = threading.Thread(target=user.add, args=(path, [TWO]))
    with (tmp_path / ".measurements.csv.lock").open("ab") as holder:
        fcntl.flock(holder, fcntl.LOCK_EX)
        adding.start()
        adding.join(0.3)
        assert adding.is_alive()
        assert figures(path) == [ONE]
    adding.join(30)
    assert figures(path) == [ONE, TWO]
