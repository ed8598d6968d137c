"""Random rules for tiny machines and jobs."""

import random
from dataclasses import replace

from placer.base.budget import HostBudget
from placer.job.rules import Pin, Rules
from tests.solve.random_cases import SIZES_OF, random_job, random_machine


def ruled_case(seed, objective, sort):
    """Machine and job number ``seed`` of a sort, with one to three sorts of rules."""
    rng = random.Random(f"rules {seed} {objective} {sort}")
    topology, job = _unruled(rng, objective, sort)
    return topology, replace(job, rules=random_rules(rng, topology, job))


def budget_case(seed, objective, sort):
    """A drawn case with one to three budgets, perhaps a pin."""
    rng = random.Random(f"budgets {seed} {objective} {sort}")
    topology, job = _unruled(rng, objective, sort)
    many = rng.choice((1, 1, 2, 3))
    budgets = tuple(random_budget(rng, topology, job) for _ in range(many))
    names, pins = list(topology.node_names), ()
    if rng.random() < 0.2:
        pins = random_pins(rng, job.world_size, names)
    rules = Rules(pin=pins, budgets=budgets)
    return replace(topology, budgets=budgets), replace(job, rules=rules)


def _unruled(rng, objective, sort):
    world, most_nodes, node_sizes = rng.choice(SIZES_OF[sort])
    room = world + rng.choice((0, 1, 2, 4))
    topology = random_machine(rng, room, most_nodes, node_sizes)
    job = random_job(rng, world, topology, objective)
    if sort == "runs":
        job = replace(job, launcher="node-contiguous")
    if rng.random() < 0.6:
        job = replace(job, require={})
    return topology, job


def random_budget(rng, topology, job):
    """Some hosts wherever they lie, and a limit of any kind."""
    hosts = rng.sample(topology.node_names, rng.randint(1, topology.num_nodes))
    name, names = ",".join(hosts), frozenset(hosts)
    kind = rng.choice(("gpus", "replicas", "watts"))
    if kind == "replicas":
        return HostBudget(name, names, replicas=rng.randint(0, job.parallelism.dp))
    most = rng.randint(0, job.world_size)
    if kind == "gpus":
        return HostBudget(name, names, gpus=most)
    watts = most * 0.1 + rng.choice((0.0, 0.05))
    return HostBudget(name, names, watts=watts, gpu_watts=0.1)


def random_rules(rng, topology, job):
    """Rules of one to three sorts."""
    names = list(topology.node_names)
    tiers = [tier.name for tier in topology.tiers]
    sorts = rng.sample(("pin", "avoid", "at_most", "spares"), rng.choice((1, 1, 2, 3)))
    avoid = rng.sample(names, min(rng.choice((1, 1, 2)), len(names)))
    at_most = {
        tier: rng.randint(1, job.parallelism.dp)
        for tier in rng.sample(tiers, rng.randint(1, min(2, len(tiers))))
    }
    above = tiers[1:]
    spares = {rng.choice(above): rng.choice((1, 1, 2))} if above else {}
    return Rules(
        random_pins(rng, job.world_size, names) if "pin" in sorts else (),
        tuple(avoid) if "avoid" in sorts else (),
        at_most if "at_most" in sorts else {},
        spares if "spares" in sorts else {},
    )


def random_pins(rng, ranks, names):
    """One or two pins of one or two ranks each."""
    free = rng.sample(range(ranks), min(4, ranks))
    pins = []
    for _ in range(rng.choice((1, 1, 2))):
        chosen = sorted(free.pop() for _ in range(min(rng.choice((1, 2)), len(free))))
        hosts = rng.sample(names, min(rng.choice((1, 1, 2)), len(names)))
        if chosen:
            pins.append(Pin(tuple(chosen), tuple(hosts)))
    return tuple(pins)
