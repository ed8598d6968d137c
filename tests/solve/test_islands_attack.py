"""What becomes of plans on hosts with islands, against all placements."""

import pytest

from tests.marks import slow
from tests.solve.islands_attack import attack


@pytest.mark.parametrize("first", [0, *slow(range(5, 200, 5))])
def test_the_life_of_a_plan(first: int) -> None:
    """Nothing crashes, no bound is false, rules hold and moves are counted right."""
    counts, false = attack(first, first + 5)
    assert false == []
    assert counts["placed"]
