"""Groups whole where domains hold them, and runs that end with groups."""

import random
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest

from placer.job.axes import Parallelism
from placer.job.model import Compute, Job
from placer.job.models import Model
from placer.solve import search
from placer.solve.construct.fills import fullest_fills
from placer.solve.construct.whole_groups import whole_group_fills
from placer.solve.problem.compiled import Problem
from placer.solve.run.budget import Budget
from placer.topology.model import Tier
from tests.solve.random_cases import machine_of

SPARSE = Model("s", 16, 2048, 4096, 32, 8, 32000, True, False, 16, 2, 0, 1024, 16)
TIERS = [
    Tier("node", 450e9, 1e-6, True, 1.0, 0.8, 1.0),
    Tier("leaf", 50e9, 5e-6, False, 1.0, 1.0, 9.0),
    Tier("cluster", 50e9, 8e-6, False, 4.0, 1.0, 11.0),
]
BLOCKS = [*TIERS[:2], replace(TIERS[1], name="block", distance=10.0), TIERS[2]]


def machine(gpus, leaf):
    """Nodes of so many GPUs below leaves."""
    return machine_of(gpus, [leaf, [0] * len(gpus)], TIERS)


def job(**sizes):
    """A sparse model."""
    return Job(
        name="sparse",
        parallelism=Parallelism(**sizes, order=("tp", "cp", "ep", "dp", "pp")),
        model=SPARSE,
        sequence=4096,
        micro_batches=8,
        compute=Compute(micro_batch_time=0.05),
        launcher="free",
        weights={"tp": 4000, "ep": 64, "pp": 40, "edp": 4},
    )


def parts_of(topology, groups, gpu_of_rank):
    """Members of each group on each node that it touches, sorted."""
    node = topology.node_of_gpu[gpu_of_rank[groups]]
    return [sorted(np.unique(row, return_counts=True)[1].tolist()) for row in node]


# Two leaves, each of three whole nodes and two of 7 GPUs.
SEVENS = machine([8, 8, 8, 7, 7, 8, 8, 8, 7, 7], [0] * 5 + [1] * 5)
EIGHT_GROUPS = job(tp=1, ep=8, pp=4, dp=16, vp=2)


@pytest.mark.parametrize("launcher", ["free", "node-contiguous"])
def test_six_nodes_hold_six_groups_and_the_last_two_lie_in_two_nodes_of_a_leaf(
    launcher,
):
    """Also where nodes of a launch hold different numbers of ranks."""
    placed = replace(EIGHT_GROUPS, launcher=launcher)
    problem = Problem.of(SEVENS, placed, "hop-cost")
    fills = [gpu_of_rank for _, gpu_of_rank in whole_group_fills(problem)]
    best = min(filter(problem.allows, fills), key=problem.goal.value)
    groups = placed.parallelism.ranks_of_group["ep"]
    parts = parts_of(SEVENS, groups, best)
    assert sorted(parts) == [[1, 7]] * 2 + [[8]] * 6
    leaves = SEVENS.domain_of_gpu[1][best[groups]]
    assert (leaves == leaves[:, :1]).all()


def test_a_rest_lies_in_one_node_wherever_that_is():
    """Of two nodes with room for a rest of 3 the near one; far rather than in two."""
    near = machine([5, 3, 5, 2, 1, 3], [0, 0, 1, 1, 1, 2])
    groups = job(tp=1, ep=8, pp=1, dp=16)
    problem = Problem.of(near, groups, "hop-cost")
    rows = groups.parallelism.ranks_of_group["ep"]
    found = [gpus for _, gpus in whole_group_fills(problem)]
    assert any(parts_of(near, rows, gpus) == [[3, 5]] * 2 for gpus in found)
    for gpus in found:
        leaf = near.domain_of_gpu[1][gpus[rows]]
        is_near = (leaf == leaf[:, :1]).all(axis=1).tolist()
        assert ([3, 5], True) in zip(parts_of(near, rows, gpus), is_near, strict=True)


@pytest.mark.parametrize("objective", ["time", "hop-cost"])
@pytest.mark.parametrize("seed", range(20))
def test_no_gpu_is_taken_twice_and_no_group_parted_without_need(seed, objective):
    """Any expert layout on any nodes: as many groups are whole as there can be."""
    rng = random.Random(f"whole groups {seed}")
    ep, tp = rng.choice((2, 4, 8, 16)), rng.choice((1, 2, 4))
    etp = rng.choice([size for size in (1, 2, 4) if size <= tp])
    nodes = rng.randint(6, 20)
    gpus = [rng.choice((8, 8, 8, 7, 6, 5, 4)) for _ in range(nodes)]
    topology = machine(gpus, sorted(rng.randrange(3) for _ in range(nodes)))
    pp = rng.choice((1, 2, 4))
    step = max(1, ep * etp // tp)
    dp = sum(gpus) * 9 // 10 // (tp * pp) // step * step
    if not dp:
        pytest.skip("too few GPUs")
    sparse = job(tp=tp, ep=ep, etp=etp, pp=pp, dp=dp)
    problem = Problem.of(topology, sparse, objective)
    found = list(whole_group_fills(problem))
    assert found
    for _, gpu_of_rank in found:
        assert len(np.unique(gpu_of_rank)) == sparse.world_size
        unit = max(ep * etp, tp)
        groups = sparse.parallelism.ranks_of_group["ep" if ep * etp > tp else "tp"]
        parts = parts_of(topology, groups, gpu_of_rank)
        whole = sum(len(sizes) == 1 for sizes in parts) * groups.shape[1] // unit
        held = sum(held // unit for held in gpus)
        assert whole >= min(held, sparse.world_size // unit)


def racks_of_chains(racks, stages, blocks=None):
    """Rack of each stage of every pipeline, on racks of so many nodes, a stage each."""
    rack = np.repeat(range(len(racks)), racks)
    rows = [rack.tolist(), (rack * 0 if blocks is None else blocks[rack]).tolist()]
    topology = machine_of([4] * sum(racks), [*rows, [0] * sum(racks)], BLOCKS)
    axes = Parallelism(tp=4, pp=stages, dp=sum(racks) // stages)
    weights = {"tp": 4000, "pp": 40, "dp": 4}
    placed = Job(name="chains", parallelism=axes, launcher="free", weights=weights)
    fills = dict(whole_group_fills(Problem.of(topology, placed, "hop-cost")))
    gpus = fills["whole pp chains, groups, in rows"][axes.ranks_of_group["pp"][::4]]
    return topology.domain_of_gpu[1][gpus]


def test_chains_end_with_racks_that_together_hold_whole_ones():
    """Two chains of 16: in each, one rack of four stages and four of three."""
    at = racks_of_chains([3, 4, 3, 3, 4, 3, 3, 3, 3, 3], 16)
    one, other = (set(racks) for racks in at.tolist())
    assert len(one) == len(other) == 5
    assert not one & other
    # As many as are wanted, and not one less: the rack of three is left out.
    at = racks_of_chains([4, 3, 4], 4)
    assert (at == at[:, :1]).all()


def test_of_chains_in_racks_of_two_blocks_one_lies_in_both_where_it_must():
    """Of 12 and 20 stages: 6, 2 with 4, then 4 with 3, 5 with 2, and 6."""
    block = np.array([0, 0, 0, 1, 1, 1])
    at = racks_of_chains([6, 7, 6, 6, 6, 7], 8, block)  # a seventh would be alike
    assert (block[at] == block[at][:, :1]).all()
    block = np.array([0, 0, 1, 1, 1])
    at = racks_of_chains([6, 6, 7, 7, 6], 8, block)
    assert ((at[:, 1:] != at[:, :-1]).sum(axis=1) == 1).all()
    assert (at == np.roll(at, 1, axis=0)).sum() == 2 + 3 + 2
    assert (block[at] != block[at][:, :1]).any(axis=1).sum() == 1


@pytest.mark.parametrize("seed", range(20))
def test_racks_of_a_block_are_taken_in_the_best_order(seed):
    """No order cuts fewer chains, filled there and back, nor has more stages alike."""
    draw = random.Random(f"rows {seed}")
    size, racks = draw.randint(4, 8), [draw.randint(2, 9) for _ in range(4)]
    racks.append(-sum(racks) % size or size)
    at = racks_of_chains(racks, size)

    def in_turn(order):
        rows = np.repeat(order, [racks[rack] for rack in order]).reshape(-1, size)
        rows[1::2] = rows[1::2, ::-1].copy()
        return rows

    def worth(rows):
        cuts = (rows[:, 1:] != rows[:, :-1]).sum()
        return (rows[1:] == rows[:-1]).sum() - size * cuts

    assert worth(at) == max(map(worth, map(in_turn, permutations(range(5)))))


def test_the_smallest_domains_are_left_out():
    """A ring over all ranks crosses one leaf less when the spare GPUs make one idle."""
    leaves = machine([8, 8, 2, 8, 8], [0, 0, 0, 1, 1])
    ring = replace(job(tp=1, ep=1, pp=1, dp=31), weights={"dp": 4})
    problem = Problem.of(leaves, ring, "hop-cost")
    used = {
        name: len(np.unique(leaves.node_of_gpu[gpus]))
        for name, gpus in fullest_fills(problem)
    }
    assert used["fullest domains first, the smallest left out"] == 4
    assert used["fullest domains first"] == 5
    assert search.solve(problem, Budget(60)).gap == 0
