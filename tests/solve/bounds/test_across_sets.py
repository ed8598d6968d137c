"""Groups across sets that a rule keeps in leaves: none has more of them whole."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from placer.job.axes import Parallelism
from placer.job.model import Compute, Job
from placer.placement.placement import Placement
from placer.solve.bounds.certificate import lower_bound
from placer.solve.bounds.groups.across_sets import across_sets
from placer.solve.bounds.groups.even_parts import most_even
from placer.solve.problem.colocation import colocation_of
from placer.solve.problem.compiled import Problem
from placer.topology.model import Tier
from tests.marks import slow
from tests.solve.machines import MODEL
from tests.solve.random_cases import machine_of

TIERS = [
    Tier("node", 450e9, 1e-6, True, 1.0, 0.8, 1.0),
    Tier("leaf", 50e9, 5e-6, False, 1.0, 1.0, 9.0),
    Tier("cluster", 50e9, 8e-6, False, 1.0, 1.0, 11.0),
]
SHAPES = [(2, 2, 1), (2, 2, 2), (3, 2, 1), (2, 3, 1), (4, 2, 1), (2, 4, 1)]


def placed(
    rooms: Sequence[int], leaves: Sequence[int], sets: Sequence[int]
) -> Iterator[tuple[int, ...]]:
    """Node of every rank, each set in one leaf; nodes alike in order of first use."""
    free, home = [*rooms], {}
    node_of_rank: list[int] = []

    def go_on() -> Iterator[tuple[int, ...]]:
        if len(node_of_rank) == len(sets):
            yield tuple(node_of_rank)
            return
        one, seen = sets[len(node_of_rank)], set()
        for node, room in enumerate(rooms):
            is_new = one not in home
            sort = room, leaves[node], node if free[node] < room else -1
            if (
                not free[node]
                or sort in seen
                or home.get(one, leaves[node]) != (leaves[node])
            ):
                continue
            seen.add(sort)
            home.setdefault(one, leaves[node])
            free[node] -= 1
            node_of_rank.append(node)
            yield from go_on()
            node_of_rank.pop()
            free[node] += 1
            if is_new:
                del home[one]

    yield from go_on()


@pytest.mark.parametrize("seed", [*range(15), *slow(range(15, 80))])
def test_no_placement_has_more_groups_whole(seed: int) -> None:
    """Nor more even parts, and none is cheaper or faster than the bound."""
    rng = random.Random(f"across {seed}")
    tp, cp, dp = rng.choice(SHAPES)
    leaves = sorted(rng.randrange(2) for _ in range(rng.choice((3, 4))))
    leaves = [leaf - leaves[0] for leaf in leaves]
    rooms = [rng.randint(1, 4) for _ in leaves]
    rooms[0] += max(0, tp * cp * dp - sum(rooms))
    machine = machine_of(rooms, [leaves, [0] * len(rooms)], TIERS)
    weights = {"tp": rng.choice((1, 10, 4000)), "cp": rng.choice((1, 400)), "dp": 1}
    job = Job(
        "j",
        Parallelism(tp=tp, cp=cp, dp=dp),
        MODEL,
        4096,
        compute=Compute(micro_batch_time=0.02),
        weights=weights,
        require={"cp": "leaf"},
        launcher="free",
    )
    label = colocation_of(machine, job, 1).label
    found = np.array(list(placed(rooms, leaves, label[1].tolist())))
    if not len(found):
        return
    members = job.parallelism.ranks_of_group["tp"]
    alike = (found[:, members][..., None] == found[:, members][:, :, None]).sum(-1)
    least = alike.min(axis=2)
    across = list(across_sets(machine.domain_of_node, label, 0, members))
    assert across
    for sets in across:
        cut = (least < tp).sum(axis=1)
        assert sets.fewest_cut(np.array(rooms), len(members)) <= cut.min()
    part = np.where(least < tp, least, tp // 2).min(axis=1)
    assert most_even(np.array(rooms), tp, members.size, across) >= part.max()
    for objective in ("time", "hop-cost"):
        problem = Problem.of(machine, job, objective)
        bound = lower_bound(problem, 1).value
        for node in found[rng.sample(range(len(found)), min(len(found), 40))]:
            gpu_of_rank = Placement.on_nodes(machine, node).gpu_of_rank
            assert bound <= problem.goal.value(gpu_of_rank) * (1 + 1e-9)


def test_a_leaf_takes_whole_sets_only() -> None:
    """Three nodes of eight and 35 GPUs besides: of four groups of a set one is cut."""
    rooms = [8] * 3 + [7] * 5 + [8] * 7 + [7]
    leaves = [0] * 8 + [1] * 8
    machine = machine_of(rooms, [leaves, [0] * 16], TIERS)
    axes = Parallelism(tp=8, cp=4, dp=2)
    job = Job("j", axes, None, 4096, require={"cp": "leaf"}, launcher="free")
    members, label = axes.ranks_of_group["tp"], colocation_of(machine, job, 1).label
    (sets,) = across_sets(machine.domain_of_node, label, 0, members)
    assert sets.fewest_cut(np.array(rooms), 8) == 1
