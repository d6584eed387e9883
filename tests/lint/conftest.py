"""The vocabulary and knowledge, read once."""

from collections.abc import Callable, Sequence

import pytest

from advisor.advice import Advisor
from advisor.workbench.lint.problem import Problem
from tests.lint.alone import checked_alone

Check = Callable[..., Sequence[Problem]]


@pytest.fixture(scope="session")
def advisor() -> Advisor:
    return Advisor.load(engine="reference")


@pytest.fixture
def check(advisor: Advisor) -> Check:
    """Check files by themselves, without the built-in rules, on the requests of their cases."""
    return lambda **files: checked_alone(advisor, files)
