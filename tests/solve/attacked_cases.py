"""Tiny cases of every sort: a machine, a job and an objective for each number."""

import itertools
import json
import random
from collections import namedtuple
from dataclasses import replace
from math import perm

import numpy as np

from placer.job.even import even_key
from placer.job.rules import Rules
from placer.job.traffic import RankTraffic
from placer.topology.model import Tier
from placer.topology.read import parse_topology
from tests.cost.random_cases import unequal, with_other_work
from tests.solve.every_placement import gpus_differ
from tests.solve.random_cases import machine_of, random_job, random_machine
from tests.solve.random_workloads import random_workload
from tests.solve.rules.draws import random_budget, random_pins, random_rules

MOST_RANKS = 6
MOST_LISTED = 2_500  # ways to seat a job; larger cases are drawn again
SIZES = (
    (2, 3, (1, 2)),
    (3, 4, (1, 2)),
    (4, 4, (1, 2, 3)),
    (5, 3, (2, 3)),
    (6, 3, (2, 4)),
)


# What is placed on what; ``sort`` is of the machine.
Case = namedtuple("Case", ["sort", "topology", "job", "objective"])


def drawn(seed):
    """Case number ``seed``."""
    rng = random.Random(f"attack {seed}")
    sort = rng.choice(list(MACHINES))
    return _drawn(rng, sort, rng.choice(("time", "hop-cost")))


def _drawn(rng, sort, objective):
    while True:
        topology, world = MACHINES[sort](rng)
        if world > topology.num_gpus or not _is_listed(topology, world):
            continue
        job = _job(rng, topology, world, objective)
        if objective == "hop-cost" or job.model or job.groups or job.traffic:
            return Case(sort, topology, job, objective)


def _is_listed(topology, world):
    gpus = topology.num_gpus
    if gpus_differ(topology):
        return perm(gpus, world) <= MOST_LISTED
    return bool(topology.num_nodes**world <= MOST_LISTED)


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


def unusual(seed):
    """Another case number ``seed``, with what few jobs and machines have."""
    rng = random.Random(f"unusual {seed}")
    return _changed(rng, rng.choice(list(CHANGES)))


def changed(what, seed):
    """Case number ``seed`` of those with one of the `CHANGES`."""
    return _changed(random.Random(f"{what} {seed}"), what)


def _changed(rng, what):
    while True:
        sort = rng.choice(["islands"] if what == "experts on islands" else [*MACHINES])
        objective = "time" if what in OF_TIME else rng.choice(("time", "hop-cost"))
        case = CHANGES[what](rng, _drawn(rng, sort, objective))
        if case is not None:
            return case._replace(sort=what)


def _links_and_speeds(rng, case):
    """Links between some domains, and hosts of other speeds."""
    if not case.job.model and not case.job.traffic:
        return None
    topology = unequal(case.topology, rng.randrange(1 << 30))
    job = case.job
    if rng.random() < 0.4:
        rows = [*topology.bandwidth_factor.tolist()]
        factors = np.array([rng.choice((one, 0.5)) for one in rows])
        topology = replace(topology, bandwidth_factor=factors)
    return case._replace(topology=topology, job=job)


def _other_work(rng, case):
    """Recomputation, adapters, hosts that lag, memory's and outputs' rates."""
    if case.job.model is None:
        return None
    return case._replace(job=with_other_work(case.job, rng.randrange(1 << 30)))


def _equal_parts(rng, case):
    """Groups of one axis in equal parts, one a domain."""
    sizes = case.job.parallelism
    axes = [axis for axis in ("tp", "cp", "ep", "dp", "pp") if sizes.size(axis) > 1]
    if not axes:
        return None
    axis, tier = rng.choice(axes), rng.choice(case.topology.by_island.tiers).name
    require = {k: t for k, t in case.job.require.items() if rng.random() < 0.3}
    require = {k: t for k, t in require.items() if k != axis}
    job = replace(case.job, require={**require, even_key(axis): tier})
    if rng.random() < 0.6:
        job = replace(job, rules=Rules())
    return case._replace(job=job)


def _budgets(rng, case):
    """What sets of hosts may run in all, and perhaps pins."""
    topology, job = case.topology, case.job
    many = rng.choice((1, 2))
    budgets = tuple(random_budget(rng, topology, job) for _ in range(many))
    pins = ()
    if rng.random() < 0.3:
        pins = random_pins(rng, job.world_size, [*topology.node_names])
    rules = Rules(pin=pins, budgets=budgets)
    job = replace(job, rules=rules)
    return case._replace(topology=replace(topology, budgets=budgets), job=job)


def _workload(rng, case):
    """Roles and their transfers, on hosts of any speed."""
    topology = case.topology
    if "rack" not in [tier.name for tier in topology.tiers]:
        return None
    launcher = rng.choice(("free", "node-contiguous"))
    job = random_workload(rng, launcher)
    if job.world_size > min(topology.num_gpus, MOST_RANKS):
        return None
    if not _is_listed(topology, job.world_size):
        return None
    if rng.random() < 0.3:
        topology = unequal(topology, rng.randrange(1 << 30))
    if rng.random() < 0.2:
        job = replace(job, rules=random_rules(rng, topology, job))
    return case._replace(topology=topology, job=job)


def _experts(rng, case):
    """Experts, on islands or not, more ranks than elsewhere."""
    topology = case.topology
    if topology.num_gpus < 3:
        return None
    world = rng.randint(3, min(topology.num_gpus, MOST_RANKS))
    if not _is_listed(topology, world):
        return None
    job = _job(rng, topology, world, case.objective)
    if job.parallelism.ep == 1 or (case.objective == "time" and job.model is None):
        return None
    return case._replace(job=job)


CHANGES = {
    "links and speeds": _links_and_speeds,
    "other work": _other_work,
    "equal parts": _equal_parts,
    "budgets": _budgets,
    "workload": _workload,
    "experts": _experts,
    "experts on islands": _experts,
}
OF_TIME = ("links and speeds", "other work", "workload")
