"""What ``advisor batch`` says where it cannot write, and what it leaves of its surroundings."""

from __future__ import annotations

import errno
import gc
import io
import json
import os
import signal
import sys
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future
from pathlib import Path
from typing import Any

import pytest

from advisor.bulk.batch import Stop, each
from advisor.bulk.batch.worker import Cluster, Local, Pool
from advisor.cli.batch import _signals
from advisor.errors import RequestError
from tests.batch.plans import TINY, write
from tests.cli.running import Outcome, run, signals_as_before

Capture = pytest.CaptureFixture[str]


def batch(capsys: Capture, plan: Path, out: Path, *more: str) -> Outcome:
    formats = ("--formats", "jsonl", "--workers", "1")
    return run(capsys, "batch", str(plan), "--out", str(out), *formats, *more)


def held_back() -> bool:
    return signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ())


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("letter/out", "letter' is not a folder"),
        ("letter/far/out", "letter' is not a folder"),
        ("a" * 300, "(File name too long)"),
        ("round/out", "cannot make the folder"),
    ],
)
def test_a_folder_that_cannot_be_made_is_told_with_the_reason(
    capsys: Capture, tmp_path: Path, place: str, words: str
) -> None:
    write(tmp_path, "dear", "letter")
    (tmp_path / "round").symlink_to("round")
    for outcome in (
        batch(capsys, write(tmp_path, TINY), tmp_path / place),
        batch(capsys, write(tmp_path, TINY), tmp_path / place, "--resume"),
    ):
        assert outcome.code == 1
        assert outcome.err.startswith("error: cannot make the folder")
        assert words in outcome.err
        assert len(outcome.err.splitlines()) == 1


def test_a_summary_that_cannot_be_written_is_no_fault_of_the_folder(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Full(io.StringIO):
        def write(self, _: str) -> int:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    plan, out = write(tmp_path, TINY), tmp_path / "out"
    monkeypatch.setattr(sys, "stdout", Full())
    outcome = batch(capsys, plan, out)
    monkeypatch.undo()
    assert outcome.code == 1
    assert "No space left on device" in outcome.err
    assert "--resume" not in outcome.err
    assert json.loads(batch(capsys, plan, out, "--resume").out)["shards"]["kept"] == 3


def test_ctrl_c_never_reaches_a_worker_and_is_not_lost_here() -> None:
    pool = Local(2).open()
    assert isinstance(pool, Pool)
    try:
        assert pool.submit(held_back).result()
        assert not held_back()
    finally:
        pool.shutdown()


def test_what_is_left_after_a_stop_cannot_be_cut_short() -> None:
    stop = Stop()
    with signals_as_before():
        with _signals(stop):
            signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGTERM)
    assert stop.signal == signal.SIGINT


def test_where_processes_are_at_work_a_second_ctrl_c_cuts_into_no_call() -> None:
    stop = Stop(waits=True)
    with signals_as_before(), _signals(stop):
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        assert stop.at_once
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)


def test_a_pool_ends_at_once_at_the_second_ctrl_c(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Twice(Executor):
        def submit(self, *_: object, **__: object) -> Future[None]:  # type: ignore[override]  # never done
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
            return Future()

    dropped: list[bool] = []
    monkeypatch.setattr(Local, "open", lambda _: Twice())
    monkeypatch.setattr(Local, "close", lambda _, __, *, drop: dropped.append(drop))
    out = ("--out", str(tmp_path / "out"), "--workers", "2")
    outcome = run(capsys, "batch", str(write(tmp_path, TINY)), *out)
    assert outcome.code == 130
    assert "stopped at once" in outcome.err
    assert dropped == [True]


class Client:
    """As much of a client of Dask as is looked at."""

    status = "running"
    threads: dict[str, int] = {}  # noqa: RUF012 - replaced, never changed
    lost = False

    def nthreads(self) -> dict[str, int]:
        if self.lost:
            self.status = "closed"
            raise OSError("Timed out")
        return self.threads


def test_a_cluster_without_workers_is_told_after_a_while_and_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client, now = Client(), [100.0]
    monkeypatch.setattr("advisor.bulk.batch.worker.time.monotonic", lambda: now[0])
    cluster = Cluster(client, "tcp://here:1", ())
    said = []
    for second, threads in ((0, {}), (29, {}), (31, {}), (32, {"w": 1}), (40, {}), (69, {})):
        client.threads, now[0] = threads, 100.0 + second
        assert cluster.most_in_flight() == 2
        said.append(cluster.held_up())
    assert [bool(one) for one in said] == [False, False, True, False, False, False]
    assert "'tcp://here:1' has had no worker for 30 s" in said[2]


def test_a_scheduler_that_dies_is_one_message_wherever_it_shows() -> None:
    client = Client()
    cluster = Cluster(client, "tcp://here:1", ())
    client.lost = True
    for ask in (cluster.most_in_flight, cluster.open):
        with pytest.raises(RequestError, match="scheduler at 'tcp://here:1' is gone") as gone:
            ask()
        assert "--resume" in gone.value.hint
    assert str(cluster.explained(OSError("Timed out"))) == str(gone.value)


class Alone(Local, frozen=True):
    """A cluster whose only worker never comes back."""

    def open(self) -> Executor:
        return Never()

    def held_up(self) -> str:
        return "the Dask scheduler at 'tcp://here:1' has had no worker for 30 s"


class Never(Executor):
    def submit(self, *_: object, **__: object) -> Any:
        return Future()


def test_what_cannot_go_on_without_workers_ends_with_one_message(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("advisor.bulk.batch._LOOK_S", 0)
    with pytest.raises(RequestError, match="has had no worker for 30 s") as ended:
        list(each(Alone(2), str, [1, 2, 3]))
    assert "Run the same command again" in ended.value.hint


def test_results_come_in_the_order_of_tasks() -> None:
    assert list(each(Local(1), str, range(5))) == ["0", "1", "2", "3", "4"]


def test_the_garbage_collector_is_set_as_before_at_the_end() -> None:
    before, place = gc.get_threshold(), Local(1)
    here = place.open()
    assert gc.get_threshold() != before
    place.close(here, drop=False)
    assert gc.get_threshold() == before


def test_a_file_of_requests_without_a_row_is_refused(capsys: Capture, tmp_path: Path) -> None:
    outcome = batch(capsys, write(tmp_path, "gpu,model\n", "rows.csv"), tmp_path / "out")
    assert outcome.code == 1
    assert "'rows.csv' holds no request" in outcome.err
    assert not (tmp_path / "out").exists()


def test_a_size_too_large_is_told_in_the_words_of_the_plan(capsys: Capture, tmp_path: Path) -> None:
    plan = write(tmp_path, f"{TINY}with: {{ram: 99999999 TB, ram_bandwidth: 1e30 GB/s}}\n")
    outcome = batch(capsys, plan, tmp_path / "out")
    assert outcome.code == 1
    assert "ram is 1.02399999e+11 GiB. Give at most 1,048,576 GiB." in outcome.err
    assert "ram_bandwidth is 1e+30 GB/s. Give at most 100,000 GB/s." in outcome.err


def test_a_name_of_two_lines_is_told_on_one(capsys: Capture, tmp_path: Path) -> None:
    write(tmp_path / "out", "mine", "two\nlines")
    outcome = batch(capsys, write(tmp_path, TINY), tmp_path / "out")
    assert outcome.err.count("\n") == 1
    assert r"(two\nlines)" in outcome.err


def test_what_differs_is_named_without_the_data_behind_it(capsys: Capture, tmp_path: Path) -> None:
    plan, out = write(tmp_path, TINY), tmp_path / "out"
    batch(capsys, plan, out)
    made = json.loads((out / "manifest.json").read_text())
    del made["plan"]
    (out / "manifest.json").write_text(json.dumps(made))
    outcome = batch(capsys, plan, out, "--resume")
    assert outcome.code == 1
    assert "was made differently: 'plan' in its manifest. Put that back" in outcome.err


class Dying(Executor):
    """Every process of it dies at its first shard, ``deaths`` times over."""

    left = 0
    opened = 0

    def submit(  # type: ignore[override]
        self, fn: Callable[..., object], /, *args: object, **_: object
    ) -> Future[object]:
        future: Future[object] = Future()
        if type(self).left:
            type(self).left -= 1
            future.set_exception(BrokenExecutor("gone"))
        else:
            future.set_result(fn(*args))
        return future


@pytest.mark.parametrize(("deaths", "code"), [(3, 0), (4, 1), (1_000, 1)])
def test_processes_that_keep_dying_end_the_run(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deaths: int, code: int
) -> None:
    def opened(_: Local) -> Executor:
        Dying.opened += 1
        return Dying()

    monkeypatch.setattr(Dying, "left", deaths)
    monkeypatch.setattr(Dying, "opened", 0)
    monkeypatch.setattr(Local, "open", opened)
    outcome = batch(capsys, write(tmp_path, TINY), tmp_path / "out")
    assert (outcome.code, Dying.opened) == (code, 4)
    if code:
        assert "worker processes died 4 times without finishing a shard" in outcome.err
        assert "--resume" in outcome.err


class Stumbling(Executor):
    """A process of it dies at every second shard that it is given."""

    given = 0

    def submit(  # type: ignore[override]
        self, fn: Callable[..., object], /, *args: object, **_: object
    ) -> Future[object]:
        future: Future[object] = Future()
        Stumbling.given += 1
        if Stumbling.given % 2:
            future.set_exception(BrokenExecutor("gone"))
        else:
            future.set_result(fn(*args))
        return future


def test_deaths_between_which_shards_are_finished_end_nothing(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Stumbling, "given", 0)
    monkeypatch.setattr(Local, "open", lambda _: Stumbling())
    plan = write(tmp_path, TINY.replace("shard_size: 3", "shard_size: 1"))
    outcome = batch(capsys, plan, tmp_path / "out")
    assert Stumbling.given >= 2 * 5
    assert outcome.code == 0, outcome.err
