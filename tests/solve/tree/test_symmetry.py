"""Exchanges of equal domains, against all permutations of tiny machines."""

import numpy as np
import pytest

from placer.solve.tree.symmetry import Symmetry
from tests.allocate.machines import racks


@pytest.mark.parametrize(("oversubscription", "alike"), [(1, True), (2, False)])
def test_domains_with_unequal_uplinks_are_not_alike(oversubscription, alike):
    """A rack that lost half its nodes keeps its uplink: it is no small rack."""
    whole = racks({"a": 8, "b": 4}, joined=False, oversubscription=oversubscription)
    left = whole.select(np.array([0, 1, 2, 3, 8, 9, 10, 11]))
    first, second = Symmetry(left).shape[1]
    assert (first == second) == alike
