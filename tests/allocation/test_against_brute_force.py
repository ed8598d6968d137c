"""Small machines: the cost is the least over all sets of nodes, and bounds hold."""

import random
from dataclasses import replace
from math import inf

import numpy as np
import pytest

from placer.allocation import offers
from placer.api.allocate import allocate
from placer.base.errors import InfeasibleError
from placer.base.hostlist import expand
from placer.cost import JITTER
from tests.marks import slow
from tests.solve.oracle import hop_cost, legal_placements, step_time
from tests.solve.random_cases import random_job, random_machine

ROUNDING = 1e-9
COSTS = {"time": step_time, "hop-cost": hop_cost}
CHUNK = 5


def case(seed, objective, count):
    """A machine whose uplinks carry all, and jobs for it."""
    rng = random.Random(f"allocation {seed} {objective} {count}")
    worlds = [rng.randint(2, 4 if count == 1 else 3) for _ in range(count)]
    machine = random_machine(rng, sum(worlds) + rng.randint(0, 2), 6, (1, 2, 2, 3))
    tiers = tuple(replace(tier, oversubscription=1.0) for tier in machine.tiers)
    machine = replace(machine, tiers=tiers)
    jobs = [random_job(rng, world, machine, objective) for world in worlds]
    return machine, jobs


def least_by_nodes(machine, job, objective):
    """The least cost of a job on every set of nodes, as bits; by its placements."""
    legal = legal_placements(machine, job)
    cost = COSTS[objective]
    known = {}
    found = {}
    for nodes in legal:
        key = looks(machine, nodes)
        if key not in known:
            known[key] = cost(machine, job, nodes)
        mask = sum(1 << node for node in set(nodes))
        found[mask] = min(found.get(mask, inf), known[key])
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


def least_sum(tables, weights):
    """The least weighted sum over disjoint sets of nodes."""
    if len(tables) == 1:
        return min((weights[0] * cost for cost in tables[0].values()), default=inf)
    return min(
        (
            weights[0] * one + weights[1] * other
            for a, one in tables[0].items()
            for b, other in tables[1].items()
            if not a & b
        ),
        default=inf,
    )


def compare(seed, objective, count):
    machine, jobs = case(seed, objective, count)
    names = ["one", "two"][:count]
    jobs = [replace(job, name=name) for job, name in zip(jobs, names, strict=True)]
    weights = [1.0, random.Random(seed).choice((1.0, 0.5, 3.0))][:count]
    tables = [least_by_nodes(machine, job, objective) for job in jobs]
    best = least_sum(tables, weights)
    text = f"{objective} {seed} {count}"
    given = dict(zip(names, weights, strict=True))
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
        inside = [cost for own, cost in table.items() if own & ~mask == 0]
        assert job.value == pytest.approx(min(inside), rel=ROUNDING, abs=1e-15), text
    if count == 1 and objective == "time" and found.jobs[0].tier:
        tier = machine.tier_index(found.jobs[0].tier)
        near = [own for own, cost in tables[0].items() if cost <= best * (1 + more)]
        fewest = min(len(leaves(machine, own, tier)) for own in near)
        assert len(found.jobs[0].nodes_by_domain) == fewest, text


def leaves(machine, mask, tier):
    """Domains of a tier that a set of nodes touches."""
    row = machine.domain_of_node[tier].tolist()
    return {domain for node, domain in enumerate(row) if mask >> node & 1}


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("first", [0, *slow(range(CHUNK, 75, CHUNK))])
@pytest.mark.parametrize("objective", ["time", "hop-cost"])
def test_small_machines(first, count, objective):
    """One job or two get the best of all sets of nodes; no bound is above it.

    Where steps cannot be told apart a job gets the fewest leaves.
    """
    for seed in range(first, first + CHUNK):
        compare(seed, objective, count)


def test_a_part_on_which_nothing_was_found_is_no_proof(
    monkeypatch,
):
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
        jobs = [replace(jobs[0], name="one"), replace(jobs[1], name="two")]
        tables = [least_by_nodes(machine, job, "hop-cost") for job in jobs]
        try:
            found = allocate(machine, jobs, objective="hop-cost")
        except InfeasibleError:
            continue
        answered += 1
        best = least_sum(tables, [1.0, 1.0])
        assert found.lower_bound <= best * (1 + ROUNDING), seed
    assert answered
