"""JSON is written by msgspec and has the bytes that Python's own encoder gives."""

from __future__ import annotations

import json
import random
import re
import struct
from typing import get_args, get_type_hints

import pytest
from msgspec import Struct, to_builtins

from advisor.advice.document import Advice
from advisor.bulk.reverse.documents import ReverseDoc
from advisor.report import render_json
from advisor.report.command_view import CommandAnswer
from advisor.report.diagnosis import Diagnosis
from advisor.units import json_line
from tests.report.catalogue import sampled

KEY = re.compile(r"[a-z0-9_.]{2}$")


def plain(doc: object) -> str:
    return (
        json.dumps(to_builtins(doc), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        + "\n"
    )


def line(**fields: object) -> str:
    return json_line(fields).decode()


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
    text = "".join(c for c in map(chr, range(0x3000)) if c < " " or c.isprintable())
    fields = {"text": text, "n": 2**63, "big": 2**70, "none": None}
    assert line(**fields) == plain(fields)


def test_what_a_terminal_obeys_is_escaped_and_reads_back_as_it_was() -> None:
    text = "".join(map(chr, range(0x3000)))
    written = line(text=text)
    assert written.removesuffix("\n").isprintable()
    assert json.loads(written)["text"] == text


def test_documents_have_the_same_bytes() -> None:
    for doc, _ in sampled():
        assert render_json(doc, indent=None) == plain(doc)


def test_documents_on_many_lines_have_the_same_bytes() -> None:
    for doc, _ in sampled():
        values = to_builtins(doc)
        assert render_json(doc) == json.dumps(values, ensure_ascii=False, indent=2) + "\n"
    odd = {"none": [], "empty": {}, "nested": [[], {}], "text": 'a "b"\\\n{[,:]} é', "share": 1e-7}
    assert render_json(odd) == json.dumps(odd, ensure_ascii=False, indent=2) + "\n"
    del odd["share"]
    assert render_json(odd) == json.dumps(odd, ensure_ascii=False, indent=2) + "\n"
    with pytest.raises(ValueError, match="not JSON compliant"):
        render_json({"score": float("nan")})


@pytest.mark.parametrize("document", [Advice, ReverseDoc, CommandAnswer, Diagnosis])
def test_every_float_of_the_contract_stands_where_it_is_looked_for(document: type[Struct]) -> None:
    """Behind a key that ends in two small letters, digits, ``_`` or ``.``, never in a list."""
    found = 0
    for record in records(document):
        for key, kind in get_type_hints(record).items():
            told = str(kind)
            assert not re.search(r"Sequence\[[^]]*float", told), key
            if "float" in told:
                found += 1
                assert KEY.search(key), key
    assert found > (20 if document is Advice else 0)


def records(kind: object) -> set[type[Struct]]:
    """The record types that a type is made of."""
    inner = [one for part in get_args(kind) for one in records(part)]
    if isinstance(kind, type) and issubclass(kind, Struct):
        inner += [one for part in get_type_hints(kind).values() for one in records(part)]
        return {kind, *inner}
    return set(inner)
