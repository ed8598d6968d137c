"""Runs of ranks, told apart by whom they hold."""

import numpy as np

from placer.solve.construct.transfers.run_sorts import Run, Sorts
from placer.solve.problem.needs import Kind


def test_runs_that_begin_alike_are_of_one_sort():
    """Ranks of kinds 0 1 0 1, then 2 2 2 2: one run reaches from these to those."""
    label = np.array([0, 1, 0, 1, 2, 2, 2, 2])
    sorts = Sorts.of([Kind(label == own, label == 2, 1) for own in (0, 1)])
    assert [stretch.period for stretch in sorts.stretches] == [2, 1]
    found = set(sorts.up_to(2))
    assert (Run(0, 1, 1), Run(4, 0, 1)) in found
    assert len(found) == 2 * 2 + 2 + 1
    assert sorts.needy((Run(0, 1, 2),)) == {0, 1}
    assert sorts.partners((Run(4, 0, 2),)).tolist() == [2, 2]
