"""The pieces of a repair: covers, rooms, seats, moves at a price, and walks."""

import random
import sys
from dataclasses import replace

import numpy as np
import pytest

import placer
from placer.placement.build import build_plan
from placer.placement.placement import Placement
from placer.placement.previous import PreviousPlan
from placer.solve.problem.compiled import Problem
from placer.solve.rearrange.failure import mended
from placer.solve.rearrange.homeward import Homeward
from placer.solve.replace import Required, replaced
from placer.solve.run.budget import Budget
from placer.testing import job, racks
from tests.solve.random_cases import random_job, random_machine
from tests.solve.rearrange.test_align import failure, machine

MAJOR = "tp-cp-ep-pp-dp"


@pytest.mark.parametrize("spares", [0, 1])
def test_a_required_group_leaves_as_a_whole(spares):
    """Without a spare tray the whole pipeline of a rack must go, as the bound says."""
    topology = machine([("b0", [2] * (2 + spares)), ("b0", [2, 2]), ("b1", [2, 2])])
    require, weights = {"tp": "node", "pp": "rack"}, {"pp": 3, "dp": 1}
    work = job(tp=2, pp=2, dp=2, order=MAJOR, weights=weights, require=require)
    nodes = [0, 1, 2 + spares, 3 + spares]
    seats = topology.first_gpu_of_node[nodes]
    plan = build_plan(topology, work, Placement((seats[:, None] + [0, 1]).ravel()))
    left = topology.select(np.arange(1, topology.num_nodes))
    after = failure(plan, left, work)
    assert after.fewest_moves().moves == (2 if spares else 4)
    assert after.most_damaged(1, 1) == [0]
    found = mended(after)
    assert found is not None
    assert after.before.moved(found) == (2 if spares else 4)


def test_pinned_ranks_do_not_move_for_others():
    """Walks leave a pipeline with a pinned rank where it is."""
    topology = machine([("b0", [2] * 4), ("b1", [2] * 5)])
    tiers = zip(topology.tiers, (1.0, 1.0, 20.0, 20.0), strict=True)
    far = tuple(replace(tier, distance=d) for tier, d in tiers)
    topology = replace(topology, tiers=far)
    pins = {"pin": [{"ranks": "6-7", "nodes": topology.node_names[3]}]}
    work = job(tp=2, pp=4, order=MAJOR, weights={"pp": 1}, rules=pins)
    plan = build_plan(topology, work, Placement(np.arange(8)))
    left = topology.select(np.arange(1, topology.num_nodes))
    problem, before = Problem.of(left, work), PreviousPlan(plan, left)
    found = replaced(problem, before, Required(0.0), Budget(60.0))
    node = left.node_of_gpu[found.chosen.gpu_of_rank]
    assert left.node_names[node[6]] == topology.node_names[3]
    assert found.chosen.moves <= 6


def test_a_host_that_lost_gpus_is_where_the_machine_has_it():
    """Whatever the plan calls its rack, the first host of all too."""
    topology = machine([("b0", [2, 2]), ("b1", [2, 2])])
    work = job(tp=2, dp=4, weights={"dp": 1})
    plan = build_plan(topology, work, Placement(np.arange(8)))
    plan = replace(plan, domains=plan.domains | {"rack": ("x", "x", "y", "y")})
    left = machine([("b0", [1, 2]), ("b1", [2, 2])])
    before = PreviousPlan(plan, left).seats(work)
    assert [(lost.ranks.tolist(), lost.number) for lost in before.lost] == [([0, 1], 0)]
    assert (before.domain[1] == left.domain_of_node[1].repeat(2)).all()


def test_free_ranks_on_nodes_of_odd_sizes():
    """tp groups in parts are no runs of nodes: walks over such corrupted memory."""
    rng = random.Random(1043)
    world = rng.choice((6, 8, 8, 12, 12, 16, 24))
    gpus, nodes = world + rng.choice((4, 6, 8)), rng.choice((6, 8, 12))
    machine = random_machine(rng, gpus, nodes, (1, 2, 3, 4))
    work = replace(random_job(rng, world, machine, "hop-cost"), launcher="free")
    at = np.array([1, 11, 2, 12, 3, 13, 4, 15, 5, 16, 6, 17])
    previous = build_plan(machine, work, Placement(at))
    left = machine.select(np.array([n for n in range(8) if n not in (6, 2)]))
    problem = Problem.of(left, work, "hop-cost")
    before = PreviousPlan(previous, left)
    found = replaced(problem, before, Required(1.0, None, 0.0), Budget(3.0))
    assert problem.allows(found.chosen.gpu_of_rank)


def test_without_the_compiled_part(monkeypatch):
    """A repair is the mended plan or a fresh one, and no error."""
    machine = racks([3, 3])
    weights = {"tp": 8, "dp": 1}
    work = job(tp=2, dp=6, launcher="free", weights=weights)
    plan = placer.place(machine, work, time_limit=1).plan
    monkeypatch.setitem(sys.modules, "placer.solve.score._kernel", None)
    monkeypatch.setattr(Homeward, "walk", lambda *_: pytest.fail("nothing to walk on"))
    failed = [plan.nodes[0]]
    found = placer.replace(plan, machine, work, failed=failed, time_limit=1)
    assert plan.nodes[0] not in found.plan.nodes


def test_walks_that_the_clock_ended_are_told():
    """A limit may find another repair on another day, so the plan says that it cut."""
    machine = racks([6, 6, 6])
    weights = {"tp": 8, "cp": 3, "dp": 1}
    work = job(tp=2, cp=2, dp=12, launcher="free", weights=weights)
    plan = build_plan(machine, work, Placement(np.arange(48)))
    left = machine.select(np.array([n for n in range(18) if n not in (0, 7, 9)]))
    problem = Problem.of(left, work, "hop-cost")
    terms, before = Required(0.3, None, 150.0), PreviousPlan(plan, left)
    found = replaced(problem, before, terms, Budget(0.0))
    assert not found.solution.deterministic
