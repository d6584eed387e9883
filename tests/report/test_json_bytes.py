"""JSON is written by msgspec and has the bytes that Python's own encoder gives."""

from __future__ import annotations

import json
import random
import re
import struct
from typing import cast

import pytest

from advisor.report import contract, contract_picture, contract_provenance
from advisor.report.contract import Document
from advisor.report.json_view import json_line, render_json
from tests.report.catalogue import sampled

KEY = re.compile(r"[a-z0-9_.]{2}$")


def plain(doc: object) -> str:
    return json.dumps(doc, ensure_ascii=False, allow_nan=False, separators=(",", ":")) + "\n"


def line(**fields: object) -> str:
    return json_line(cast("Document", fields)).decode()


@pytest.mark.parametrize(
    "number",
    [
        0.0,
        -0.0,
        1e-4,
        9.99e-5,
        1e-5,
        -3e-7,
        5e-324,
        1e15,
        9.999999999999998e15,
        1e16,
        1e22,
        -1.7e308,
    ],
)
def test_floats_are_written_as_python_writes_them(number: float) -> None:
    assert line(estimate=number) == plain({"estimate": number})
    assert line(rows=[{"low": number}]) == plain({"rows": [{"low": number}]})


def test_any_float_is_written_as_python_writes_it() -> None:
    rng = random.Random(3)
    bits = [rng.getrandbits(64).to_bytes(8, "big") for _ in range(3000)]
    numbers = [number for raw in bits if (number := struct.unpack(">d", raw)[0]) - number == 0]
    numbers += [rng.uniform(-1, 1) * 10.0 ** rng.randint(-8, 19) for _ in range(3000)]
    for number in numbers:
        assert line(estimate=number) == plain({"estimate": number})


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_what_is_no_number_is_an_error_and_never_null(number: float) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        line(rows=[{"score": number}])


def test_texts_and_whole_numbers_are_written_as_python_writes_them() -> None:
    fields = {"text": "".join(map(chr, range(0x3000))), "n": 2**63, "big": 2**70, "none": None}
    assert line(**fields) == plain(fields)


def test_documents_have_the_same_bytes() -> None:
    for doc, _ in sampled():
        assert render_json(doc, indent=None) == plain(doc)


def test_every_float_of_the_contract_stands_where_it_is_looked_for() -> None:
    """Behind a key that ends in two small letters, digits, ``_`` or ``.``, never in a list."""
    found = 0
    for module in (contract, contract_picture, contract_provenance):
        for record in vars(module).values():
            for key, kind in getattr(record, "__annotations__", {}).items():
                told = str(getattr(kind, "__forward_arg__", kind))
                assert not re.search(r"list\[[^]]*float", told), key
                if "float" in told:
                    found += 1
                    assert KEY.search(key), key
    assert found > 20
