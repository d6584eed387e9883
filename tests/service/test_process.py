"""The service as a process: workers that are replaced, and a stop in good order."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest
from starlette.types import ASGIApp

from advisor.api.service.answers import Asked
from advisor.api.service.workers import Answering, Setup, Workers
from tests.cli.running import run
from tests.service.asking import Service

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.loopback
def test_it_answers_and_stops_when_it_is_told(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "advisor", "serve", "--port", "0", "--workers", "1"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=tmp_path, env=environment, **pipes) as process:  # type: ignore[call-overload]
        url = json.loads(process.stdout.readline())["url"]
        asked = f"{url}/estimate?gpu=RTX+4090&model=llama-3-8b"
        with urllib.request.urlopen(asked) as got:  # noqa: S310  this machine
            assert json.load(got)["memory"]["required_bytes"] > 2**32
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=30)
    events = [json.loads(line)["event"] for line in out.splitlines()]
    assert (process.returncode, events) == (0, ["request", "stopped"])
    assert err == f"advisor answers at {url} (Ctrl-C stops it)\n"


def test_a_worker_that_takes_too_long_or_dies_is_replaced() -> None:
    async def asked() -> None:
        pool = Workers(Setup(), 1, 30)
        await pool.start()
        quick = Asked("estimate", {"model": "llama-3-8b"})
        pool._limit_s = 0.01
        late = await pool.ask(Asked("models-for", {"gpu": "T4"}))
        assert (late.status, b"no answer within" in late.body) == (504, True)
        pool._limit_s = 30
        assert (await pool.ask(quick)).status == 200
        process = pool._every[0]._process
        assert process
        process.kill()
        assert (await pool.ask(quick)).status == 200
        assert pool.restarts == 2
        under_way = asyncio.create_task(
            pool.ask(Asked("models-for", {"gpu": "T4", "limit": "all"}))
        )
        await asyncio.sleep(0.1)
        await pool.stop()
        assert (await under_way).status == 500
        assert not any(one._process.is_alive() for one in pool._every if one._process)

    asyncio.run(asked())


def test_who_waits_when_the_service_stops_is_told_that_the_worker_ended() -> None:
    async def asked() -> None:
        pool = Workers(Setup(), 4, 30)
        await pool.start()
        long = Asked("models-for", {"gpu": "T4", "limit": "all"})
        under_way = [asyncio.create_task(pool.ask(long)) for _ in range(3)]
        await asyncio.sleep(0.1)
        await pool.stop()
        assert [(await one).status for one in under_way] == [500] * 3

    asyncio.run(asked())


@pytest.mark.parametrize("reach", [(), ("--allow-files",), ("--allow-hub",)])
def test_answers_are_kept_where_nothing_but_names_is_asked(
    reach: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = Service()

    def listening(make: Callable[[Answering], ASGIApp], *_: object) -> None:
        asked.app = make(asked.workers)

    monkeypatch.setattr("advisor.cli.serve.listen", listening)
    assert run(capsys, "serve", *reach).code == 0
    got = asked.get("/estimate", model="llama-3-8b")
    assert ("etag" in got.headers) == (not reach)


def test_wrong_folders_and_ports_are_told_at_once(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    got = run(capsys, "serve", "--port", "0", "--body-limit", "much")
    assert (got.code, "--body-limit" in got.err) == (1, True)
    got = run(capsys, "serve", "--host", "192.0.2.1", "--port", "0")
    assert (got.code, "cannot listen at 192.0.2.1" in got.err) == (1, True)
    (tmp_path / "bad.yaml").write_text("- rule: [")
    got = run(capsys, "serve", "--port", "0", "--workers", "1", "--rules", str(tmp_path))
    assert (got.code, "bad.yaml" in got.err) == (1, True)
