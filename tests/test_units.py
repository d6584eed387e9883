import math
from decimal import Decimal
from itertools import permutations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from advisor.units import (
    DIMENSIONS,
    GIB,
    UnitError,
    UnknownUnitError,
    base_factor,
    dimension_of,
    format_quantity,
    gib,
    parse_in,
    parse_quantity,
    parse_size_as_sold,
)

UNITS = sorted({unit for units in DIMENSIONS.values() for unit in units})


@pytest.mark.parametrize(
    ("text", "value", "dimension"),
    [
        ("24 GiB", 24 * 2**30, "memory"),
        ("24 GB", 24e9, "memory"),
        ("80000 MB", 80e9, "memory"),
        ("1008 GB/s", 1.008e12, "bandwidth"),
        ("1,008 GB/s", 1.008e12, "bandwidth"),
        ("1_008 GB/s", 1.008e12, "bandwidth"),
        ("5 %", 5, "share"),
        ("5%", 5, "share"),
        ("-3 %", -3, "share"),
        ("+3 %", 3, "share"),
        (".5 bit", 0.5, "bits"),
        ("8B", 8e9, "parameters"),
        ("350 M", 350e6, "parameters"),
        ("1e3 tokens", 1000, "tokens"),
        ("90 tok/s", 90, "rate"),
        ("0.35 kW", 350, "power"),
        ("20 ms", 0.02, "time"),
        ("1 PFLOPS", 1000, "compute"),
        ("12", 12, "count"),
        ("  12  ", 12, "count"),
    ],
)
def test_quantities_are_read_into_the_base_unit(text: str, value: float, dimension: str) -> None:
    quantity = parse_quantity(text)
    assert math.isclose(quantity.value, value, rel_tol=1e-15)
    assert quantity.dimension == dimension


DECIMAL = [
    (one, other)
    for units in DIMENSIONS.values()
    for one, other in permutations(units, 2)
    if "iB" not in one + other
]


@given(st.decimals("-1e6", "1e6", places=4), st.sampled_from(DECIMAL))
def test_equal_quantities_are_equal_in_every_unit(number: Decimal, units: tuple[str, str]) -> None:
    one, other = (Decimal(repr(base_factor(unit))) for unit in units)
    first, second = f"{number} {units[0]}", f"{number * one / other:f} {units[1]}"
    assert parse_quantity(first).value == parse_quantity(second).value


def test_no_number_is_too_long_to_be_read() -> None:
    assert parse_quantity("700 GFLOPS").value == parse_quantity("0.7 TFLOPS").value == 0.7
    assert parse_quantity(f"0.{'3' * 6000} ms").value == pytest.approx(1 / 3000)
    assert parse_quantity(f"0.{'0' * 300}1e301 ms").value == 0.001


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "'' is not a number with a unit."),
        ("GB", "'GB' is not a number with a unit."),
        ("1,5 GB", "'1,5 GB' is not a number with a unit."),
        ("1 2 GB", "'1 2 GB' is not a number with a unit."),
        ("24 GB GB", "'24 GB GB' is not a number with a unit."),
        ("nan W", "'nan W' is not a number with a unit."),
        ("inf", "'inf' is not a number with a unit."),
        ("1e400 W", "'1e400 W' is too large a number."),
        ("1e305 TB", "'1e305 TB' is too large a number."),
        ("5 gb", "unknown unit 'gb'. Did you mean 'GB', 'GiB' or 'GB/s'?"),
    ],
)
def test_what_is_no_quantity_says_why(text: str, message: str) -> None:
    with pytest.raises(UnitError) as caught:
        parse_quantity(text)
    assert str(caught.value) == message


def test_unknown_unit_without_a_neighbour_lists_the_known_ones() -> None:
    with pytest.raises(UnknownUnitError, match="Known units: bytes, KB, MB"):
        dimension_of("parsec")


def test_every_unit_belongs_to_one_dimension() -> None:
    assert len(UNITS) == sum(len(units) for units in DIMENSIONS.values())
    for dimension, units in DIMENSIONS.items():
        assert {dimension_of(unit) for unit in units} == {dimension}


@given(st.floats(-1e6, 1e6), st.sampled_from(UNITS))
def test_what_is_printed_reads_back_within_its_digits(number: float, unit: str) -> None:
    assume(number == 0 or abs(number) >= 1e-9)
    value = number * base_factor(unit)
    quantity = parse_quantity(format_quantity(value, unit))
    assert quantity.unit == unit
    small = abs(number) < 0.1
    room = abs(number) * 0.06 if small else 0.00501 if abs(number) < 100 else 0.501
    assert abs(quantity.value / base_factor(unit) - number) <= room


@given(st.integers(0, 10**6), st.sampled_from(UNITS))
def test_whole_numbers_survive_printing(number: int, unit: str) -> None:
    text = format_quantity(number * base_factor(unit), unit)
    assert math.isclose(parse_quantity(text).value, number * base_factor(unit), rel_tol=1e-12)


@given(st.text(max_size=20))
def test_any_text_is_a_quantity_or_a_unit_error(text: str) -> None:
    try:
        quantity = parse_quantity(text)
    except UnitError:
        return
    assert math.isfinite(quantity.value)


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        (1.008e12, "GB/s", "1,008 GB/s"),
        (24 * 2**30, "GiB", "24 GiB"),
        (3.14159 * 2**30, "GiB", "3.14 GiB"),
        (450, "W", "450 W"),
        (123.46, "W", "123.5 W"),
        (999.96, "W", "1,000 W"),
        (0.04, "%", "0.04 %"),
        (0.000123, "tok/s", "0.00012 tok/s"),
        (-0.0, "W", "0 W"),
        (1e-20, "W", "0 W"),
        (2, "", "2"),
    ],
)
def test_quantities_are_printed_without_needless_digits(
    value: float, unit: str, shown: str
) -> None:
    assert format_quantity(value, unit) == shown


@pytest.mark.parametrize(
    ("count_bytes", "shown"),
    [
        (0, "0.0 GiB"),
        (24 * GIB, "24.0 GiB"),
        (5.26 * GIB, "5.3 GiB"),
        (0.05 * GIB, "0.05 GiB"),
        (-1.24 * GIB, "-1.2 GiB"),
        (-1e5, "0.00 GiB"),
    ],
)
def test_gib_has_one_decimal(count_bytes: float, shown: str) -> None:
    assert gib(count_bytes) == shown


@pytest.mark.parametrize(
    "text",
    [
        "24",
        "24GB",
        "24 GB",
        "24 GiB",
        "24g",
        "24576 MB",
        "24.0 gb",
        "24 Gig",
        "24gigs",
        "24 gigabytes",
        "24 Go",
    ],
)
def test_a_size_as_sold_is_binary(text: str) -> None:
    assert parse_size_as_sold(text) == 24 * GIB


@pytest.mark.parametrize("text", ["", "0", "0 GB", "-8", "lots", "24 GHz", "24,5"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(UnitError, match="is not a memory size"):
        parse_size_as_sold(text)


def test_a_range_of_bandwidths_is_its_middle() -> None:
    assert parse_in("225-250GB/s", "GB/s") == 237.5
    assert parse_in("80 to 100", "GB/s") == 90
    with pytest.raises(UnitError):
        parse_in("80-100GB", "GB/s")
