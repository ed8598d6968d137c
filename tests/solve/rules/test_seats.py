"""Seats of ranks under rules: found where there are some, and within the time."""

import time

import pytest

import placer
from placer.documents import document_of
from placer.job.read import decode_job
from placer.topology.read import decode_topology
from tests.marks import slow
from tests.solve.attack import false_seats
from tests.solve.attacked_cases import Case
from tests.solve.every_placement import Sorts, every_legal
from tests.solve.rules.draws import ruled_case
from tests.texts import content


@pytest.mark.parametrize("first", [0, *slow(range(100, 1000, 100))])
def test_seats_keep_every_rule(first):
    """There are some where tiny jobs have a legal placement, and none elsewhere."""
    for seed in range(first, first + 100):
        topology, job = ruled_case(seed, "hop-cost", "small")
        placements = Sorts(topology).one_of_each(every_legal(topology, job))
        case = Case("small", topology, job, "hop-cost")
        assert [*false_seats(case, placements)] == [], seed


def test_fewest_hosts_to_avoid_are_not_waited_for():
    """So few that no fewer will do took 54 s to prove, whatever the time limit."""
    found = content("solve/few_to_avoid.yaml")
    topology = decode_topology(document_of(found["machine"], "machine.json"))
    before = time.process_time()
    job = decode_job(document_of(found["job"], "job.json"))
    placer.place(topology, job, time_limit=1.0)
    assert time.process_time() - before < 10
