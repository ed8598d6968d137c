"""Every legal placement of a tiny job, found and scored by plain loops."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise, product
from typing import TYPE_CHECKING

import numpy as np

from tests.cost.reference import reference_seconds

if TYPE_CHECKING:
    from placer.job.axes import Parallelism
    from placer.job.model import Job
    from placer.topology.model import Topology

DENSE = ("tp", "cp", "pp", "dp")
EXPERT = ("ep", "etp", "pp", "edp")


def groups_of(job: Job, axis: str) -> list[list[int]]:
    """Ranks of every group of an axis or of a custom group."""
    for group in job.groups:
        if group.name == axis:
            return [list(ranks) for ranks in group.ranks]
    p = job.parallelism
    family = EXPERT if axis in ("ep", "etp", "edp") else DENSE
    found: dict[tuple[int, ...], list[int]] = {}
    for rank in range(p.world_size):
        at = coordinates(p, rank)
        key = tuple(at[name] for name in family if name != axis)
        found.setdefault(key, []).append(rank)
    return list(found.values())


def coordinates(p: Parallelism, rank: int) -> dict[str, int]:
    """Place of a rank on every dense and expert axis."""
    edp = p.tp * p.cp * p.dp // (p.ep * p.etp)
    dense = _digits(rank, p, {"tp": p.tp, "cp": p.cp, "pp": p.pp, "dp": p.dp})
    at = dict(dense)
    if p.ep == 1 and p.etp == p.tp:
        return at | {"etp": at["tp"], "ep": 0, "edp": at["dp"] * p.cp + at["cp"]}
    expert = _digits(rank, p, {"tp": p.etp, "ep": p.ep, "pp": p.pp, "dp": edp})
    return at | {"etp": expert["tp"], "ep": expert["ep"], "edp": expert["dp"]}


def _digits(rank: int, p: Parallelism, sizes: dict[str, int]) -> dict[str, int]:
    at = {}
    for axis in p.order:
        size = sizes.get(axis, 1)
        at[axis] = rank % size
        rank //= size
    return at


def keeps_requirements(topology: Topology, job: Job, nodes: tuple[int, ...]) -> bool:
    """Whether every required group lies in one domain, rank r being on ``nodes[r]``."""
    names = [tier.name for tier in topology.tiers]
    for axis, tier in job.require.items():
        domain = topology.domain_of_node[names.index(tier)].tolist()
        for ranks in groups_of(job, axis):
            if len({domain[nodes[rank]] for rank in ranks}) > 1:
                return False
    return True


def free_placements(topology: Topology, job: Job) -> Iterator[tuple[int, ...]]:
    """Node of every rank, in every way that respects capacities and requirements."""
    gpus = topology.gpus_of_node.tolist()
    for nodes in product(range(len(gpus)), repeat=job.world_size):
        if all(nodes.count(node) <= gpus[node] for node in set(nodes)) and (
            keeps_requirements(topology, job, nodes)
        ):
            yield nodes


def consecutive_placements(topology: Topology, job: Job) -> Iterator[tuple[int, ...]]:
    """The same when every used node holds consecutive ranks, however many."""
    gpus = topology.gpus_of_node.tolist()

    def extend(nodes: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        left = job.world_size - len(nodes)
        if not left:
            if keeps_requirements(topology, job, nodes):
                yield nodes
            return
        for node, room in enumerate(gpus):
            if node not in nodes:
                for count in range(1, min(room, left) + 1):
                    yield from extend(nodes + (node,) * count)

    yield from extend(())


def legal_placements(topology: Topology, job: Job) -> list[tuple[int, ...]]:
    """Node of every rank in all legal placements; empty when there is none."""
    if job.launcher == "free":
        return list(free_placements(topology, job))
    return list(consecutive_placements(topology, job))


def gpus_of(topology: Topology, nodes: tuple[int, ...]) -> list[int]:
    """GPU of every rank when each node hands out its GPUs by rank."""
    first = [int(sum(topology.gpus_of_node[:n])) for n in range(topology.num_nodes)]
    return [first[node] + nodes[:rank].count(node) for rank, node in enumerate(nodes)]


def distinct(
    topology: Topology, placements: list[tuple[int, ...]]
) -> list[tuple[int, ...]]:
    """One placement of each sort that no cost can tell apart.

    All a cost may look at is which domains ranks share, and what these are like.
    """
    rows = topology.domain_of_node.tolist()
    gpus = [np.bincount(row, topology.gpus_of_node).tolist() for row in rows]
    factor = topology.bandwidth_factor.tolist()
    speed = topology.compute_factor
    linked = {(link.tier, name) for link in topology.links for name in link.between}
    looks = [
        (
            factor[node],
            1.0 if speed is None else float(speed[node]),
            *(gpus[t][row[node]] for t, row in enumerate(rows)),
            *(
                row[node]
                for tier, names, row in zip(
                    topology.tiers, topology.domain_names, rows, strict=True
                )
                if (tier.name, names[row[node]]) in linked
            ),
        )
        for node in range(topology.num_nodes)
    ]
    found = {}
    for nodes in placements:
        key: list[object] = [looks[node] for node in nodes]
        for row in rows[:-1]:
            first: dict[int, int] = {}
            key += [first.setdefault(row[node], len(first)) for node in nodes]
        found.setdefault(tuple(key), nodes)
    return list(found.values())


def step_time(topology: Topology, job: Job, nodes: tuple[int, ...]) -> float:
    """Seconds of a step, by the plain-loop scorer."""
    return reference_seconds(topology, job, gpus_of(topology, nodes))


def hop_cost(topology: Topology, job: Job, nodes: tuple[int, ...]) -> float:
    """Sum of weight x distance over rings, chains (pp) and all pairs (ep)."""
    total = 0.0
    for axis, weight in job.weights.items():
        for ranks in groups_of(job, axis):
            if axis == "ep":
                pairs = [(a, b) for i, b in enumerate(ranks) for a in ranks[:i]]
            else:
                pairs = list(pairwise(ranks))
                if axis != "pp" and len(ranks) > 2:
                    pairs.append((ranks[-1], ranks[0]))
            for a, b in pairs:
                total += weight * _distance(topology, nodes[a], nodes[b])
    return total


def _distance(topology: Topology, first: int, second: int) -> float:
    for tier, row in zip(topology.tiers, topology.domain_of_node, strict=True):
        if row[first] == row[second]:
            return tier.distance
    raise AssertionError("the last tier holds every node")


def least(
    topology: Topology, job: Job, objective: str, placements: list[tuple[int, ...]]
) -> float:
    """Smallest cost of ``placements``; infinite without any."""
    cost = step_time if objective == "time" else hop_cost
    return min(
        (cost(topology, job, nodes) for nodes in distinct(topology, placements)),
        default=float("inf"),
    )
