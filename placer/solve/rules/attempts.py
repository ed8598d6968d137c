"""Machines and jobs for which placements keep rules, and what mends the others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from placer.solve.problem.launch import feasible_parts
from placer.solve.problem.limits import Limits, MachinePart
from placer.solve.problem.rules import obeys
from placer.solve.rearrange.pins import PinnedRanks
from placer.solve.rules.offer import loses_nothing, within_replicas, without_spares

if TYPE_CHECKING:
    from placer.job.model import Job
    from placer.topology.model import Topology

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

# Nodes of a machine on which nodes to avoid are exchanged for others, one by one.
SMALL_MACHINE = 64


class Attempt(NamedTuple):
    """One search on a part of the machine.

    Attributes
    ----------
    part : MachinePart
    job : Job
        Without rules, perhaps with more requirements.
    exact : bool
        Whether no legal placement is lost, up to equal nodes.
    """

    part: MachinePart
    job: Job
    exact: bool


def attempts(
    limits: Limits, job: Job, offered: BoolArray, is_hop_cost: bool
) -> Iterator[Attempt]:
    """Searches to make, those whose placements keep most rules by themselves first.

    Parameters
    ----------
    limits : Limits
    job : Job
        Without rules.
    offered : ndarray, shape (N,)
        Nodes that may be used.
    is_hop_cost : bool
    """
    topology = limits.topology
    tight = _whole_replicas(limits, job)
    spared = without_spares(limits, offered, unit_of(topology, tight or job))
    if tight is not None:
        capped = within_replicas(limits, spared)
        yield Attempt(MachinePart.of(topology, capped), tight, exact=False)
    is_exact = loses_nothing(limits, offered)
    is_exact &= costs_the_same(topology, spared, is_hop_cost)
    yield Attempt(MachinePart.of(topology, spared), job, is_exact)
    if not is_exact and (offered.all() or topology.num_nodes <= SMALL_MACHINE):
        whole = MachinePart.of(topology, np.ones_like(offered))
        yield Attempt(whole, job, exact=True)


def mender(
    limits: Limits, attempt: Attempt, offered: BoolArray
) -> Callable[[IntArray], IntArray | None]:
    """What makes a placement on the attempt's part legal, or refuses it (None)."""
    part, job = attempt.part, attempt.job

    def legal(gpu_of_rank: IntArray) -> bool:
        return obeys(part.topology, job, gpu_of_rank) and limits.numbers_hold(
            part.node_in_whole(gpu_of_rank)
        )

    ruled = replace(limits.job, require=job.require)
    parts = next(iter(feasible_parts(part.topology, job)), None)
    pinned = PinnedRanks(Limits.of(part.topology, ruled), offered[part.nodes], parts)
    return lambda gpu_of_rank: pinned.settle(gpu_of_rank, legal)


def unit_of(topology: Topology, job: Job) -> int:
    """Ranks that stay together in a domain next to the nodes."""
    choices = feasible_parts(topology, job)
    sizes = choices[0].uniform_sizes() if choices else None
    return sizes[1] if sizes is not None and len(sizes) > 1 else 1


def costs_the_same(topology: Topology, kept: BoolArray, is_hop_cost: bool) -> bool:
    """Whether placements cost the same on a part: shared uplinks shrink with it."""
    shared = any(tier.oversubscription != 1 for tier in topology.tiers)
    return bool(kept.all()) or not shared or is_hop_cost


def _whole_replicas(limits: Limits, job: Job) -> Job | None:
    """The job with replicas kept whole in the innermost limited tier."""
    if not limits.at_most:
        return None
    tiers = [tier.name for tier in limits.topology.tiers]
    tier = limits.at_most[0][0]
    require = dict(job.require)
    for axis in ("tp", "cp", "pp"):
        own = tiers.index(require[axis]) if axis in require else tier
        require[axis] = tiers[min(tier, own)]
    return replace(job, require=require)
