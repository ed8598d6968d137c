"""Placements that break rules are walked to where none is broken."""

import sys
from unittest.mock import patch

import pytest

import placer
from placer.base.errors import InfeasibleError
from placer.job.axes import Parallelism
from placer.job.model import Job
from placer.job.rules import Pin, Rules
from placer.placement.check import violations
from placer.solve.problem.compiled import Problem
from placer.solve.rules import search as under_rules
from placer.solve.rules.seats import Seating
from placer.solve.score import is_built
from placer.solve.score.slots import Sites
from tests.solve.random_cases import machine_of
from tests.solve.rules.draws import ruled_case
from tests.solve.solving import solve

compiled = pytest.mark.skipif(not is_built(), reason="the compiled part is not built")


@pytest.fixture(autouse=True, params=[pytest.param("", marks=compiled), "in full"])
def walks(request, monkeypatch):
    """Walks of the compiled annealer, and those that nothing was compiled for."""
    if request.param:
        monkeypatch.setitem(sys.modules, "placer.solve.score._kernel", None)


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


TWO = Pin((5,), ("r3-n2",)), Pin((77,), ("r1-n4",))
ONE = (Pin((200,), ("r1-n1", "r2-n3")),)


@pytest.mark.parametrize(
    ("launcher", "rules"),
    [
        ("free", Rules(TWO, at_most={"rack": 12})),
        ("node-contiguous", Rules(ONE, spares={"rack": 1})),
        ("free", Rules(avoid=("r1-n1", "r2-n4"), at_most={"rack": 13})),
    ],
)
def test_rules_of_every_kind_are_repaired(launcher, rules):
    """Without any program that seats ranks, on more ranks than it would."""
    axes, weights = Parallelism(tp=2, pp=2, dp=52), {"tp": 100, "pp": 10, "dp": 1}
    job = Job("j", axes, weights=weights, launcher=launcher, sha256="j")
    with patch.object(under_rules, "seat", return_value=Seating()):
        plan = placer.place("rack:5 node:8 gpu:8", job, rules=rules, time_limit=9).plan
    assert violations(plan, placer.read_topology("rack:5 node:8 gpu:8"), job) == []
    assert plan.rules.get("avoided_nodes", []) == []


@pytest.mark.parametrize(
    "rules", [Rules((Pin((150,), ("n13",)),)), Rules(spares={"rack": 1})]
)
def test_runs_on_nodes_of_several_sizes_are_repaired(rules):
    """Each rank has its turn: what a node holds depends on those before it."""
    tiers = placer.read_topology("rack:4 node:24 gpu:4").tiers
    racks = [node // 24 for node in range(96)]
    machine = machine_of([4, 3] * 48, [racks, [0] * 96], tiers)
    axes, weights = Parallelism(pp=2, dp=125), {"pp": 10, "dp": 1}
    job = Job("j", axes, weights=weights, launcher="node-contiguous", sha256="j")
    with patch.object(under_rules, "seat", return_value=Seating()):
        plan = placer.place(machine, job, rules=rules, effort="quick").plan
    assert violations(plan, machine, job) == []


def test_gpus_that_are_all_in_one_scale_up_domain():
    """Walks know a tier outside their cells: they once wrote where nothing is."""
    topology, job = ruled_case(31, "time", "runs")
    sites = Sites.of_time(Problem.of(topology, job).model.fabric)
    assert len(sites.tiers) == len(sites.child) > sites.scale_up + 1
    with pytest.raises(InfeasibleError, match="at most 8 replicas in a block"):
        solve(topology, job, objective="time")
