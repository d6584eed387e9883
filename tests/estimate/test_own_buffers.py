"""One H200 with llama.cpp, measured for this project: part by part, and what the card showed."""

from __future__ import annotations

import pytest

from tests.estimate.own_buffers import MIB, Run, runs


@pytest.mark.parametrize("part", ["weights", "kv_cache", "host_kv_cache"])
def test_weights_and_cache_are_exact(part: str) -> None:
    errors = [error for run in runs() if (error := run.error(part)) is not None]
    assert errors
    assert max(map(abs, errors)) < 1e-4


@pytest.mark.parametrize(("regime", "rows", "low", "high"), [
    ("as a server starts", 24, -1e-3, 1e-3),
    ("experts in RAM", 3, -0.04, 0.0),
    ("layers in RAM", 2, -0.06, 0.0),
    ("flash attention off", 8, -0.05, 1e-3),
    ("quantised cache", 2, 0.0, 0.25),
    ("recurrent layers", 3, -0.2, 0.0),
])  # fmt: skip
def test_compute_buffers_keep_the_bar_of_their_regime(
    regime: str, rows: int, low: float, high: float
) -> None:
    errors = [run.error("compute_buffer") for run in runs() if run.regime == regime]
    assert len(errors) == rows
    assert all(error is not None and low <= error <= high for error in errors), errors


def test_a_matrix_sent_out_of_ram_is_held_beside_what_it_gives() -> None:
    """The largest tensor of the layers in RAM, which no log of a whole model shows."""
    sent = [run for run in runs() if run.row["cpu_experts"]]
    whole = {(run.row["model"], run.row["context"]): run for run in runs() if not _apart(run)}
    for run in sent:
        like = whole[run.row["model"], run.row["context"]]
        more = run.ours.compute_buffer_bytes - like.ours.compute_buffer_bytes
        assert more > 100 * MIB


def _apart(run: Run) -> bool:
    return run.regime != "as a server starts" or run.row["batch"] != "1"


def test_system_ram_holds_the_inputs_alone_where_layers_are_sent() -> None:
    errors = [run.error("host_compute") for run in runs()]
    assert all(error is not None and abs(error) < 5e-3 for error in errors), errors


def test_the_range_holds_what_the_card_shows_or_the_row_says_why_not() -> None:
    assert [run.row["id"] for run in runs() if not run.inside] == [
        run.row["id"] for run in runs() if run.row["why"]
    ]
    assert sum(run.inside for run in runs()) >= 0.95 * len(runs())
    assert sorted(abs(run.total) for run in runs())[len(runs()) // 2] < 0.01
