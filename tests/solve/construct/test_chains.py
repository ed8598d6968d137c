"""Chains that end where domains end."""

from __future__ import annotations

import numpy as np

from placer.base.arrays import IntArray
from placer.job.axes import Parallelism
from placer.job.model import Job
from placer.placement.check import violations
from placer.placement.placement import Placement
from tests.solve.construct.test_fills import ORDER, WEIGHTS, racks
from tests.solve.solving import solve

WITH_CP = ("tp", "cp", "ep", "dp", "pp")


def rack_of_stage(stages: list[int], pp: int, dp: int) -> IntArray:
    """Rack of each stage of each pipeline, in racks that hold so many; (dp, pp)."""
    rack = np.repeat(np.arange(len(stages)), stages)
    topology = racks([2] * sum(stages), rack.tolist())
    axes = Parallelism(tp=2, pp=pp, dp=dp, order=ORDER)
    job = Job("chains", axes, weights=WEIGHTS, launcher="free")
    gpu_of_rank = solve(topology, job, objective="hop-cost").placement.gpu_of_rank
    assert violations(Placement(gpu_of_rank), topology, job) == []
    return topology.domain_of_gpu[1][gpu_of_rank].reshape(dp, pp, 2)[..., 0]


def cuts(rack: IntArray) -> int:
    """Pipeline hops between racks."""
    return int((rack[:, 1:] != rack[:, :-1]).sum())


def test_one_pipeline_is_cut_where_two_fit_whole() -> None:
    """Three pipelines of four on two racks of six nodes."""
    assert cuts(rack_of_stage([6, 6], pp=4, dp=3)) == 1


def test_pipelines_end_with_racks() -> None:
    """Sixteen stages: four racks of four, and four of three beside one of four.

    In the order of the racks six cuts of eight racks would be seven and one more.
    """
    rack = rack_of_stage([4, 3, 4, 3, 4, 3, 4, 3, 4], pp=16, dp=2)
    assert cuts(rack) == 3 + 4
    assert not {*rack[0].tolist()} & {*rack[1].tolist()}


def test_room_to_spare_is_left_where_pipelines_end() -> None:
    """Racks of five hold a pipeline of four each, and one node over."""
    assert cuts(rack_of_stage([5, 5, 5], pp=4, dp=3)) == 0


def test_pipelines_that_share_a_rack_have_the_same_stages_there() -> None:
    """Two of four on racks of three, two and three: both end or begin in the middle."""
    rack = rack_of_stage([3, 2, 3], pp=4, dp=2)
    assert cuts(rack) == 2
    assert int((rack[0] == rack[1]).sum()) == 1


def test_pipelines_are_cut_where_they_share_most_stages() -> None:
    """A rack of nine holds one and is left; five racks hold four with four cuts.

    Of nine and seven it would hold two with one cut, which share one stage.
    """
    rack = rack_of_stage([9, 6, 6, 7, 7, 7], pp=8, dp=5)
    assert cuts(rack) == 4
    assert int((rack == np.roll(rack, -1, axis=0)).sum()) == 8


def test_halves_make_up_units_that_do_not_fit_whole() -> None:
    """Racks of three tp groups, of which two make a unit: one unit lies in two."""
    topology = racks([2] * 12, [0] * 3 + [1] * 3 + [2] * 6)
    axes = Parallelism(tp=2, cp=2, pp=3, dp=2, order=WITH_CP)
    job = Job("halves", axes, weights={**WEIGHTS, "cp": 50.0}, launcher="free")
    found = solve(topology, job, objective="hop-cost").placement.gpu_of_rank
    rack = topology.domain_of_gpu[1][found][axes.ranks_of_group["cp"]]
    assert int((rack[:, 0] != rack[:, 1]).sum()) == 2  # of both lanes of tp
