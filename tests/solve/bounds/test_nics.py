"""The compromise between NICs of gradient groups and cuts of pipelines, by hand.

Two stages, four replicas, nodes of three GPUs. With two members of a gradient group in
every node it touches a node has room for one stage only, so the pipeline is cut.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from placer.cost.step import StepModel
from placer.job.axes import Parallelism
from placer.job.model import Compute, Job
from placer.job.models import Model
from placer.job.parallel import DataParallel, Overlap
from placer.solve.bounds.case import Case
from placer.solve.bounds.cases import time_bound
from placer.solve.bounds.nics import NicTrade
from placer.solve.problem.colocation import colocation_of
from placer.topology.model import Tier
from tests.solve.random_cases import machine_of

OUTER = 50e9
T_MB = 1e-2
MODEL = Model("m", 8, 1024, 4096, 16, 16, 32000)


def model_on(
    nodes: list[int], oversubscription: float, stages: int = 2, context: int = 1
) -> StepModel:
    """No latency, no overlap, and uplinks of so many GPUs' share of the bandwidth."""
    tiers = [
        Tier("node", 400e9, 0.0, True, 1.0, 1.0, 1.0),
        Tier("cluster", OUTER, 0.0, False, oversubscription, 1.0, 8.0),
    ]
    job = Job(
        name="by hand",
        parallelism=Parallelism(1, context, 1, stages, 8 // stages // context, 1, 1),
        model=MODEL,
        sequence=512,
        micro_batches=stages,
        data_parallel=DataParallel(overlap_reduce=False, overlap_gather=False),
        overlap=Overlap(pp=True),
        compute=Compute(micro_batch_time=T_MB),
        launcher="free",
    )
    return StepModel(machine_of(nodes, [[0] * len(nodes)], tiers), job)


def trade_of(model: StepModel) -> NicTrade:
    return NicTrade.of(Case.of(model, colocation_of(model.topology, model.job, 1)))


def passes(model: StepModel, pace: float) -> float:
    """Seconds of a reduction and a gather of a stage of four members at a pace."""
    stage = model.volumes.dense_parameters(2, 1)[0, 0] * 2.0
    return float(2 * 3 / 4 * stage * pace)


def pipeline(model: StepModel) -> float:
    """Two stages, two micro-batches, and a short hop each way between domains.

    The first stage has four layers, and the second, for which it waits, the output
    layer too: F, F, B, F, B and B of one micro-batch after the other.
    """
    layer = 16 * 1024**2 + 2 * 1024 * 512 / 0.83
    first = 4 * layer / (4 * layer + 32000 * 1024)
    return float((first + 2) * T_MB + 2 * model.volumes.pp_message / OUTER)


def test_two_members_and_a_cut() -> None:
    """The best compromise is two NICs and one stage a node."""
    model = model_on([3, 3, 3, 3], 1.0)
    value, level = trade_of(model).least()
    assert level.members.tolist() == [2, 2]
    assert level.runs == 2
    assert value == pytest.approx(passes(model, 1 / (2 * OUTER)) + pipeline(model))


def test_pipelines_that_cannot_all_stay_inside() -> None:
    """Nodes of three hold one pipeline each: of four, one leaves three such nodes.

    The case in which all stay inside then does not count, though each alone would fit.
    """
    model = model_on([3, 3, 2], 1.0)
    colocation = colocation_of(model.topology, model.job, 1)
    bound = time_bound(model, colocation)
    assert "pp group leaves" in bound.argument
    assert bound.value == pytest.approx(trade_of(model).least()[0])


def test_levels_rise() -> None:
    """Who may expose more needs no more members."""
    levels = trade_of(model_on([3, 3, 3, 3], 2.0)).levels
    for tight, loose in pairwise(levels):
        assert tight.exposed_s < loose.exposed_s
        assert (tight.members >= loose.members).all()


def test_context_groups_outside_leave_the_trade() -> None:
    """Where a cp group must leave, NICs are still paid for with cuts, or without.

    Nodes of three have room for one context rank's pipeline whole, one NIC a group, or
    for three members of one stage: the better of both bounds the step.
    """
    model = model_on([3, 3, 3], 1.0, context=2)
    colocation = colocation_of(model.topology, model.job, 1)
    bound = time_bound(model, colocation)
    trade = trade_of(model)
    assert bound.value >= trade.least(is_cut=False)[0]
    assert trade.least(is_cut=False)[0] <= trade.least()[0]
    assert "cut so often" in bound.argument


def test_pipelines_tied_to_hosts_without_nvlink() -> None:
    """They leave a domain of one GPU even where a rule keeps them on a host."""
    tiers = [
        Tier("node", 20e9, 1e-6, False, 1.0, 1.0, 1.0),
        Tier("cluster", OUTER, 1e-6, False, 1.0, 1.0, 8.0),
    ]
    job = replace(model_on([4, 4], 1.0).job, require={"pp": "node"})
    model = StepModel(machine_of([4, 4], [[0, 0]], tiers), job)
    colocation = colocation_of(model.topology, job, 1)
    bound = time_bound(model, colocation)
    placed = np.arange(8)
    assert 0 < bound.value <= model.step(placed).step_time_s
