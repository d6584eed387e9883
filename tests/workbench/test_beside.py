"""Entries of knowledge are compared by what they say, not by the way they were read."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor import knowledge
from advisor.knowledge import load_knowledge
from advisor.workbench.comparison import entries_between


def test_knowledge_from_files_and_from_the_cache_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ADVISOR_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(knowledge, "_loaded", {})
    parsed = load_knowledge()
    knowledge._loaded.clear()
    read_back = load_knowledge()
    assert parsed is not read_back
    assert entries_between(parsed, read_back) == []
