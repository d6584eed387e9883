from __future__ import annotations

import pytest

from advisor.knowledge import load_knowledge
from advisor.knowledge.types import Knowledge


@pytest.fixture(scope="session")
def knowledge() -> Knowledge:
    return load_knowledge()
