"""Small machines: the cost is the least over all sets of nodes, and bounds hold."""

import random
from collections import namedtuple
from dataclasses import replace
from itertools import combinations, product
from math import inf

import numpy as np
import pytest

from placer.allocate import offers
from placer.allocate.shared import left_by, use_of
from placer.api.allocate import allocate
from placer.base.budget import HostBudget
from placer.base.errors import InfeasibleError
from placer.base.hostlist import expand
from placer.cost import JITTER
from placer.job.axes import Parallelism
from placer.job.model import Job
from placer.placement.placement import Placement
from placer.solve.problem.compiled import Problem
from placer.testing import racks
from tests.marks import slow
from tests.solve.oracle import hop_cost, legal_placements, step_time
from tests.solve.random_cases import random_job, random_machine

ROUNDING = 1e-9
COSTS = {"time": step_time, "hop-cost": hop_cost}
CHUNK = 5
NAMES = "one", "two"


def case(seed, objective, count):
    """A machine whose uplinks carry all, and jobs for it."""
    rng = random.Random(f"allocation {seed} {objective} {count}")
    worlds = [rng.randint(2, 4 if count == 1 else 3) for _ in range(count)]
    machine = random_machine(rng, sum(worlds) + rng.randint(0, 2), 6, (1, 2, 2, 3))
    tiers = tuple(replace(tier, oversubscription=1.0) for tier in machine.tiers)
    machine = replace(machine, tiers=tiers)
    return machine, named(random_job(rng, n, machine, objective) for n in worlds)


def named(jobs):
    """The jobs, told apart."""
    return [replace(job, name=name) for job, name in zip(jobs, NAMES, strict=False)]


def with_budgets(seed, _objective, count):
    """Rings of a few ranks, and limits on what some hosts of either rack run."""
    rng = random.Random(f"budgets {seed}")
    sizes = {name: [rng.choice((1, 1, 2)) for _ in range(2)] for name in "ab"}
    machine = racks(sizes, gpus=2, joined=False)
    budgets = []
    for kind in rng.choice((["gpus"], ["replicas"], ["gpus", "replicas"])):
        hosts = sorted(rng.sample([*machine.node_names], rng.randint(1, 3)))
        most = {kind: rng.randint(1, 3)}
        budgets.append(HostBudget(",".join(hosts), frozenset(hosts), **most))
    worlds = [rng.randint(1, 3) for _ in range(count)]
    ring = Job("j", Parallelism(), weights={"dp": 1.0}, launcher="free")
    rings = named(replace(ring, parallelism=Parallelism(dp=n)) for n in worlds)
    return replace(machine, budgets=tuple(budgets)), rings


DRAWS = {"plain": case, "budgets": with_budgets}


def least_by_nodes(machine, job, objective):
    """The least cost of a job on every set of nodes, as bits, and ranks of budgets."""
    legal = legal_placements(machine, job)
    cost = COSTS[objective]
    known = {}
    found = {}
    for nodes in legal:
        key = looks(machine, nodes)
        if key not in known:
            known[key] = cost(machine, job, nodes)
        names = [machine.node_names[node] for node in nodes]
        held = tuple(sum(n in b.names for n in names) for b in machine.budgets)
        at = sum(1 << node for node in set(nodes)), held
        found[at] = min(found.get(at, inf), known[key])
    return found


def looks(machine, nodes):
    """All that a cost may look at: which domains ranks share, and what these are."""
    key = [machine.bandwidth_factor[node] for node in nodes]
    for row in machine.domain_of_node:
        gpus = np.bincount(row, machine.gpus_of_node)
        first = {}
        key += [first.setdefault(int(row[node]), len(first)) for node in nodes]
        key += [int(gpus[row[node]]) for node in nodes]
    return tuple(key)


def least_sum(machine, tables, weights):
    """The least weighted sum over disjoint sets of nodes that keep budgets.

    Where there are budgets every rank is a replica, so both limits count ranks.
    """
    best = inf
    for chosen in product(*(table.items() for table in tables)):
        sets = [own for (own, _), _ in chosen]
        together = zip(machine.budgets, *(held for (_, held), _ in chosen), strict=True)
        if all(a & b == 0 for a, b in combinations(sets, 2)) and all(
            sum(held) <= (budget.gpus if budget.replicas is None else budget.replicas)
            for budget, *held in together
        ):
            costs = zip(weights, chosen, strict=True)
            best = min(best, sum(weight * cost for weight, (_, cost) in costs))
    return best


def compare(what, seed, objective, count):
    machine, jobs = DRAWS[what](seed, objective, count)
    weights = [1.0, random.Random(seed).choice((1.0, 0.5, 3.0))][:count]
    tables = [least_by_nodes(machine, job, objective) for job in jobs]
    best = least_sum(machine, tables, weights)
    text = f"{what} {objective} {seed} {count}"
    given = dict(zip(NAMES, weights, strict=False))
    if best == inf:
        with pytest.raises(InfeasibleError):
            allocate(machine, jobs, weights=given, objective=objective)
        return
    found = allocate(machine, jobs, weights=given, objective=objective)
    more = JITTER if objective == "time" else ROUNDING
    assert best * (1 - ROUNDING) <= found.cost <= best * (1 + more) + 1e-15, text
    is_least = found.cost == pytest.approx(best, rel=ROUNDING, abs=1e-15)
    assert (found.status == "optimal") == is_least, text
    assert found.lower_bound <= best * (1 + ROUNDING), text
    hosts = [host for job in found.jobs for host in expand(job.hosts)]
    assert len(hosts) == len(set(hosts)), text
    for job, table in zip(found.jobs, tables, strict=True):
        assert job.lower_bound <= min(table.values()) * (1 + ROUNDING), text
        mask = sum(1 << machine.node_names.index(h) for h in expand(job.hosts))
        inside = [cost for (own, _), cost in table.items() if own & ~mask == 0]
        assert machine.budgets or job.value == pytest.approx(
            min(inside), rel=ROUNDING, abs=1e-15
        ), text
    if count == 1 and objective == "time" and found.jobs[0].tier:
        tier = machine.tier_index(found.jobs[0].tier)
        near = [
            own for (own, _), cost in tables[0].items() if cost <= best * (1 + more)
        ]
        fewest = min(len(leaves(machine, own, tier)) for own in near)
        assert len(found.jobs[0].nodes_by_domain) == fewest, text


def leaves(machine, mask, tier):
    """Domains of a tier that a set of nodes touches."""
    row = machine.domain_of_node[tier].tolist()
    return {domain for node, domain in enumerate(row) if mask >> node & 1}


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("first", [CHUNK, *slow([0, *range(2 * CHUNK, 75, CHUNK)])])
@pytest.mark.parametrize("objective", ["time", "hop-cost"])
def test_small_machines(first, count, objective):
    """One job or two get the best of all sets of nodes; no bound is above it.

    Where steps cannot be told apart a job gets the fewest leaves.
    """
    for seed in range(first, first + CHUNK):
        compare("plain", seed, objective, count)


@pytest.mark.parametrize("first", [0, CHUNK, *slow(range(2 * CHUNK, 40, CHUNK))])
def test_budgets_across_racks(first):
    """The least of all that keeps what is allowed to two jobs together, proved."""
    for seed in range(first, first + CHUNK):
        compare("budgets", seed, "hop-cost", 2)


def test_a_part_on_which_nothing_was_found_is_no_proof(monkeypatch):
    """Where searches fail now and then, no bound is above the best there is."""
    solved = offers.solve_orders

    def sometimes(problem, *others):
        machine = problem.machine
        drawn = random.Random(f"{machine.host_names} {problem.job.world_size}")
        if machine.num_nodes < whole and drawn.random() < 0.7:
            raise InfeasibleError("none was found", is_proved=False)
        return solved(problem, *others)

    monkeypatch.setattr(offers, "solve_orders", sometimes)
    answered = 0
    for seed in range(25):
        machine, jobs = case(seed, "hop-cost", 2)
        whole = machine.num_nodes
        tables = [least_by_nodes(machine, job, "hop-cost") for job in jobs]
        try:
            found = allocate(machine, jobs, objective="hop-cost")
        except InfeasibleError:
            continue
        answered += 1
        best = least_sum(machine, tables, [1.0, 1.0])
        assert found.lower_bound <= best * (1 + ROUNDING), seed
    assert answered


# Jobs that meet on uplinks, against all pairs of placements.


Placed = namedtuple("Placed", "nodes placement use")


def on_thin_uplinks(seed):
    """Two jobs on a machine some of whose uplinks are narrow."""
    rng = random.Random(f"shared {seed}")
    worlds = [rng.randint(2, 3) for _ in range(2)]
    machine = random_machine(rng, sum(worlds) + rng.randint(0, 2), 6, (1, 2, 2, 3))
    tiers = [machine.tiers[0]] + [
        replace(tier, oversubscription=rng.choice((1.0, 2.0, 4.0, 8.0)))
        for tier in machine.tiers[1:]
    ]
    machine = replace(machine, tiers=tuple(tiers))
    return machine, named(random_job(rng, n, machine, "time") for n in worlds)


def placements(machine, job):
    found = []
    for nodes in dict.fromkeys(map(tuple, legal_placements(machine, job))):
        placement = Placement.on_nodes(machine, np.array(nodes))
        found.append(Placed(nodes, placement, use_of(machine, job, placement)))
    return found


def least_of_pairs(machine, jobs):
    """The least sum of both steps over all pairs of placements on different nodes."""
    known = {}

    def value(job, placed, other):
        share = left_by([other.use])
        assert share is not None
        key = job.name, placed.nodes, *(one.tobytes() for one in share)
        if key not in known:
            beside = replace(machine, uplink_share=share)
            goal = Problem.of(beside, job, "time").goal
            known[key] = float(goal.value(placed.placement.gpu_of_rank))
        return known[key]

    ones, twos = (placements(machine, job) for job in jobs)
    return min(
        (
            value(jobs[0], one, two) + value(jobs[1], two, one)
            for one in ones
            for two in twos
            if not set(one.nodes) & set(two.nodes)
        ),
        default=inf,
    )


@pytest.mark.parametrize("seed", [0, *slow([42, 163, *range(1, 9)])])
def test_two_jobs_on_thin_uplinks_against_all_pairs(seed):
    """They cost the least of all pairs; no bound is above it."""
    machine, jobs = on_thin_uplinks(seed)
    best = least_of_pairs(machine, jobs)
    if best == inf:
        with pytest.raises(InfeasibleError):
            allocate(machine, jobs, objective="time")
        return
    found = allocate(machine, jobs, objective="time")
    assert found.cost == pytest.approx(best, rel=ROUNDING)
    assert found.lower_bound <= best * (1 + ROUNDING)
    is_reached = found.lower_bound == pytest.approx(best, rel=ROUNDING)
    assert (found.status == "optimal") == is_reached
