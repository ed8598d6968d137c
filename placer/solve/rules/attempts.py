"""Machines and jobs for which placements keep rules, and what mends the others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from placer.base.arrays import BoolArray, IntArray
from placer.solve.problem.rules import Limits, obeys
from placer.solve.problem.submachine import Submachine
from placer.solve.rearrange.pins import PinnedRanks
from placer.solve.rules.budgets import within_budgets

if TYPE_CHECKING:
    from placer.job.model import Job
    from placer.solve.problem.compiled import Problem
    from placer.topology.machine import Machine

SMALL_MACHINE = 64  # nodes of one that is searched whole besides, its rules mended


class Attempt(NamedTuple):
    """One search on a part of the machine.

    Attributes
    ----------
    job : Job
        Without rules, perhaps with more requirements.
    """

    inner: Submachine[Machine]
    job: Job


def attempts(problem: Problem, offered: BoolArray) -> Iterator[Attempt]:
    """Searches to make, those whose placements keep most rules by themselves first.

    ``offered`` says which nodes may be used; shape (N,).
    """
    machine, limits, plain = problem.machine, problem.limits, problem.without_rules
    tight = _whole_replicas(problem)
    tied = plain if tight is None else plain.on(machine, tight)
    spared = without_spares(limits, offered, unit_of(tied))
    if tight is not None:
        capped = within_replicas(limits, spared)
        yield Attempt(Submachine.of(machine, capped), tight)
    for within in within_budgets(limits, spared, unit_of(tied)):
        yield Attempt(Submachine.of(machine, within), plain.job)
    yield Attempt(Submachine.of(machine, spared), plain.job)
    is_small = machine.num_nodes <= SMALL_MACHINE
    if not loses_nothing(limits, offered) and (offered.all() or is_small):
        whole = Submachine.of(machine, np.ones_like(offered))
        yield Attempt(whole, plain.job)


def mender(
    problem: Problem,
    attempt: Attempt,
    tried: Problem,
    offered: BoolArray,
    ends: Callable[[], bool],
) -> Callable[[IntArray], IntArray | None]:
    """What makes a placement of the attempt legal, or refuses it (None).

    ``tried`` is the problem of the attempt, a part of ``problem``; once ``ends`` says
    so, no more is mended.
    """
    inner, limits = attempt.inner, problem.limits

    def legal(gpu_of_rank: IntArray) -> bool:
        return obeys(tried.machine, tried.job, gpu_of_rank) and limits.numbers_hold(
            inner.node_in_whole(gpu_of_rank)
        )

    pinned = PinnedRanks(
        tried, Limits.of(tried.machine, problem.job), offered[inner.nodes], ends
    )
    return lambda gpu_of_rank: pinned.settle(gpu_of_rank, legal)


def unit_of(problem: Problem) -> int:
    """Ranks that stay together in a domain next to the nodes."""
    choices = problem.choices
    sizes = choices[0].uniform_sizes() if choices else None
    return sizes[1] if sizes is not None and len(sizes) > 1 else 1


def _whole_replicas(problem: Problem) -> Job | None:
    """The job without rules, its replicas whole in the innermost limited tier."""
    if not problem.limits.at_most:
        return None
    job = problem.without_rules.job
    tiers = [tier.name for tier in problem.machine.tiers]
    tier = problem.limits.at_most[0][0]
    require = dict(job.require)
    for axis in ("tp", "cp", "pp"):
        own = tiers.index(require[axis]) if axis in require else tier
        require[axis] = tiers[min(tier, own)]
    return replace(job, require=require)


def without_spares(limits: Limits, offered: BoolArray, unit: int) -> BoolArray:
    """The ``offered`` nodes less those that their domains must keep free.

    A domain of ``n`` nodes that keeps ``k`` free offers ``n - k``; nodes that are not
    offered anyway count as kept. ``unit`` ranks that stay together say what a node is
    worth to its domain: nodes are withheld where ranks would be left over.
    """
    keep = offered.copy()
    for tier, number in limits.spares:
        row = limits.topology.domain_of_node[tier]
        surplus = np.bincount(row, keep) - (np.bincount(row) - number)
        for domain in np.flatnonzero(surplus > 0):
            inside = (row == domain) & keep
            count = min(int(surplus[domain]), int(inside.sum()))
            _withhold(limits, keep, inside, count, unit)
    return keep


def within_replicas(limits: Limits, offered: BoolArray) -> BoolArray:
    """The ``offered`` nodes less those that the replicas a domain may have leave idle.

    At most ``k`` replicas have ``k`` times their ranks in a domain, and it need not
    offer more GPUs than that.
    """
    keep = offered.copy()
    gpus = limits.topology.gpus_of_node
    for tier, number in limits.at_most:
        row = limits.topology.domain_of_node[tier]
        most = number * limits.replica_size
        held = np.bincount(row, gpus * keep)
        for domain in np.flatnonzero(held - gpus.max() >= most):
            spare = int(held[domain]) - most
            inside = (row == domain) & keep
            count = spare // int(gpus[inside].max())
            _withhold(limits, keep, inside, count, limits.replica_size)
    return keep


def loses_nothing(limits: Limits, offered: BoolArray) -> bool:
    """Whether no choice of spares is better than the smallest nodes of each domain.

    So it is when spares are asked for of the tier next to the nodes only, and the nodes
    that each of its domains offers are of a kind: whatever lies on some of them lies as
    well on as many larger ones. Where GPUs have numbers, or rails, nodes must be equal.
    """
    if not limits.spares:
        return True
    tiers = [tier for tier, _ in limits.spares]
    topology = limits.topology
    if tiers != [1] or limits.nodes_of_rank:
        return False
    row = topology.domain_of_node[1]
    alike: list[IntArray] = [topology.kind_of_node]
    if topology.gpu_index is not None or any(tier.rails for tier in topology.tiers):
        alike.append(topology.gpus_of_node)
    return all(_is_same_inside(row, values, offered) for values in alike)


def _is_same_inside(
    row: IntArray, values: npt.NDArray[np.number], mask: BoolArray
) -> bool:
    """Whether ``values`` of the nodes of ``mask`` differ in no domain of ``row``."""
    low = np.full(int(row.max()) + 1, np.inf)
    high = np.full(int(row.max()) + 1, -np.inf)
    np.minimum.at(low, row[mask], values[mask])
    np.maximum.at(high, row[mask], values[mask])
    return bool((low >= high).all())


def _withhold(
    limits: Limits, keep: BoolArray, inside: BoolArray, count: int, unit: int
) -> None:
    """Take ``count`` of the nodes ``inside`` a domain off the offer.

    One after the other from the lowest domain above the nodes with the most ranks left
    over, pinned hosts last, nodes with the fewest GPUs and the slowest first.
    """
    topology = limits.topology
    row = topology.domain_of_node[min(1, len(topology.tiers) - 1)]
    pinned = limits.pinned
    gpus = topology.gpus_of_node
    nodes = np.flatnonzero(inside)
    factors = topology.bandwidth_factor[nodes], topology.speed_of_node[nodes]
    order = np.lexsort((*factors, gpus[nodes], pinned[nodes]))
    queue: dict[int, list[int]] = {}
    room: dict[int, int] = {}
    for node in nodes[order][::-1].tolist():
        queue.setdefault(int(row[node]), []).append(node)
        room[int(row[node])] = room.get(int(row[node]), 0) + int(gpus[node])
    for _ in range(count):
        leaf = min(
            (d for d in queue if queue[d]),
            key=lambda d: (bool(pinned[queue[d][-1]]), -(room[d] % unit), room[d], d),
        )
        node = queue[leaf].pop()
        room[leaf] -= int(gpus[node])
        keep[node] = False
