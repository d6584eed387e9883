"""What holds for every test: no network, no writing to the user's cache, the same examples."""

from __future__ import annotations

import gc
import os
import socket
import tempfile
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("same-every-run", derandomize=True, deadline=None)
settings.load_profile("same-every-run")


def pytest_configure() -> None:
    """Share one cache among the workers of a run, outside the user's own."""
    if "ADVISOR_CACHE_DIR" not in os.environ:
        folder = Path(tempfile.gettempdir()) / f"advisor-tests-{os.getuid()}"
        os.environ["ADVISOR_CACHE_DIR"] = str(folder)
    os.environ.pop("ADVISOR_ENGINE", None)
    for name in ("DATA", "CONFIG"):
        empty = Path(os.environ["ADVISOR_CACHE_DIR"]) / f"no-{name.casefold()}"
        os.environ[f"ADVISOR_{name}_DIR"] = str(empty)


def pytest_collection_finish() -> None:
    """Spare what is collected and loaded from being looked through again and again: a tenth."""
    gc.freeze()
    gc.set_threshold(100_000, 20, 20)


@pytest.fixture(autouse=True)
def _no_network(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse every connection; a test marked ``loopback`` may reach this machine itself."""
    connect = socket.socket.connect
    to_itself = request.node.get_closest_marker("loopback") is not None

    def guarded(own: socket.socket, address: object) -> None:
        if to_itself and isinstance(address, tuple) and address[0] in {"127.0.0.1", "::1"}:
            return connect(own, address)
        raise AssertionError("a test tried to use the network")

    monkeypatch.setattr(socket.socket, "connect", guarded)


@pytest.fixture
def few_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the cases beside the rules only the first are run, for what is about scenarios."""
    run_few_cases(monkeypatch)


def run_few_cases(patch: pytest.MonkeyPatch) -> None:
    """Leave most cases of the rules to the tests that run them all."""
    from advisor.workbench.cases import Runner  # noqa: PLC0415 - few tests need it

    every = Runner.cases
    patch.setattr(Runner, "cases", lambda *given: islice(every(*given), 9))
