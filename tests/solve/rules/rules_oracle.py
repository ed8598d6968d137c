"""Random rules, and what they allow by plain loops over all placements."""

import random
from dataclasses import replace

from placer.base.budget import Budget
from placer.job.rules import Pin, Rules
from tests.solve.oracle import coordinates, keeps_requirements, legal_placements
from tests.solve.random_cases import SIZES_OF, random_job, random_machine

Nodes = tuple[int, ...]


def ruled_case(seed, objective, sort):
    """Machine and job number ``seed`` of a sort, with one to three sorts of rules."""
    rng = random.Random(f"rules {seed} {objective} {sort}")
    topology, job = _unruled(rng, objective, sort)
    return topology, replace(job, rules=random_rules(rng, topology, job))


def budget_case(seed, objective, sort):
    """The same with one to three budgets, perhaps a pin."""
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
        return Budget(name, names, replicas=rng.randint(0, job.parallelism.dp))
    most = rng.randint(0, job.world_size)
    if kind == "gpus":
        return Budget(name, names, gpus=most)
    watts = most * 0.1 + rng.choice((0.0, 0.05))
    return Budget(name, names, watts=watts, gpu_watts=0.1)


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


def keeps(topology, job, rules, nodes):
    """Whether rank r on ``nodes[r]`` keeps the hard rules."""
    names = topology.node_names
    for pin in rules.pin:
        if any(names[nodes[rank]] not in pin.hosts for rank in pin.ranks):
            return False
    tiers = [tier.name for tier in topology.tiers]
    for tier, limit in rules.at_most.items():
        row = topology.domain_of_node[tiers.index(tier)].tolist()
        for domain in set(row):
            replicas = {
                coordinates(job.parallelism, rank)["dp"]
                for rank, node in enumerate(nodes)
                if row[node] == domain
            }
            if len(replicas) > limit:
                return False
    for tier, least in rules.spares.items():
        row = topology.domain_of_node[tiers.index(tier)].tolist()
        for domain in {row[node] for node in nodes}:
            idle = [n for n, d in enumerate(row) if d == domain and n not in nodes]
            if len(idle) < least:
                return False
    return all(is_within(topology, job, budget, nodes) for budget in rules.budgets)


def is_within(topology, job, budget, nodes):
    """Whether rank r on ``nodes[r]`` keeps a budget, by its words."""
    hosts = [topology.node_names[node] for node in nodes]
    there = [rank for rank, host in enumerate(hosts) if host in budget.names]
    replicas = {coordinates(job.parallelism, rank)["dp"] for rank in there}
    drawn = len(there) * budget.gpu_watts
    return not (
        (budget.gpus is not None and len(there) > budget.gpus)
        or (budget.replicas is not None and len(replicas) > budget.replicas)
        or (budget.watts is not None and drawn > budget.watts + 1e-9)
    )


def is_legal(topology, job, nodes):
    """Whether a placement keeps `require` and the hard rules, launched anyhow."""
    return keeps_requirements(topology, job, nodes) and keeps(
        topology, job, job.rules, nodes
    )


def avoided(topology, rules, nodes):
    """Hosts to avoid that are used."""
    return len({topology.node_names[node] for node in nodes} & set(rules.avoid))


def allowed_placements(topology, job):
    """All placements that keep the job's rules with the fewest hosts to avoid."""
    rules = job.rules
    plain = legal_placements(topology, replace(job, rules=Rules()))
    legal = [nodes for nodes in plain if keeps(topology, job, rules, nodes)]
    fewest = min((avoided(topology, rules, nodes) for nodes in legal), default=0)
    return [nodes for nodes in legal if avoided(topology, rules, nodes) == fewest]
