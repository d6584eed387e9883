"""llama.cpp's own allocation reports, row by row (commit 0c1e57098)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import islice

import pytest

from advisor.estimator import estimate_memory
from advisor.scenario.figures import Memory
from tests.estimate.builders import KNOWLEDGE, kv_cache_bytes, measured, rows

EXACT = (
    ("weights_bytes", "dev_model"),
    ("host_weights_bytes", "host_model"),
    ("kv_cache_bytes", "dev_kv"),
    ("host_kv_cache_bytes", "host_kv"),
)
SAMPLE_STEP = 29


def sized(found: Iterable[dict[str, str]]) -> list[tuple[dict[str, str], Memory]]:
    return [(row, estimate_memory(measured(row), KNOWLEDGE)) for row in found]


def mismatches(found: Iterable[tuple[Mapping[str, str], Memory]]) -> list[tuple[str, str, str]]:
    return [
        (row["name"], row["ngl"], column)
        for row, memory in found
        for name, column in EXACT
        if getattr(memory, name) != int(row[column])
    ]


def kept_on_card(row: Mapping[str, str]) -> bool:
    return row["offload_kqv"] == "1"


def test_a_sample_of_rows_is_exact() -> None:
    sample = islice(filter(kept_on_card, rows("llamacpp_memory")), 0, None, SAMPLE_STEP)
    assert mismatches(sized(sample)) == []


@pytest.mark.slow
def test_weights_and_cache_of_every_row_are_exact() -> None:
    found = sized(filter(kept_on_card, rows("llamacpp_memory")))
    assert (len(found), mismatches(found)) == (13_191, [])


@pytest.mark.slow
def test_a_cache_kept_in_ram_has_the_same_size() -> None:
    found = [row for row in rows("llamacpp_memory") if not kept_on_card(row)]
    assert len(found) == 396
    assert all(kv_cache_bytes(measured(row)) == int(row["host_kv"]) for row in found)


def regime(row: Mapping[str, str]) -> str:
    flash = "flash" if row["flash_attn"] == "1" else "plain"
    logits = "all logits" if row["n_outputs_max"] == "0" else "server"
    wide = ", f32" if "f32" in {row["type_k"], row["type_v"]} else ""
    return f"{flash}, {logits}{wide}"


def whole_on_device(row: Mapping[str, str]) -> bool:
    return (
        row["device"] == "rpc"
        and row["ngl"] == "all"
        and kept_on_card(row)
        and row["arch"] != "mamba2"
    )


BARS = {
    "flash, server": (1_760, 1.0, 0.0001, 0.0001),
    "flash, all logits": (2_788, 0.93, 0.20, 0.10),
    "flash, all logits, f32": (192, 0.95, 0.56, 0.10),
    "plain, all logits": (842, 0.98, 0.20, 0.10),
    "plain, server": (576, 0.98, 0.20, 0.10),
}
"""Regime -> rows at most, share within 10 %, furthest below and above (relative)."""


@pytest.mark.slow
def test_compute_buffers_keep_the_bar_of_their_regime() -> None:
    errors: dict[str, list[float]] = defaultdict(list)
    for row, memory in sized(filter(whole_on_device, rows("llamacpp_memory"))):
        truth = int(row["dev_compute"])
        errors[regime(row)].append((memory.compute_buffer_bytes - truth) / truth)
    assert set(errors) == set(BARS)
    for name, (count, share, below, above) in BARS.items():
        found = errors[name]
        assert 0.9 * count <= len(found) <= count
        assert sum(abs(error) <= 0.10 for error in found) / len(found) >= share, name
        assert min(found) >= -below, name
        assert max(found) <= above, name


@pytest.mark.slow
def test_the_server_regime_is_32_bytes_short_of_the_truth() -> None:
    found = filter(whole_on_device, rows("llamacpp_memory"))
    server = [row for row in found if regime(row) == "flash, server"]
    short = {int(row["dev_compute"]) - memory.compute_buffer_bytes for row, memory in sized(server)}
    assert short <= {0, 16, 32}


@pytest.mark.slow
def test_the_upper_end_covers_nine_rows_in_ten() -> None:
    found = sized(filter(whole_on_device, rows("llamacpp_memory")))
    covered = [
        memory.high_bytes - memory.weights_bytes - memory.kv_cache_bytes >= int(row["dev_compute"])
        for row, memory in found
    ]
    assert sum(covered) / len(covered) > 0.93


@pytest.mark.slow
def test_partial_offload_buffers_are_close() -> None:
    partial = [
        row
        for row in rows("llamacpp_memory")
        if row["ngl"] not in {"all", "0", "1"} and kept_on_card(row) and row["arch"] != "mamba2"
    ]
    close = [
        abs(memory.compute_buffer_bytes / int(row["dev_compute"]) - 1) <= 0.10
        and abs(memory.host_compute_bytes / int(row["host_compute"]) - 1) <= 0.10
        for row, memory in sized(partial)
    ]
    assert sum(close) / len(close) > 0.90


@pytest.mark.slow
def test_mamba2_buffers_are_close() -> None:
    found = [
        row
        for row in rows("llamacpp_memory")
        if row["arch"] == "mamba2"
        and row["device"] == "rpc"
        and row["ngl"] == "all"
        and kept_on_card(row)
    ]
    errors = [
        memory.compute_buffer_bytes / int(row["dev_compute"]) - 1 for row, memory in sized(found)
    ]
    assert min(errors) > -0.12
    assert max(errors) < 0.05
