"""Equal domains in the order of their first ranks: nothing else changes."""

from random import Random

import numpy as np
import pytest

from placer.solve.problem.compiled import Problem
from placer.solve.rearrange.settle import in_order
from placer.testing import racks
from tests.solve.random_workloads import workload_of

ROLES = [
    {"name": "prefill", "instances": 3, "job": {"parallelism": {"tp": 2, "dp": 2}}},
    {"name": "decode", "instances": 3, "job": {"parallelism": {"tp": 2}}},
]
SENT = {"from": "prefill", "to": "decode", "pattern": "paired", "bytes": "1GB"}
EVEN = racks([2, 2, 2], gpus=4, joined=False)
UNEVEN = racks([[4, 4, 3], [4, 4, 4], [4, 4, 3]], joined=False, oversubscription=2)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("machine", [EVEN, UNEVEN], ids=["even", "uneven"])
def test_the_value_stays_and_first_ranks_ascend(machine, seed):
    """Of domains of one shape the earlier holds the earlier rank, in every tier."""
    problem = Problem.of(machine, workload_of(ROLES, [SENT]))
    seats = np.arange(machine.num_gpus)
    Random(seed).shuffle(seats)
    before = seats[: problem.job.world_size]
    after = in_order(problem, before)
    assert len(np.unique(after)) == len(before)
    value = problem.goal.value(before)
    assert problem.goal.value(after) == pytest.approx(value, rel=1e-12)
    assert np.array_equal(in_order(problem, after), after)
    node = machine.node_of_gpu[after]
    first = np.full(machine.num_nodes, len(after))
    np.minimum.at(first, node, np.arange(len(after)))
    rack = machine.domain_of_node[1]
    for own in range(int(rack.max()) + 1):
        for gpus in np.unique(machine.gpus_of_node):
            inside = first[(rack == own) & (machine.gpus_of_node == gpus)]
            assert (np.diff(inside) >= 0).all()
