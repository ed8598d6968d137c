"""What uplinks must carry of traffic, from the lines of its graph."""

import itertools
import random
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest

import placer
from placer.document import document_of
from placer.placement.placement import Placement
from placer.solve.bounds.network.best_network import best_of_problem
from placer.solve.bounds.traffic.directions import directions
from placer.solve.bounds.traffic.graph_cut import _graph, least_over_uplinks
from placer.solve.bounds.traffic.traffic import step_with
from placer.solve.problem.compiled import Problem
from placer.solve.problem.params import Params
from placer.solve.run.budget import ENDLESS, Budget
from placer.topology.read import decode_topology
from tests.solve.construct.test_tiles import grid
from tests.solve.test_communicators import job_of

WORK = 1_000_000
BYTES = 1e8


def machine_of(racks, nodes, gpus, thinner=1.0, wait="0us"):
    """Racks of so many nodes, in all or each, a GPU sends 1 GB/s outside of them."""
    counts = nodes if isinstance(nodes, list) else [nodes] * racks
    tiers = [
        {"name": "node", "size": gpus, "bandwidth": "100GB/s", "scale_up": True},
        {"name": "rack", "bandwidth": "100GB/s"},
        {"name": "all", "bandwidth": "1GB/s", "oversubscription": thinner},
    ]
    content = {
        "format": "placer/topology",
        "version": 1,
        "name": "racks",
        "tiers": [tier | {"latency": wait} for tier in tiers],
        "nodes": [
            {"names": f"r{r}n[0-{count - 1}]", "rack": f"r{r}"}
            for r, count in enumerate(counts)
        ],
    }
    return decode_topology(document_of(content, "t"))


def traffic_of(edges, size):
    ends = np.concatenate((edges, edges[:, ::-1])).T.tolist()
    return {"from": ends[0], "to": ends[1], "bytes": np.tile(size, 2).tolist()}


def problem_of(graph, machine, size=None):
    """Bytes along every edge, both ways, ranks numbered at random."""
    who = np.random.default_rng(2).permutation(len(graph))
    numbered = nx.convert_node_labels_to_integers(graph)
    edges = who[np.array(list(numbered.edges))]
    size = np.full(len(edges), BYTES) if size is None else size
    return Problem.of(machine, job_of(len(graph), traffic=traffic_of(edges, size)))


def bound(problem):
    network = best_of_problem(problem)
    seconds = least_over_uplinks(network, problem.job.traffic, problem.params, ENDLESS)
    return step_with(problem.model, network, seconds)


def test_a_grid_has_two_directions_whoever_is_where():
    """Also with cells missing, and three where cells are cubes."""
    for shape, missing in (((5, 7), 0), ((5, 7), 3), ((3, 4, 5), 4)):
        flows = grid(*shape)
        count = int(np.prod(shape))
        kept = (flows.edges < count - missing).all(axis=1)
        found = directions(flows.edges[kept], count - missing, WORK)
        assert len(found.coordinate) == len(shape)


@pytest.mark.parametrize("ranks", [64, 50])
def test_a_cube_has_one_for_each_bit(ranks):
    rank = np.arange(ranks)
    pairs = [(r, r ^ 1 << b) for r in rank.tolist() for b in range(6)]
    edges = np.array([pair for pair in pairs if pair[0] < pair[1] < ranks])
    found = directions(edges, ranks, WORK)
    assert len(found.coordinate) == 6


def test_a_graph_that_is_no_product_has_one():
    graph = nx.random_regular_graph(3, 20, seed=1)
    found = directions(np.array(list(graph.edges)), 20, WORK)
    assert len(found.coordinate) == 1


def test_racks_of_a_cube_are_cubes():
    """Of 6 dimensions on racks of 16: each rank sends to two others outside."""
    problem = problem_of(nx.hypercube_graph(6), machine_of(4, 4, 4))
    assert bound(problem) == pytest.approx(2 * BYTES / 1e9)


def test_racks_of_a_torus_are_squares():
    """16 of a rack have at least 16 edges outside it, as a square of 4 x 4 does."""
    torus = nx.grid_2d_graph(8, 8, periodic=True)
    assert bound(problem_of(torus, machine_of(4, 4, 4))) == pytest.approx(BYTES / 1e9)


def test_ends_of_a_grid_count_once():
    """8 x 8 cells on racks of 16: 4 * 16 edges, less two for each of 16 lines."""
    squares = nx.grid_2d_graph(8, 8)
    expected = (64 - 32) / 64 * BYTES / 1e9
    assert bound(problem_of(squares, machine_of(4, 4, 4))) == pytest.approx(expected)


def test_uplinks_carry_whole_messages():
    """6 x 6 cells on nine racks of 4: 48 edges out, so some rack has 6 of them."""
    squares = nx.grid_2d_graph(6, 6)
    problem = problem_of(squares, machine_of(9, 2, 2))
    assert bound(problem) == pytest.approx(6 / 4 * BYTES / 1e9)


def test_a_line_of_cliques_is_cut_between_them():
    """Where edges of one direction are heavier, lines are cut along the other."""
    graph = nx.cartesian_product(nx.complete_graph(4), nx.cycle_graph(16))
    numbered = nx.convert_node_labels_to_integers(graph)
    is_clique = [abs(a - b) >= 16 for a, b in numbered.edges]
    size = np.where(is_clique, 3 * BYTES, BYTES)
    # A rack holds four cliques in a row; 4 edges leave at either end.
    expected = 8 / 16 * BYTES / 1e9
    found = bound(problem_of(graph, machine_of(4, 4, 4), size))
    assert found == pytest.approx(expected)


def test_a_torus_behind_thin_uplinks_is_proved():
    """Squares of squares, and no fewer bytes over any uplink."""
    torus = nx.grid_2d_graph(8, 8, periodic=True)
    topology = machine_of(4, 4, 4, thinner=4)
    job = problem_of(torus, topology).job
    result = placer.place(topology, job, time_limit=60)
    assert result.status == "optimal"
    assert result.bound["value"] == pytest.approx(4 * BYTES / 1e9)


def test_racks_hold_what_they_may_send():
    """256 ranks of a cube on seven racks of 40: 36 send 112 messages, 37 send 116."""
    problem = problem_of(nx.hypercube_graph(8), machine_of(7, 5, 8))
    assert bound(problem) == pytest.approx(116 / 40 * BYTES / 1e9)


def test_what_one_uplink_could_carry_is_of_no_use_to_others():
    """A path of six on racks of 3, 1, 1 and 1: two have ends, the last sends two."""
    problem = problem_of(nx.path_graph(6), machine_of(4, [3, 1, 1, 1], 1))
    assert bound(problem) == pytest.approx(2 * BYTES / 1e9)


def test_no_part_of_a_cube_sends_less():
    """Against all sets of damaged cubes of 4 dimensions."""
    rng = np.random.default_rng(0)
    said = 0
    for gone in (0, 1, 1, 2, 2, 3, 3):
        kept = rng.permutation(16)[gone:]
        graph = nx.hypercube_graph(4)
        graph = nx.convert_node_labels_to_integers(graph).subgraph(kept.tolist())
        graph = nx.convert_node_labels_to_integers(graph)
        edges, count = np.array(list(graph.edges)), len(graph)
        sets = (np.arange(1 << count)[:, None] >> np.arange(count)) & 1
        leaves = (sets[:, edges[:, 0]] != sets[:, edges[:, 1]]).sum(axis=1)
        ends = np.concatenate((edges, edges[:, ::-1])).T
        own = problem_of(graph, machine_of(2, 2, 4)).job.traffic
        own = replace(own, senders=ends[0], receivers=ends[1])
        lines = _graph(own, np.arange(count), Params())[1]
        for size in range(count + 1):
            least = leaves[sets.sum(axis=1) == size].min() * 2 * BYTES
            assert lines.cube[size] <= least * (1 + 1e-9)
            said += lines.cube[size] > 0
    assert said > 50


def by_nodes(racks):
    """A torus of 4 x 6 x 6, each line of four ranks on a node, in full racks."""
    torus = np.arange(144).reshape(6, 6, 4)
    edges = np.concatenate(
        [
            np.stack((torus, np.roll(torus, 1, axis)), axis=-1).reshape(-1, 2)
            for axis in range(3)
        ]
    )
    machine = machine_of(len(racks), racks, 4)
    traffic = traffic_of(edges, np.full(len(edges), BYTES))
    return Problem.of(machine, job_of(144, "node-contiguous", traffic=traffic))


def test_a_node_of_a_launch_is_one_vertex():
    """Racks of five and four nodes: of a torus of nodes, five have ten neighbours."""
    found = bound(by_nodes([5] * 4 + [4] * 4))
    assert found == pytest.approx(10 * 4 * BYTES / (5 * 4 * 1e9))


def test_a_full_domain_sends_what_it_must():
    """A single node in a rack of its own has four neighbours elsewhere."""
    found = bound(by_nodes([7] * 5 + [1]))
    assert found == pytest.approx(4 * 4 * BYTES / (4 * 1e9))


def small_case(seed):
    """A small product, perhaps damaged, on a few uneven nodes."""
    draw = random.Random(seed)
    sides = draw.choice([(2, 2), (2, 3), (6,), (5,), (2, 2, 2), (3, 2), (4,), (7,)])
    kinds = (nx.path_graph, nx.cycle_graph, nx.complete_graph)
    graph = nx.empty_graph(1)
    for side in sides:
        graph = nx.cartesian_product(graph, draw.choice(kinds)(side))
    graph = nx.convert_node_labels_to_integers(graph)
    edges = np.array([edge for edge in graph.edges if edge[0] != edge[1]])
    edges = edges[np.array([draw.random() < 0.9 for _ in edges]) | (seed % 2 == 0)]
    size = np.array([draw.choice((1e6, 1e6, 3e6)) for _ in edges])
    if seed % 3 == 0:
        size[:] = 1e6
    tiers = [
        {"name": "node", "size": 3, "bandwidth": "9GB/s", "scale_up": True},
        {"name": "rack", "bandwidth": draw.choice(("9GB/s", "1GB/s"))},
        {"name": "all", "bandwidth": "2GB/s", "oversubscription": draw.choice((1, 4))},
    ]
    nodes = [
        {"names": f"n{i}", "rack": f"r{i // 2}", "gpus": draw.choice((2, 3, 3))}
        for i in range(4)
    ]
    head = {"format": "placer/topology", "version": 1, "name": "small"}
    tiers = [tier | {"latency": draw.choice(("0us", "5us"))} for tier in tiers]
    content = {**head, "tiers": tiers, "nodes": nodes}
    machine = decode_topology(document_of(content, "t"))
    return Problem.of(machine, job_of(len(graph), traffic=traffic_of(edges, size)))


def least(problem):
    """The best of all placements, by what ports and uplinks do, in code of its own."""
    machine, traffic = problem.machine, problem.job.traffic
    room, rack = machine.gpus_of_node, machine.domain_of_node[1]
    rows = itertools.product(range(len(room)), repeat=problem.job.world_size)
    best = np.inf
    for row in map(np.array, rows):
        if (np.bincount(row, minlength=len(room)) > room).any():
            continue
        busy = 0.0
        for tier, of_node in ((1, np.arange(len(room))), (2, rack)):
            child = of_node[row]
            ends = child[traffic.senders], child[traffic.receivers]
            own = machine.tiers[tier]
            rate = np.bincount(of_node, room) * own.bandwidth / own.oversubscription
            out = np.where(ends[0] != ends[1], traffic.size_bytes, 0.0)
            for end in ends:
                sent = np.bincount(end, out, len(rate)) / rate
                busy = max(busy, float(sent.max()))
        if busy < best:
            step = problem.model.step(Placement.on_nodes(machine, row).gpu_of_rank)
            best = min(best, step.step_time_s)
    return best


def check(seeds):
    said = 0
    for seed in seeds:
        problem = small_case(seed)
        value = bound(problem)
        if value > 0:
            assert value <= least(problem) * (1 + 1e-9), seed
            said += 1
    return said / len(seeds)


def test_no_placement_is_below_it():
    """Against every placement of tiny cases."""
    assert check(range(6)) > 0.5


@pytest.mark.slow
def test_no_placement_of_many_is_below_it():
    """The same of more cases."""
    assert check(range(6, 20)) > 0.5


def test_nothing_is_said_of_uplinks_once_the_time_is_over():
    problem = problem_of(nx.grid_2d_graph(4, 6), machine_of(2, 3, 4))
    network, traffic = best_of_problem(problem), problem.job.traffic
    assert least_over_uplinks(network, traffic, problem.params, ENDLESS) > 0.0
    assert least_over_uplinks(network, traffic, problem.params, Budget(0.0)) == 0.0
