"""Nodes of runs of ranks: found wherever there are any, by trying all of them."""

from __future__ import annotations

import random
from functools import cache

import numpy as np
import numpy.typing as npt

from placer.solve.tree.in_runs import fill_in_runs

IntArray = npt.NDArray[np.int64]


def test_by_hand() -> None:
    # A domain with nodes of 3, 3, 3 and 4 holds 9 + 4 ranks, but not 8 + 5.
    domain, capacity = np.zeros(5, int), np.array([3, 3, 3, 4, 1])
    domain[-1] = 1
    found = fill_in_runs(domain, capacity, np.repeat([0, 1, 0], [9, 1, 4]))
    assert found is not None
    assert np.bincount(found).tolist() == [3, 3, 3, 4, 1]
    assert fill_in_runs(domain, capacity, np.repeat([0, 1, 0], [8, 1, 5])) is None


def test_found_where_there_are_any() -> None:
    for seed in range(400):
        rng = random.Random(seed)
        domains, nodes = rng.randint(1, 2), rng.randint(1, 6)
        domain = np.array([rng.randrange(domains) for _ in range(nodes)])
        capacity = np.array([rng.randint(0, 4) for _ in range(nodes)])
        ranks = rng.randint(1, max(1, int(capacity.sum())))
        wanted = np.repeat(
            [rng.randrange(domains) for _ in range(ranks)],
            [rng.randint(1, 5) for _ in range(ranks)],
        )[:ranks]
        found = fill_in_runs(domain, capacity, wanted)
        assert (found is not None) == _is_possible(domain, capacity, wanted)
        if found is not None:
            assert (domain[found] == wanted).all()
            assert (np.bincount(found, minlength=nodes) <= capacity).all()
            assert 1 + np.count_nonzero(np.diff(found)) == len(np.unique(found))


def _is_possible(domain: IntArray, capacity: IntArray, wanted: IntArray) -> bool:
    @cache
    def rest(begin: int, used: frozenset[int]) -> bool:
        if begin == len(wanted):
            return True
        return any(
            rest(begin + length, used | {node})
            for node in set(range(len(domain))) - used
            for length in range(1, capacity[node] + 1)
            if begin + length <= len(wanted)
            and (wanted[begin : begin + length] == domain[node]).all()
        )

    return rest(0, frozenset())
