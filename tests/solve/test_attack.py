"""No certificate of a tiny case of any sort is false."""

import pytest

from tests.marks import slow
from tests.solve.attack import attack


@pytest.mark.parametrize("first", [0, *slow(range(10, 1_000, 10))])
def test_certificates(first: int) -> None:
    """Bounds are at most the least of all placements, which "optimal" says it is."""
    counts, false = attack(first, first + 10)
    assert false == []
    assert counts
