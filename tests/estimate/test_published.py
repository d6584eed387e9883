"""Published memory figures: how near, how often inside the range, and every outlier explained."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from msgspec.structs import replace

from advisor.estimator import estimate_memory
from advisor.scenario.resolve import resolve
from advisor.scenario.settings import Request
from tests.estimate.published import (
    DESIGN,
    KNOWLEDGE,
    certainties,
    comparisons,
    coverage,
    exclusion,
    held_out,
    median_error,
    outliers,
    published,
    reason,
    share_within,
    totals,
)

ROOT = Path(__file__).parents[2]
STALE = "python benchmarks/memory_accuracy.py > docs/memory-accuracy.md"


def test_totals_are_near() -> None:
    assert median_error(totals()) < 0.05
    assert share_within(totals(), 0.10) >= 0.70
    assert coverage(totals()) >= 0.80


def test_parts_that_a_log_lists_are_nearly_exact() -> None:
    parts = [item for item in comparisons() if item.component in {"weights", "kv_cache"}]
    assert len(parts) > 40
    assert median_error(parts) < 0.005
    assert share_within(parts, 0.07) == 1


@pytest.mark.parametrize("kind", ["llama.cpp, buffers", "transformers, LLaMA"])
def test_totals_apart_from_the_design_rows_are_near(kind: str) -> None:
    found = [item for item in held_out() if item.kind == kind]
    assert found
    assert median_error(found) < 0.05


def test_rows_apart_share_no_model_and_no_card_with_the_design_rows() -> None:
    design = [item for item in totals() if item.kind == DESIGN]
    apart = held_out()
    assert not {item.card for item in design} & {item.card for item in apart}
    models = {item.scenario.model.name for item in design}
    assert not models & {item.scenario.model.name for item in apart}
    assert median_error(apart) < 0.10


def test_every_outlier_is_explained() -> None:
    assert [item.ids for item in outliers() if not reason(item)] == []
    assert len(outliers()) <= 0.05 * len(comparisons())


def test_enough_rows_are_left_to_say_something() -> None:
    kept = [row for row in published() if not exclusion(row)]
    assert len(kept) >= 200
    assert len({item.kind for item in totals()}) >= 7


def test_the_page_is_fresh() -> None:
    spec = importlib.util.spec_from_file_location(
        "memory_accuracy", ROOT / "benchmarks" / "memory_accuracy.py"
    )
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    page = (ROOT / "docs" / "memory-accuracy.md").read_text(encoding="utf-8")
    assert page == module.document(), f"stale: {STALE}"


def test_what_is_said_to_be_sure_is_right_near_the_limit_too() -> None:
    counts = certainties(totals())
    assert counts["sure", True] >= 0.97 * (counts["sure", True] + counts["sure", False])
    assert counts["beyond", False] >= 0.99 * (counts["beyond", True] + counts["beyond", False])
    typed_in = "llama.cpp, self-reported"
    others = certainties(item for item in totals() if item.kind != typed_in)
    assert (others["sure", False], others["beyond", True]) == (0, 0)
    assert others["sure", True] > 350
    assert others["beyond", False] > 450


@pytest.mark.parametrize(
    ("precision", "framework", "again"),
    [
        ("AWQ", "transformers", True),
        ("FP8", "vLLM", False),
        ("GPTQ 4-bit", "transformers", False),
        ("AWQ", "vLLM", False),
    ],
)
def test_a_tied_output_matrix_that_a_file_brings_again_is_in_the_upper_end(
    precision: str,
    framework: str,
    again: bool,  # noqa: FBT001
) -> None:
    asked = Request(framework=framework, context=512)
    tied, own = (
        estimate_memory(
            resolve(replace(asked, model=model, precision=precision), KNOWLEDGE), KNOWLEDGE
        )
        for model in ("Qwen2.5-3B-Instruct", "Qwen2.5-7B-Instruct")
    )
    matrix = 2 * 151_936 * 2_048
    assert (tied.high_bytes - tied.required_bytes > matrix) is again
    assert own.high_bytes - own.required_bytes < matrix


def test_a_gptq_file_without_groups_is_in_the_lower_end() -> None:
    asked = Request(model="Qwen2.5-32B-Instruct", precision="GPTQ 4-bit", context=512)
    plain = replace(asked, precision="AWQ")
    gptq, awq = (estimate_memory(resolve(one, KNOWLEDGE), KNOWLEDGE) for one in (asked, plain))
    assert gptq.required_bytes == awq.required_bytes
    assert 0.02 < (awq.low_bytes - gptq.low_bytes) / awq.weights_bytes < 0.04
    assert gptq.high_bytes == awq.high_bytes
