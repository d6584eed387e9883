"""A small fact store of the real catalogue, worked out once and kept in the tests' cache."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from advisor.advice import Advisor
from advisor.files import data_dir
from advisor.workbench.bulk import Evaluation, evaluate_all
from advisor.workbench.fact_store import FactStore
from advisor.workbench.fact_store_files import Origin, sampled_facts

SAMPLE = 120


@pytest.fixture(scope="session")
def advisor() -> Advisor:
    return Advisor.load(engine="reference")


@pytest.fixture(scope="session")
def store() -> FactStore:
    return sampled_facts(SAMPLE, Origin(workers=1))


@pytest.fixture(scope="session")
def evaluation(advisor: Advisor, store: FactStore) -> Evaluation:
    return evaluate_all(store, advisor.ruleset)


@pytest.fixture
def rules_copy(tmp_path: Path) -> Path:
    """A copy of the built-in rules that a test may edit."""
    return Path(shutil.copytree(data_dir("rules"), tmp_path / "base" / "rules"))


def edited(folder: Path, file: str, old: str, new: str) -> None:
    """Replace the one place where ``old`` stands."""
    path = folder / file
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in {file}"
    path.write_text(text.replace(old, new), encoding="utf-8")
