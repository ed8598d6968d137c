"""Domains are filled with tiles of the graph of what ranks send each other."""

import numpy as np
import pytest

import placer
from benchmarks.traffic_graphs import geometric, ring_of_rings
from placer.documents import document_of
from placer.solve.construct.traffic.tiled import tiled
from placer.solve.problem.compiled import Problem
from placer.solve.problem.flows import Flows, bundled
from placer.solve.run.budget import Budget
from placer.solve.run.incumbent import Incumbent
from placer.topology.model import Topology
from placer.topology.read import decode_topology
from tests.solve.test_communicators import job_of


def grid(*shape: int) -> Flows:
    """Every cell beside its neighbours, in cells numbered at random."""
    rng = np.random.default_rng(0)
    cells = rng.permutation(int(np.prod(shape))).reshape(shape)
    pairs = [
        np.stack(
            (np.delete(cells, -1, axis).ravel(), np.delete(cells, 0, axis).ravel())
        )
        for axis in range(len(shape))
    ]
    edges = np.concatenate(pairs, axis=1).T
    return bundled(edges, np.ones(len(edges)), cells.size)


def placed(flows: Flows, machine: Topology) -> float:
    """Seconds of 10 MB along every edge, both ways, on tiles."""
    ends = np.concatenate((flows.edges, flows.edges[:, ::-1])).T.tolist()
    traffic = {"from": ends[0], "to": ends[1], "bytes": [1e7] * len(ends[0])}
    job = job_of(int(flows.edges.max()) + 1, traffic=traffic)
    problem = Problem.of(machine, job)
    budget = Budget(60.0)
    incumbent = Incumbent(problem, budget)
    tiled(problem, incumbent, budget)
    return incumbent.value


@pytest.mark.parametrize(
    ("shape", "machine", "flows_out"),
    [
        ((20, 20), "rack:13 node:8 gpu:4", 2),
        ((8, 8, 8), "rack:8 node:8 gpu:8", 3),
        ((14, 30), "rack:9 node:6 gpu:8", 2),
    ],
)
def test_stencils_take_as_long_as_by_hand(shape, machine, flows_out) -> None:
    """The NIC of no rank sends to more neighbours than in squares or cubes."""
    topology = placer.read_topology(machine)
    slowest = topology.tiers[-1]
    each = 1e7 / slowest.bandwidth / slowest.efficiency
    assert placed(grid(*shape), topology) == pytest.approx(flows_out * each, rel=0.1)


def test_tiles_of_tiles_spare_thin_uplinks() -> None:
    """16 x 16 cells in racks of 32, uplinks of a fifth: racks hold 4 x 8 cells."""
    tier = {"bandwidth": "50GB/s", "latency": "0us"}
    content = {
        "format": "placer/topology",
        "version": 1,
        "name": "thin",
        "tiers": [
            {"name": "node", "size": 4, "scale_up": True}
            | tier
            | {"bandwidth": "400GB/s"},
            {"name": "rack"} | tier,
            {"name": "cluster", "oversubscription": 5} | tier,
        ],
        "layout": "cluster:1 rack:8 node:8",
    }
    machine = decode_topology(document_of(content, "t"))
    # Every rack at the edge of the grid: eight cells, four and eight, twice four.
    assert placed(grid(16, 16), machine) == pytest.approx(20 * 1e7 / (32 * 50e9 / 5))


def test_hubs_keep_their_neighbours() -> None:
    """Six rings of 24, their hubs in a ring again, on nodes of 8: two hubs on a node.

    Then no rank has more than one neighbour elsewhere.
    """
    senders, receivers, _ = ring_of_rings(144, 24)
    edges = np.stack((senders, receivers), axis=1)
    flows = bundled(edges, np.ones(len(edges)), 144)
    own = placed(flows, placer.read_topology("rack:3 node:8 gpu:8"))
    one = placed(
        Flows(np.array([[0, 1]]), np.ones(1)), placer.read_topology("node:2 gpu:1")
    )
    assert own < 1.1 * one


@pytest.mark.slow
def test_graphs_of_many_ranks_are_tiled_too() -> None:
    """16,384 points in a square: no rank sends along more than 12 edges.

    In order, the worst sends along 16.
    """
    senders, receivers, _ = geometric(16_384)
    edges = np.stack((senders, receivers), axis=1)
    flows = bundled(edges, np.ones(len(edges)), 16_384)
    machine = placer.read_topology("rack:64 node:32 gpu:8")
    slowest = machine.tiers[-1]
    each = 1e7 / slowest.bandwidth / slowest.efficiency
    assert placed(flows, machine) < 12.5 * each
