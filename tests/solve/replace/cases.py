"""Random failures of tiny machines, and all placements that are left."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from placer.placement.build import build_plan
from placer.placement.placement import Placement
from tests.solve import oracle
from tests.solve.random_cases import random_job, random_machine

if TYPE_CHECKING:
    from placer.job.model import Job
    from placer.placement.plan import Plan
    from placer.topology.model import Topology

MOST_PLACEMENTS = 30_000


@dataclass(frozen=True)
class Failure:
    """A plan, and the machine after some of its nodes have failed.

    Attributes
    ----------
    topology, left : Topology
        Before and after.
    old : tuple of int
        Node of every rank before.
    legal : list of tuple of int
        All placements that are left, by the nodes of ``topology``.
    """

    topology: Topology
    left: Topology
    job: Job
    plan: Plan
    old: tuple[int, ...]
    legal: list[tuple[int, ...]]

    def front(self, objective: str) -> dict[int, float]:
        """Least cost of the placements that move a number of ranks to other nodes."""
        cost = oracle.step_time if objective == "time" else oracle.hop_cost
        least: dict[int, float] = {}
        for nodes in self.legal:
            moves = sum(a != b for a, b in zip(nodes, self.old, strict=True))
            value = cost(self.topology, self.job, nodes)
            least[moves] = min(value, least.get(moves, float("inf")))
        return least


def random_failure(seed: int, objective: str) -> Failure | None:
    """Failure number ``seed``; None where there is no plan that could fail."""
    rng = random.Random(f"{seed} {objective} failure")
    world = rng.choice((3, 4, 4, 5, 6))
    topology = random_machine(rng, world + rng.choice((2, 3, 4)), 5, (1, 2, 3))
    job = random_job(rng, world, topology, objective)
    if rng.random() < 0.7:
        job = replace(job, launcher="free")
    if topology.num_nodes**world > MOST_PLACEMENTS:
        return None
    legal = oracle.legal_placements(topology, job)
    if not legal:
        return None
    cost = oracle.step_time if objective == "time" else oracle.hop_cost
    tried = rng.sample(legal, min(len(legal), 8))
    old = min(tried, key=lambda nodes: cost(topology, job, nodes))
    used = sorted(set(old))
    failed = rng.sample(used, 1 if len(used) < 3 else rng.choice((1, 1, 2)))
    left = [node for node in range(topology.num_nodes) if node not in failed]
    if not left:
        return None
    placement = Placement.on_nodes(topology, np.array(old))
    return Failure(
        topology,
        topology.select(np.array(left)),
        job,
        build_plan(topology, job, placement),
        old,
        [nodes for nodes in legal if not set(nodes) & set(failed)],
    )
