"""Anything may be in a file: it is taken or refused with a message, never a crash."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.errors import UserError
from advisor.estimator.calibration.user import parse
from advisor.estimator.calibration.user.benchmark import Read, Run, Skipped
from advisor.estimator.calibration.user.benchmark_file import File, read_measurements, take
from advisor.estimator.calibration.user.plausibility import Given
from tests.measurements.examples import DATA, KNOWLEDGE, example

EXAMPLES = sorted(p.name for p in DATA.iterdir() if p.suffix != ".md" or "bench" in p.name)
ODD: tuple[object, ...] = (
    None, True, [], {}, [[1]], "", " ", "nan", "1e999", -1, 0, 10**400, 1e308, -0.0, "\u202e",
    "x" * 5000, {"a": {"b": []}}, "0x10", "1,5",
)  # fmt: skip


def taken(content: bytes) -> None:
    rows: list[Read] = []
    with suppress(UserError):
        rows = read_measurements(content, "x")
    assert all(isinstance(row, Run | Skipped | UserError) for row in rows)
    found = take([File("x", content)], Given(gpu="RTX 3090"), KNOWLEDGE)
    for m in found.measurements:
        assert 0 < m.tok_s < float("inf")
    assert all(str(error).startswith("x:") for error in found.problems)


def stored(content: bytes) -> None:
    with suppress(UserError):
        parse(content, "x")


@pytest.mark.parametrize("name", EXAMPLES)
def test_truncations(name: str) -> None:
    content = example(name)
    chance = random.Random(1)
    for _ in range(40):
        taken(content[: chance.randrange(len(content))])


@pytest.mark.parametrize("name", EXAMPLES)
def test_damaged_bytes(name: str) -> None:
    chance = random.Random(2)
    for _ in range(40):
        content = bytearray(example(name))
        for _ in range(chance.randrange(1, 8)):
            content[chance.randrange(len(content))] = chance.randrange(256)
        taken(bytes(content))


@pytest.mark.parametrize("name", [n for n in EXAMPLES if n.endswith((".json", ".jsonl"))])
def test_odd_values_in_every_field(name: str) -> None:
    text = example(name).decode()
    first = json.loads(text.splitlines()[0] if name.endswith("l") else text)
    row = first[0] if isinstance(first, list) else first
    for key in row:
        for value in ODD:
            taken(json.dumps(row | {key: value}).encode())


@pytest.mark.parametrize("parse_it", [taken, stored])
@settings(max_examples=50)
@given(data=st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_anything_at_all(parse_it: Callable[[bytes], None], data: bytes) -> None:
    parse_it(data)


@settings(max_examples=50)
@given(text=st.text(alphabet='gpu,modeltk_s1.0"|;\n{}[]:- @+±', max_size=120))
def test_what_looks_like_a_table(text: str) -> None:
    taken(text.encode())
    taken(f"gpu,model,precision,tok_s\n{text}".encode())
    taken(f"| test | t/s |\n{text}".encode())
    taken(f'[{{"avg_ts": {text}'.encode())


def test_deep_nesting_and_endless_numbers() -> None:
    taken(b'{"a":' * 100_000)
    taken(b"[" * 100_000)
    taken(b'{"avg_ts": ' + b"9" * 100_000 + b"}")
    taken(b"gpu,tok_s\n" + b"x" * 200_000 + b",1\n")
