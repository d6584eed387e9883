"""The example files, a knowledge base and a data folder of its own for every test."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from advisor.estimator.calibration.user.benchmark import Read, Run
from advisor.estimator.calibration.user.benchmark_file import read_measurements
from advisor.estimator.calibration.user.plausibility import Checked, Given, check
from advisor.knowledge import load_knowledge

DATA = Path(__file__).resolve().parents[1] / "data" / "measurements"
KNOWLEDGE = load_knowledge()
CARD = "GeForce RTX 4080"


def example(name: str) -> bytes:
    return (DATA / name).read_bytes()


def read(content: bytes | str, name: str = "x") -> list[Read]:
    return read_measurements(content if isinstance(content, bytes) else content.encode(), name)


def runs(content: bytes | str) -> list[Run]:
    found = read(content)
    assert all(isinstance(row, Run) for row in found), found
    return [row for row in found if isinstance(row, Run)]


def checked(run: Run, **given: object) -> Checked:
    found = check(run, Given(**given), KNOWLEDGE, file="x", name="x")  # type: ignore[arg-type]  # flags
    assert isinstance(found, Checked), found
    return found


def bench(**changes: object) -> dict[str, object]:
    """One llama-bench object: the decode run of the example, with changes."""
    row: dict[str, object] = json.loads(example("llama-bench.json"))[1]
    return row | changes


def bench_json(*rows: Mapping[str, object]) -> str:
    return json.dumps(list(rows))
