"""Every legal placement of a tiny job, and its cost by plain loops."""

from itertools import pairwise, permutations

import numpy as np

from placer.testing.oracle import gpus_of, groups_of, launchable
from tests.cost.reference import reference_seconds
from tests.solve.every_placement import Sorts, legal_of, seats_of


def legal_placements(topology, job):
    """Node of every rank in all placements that launcher and `require` allow."""
    return list(launchable(topology, job))


def allowed_placements(topology, job, placements=None):
    """Those that keep the job's rules too, with the fewest hosts to avoid.

    Of all placements, or of some.
    """
    if placements is None:
        placements = launchable(topology, job)
    return _nodes(
        topology, legal_of(topology, job, seats_of(topology, job, placements))
    )


def distinct(topology, job, placements):
    """One placement of each sort that no cost can tell apart."""
    gpus = seats_of(topology, job, placements)
    return _nodes(topology, Sorts(topology).one_of_each(gpus))


def _nodes(topology, gpus):
    return [*map(tuple, topology.node_of_gpu[gpus].tolist())]


def step_time(topology, job, nodes):
    """Seconds of a step, by the plain-loop scorer."""
    return reference_seconds(topology, job, gpus_of(topology, nodes))


def hop_cost(topology, job, nodes):
    """Sum of weight x distance over rings, chains (pp) and all pairs (ep)."""
    return float(hop_costs(topology, job, np.array([nodes]))[0])


def hop_costs(topology, job, nodes):
    """Hop costs of many placements at once; ``nodes`` is one a row."""
    rows, tiers = topology.domain_of_node, topology.tiers
    apart = (rows[:, :, None] != rows[:, None, :]).sum(axis=0)
    distance = np.array([tier.distance for tier in tiers])[apart]
    total = np.zeros(len(nodes))
    for axis, weight in job.weights.items():
        for ranks in groups_of(job, axis):
            if axis == "ep":
                pairs = [(a, b) for i, b in enumerate(ranks) for a in ranks[:i]]
            else:
                pairs = list(pairwise(ranks))
                if axis != "pp" and len(ranks) > 2:
                    pairs.append((ranks[-1], ranks[0]))
            for a, b in pairs:
                total += weight * distance[nodes[:, a], nodes[:, b]]
    return total


def symmetries(topology):
    """All ways to exchange nodes that leave the machine as it is."""
    kind = list(
        zip(topology.gpus_of_node.tolist(), topology.bandwidth_factor, strict=True)
    )
    rows, nodes = topology.domain_of_node.tolist(), range(topology.num_nodes)
    return [
        to
        for to in permutations(nodes)
        if all(kind[node] == kind[to[node]] for node in nodes)
        and all(
            len({(row[node], row[to[node]]) for node in nodes}) == len(set(row))
            for row in rows
        )
    ]
