"""The same batch on a Dask cluster of this machine, with and without a worker that is killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from advisor.bulk.batch import worker as shard_worker
from tests.batch.plans import TINY, contents, write
from tests.cli.running import run

pytest.importorskip("distributed")
ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 60


@contextmanager
def process(*command: str) -> Iterator[subprocess.Popen[bytes]]:
    quiet = subprocess.DEVNULL
    running = subprocess.Popen(
        [sys.executable, "-m", *command], cwd=ROOT, stdout=quiet, stderr=quiet
    )
    try:
        yield running
    finally:
        running.kill()
        running.wait()


def worker(file: Path) -> tuple[str, ...]:
    return (
        "distributed.cli.dask_worker", "--scheduler-file", str(file), "--nthreads", "1",
        "--no-nanny", "--no-dashboard", "--host", "127.0.0.1", "--local-directory",
        str(file.parent / "scratch"),
    )  # fmt: skip


@contextmanager
def scheduling(folder: Path) -> Iterator[tuple[Path, subprocess.Popen[bytes]]]:
    """A scheduler: the file that says where it listens, and its process."""
    file = folder / "scheduler.json"
    command = ("distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0")
    with process(*command, "--no-dashboard", "--scheduler-file", str(file)) as running:
        until = time.monotonic() + PATIENCE_S
        while not file.exists() and time.monotonic() < until:
            time.sleep(0.05)
        yield file, running


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with scheduling(tmp_path_factory.mktemp("cluster")) as (file, _):
        yield file


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("plan"), TINY.replace("shard_size: 3", "shard_size: 1"))


@pytest.fixture(scope="module")
def undisturbed(plan: Path) -> dict[str, bytes]:
    """What this process makes of the plan."""
    here = plan.parent / "here"
    subprocess.run(batch(plan, here, "--workers", "1"), cwd=ROOT, check=True, capture_output=True)
    return contents(here)


def batch(plan: Path, out: Path, *more: str) -> list[str]:
    command = [sys.executable, "-m", "advisor", "batch", str(plan), "--out", str(out)]
    return [*command, "--formats", "markdown,jsonl.gz,parquet/vendor", *more]


@contextmanager
def begun(plan: Path, out: Path, file: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A run on a cluster, once its first shard is complete."""
    address = json.loads(file.read_text())["address"]
    command = batch(plan, out, "--scheduler", address)
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, stdout=pipe, stderr=pipe) as running:
        while running.poll() is None and not list(out.glob("shards/*/*")):
            time.sleep(0.01)
        yield running


def test_a_killed_worker_loses_nothing_and_the_bytes_are_those_of_this_process(
    tmp_path: Path, scheduler: Path, plan: Path, undisturbed: dict[str, bytes]
) -> None:
    there = tmp_path / "there"
    with ExitStack() as cluster:
        victim, _ = (cluster.enter_context(process(*worker(scheduler))) for _ in range(2))
        running = cluster.enter_context(begun(plan, there, scheduler))
        os.kill(victim.pid, signal.SIGKILL)
        said, complaint = running.communicate(timeout=PATIENCE_S)
    assert running.returncode == 0, complaint.decode()
    assert json.loads(said)["complete"]
    assert contents(there) == undisturbed


def test_a_scheduler_that_dies_ends_the_run_which_goes_on_without_it(
    tmp_path: Path, plan: Path, undisturbed: dict[str, bytes], capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    with (
        scheduling(tmp_path) as (file, scheduler),
        process(*worker(file)),
        begun(plan, out, file) as running,
    ):
        scheduler.kill()
        _, complaint = running.communicate(timeout=PATIENCE_S)
    assert (running.returncode, complaint.count(b"\n")) == (1, 1), complaint.decode()
    assert b"is gone" in complaint
    assert run(capsys, *batch(plan, out, "--workers", "1", "--resume")[3:]).code == 0
    assert contents(out) == undisturbed


def test_audits_and_sites_are_made_there_as_here(
    tmp_path: Path, scheduler: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert run(capsys, *batch(write(tmp_path, TINY), out, "--workers", "1")[3:]).code == 0
    address = json.loads(scheduler.read_text())["address"]
    with process(*worker(scheduler)):
        for command in ("audit", "site"):
            here = run(capsys, command, str(out), "--workers", "1")
            made = contents(out)
            asked = [sys.executable, "-m", "advisor", command, str(out), "--scheduler", address]
            done = subprocess.run(asked, cwd=ROOT, check=True, capture_output=True, text=True)
            assert (done.stdout, contents(out)) == (here.out, made)


@pytest.mark.loopback
def test_no_scheduler_is_one_clear_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(shard_worker, "_CONNECT_S", 0.2)
    plan, nobody = write(tmp_path, TINY), "tcp://127.0.0.1:1"
    done = run(capsys, "batch", str(plan), "--out", str(tmp_path / "out"), "--scheduler", nobody)
    assert done.code == 1
    assert done.err.startswith(f"error: no Dask scheduler answers at '{nobody}'")
    assert len(done.err.splitlines()) == 1
    assert not (tmp_path / "out").exists()
