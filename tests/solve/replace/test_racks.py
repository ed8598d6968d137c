"""Full racks that NVLink joins, after failures: the fewest moves that cost nothing."""

import random
from itertools import product

import numpy as np
import pytest

import placer
from placer.job.axes import Parallelism
from placer.job.model import Compute, Job
from placer.job.parallel import Overlap
from placer.placement.build import placement_of_plan
from placer.solve.problem.compiled import objective_of
from placer.testing import racks
from tests.marks import slow
from tests.solve.machines import MODEL


def job(launch="node-contiguous", **sizes):
    """A dense job of these sizes; others are 1."""
    return Job(
        "job",
        Parallelism(**sizes, etp=sizes.get("tp", 1)),
        model=MODEL,
        sequence=4096,
        micro_batches=8,
        overlap=Overlap(cp=True, pp=True),
        compute=Compute(micro_batch_time=0.02),
        launcher=launch,
    )


@pytest.mark.parametrize("sizes", [(8, 4, 2), *slow([(32, 24, 5)])])
def test_full_racks_that_lost_a_tray_move_whole_at_most(sizes):
    """With empty racks beside them no rank of another rack moves, and no step is lost.

    A gradient group is as slow as in the rack with the fewest of it, so what a rack has
    of one goes together or stays.
    """
    count, used, lost = sizes
    topology, work = racks([16] * count), job(tp=4, cp=2, pp=8, dp=used)
    plan = placer.place(topology, work).plan
    failed = random.Random(1).sample(list(plan.nodes), lost)
    found = placer.replace(plan, topology, work, failed=failed)
    about = found.plan.previous
    assert found.bound["value"] <= 1.001 * about["value_before"]
    assert about["moved"] <= lost * 64


SMALL = ({"pp": 2, "dp": 3}, {"pp": 3, "dp": 2}, {"cp": 2, "dp": 3}, {"dp": 6})


@pytest.mark.parametrize("seed", [*range(4), *slow(range(4, 12))])
def test_against_every_way_to_fill_three_racks(seed):
    """No placement within the tolerance moves fewer ranks."""
    rng = random.Random(seed)
    topology = racks([3] * 3, gpus=1)
    work = job(rng.choice(("node-contiguous", "free")), **SMALL[seed % len(SMALL)])
    plan = placer.place(topology, work).plan
    failed = rng.sample(list(plan.nodes), rng.choice((1, 2)))
    found = placer.replace(plan, topology, work, failed=failed).plan.previous
    assert found["moved"] == fewest(topology, work, plan, failed, found)


def fewest(topology, work, plan, failed, about):
    """Fewest moves within the budget, of every number of ranks that racks can hold."""
    goal = objective_of(topology, work, "time")
    before = placement_of_plan(plan, topology).gpu_of_rank
    bad = [topology.node_names.index(name) for name in failed]
    lost, home = np.isin(before, bad), before // 3
    room = 3 - np.bincount(np.array(bad) // 3, minlength=3)
    most = int(about["moved"])
    for racks_of in product(range(3), repeat=len(before)):
        rack = np.array(racks_of)
        moving = lost | (rack != home)
        if moving.sum() >= most or (np.bincount(rack, minlength=3) > room).any():
            continue
        gpus = np.where(moving, -1, before)
        for rank in np.flatnonzero(moving).tolist():
            seats = range(3 * rack[rank], 3 * rack[rank] + 3)
            gpus[rank] = next(g for g in seats if g not in gpus and g not in bad)
        if goal.value(gpus) <= about["budget"] * (1 + 1e-9):
            most = int(moving.sum())
    return most
