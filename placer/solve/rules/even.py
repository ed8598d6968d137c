"""Equal parts of groups: the sizes to try, and what to say where none can be."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from math import gcd

import numpy as np

from placer.base.arrays import divisors
from placer.base.errors import InfeasibleError
from placer.base.units import counted
from placer.job.even import axis_of, is_even, part_key, part_size
from placer.job.model import Job
from placer.solve.construct.equal_parts import groups_in, shares_of, tied_groups
from placer.solve.problem.colocation import colocation_of, groups_of
from placer.solve.problem.compiled import Problem
from placer.solve.rules.counts import is_packed_never
from placer.solve.tree.domains import node_capacity, whole_sets
from placer.topology.machine import Machine


def jobs_in_parts(job: Job) -> Iterator[Job]:
    """The job with parts of every size that its equal parts may have, largest first.

    The job itself where it asks for none, or has them.
    """
    even = {axis_of(key): tier for key, tier in job.require.items() if is_even(key)}
    if not even or any(part_size(key) for key in job.require):
        yield job
        return
    lengths = (
        gcd(*(members.shape[1] for members in groups_of(job, axis))) for axis in even
    )
    for sizes in product(*(divisors(length)[::-1] for length in lengths)):
        parts = zip(even.items(), sizes, strict=True)
        tied = {part_key(axis, size): tier for (axis, tier), size in parts}
        yield replace(job, require={**job.require, **tied})


def in_parts(problem: Problem) -> Iterator[Problem]:
    """The problem with parts of each size that counts leave possible, largest first.

    The problem itself where no parts are required.
    """
    for job in jobs_in_parts(problem.job):
        if job is problem.job or _may_fit(problem, job):
            yield problem.on(problem.machine, job)


def no_equal_parts(problem: Problem) -> InfeasibleError:
    """That groups cannot lie in equal parts, and the nearest sizes that can."""
    machine = problem.machine
    given = {k: t for k, t in problem.job.require.items() if not part_size(k)}
    job = replace(problem.job, require=given)
    lines, hints = [], []
    for key, tier in job.require.items():
        if is_even(key):
            line, nearest = _reason(problem, job, axis_of(key), tier)
            lines.append(line)
            hints += nearest
    names = [key for key in job.require if is_even(key)]
    plain = {key: tier for key, tier in job.require.items() if key not in names}
    if not is_packed_never(machine, replace(job, require=plain)):
        hints.append("without the rule the groups may lie in unequal parts")
    return InfeasibleError("\n".join(lines), hints=hints)


def _may_fit(problem: Problem, job: Job) -> bool:
    """Whether counts leave room for parts, however the job is launched."""
    if is_packed_never(problem.machine, job):
        return False
    found = _shares(problem, job)
    return found is None or found[0] >= found[1]


def _shares(problem: Problem, job: Job) -> tuple[int, int] | None:
    """Tied groups with room, and how many there are; None where they are not alike."""
    machine = problem.machine
    sets = colocation_of(machine, job, 1)
    tied, sizes = tied_groups(machine, job, sets), sets.uniform_sizes()
    if tied is None or sizes is None:
        return None
    takes = whole_sets(machine, node_capacity(machine, 1), sizes)
    tier, (number, width) = tied[0], tied[1].shape
    room = takes[tier] // sizes[tier]
    if width < 3:
        return min(int(room.sum()) // width, number), number
    shares = shares_of(room, width, number)
    return groups_in(shares), number


def _reason(problem: Problem, job: Job, axis: str, tier: str) -> tuple[str, list[str]]:
    """What one rule asks for, what there is, and what could be."""
    machine = problem.machine
    groups = groups_of(job, axis)
    length = min(members.shape[1] for members in groups)
    row = machine.domain_of_node[machine.tier_index(tier)]
    nodes = np.bincount(row)
    gpus = np.bincount(row, machine.gpus_of_node).astype(np.int64)
    shown = ", ".join(map(str, sorted(nodes.tolist(), reverse=True)[:6]))
    more = ", ..." if len(nodes) > 6 else ""
    line = (
        f"{axis} {length} cannot lie in equal parts, one a {tier}: "
        f"{counted(len(nodes), tier)} of {shown}{more} nodes"
    )
    smaller = next(
        (
            size
            for size in reversed(divisors(length)[:-1])
            if int((gpus // size * size).sum()) >= job.world_size
        ),
        0,
    )
    other = [f"{axis} {smaller}, which fits on all"] if smaller > 1 else []
    placed: dict[int, int] = {}
    for size in reversed(divisors(length)):
        tied = {**job.require, part_key(axis, size): tier}
        found = _shares(problem, replace(job, require=tied))
        if found is not None and found[0]:
            placed[size] = job.world_size * found[0] // found[1]
    most = max(placed.values(), default=0)
    if not most:
        line += f": no group of {axis} {length} has room"
        return line, [f"try {hint}" for hint in other]
    sizes = [size for size, ranks in placed.items() if ranks == most]
    # A group need not lie in fewer domains where as many hold a part.
    alone = [size for size in sizes if (gpus >= size).sum() >= length // size]
    shown = " or ".join(map(str, alone or sizes[:1]))
    line += (
        f"; with {shown} a {tier} {most:,} of the {job.world_size:,} ranks have a "
        f"place{_nodes(machine, most)}"
    )
    return line, [" or ".join([f"give it {most:,} ranks", *other])]


def _nodes(machine: Machine, ranks: int) -> str:
    """The nodes that so many ranks take, of those that there are."""
    sizes = np.unique(machine.gpus_of_node)
    if len(sizes) > 1 or ranks % int(sizes[0]):
        return ""
    return f": {ranks // int(sizes[0]):,} of the {machine.num_nodes:,} nodes are usable"
