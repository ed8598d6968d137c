"""An attack on certificates: tiny cases of every sort against all their placements.

``python -m tests.solve.attack FIRST LAST`` draws a machine, a job and an objective for
each number: islands, rails, thin uplinks, lost nodes and uneven racks; experts, long
pipelines, groups and traffic of the user's own, requirements, rules and both launchers.
Every placement that keeps the rules is priced by plain loops. A bound above the least
cost is false, and so is "optimal" for anything dearer.
"""

from __future__ import annotations

import itertools
import json
import random
import sys
from collections import Counter
from dataclasses import dataclass, replace
from math import perm
from typing import TYPE_CHECKING

import numpy as np

from placer.base.errors import InfeasibleError, InputError
from placer.job.rules import Rules
from placer.job.traffic import RankTraffic
from placer.placement.check import violations
from placer.placement.placement import Placement
from placer.solve.bounds.certificate import lower_bound
from placer.solve.problem.compiled import Problem
from placer.topology.model import Tier
from placer.topology.read import parse_topology
from tests.cost.reference import reference_seconds
from tests.solve.oracle import distinct, gpus_of, hop_cost
from tests.solve.random_cases import (
    machine_of,
    random_job,
    random_machine,
)
from tests.solve.rules.rules_oracle import allowed_placements, avoided, random_rules
from tests.solve.solving import solve

if TYPE_CHECKING:
    from placer.job.model import Job
    from placer.topology.model import Topology

ROUNDING = 1e-9
MOST_RANKS = 6
MOST_LISTED = 2_500  # ways to seat a job; larger cases are drawn again
MOST_PRICED = {"time": 150, "hop-cost": 2_500}
SIZES = (
    (2, 3, (1, 2)),
    (3, 4, (1, 2)),
    (4, 4, (1, 2, 3)),
    (5, 3, (2, 3)),
    (6, 3, (2, 4)),
)


@dataclass(frozen=True)
class Case:
    """What is placed on what.

    Attributes
    ----------
    sort : str
        Of the machine.
    topology : Topology
    job : Job
    objective : str
    """

    sort: str
    topology: Topology
    job: Job
    objective: str


def drawn(seed):
    """Case number ``seed``."""
    rng = random.Random(f"attack {seed}")
    sort = rng.choice(list(MACHINES))
    objective = rng.choice(("time", "hop-cost"))
    while True:
        topology, world = MACHINES[sort](rng)
        if world > topology.num_gpus or not _is_listed(topology, world):
            continue
        job = _job(rng, topology, world, objective)
        if objective == "hop-cost" or job.model or job.groups or job.traffic:
            return Case(sort, topology, job, objective)


def _is_listed(topology, world):
    gpus = topology.num_gpus
    if _gpus_differ(topology):
        return perm(gpus, world) <= MOST_LISTED
    return bool(topology.num_nodes**world <= MOST_LISTED)


def _gpus_differ(topology):
    """Whether a placement is more than the node of every rank."""
    return topology.islands is not None or any(tier.rails for tier in topology.tiers)


def _plain(rng):
    world, most_nodes, node_sizes = rng.choice(SIZES)
    spare = rng.choice((0, 0, 1, 2))
    return random_machine(rng, world + spare, most_nodes, node_sizes), world


def _thin(rng):
    """NVLink nodes, even or not, behind one to three tiers of thin uplinks."""
    gpus = [rng.choice((1, 2, 2, 3)) for _ in range(rng.choice((2, 3, 4)))]
    rows = [[0] * len(gpus)]
    for _ in range(rng.choice((0, 1, 1, 2))):
        rows.insert(0, [n // 2 for n in range(len(gpus))])
    rows = rows[-3:]
    nvlink = rng.choice((0, 1, 1, 1, 2))
    slow = rng.choice((50e9, 10e9))
    tiers = [Tier("node", 400e9, 1e-6, nvlink > 0, 1.0, 1.0, 1.0)]
    for t in range(len(rows)):
        thin = float(rng.choice((1, 2, 4, 8)))
        inside = t + 1 < nvlink
        rate = 400e9 if inside else slow
        name = ("rack", "block", "cluster")[t - len(rows)]
        tiers.append(Tier(name, rate, 5e-6 + t * 1e-6, inside, thin, 1.0, 9.0 + t))
    used = rng.choice((0, 0, 0, 1))
    return machine_of(gpus, rows, tiers), min(sum(gpus) - used, MOST_RANKS)


def _down(rng):
    """A machine of which some nodes are lost, and their uplinks are not."""
    topology, world = _thin(rng)
    left = topology.num_nodes - 1
    kept = sorted(rng.sample(range(topology.num_nodes), rng.randint(1, left)))
    machine = topology.select(np.array(kept))
    return machine, min(world, machine.num_gpus)


def _racks(rng):
    """Uneven racks of single GPUs."""
    sizes = [rng.randint(1, 3) for _ in range(rng.choice((2, 2, 3)))]
    across = rng.choice((5e-7, 2e-6, 1e-3))
    tiers = [
        Tier(name, 50e9, 1e-6 + (t > 1) * across, False, thin, 1.0, 1.0 + t)
        for t, (name, thin) in enumerate(
            (("node", 1.0), ("rack", 1.0), ("cluster", rng.choice((1.0, 4.0))))
        )
    ]
    rack = [r for r, size in enumerate(sizes) for _ in range(size)]
    gpus = [1] * len(rack)
    return machine_of(gpus, [rack, [0] * len(rack)], tiers), rng.randint(2, len(rack))


def _rails(rng):
    """NVLink nodes with a switch a rail."""
    topology, _ = _thin(rng)
    inside = topology.scale_up_tier + 1
    tiers = [
        replace(tier, rails=0 < inside <= t and rng.random() < 0.6)
        for t, tier in enumerate(topology.tiers)
    ]
    return replace(topology, tiers=tuple(tiers)), rng.randint(2, 4)


def hosts_of_islands(rng):
    """Hosts of two islands of one or two GPUs, some of them missing."""
    size = rng.choice((1, 1, 2))
    gpus = [*range(2 * size)]
    if rng.random() < 0.4:
        rng.shuffle(gpus)
    fast = rng.random() < 0.6
    inside = fast and rng.random() < 0.5
    tiers = [
        {"name": "island", "size": size, "scale_up": fast, "bandwidth": 200e9},
        {"name": "node", "size": 2, "scale_up": inside, "bandwidth": 50e9},
        {"name": "cluster", "bandwidth": rng.choice((10e9, 25e9))},
    ]
    tiers[0]["members"] = [sorted(gpus[:size]), sorted(gpus[size:])]
    tiers[2]["oversubscription"] = rng.choice((1, 2, 4))
    tiers[2]["rails"] = fast and rng.random() < 0.3
    for t, tier in enumerate(tiers):
        tier |= {"latency": 1e-6 + 2e-6 * t, "distance": (1, 3, 9)[t]}
    nodes = [
        {"names": f"h{host}", "gpus": [size - (rng.random() < 0.3), size]}
        for host in range(3 if size == 1 else 2)
    ]
    head = {"format": "placer/topology", "version": 1, "name": "islands"}
    machine = json.dumps({**head, "tiers": tiers, "nodes": nodes})
    return parse_topology(machine, "islands.json"), rng.randint(2, 4)


MACHINES = {
    "plain": _plain,
    "thin": _thin,
    "down": _down,
    "racks": _racks,
    "rails": _rails,
    "islands": hosts_of_islands,
}


def _job(rng, topology, world, objective):
    """A job of ``world`` ranks, its pipelines long at times."""
    seen = topology.by_island
    job = random_job(rng, world, seen, objective)
    if job.parallelism.pp > 1 and rng.random() < 0.2:
        rounds = job.parallelism.pp * rng.randint(5, 12)
        job = replace(job, micro_batches=rounds)
    if objective == "time" and world > 1 and rng.random() < 0.2:
        kept = job.model if rng.random() < 0.5 else None
        job = replace(job, model=kept, traffic=_traffic(rng, world))
    if rng.random() < 0.35:
        job = replace(job, rules=random_rules(rng, topology, job))
    return job


def _traffic(rng, world):
    """Flows between some pairs of ranks."""
    pairs = list(itertools.permutations(range(world), 2))
    chosen = np.array(sorted(rng.sample(pairs, rng.randint(1, len(pairs)))))
    sizes = np.array([rng.choice((1e6, 1e7, 1e8)) for _ in chosen])
    return RankTraffic(chosen[:, 0], chosen[:, 1], sizes, rng.random() < 0.3)


def legal(case):
    """GPU of every rank in each sort of placement that keeps the rules."""
    topology, job = case.topology, case.job
    if not _gpus_differ(topology):
        nodes = distinct(topology, allowed_placements(topology, job))
        return [gpus_of(topology, one) for one in nodes]
    found = [
        list(gpus)
        for gpus in itertools.permutations(range(topology.num_gpus), job.world_size)
        if not violations(Placement(np.array(gpus)), topology, job)
    ]
    nodes_of = topology.node_of_gpu
    used = [avoided(topology, job.rules, tuple(nodes_of[gpus])) for gpus in found]
    return [gpus for gpus, u in zip(found, used, strict=True) if u == min(used)]


def price(case, gpus):
    """Cost of a placement, by plain loops."""
    topology = case.topology.by_island
    if case.objective == "hop-cost":
        return hop_cost(topology, case.job, tuple(topology.node_of_gpu[gpus].tolist()))
    return reference_seconds(topology, case.job, gpus)


def faults(case, counts):
    """What is false about the certificates of a case."""
    topology, job = case.topology, case.job
    try:
        problem = Problem.of(topology, job, case.objective)
    except InputError:
        counts["refused"] += 1
        return
    placements = legal(case)
    if len(placements) > MOST_PRICED[case.objective]:
        counts["too many"] += 1
        return
    try:
        found = solve(topology, job, objective=case.objective, time_limit=5.0)
    except InfeasibleError:
        counts["infeasible"] += 1
        if placements:
            yield "said infeasible, is not"
        return
    if not placements:
        yield "placed against the rules"
        return
    least = min(price(case, gpus) for gpus in placements)
    counts[f"{case.sort} {case.objective}"] += 1
    counts[f"status {found.status}"] += 1
    counts["not the least"] += found.value > least * (1 + ROUNDING)
    counts["with rules"] += job.rules != Rules()
    counts["with traffic or groups"] += bool(job.groups or job.traffic)
    counts[job.launcher] += 1
    yield from violations(found.placement, topology, job)
    yield from _false_values(case, found, least)
    for block in {1, problem.forced_block}:
        bound, argument = lower_bound(problem, block)
        if bound > least * (1 + ROUNDING):
            yield f"bound {bound} for blocks of {block}, there is {least}: {argument}"


def _false_values(case, found, least):
    """What a solution says that the least cost of all placements does not bear out."""
    priced = price(case, found.placement.gpu_of_rank.tolist())
    if abs(found.value - priced) > ROUNDING * priced:
        yield f"value {found.value}, which costs {priced}"
    if found.value < least * (1 - ROUNDING):
        yield f"value {found.value} below the least of all, {least}"
    if found.status == "optimal" and found.value > least * (1 + ROUNDING):
        yield f"optimal {found.value}, there is {least}"
    if found.lower_bound > least * (1 + ROUNDING):
        yield f"bound {found.lower_bound}, there is {least}: {found.argument}"


def attack(first, last):
    """Counts of the cases ``first`` to ``last - 1``, and what is false about them."""
    counts = Counter()
    false = []
    for seed in range(first, last):
        false += [f"{seed}: {fault}" for fault in faults(drawn(seed), counts)]
    return counts, false


if __name__ == "__main__":
    begin, end = (int(text) for text in sys.argv[1:])
    for start in range(begin, end, 100):
        totals, wrong = attack(start, min(start + 100, end))
        print(start, *wrong, dict(sorted(totals.items())), sep="\n  ", flush=True)
