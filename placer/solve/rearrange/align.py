"""A placement renumbered, to have most ranks where a previous plan has them.

Equal domains of the machine may exchange what they hold, equal nodes their ranks, and
replicas that sit alike their places. None of this changes what a placement costs (the
search prices it again all the same).

An exchange is worth the ranks that it keeps, and the best is taken
(`placer.solve.tree.symmetry`). A rank is in one pair of domains of each tier, so the
work grows with the ranks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from placer.base.arrays import IntArray
from placer.placement.previous import Previous
from placer.solve.problem.compiled import Problem
from placer.solve.tree.symmetry import (
    Symmetry,
    best_pairs,
    completed,
    on_other_nodes,
)


def aligned(
    problem: Problem, gpu_of_rank: IntArray, previous: Previous
) -> Iterator[IntArray]:
    """Placements like ``gpu_of_rank`` that keep more ranks in place; shape (R,) each.

    The first exchanges equal domains, which is always allowed. The others exchange
    replicas too, inside the domains of a tier, the innermost first.
    """
    best = exchanged(problem, gpu_of_rank, previous)
    yield best
    for t in range(1, len(problem.machine.tiers)):
        replicas = _with_replicas_exchanged(problem, best, previous, t)
        yield exchanged(problem, replicas, previous)


def _symmetry(problem: Problem) -> Symmetry:
    return Symmetry(problem.machine)


def exchanged(problem: Problem, gpu_of_rank: IntArray, previous: Previous) -> IntArray:
    """The placement after the best exchange of equal domains."""
    topology, is_free = problem.machine, problem.job.launcher == "free"
    node = topology.node_of_gpu[gpu_of_rank]
    local = gpu_of_rank - topology.first_gpu_of_node[node]
    old_node = topology.node_of_gpu[previous.gpu_of_rank]
    old_local = previous.gpu_of_rank - topology.first_gpu_of_node[old_node]
    # A free launch can give a rank any GPU of its node.
    countable = (previous.gpu_of_rank >= 0) & (is_free | (local == old_local))
    moves = zip(node[countable].tolist(), old_node[countable].tolist(), strict=True)
    becomes = problem.once(_symmetry).exchange(Counter(moves))
    moved = on_other_nodes(topology, gpu_of_rank, becomes)
    return _on_old_gpus(problem, moved, previous) if is_free else moved


def _on_old_gpus(
    problem: Problem, gpu_of_rank: IntArray, previous: Previous
) -> IntArray:
    """Ranks stay on their nodes, those that were there before on their old GPUs."""
    topology = problem.machine
    node = topology.node_of_gpu[gpu_of_rank]
    before = previous.gpu_of_rank
    stays = (before >= 0) & (topology.node_of_gpu[before] == node)
    found = np.where(stays, before, gpu_of_rank)
    for mixed in np.intersect1d(node[stays], node[~stays]).tolist():
        newcomers = np.flatnonzero(~stays & (node == mixed))
        first, end = topology.first_gpu_of_node[mixed : mixed + 2].tolist()
        taken = set(before[stays & (node == mixed)].tolist())
        free = [gpu for gpu in range(first, end) if gpu not in taken]
        found[newcomers] = free[: len(newcomers)]
    return found


def _with_replicas_exchanged(
    problem: Problem, gpu_of_rank: IntArray, previous: Previous, tier: int
) -> IntArray:
    """The placement after the best exchange of replicas.

    Replicas may take each other's seats when these lie in the same domains of ``tier``,
    coordinate by coordinate.
    """
    axes = problem.job.parallelism
    at = axes.coordinates
    by_replica = np.lexsort((at["tp"], at["cp"], at["pp"], at["dp"]))
    ranks = by_replica.reshape(axes.dp, -1)
    seats = gpu_of_rank[ranks]
    homes = problem.machine.domain_of_gpu[tier][seats]
    _, kind = np.unique(homes, axis=0, return_inverse=True)
    moves = _replica_moves(problem, seats, previous.gpu_of_rank[ranks])
    moves = moves[kind[moves[:, 0]] == kind[moves[:, 1]]]
    pairs, counts = np.unique(moves, axis=0, return_counts=True)
    best, every = pairs[best_pairs(pairs, counts)], range(len(ranks))
    chosen = completed(best.tolist(), every, every, kind)
    found = np.empty_like(gpu_of_rank)
    found[ranks] = seats[[chosen[replica] for replica in every]]
    return found


def _replica_moves(problem: Problem, seats: IntArray, before: IntArray) -> IntArray:
    """(replica, replica whose seats it would take) for each rank that would stay.

    ``seats`` and ``before`` are GPUs of shape (replicas, ranks of each); a rank stays
    when its old GPU is the seat of its counterpart in another replica.
    """
    seat_of_gpu = np.full(problem.machine.num_gpus, -1, dtype=np.int64)
    seat_of_gpu[seats] = np.arange(seats.size).reshape(seats.shape)
    seat = np.where(before >= 0, seat_of_gpu[before], -1)
    size = seats.shape[1]
    replica, position = np.nonzero((seat >= 0) & (seat % size == np.arange(size)))
    return np.stack([replica, seat[replica, position] // size], axis=1)
