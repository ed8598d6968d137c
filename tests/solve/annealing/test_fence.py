"""Rules as the annealer keeps them."""

import numpy as np

import placer
from placer.job.axes import Parallelism
from placer.job.model import Job
from placer.job.rules import Pin, Rules
from placer.solve.annealing.fence import pins
from placer.solve.problem.compiled import Problem


def test_units_of_the_same_homes_share_a_pin():
    """A thousand ranks pinned to a rack need one row of the table of places.

    A row says how many tiers each place is away, summed over the ranks of a unit.
    """
    rules = Rules(
        pin=(
            Pin((0, 2, 4), ("r1-n1",)),
            Pin((1, 3), ("r2-n1", "r2-n2")),
            Pin((7,), ("r2-n2", "r2-n1")),
        )
    )
    axes = Parallelism(tp=2, dp=4)
    job = Job("j", axes, rules=rules, weights={"tp": 9, "dp": 1}, sha256="j")
    problem = Problem.of(placer.read_topology("rack:2 node:2 gpu:2"), job, "hop-cost")
    units, nodes = np.arange(8).reshape(4, 2), np.repeat(np.arange(4), 2).reshape(4, 2)
    pin, away = pins(problem.limits, units, nodes)
    # Units of ranks (0, 1) and (2, 3) share one; of the others one rank is pinned.
    assert pin.tolist() == [0, 0, 1, 2]
    here, near, apart = 0, 1, 2  # tiers
    first = np.array([here, near, apart, apart])
    second = np.array([apart, apart, here, here])
    assert away.tolist() == [[*(first + second)], [*first], [*second]]
