"""Seats of ranks under rules: found where there are some, and within the time."""

import time
from itertools import islice

import pytest

import placer
from placer.documents import document_of
from placer.job.read import decode_job
from placer.placement.check import violations
from placer.placement.placement import Placement
from placer.solve.exact.seats import seat
from placer.solve.problem.launch import launched
from placer.solve.problem.rules import Limits
from placer.topology.read import decode_topology
from tests.marks import slow
from tests.solve.attacked_cases import drawn
from tests.solve.every_placement import every_legal
from tests.texts import content


def ruled_islands(first):
    """Cases of hosts with islands under rules, from number ``first`` on."""
    seed = first
    while True:
        case = drawn(seed)
        if case.sort == "islands" and case.job.rules:
            yield case
        seed += 1


@pytest.mark.parametrize("first", [700_000, *slow(range(710_000, 790_000, 10_000))])
def test_hosts_of_islands(first):
    """There are seats where some placement keeps the rules, and they keep them."""
    for case in islice(ruled_islands(first), 8):
        machine = case.topology.by_island
        if case.job.world_size > machine.num_gpus:
            continue
        seating = seat(Limits.of(machine, case.job))
        assert seating is not None
        assert seating.proved
        legal = every_legal(case.topology, case.job)
        assert (seating.node_of_rank is not None) == bool(len(legal)), case
        if seating.node_of_rank is not None:
            placement = Placement(launched(machine, seating.node_of_rank))
            assert not violations(placement, case.topology, case.job)


def test_fewest_hosts_to_avoid_are_not_waited_for():
    """So few that no fewer will do took 54 s to prove, whatever the time limit."""
    found = content("solve/few_to_avoid.yaml")
    topology = decode_topology(document_of(found["machine"], "machine.json"))
    before = time.process_time()
    job = decode_job(document_of(found["job"], "job.json"))
    placer.place(topology, job, time_limit=1.0)
    assert time.process_time() - before < 10
