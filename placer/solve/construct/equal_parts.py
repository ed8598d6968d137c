"""Groups in equal parts, one in each domain, as a rule asks for.

Groups in one or two parts lie so wherever their parts are whole; more are dealt out.

Groups that share a part are tied to each other: they have the same sets, one a part,
and each set must lie in one domain. They lie in ``k`` domains of as many sets. Which
numbers of domains have room for all is a program on counts; sets are dealt out so that
no group comes to a domain twice (Gale 1957, Ryser 1957). Shapes: R ranks, D domains.
"""

from __future__ import annotations

import numpy as np

from placer.base.arrays import IntArray, divisors
from placer.job.even import axis_of, part_size
from placer.job.model import Job
from placer.solve.count import EngineLimits, Program, Term, solve
from placer.solve.problem.colocation import Colocation, colocation_of, groups_of, join
from placer.solve.problem.compiled import Problem
from placer.solve.run.budget import Budget
from placer.solve.run.incumbent import Incumbent
from placer.solve.tree.domains import node_capacity, whole_sets
from placer.solve.tree.fill import fill_domains, in_tree_order
from placer.topology.machine import Machine


def dealt_evenly(problem: Problem, incumbent: Incumbent, _budget: Budget) -> None:
    """Offer groups of more than two parts dealt out to as few domains as can be."""
    machine, job = problem.machine, problem.job
    for colocation in problem.choices or [colocation_of(machine, job, 1)]:
        tied = tied_groups(machine, job, colocation)
        sizes = colocation.uniform_sizes()
        if tied is None or sizes is None:
            continue
        tier, sets = tied
        number, width = sets.shape
        if width < 3:
            continue
        capacity = node_capacity(machine, colocation.block)
        takes = whole_sets(machine, capacity, sizes[: tier + 1])
        along = in_tree_order(machine, tier)
        room = takes[tier][along] // sizes[tier]
        shares = shares_of(room, width, number)
        if groups_in(shares) < number:
            continue
        domain_of_set = np.empty(sets.size, dtype=np.int64)
        domain_of_set[sets] = along[dealt(shares, width)]
        domain_of_rank = domain_of_set[colocation.label[tier]]
        order = np.arange(job.world_size) if problem.choices else None
        node_of_rank = fill_domains(machine, takes, domain_of_rank, order)
        if node_of_rank is not None:
            incumbent.offer("equal parts dealt out", machine.gpus_on(node_of_rank))


def tied_groups(
    machine: Machine, job: Job, colocation: Colocation
) -> tuple[int, IntArray] | None:
    """Tier of parts, and sets of that tier in the groups tied to each other; (g, n).

    Sets are in the order of their ranks. None where groups are not alike. Of several
    axes in parts, those of the first.
    """
    key = next((key for key in job.require if part_size(key)), None)
    if key is None:
        return None
    tier, axis = machine.tier_index(job.require[key]), axis_of(key)
    label = colocation.label[tier]
    whole = label
    for members in groups_of(job, axis):
        whole = join(whole, members)
        if members.shape[1] % part_size(key):
            return None
    first = np.unique(label, return_index=True)[1]
    of_set = np.unique(whole[first], return_inverse=True)[1]
    counts = np.bincount(of_set)
    widths = {members.shape[1] // part_size(key) for members in groups_of(job, axis)}
    if {*counts.tolist()} != widths:
        return None
    order = np.lexsort((first, of_set))
    return tier, order.reshape(len(counts), -1)


def shares_of(room: IntArray, width: int, most: int) -> dict[int, IntArray]:
    """As many groups as have room, up to ``most``, cut as rarely as can be.

    ``{k: groups in k domains that come to each domain}``; as many times ``k`` as there
    are such groups.

    ``room`` ((D,)): sets that each domain can take. ``width``: sets of a group.
    """
    program, numbers = Program(), divisors(width)
    # One group more is worth any number of cuts.
    gain = most * width
    groups = {k: program.column(most=most, price=k - 1 - gain) for k in numbers}
    program.row([Term(column) for column in groups.values()], most=most)
    coming = {k: [program.column(most=most) for _ in room] for k in numbers}
    for domain, free in enumerate(room.tolist()):
        inside = [Term(coming[k][domain], width // k) for k in numbers]
        program.row(inside, most=free)
    for k in numbers:
        for column in coming[k]:
            program.row([Term(column), Term(groups[k], -1)], most=0)
        everywhere = [Term(column) for column in coming[k]]
        program.row([*everywhere, Term(groups[k], -k)], least=0, most=0)
    counts = solve(program, EngineLimits()).counts or [0] * len(program.most)
    return {
        k: np.array([counts[column] for column in coming[k]], dtype=np.int64)
        for k in numbers
        if counts[groups[k]]
    }


def groups_in(shares: dict[int, IntArray]) -> int:
    """How many groups some shares are of."""
    return sum(int(coming.sum()) // k for k, coming in shares.items())


def dealt(shares: dict[int, IntArray], width: int) -> IntArray:
    """Domain of every set of every group; shape (groups, sets).

    Each group takes domains to which the most are still to come.
    """
    rows = []
    for k, coming in shares.items():
        left = coming.copy()
        for _ in range(int(coming.sum()) // k):
            domains = np.sort(np.argsort(-left, kind="stable")[:k])
            left[domains] -= 1
            rows.append(np.repeat(domains, width // k))
    return np.array(rows, dtype=np.int64).reshape(-1, width)
