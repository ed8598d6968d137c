"""The bound on ranks that all want the same company."""

import itertools
import random

import numpy as np
import pytest

from placer.documents import document_of
from placer.placement.placement import Placement
from placer.solve.bounds.company import least_in_company
from placer.solve.problem.compiled import Problem
from placer.solve.run.budget import ENDLESS
from placer.topology.read import decode_topology
from tests.solve.construct.test_tiles import grid
from tests.solve.test_communicators import job_of


def machine_of(sizes, rates=("400GB/s", "50GB/s"), waits=("0us", "0us"), factors=()):
    """Nodes of some sizes under one switch."""
    tiers = [
        {"name": name, "bandwidth": rate, "latency": wait}
        for name, rate, wait in zip(("node", "all"), rates, waits, strict=True)
    ]
    tiers[0] |= {"size": max(sizes), "scale_up": True}
    nodes = [{"names": f"n{i}", "gpus": size} for i, size in enumerate(sizes)]
    for node, factor in zip(nodes, factors, strict=False):
        node["bandwidth_factor"] = factor
    content = {
        "format": "placer/topology",
        "version": 1,
        "name": "nodes",
        "tiers": tiers,
        "nodes": nodes,
    }
    return decode_topology(document_of(content, "t"))


def bound(problem):
    return least_in_company(problem, problem.forced_block, np.inf, ENDLESS).value


def with_traffic(senders, receivers, size):
    return {
        "from": list(senders),
        "to": list(receivers),
        "bytes": [float(one) for one in size],
    }


@pytest.mark.parametrize(
    ("shape", "room", "out"), [((6, 6), 4, 2), ((6, 8), 8, 2), ((4, 4, 4), 8, 3)]
)
def test_a_stencil_has_a_corner_in_every_node(shape, room, out):
    """Some rank of a square has two neighbours elsewhere, of a cube three."""
    edges = grid(*shape).edges
    ends = np.concatenate((edges, edges[:, ::-1])).T.tolist()
    ranks = int(np.prod(shape))
    traffic = with_traffic(*ends, [1e7] * len(ends[0]))
    machine = machine_of([room] * -(-ranks // room))
    problem = Problem.of(machine, job_of(ranks, traffic=traffic))
    assert bound(problem) == pytest.approx(out * 1e7 / 50e9)


def test_nothing_is_said_of_ranks_that_have_room():
    """Two triangles and two nodes of three."""
    ends = (0, 1, 2, 3, 4, 5), (1, 2, 0, 4, 5, 3)
    problem = Problem.of(
        machine_of([3, 3]), job_of(6, traffic=with_traffic(*ends, [1e7] * 6))
    )
    assert bound(problem) < 1e7 / 50e9


def small_case(seed):
    """A few ranks with any traffic on a few uneven nodes, some GPUs spare."""
    draw = random.Random(seed)
    sizes = [draw.randint(1, 3) for _ in range(draw.randint(2, 4))]
    sizes[0] = max(sizes[0], 2)
    ranks = min(sum(sizes), draw.randint(3, 6))
    pairs = list(itertools.permutations(range(ranks), 2))
    chosen = draw.sample(pairs, draw.randint(2, min(12, len(pairs))))
    if draw.random() < 0.5:
        chosen = sorted({*chosen, *((b, a) for a, b in chosen)})
    size = [draw.choice((1e6, 2e6, 5e6)) for _ in chosen]
    machine = machine_of(
        sizes,
        [draw.choice(("1GB/s", "4GB/s")), draw.choice(("1GB/s", "2GB/s"))],
        [draw.choice(("0us", "9us")), draw.choice(("5us", "2us"))],
        [draw.choice((1, 1, 0.5)) for _ in sizes],
    )
    job = job_of(ranks, traffic=with_traffic(*zip(*chosen, strict=True), size))
    return Problem.of(machine, job)


def least(problem):
    """The best of all placements."""
    room = problem.machine.gpus_of_node
    every = itertools.product(range(len(room)), repeat=problem.job.world_size)
    return min(
        problem.model.step(
            Placement.on_nodes(problem.machine, np.array(row)).gpu_of_rank
        ).step_time_s
        for row in every
        if (np.bincount(row, minlength=len(room)) <= room).all()
    )


def check(seeds):
    tight = 0
    for seed in seeds:
        problem = small_case(seed)
        value, best = bound(problem), least(problem)
        assert value <= best * (1 + 1e-9), seed
        tight += value >= best * (1 - 1e-6)
    return tight / len(seeds)


def test_no_placement_is_below_it():
    """Against every placement of tiny cases; it is the optimum of many."""
    assert check(range(25)) > 0


@pytest.mark.slow
def test_no_placement_of_many_is_below_it():
    """The same of more cases."""
    assert check(range(25, 120)) > 0.02
