"""What ``import advisor`` promises."""

from __future__ import annotations

import subprocess
import sys

import pytest

import advisor


def test_the_public_names_are_these() -> None:
    assert advisor.__all__ == [
        "Advice", "Advisor", "Request", "__version__", "advise", "load_knowledge", "load_rules",
    ]  # fmt: skip
    assert all(hasattr(advisor, name) for name in advisor.__all__)


def test_any_other_name_is_refused() -> None:
    with pytest.raises(AttributeError, match="no attribute 'advize'"):
        advisor.advize  # noqa: B018


def test_a_request_is_answered() -> None:
    request = advisor.Request(gpu="RTX 4090", model="phi-3-medium", precision="fp16")
    answer = advisor.advise(request)
    assert isinstance(answer, advisor.Advice)
    assert answer.recommendations
    assert answer.recommendations[0].after.fits
    assert answer.recommendations[0].title
    assert answer.verdict.sentence


def test_it_is_the_answer_of_a_loaded_advisor() -> None:
    request = advisor.Request(gpu="RTX 3060:12GB", model="llama-3-8b", precision="q8_0")
    loaded = advisor.Advisor.load()
    scenario = loaded.advise(request).scenario
    assert advisor.advise(request).scenario.model.name == scenario.model.name
    assert loaded.knowledge.sha256 == advisor.load_knowledge().sha256


def test_the_import_alone_loads_nothing() -> None:
    code = "import sys, advisor; print([n for n in sys.modules if n.startswith('advisor.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
