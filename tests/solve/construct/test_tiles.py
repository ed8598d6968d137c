"""Graphs of what ranks send each other are cut into tiles and boxes."""

from dataclasses import replace
from itertools import combinations

import networkx as nx
import numpy as np
import pytest

from benchmarks.traffic_graphs import (
    geometric,
    of_networkx,
    ring_of_rings,
    stencil,
    weighted_stencil,
)
from placer import testing
from placer.solve import search
from placer.solve.construct.tiled import _tiling_of, tiled
from placer.solve.problem.compiled import Problem
from placer.solve.run.budget import Budget
from placer.solve.score import is_built
from tests.solve.solving import alone
from tests.solve.solving import own_job as job_of


def racks(sizes, gpus, oversubscription=1):
    """Racks of so many nodes each, which hops take no time between."""
    found = testing.racks(sizes, gpus, False, oversubscription)
    return replace(found, tiers=tuple(replace(t, latency=0.0) for t in found.tiers))


def sending(graph, machine):
    """A problem of the flows of a graph, and the rank of each of its vertices."""
    senders, receivers, size = graph
    ranks = int(max(senders.max(), receivers.max())) + 1
    who = np.random.default_rng(1).permutation(ranks)
    ends = {"from": who[senders].tolist(), "to": who[receivers].tolist()}
    traffic = {**ends, "bytes": np.asarray(size, float).tolist()}
    return Problem.of(machine, job_of(ranks, traffic=traffic)), who


UNIT = 1e7 / 50e9  # s: what an edge takes on a NIC
AXES = weighted_stencil((7, 9, 6), (1, 2, 1), periodic=True)
SIDES = weighted_stencil((21, 17), (1, 3))
CORNERLESS = nx.grid_2d_graph(12, 12)
CORNERLESS.remove_nodes_from([(0, 0), (11, 11), (0, 11)])
UNEVEN = [9, 6, 7, 6, 6, 5, 5, 5]


@pytest.mark.parametrize(
    ("graph", "machine", "seconds"),
    [
        # The NIC of no rank sends to more neighbours than in squares or cubes.
        (stencil(20, 20), racks([8] * 13, 4), 2.1 * UNIT),
        (stencil(8, 8, 8), racks([8] * 8, 8), 3.1 * UNIT),
        # Racks hold 4 x 8 of 16 x 16 cells: 20 edges on an uplink of 32 / 5 NICs.
        (stencil(16, 16), racks([8] * 8, 4, 5), 20 / (32 / 5) * UNIT),
        # Hubs in a ring, two on a node: no rank has two neighbours elsewhere.
        (ring_of_rings(144, 24), racks([8] * 3, 8), 1.1 * UNIT),
        # Racks have columns: of 72 units at most 9 x 2 x 2 ranks leave.
        (AXES, racks([5] * 11, 8, 4), 72 * AXES[2].min() / (5 * 8 * 50e9 / 4)),
        # Thin boxes at the border: one light and one heavy neighbour elsewhere.
        (SIDES, racks(UNEVEN * 2, 4), np.unique(SIDES[2]).sum() / 50e9),
        # Boxes for racks that are all as the smallest took 1.03 and 0.76 ms.
        (stencil(27, 19, periodic=True), racks([*UNEVEN, 9, 8], 8, 4), 0.61e-3),
        # Of 529 ranks one has a node of its own; all behind it once lay askew.
        (stencil(23, 23), racks([*UNEVEN, 3, 4, 11], 8, 4), 0.65e-3),
        (of_networkx(CORNERLESS), racks([9] * 4, 4), 2 * UNIT),
        # Far more cuts inside each other than Python has calls.
        pytest.param(stencil(1000, 2), racks([8] * 40, 8), 1.0, marks=pytest.mark.slow),
    ],
)
def test_graphs_take_no_longer_than_by_hand(graph, machine, seconds):
    """Stencils, rings and points in a square, ranks numbered at random."""
    problem, _ = sending(graph, machine)
    assert alone(tiled, problem).value <= seconds * (1 + 1e-9)


@pytest.mark.skipif(not is_built(), reason="the compiled part is not built")
def test_walks_from_tiles_end_no_later_than_by_hand():
    """Racks of three to eleven nodes: no box fits them all."""
    problem, _ = sending(stencil(21, 22), racks([*UNEVEN, 3, 4, 11], 8, 4))
    seconds = 0.54e-3
    wanted = problem.with_params(enough_value=seconds)
    assert search.solve(wanted, Budget(60.0)).value <= seconds * (1 + 1e-9)


@pytest.mark.slow
def test_graphs_of_many_ranks_are_tiled_too():
    """In order the worst of 16,384 points in a square sends along 16 edges."""
    problem, _ = sending(geometric(16_384), racks([32] * 64, 8))
    assert alone(tiled, problem).value < 12.5 * UNIT


@pytest.mark.parametrize("seed", [4, 5])
def test_racks_hold_communities(seed):
    """Nodes have four ranks, racks four nodes that all know each other, all shuffled.

    What is found is no slower; of tiles as they are grown it is in one of the cases.
    """
    nodes = nx.random_partition_graph([4] * 8, 1, 0.15, seed=seed)
    rng = np.random.default_rng(seed)
    inside = [
        (4 * n + a, 4 * n + b) for n in nodes for a, b in combinations(range(4), 2)
    ]
    between = 4 * np.array(nodes.edges) + rng.integers(0, 4, (len(nodes.edges), 2))
    edges = np.concatenate((inside, between))
    size = 1e7 * np.repeat([20, 1], [len(inside), len(between)])
    ends = np.concatenate((edges, edges[:, ::-1])).T
    problem, who = sending((*ends, np.tile(size, 2)), racks([4] * 8, 4, 64))
    known = problem.goal.value(np.argsort(who))
    assert alone(tiled, problem).value <= known * (1 + 1e-9)


def test_halving_ends_with_the_time(monkeypatch):
    """Passes over 8,000 tiles and 397,000 edges took 32 s, whatever the limit."""
    asked, halve = [], nx.community.kernighan_lin_bisection

    def noted(*args, **more):
        asked.append(more["max_iter"])
        return halve(*args, **more)

    monkeypatch.setattr(nx.community, "kernighan_lin_bisection", noted)
    ends = np.random.default_rng(0).integers(0, 100, (2, 800))
    problem, _ = sending((*ends, np.full(800, 1e7)), racks([25] * 4, 1, 4))
    tiling = _tiling_of(problem, None)
    assert tiling is not None
    domains, tile = np.arange(100), np.arange(100)
    label = tiling.halved(domains, tile, lambda: bool(asked))
    assert asked == [1]
    assert sorted(label[0]) == list(range(100))
    tiling.halved(domains, tile, lambda: False)
    assert len(asked) > 4
