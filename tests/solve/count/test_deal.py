"""Counts dealt out to named things."""

from operator import itemgetter

from placer.solve.count.deal import circuit


def test_a_circuit_goes_through_all_runs_that_it_reaches() -> None:
    """Places 0 to 2 and back are one circuit, that of place 3 alone is left out."""
    ahead = {0: [(0, 1), (0, 2)], 1: [(0, 3)], 2: [(1, 2)], 3: [(0, 4)]}
    found = circuit(ahead, itemgetter(1), 4)
    assert sorted(found) == [(0, (0, 1)), (0, (0, 2)), (1, (0, 3)), (2, (1, 2))]
    place = 0
    for begin, (_, length) in found:
        assert begin == place
        place = (begin + length) % 4
    assert place == 0
