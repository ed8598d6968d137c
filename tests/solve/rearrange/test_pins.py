"""Pinned ranks are brought to their hosts in placements found without pins."""

import placer
from placer.job.axes import Parallelism
from placer.job.model import Job
from placer.job.rules import Pin, Rules
from placer.placement.check import violations


def placed(machine, job, pins):
    rules = Rules(pin=tuple(Pin((rank,), (host,)) for rank, host in pins.items()))
    plan = placer.place(machine, job, rules=rules, time_limit=5).plan
    assert {rank: plan.host_of_rank[rank] for rank in pins} == pins
    assert violations(plan, placer.read_topology(machine), job) == []
    return plan


def test_replicas_change_places_where_turning_their_ring_is_not_enough():
    """Four pinned ranks of a full machine go home, each pipeline in one rack."""
    axes, weights = Parallelism(pp=4, dp=72), {"pp": 10, "dp": 1}
    require = {"pp": "rack"}
    job = Job("j", axes, weights=weights, require=require, launcher="free", sha256="j")
    pins = {30: "r2-n1", 17: "r2-n3", 101: "r1-n1", 200: "r8-n2"}
    placed("rack:8 node:9 gpu:4", job, pins)


def test_pairs_change_places_and_stay_pairs():
    """Pins cost no pair of tensor parallel ranks its host."""
    axes, weights = Parallelism(tp=2, dp=12, etp=2), {"tp": 100, "dp": 1}
    job = Job("j", axes, weights=weights, launcher="free", sha256="j")
    plan = placed("rack:3 node:4 gpu:2", job, {2: "r1-n1", 6: "r3-n2", 16: "r1-n4"})
    hosts = plan.host_of_rank
    assert hosts[::2] == hosts[1::2]
