"""Placements made for the groups of the user's own, whatever they look like."""

from __future__ import annotations

from math import gcd
from typing import TYPE_CHECKING

import numpy as np

from placer.base.arrays import IntArray
from placer.solve.construct.traffic.partition import partitioned_nodes
from placer.solve.problem.colocation import join
from placer.solve.problem.flows import flows_of
from placer.solve.tree.capacity import whole_sets
from placer.solve.tree.fill import share_down

if TYPE_CHECKING:
    from collections.abc import Iterator

    from placer.solve.problem.compiled import Problem
    from placer.solve.problem.flows import Flows
    from placer.solve.run.budget import Budget
    from placer.solve.run.incumbent import Incumbent

# Components that no domain holds are cut into as many pieces at the most.
PIECES = 4


def partitioned(problem: Problem, incumbent: Incumbent, budget: Budget) -> None:
    """The graph of what ranks send each other, divided down the tree.

    All domains about equally full, and in the fewest domains.
    """
    if problem.goal.name != "time" or not problem.job.names_ranks:
        return
    start = incumbent.gpu_of_rank
    if start is None:
        start = np.arange(problem.job.world_size)
    flows = flows_of(problem, start)
    if not len(flows.edges):
        return
    rng = np.random.default_rng(problem.seed)
    machine = problem.machine
    for name, capacity, label in _divisions(problem, flows):
        node_of_rank = partitioned_nodes(
            machine, capacity, label, flows, rng, budget.is_over
        )
        if node_of_rank is not None:
            gpu_of_rank = machine.gpus_on(node_of_rank)
            incumbent.offer(f"partitioned communicators, {name}", gpu_of_rank)
        if budget.is_over():
            return


def _divisions(problem: Problem, flows: Flows) -> list[tuple[str, IntArray, IntArray]]:
    """Ranks each node may hold, and what stays together: with a name.

    All there is room for, or the fewest domains; and ranks that send nothing to any
    others whole, or in a few pieces, where domains hold them.
    """
    capacity = problem.capacity
    label = problem.colocation.label
    found, fewest = [("evenly", capacity, label)], None
    sizes = problem.colocation.uniform_sizes()
    if sizes is not None:
        fewest = _fewest_domains(problem, [*sizes[:-1], sizes[-2:][0]])
        if fewest is not None:
            found.append(("fewest domains", fewest, label))
    for component in _components(problem, flows):
        for pieces in range(1, PIECES + 1):
            part = _parted(problem, component, pieces)
            name = "whole components" if pieces == 1 else f"components in {pieces}"
            found += _of_parts(problem, name, part, fewest)
    return found


def _components(problem: Problem, flows: Flows) -> list[IntArray]:
    """Component of each rank: of all that ranks send, and of transfers alone.

    Gradients may join what nothing gains from being whole.
    """
    label, traffic = problem.colocation.label[-2:][0], problem.job.traffic
    edges = [flows.edges]
    if problem.job.roles and traffic is not None:
        edges.append(np.stack((traffic.senders, traffic.receivers), axis=1))
    found = [np.unique(join(label, e), return_inverse=True)[1] for e in edges]
    return found if not np.array_equal(found[0], found[-1]) else found[:1]


def _parted(problem: Problem, component: IntArray, pieces: int) -> IntArray:
    """Components in so many pieces, each with its share of those who send.

    Ranks that stay together in the outermost domains but one are in the same piece.
    """
    label = problem.colocation.label[-2:][0]
    traffic = problem.job.traffic
    sends = np.zeros(len(label), dtype=np.int64)
    if traffic is not None:
        sends[label[traffic.senders]] = 1
    of_set, first = np.unique(label, return_index=True)
    place, count = among_alike(component[first] * 2 + sends[of_set])
    keys = component[first] * pieces + place * pieces // count
    return np.asarray(np.unique(keys[label], return_inverse=True)[1])


def among_alike(kind: IntArray) -> tuple[IntArray, IntArray]:
    """Place of each among those of its kind, and how many there are."""
    order = np.argsort(kind, kind="stable")
    ranked = kind[order]
    first = np.searchsorted(ranked, ranked)
    place, count = np.empty((2, len(kind)), dtype=np.int64)
    place[order] = np.arange(len(order)) - first
    count[order] = np.searchsorted(ranked, ranked, side="right") - first
    return place, count


def _of_parts(
    problem: Problem, name: str, part: IntArray, fewest: IntArray | None
) -> Iterator[tuple[str, IntArray, IntArray]]:
    """The divisions that keep parts together in the innermost domains they fit.

    ``fewest`` are ranks each node may hold where parts are of several sizes.
    """
    machine, capacity = problem.machine, problem.capacity
    label = problem.colocation.label
    count = np.unique(np.bincount(part))
    tiers = len(machine.tiers) - 1
    room = [int(np.bincount(d, capacity).max()) for d in machine.domain_of_node]
    inside = next((t for t in range(tiers) if room[t] >= count[-1]), tiers)
    if inside == tiers:
        return
    whole = np.where(np.arange(tiers + 1)[:, None] < inside, label, part)
    whole[-1] = label[-1]
    yield name, capacity, whole
    if len(count) == 1:
        parts = [gcd(*np.bincount(row).tolist()) for row in label[:inside]]
        size = [int(count[0])] * (tiers + 1 - inside)
        fewest = _fewest_domains(problem, [*parts, *size])
    if fewest is not None:
        yield f"{name}, fewest domains", fewest, whole


def _fewest_domains(problem: Problem, sizes: list[int]) -> IntArray | None:
    """Ranks each node holds in the fewest domains; None where all are needed.

    ``sizes`` are those of the parts that a domain of each tier holds whole.
    """
    machine, capacity = problem.machine, problem.capacity
    world = problem.job.world_size
    if capacity.sum() <= world:
        return None
    takes = whole_sets(machine, capacity, sizes)
    if takes[-1].sum() < world:
        return None
    return share_down(machine, takes, np.array([world]))
