"""Traffic between ranks: who needs partners near, and whether domains have room."""

import numpy as np
import pytest

from placer.solve.bounds.certificate import lower_bound
from placer.solve.problem.compiled import Problem
from placer.topology.model import Tier
from tests.solve.construct.test_tiles import grid
from tests.solve.random_cases import machine_of
from tests.solve.test_communicators import job_of

FAST, SLOW = Tier("node", 400e9, 0.0, True), Tier("all", 50e9, 0.0, False)


@pytest.mark.parametrize(
    ("shape", "room", "out"), [((6, 6), 4, 2), ((6, 8), 8, 2), ((4, 4, 4), 8, 3)]
)
def test_a_stencil_has_a_corner_in_every_node(shape, room, out):
    """Some rank of a square has two neighbours elsewhere, of a cube three."""
    edges = grid(*shape).edges
    senders, receivers = np.concatenate((edges, edges[:, ::-1])).T.tolist()
    sent = {"from": senders, "to": receivers, "bytes": [1e7] * len(senders)}
    ranks = int(np.prod(shape))
    nodes = -(-ranks // room)
    machine = machine_of([room] * nodes, [[0] * nodes], [FAST, SLOW])
    bound = lower_bound(Problem.of(machine, job_of(ranks, traffic=sent)), 1)
    assert bound.value == pytest.approx(out * 1e7 / 50e9)
