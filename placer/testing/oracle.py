"""Every placement of a tiny job, by plain loops that share nothing with the search."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

from placer.api.score import score
from placer.job.axes import Parallelism
from placer.job.even import is_even
from placer.job.model import Job
from placer.placement.placement import Placement
from placer.topology.model import Topology

DENSE = ("tp", "cp", "pp", "dp")
EXPERT = ("ep", "etp", "pp", "edp")


def placements(topology: Topology, job: Job) -> Iterator[tuple[int, ...]]:
    """The node of each rank, as capacities, launcher and `require` allow.

    Their number grows as the nodes to the power of the ranks: for some eight ranks.

    Raises
    ------
    NotImplementedError
        If the job has rules or equal parts, which these loops do not know.

    Examples
    --------
    >>> from placer.testing import job, racks
    >>> list(placements(racks([2], gpus=1), job(dp=2, weights={"dp": 1})))
    [(0, 1), (1, 0)]
    """
    if job.rules or any(is_even(key) for key in job.require):
        raise NotImplementedError(
            "only `require` is known here, no rules and no `even`"
        )
    return launchable(topology, job)


def launchable(topology: Topology, job: Job) -> Iterator[tuple[int, ...]]:
    """What launcher and `require` allow, whatever else the job asks for."""
    if job.launcher == "free":
        return free_placements(topology, job)
    return consecutive_placements(topology, job)


def least(topology: Topology, job: Job, objective: str = "hop_cost") -> float:
    """The least cost of all placements; infinite where there is none.

    Parameters
    ----------
    topology : Topology
    job : Job
    objective : {'hop_cost', 'step_time_s'}
        The key of the score.
    """
    return min(
        (
            float(score(topology, job, Placement(np.array(seats)))[objective])
            for seats in (gpus_of(topology, at) for at in placements(topology, job))
        ),
        default=float("inf"),
    )


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
    """Node of every rank where each used node holds consecutive ranks."""
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


def gpus_of(topology: Topology, nodes: tuple[int, ...]) -> list[int]:
    """GPU of every rank when each node hands out its GPUs by rank."""
    first = [int(sum(topology.gpus_of_node[:n])) for n in range(topology.num_nodes)]
    return [first[node] + nodes[:rank].count(node) for rank, node in enumerate(nodes)]
