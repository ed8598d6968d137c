"""Machines of the cases as topology files, and what placements on them look like."""

import random
from collections import Counter
from typing import NamedTuple

import numpy as np

from placer.cost.hop_cost import HopCost
from placer.job.axes import Parallelism
from placer.job.model import Job
from placer.topology.read import parse_topology
from tests.texts import file_text

WEIGHTS = {"tp": 4000.0, "cp": 400.0, "pp": 40.0, "dp": 4.0}


class Host(NamedTuple):
    """A node: its name, GPUs (or pods it can hold) and domains, innermost first."""

    name: str
    gpus: int
    domains: tuple[str, ...] = ()


def machine(tiers, hosts, down=()):
    """The machine of ``hosts``; ``tiers`` are named innermost first."""
    figures = [
        {
            "name": tier,
            "bandwidth": 100e9 / t if t else 900e9,
            "latency": 1e-6 * (t + 1),
            "scale_up": t == 0,
            "distance": 10 ** (t - 1) if t else 0,
        }
        for t, tier in enumerate(tiers)
    ]
    figures[0]["size"] = 1
    nodes = [
        dict(zip(tiers[1:-1], host.domains, strict=True))
        | {"names": host.name, "gpus": host.gpus}
        for host in hosts
    ]
    down = dict.fromkeys(down, "down")
    text = file_text("topology", tiers=figures, nodes=nodes, unavailable=down)
    return parse_topology(text, "case.json")


def varied(hosts, seed):
    """The hosts renamed and in another order; seed 0 leaves them as they are."""
    if seed == 0:
        return hosts
    rng = random.Random(seed)
    names = [f"h{i}" for i in range(len(hosts))]
    rng.shuffle(names)
    domains = sorted({domain for host in hosts for domain in host.domains})
    renamed = [f"d{i}" for i in range(len(domains))]
    rng.shuffle(renamed)
    new_name = dict(zip(domains, renamed, strict=True))
    changed = [
        Host(name, host.gpus, tuple(new_name[domain] for domain in host.domains))
        for name, host in zip(names, hosts, strict=True)
    ]
    rng.shuffle(changed)
    return changed


def job(require=None, launcher="free", weights=None, **sizes):
    """A job with weights; ``sizes`` are those of `Parallelism`."""
    sizes.setdefault("etp", sizes.get("tp", 1))
    more = {"require": require or {}, "weights": weights or WEIGHTS}
    return Job("case", Parallelism(**sizes), launcher=launcher, **more)


def without(topology, placement):
    """The nodes that a placement leaves free."""
    used = topology.node_of_gpu[placement.gpu_of_rank]
    return topology.select(np.setdiff1d(np.arange(topology.num_nodes), used))


def ranks_in(topology, placement, tier):
    """Ranks that each used domain of a tier holds, by its name."""
    t = topology.tier_index(tier)
    domains = topology.domain_of_gpu[t][placement.gpu_of_rank]
    return Counter(topology.domain_names[t][d] for d in domains)


def crossings(topology, case, placement, tier):
    """Edges of each axis whose ends lie in different domains of a tier."""
    t = topology.tier_index(tier)
    counts = HopCost(topology, case).crossings(placement.gpu_of_rank)
    return {axis: int(by_tier[t + 1 :].sum()) for axis, by_tier in counts.items()}
