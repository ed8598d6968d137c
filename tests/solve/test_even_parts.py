"""Groups in equal parts beside rules, on more nodes than an attack tries all of."""

import pytest

from placer.base.errors import InfeasibleError
from placer.job.axes import Parallelism
from placer.job.model import Job
from placer.job.rules import Pin, Rules
from placer.placement.check import violations
from placer.testing.strategies import machine
from tests.marks import slow
from tests.solve.solving import solve


def ruled(racks, gpus, width, groups, spares, pins):
    """A machine of racks of nodes, and a job of groups of nodes with equal parts.

    ``pins``: rack of a node of ranks, whose first rank is pinned to its next node.
    """
    topology = machine([("b0", [gpus] * count) for count in racks])
    row = topology.domain_of_node[1].tolist()
    taken = []
    pin = []
    for node, rack in pins.items():
        taken.append(next(n for n, r in enumerate(row) if r == rack and n not in taken))
        pin.append(Pin((node * gpus,), (topology.node_names[taken[-1]],)))
    rules = Rules(pin=tuple(pin), spares={"rack": spares} if spares else {})
    job = Job(
        "even",
        Parallelism(ep=width * gpus, dp=width * gpus * groups),
        weights={"ep": 8, "edp": 1},
        require={"ep/even": "rack"},
        rules=rules,
        launcher="free" if gpus == 1 else "node-contiguous",
    )
    return topology, job


FAST = (
    ([6, 5, 3, 7, 5], 1, 8, 2, 0, {8: 2}),
    ([7, 1, 4, 2], 4, 4, 3, 0, {1: 1}),
    ([6, 3, 5, 7], 1, 4, 3, 2, {6: 2, 5: 0, 7: 3}),
)
LARGER = (([4, 5, 7, 5, 2], 4, 4, 4, 1, {1: 1, 14: 4}),)


@pytest.mark.parametrize("case", [*FAST, *slow(LARGER)])
def test_spares_and_pins_leave_equal_parts_where_there_are_some(case):
    topology, job = ruled(*case)
    found = solve(topology, job, objective="hop-cost")
    assert violations(found.placement, topology, job) == []


# Racks have 3 + 3 nodes for 8; 3, 6, 4 and 1 for 12, in no parts of 6, 4, 3 or 2.
@pytest.mark.parametrize(
    "case", [([4, 4], 1, 8, 1, 1, {}), *slow([([4, 7, 5, 2], 2, 12, 1, 1, {})])]
)
def test_where_spares_leave_no_equal_parts_that_is_said(case):
    with pytest.raises(InfeasibleError):
        solve(*ruled(*case), objective="hop-cost")
