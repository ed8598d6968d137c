"""What uplinks must carry of traffic between two sides."""

import itertools
import random

import numpy as np
import pytest

from placer.documents import document_of
from placer.solve.bounds import certificate
from placer.solve.bounds.network.best_network import best_of_problem
from placer.solve.bounds.traffic.two_sides import least_between_sides
from placer.solve.problem.compiled import Problem
from placer.solve.run.budget import ENDLESS
from placer.topology.read import decode_topology
from tests.solve.test_communicators import job_of


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


def traffic_of(flows):
    ends = [list(end) for end in zip(*flows, strict=True)]
    return {"from": ends[0], "to": ends[1], "bytes": list(flows.values())}


def problem_of(flows, ranks, machine, launcher="free"):
    job = job_of(ranks, launcher, traffic=traffic_of(flows))
    return Problem.of(machine, job, None, 0)


def bound(problem):
    network, traffic = best_of_problem(problem), problem.job.traffic
    return least_between_sides(network, traffic, problem.params, ENDLESS)


def some_flows(rng, ranks):
    """Two sides in several components, not always complete, either way or both."""
    who, flows = rng.sample(range(ranks), ranks), {}
    while len(who) > 1:
        own = [who.pop() for _ in range(min(len(who), rng.randrange(2, 7)))]
        cut, ways = rng.randrange(1, len(own)), rng.choice(((1,), (1,), (-1,), (1, -1)))
        kept, size = rng.choice((1, 1, 0.6)), rng.choice((None, 1e8))
        for pair in itertools.product(own[:cut], own[cut:]):
            for way in ways:
                if rng.random() < kept:
                    flows[pair[::way]] = size or rng.randrange(1, 6) * 1e8
    return flows


def busiest(problem, gpus):
    """Seconds of the busiest uplink, with each rank on its GPU."""
    fabric, traffic, seconds = problem.model.fabric, problem.job.traffic, 0.0
    for tier in fabric.scale_out_tiers:
        domain, carried = fabric.child_domain_of_gpu(tier), fabric.uplink_capacity[tier]
        ends = domain[gpus[traffic.senders]], domain[gpus[traffic.receivers]]
        sent = traffic.size_bytes * (ends[0] != ends[1])
        for of in ends:
            busy = np.bincount(of, sent, len(carried)) / carried
            seconds = max(seconds, float(busy.max()))
    return seconds


def placements(machine, ranks):
    """All ways to share ranks out to racks whose GPUs are all alike."""
    rack = machine.domain_of_gpu[-2]
    first, room = np.unique(rack, return_index=True, return_counts=True)[1:]
    for homes in itertools.product(range(len(room)), repeat=ranks):
        held = np.bincount(homes, minlength=len(room))
        if (held <= room).all():
            gpus = np.empty(ranks, dtype=np.int64)
            ends = np.cumsum(held)
            place = np.arange(ranks) - np.repeat(ends - held, held)
            gpus[np.argsort(homes, kind="stable")] = np.repeat(first, held) + place
            yield gpus


def test_each_rack_has_of_both_sides_as_its_uplink_is_thin():
    """Two ranks send to four, in racks of three: 2 GB out and in, or 6 GB one way."""
    flows = dict.fromkeys(itertools.product(range(2), range(2, 6)), 1e9)
    machine = machine_of(2, 3, 1, thinner=4)
    assert bound(problem_of(flows, 6, machine)) == pytest.approx(2 / 0.75)


def test_components_that_racks_hold_whole_need_no_uplink():
    """Of three sets of four, racks of four cut none, and racks of six one in two."""
    quads = range(0, 12, 4)
    flows = {(q + a, q + b): 1e9 for q in quads for a in (0, 1) for b in (2, 3)}
    whole = machine_of(3, 4, 1, thinner=4)
    assert bound(problem_of(flows, 12, whole)) == pytest.approx(2 / 100)
    uneven = machine_of(2, 6, 1, thinner=4)
    assert bound(problem_of(flows, 12, uneven)) == pytest.approx(1 / 1.5)


def test_nodes_of_a_launch_are_what_racks_hold():
    """Nodes of two ranks: racks of three nodes part a component of four of them."""
    flows = {(a, b): 1e9 for a in range(4) for b in range(4, 8)}
    machine = machine_of(2, [3, 1], 2, thinner=4)
    free, by_nodes = (
        bound(problem_of(flows, 8, machine, launcher))
        for launcher in ("free", "node-contiguous")
    )
    # One of each side in the small rack sends to three others, or receives: 3 GB.
    assert free == pytest.approx(3 / 0.5)
    # A node of one side sends to all four others: 8 GB.
    assert by_nodes == pytest.approx(8 / 0.5)


def test_no_placement_keeps_uplinks_less_busy():
    for seed in range(60):
        rng = random.Random(seed)
        ranks = rng.randrange(4, 7)
        nodes = [rng.randrange(1, 4) for _ in range(rng.randrange(2, 4))]
        nodes[0] += max(0, ranks - sum(nodes))
        machine = machine_of(len(nodes), nodes, 1, thinner=rng.choice((1, 4, 8)))
        flows = some_flows(rng, ranks)
        if not flows:
            continue
        problem = problem_of(flows, ranks, machine)
        best = min(busiest(problem, homes) for homes in placements(machine, ranks))
        assert bound(problem) <= best * (1 + 1e-9), seed


def test_the_certificate_knows_it():
    flows = dict.fromkeys(itertools.product(range(2), range(2, 6)), 1e9)
    problem = problem_of(flows, 6, machine_of(2, 3, 1, thinner=4))
    proof = certificate.lower_bound(problem, 1)
    assert proof.value == pytest.approx(2 / 0.75)
    assert "two sides" in proof.argument
