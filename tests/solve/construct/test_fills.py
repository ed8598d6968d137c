"""Constructions offer what they are there for, and chains end where domains end."""

import numpy as np

from placer.job.axes import Parallelism
from placer.job.model import Job
from placer.job.traffic import Group
from placer.placement.check import violations
from placer.placement.placement import Placement
from placer.solve.construct.fills.fills import fullest_fills, nested, uneven
from placer.solve.problem.compiled import Problem
from placer.solve.run.budget import Budget
from placer.solve.run.incumbent import Incumbent
from placer.topology.model import Tier
from tests.solve.random_cases import machine_of
from tests.solve.solving import solve

WEIGHTS = {"tp": 100.0, "pp": 10.0, "dp": 1.0}
TIERS = [
    Tier("node", 400e9, 1e-6, True, 1.0, 1.0, 1.0),
    Tier("rack", 20e9, 5e-6, False, 1.0, 1.0, 5.0),
    Tier("cluster", 20e9, 8e-6, False, 1.0, 1.0, 9.0),
]
ORDER = ("tp", "cp", "ep", "pp", "dp")


def racks(gpus, rack):
    """Nodes of so many GPUs in racks."""
    return machine_of(gpus, [rack, [0] * len(gpus)], TIERS)


def offered(method, topology, job):
    """What a method alone finds."""
    problem = Problem.of(topology, job, "hop-cost")
    incumbent = Incumbent(problem, Budget(60.0))
    method(problem, incumbent, incumbent.budget)
    return problem, incumbent


def test_nestings_bring_pipelines_into_racks():
    """Racks whose nodes alternate: each pipeline in one rack, not as nodes come."""
    topology = racks([2, 2, 2, 2], [0, 1, 0, 1])
    job = Job("j", Parallelism(tp=2, pp=2, dp=2, order=ORDER), weights=WEIGHTS)
    problem, incumbent = offered(nested, topology, job)
    assert incumbent.method.startswith("nesting")
    assert incumbent.value < problem.goal.value(np.arange(8))
    assert incumbent.gpu_of_rank is not None
    rack = topology.domain_of_gpu[1][incumbent.gpu_of_rank]
    assert rack[:4].tolist() in ([0] * 4, [1] * 4)


def test_groups_of_several_sizes_are_packed():
    """Groups of 3, 2, 2 and 1 ranks fit two nodes of 4 in one way."""
    rows = ((0, 1), (2, 3, 4), (5, 6), (7,))
    job = Job(
        "j",
        Parallelism(dp=8),
        weights=WEIGHTS,
        require={"g": "node"},
        launcher="free",
        groups=(Group("g", "all_reduce", 1.0, 1.0, False, rows),),
    )
    _, incumbent = offered(nested, racks([4, 4], [0, 0]), job)
    assert incumbent.method == "packing"


def test_axes_without_a_common_grid_are_filled_in_order():
    """Where there are no nestings, parts lie side by side."""
    sizes = Parallelism(tp=2, dp=3, ep=2, etp=3, order=("dp", "cp", "ep", "pp", "tp"))
    job = Job("j", sizes, weights=WEIGHTS, launcher="free")
    _, incumbent = offered(nested, racks([3, 3], [0, 1]), job)
    assert incumbent.method == "part order"


def test_nodes_hold_as_many_consecutive_ranks_as_they_can():
    """Nodes of 3, 2 and 1 have no block size in common."""
    job = Job("j", Parallelism(dp=6), weights=WEIGHTS, launcher="node-contiguous")
    problem, incumbent = offered(uneven, racks([3, 2, 1], [0, 0, 0]), job)
    assert not problem.choices
    assert incumbent.method == "ranks in order, 1 at a time"


def test_the_fullest_racks_come_first():
    """A small rack named first takes the last ranks, in whole tp groups."""
    topology = racks([2, 3, 2, 2], [0, 1, 1, 1])
    job = Job("j", Parallelism(tp=2, pp=4, dp=1, order=ORDER), weights=WEIGHTS)
    placements = [gpus for _, gpus in fullest_fills(Problem.of(topology, job))]
    nodes = topology.node_of_gpu[np.array(placements)]
    assert (nodes == [1, 1, 2, 2, 3, 3, 0, 0]).all()


def test_nodes_that_lost_gpus_are_used_where_others_would_do():
    """Four nodes of 4 hold 16 ranks, but on three racks: one of 4, 3 and 1 has all."""
    topology = racks([4, 3, 1, 4, 4, 4], [0, 0, 0, 1, 2, 2])
    job = Job(
        "j",
        Parallelism(cp=8, dp=2, order=ORDER),
        weights={"cp": 100.0, "dp": 1.0},
        launcher="node-contiguous",
    )
    problem, incumbent = offered(nested, topology, job)
    assert 4 in [choice.block for choice in problem.choices]
    assert incumbent.gpu_of_rank is not None
    rack = topology.domain_of_gpu[1][incumbent.gpu_of_rank]
    assert len(set(rack[:8].tolist())) == len(set(rack[8:].tolist())) == 1


WITH_CP = ("tp", "cp", "ep", "dp", "pp")


def rack_of_stage(stages, pp, dp):
    """Rack of each stage of each pipeline, in racks that hold so many; (dp, pp)."""
    rack = np.repeat(np.arange(len(stages)), stages)
    topology = racks([2] * sum(stages), rack.tolist())
    axes = Parallelism(tp=2, pp=pp, dp=dp, order=ORDER)
    job = Job("chains", axes, weights=WEIGHTS, launcher="free")
    gpu_of_rank = solve(topology, job, objective="hop-cost").placement.gpu_of_rank
    assert violations(Placement(gpu_of_rank), topology, job) == []
    return topology.domain_of_gpu[1][gpu_of_rank].reshape(dp, pp, 2)[..., 0]


def cuts(rack):
    """Pipeline hops between racks."""
    return int((rack[:, 1:] != rack[:, :-1]).sum())


def test_one_pipeline_is_cut_where_two_fit_whole():
    """Three pipelines of four on two racks of six nodes."""
    assert cuts(rack_of_stage([6, 6], pp=4, dp=3)) == 1


def test_pipelines_end_with_racks():
    """Sixteen stages: four racks of four, and four of three beside one of four.

    In the order of the racks six cuts of eight racks would be seven and one more.
    """
    rack = rack_of_stage([4, 3, 4, 3, 4, 3, 4, 3, 4], pp=16, dp=2)
    assert cuts(rack) == 3 + 4
    assert not {*rack[0].tolist()} & {*rack[1].tolist()}


def test_room_to_spare_is_left_where_pipelines_end():
    """Racks of five hold a pipeline of four each, and one node over."""
    assert cuts(rack_of_stage([5, 5, 5], pp=4, dp=3)) == 0


def test_pipelines_that_share_a_rack_have_the_same_stages_there():
    """Two of four on racks of three, two and three: both end or begin in the middle."""
    rack = rack_of_stage([3, 2, 3], pp=4, dp=2)
    assert cuts(rack) == 2
    assert int((rack[0] == rack[1]).sum()) == 1


def test_pipelines_are_cut_where_they_share_most_stages():
    """A rack of nine holds one and is left; five racks hold four with four cuts.

    Of nine and seven it would hold two with one cut, which share one stage.
    """
    rack = rack_of_stage([9, 6, 6, 7, 7, 7], pp=8, dp=5)
    assert cuts(rack) == 4
    assert int((rack == np.roll(rack, -1, axis=0)).sum()) == 8


def test_halves_make_up_units_that_do_not_fit_whole():
    """Racks of three tp groups, of which two make a unit: one unit lies in two."""
    topology = racks([2] * 12, [0] * 3 + [1] * 3 + [2] * 6)
    axes = Parallelism(tp=2, cp=2, pp=3, dp=2, order=WITH_CP)
    job = Job("halves", axes, weights={**WEIGHTS, "cp": 50.0}, launcher="free")
    found = solve(topology, job, objective="hop-cost").placement.gpu_of_rank
    rack = topology.domain_of_gpu[1][found][axes.ranks_of_group["cp"]]
    assert int((rack[:, 0] != rack[:, 1]).sum()) == 2  # of both lanes of tp
