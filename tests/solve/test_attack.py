"""No certificate of a tiny case of any sort is false."""

import pytest

from tests.marks import slow
from tests.solve.attack import attack


@pytest.mark.slow
@pytest.mark.parametrize("first", [0, *slow(range(10, 90, 10))])
def test_certificates(first: int) -> None:
    """Bounds are at most the least of all placements, which "optimal" says it is."""
    counts, false = attack(first, first + 10)
    assert false == []
    assert counts


def test_pins_on_islands() -> None:
    """Every placement was tried, but a pin was brought home with its islands turned."""
    counts, false = attack(1_627, 1_628)
    assert false == []
    assert counts["not the least"] == 0


def test_units_larger_than_all_rooms_together() -> None:
    """Whole tp groups leave GPUs of each node free: their sum is no room for more."""
    assert attack(270, 271)[1] == []


def test_sets_numbered_with_gaps() -> None:
    """Flows between sets some of whose numbers no set has: those have no ranks."""
    assert attack(500_568, 500_569)[1] == []


def test_pins_of_a_run_that_a_host_cannot_hold() -> None:
    """Two islands of a host held ranks 0 and 3: no run, and no other seat was tried."""
    counts, false = attack(700_018, 700_019)
    assert false == []
    assert counts["status optimal"] + counts["status feasible"] == 1


def test_groups_of_ranks_alone() -> None:
    """A group of one rank sends nothing; a walk that asked who waits for it crashed."""
    assert attack(2_000_036, 2_000_037)[1] == []
