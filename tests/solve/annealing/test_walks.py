"""Walks of units and of runs: legal, priced right, and never worse than their start."""

import random
from dataclasses import replace
from itertools import count, permutations

import numpy as np
import pytest

from placer.base.budget import HostBudget
from placer.job.rules import Pin, Rules
from placer.solve.annealing.runs import Runs
from placer.solve.annealing.units import Units
from placer.solve.annealing.walks import PricedInFull, Walk
from placer.solve.construct.fills import starts
from placer.solve.problem.compiled import Problem
from placer.solve.run.budget import Budget
from placer.solve.score import is_built
from placer.testing import job
from placer.topology.submachine import Submachine
from tests.solve.attacked_cases import hosts_of_islands
from tests.solve.machines import fragmented, matching_job

pytestmark = pytest.mark.skipif(not is_built(), reason="the compiled part is not built")


def just_kept(rng, machine, job, node_of_rank):
    """Rules of every sort, as strict as a placement lets them be."""
    rack, replica = machine.domain_of_node[1], job.parallelism.coordinates["dp"]
    names, used = np.array(machine.node_names), np.unique(node_of_rank)
    pinned = rng.sample(range(job.world_size), 3)
    pins = tuple(Pin((r,), (names[node_of_rank[r]],)) for r in pinned)
    held = [len(set(replica[rack[node_of_rank] == r])) for r in range(max(rack) + 1)]
    free = np.bincount(rack) - np.bincount(rack[used], minlength=max(rack) + 1)
    spares = int(free[np.unique(rack[used])].min())
    some = rng.sample(range(len(names)), len(names) // 2)
    ranks = np.isin(node_of_rank, some)
    hosts = frozenset(names[some])
    return Rules(
        pins,
        at_most={"rack": max(held)},
        spares={"rack": spares} if spares else {},
        budgets=(
            HostBudget("some", hosts, gpus=int(ranks.sum())),
            HostBudget("some", hosts, replicas=len(set(replica[ranks]))),
        ),
    )


def with_rails(machine):
    """The machine with a switch a rail in its racks, where NVLink joins nodes alone."""
    node, rack, *rest = machine.tiers
    if rack.scale_up:
        return machine
    return replace(machine, tiers=(node, replace(rack, rails=True), *rest))


def begun(kind, objective, is_ruled):
    """Seeds, problems on fragmented machines, and a placement that just keeps rules.

    Of those without rules some have rails.
    """
    for seed in count():
        rng = random.Random(f"walk {seed}")
        whole = machine = fragmented(rng)
        if is_ruled:
            first = np.unique(machine.domain_of_node[1], return_index=True)[1]
            left_out = np.isin(np.arange(machine.num_nodes), first)
            used = Submachine.of(machine, ~left_out)
            machine = used.topology
        elif seed % 3 == 0:
            whole = machine = with_rails(machine)
        placed = matching_job(rng, machine, objective)
        if placed.world_size > machine.num_gpus:
            continue
        if kind is Runs:
            placed = replace(placed, launcher="node-contiguous")
        start = next(iter(starts(Problem.of(machine, placed, objective))))[1]
        if is_ruled:
            start = used.gpu_in_whole(start)
            rules = just_kept(rng, whole, placed, whole.node_of_gpu[start])
            placed = replace(placed, rules=rules)
        problem = Problem.of(whole, placed, objective)
        if problem.allows(start):
            yield seed, problem, start


@pytest.mark.parametrize("is_ruled", [False, True], ids=["free", "ruled"])
@pytest.mark.parametrize("objective", ["time", "hop-cost"])
@pytest.mark.parametrize("kind", [Units, Runs])
def test_a_walk_is_legal_and_costs_what_the_scorer_says(kind, objective, is_ruled):
    """The best after many changes, hot and cold: some are better, none worse."""
    gained = walked = 0
    for seed, problem, start in begun(kind, objective, is_ruled):
        units = Runs.on_nodes(problem) if kind is Runs else Units.of(problem, start)
        if units is None:
            continue
        try:
            walks = units.walks()
        except PricedInFull:
            continue
        slots = walks.units.slot_of_unit(start)
        if not problem.allows(walks.units.gpu_of_rank(slots)):
            continue
        before = walks.load(slots)
        for scale in (30.0, 1.0):
            walk = walks.walk(Walk(seed, scale, slots), 3_000, Budget(1e6))
            placed = walks.units.gpu_of_rank(walk.slots)
            assert walk.cost <= before
            assert problem.goal.value(placed) == pytest.approx(walk.cost, rel=1e-9)
            assert len(set(placed.tolist())) == problem.job.world_size
            assert problem.allows(placed)
            if kind is Units:  # and wherever they have got to
                now = walks.evaluator.slot_of_unit
                assert problem.allows(walks.units.gpu_of_rank(now))
            gained += walk.cost < before
        if (walked := walked + 1) == 6:
            break
    assert gained


def test_nodes_whose_islands_alternate_are_named_once():
    """What is compiled has a place for each node, and no more."""
    machine, _ = hosts_of_islands(random.Random(19))
    problem = Problem.of(machine, job(dp=4, weights={"dp": 1}), "hop-cost")
    runs = Runs.on_nodes(problem)
    assert runs is not None
    legal = [np.array(at) for at in permutations(range(machine.num_gpus), 4)]
    legal = [at for at in legal if problem.allows(at)]
    assert legal
    for at in legal:
        nodes, units = runs.slot_of_unit(at).T
        assert len(set(nodes.tolist())) == len(nodes)
        assert units.sum() * runs.size == 4
