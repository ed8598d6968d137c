"""Constructions offer what they are there for, and chains end where domains end."""

from dataclasses import replace

import numpy as np
import pytest

from placer.job.axes import Parallelism
from placer.job.model import Job
from placer.job.traffic import Group
from placer.placement.check import violations
from placer.placement.placement import Placement
from placer.solve.construct.fills import fullest_fills, nested, uneven
from placer.solve.problem.compiled import Problem
from placer.topology.model import Tier
from tests.solve.random_cases import machine_of
from tests.solve.solving import alone, solve

WEIGHTS = {"tp": 100.0, "cp": 100.0, "pp": 10.0, "dp": 1.0}
TIERS = [
    Tier("node", 400e9, 1e-6, True, 1.0, 1.0, 1.0),
    Tier("rack", 20e9, 5e-6, False, 1.0, 1.0, 5.0),
    Tier("cluster", 20e9, 8e-6, False, 1.0, 1.0, 9.0),
]
ORDER = ("tp", "cp", "ep", "pp", "dp")


def racks(gpus, rack):
    """Nodes of so many GPUs in racks."""
    return machine_of(gpus, [rack, [0] * len(gpus)], TIERS)


def job(launcher="node-contiguous", order=ORDER, **sizes):
    axes = Parallelism(**sizes, order=order)
    return Job("j", axes, weights=WEIGHTS, launcher=launcher)


# Only together do groups of 3, 2, 2 and 1 ranks fill two nodes of four.
ROWS = ((0, 1), (2, 3, 4), (5, 6), (7,))
PARTS = Group("g", "all_reduce", 1.0, 1.0, False, ROWS)
IN_PARTS = Job(
    "j", Parallelism(dp=8), launcher="free", groups=(PARTS,), require={"g": "node"},
    weights=WEIGHTS,
)  # fmt: skip
# Neither nodes nor racks have boxes, only all of the machine is one.
PAIRS = Group("g", "all_reduce", 1.0, 1.0, False, ((0, 7), (1, 6), (2, 5), (3, 4)))
IN_PAIRS = replace(IN_PARTS, groups=(PAIRS,))
# Where there are no nestings, parts lie side by side.
NO_GRID = job("free", ("dp", "cp", "ep", "pp", "tp"), tp=2, dp=3, ep=2, etp=3)


@pytest.mark.parametrize(
    ("method", "machine", "work", "told"),
    [
        (nested, racks([2] * 4, [0, 1, 0, 1]), job(tp=2, pp=2, dp=2), "nesting"),
        (nested, racks([4, 4], [0, 1]), IN_PARTS, "packing"),
        (nested, racks([2] * 4, [0, 0, 1, 1]), IN_PAIRS, "part order"),
        (nested, racks([3, 3], [0, 1]), NO_GRID, "part order"),
        # Nodes of 3, 2 and 1 have no block size in common.
        (uneven, racks([3, 2, 1], [0] * 3), job(dp=6), "ranks in order, 1 at a time"),
    ],
)
def test_a_construction_offers_what_it_is_there_for(method, machine, work, told):
    """It is legal, and better than ranks in order where the first rack is no rack."""
    problem = Problem.of(machine, work, "hop-cost")
    found = alone(method, problem)
    assert found.method.startswith(told)
    assert problem.allows(found.gpu_of_rank)
    if told == "nesting":
        assert found.value < problem.goal.value(np.arange(8))


def test_the_fullest_racks_come_first():
    """A small rack named first takes the last ranks, in whole tp groups."""
    topology = racks([2, 3, 2, 2], [0, 1, 1, 1])
    problem = Problem.of(topology, job(tp=2, pp=4))
    placements = [gpus for _, gpus in fullest_fills(problem)]
    nodes = topology.node_of_gpu[np.array(placements)]
    assert (nodes == [1, 1, 2, 2, 3, 3, 0, 0]).all()


def test_nodes_that_lost_gpus_are_used_where_others_would_do():
    """Four nodes of 4 hold 16 ranks, but on three racks: one of 4, 3 and 1 has all."""
    topology = racks([4, 3, 1, 4, 4, 4], [0, 0, 0, 1, 2, 2])
    found = alone(nested, Problem.of(topology, job(cp=8, dp=2), "hop-cost"))
    rack = topology.domain_of_gpu[1][found.gpu_of_rank]
    assert len(set(rack[:8].tolist())) == len(set(rack[8:].tolist())) == 1


@pytest.mark.parametrize(
    ("stages", "pp", "dp", "cuts", "shared"),
    [
        # One pipeline is cut where two fit whole.
        ([6, 6], 4, 3, 1, None),
        # Four racks of four, and four of three beside one of four: 3 and 4 cuts; in
        # the order of the racks six cuts of eight racks would be seven and one more.
        ([4, 3, 4, 3, 4, 3, 4, 3, 4], 16, 2, 3 + 4, 0),
        # Racks hold a pipeline each, and one node over.
        ([5, 5, 5], 4, 3, 0, None),
        # Two that share a rack have the same stage there, as either sees.
        ([3, 2, 3], 4, 2, 2, 1 + 1),
        # A rack of nine holds one and is left; five racks hold four with four cuts. Of
        # nine and seven it would hold two with one cut, which share one stage.
        ([9, 6, 6, 7, 7, 7], 8, 5, 4, 8),
    ],
)
def test_pipelines_end_with_racks_that_hold_so_many_stages(
    stages, pp, dp, cuts, shared
):
    """As few hops as can be leave a rack, and stages in one rack are the same ones."""
    topology = racks(
        [2] * sum(stages), np.repeat(np.arange(len(stages)), stages).tolist()
    )
    work = job("free", tp=2, pp=pp, dp=dp)
    found = solve(topology, work, objective="hop-cost").placement.gpu_of_rank
    assert violations(Placement(found), topology, work) == []
    rack = topology.domain_of_gpu[1][found].reshape(dp, pp, 2)[..., 0]
    assert int((rack[:, 1:] != rack[:, :-1]).sum()) == cuts
    assert shared in (None, int((rack == np.roll(rack, -1, axis=0)).sum()))


def test_halves_make_up_units_that_do_not_fit_whole():
    """Racks of three tp groups, of which two make a unit: one unit lies in two."""
    topology = racks([2] * 12, [0] * 3 + [1] * 3 + [2] * 6)
    work = job("free", ("tp", "cp", "ep", "dp", "pp"), tp=2, cp=2, pp=3, dp=2)
    found = solve(topology, work, objective="hop-cost").placement.gpu_of_rank
    rack = topology.domain_of_gpu[1][found][work.parallelism.ranks_of_group["cp"]]
    assert int((rack[:, 0] != rack[:, 1]).sum()) == 2  # of both lanes of tp
