"""Seats of ranks under rules: found where there are some, and within the time."""

import time

import placer
from placer.documents import document_of
from placer.job.read import decode_job
from placer.topology.read import decode_topology
from tests.texts import content


def test_fewest_hosts_to_avoid_are_not_waited_for():
    """So few that no fewer will do took 54 s to prove, whatever the time limit."""
    found = content("solve/few_to_avoid.yaml")
    topology = decode_topology(document_of(found["machine"], "machine.json"))
    before = time.process_time()
    job = decode_job(document_of(found["job"], "job.json"))
    placer.place(topology, job, time_limit=1.0)
    assert time.process_time() - before < 10
