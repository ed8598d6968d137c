"""Sets of ranks in leaves, in runs of their nodes: by hand, and every way tried."""

from __future__ import annotations

import random
from functools import cache

import numpy as np
import pytest

from placer.solve.bounds.groups.leaf_runs import LeafRuns
from placer.solve.bounds.groups.run_program import consecutive
from placer.solve.problem.colocation import join
from tests.marks import slow


def test_runs_of_eight_leave_the_nodes_of_seven_idle() -> None:
    """Nine nodes of 8 and two of 7 have room for five sets of 16, and hold four."""
    leaf = tuple([7, 7] + [8] * 9)
    serves = np.zeros((80, 8), dtype=bool)
    serves[::8, 7] = True
    assert not LeafRuns(16, ((leaf, 1),)).may_hold(serves)
    assert LeafRuns(16, ((leaf, 1),)).may_hold(serves[:64])
    assert LeafRuns(16, (((*leaf, 8), 1),)).may_hold(serves)


def test_sets_that_cases_join_follow_each_other() -> None:
    """Pairs joined two by two are runs of four, whatever numbers their sets have."""
    pairs = np.arange(8) // 2
    joined = join(pairs, np.array([[0, 2], [4, 6]]))
    assert consecutive(joined) == 4


@pytest.mark.parametrize("seed", [*range(30), *slow(range(30, 200))])
def test_what_is_refuted_no_leaves_hold(seed: int) -> None:
    """Random sets that serve in random runs, in every way that leaves may hold them."""
    rng = random.Random(seed)
    size, sets = rng.randint(2, 4), rng.randint(1, 4)
    leaves = [
        tuple(sorted(rng.randint(1, 4) for _ in range(rng.randint(1, 3))))
        for _ in range(rng.randint(1, 3))
    ]
    longest = max(map(max, leaves))
    share = rng.choice((0.3, 0.5, 0.8))
    serves = np.array(
        [[rng.random() < share for _ in range(longest)] for _ in range(size * sets)]
    )
    told = LeafRuns(size, tuple((leaf, 1) for leaf in leaves)).may_hold(serves)
    assert told or not any_leaves_hold(leaves, size, sets, serves)


def any_leaves_hold(
    leaves: list[tuple[int, ...]], size: int, sets: int, serves: np.ndarray
) -> bool:
    """Whether the sets fit some leaves, each on the nodes of its leaf."""

    def fits(nodes: tuple[int, ...], mine: tuple[int, ...]) -> bool:
        """Whether nodes hold these sets in runs that serve, one after the other."""
        ranks = [rank for s in mine for rank in range(s * size, (s + 1) * size)]

        @cache
        def rest(at: int, left: tuple[int, ...]) -> bool:
            if at == len(ranks):
                return True
            for place, node in enumerate(left):
                others = left[:place] + left[place + 1 :]
                for length in range(1, min(node, len(ranks) - at) + 1):
                    run = ranks[at : at + length]
                    is_run = run[-1] - run[0] == length - 1
                    if (
                        is_run
                        and serves[run[0], length - 1]
                        and rest(at + length, others)
                    ):
                        return True
            return False

        return rest(0, nodes)

    def share(one: int, homes: tuple[int, ...]) -> bool:
        """Whether the other sets fit, too, when the first lie in these leaves."""
        if one == sets:
            mine = [
                tuple(s for s in range(sets) if homes[s] == d)
                for d in range(len(leaves))
            ]
            return all(fits(leaf, own) for leaf, own in zip(leaves, mine, strict=True))
        return any(share(one + 1, (*homes, d)) for d in range(len(leaves)))

    return share(0, ())
