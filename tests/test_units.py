"""Quantities: what is read, what is refused and with which words."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simperf.errors import UnitError
from simperf.units import DIMENSIONS, format_quantity, parse, parse_size


@pytest.mark.parametrize(
    ("text", "dimension", "value"),
    [
        ("16 GB/s", "B/s", 16e9),
        ("100 Gbit/s", "B/s", 12.5e9),
        ("100Gbps", "B/s", 12.5e9),
        ("1 GiB", "B", 2**30),
        ("1 GB", "B", 1e9),
        ("8 bit", "B", 1),
        ("5 us", "s", 5e-6),
        ("5 µs", "s", 5e-6),
        ("5 min", "s", 300),
        ("2 d", "s", 172800),
        ("10000 rpm", "1/s", 10000 / 60),
        ("15.7 TFLOP/s", "FLOP/s", 15.7e12),
        ("4.09 GMAC", "FLOP", 8.18e9),
        ("80 %", "1", 0.8),
        (0.5, "1", 0.5),
        (0, "s", 0.0),
        ("1_000 B", "B", 1000),
        ("25 k/s", "1/s", 25e3),
        ("3.06 USD/h", "USD/h", 3.06),
        ("1,234,567.5 us", "s", 1.2345675),
    ],
)
def test_reads(text, dimension, value):
    assert parse(text, dimension) == pytest.approx(value, rel=1e-15)


@pytest.mark.parametrize(
    ("text", "dimension", "words"),
    [
        ("16 Gb/s", "B/s", "Gbit/s"),
        ("16 GB", "B/s", "unit of size"),
        ("16", "B/s", "unit is missing"),
        (16, "B/s", "unit is missing"),
        ("nan s", "s", "time is expected"),
        ("1e999 s", "s", "finite"),
        (float("nan"), "1", "finite"),
        ("fast", "B/s", "bandwidth is expected"),
        (True, "s", "time is expected"),
        ("5 Gilbert", "B/s", "unknown unit"),
        ("3 mmin", "s", "unknown unit"),
        ("3 hours", "s", "unknown unit 'hours'; write '24 h'"),
        ("3", "USD", "write an amount with its currency, such as '10 USD'"),
        ("5 Gb/s", "s", "looks like a unit of bandwidth"),
        ("1,5 us", "s", "decimals have a point"),
        ("10,00 us", "s", "between thousands"),
    ],
)
def test_refuses_with_a_reason(text, dimension, words):
    with pytest.raises(UnitError, match=words):
        parse(text, dimension)


def test_sizes_as_nccl_tests_writes_them():
    assert [parse_size(s) for s in ("8", "1K", "100M", "1G")] == [8, 1024, 100 * 2**20, 2**30]
    with pytest.raises(UnitError, match="whole number"):
        parse_size("1.3 B")


@pytest.mark.parametrize(
    ("value", "dimension", "text"),
    [
        (1.718e15, "FLOP/s", "1.718 PFLOP/s"),
        (2.5e18, "B", "2.500 EB"),
        (2.5e21, "B/s", "2.500e21 B/s"),
        (1e-15, "s", "1.000 fs"),
        (0.25, "B", "0.25 B"),
        (999.96, "s", "16.67 min"),
        (7200.0, "s", "2 h"),
        (-5e-3, "s", "-5.000 ms"),
        (1e12, "USD", "1e+12 USD"),
        (math.inf, "B/s", "inf B/s"),
    ],
)
def test_writes_with_the_prefix_that_people_use(value, dimension, text):
    assert format_quantity(value, dimension) == text


@given(st.floats(1e-9, 1e20), st.sampled_from(["s", "B", "B/s", "FLOP/s", "1"]))
def test_what_is_written_is_read_back_to_four_digits(value, dimension):
    text = format_quantity(value, dimension)
    assert math.isclose(parse(text, dimension), value, rel_tol=6e-4)


def test_the_si_unit_of_every_dimension_has_factor_one():
    for dimension, table in DIMENSIONS.items():
        assert table["" if dimension == "1" else dimension] == 1.0
