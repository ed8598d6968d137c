"""Seats of ranks under rules: found where there are some, and within the time."""

from __future__ import annotations

import json
import time
from itertools import islice
from typing import TYPE_CHECKING

import pytest

import placer
from placer.documents import document_of
from placer.job.read import decode_job
from placer.placement.check import violations
from placer.placement.placement import Placement
from placer.solve.exact.seats import seat
from placer.solve.problem.launch import launched
from placer.solve.problem.rules import Limits
from placer.topology.read import parse_topology
from tests.marks import slow
from tests.solve.attack import drawn, legal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.solve.attack import Case


def ruled_islands(first: int) -> Iterator[Case]:
    """Cases of hosts with islands under rules, from number ``first`` on."""
    seed = first
    while True:
        case = drawn(seed)
        if case.sort == "islands" and case.job.rules:
            yield case
        seed += 1


@pytest.mark.parametrize("first", [700_000, *slow(range(710_000, 790_000, 10_000))])
def test_hosts_of_islands(first: int) -> None:
    """There are seats where some placement keeps the rules, and they keep them."""
    for case in islice(ruled_islands(first), 8):
        machine = case.topology.by_island
        if case.job.world_size > machine.num_gpus:
            continue
        seating = seat(Limits.of(machine, case.job))
        assert seating is not None
        assert seating.proved
        assert (seating.node_of_rank is not None) == bool(legal(case)), case
        if seating.node_of_rank is not None:
            placement = Placement(launched(machine, seating.node_of_rank))
            assert not violations(placement, case.topology, case.job)


def test_fewest_hosts_to_avoid_are_not_waited_for() -> None:
    """So few that no fewer will do took 54 s to prove, whatever the time limit."""
    sizes = {"r0": [2, 2, 2], "r1": [1, 2, 2, 2], "r2": [2, 2, 2], "r3": [2, 2, 1]}
    gpus = [(rack, count) for rack, counts in sizes.items() for count in counts]
    tiers = ("node", "rack", "cluster")
    machine = {
        "format": "placer/topology",
        "version": 1,
        "name": "few-to-avoid",
        "tiers": [
            {"name": name, "bandwidth": 20e9, "latency": 1e-6 * t, "scale_up": not t}
            for t, name in enumerate(tiers)
        ],
        "nodes": [
            {"names": f"h{i}", "rack": rack, "gpus": count}
            for i, (rack, count) in enumerate(gpus)
        ],
        "budgets": [
            {"hosts": "h4,h3,h10", "replicas": 2},
            {"hosts": "h0,h4,h8,h7,h2,h11", "replicas": 4},
        ],
    }
    machine["tiers"][0]["size"] = 2
    wanted = {
        "format": "placer/job",
        "version": 1,
        "name": "pinned",
        "parallelism": {"pp": 4, "dp": 4, "order": "tp-cp-ep-pp-dp"},
        "launcher": {"ranks": "free"},
        "weights": {"pp": 3, "dp": 1},
        "rules": {
            "pin": [
                {"ranks": "11", "nodes": ["h3", "h5"]},
                {"ranks": "6,7,8", "nodes": ["h4", "h0", "h10", "h8", "h12"]},
            ],
            "avoid": ["h9", "h3", "h5", "h2", "h0", "h6"],
            "spares": {"cluster": 1},
        },
    }
    topology = parse_topology(json.dumps(machine), "machine.json")
    before = time.process_time()
    job = decode_job(document_of(wanted, "job.json"))
    placer.place(topology, job, time_limit=1.0)
    assert time.process_time() - before < 10
