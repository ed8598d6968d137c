"""Groups in equal parts beside rules: against every way to deal out nodes."""

from itertools import permutations

import pytest

from placer.base.errors import InfeasibleError
from placer.job.axes import Parallelism
from placer.job.model import Job
from placer.job.rules import Pin, Rules
from placer.placement.check import violations
from placer.testing.strategies import machine
from tests.marks import slow
from tests.solve.solving import solve


def can_be_even(racks, width, groups, spares, pins):
    """Whether groups of so many nodes can lie evenly, each way of each one tried."""
    states = {(0,) * len(racks)}
    for group in range(groups):
        after = set()
        for parts in range(1, width + 1):
            if width % parts:
                continue
            size = width // parts
            for there in permutations(range(len(racks)), parts):
                if any(
                    pins.get(group * width + k, there[k // size]) != there[k // size]
                    for k in range(width)
                ):
                    continue
                for used in states:
                    now = [n + size * (rack in there) for rack, n in enumerate(used)]
                    if all(
                        not n or n <= have - spares
                        for n, have in zip(now, racks, strict=True)
                    ):
                        after.add(tuple(now))
        states = after
    return bool(states)


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
    ([4, 4], 1, 8, 1, 1, {}),
)
LARGER = (([4, 5, 7, 5, 2], 4, 4, 4, 1, {1: 1, 14: 4}), ([4, 7, 5, 2], 2, 12, 1, 1, {}))


@pytest.mark.parametrize("case", [*FAST, *slow(LARGER)])
def test_even_parts_beside_rules(case):
    """Spares and pins leave groups in equal parts wherever some placement does."""
    topology, job = ruled(*case)
    racks, _, *asked = case
    if can_be_even(racks, *asked):
        found = solve(topology, job, objective="hop-cost")
        assert violations(found.placement, topology, job) == []
    else:
        with pytest.raises(InfeasibleError):
            solve(topology, job, objective="hop-cost")
