"""The facts behind a score in words."""

from dataclasses import replace

import numpy as np
import pytest

from placer.cost.step import StepModel
from placer.explain.facts import explain
from placer.job.axes import Parallelism
from placer.job.model import Compute, Job
from placer.job.models import Model
from placer.placement.placement import Placement
from placer.report.explain_text import explain_text, rank_text
from placer.topology.model import Topology
from tests.cost.machines import machine, racks, tier
from tests.cost.random_cases import random_case

JOB = Job(
    "toy",
    Parallelism(tp=2, cp=2, pp=2, dp=4, vp=2, order=("tp", "cp", "ep", "pp", "dp")),
    Model("toy", layers=8, hidden=512, ffn=1024, heads=8, kv_heads=4, vocab=1000),
    sequence=2048,
    micro_batches=4,
    compute=Compute(micro_batch_time=1e-3, fixed_time=2e-3),
)


def text_of(topology: Topology, job: Job, gpus: np.ndarray) -> str:
    found = explain(StepModel(topology, job), Placement(gpus))
    tiers = [tier.name for tier in topology.tiers]
    return explain_text(found, tiers, topology.scale_up_tier + 1)


def words(text: str) -> str:
    """The text on one line."""
    return " ".join(text.split())


def moved(first: int, second: int) -> np.ndarray:
    gpus = np.arange(32)
    gpus[[first, second]] = gpus[[second, first]]
    return gpus


def test_worst_group_in_words() -> None:
    """A cut pair is named with its ranks, racks, tier, time and the reasons."""
    text = words(text_of(racks(gpus=8, num_racks=4), JOB, moved(1, 9)))
    assert "critical path, longest first 1. " in text
    assert "tp group 0 of 16: ranks 0-1 " in text
    # Half of 1 MiB over 100 GB/s and 3 us; over NVLink at 900 GB/s and 0.5 us.
    assert "8.243 us for one collective; the best group, 1, takes 1.083 us" in text
    assert "1 in rack0, 1 in rack1; 1 NIC a rack; together in one cluster" in text
    assert "why: it spans one cluster, the best group one rack;" in text
    assert "it spans 2 racks, not 1" in text
    assert "hops: 0 in the rack (not 2), 2 in the cluster (not 0)" in text
    assert "its fullest link (rack" in text


def test_groups_that_are_alike() -> None:
    """Where all groups take the same, one stands for all and there is no reason."""
    text = words(text_of(racks(gpus=8, num_racks=4), JOB, np.arange(32)))
    assert "tp all 16 groups alike, such as ranks 0-1 " in text
    assert "all inside rack rack0, in one rack" in text
    assert "why:" not in text
    assert "replica 0 of 4: pipeline" in text
    assert "0 of 2 hops leave the rack" in text
    assert "0 of 4 replicas have a hop that leaves the rack" in text
    assert "free fabric between racks" in text


def test_slow_node_and_nics() -> None:
    """A slow node is named with its share, a lost NIC with the counts."""
    factor = np.ones(4)
    factor[2] = 0.25
    tiers = [tier("rack", 900e9, scale_up=True), tier("cluster", 100e9)]
    text = words(text_of(machine([8, 4], tiers, factor), JOB, np.arange(32)))
    assert "why: rack2 reaches 25% of its bandwidth" in text
    # Stage 0 has a gradient group a TP rank; ranks 2 and 13 are of different ones.
    axes = replace(JOB.parallelism, pp=1, vp=1)
    gpus = np.arange(16)
    gpus[[2, 13]] = gpus[[13, 2]]
    text = words(text_of(racks(4), replace(JOB, parallelism=axes), gpus))
    assert "1 in rack0, 2 in rack1, 2 in rack2, 3 in rack3; 1 NIC a rack" in text


def test_replica_and_links() -> None:
    """Hops that leave are listed stage by stage, links with the axes that load them."""
    stage = JOB.parallelism.coordinates["pp"]
    gpus = np.argsort(np.argsort(stage, kind="stable"))
    text = words(text_of(racks(2, gpus=16), JOB, gpus))
    assert "2 of 2 hops leave the rack" in text
    assert "stage 0 -> 1 cluster tier rack0 -> rack1 4 of 4 lanes" in text
    assert "stage 1 -> 0 cluster tier rack1 -> rack0 4 of 4 lanes" in text
    assert "4 of 4 replicas have a hop that leaves the rack" in text
    assert "rack0 up, cluster tier" in text
    assert "pp 100%" in text


def test_hop_cost_alone() -> None:
    """A job of weights shows its hop cost by axis and tier: 15 pairs in, 1 ring out."""
    job = Job("toy", Parallelism(tp=2, dp=4), weights={"tp": 10.0, "dp": 1.0})
    text = text_of(racks(4, gpus=2), job, np.arange(8))
    assert text.splitlines() == [
        "hop cost  rack  cluster  share",
        "  tp        40        -  83.3%",
        "  dp         -        8  16.7%",
    ]


@pytest.mark.parametrize("seed", range(20))
def test_width(seed: int) -> None:
    """No line is wider than 80 columns or ends in a blank, on any machine."""
    case = random_case(seed)
    for line in text_of(case.topology, case.job, case.gpu_of_rank).splitlines():
        assert len(line) <= 80
        assert line == line.rstrip()


def test_long_names_are_wrapped() -> None:
    """Tables whose names are too long for a line become sentences."""
    topology = racks(2, gpus=16)
    names = tuple(f"{'very-' * 8}long-rack-{i}" for i in range(2))
    long = replace(topology, domain_names=(names, ("cluster",)))
    stage = JOB.parallelism.coordinates["pp"]
    text = text_of(long, JOB, np.argsort(np.argsort(stage, kind="stable")))
    assert max(map(len, text.splitlines())) <= 80
    assert f"{names[0]} -> {names[1]}" in words(text)


@pytest.mark.parametrize(
    ("ranks", "text"),
    [
        ([7], "7"),
        ([4, 5, 6, 7], "4-7"),
        ([0, 4], "0, 4"),
        ([0, 8, 16, 24, 32, 40], "0, 8, 16, 24, 32, 40"),
        (list(range(0, 8192, 64)), "0, 64, 128, ... 8128 (128 ranks)"),
    ],
    ids=str,
)
def test_ranks_in_short(ranks: list[int], text: str) -> None:
    """Runs are given by their ends, long lists by a few and their count."""
    assert rank_text(ranks) == text
