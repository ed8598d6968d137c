"""The facts behind a score: the worst group is the one built to be the worst."""

import json

import numpy as np
import pytest

from placer.cost.step import StepModel
from placer.explain.facts import explain
from placer.explain.score import score_with
from placer.job.axes import Parallelism
from placer.job.model import Compute, Job
from placer.job.models import Model
from placer.placement.placement import Placement
from tests.cost.machines import machine, tier
from tests.cost.random_cases import random_case

JOB = Job(
    "toy",
    Parallelism(tp=2, cp=2, pp=2, dp=4, vp=2, order=("tp", "cp", "ep", "pp", "dp")),
    Model("toy", layers=8, hidden=512, ffn=1024, heads=8, kv_heads=4, vocab=1000),
    sequence=2048,
    micro_batches=4,
    compute=Compute(micro_batch_time=1e-3, fixed_time=2e-3),
)


# Blocks of two racks, each an NVLink domain of 8 GPUs in two nodes of 4.
HOSTS = machine(
    [4, 2, 2, 2],
    [
        tier("node", 900e9, 0.5e-6, scale_up=True),
        tier("rack", 900e9, 0.5e-6, scale_up=True),
        tier("block", 100e9, 3e-6),
        tier("cluster", 50e9, 5e-6),
    ],
)


def facts(gpus):
    return explain(StepModel(HOSTS, JOB), Placement(gpus))


def swapped(*pairs, ranks=32):
    """Rank r on GPU r but for some pairs."""
    gpus = np.arange(ranks)
    for first, second in pairs:
        gpus[[first, second]] = gpus[[second, first]]
    return gpus


def test_split_cp_pair():
    """One pair over two racks of a block is the worst; its facts say why.

    Ranks 1 and 9 change places: TP pair (0, 1) and CP pair (1, 3) are cut, and so are
    (8, 9) and (9, 11), which come later.
    """
    found = facts(swapped((1, 9)))
    cp = found["worst_groups"]["cp"]
    assert cp["worst"]["ranks"] == (1, 3)
    assert cp["worst"]["members"] == {"rack0": 1, "rack1": 1}
    assert cp["worst"]["domains"] == {"node": 2, "rack": 2, "block": 1, "cluster": 1}
    assert cp["worst"]["common_tier"] == "block"
    assert cp["worst"]["hops"] == {"node": 0, "rack": 0, "block": 2, "cluster": 0}
    assert cp["best"]["common_tier"] == "node"
    assert cp["why"] == ["common_tier", "members", "hops", "fullest_uplink"]
    assert found["worst_groups"]["tp"]["worst"]["ranks"] == (0, 1)
    # One pass: half a slab of 1,024 tokens x 512 x 2 bytes over one NIC of 100 GB/s.
    seconds = found["worst_groups"]["tp"]["worst"]["seconds"]
    assert seconds == pytest.approx(1024 * 512 * 2 / 2 / 100e9 + 3e-6)


@pytest.mark.parametrize("seed", range(15))
def test_shares_sum_to_one(seed):
    """Shares of the path, and of each link, sum to 1; savings sum to what is saved."""
    case = random_case(seed)
    model = StepModel(case.topology, case.job)
    found = explain(model, Placement(case.gpu_of_rank))
    if not found:
        assert model.step(case.gpu_of_rank).step_time_s == 0.0
        return
    total = sum(entry["share"] for entry in found["critical_path"])
    assert total == pytest.approx(1.0)
    for link in found["hottest_links"]:
        assert sum(link["share_by_axis"].values()) == pytest.approx(1.0)
    score = score_with(model, Placement(case.gpu_of_rank))
    free = found["free_scale_out"]
    assert free["saved_s"] == score["exposed_scale_out_s"]
    assert sum(free["saved_by_axis_s"].values()) == pytest.approx(
        free["saved_s"], abs=1e-12 * score["step_time_s"]
    )
    json.dumps(found, allow_nan=False)
