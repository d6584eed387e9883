from __future__ import annotations

import os
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session", autouse=True)
def _private_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    before = os.environ.get("ADVISOR_CACHE_DIR")
    os.environ["ADVISOR_CACHE_DIR"] = str(tmp_path_factory.mktemp("cache"))
    yield
    if before is None:
        del os.environ["ADVISOR_CACHE_DIR"]
    else:
        os.environ["ADVISOR_CACHE_DIR"] = before
