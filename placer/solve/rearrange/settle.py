"""The result settled: of equally good placements, the one to be preferred.

To have most ranks where a previous plan has them, equal domains of the machine may
exchange what they hold, equal nodes their ranks, and replicas that sit alike their
places. None of this changes what a placement costs (it is priced again all the same).
An exchange is worth the ranks that it keeps, and the best is taken
(`placer.solve.tree.symmetry`). A rank is in one pair of domains of each tier, so the
work grows with the ranks.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterator
from itertools import islice

import numpy as np

from placer.base.arrays import IntArray
from placer.placement.placement import Placement
from placer.placement.previous import Previous
from placer.solve.construct.fills import is_start, nested_fills
from placer.solve.problem.compiled import Problem
from placer.solve.rearrange.failure import Failure, mended
from placer.solve.rearrange.leftover import with_best_rest
from placer.solve.run.incumbent import Candidate, Incumbent
from placer.solve.run.solution import Solution
from placer.solve.tree.symmetry import (
    Pair,
    best_pairs,
    completed,
    on_other_nodes,
)


def settled(
    problem: Problem, solution: Solution, previous: Previous | None
) -> Solution:
    """The solution, or one no worse that is to be preferred.

    A baseline that is optimal may scatter ranks over more domains than it need, so
    nestings are tried beside it. Then what it has in some domains goes to others, for
    the most useful rest. Beside a previous plan its own placement is tried,
    mended where nodes were lost, and exchanges of equal domains and replicas. Each is
    checked and priced. The work is bounded and no clock is looked at, so the result
    does not depend on one.
    """
    incumbent = Incumbent.resumed(problem, solution, previous)
    for how, gpu_of_rank in _others(problem, solution, previous, incumbent):
        if problem.avoided(gpu_of_rank) <= problem.avoided(incumbent.best):
            incumbent.offer(f"{incumbent.method}, {how}", gpu_of_rank)
    if previous is None and problem.job.roles:  # other jobs are built so
        _put_in_order(problem, incumbent)
    if incumbent.best is solution.placement.gpu_of_rank:
        return solution
    placement = Placement(incumbent.best)
    return solution.instead(placement, incumbent.value, incumbent.method)


def _put_in_order(problem: Problem, incumbent: Incumbent) -> None:
    """Instances of roles on domains in their order."""
    best = incumbent.best
    ordered = in_order(problem, best)
    if (
        not np.array_equal(ordered, best)
        and problem.allows(ordered)
        and problem.avoided(ordered) <= problem.avoided(best)
        and float(problem.goal.value(ordered)) <= incumbent.value
    ):
        incumbent.gpu_of_rank = ordered


def in_order(problem: Problem, gpu_of_rank: IntArray) -> IntArray:
    """The placement with equal domains in the order of their first ranks; shape (R,).

    Exchanges of equal domains cost nothing. People read a plan, though, and a worker on
    ``r01t[01-09]`` is easier to find than one on ``r10t[18,15,13,...]``.
    """
    machine, symmetry = problem.machine, problem.symmetry
    node = machine.node_of_gpu[gpu_of_rank]
    firsts = []
    for row in machine.domain_of_node:
        first = np.full(int(row.max()) + 1, len(node))
        np.minimum.at(first, row[node], np.arange(len(node)))
        firsts.append(first)

    def matched(tier: int, pair: Pair) -> Iterator[Pair]:
        """Each child of a domain, and the one of its shape that it becomes."""
        shape, (a, b) = symmetry.shape[tier - 1], pair
        queues: dict[int, deque[int]] = defaultdict(deque)
        for child in symmetry.children[tier][b]:
            queues[shape[child]].append(child)
        for child in sorted(symmetry.children[tier][a], key=firsts[tier - 1].item):
            yield child, queues[shape[child]].popleft()

    return on_other_nodes(machine, gpu_of_rank, symmetry.descended(matched))


def _others(
    problem: Problem,
    solution: Solution,
    previous: Previous | None,
    incumbent: Incumbent,
) -> Iterator[Candidate]:
    """What is done to the incumbent as it then is, and the placement after it."""
    params = problem.params
    is_small = problem.job.world_size <= params.most_ranks
    is_first = is_start(solution.method) and solution.stop_reason == "proved"
    if is_first and is_small and problem.choices:
        for _, gpu_of_rank in islice(nested_fills(problem), params.tidy_fills):
            yield "tidied", gpu_of_rank
    if previous is None:
        found = with_best_rest(problem, incumbent.best) if is_small else None
        if found is not None:
            yield "best rest", found
        return
    if not _stays(previous, incumbent.best) and not previous.is_new.any():
        found = mended(Failure(problem, previous))
        if found is not None:
            yield "previous plan", found
    if not _stays(previous, incumbent.best):
        for found in aligned(problem, incumbent.best, previous):
            yield "fewer ranks moved", found
            if _stays(previous, incumbent.best):
                return


def _stays(previous: Previous, gpu_of_rank: IntArray) -> bool:
    """Whether every rank is where it was, so far as its old seat is there."""
    seats = int(np.count_nonzero(previous.gpu_of_rank >= 0))
    return previous.kept(gpu_of_rank) == seats


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
    becomes = problem.symmetry.exchange(Counter(moves))
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
    kept = np.where(np.isin(node, node[stays]), -1, gpu_of_rank)
    return topology.gpus_on(node, np.where(stays, before, kept))


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
