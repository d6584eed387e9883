"""Tiny files of the architectures that llama.cpp has: weights and cache as llama.cpp reports them.

``tests/data/llamacpp_tiny.jsonl.gz`` holds the headers of files that llama.cpp made itself and what
it said of them when it loaded them (``benchmarks/llamacpp_oracle.py``).
"""

from __future__ import annotations

import gzip
import importlib
import json
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import gguf
import pytest

from advisor.models.gguf.cursor import gguf_families
from tests.estimate.builders import DATA

SAMPLE_STEP = 12


@cache
def cases() -> list[dict[str, Any]]:
    with gzip.open(DATA / "llamacpp_tiny.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def architectures() -> set[str]:
    return {case["metadata"]["general.architecture"] for case in cases()}


def judged(found: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2]))
    oracle = importlib.import_module("benchmarks.llamacpp_oracle")
    told = [(*oracle.judged(case), case["name"]) for case in found]
    assert [one for one in told if one[0] not in {"exact", "estimated, inside"}] == []
    return Counter(result for result, _, _ in told)


def test_a_sample_is_sized_as_llama_cpp_sizes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    how = judged(cases()[::SAMPLE_STEP], monkeypatch)
    assert how["exact"] > 0.95 * how.total()


@pytest.mark.slow
def test_every_file_is_sized_as_llama_cpp_sizes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    how = judged(cases(), monkeypatch)
    page = (DATA.parents[1] / "docs" / "architectures.md").read_text(encoding="utf-8")
    of = f"{how.total():,} files of {len(architectures())} architectures"
    assert f"{of}: {how['exact']:,} exact" in " ".join(page.split())


def test_described_architectures_have_a_name_that_llama_cpp_has() -> None:
    assert set(gguf_families()) <= set(gguf.MODEL_ARCH_NAMES.values()) | architectures() | {
        "cohere2moe",
        "mellum",
    }
