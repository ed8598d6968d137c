"""Quantities with units, and how people get to read them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placer.base.units import (
    counted,
    format_bandwidth,
    format_bytes,
    format_seconds,
    parse_bandwidth,
    parse_bytes,
    parse_count,
    parse_number,
    parse_time,
)


@pytest.mark.parametrize(
    ("parse", "text", "value"),
    [
        (parse_bandwidth, "100GB/s", 100e9),
        (parse_bandwidth, "400Gb/s", 50e9),
        (parse_bandwidth, "400Gbps", 50e9),
        (parse_bandwidth, "1GiB/s", 2.0**30),
        (parse_bandwidth, "8b/s", 1.0),
        (parse_time, "5\N{MICRO SIGN}s", 5e-6),
        (parse_time, "120ms", 0.12),
        (parse_time, " 1.2 s ", 1.2),
        (parse_time, "2min", 120.0),
        (parse_time, "0", 0.0),
        (parse_bytes, "16MiB", 16 * 2**20),
        (parse_bytes, "1_000", 1000.0),
        (parse_bytes, ".5kB", 500.0),
        (parse_number, "2.5", 2.5),
        (parse_count, "84M", 84e6),
        (parse_count, "1.5B", 1.5e9),
    ],
)
def test_units_are_exact(parse, text, value):
    """A quantity is the very float that its SI value is."""
    assert parse(text) == value


@pytest.mark.parametrize(
    ("parse", "text", "fragment"),
    [
        (parse_bandwidth, "100GBs", 'unknown unit "GBs"'),
        (parse_bandwidth, "100", None),
        (parse_bandwidth, "0", "must be above 0"),
        (parse_bandwidth, "1e19", "too large"),
        (parse_bandwidth, "fast", "is not a bandwidth; write for example 100GB/s"),
        (parse_time, "5 GB/s", 'unknown unit "GB/s"'),
        (parse_time, "nan", "not a finite time"),
        (parse_time, "-5us", "negative"),
        (parse_time, "12:30:45", "unknown unit"),
        (parse_time, "", "is not a time"),
        (parse_time, "9" * 5000, "is not a time"),
        (parse_bytes, "1e400", "too large"),
        (parse_bytes, "010", "leading zeros"),
        (parse_bytes, "0x10", 'unknown unit "x10"'),
    ],
)
def test_wrong_quantities_say_why(parse, text, fragment):
    """A text that is no quantity is refused with its reason; a bare number is SI."""
    if fragment is None:
        assert parse(text) == float(text)
        return
    with pytest.raises(ValueError, match=r".") as caught:
        parse(text)
    assert fragment in str(caught.value)


@given(st.text(max_size=30))
def test_any_text_gives_a_number_or_a_value_error(text):
    """No text makes a parser fail in another way, or give a number out of range."""
    for parse in (parse_bandwidth, parse_time, parse_bytes, parse_number):
        try:
            value = parse(text)
        except ValueError:
            continue
        assert 0.0 <= value <= 1e18


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (1.2712, "1.271 s"),
        (0.0201, "20.1 ms"),
        (3e-9, "3 ns"),
        (1e-17, "0 s"),
        (0.999999, "1 s"),
        (123456.0, "123456 s"),
        (-0.002, "-2 ms"),
    ],
)
def test_times_for_people(seconds, text):
    """Four digits and the unit that fits."""
    assert format_seconds(seconds) == text


def test_sizes_and_bandwidths_for_people():
    """Decimal units, as the field counts them."""
    assert format_bytes(33_554_432) == "33.55 MB"
    assert format_bytes(12) == "12 B"
    assert format_bytes(999_999) == "1 MB"
    assert format_bandwidth(100e9) == "100 GB/s"


def test_counts_for_people():
    """What is counted is one, or several by the rules of English; names stay names."""
    one = ["tray", "leaf", "switch", "class", "bus", "city", "blocks-2"]
    several = ["trays", "leaves", "switches", "classes", "buses", "cities", "blocks-2"]
    assert [counted(1, noun) for noun in one] == [f"1 {noun}" for noun in one]
    found = [counted(2048, noun) for noun in (*one, "pods")]
    assert found == [f"2,048 {words}" for words in (*several, "pods")]
