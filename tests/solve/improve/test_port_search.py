"""Annealing of the busiest ports and uplinks."""

from unittest.mock import patch

import numpy as np
import pytest

import placer
from benchmarks.traffic_graphs import blocks, pipelines_of_stars
from placer.document import document_of
from placer.solve import search
from placer.solve.improve.anneal import anneal
from placer.solve.improve.messages import messages_of
from placer.solve.improve.port_loads import PortLoads
from placer.solve.improve.port_search import PortState, evened
from placer.solve.improve.region import flow_region
from placer.solve.problem.compiled import Problem
from placer.solve.run.budget import Budget
from placer.solve.run.incumbent import MoveCounts
from placer.solve.tree.base import paced
from placer.topology.read import decode_topology
from tests.solve.solving import known
from tests.solve.test_communicators import job_of, seated
from tests.solve.test_transfers import role
from tests.solve.test_workloads import machine_of, workload_of

RANKS = 24


def problem_of(seed: int, *kinds: str) -> Problem:
    """Groups of some collectives, and traffic, on uneven nodes with thin uplinks."""
    rng = np.random.default_rng(seed)
    tier = {"bandwidth": "10GB/s", "latency": "0us"}
    content = {
        "format": "placer/topology",
        "version": 1,
        "name": "uneven",
        "tiers": [
            {"name": "node", "size": 4, "scale_up": True} | tier,
            {"name": "rack", **tier, "bandwidth": "1GB/s"},
            {"name": "all", **tier, "bandwidth": "1GB/s", "oversubscription": 3},
        ],
        "nodes": [
            {"names": f"n{i}", "rack": f"r{i // 3}", "gpus": 3 + i % 2}
            for i in range(9)
        ],
    }
    groups = [
        {
            "name": kind,
            "collective": kind,
            "bytes": 1e8,
            "per_step": 2,
            "ranks": rng.permutation(RANKS).reshape(-1, 4).tolist(),
        }
        for kind in kinds
    ]
    keys = {"groups": groups} if groups else {}
    if not groups:
        ends = rng.integers(0, RANKS, (2, 60))
        ends = ends[:, ends[0] != ends[1]]
        size = rng.exponential(1e8, ends.shape[1]).tolist()
        flows = {"from": ends[0].tolist(), "to": ends[1].tolist(), "bytes": size}
        keys = {"traffic": flows}
    machine = decode_topology(document_of(content, "t"))
    return Problem.of(machine, job_of(RANKS, **keys))


def loads_of(problem: Problem):
    """The loads of a problem, and its region."""
    region = flow_region(problem, paced(problem.machine))
    messages = messages_of(problem.job)
    assert region is not None
    assert messages is not None
    own = messages.between(region.label)
    return PortLoads(problem.model.fabric, region, own), region


def start(problem: Problem, seed: int) -> np.ndarray:
    """Node of every rank, at random."""
    rng = np.random.default_rng(seed)
    seats = rng.permutation(problem.machine.num_gpus)[:RANKS]
    return problem.machine.node_of_gpu[seats]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("kind", ["traffic", "all_to_all", "send_recv"])
def test_the_busiest_load_is_the_step(kind: str, seed: int) -> None:
    """Without latency, ports and uplinks say what the cost model says."""
    kinds = () if kind == "traffic" else (kind,)
    problem = problem_of(seed, *kinds)
    loads, region = loads_of(problem)
    gpu_of_rank = seated(problem.machine, start(problem, seed))
    home = region.homes([gpu_of_rank])[0]
    step = problem.model.step(gpu_of_rank)
    assert loads.of(home).max() == pytest.approx(step.step_time_s)


def test_a_flow_over_an_uplink_waits_for_all_messages_of_its_rank():
    """Seven small ones of 1 ms each, and one that its uplink carries for longer."""
    tiers = [
        {"name": "node", "size": 8, "bandwidth": "10GB/s", "scale_up": True},
        {"name": "rack", "bandwidth": "1GB/s"},
        {"name": "all", "bandwidth": "1GB/s", "oversubscription": 64},
    ]
    nodes = [{"names": f"n{i}", "rack": f"r{i // 2}"} for i in range(4)]
    head = {"format": "placer/topology", "version": 1, "name": "thin"}
    tiers = [tier | {"latency": "1ms"} for tier in tiers]
    machine = decode_topology(document_of(head | {"tiers": tiers, "nodes": nodes}, "t"))
    flows = {"from": [0] * 8, "to": [*range(8, 15), 16], "bytes": [8.0] * 7 + [1e8]}
    problem = Problem.of(machine, job_of(32, traffic=flows))
    loads, region = loads_of(problem)
    gpu_of_rank = np.arange(32)
    step = problem.model.step(gpu_of_rank)
    home = region.homes([gpu_of_rank])[0]
    assert loads.of(home).max() == pytest.approx(step.step_time_s, rel=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_what_a_change_adds_is_exact(seed: int) -> None:
    """Loads after a change are those before it and what it adds."""
    problem = problem_of(seed, "all_to_all", "relay")
    loads, region = loads_of(problem)
    home = region.homes([seated(problem.machine, start(problem, seed))])[0]
    state = PortState(loads, region, home, np.random.default_rng(seed), problem.params)
    state.propose()
    for changes in (state._moves.singles(40), state._moves.clusters(40)):
        added = loads.added(home, changes.units, changes.new)
        assert len(changes.units) > 10
        for number, units in enumerate(changes.units):
            after = home.copy()
            moves = units >= 0
            after[units[moves]] = changes.new[number, moves]
            held = np.bincount(after, minlength=len(region.capacity))
            assert (held <= region.capacity).all()
            own = added.change == number
            total = loads.of(home)
            np.add.at(total, added.load[own], added.seconds[own])
            np.testing.assert_allclose(total, loads.of(after), atol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_steps_leave_no_domain_too_full(seed: int) -> None:
    """After many changes every unit has a place, and loads are as if made anew."""
    problem = problem_of(seed)
    loads, region = loads_of(problem)
    home = region.homes([seated(problem.machine, start(problem, seed))])[0]
    state = PortState(loads, region, home, np.random.default_rng(seed), problem.params)
    state.aim(0.01, 0.02, 1e5)
    for _ in range(40):
        changes = state.propose()
        state.delta(changes)
        state.apply(changes, state.draw(len(changes.units)) < 0.3)
    held = np.bincount(state.home, minlength=len(region.capacity))
    assert (held <= region.capacity).all()
    assert not np.array_equal(state.home, home)
    np.testing.assert_allclose(state._busy, loads.of(state.home), atol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_a_change_costs_what_it_adds_above_the_target(seed: int) -> None:
    """Ports and uplinks below the target become busier for nothing."""
    problem = problem_of(seed, "all_to_all", "relay")
    loads, region = loads_of(problem)
    home = region.homes([seated(problem.machine, start(problem, seed))])[0]
    state = PortState(loads, region, home, np.random.default_rng(seed), problem.params)
    state.aim(0.3, 0.02, 1e5)
    kinds = np.arange(int(loads.kind.max()) + 1)
    busiest = np.array([loads.of(home)[loads.kind == kind].max() for kind in kinds])
    target = 0.7 * busiest

    def excess(home: np.ndarray) -> float:
        over = np.maximum(loads.of(home) - target[loads.kind], 0.0)
        return over.sum() / busiest.sum()

    changes = state.propose()
    for number, added in enumerate(state.delta(changes)):
        after = home.copy()
        moves = changes.units[number] >= 0
        after[changes.units[number, moves]] = changes.new[number, moves]
        assert added == pytest.approx(excess(after) - excess(home), abs=1e-9)


def test_a_round_ends_at_its_target() -> None:
    """Nothing is left to do where nothing is busier, whatever work is left."""
    problem = problem_of(1)
    loads, region = loads_of(problem)
    home = region.homes([seated(problem.machine, start(problem, 1))])[0]
    state = PortState(loads, region, home, np.random.default_rng(1), problem.params)
    state.aim(-0.5, 1e-9, 1e9)
    anneal(state, Budget(60.0), MoveCounts())
    assert state.is_reached
    assert state.work < 1e5


@pytest.mark.parametrize("is_asked", [True, False])
def test_a_short_walk_comes_before_long_ones(is_asked: bool) -> None:
    """Constructions alone do not walk."""
    senders, receivers, size = blocks(48)
    flows = {"from": senders.tolist(), "to": receivers.tolist(), "bytes": size.tolist()}
    problem = Problem.of(
        placer.read_topology("rack:2 node:4 gpu:8"), job_of(48, traffic=flows)
    )
    problem = problem.with_params(even_work=4e5, local_search=is_asked)
    before = search.METHODS[: search.METHODS.index(search.component_line)]
    with patch.object(search, "METHODS", before):
        found = search.plain_search(problem, Budget(60.0))
    assert found.method.startswith("evened") == is_asked


def test_many_busy_ports_give_way_together() -> None:
    """Groups of 12 that talk among themselves, on nodes of 8: none fits whole."""
    rng = np.random.default_rng(1)
    one = np.repeat(np.arange(96), 3)
    other = one // 12 * 12 + rng.integers(0, 12, len(one))
    apart = one != other
    flows = {
        "from": one[apart].tolist(),
        "to": other[apart].tolist(),
        "bytes": rng.exponential(1e8, apart.sum()).tolist(),
    }
    problem = Problem.of(
        placer.read_topology("rack:4 node:3 gpu:8"), job_of(96, traffic=flows)
    )
    problem = problem.with_params(even_work=8e5)
    incumbent = known(problem, np.random.default_rng(0).permutation(96))
    before = incumbent.value
    evened(problem, incumbent, Budget(60.0))
    assert incumbent.value < 0.28 * before


def test_stars_are_served_by_their_own_nodes() -> None:
    """A hub and three ranks that it sends to, in each of 16 nodes, from any start."""
    rng = np.random.default_rng(3)
    who = rng.permutation(64).reshape(-1, 4)
    hubs = np.repeat(who[:, 0], 3).tolist()
    flows = {"from": hubs, "to": who[:, 1:].ravel().tolist(), "bytes": [1e8] * 48}
    problem = Problem.of(
        placer.read_topology("rack:4 node:4 gpu:4"), job_of(64, traffic=flows)
    )
    problem = problem.with_params(even_work=4e5)
    incumbent = known(problem, np.arange(64))
    before = incumbent.value
    evened(problem, incumbent, Budget(60.0))
    assert incumbent.value < before / 3
    assert incumbent.method == "evened, from start"


def test_clusters_change_places() -> None:
    """Two hubs with leaves of their own: no single swap helps, three at once do.

    Each node begins with a hub and its leaves beside those of another pair's hub.
    """
    pairs, rows = 2, np.arange(12).reshape(2, 2, 3)
    hubs = rows[:, :, 0]
    one = np.concatenate((np.repeat(hubs.ravel(), 2), hubs[:, 0]))
    other = np.concatenate((rows[:, :, 1:].ravel(), hubs[:, 1]))
    ends = np.append(one, other), np.append(other, one)
    size = [1e8] * len(ends[0])
    flows = {"from": ends[0].tolist(), "to": ends[1].tolist(), "bytes": size}
    machine = placer.read_topology("rack:1 node:2 gpu:6")
    node = np.empty(12, dtype=np.int64)
    for pair in range(pairs):
        node[rows[pair, 0]], node[rows[pair, 1]] = pair, (pair + 1) % pairs
    problem = Problem.of(machine, job_of(12, traffic=flows))
    problem = problem.with_params(even_work=2e5, even_heat=(1e-9,) * 4)
    incumbent = known(problem, seated(machine, node))
    evened(problem, incumbent, Budget(60.0))
    inside = machine.node_of_gpu[incumbent.gpu_of_rank[hubs]]
    assert (inside[:, 0] == inside[:, 1]).all()


def test_nodes_change_racks_whole() -> None:
    """Pairs of full nodes, far apart: a few of their ranks alone have no reason to go.

    Each rank has a partner in the other node, and sends ten times as much in its own.
    """
    machine = decode_topology(
        document_of(
            {
                "format": "placer/topology",
                "version": 1,
                "name": "pairs",
                "tiers": [
                    {"name": "node", "size": 8, "bandwidth": "9GB/s", "scale_up": True},
                    {"name": "rack", "bandwidth": "1GB/s", "latency": "5us"},
                    {"name": "all", "bandwidth": "1GB/s", "oversubscription": 8},
                ],
                "nodes": [{"names": f"n{i}", "rack": f"r{i // 2}"} for i in range(8)],
            },
            "t",
        )
    )
    rank = np.arange(64)
    beside = rank // 8 * 8 + (rank + 1) % 8
    across = (rank + 32) % 64
    flows = {
        "from": [*rank.tolist(), *rank.tolist()],
        "to": [*beside.tolist(), *across.tolist()],
        "bytes": [1e7] * 64 + [1e6] * 64,
    }
    problem = Problem.of(machine, job_of(64, traffic=flows))
    problem = problem.with_params(even_work=8e6)
    incumbent = known(problem, rank)
    side_by_side = seated(machine, rank // 8 % 4 * 2 + rank // 32)
    incumbent.prove(problem.model.step(side_by_side).step_time_s, "by hand")
    evened(problem, incumbent, incumbent.budget)
    rack = machine.domain_of_gpu[1][incumbent.gpu_of_rank]
    assert (rack == rack[across]).all()


def test_hubs_of_a_pipeline_gather_and_leave_their_leaves():
    """Six hubs with five leaves each pass on four times what leaves send.

    Three hubs on a node leave room for the leaves of one: a NIC has the work of five
    messages. With two hubs and leaves of both it has that of six, and no change of a
    few ranks makes that less.
    """
    senders, receivers, size = pipelines_of_stars(4, 6, 5)
    flows = {"from": senders.tolist(), "to": receivers.tolist(), "bytes": size.tolist()}
    machine = placer.read_topology("rack:4 node:5 gpu:8")
    problem = Problem.of(machine, job_of(144, traffic=flows))
    problem = problem.with_params(even_work=2e6)
    # Pairs of hubs with three leaves each, and the other leaves by themselves.
    place = np.arange(144) % 6
    pair = np.arange(144) // 12
    alone = np.cumsum(place > 3) - 1
    node = np.where(place > 3, 12 + alone // 8, pair)
    incumbent = known(problem, seated(machine, node))
    evened(problem, incumbent, Budget(60.0))
    message_s = float(size.min()) / machine.tiers[-1].bandwidth
    assert incumbent.value < 5.5 * message_s


def test_transfers_between_roles_are_annealed_too():
    """Experts that ask few replicas: each rank has one message that leaves its rack."""
    roles = [role("a", 64, tp=4), role("b", 16, 2, ep=8)]
    sent = {"from": "a", "to": "b", "bytes": "80GB", "expert_share": 0.9}
    job = workload_of(roles, [sent])
    problem = Problem.of(machine_of([9, 6, 8], 4, "900GB/s"), job, "time", 0)
    found = known(problem.with_params(even_work=1e6), np.arange(job.world_size))
    evened(problem.with_params(even_work=1e6), found, Budget(60.0))
    # A pair of ranks has half of a NIC.
    assert found.value == pytest.approx(2 * 2e9 / 50e9, rel=1e-3)


def test_roles_with_traffic_of_their_own_are_left_out():
    group = {"name": "g", "collective": "all_reduce", "bytes": 8, "ranks": "all"}
    roles = [role("a", 4), role("b", 4)]
    roles[0]["job"]["groups"] = [group]
    assert (
        messages_of(workload_of(roles, [{"from": "a", "to": "b", "bytes": 8}])) is None
    )
