"""The grid of a sweep."""

import pytest

from placer.base.errors import InputError
from placer.sweep.grid import (
    Axis,
    grid,
    parse_oversubscriptions,
    parse_rates,
    parse_sizes,
)
from tests.texts import table


@pytest.mark.parametrize(*table("sweep/grid.yaml", "sizes"))
def test_sizes(text, values):
    """Lists and ranges keep their order; both ends of a range count."""
    assert parse_sizes(text) == tuple(values)


@pytest.mark.parametrize(*table("sweep/grid.yaml", "bad_sizes"))
def test_bad_sizes(text, what):
    """A list that cannot be used says which part of it."""
    with pytest.raises(ValueError, match=what):
        parse_sizes(text)


def test_rates_and_ratios():
    """Bandwidths carry units, oversubscriptions may name their tier."""
    with pytest.raises(ValueError, match="twice"):
        parse_rates("50GB/s,400Gb/s")
    assert parse_rates("50GB/s,800Gb/s") == (50e9, 100e9)
    assert parse_oversubscriptions("1,2.5") == ("", (1.0, 2.5))
    assert parse_oversubscriptions("block=4") == ("block", (4.0,))


@pytest.mark.parametrize("text", ["=1", "block=", "block=0", "a=b=2x", "1,x"])
def test_bad_ratios(text):
    """A ratio is a number above 0, and a tier has a name."""
    with pytest.raises(ValueError, match=r"\S"):
        parse_oversubscriptions(text)


def test_bad_grids():
    """No axis, the same axis twice and too many points are refused."""
    long = tuple(range(1, 202))
    for axes in (
        [],
        [Axis("dp", (1,)), Axis("dp", (2,))],
        [Axis("dp", long), Axis("tp", long)],
    ):
        with pytest.raises(InputError):
            grid(axes)
